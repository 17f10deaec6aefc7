"""Execution of approved reassignments: engine, worker, throttle ledger, progress, pages."""

PUBLIC_MODULES = (
    "claims",
    "live_keys",
    "pages.rows",
    "pages.run",
    "pages.summaries",
    "tasks",
    "troubles",
    "worker.lease",
    "worker.moves",
)
"""Modules that other rooms may import (``tests.doors``)."""
