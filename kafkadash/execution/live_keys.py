"""The live keys of a run: what is pushed to its page after each step, besides the hint of its change request."""

from __future__ import annotations

RUN = "run"
"""Progress, figures, notices and the throttle in force; its key is ``run:42``."""
MOVES = "moves"
"""The rows that matter most."""


def run_keys(number: int) -> frozenset[str]:
    """Return what ``core.events.changed`` sends once a step is committed.

    What people can do with a run is another key, the hint ``changes.transitions.change_key``: for when the state of the
    request, a row that asks or a throttle of others is new.
    """
    return frozenset({f"{RUN}:{number}", f"{MOVES}:{number}"})
