"""Records and bytes that producers write: per cluster, broker and topic, once a minute."""
