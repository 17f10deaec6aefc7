"""How the states of a change request look and where each stands in the life of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkadash.domain.workflow_states import State

ENDED = (State.DONE, State.CANCELLED, State.FAILED, State.DECLINED, State.EXPIRED)
OPEN = tuple(state for state in State if state not in ENDED)


@dataclass(frozen=True, slots=True)
class Phase:
    """``phase`` is one of draft, proposed, approved, executing, done, ended; ``trouble`` a state of the status tokens
    instead, where the request cannot go on by itself.
    """

    word: str
    phase: str = ""
    trouble: str = ""


_PHASES = {
    State.DRAFT: Phase("Draft", "draft"),
    State.PROPOSED: Phase("Proposed", "proposed"),
    State.APPROVED: Phase("Approved", "approved"),
    State.QUEUED: Phase("Queued", "approved"),
    State.STALE: Phase("Stale", trouble="warning"),
    State.EXECUTING: Phase("Executing", "executing"),
    State.PAUSED: Phase("Paused", "executing"),
    State.CANCELLING: Phase("Cancelling", "executing"),
    State.VERIFYING: Phase("Verifying", "executing"),
    State.DONE: Phase("Done", "done"),
    State.CANCELLED: Phase("Cancelled", "ended"),
    State.FAILED: Phase("Failed", trouble="critical"),
    State.DECLINED: Phase("Declined", "ended"),
    State.EXPIRED: Phase("Expired", "ended"),
}


def phase_of(state: str) -> Phase:
    return _PHASES[State(state)]


@dataclass(frozen=True, slots=True)
class Step:
    """``state``: done, current or '' for one that is to come."""

    word: str
    state: str


def steps(state: str, *, submitted: bool, starts: bool) -> Sequence[Step]:
    """The life of a request for the stepper; with ``starts`` also what follows an approval."""
    now = State(state)
    words = ["Draft", "Proposed", "Approved", *(("Executing", "Verifying", "Done") if starts else ())]
    place = _PLACES.get(now)
    if place is not None and place < len(words):
        words[place] = phase_of(state).word
        return [Step(word, "done" if at < place else "current" if at == place else "") for at, word in enumerate(words)]
    passed = words[: 2 if submitted else 1]
    return [*(Step(word, "done") for word in passed), Step(phase_of(state).word, "current")]


_PLACES = {
    State.DRAFT: 0,
    State.PROPOSED: 1,
    State.STALE: 1,
    State.APPROVED: 2,
    State.QUEUED: 2,
    State.EXECUTING: 3,
    State.PAUSED: 3,
    State.CANCELLING: 3,
    State.VERIFYING: 4,
    State.DONE: 5,
}
