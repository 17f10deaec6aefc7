"""Events of a cluster that its collectors find between two readings: rules, and rows."""
