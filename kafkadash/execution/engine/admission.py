"""Decisions on single rows: whether a row may be submitted now, in what order, and how a row in flight has ended.

The window is rolling: as soon as a broker has a free slot, the next row takes the slot. Content is judged apart from
health: a row that is not as approved ends, an unhealthy partition or broker makes a row wait.

The result of a row in flight is decided from its partition and the listing of reassignments only: a partition that left
the listing has not necessarily succeeded, and a lost answer proves nothing. A broker's metadata can lag behind the
controller's listing, so every end that this lag could imitate needs two observations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.core.messages import CodedReason, PlainReason, join_reasons
from kafkadash.execution.engine.reasons import (
    BrokerAway,
    BrokerCordoned,
    BrokerFenced,
    BrokerNotRegistered,
    ChangedByOthers,
    EndUntold,
    FactorNotApproved,
    LookTooOld,
    MovedByOthers,
    NotAsPlanned,
    NoTraceOfIt,
    OrderNotRestored,
    RateInUse,
    ReassignedByOthers,
    RowReasonCode,
    RunReasonCode,
    ThereAlready,
    TopicCreatedAgain,
    TopicDeleted,
    UnderMinIsr,
    UnderMinIsrBrake,
)
from kafkadash.execution.engine.state import (
    ASK_AFTER,
    ENDED,
    LATE_METADATA,
    MOST_ATTEMPTS,
    REOPENED,
    RETRY,
    UNANSWERED,
    UNREAD_FOR,
    CancelAction,
    ClusterObservation,
    CopyWork,
    Key,
    ListedReassignment,
    PartitionSeen,
    ReorderAction,
    RowState,
    RunMode,
    RunRow,
    SubmitAction,
)


@dataclass(frozen=True, slots=True)
class MoveUpdate:
    """The row after the look, and the request it asks for. ``untraced``: what was sent for it left no trace."""

    move: RunRow
    action: CancelAction | ReorderAction | None = None
    untraced: bool = False


def reconcile_move(move: RunRow, seen: ClusterObservation, mode: RunMode, now: datetime) -> MoveUpdate:
    """For a row in flight. A look from before its last request, or one that was not answered, changes nothing."""
    row = move.work.row
    if row.topic in seen.unread:
        return _reconcile_unread(move, seen, mode, now)
    if not observation_covers(move, seen):
        return MoveUpdate(move)
    if is_topic_gone(row, seen):
        return MoveUpdate(settle_row(move, RowState.TOPIC_DELETED, seen.at, now, gone_reason(row, seen)))
    partition = seen.partitions[move.key]
    if partition.listed is not None:
        return _reconcile_listed(move, partition, partition.listed, mode, now)
    return _reconcile_unlisted(move, partition, seen.at, mode, now)


def look_again(move: RunRow, seen: ClusterObservation, mode: RunMode, now: datetime) -> MoveUpdate:
    """For a row that ended otherwise than done: whether a late request of ours set it in motion after all."""
    partition = seen.partitions.get(move.key)
    listed = partition.listed if partition else None
    if move.state not in REOPENED or not move.may_be_ours(now) or not observation_covers(move, seen):
        return MoveUpdate(move)
    if listed is None or not is_our_reassignment(move, listed) or is_topic_gone(move.work.row, seen):
        return MoveUpdate(move)
    if mode is RunMode.CANCELLING or move.state is RowState.CANCELLED:
        return _request_cancel(
            move.to(RowState.CANCELLING, now, PlainReason(RowReasonCode.ARRIVED_LATE_CANCELLED)), now
        )
    return MoveUpdate(move.to(RowState.MOVING, now, PlainReason(RowReasonCode.ARRIVED_LATE)))


def observation_covers(move: RunRow, seen: ClusterObservation) -> bool:
    """Return whether the observation says anything about the row's present state."""
    return _listing_tells(move, seen) and move.work.row.topic not in seen.unread


def _listing_tells(move: RunRow, seen: ClusterObservation) -> bool:
    return seen.listing and (move.acted_at is None or seen.at > move.acted_at)


def is_topic_gone(row: PartitionMove, seen: ClusterObservation) -> bool:
    """Return whether its topic is gone, or is another one of the same name."""
    topic = seen.topics.get(row.topic)
    if topic is None or (row.topic, row.partition) not in seen.partitions:
        return True
    return bool(topic.id and row.topic_id and topic.id != row.topic_id)


def gone_reason(row: PartitionMove, seen: ClusterObservation) -> CodedReason:
    return TopicCreatedAgain(row.topic) if row.topic in seen.topics else TopicDeleted(row.topic)


def is_our_reassignment(move: RunRow, listed: ListedReassignment) -> bool:
    """Return whether the listed reassignment has the row's target, in order, and adds only what the row adds."""
    return listed.target == move.work.row.target and listed.adding <= set(move.work.adding)


def settle_row(
    move: RunRow,
    end: RowState,
    at: datetime,
    now: datetime,
    reason: CodedReason | None,
    after: timedelta = timedelta(0),
) -> RunRow:
    """The row at its end if an earlier look, at least ``after`` before this one, said the same; else with the hint."""
    if move.hint is not end or move.hint_at is None:
        return replace(move, hint=end, hint_at=at)
    return move.to(end, now, reason) if at > move.hint_at and at - move.hint_at >= after else move


def clear_hint(move: RunRow) -> RunRow:
    return move if move.hint is None else replace(move, hint=None, hint_at=None)


def prepare_submit(move: RunRow, now: datetime) -> tuple[RunRow, SubmitAction]:
    """The intent of one more request to the target, and the request."""
    first = move.first_at or now
    intent = replace(
        move.to(RowState.SUBMITTING, now),
        attempt=move.attempt + 1,
        unanswered=move.unanswered + 1,
        first_at=first,
        submitted_at=now,
        acted_at=now,
    )
    return intent, SubmitAction(move.key, move.work.row.target)


def ask_operator(move: RunRow, now: datetime) -> RunRow | None:
    """The row as it asks the operator, once its requests went without a trace often or long enough; else None."""
    long = move.first_at is not None and now - move.first_at >= ASK_AFTER
    if move.attempt < MOST_ATTEMPTS and not long:
        return None
    return replace(move.to(RowState.UNKNOWN, now, NoTraceOfIt(move.attempt)), asks=True)


def _reconcile_unread(move: RunRow, seen: ClusterObservation, mode: RunMode, now: datetime) -> MoveUpdate:
    """Decide on a move whose topic cannot be described: its outcome is unknown. A cancel only needs the listing."""
    if not _listing_tells(move, seen) or (mode is not RunMode.CANCELLING and move.state is not RowState.CANCELLING):
        return MoveUpdate(move)
    listed = seen.unread_listed.get(move.key)
    if listed is not None:
        return _reconcile_listed(move, PartitionSeen(listed.replicas), listed, mode, now)
    if not move.quiet(now):
        return MoveUpdate(clear_hint(move))
    untold = EndUntold(move.work.row.topic)
    return MoveUpdate(settle_row(_mark_cancelling(move, now), RowState.FAILED, seen.at, now, untold, UNREAD_FOR))


def _reconcile_listed(
    move: RunRow, partition: PartitionSeen, listed: ListedReassignment, mode: RunMode, now: datetime
) -> MoveUpdate:
    if not is_our_reassignment(move, listed):
        why = PlainReason(RowReasonCode.OLD_REPLICAS_SUBMITTED) if listed.zombie else MovedByOthers(listed.target)
        return MoveUpdate(move.to(RowState.SUPERSEDED, now, why))
    if move.attempt == move.unanswered == 1:
        move = replace(move, unanswered=0)  # the only request there was has arrived
    if mode is RunMode.CANCELLING or move.state is RowState.CANCELLING:
        if move.cancelled_at is not None and now - move.cancelled_at < RETRY and move.state is RowState.CANCELLING:
            return MoveUpdate(clear_hint(move))
        return _request_cancel(
            move.to(RowState.CANCELLING, now, move.reason if move.state is RowState.CANCELLING else None), now
        )
    behind = set(move.work.adding) - partition.isr
    copied = bool(move.work.adding) and behind <= partition.copied
    return MoveUpdate(move.to(RowState.CATCHING_UP if copied else RowState.MOVING, now))


def _request_cancel(move: RunRow, now: datetime) -> MoveUpdate:
    return MoveUpdate(replace(clear_hint(move), acted_at=now, cancelled_at=now), CancelAction(move.key))


def _reconcile_unlisted(
    move: RunRow, partition: PartitionSeen, at: datetime, mode: RunMode, now: datetime
) -> MoveUpdate:
    row, replicas = move.work.row, partition.replicas
    if replicas == row.target:
        if move.work.removing or move.work.only_reorders:
            return MoveUpdate(move.to(RowState.DONE, now))
        # Where nothing is removed, metadata from before a cancel or from after a late submission looks the same.
        return MoveUpdate(settle_row(move, RowState.DONE, at, now, None))
    if set(replicas) == set(row.current):
        return _as_before(move, replicas, at, mode, now)
    changed = ChangedByOthers(replicas, row.target)
    whole = set(replicas) == {*row.current, *row.target}
    return MoveUpdate(settle_row(move, RowState.SUPERSEDED, at, now, changed, UNANSWERED if whole else timedelta(0)))


def _as_before(move: RunRow, replicas: tuple[int, ...], at: datetime, mode: RunMode, now: datetime) -> MoveUpdate:
    """The original set of replicas, and nothing listed."""
    row = move.work.row
    if mode is RunMode.CANCELLING or move.state is RowState.CANCELLING:
        return _reconcile_cancelled(_mark_cancelling(move, now), replicas, at, mode, now)
    if replicas == row.current and (move.work.only_reorders or move.state in (RowState.SUBMITTING, RowState.UNKNOWN)):
        return MoveUpdate(clear_hint(move), untraced=not move.asks)
    if move.work.only_reorders:
        return MoveUpdate(settle_row(move, RowState.SUPERSEDED, at, now, PlainReason(RowReasonCode.ORDERED_BY_OTHERS)))
    if _may_be_from_before(move, replicas, at):
        return MoveUpdate(clear_hint(move))
    ended = settle_row(move, RowState.CANCELLED, at, now, PlainReason(RowReasonCode.CANCELLED_BY_OTHERS))
    if ended.state is not RowState.CANCELLED or (replicas == row.current and move.quiet(now)):
        return MoveUpdate(ended)
    return _reconcile_cancelled(
        ended.to(RowState.CANCELLING, now, PlainReason(RowReasonCode.CANCELLED_BY_OTHERS)), replicas, at, mode, now
    )


def _may_be_from_before(move: RunRow, replicas: tuple[int, ...], at: datetime) -> bool:
    """Return whether these may be the original replicas, in order, from a broker that has not seen the submission.

    Two looks do not rule that out: both may be answered by the same broker, or by two that are behind.
    """
    young = move.submitted_at is not None and at - move.submitted_at < LATE_METADATA
    return young and replicas == move.work.row.current


def _mark_cancelling(move: RunRow, now: datetime) -> RunRow:
    return move if move.state is RowState.CANCELLING else move.to(RowState.CANCELLING, now)


def _reconcile_cancelled(
    move: RunRow, replicas: tuple[int, ...], at: datetime, mode: RunMode, now: datetime
) -> MoveUpdate:
    """Cancelled; its end, or the request for its order.

    Not before no request of ours can arrive any more: the original replicas submitted to a row that moves make a
    zombie, and an end that was told would not stay one.
    """
    if not move.quiet(now):
        return MoveUpdate(clear_hint(move))
    row = move.work.row
    if _may_be_from_before(move, replicas, at):
        return MoveUpdate(clear_hint(move))
    if replicas == row.current:
        return MoveUpdate(settle_row(move, RowState.CANCELLED, at, now, move.reason))
    if move.work.only_reorders:
        return MoveUpdate(settle_row(move, RowState.SUPERSEDED, at, now, PlainReason(RowReasonCode.ORDERED_BY_OTHERS)))
    sure = settle_row(move, RowState.CANCELLED, at, now, move.reason)
    if sure.state is not RowState.CANCELLED:
        return MoveUpdate(sure)
    if move.reorders >= MOST_ATTEMPTS:
        why = join_reasons(move.reason, OrderNotRestored(replicas))
        return MoveUpdate(sure.to(RowState.CANCELLED, now, why))
    if mode is RunMode.PAUSED or (move.reorders and move.acted_at is not None and now - move.acted_at < RETRY):
        return MoveUpdate(move)
    return MoveUpdate(
        replace(clear_hint(move), reorders=move.reorders + 1, acted_at=now), ReorderAction(move.key, row.current)
    )


OLDEST_LOOK = timedelta(seconds=30)
"""Nothing is submitted on what was read longer ago."""


@dataclass(frozen=True, slots=True)
class MinIsrGuard:
    """Min-ISR: ``under`` are partitions for whose sake nothing is submitted, ``halved`` brokers with half the moves."""

    under: tuple[str, ...] = ()
    halved: frozenset[int] = frozenset()

    @property
    def reason(self) -> CodedReason | None:
        """None when nothing is held up."""
        return UnderMinIsrBrake(self.under[0], len(self.under)) if self.under else None


def evaluate_brake(seen: ClusterObservation) -> MinIsrGuard:
    """A replica that is offline needs no bandwidth and brakes nothing; one that lags while its broker lives does."""
    pressed = [p for p in seen.pressed if p.lagging]
    under = tuple(f"{p.topic}-{p.partition}" for p in pressed if p.under)
    halved = frozenset(broker for p in pressed if len(p.isr) == p.min_isr for broker in p.replicas)
    return MinIsrGuard(under, halved)


def collect_hold_reasons(seen: ClusterObservation, mode: RunMode, now: datetime) -> tuple[CodedReason, ...]:
    """Return why nothing at all is submitted now; the brake has its own reason, as it lets repairs pass."""
    reasons: list[CodedReason] = []
    if mode is RunMode.PAUSED:
        reasons.append(PlainReason(RunReasonCode.PAUSED))
    if not seen.quorum:
        reasons.append(PlainReason(RunReasonCode.QUORUM_SILENT))
    if not seen.listing:
        reasons.append(PlainReason(RunReasonCode.LISTING_UNREAD))
    if not seen.window_open:
        reasons.append(PlainReason(RunReasonCode.WINDOW_CLOSED))
    if now - seen.at > OLDEST_LOOK:
        reasons.append(LookTooOld((now - seen.at).total_seconds()))
    return (*reasons, *seen.withheld)


def check_content(move: RunRow, seen: ClusterObservation, options: RunOptions, now: datetime) -> RunRow:
    """A row of which nothing was sent: ended if it is not as approved any more, else as it is."""
    row = move.work.row
    if not observation_covers(move, seen):
        return move
    if is_topic_gone(row, seen):
        return settle_row(move, RowState.TOPIC_DELETED, seen.at, now, gone_reason(row, seen))
    partition = seen.partitions[move.work.key]
    if partition.listed is not None:
        return move.to(RowState.SKIPPED, now, ReassignedByOthers(partition.listed.target))
    if partition.replicas != row.current:
        kind = ThereAlready if partition.replicas == row.target else NotAsPlanned
        why = kind(partition.replicas, row.current)
        return settle_row(move, RowState.SKIPPED, seen.at, now, why)
    if len(row.target) != len(row.current) and not options.change_rf:
        return move.to(RowState.SKIPPED, now, FactorNotApproved(len(row.current), len(row.target)))
    return clear_hint(move)


class RunHealth:
    """Judges rows by the brokers of one look."""

    def __init__(self, seen: ClusterObservation) -> None:
        self._seen = seen
        self._kept: dict[int, CodedReason] = {}
        self._added: dict[int, CodedReason] = {}
        self._throttled = {id_: broker.others_rate for id_, broker in seen.brokers.items() if broker.others_rate}
        for id_, broker in seen.brokers.items():
            if not broker.alive:
                self._kept[id_] = BrokerAway(id_)
            elif broker.fenced:
                self._kept[id_] = BrokerFenced(id_)
            elif broker.cordoned:
                self._added[id_] = BrokerCordoned(id_)
            elif broker.full:
                self._added[id_] = broker.full

    @property
    def well(self) -> frozenset[int]:
        """Brokers that may be given replicas."""
        return frozenset(self._seen.brokers).difference(self._kept, self._added)

    @property
    def throttled(self) -> frozenset[int]:
        """Brokers whose rate others use, so that it is not ours to set."""
        return frozenset(self._throttled)

    def wrong(self, work: CopyWork) -> CodedReason | None:
        """Why the row has to wait; None when it has not. A row that only reorders copies nothing."""
        if work.only_reorders:
            return None
        if why := self._wrong_with_brokers(work):
            return why
        partition = self._seen.partitions.get(work.key)
        if partition is None or not work.adding:
            return None
        if partition.leader is None:
            return PlainReason(RowReasonCode.NO_LEADER)
        if is_under_min_isr(partition) and not repairs(work, partition):
            lagging = [b for b in partition.replicas if b not in partition.isr and b not in partition.offline]
            if lagging:
                return UnderMinIsr(tuple(lagging))
        return None

    def _wrong_with_brokers(self, work: CopyWork) -> CodedReason | None:
        for broker in work.row.target:
            if broker not in self._seen.brokers:
                return BrokerNotRegistered(broker)
            if broker in self._kept:
                return self._kept[broker]
        for broker in work.adding:
            if broker in self._added:
                return self._added[broker]
        if self._throttled and work.adding:
            for broker in (*work.row.current, *work.adding):
                if broker in self._throttled:
                    return RateInUse(broker, self._throttled[broker])
        return None


def repairs(work: CopyWork, partition: PartitionSeen) -> bool:
    """Return whether the row replaces every missing replica of a partition with one offline or too few in sync."""
    missing = {broker for broker in partition.replicas if broker not in partition.isr} | partition.offline
    if not missing or not work.adding:
        return False
    return missing <= work.removing and (bool(partition.offline) or is_under_min_isr(partition))


def is_under_min_isr(partition: PartitionSeen) -> bool:
    return partition.min_isr is not None and len(partition.isr) < partition.min_isr


class FastPathFilter:
    """Tells fast that nothing is the matter with a row of which nothing was sent, as with nearly all of a large plan.

    What it lets through, ``check_content`` and ``RunHealth`` would let through; what it does not, they judge.
    """

    def __init__(self, seen: ClusterObservation, options: RunOptions, health: RunHealth) -> None:
        self._topics = {n: t.id for n, t in seen.topics.items() if seen.listing and n not in seen.unread}
        self._partitions, self._well, self._change_rf = seen.partitions, health.well, options.change_rf
        self._throttled = health.throttled

    def __call__(self, move: RunRow) -> bool:
        work = move.work
        row = work.row
        partition = self._partitions.get(work.key)
        return (
            partition is not None
            and partition.listed is None
            and partition.replicas == row.current
            and self._topics.get(row.topic) == row.topic_id
            and (self._change_rf or len(row.target) == len(row.current))
            and partition.leader is not None
            and (partition.min_isr is None or len(partition.isr) >= partition.min_isr)
            and self._well.issuperset(row.target)
            and (not self._throttled or self._throttled.isdisjoint((*row.current, *row.target)))
            and move.state is RowState.PENDING
            and move.hint is None
            and move.acted_at is None
        )


class AdmissionWindow:
    """The slots of one step: k per broker, in and out counted apart, N in the cluster, half of each topic."""

    def __init__(self, seen: ClusterObservation, options: RunOptions, halved: frozenset[int]) -> None:
        self._seen, self._halved = seen, halved
        self._most = max(1, options.per_broker)
        self._free = max(1, options.per_cluster)
        self._in: Counter[int] = Counter()
        self._out: Counter[int] = Counter()
        self._topics: Counter[str] = Counter()
        self._full_in: set[int] = set()
        self._full_out: set[int] = set()
        self._full_topics: set[str] = set()

    @property
    def full(self) -> bool:
        return self._free <= 0

    def take(self, work: CopyWork) -> None:
        """Count a row that is in flight, or is being submitted, against the window's limits."""
        self._free -= 1
        topic = work.row.topic
        self._topics[topic] += 1
        seen = self._seen.topics.get(topic)
        if self._topics[topic] >= (max(1, seen.partitions // 2) if seen else 1):
            self._full_topics.add(topic)
        if work.adding:
            leader = source_broker(work, self._seen)
            self._out[leader] += 1
            if self._out[leader] >= self._limit(leader):
                self._full_out.add(leader)
            for broker in work.adding:
                self._in[broker] += 1
                if self._in[broker] >= self._limit(broker):
                    self._full_in.add(broker)

    def fits(self, work: CopyWork) -> bool:
        if self.full or work.row.topic in self._full_topics:
            return False
        if not work.adding:
            return True
        return self._full_in.isdisjoint(work.adding) and source_broker(work, self._seen) not in self._full_out

    def _limit(self, broker: int) -> int:
        return max(1, self._most // 2) if broker in self._halved else self._most


def source_broker(work: CopyWork, seen: ClusterObservation) -> int:
    """The broker that the copies come from: the leader, or the preferred one while there is none."""
    partition = seen.partitions.get(work.key)
    return partition.leader if partition is not None and partition.leader is not None else work.row.current[0]


def order_candidates(candidates: Iterable[RunRow], moves: Iterable[RunRow], seen: ClusterObservation) -> list[RunRow]:
    """Repairs first, then rows that mend the spread over racks, then largest first on the most loaded broker.

    Load is what is still to arrive at, or to leave, a broker by rows that have not ended, in bytes; a row whose size
    is not known counts as the largest that is, so that it does not come last by ignorance.
    """
    known = max((move.work.size_bytes or 0 for move in moves), default=0)
    arriving: Counter[int] = Counter()
    leaving: Counter[int] = Counter()
    for move in moves:
        work = move.work
        if work.adding and move.state not in ENDED:
            size = known if work.size_bytes is None else work.size_bytes
            leaving[source_broker(work, seen)] += size * len(work.adding)
            for broker in work.adding:
                arriving[broker] += size
    return sorted(candidates, key=_rank(seen, arriving, leaving, known))


def _rank(
    seen: ClusterObservation, arriving: Counter[int], leaving: Counter[int], unknown: int
) -> Callable[[RunRow], tuple[int, int, int, Key]]:
    def rank(move: RunRow) -> tuple[int, int, int, Key]:
        work = move.work
        first = 0 if repairs(work, seen.partitions[work.key]) else 1 if work.mends_racks else 2
        if not work.adding:
            return first, 0, 0, work.key
        load = max(leaving[source_broker(work, seen)], *(arriving[broker] for broker in work.adding))
        return first, -load, -(unknown if work.size_bytes is None else work.size_bytes), work.key

    return rank


def choose_moves(
    candidates: Sequence[RunRow], moves: Sequence[RunRow], window: AdmissionWindow, seen: ClusterObservation
) -> list[RunRow]:
    """Return the candidates that fit into the window together, in the order of their submission."""
    if window.full:
        return []
    taken = []
    for move in order_candidates([m for m in candidates if window.fits(m.work)], moves, seen):
        if window.fits(move.work):
            window.take(move.work)
            taken.append(move)
    return taken
