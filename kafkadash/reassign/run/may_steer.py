"""What one person may do with a run now; each is asked again when it is done."""

from __future__ import annotations

from dataclasses import dataclass

from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.access import START
from kafkadash.domain.workflow_states import State


@dataclass(frozen=True, slots=True)
class May:
    """``steer``: another throttle and other limits; ``order``: something of a row; ``end_rows``: only what ends one, as
    on a read-only cluster. The state of the request is ``changes.decision``'s.
    """

    steer: bool
    order: bool
    end_rows: bool


def may_of(change: ChangeRequest, may: frozenset[str]) -> May:
    """``may``: see ``clusters.access.actions_allowed``. A read-only cluster refuses what leads to changes."""
    state = State(change.state)
    starts = START in may
    going = state in (State.EXECUTING, State.PAUSED)
    writes = starts and not change.cluster.read_only
    return May(
        steer=writes and (going or state is State.QUEUED),
        order=writes and going,
        end_rows=starts and (going or state is State.CANCELLING),
    )
