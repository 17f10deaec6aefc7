"""Work that a worker does for a page or a command, such as a connection test."""

PUBLIC_MODULES = ("connection_test", "errors", "models", "runner")
"""Modules that other rooms may import (``tests.doors``)."""
