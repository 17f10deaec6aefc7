"""Changes of configs of topics, of brokers and of the default of all brokers."""

PUBLIC_MODULES = ("edits", "errors", "kind", "stored")
"""Modules that other rooms may import (``tests.doors``)."""
