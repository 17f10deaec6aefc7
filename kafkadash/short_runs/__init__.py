"""Changes that are lists of items, each done with one request of Kafka: runner, items, pages."""

PUBLIC_MODULES = (
    "change_kind",
    "commands",
    "kinds",
    "models",
    "pages",
    "plans",
    "removal",
    "state",
    "tasks",
    "troubles",
    "worker",
)
"""Modules that other rooms may import (``tests.doors``)."""
