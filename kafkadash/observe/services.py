"""What the apps above tell about observed facts: which throttles and reassignments are theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from kafkadash.observe.collectors.writing import update_rows
from kafkadash.observe.models import Outcome, ReassignmentSnapshot, StartedFrom, ThrottleState

Throttle = tuple[str, str, str]
"""Resource, name and key of a ``ThrottleState``."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who it belongs to ("#42"), and the page about it; ``removed_at``: since when it is not there any more."""

    by: str
    url: str
    removed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MoveClaim:
    """A reassignment to ``target`` of ours, submitted between the two times, which are the same if it was once."""

    claim: Claim
    target: tuple[int, ...]
    submitted_after: datetime
    submitted_before: datetime


def claim(
    cluster_id: int,
    throttles: Mapping[Throttle, Claim],
    moves: Mapping[tuple[str, int], MoveClaim],
    now: datetime,
) -> None:
    """Marks exactly these as claimed, of what is set and what moves in the cluster; all others are nobody's.

    What is claimed as removed stays so until it is read again. Rows that a collector has not written yet are marked
    when this is called again, after its next refresh. Two queries, and one more for each table in which something
    differs.
    """
    update_rows(ThrottleState, _throttles(cluster_id, throttles, now))
    update_rows(ReassignmentSnapshot, _moves(cluster_id, moves, now))


def _throttles(cluster_id: int, wanted: Mapping[Throttle, Claim], now: datetime) -> dict[int, dict[str, Any]]:
    names = {name for _, name, _ in wanted}
    rows = ThrottleState.objects.filter(~Q(claimed_by="") | Q(name__in=names), cluster=cluster_id)
    changed = {}
    for row in rows.order_by("pk").only("pk", "claimed_by", "claim_url", "removed_at", "read_at", *_PLACE):
        found = wanted.get((row.resource, row.name, row.key))
        if found and found.removed_at and (row.claimed_by != found.by or row.read_at >= found.removed_at):
            found = None  # it stands there, so it is another one
        if found != (Claim(row.claimed_by, row.claim_url, row.removed_at) if row.claimed_by else None):
            changed[row.pk] = _written(found, now) | {"removed_at": found.removed_at if found else None}
            # Who set it is gone: whether anything needs it is judged from here on.
            changed[row.pk] |= {"unneeded_since": None, "orphan": False}
    return changed


_PLACE = ("resource", "name", "key")


def _moves(cluster_id: int, wanted: Mapping[tuple[str, int], MoveClaim], now: datetime) -> dict[int, dict[str, Any]]:
    """Of a snapshot that ended, it stays known whose it was."""
    topics = {topic for topic, _ in wanted}
    running = ReassignmentSnapshot.objects.filter(
        ~Q(claimed_by="") | Q(topic__in=topics), cluster=cluster_id, outcome=Outcome.RUNNING
    )
    changed = {}
    for row in running.order_by("pk").only("pk", "topic", "partition", "target", *_STARTED, "claimed_by", "claim_url"):
        found = wanted.get((row.topic, row.partition))
        if found is not None and found.target != tuple(row.target):
            found = None
        began: tuple[Any, ...] = tuple(getattr(row, name) for name in _STARTED)
        ours = row.started_from == StartedFrom.SUBMITTED
        if found is not None:
            began = found.submitted_after, found.submitted_before, StartedFrom.SUBMITTED
        elif ours:
            began = None, row.started_before, StartedFrom.FIRST_SEEN
        written = {**_written(found.claim if found else None, now), **dict(zip(_STARTED, began, strict=True))}
        same = {name: getattr(row, name) for name in (*_STARTED, "claimed_by", "claim_url")}
        if any(written[name] != value for name, value in same.items()):
            changed[row.pk] = written
    return changed


_STARTED = ("started_after", "started_before", "started_from")


def _written(found: Claim | None, now: datetime) -> dict[str, Any]:
    return {
        "claimed_by": found.by if found else "",
        "claim_url": found.url if found else "",
        "claimed_at": now if found else None,
    }
