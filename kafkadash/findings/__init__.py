"""Findings about clusters: judges, storage, board, runbooks, failure simulation."""

PUBLIC_MODULES = (
    "board",
    "errors",
    "facts",
    "judgement",
    "kinds",
    "models",
    "product",
    "services",
    "stored_facts",
    "wall",
)
"""Modules that other rooms may import (``tests.doors``)."""
