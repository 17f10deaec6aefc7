"""Claims of the apps above on observed facts: the throttles and reassignments that are theirs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class AcceptedMove:
    """A reassignment that Kafka accepted from us; ``topic_id`` "" where the cluster has no topic ids."""

    topic: str
    topic_id: str
    partition: int
    original: tuple[int, ...]
    claim: MoveClaim


NEVER_LISTED = 0
"""Epoch of a reassignment that no refresh has found listed: collectors count theirs from 1."""


def register_moves(cluster_id: int, moves: Sequence[AcceptedMove], now: datetime) -> None:
    """Give accepted reassignments their id at once: many end before a refresh lists them. One statement.

    A partition whose reassignment is known already keeps that one; the next refresh judges whether it is the same.
    """
    new = [_build_snapshot(cluster_id, move, now) for move in moves]
    ReassignmentSnapshot.objects.bulk_create(new, ignore_conflicts=True)


def _build_snapshot(cluster_id: int, move: AcceptedMove, now: datetime) -> ReassignmentSnapshot:
    target, original, own = list(move.claim.target), list(move.original), move.claim
    removing = [broker for broker in original if broker not in target]
    return ReassignmentSnapshot(
        cluster_id=cluster_id,
        public_id=new_move_id(),
        topic_id=move.topic_id or move.topic,
        topic=move.topic,
        partition=move.partition,
        replicas=target + removing,
        adding=sorted(set(target) - set(original)),
        removing=sorted(removing),
        target=target,
        original=original,
        started_after=own.submitted_after,
        started_before=own.submitted_before,
        started_from=StartedFrom.SUBMITTED,
        last_seen_at=own.submitted_before,
        epoch=NEVER_LISTED,
        seq=0,
        **_claim_columns(own.claim, now),
    )


def end_moves(cluster_id: int, owner: str, ended: Mapping[tuple[str, int], MoveOutcome], now: datetime) -> None:
    """End the owner's running reassignments as their run has found them. Two statements.

    A refresh that began before may write them as running once more; the next one judges them by itself.
    """
    topics = {topic for topic, _ in ended}
    running = ReassignmentSnapshot.objects.filter(
        cluster=cluster_id, claimed_by=owner, outcome=MoveOutcome.RUNNING, topic__in=topics
    ).order_by("pk")
    changed = {}
    for row in running.only("pk", "topic", "partition", "percent", "sampled_at"):
        outcome = ended.get((row.topic, row.partition))
        if outcome is not None:
            done = outcome is MoveOutcome.COMPLETED
            sample = (100.0, now) if done else (row.percent, row.sampled_at)
            changed[row.pk] = {"outcome": outcome, "ended_at": now, "percent": sample[0], "sampled_at": sample[1]}
    update_rows(ReassignmentSnapshot, changed)


def new_move_id() -> str:
    """Return an id for one reassignment of one partition (KIP-240's ``ReassignmentId``), which Kafka does not give."""
    return f"r-{secrets.token_hex(6)}"


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
    """Return the changed claims of running reassignments. Those that ended or were never listed keep their owner."""
    topics = {topic for topic, _ in wanted}
    running = ReassignmentSnapshot.objects.filter(
        ~Q(claimed_by="") | Q(topic__in=topics), cluster=cluster_id, outcome=MoveOutcome.RUNNING
    ).exclude(epoch=NEVER_LISTED)
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
