"""From what is open and what is found now: what opens, what goes on, what closes.

A finding is known by kind and scope. It opens after being seen in as many different readings as its kind asks for,
keeps its identity while it is seen, and closes when a reading that can tell says that it is not there any more. What
cannot be told closes nothing. Doing it twice with the same facts changes nothing the second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.findings import Evaluation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """A finding that is not closed. ``seen_at`` is when the facts behind its last look were read.

    ``looks``: in how many different readings it was seen so far; ``opened``: whether that was enough. ``row`` is
    whatever the caller keeps it in.
    """

    kind: FindingKind
    scope: str
    opened: bool
    looks: int
    seen_at: datetime
    row: T


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """A known finding seen again, with what it says now."""

    known: Known[T]
    finding: Finding
    looks: int
    opens: bool


@dataclass(frozen=True, slots=True)
class Steps(Generic[T]):
    """``begin``: found for the first time, and whether each opens at once. ``close``: over, and since which reading.

    ``drop``: never opened and not seen again.
    """

    begin: tuple[tuple[Finding, bool], ...]
    seen: tuple[Seen[T], ...]
    close: tuple[tuple[Known[T], datetime], ...]
    drop: tuple[Known[T], ...]


def reconcile(known: Sequence[Known[T]], evaluation: Evaluation, now: datetime) -> Steps[T]:
    """What follows for every known and every found one. ``known`` holds at most one of each kind and scope."""
    before = {(k.kind, k.scope): k for k in known}
    found = {(f.kind, f.scope): f for f in evaluation.found}
    begin, seen, close, drop = [], [], [], []
    for key, finding in found.items():
        own = before.get(key)
        if own is None:
            begin.append((finding, finding.kind.about.looks <= 1))
        elif finding.taken_at >= own.seen_at:
            looks = own.looks + (finding.taken_at > own.seen_at)
            seen.append(Seen(own, finding, looks, not own.opened and looks >= finding.kind.about.looks))
    for key, own in before.items():
        if key in found or evaluation.cannot_tell(*key):
            continue
        if own.opened:
            close.append((own, max(own.seen_at, evaluation.taken.get(own.kind, now))))
        else:
            drop.append(own)
    return Steps(tuple(begin), tuple(seen), tuple(close), tuple(drop))
