"""Why a part of a page is empty or old: the kinds of facts that could not be read, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkadash.observe.models import CollectorRun, Kind

_NOT_AUTHORIZED = "NotAuthorized"


@dataclass(frozen=True, slots=True)
class NotRead:
    """One kind of facts whose last refresh failed. ``cause`` is the sentence of the refresh itself."""

    kind: str
    words: str
    cause: str
    meaning: str


def not_read(runs: Mapping[str, CollectorRun], kinds: Sequence[Kind]) -> list[NotRead]:
    """Those of ``kinds`` that a page needs and whose last refresh failed; ``runs`` by kind."""
    return [_words(runs[kind]) for kind in kinds if kind in runs and runs[kind].failures]


def _words(run: CollectorRun) -> NotRead:
    what = Kind(run.kind).label
    seen = run.succeeded_at is not None
    if run.last_failure == _NOT_AUTHORIZED:
        meaning = (
            "What is shown of it is from before, with its age."
            if seen
            else "Until kafkadash may, what comes from it is empty here."
        )
        return NotRead(run.kind, f"Kafka does not let kafkadash read {what}.", run.last_error, meaning)
    meaning = "What is shown of it is from before, with its age." if seen else "What comes from it is empty until then."
    return NotRead(run.kind, f"The last refresh of {what} failed.", run.last_error, meaning)
