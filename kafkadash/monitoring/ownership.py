"""Claims of the apps above on observed facts: the throttles and reassignments that are theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from kafkadash.core.rows import update_rows
from kafkadash.monitoring.models import MoveOutcome, ReassignmentSnapshot, StartedFrom, ThrottleState

Throttle = tuple[str, str, str]
"""Resource, name and key of a ``ThrottleState``."""


@dataclass(frozen=True, slots=True)
class OwnershipClaim:
    """Owner ("#42") of an observed fact, and the URL of its page; ``removed_at``: when the fact was removed."""

    by: str
    url: str
    removed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MoveClaim:
    """A reassignment to ``target`` of ours, submitted between the two times, which are the same if it was once."""

    claim: OwnershipClaim
    target: tuple[int, ...]
    submitted_after: datetime
    submitted_before: datetime


def mark_claims(
    cluster_id: int,
    throttles: Mapping[Throttle, OwnershipClaim],
    moves: Mapping[tuple[str, int], MoveClaim],
    now: datetime,
) -> None:
    """Marks exactly these as claimed, of what is set and what moves in the cluster; all others are nobody's.

    What is claimed as removed stays so until it is read again. Rows that a collector has not written yet are marked
    when this is called again, after its next refresh. Two queries, and one more for each table in which something
    differs.
    """
    update_rows(ThrottleState, _mark_throttles(cluster_id, throttles, now))
    update_rows(ReassignmentSnapshot, _mark_moves(cluster_id, moves, now))


def _mark_throttles(
    cluster_id: int, wanted: Mapping[Throttle, OwnershipClaim], now: datetime
) -> dict[int, dict[str, Any]]:
    names = {name for _, name, _ in wanted}
    rows = ThrottleState.objects.filter(~Q(claimed_by="") | Q(name__in=names), cluster=cluster_id)
    changed = {}
    for row in rows.order_by("pk").only("pk", "claimed_by", "claim_url", "removed_at", "read_at", *_PLACE):
        found = wanted.get((row.resource, row.name, row.key))
        if found and found.removed_at and (row.claimed_by != found.by or row.read_at >= found.removed_at):
            found = None  # it stands there, so it is another one
        if found != (OwnershipClaim(row.claimed_by, row.claim_url, row.removed_at) if row.claimed_by else None):
            changed[row.pk] = _claim_columns(found, now) | {"removed_at": found.removed_at if found else None}
            # Who set it is gone: whether anything needs it is judged from here on.
            changed[row.pk] |= {"unneeded_since": None, "orphan": False}
    return changed


_PLACE = ("resource", "name", "key")


def _mark_moves(
    cluster_id: int, wanted: Mapping[tuple[str, int], MoveClaim], now: datetime
) -> dict[int, dict[str, Any]]:
    """Return the changed claims of running reassignments. Ended snapshots keep their owner."""
    topics = {topic for topic, _ in wanted}
    running = ReassignmentSnapshot.objects.filter(
        ~Q(claimed_by="") | Q(topic__in=topics), cluster=cluster_id, outcome=MoveOutcome.RUNNING
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
        written = {**_claim_columns(found.claim if found else None, now), **dict(zip(_STARTED, began, strict=True))}
        same = {name: getattr(row, name) for name in (*_STARTED, "claimed_by", "claim_url")}
        if any(written[name] != value for name, value in same.items()):
            changed[row.pk] = written
    return changed


_STARTED = ("started_after", "started_before", "started_from")


def _claim_columns(found: OwnershipClaim | None, now: datetime) -> dict[str, Any]:
    return {
        "claimed_by": found.by if found else "",
        "claim_url": found.url if found else "",
        "claimed_at": now if found else None,
    }
