"""Verification of Kafka's reassignment files against a cluster."""

PUBLIC_MODULES = ("job", "rules")
"""Modules that other rooms may import (``tests.doors``)."""
