"""What a look at the cluster makes of a row of which a request was stored (04-changes.md §3).

Decided from the partition and the listing alone: having left the listing is not success, and an answer that got lost
says nothing. A broker's metadata may be late behind the controller's listing, so every end that lateness could feign
takes two looks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kafkadash.domain.executor_state import (
    ASK_AFTER,
    LATE_METADATA,
    MOST_ATTEMPTS,
    REOPENED,
    RETRY,
    UNANSWERED,
    UNREAD_FOR,
    Cancel,
    Listed,
    Mode,
    Move,
    Observation,
    PartitionSeen,
    Reorder,
    State,
    Submit,
)
from kafkadash.domain.plan import Row
from kafkadash.domain.reasons import CodedReason, joined
from kafkadash.domain.row_reasons import (
    ArrivedLate,
    ArrivedLateCancelled,
    CancelledByOthers,
    ChangedByOthers,
    EndUntold,
    MovedByOthers,
    NoTraceOfIt,
    OldReplicasSubmitted,
    OrderedByOthers,
    OrderNotRestored,
    TopicCreatedAgain,
    TopicDeleted,
)


@dataclass(frozen=True, slots=True)
class Looked:
    """The row after the look, and the request it asks for. ``untraced``: what was sent for it left no trace."""

    move: Move
    action: Cancel | Reorder | None = None
    untraced: bool = False


def look(move: Move, seen: Observation, mode: Mode, now: datetime) -> Looked:
    """For a row in flight. A look from before its last request, or one that was not answered, changes nothing."""
    row = move.work.row
    if row.topic in seen.unread:
        return _unread(move, seen, mode, now)
    if not tells(move, seen):
        return Looked(move)
    if gone(row, seen):
        return Looked(settled(move, State.TOPIC_DELETED, seen.at, now, gone_reason(row, seen)))
    partition = seen.partitions[move.key]
    if partition.listed is not None:
        return _listed(move, partition, partition.listed, mode, now)
    return _unlisted(move, partition, seen.at, mode, now)


def look_again(move: Move, seen: Observation, mode: Mode, now: datetime) -> Looked:
    """For a row that ended otherwise than done: whether a late request of ours set it in motion after all."""
    partition = seen.partitions.get(move.key)
    listed = partition.listed if partition else None
    if move.state not in REOPENED or not move.may_be_ours(now) or not tells(move, seen):
        return Looked(move)
    if listed is None or not ours(move, listed) or gone(move.work.row, seen):
        return Looked(move)
    if mode is Mode.CANCELLING or move.state is State.CANCELLED:
        return _cancel(move.to(State.CANCELLING, now, ArrivedLateCancelled()), now)
    return Looked(move.to(State.MOVING, now, ArrivedLate()))


def tells(move: Move, seen: Observation) -> bool:
    """Whether the look says anything about the row as it is now."""
    return _listing_tells(move, seen) and move.work.row.topic not in seen.unread


def _listing_tells(move: Move, seen: Observation) -> bool:
    return seen.listing and (move.acted_at is None or seen.at > move.acted_at)


def gone(row: Row, seen: Observation) -> bool:
    """Its topic is not there, or is another one of the same name."""
    topic = seen.topics.get(row.topic)
    if topic is None or (row.topic, row.partition) not in seen.partitions:
        return True
    return bool(topic.id and row.topic_id and topic.id != row.topic_id)


def gone_reason(row: Row, seen: Observation) -> CodedReason:
    return TopicCreatedAgain(row.topic) if row.topic in seen.topics else TopicDeleted(row.topic)


def ours(move: Move, listed: Listed) -> bool:
    """Whether what is listed leads to the row's target, in its order, by adding what we add."""
    return listed.target == move.work.row.target and listed.adding <= set(move.work.adding)


def settled(
    move: Move,
    end: State,
    at: datetime,
    now: datetime,
    reason: CodedReason | None,
    after: timedelta = timedelta(0),
) -> Move:
    """The row at its end if an earlier look, at least ``after`` before this one, said the same; else with the hint."""
    if move.hint is not end or move.hint_at is None:
        return replace(move, hint=end, hint_at=at)
    return move.to(end, now, reason) if at > move.hint_at and at - move.hint_at >= after else move


def unhinted(move: Move) -> Move:
    return move if move.hint is None else replace(move, hint=None, hint_at=None)


def submitted(move: Move, now: datetime) -> tuple[Move, Submit]:
    """The intent of one more request to the target, and the request."""
    first = move.first_at or now
    intent = replace(
        move.to(State.SUBMITTING, now),
        attempt=move.attempt + 1,
        unanswered=move.unanswered + 1,
        first_at=first,
        submitted_at=now,
        acted_at=now,
    )
    return intent, Submit(move.key, move.work.row.target)


def asking(move: Move, now: datetime) -> Move | None:
    """The row as it asks the operator, once its requests went without a trace often or long enough; else None."""
    long = move.first_at is not None and now - move.first_at >= ASK_AFTER
    if move.attempt < MOST_ATTEMPTS and not long:
        return None
    return replace(move.to(State.UNKNOWN, now, NoTraceOfIt(move.attempt)), asks=True)


def _unread(move: Move, seen: Observation, mode: Mode, now: datetime) -> Looked:
    """Its topic is described by nobody, so how it ends cannot be told. A cancel needs no more than the listing."""
    if not _listing_tells(move, seen) or (mode is not Mode.CANCELLING and move.state is not State.CANCELLING):
        return Looked(move)
    listed = seen.unread_listed.get(move.key)
    if listed is not None:
        return _listed(move, PartitionSeen(listed.replicas), listed, mode, now)
    if not move.quiet(now):
        return Looked(unhinted(move))
    untold = EndUntold(move.work.row.topic)
    return Looked(settled(_cancelling(move, now), State.FAILED, seen.at, now, untold, UNREAD_FOR))


def _listed(move: Move, partition: PartitionSeen, listed: Listed, mode: Mode, now: datetime) -> Looked:
    if not ours(move, listed):
        why = OldReplicasSubmitted() if listed.zombie else MovedByOthers(listed.target)
        return Looked(move.to(State.SUPERSEDED, now, why))
    if move.attempt == move.unanswered == 1:
        move = replace(move, unanswered=0)  # the only request there was has arrived
    if mode is Mode.CANCELLING or move.state is State.CANCELLING:
        if move.cancelled_at is not None and now - move.cancelled_at < RETRY and move.state is State.CANCELLING:
            return Looked(unhinted(move))
        return _cancel(move.to(State.CANCELLING, now, move.reason if move.state is State.CANCELLING else None), now)
    behind = set(move.work.adding) - partition.isr
    copied = bool(move.work.adding) and behind <= partition.copied
    return Looked(move.to(State.CATCHING_UP if copied else State.MOVING, now))


def _cancel(move: Move, now: datetime) -> Looked:
    return Looked(replace(unhinted(move), acted_at=now, cancelled_at=now), Cancel(move.key))


def _unlisted(move: Move, partition: PartitionSeen, at: datetime, mode: Mode, now: datetime) -> Looked:
    row, replicas = move.work.row, partition.replicas
    if replicas == row.target:
        if move.work.removing or move.work.only_reorders:
            return Looked(move.to(State.DONE, now))
        # Where nothing is removed, metadata from before a cancel or from after a late submission looks the same.
        return Looked(settled(move, State.DONE, at, now, None))
    if set(replicas) == set(row.current):
        return _as_before(move, replicas, at, mode, now)
    changed = ChangedByOthers(replicas, row.target)
    whole = set(replicas) == {*row.current, *row.target}
    return Looked(settled(move, State.SUPERSEDED, at, now, changed, UNANSWERED if whole else timedelta(0)))


def _as_before(move: Move, replicas: tuple[int, ...], at: datetime, mode: Mode, now: datetime) -> Looked:
    """The original set of replicas, and nothing listed."""
    row = move.work.row
    if mode is Mode.CANCELLING or move.state is State.CANCELLING:
        return _restored(_cancelling(move, now), replicas, at, mode, now)
    if replicas == row.current and (move.work.only_reorders or move.state in (State.SUBMITTING, State.UNKNOWN)):
        return Looked(unhinted(move), untraced=not move.asks)
    if move.work.only_reorders:
        return Looked(settled(move, State.SUPERSEDED, at, now, OrderedByOthers()))
    if _may_be_from_before(move, replicas, at):
        return Looked(unhinted(move))
    ended = settled(move, State.CANCELLED, at, now, CancelledByOthers())
    if ended.state is not State.CANCELLED or (replicas == row.current and move.quiet(now)):
        return Looked(ended)
    return _restored(ended.to(State.CANCELLING, now, CancelledByOthers()), replicas, at, mode, now)


def _may_be_from_before(move: Move, replicas: tuple[int, ...], at: datetime) -> bool:
    """Whether the original replicas in their order may be what a broker still has from before the submission.

    Two looks do not rule it out: both may be answered by the same broker, or by two that are behind.
    """
    young = move.submitted_at is not None and at - move.submitted_at < LATE_METADATA
    return young and replicas == move.work.row.current


def _cancelling(move: Move, now: datetime) -> Move:
    return move if move.state is State.CANCELLING else move.to(State.CANCELLING, now)


def _restored(move: Move, replicas: tuple[int, ...], at: datetime, mode: Mode, now: datetime) -> Looked:
    """Cancelled; its end, or the request for its order.

    Not before no request of ours can arrive any more: the original replicas submitted to a row that moves make a
    zombie, and an end that was told would not stay one.
    """
    if not move.quiet(now):
        return Looked(unhinted(move))
    row = move.work.row
    if _may_be_from_before(move, replicas, at):
        return Looked(unhinted(move))
    if replicas == row.current:
        return Looked(settled(move, State.CANCELLED, at, now, move.reason))
    if move.work.only_reorders:
        return Looked(settled(move, State.SUPERSEDED, at, now, OrderedByOthers()))
    sure = settled(move, State.CANCELLED, at, now, move.reason)
    if sure.state is not State.CANCELLED:
        return Looked(sure)
    if move.reorders >= MOST_ATTEMPTS:
        why = joined(move.reason, OrderNotRestored(replicas))
        return Looked(sure.to(State.CANCELLED, now, why))
    if mode is Mode.PAUSED or (move.reorders and move.acted_at is not None and now - move.acted_at < RETRY):
        return Looked(move)
    return Looked(replace(unhinted(move), reorders=move.reorders + 1, acted_at=now), Reorder(move.key, row.current))
