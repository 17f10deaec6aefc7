"""Running what was approved: the turn, the steps under a lease, the throttle ledger, what is measured and reported."""
