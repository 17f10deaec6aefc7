"""Findings about clusters: judges, storage, board, runbooks, failure simulation."""

PUBLIC_MODULES = ("board", "errors", "judges", "kinds", "models", "product", "services", "wall")
"""Modules that other rooms may import (``tests.doors``)."""
