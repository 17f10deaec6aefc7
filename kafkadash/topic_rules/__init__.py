"""Topic rules of a cluster: which names, replication factors and configs changes may give its topics and brokers."""

PUBLIC_MODULES = ("checks", "models", "reasons", "rules")
"""Modules that other rooms may import (``tests.doors``)."""
