"""Pages of whoever is on call: the status board, a cluster's overview, findings and runbooks, one module for each."""
