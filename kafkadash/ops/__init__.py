"""Operation of the product itself: tick, retention, health, audit pages."""
