"""Findings about clusters: judges, storage, board, runbooks, failure simulation."""

PUBLIC_MODULES = ("board", "models", "services")
"""Modules that other rooms may import (``tests.doors``)."""
