"""Execution of approved reassignments: engine, worker, throttle ledger, progress, pages."""

PUBLIC_MODULES = (
    "claims",
    "engine.state",
    "live_keys",
    "models",
    "pages.counts",
    "pages.rows",
    "pages.run",
    "pages.summaries",
    "progress.figures",
    "tasks",
    "troubles",
    "worker.lease",
    "worker.moves",
)
"""Modules that other rooms may import (``tests.doors``)."""
