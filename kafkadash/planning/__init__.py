"""Plans of reassignments: wizard, solver, checker, impact, review."""

PUBLIC_MODULES = (
    "errors",
    "finish",
    "impact",
    "kafka_json",
    "models",
    "options",
    "preconditions",
    "proposal",
    "report",
    "review",
    "solver.replacement",
    "stored_checks",
    "stored_topology",
    "topic_form",
    "topology",
    "window",
)
"""Modules that other rooms may import (``tests.doors``)."""
