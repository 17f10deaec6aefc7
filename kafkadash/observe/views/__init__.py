"""Pages of one cluster, one module for each."""
