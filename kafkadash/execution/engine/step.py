"""A step of an execution: from the rows and an observation of the cluster to the actions to take now.

``plan_step`` is pure. Its caller reads listing and metadata, calls ``plan_step``, stores the transitions together with
the intents, takes the actions in order, and stores the replies through ``apply_reply``. If the caller dies in between,
an intent remains, and the next step decides from the cluster. An action whose predecessors failed is not taken: a row
whose throttle could not be set is not submitted, and its intent is resolved like any other that left no trace.

``plan_throttle_changes`` computes the throttle (KIP-73) that the rows in flight need, and the changes from the throttle
that is set. These are only pairs and rates of this run; values from before the run and their restoration are the
ledger's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kafkadash.changes.plan import RunOptions
from kafkadash.core.messages import CodedReason, PlainReason
from kafkadash.execution.engine.admission import (
    AdmissionWindow,
    FastPathFilter,
    MinIsrGuard,
    MoveUpdate,
    RunHealth,
    ask_operator,
    check_content,
    choose_moves,
    collect_hold_reasons,
    evaluate_brake,
    is_our_reassignment,
    is_under_min_isr,
    look_again,
    observation_covers,
    prepare_submit,
    reconcile_move,
    repairs,
)
from kafkadash.execution.engine.reasons import AnswerUnclear, NotElected, RefusedByKafka, RowReasonCode
from kafkadash.execution.engine.state import (
    ASK_AFTER,
    BEFORE,
    ENDED,
    MOST_ATTEMPTS,
    MOST_SUBMITTED,
    RETRY,
    BrokerSlot,
    CallReply,
    CancelAction,
    ClusterObservation,
    ElectAction,
    Key,
    ReorderAction,
    RowState,
    RunMode,
    RunRow,
    StateTransition,
    SubmitAction,
)

Pair = tuple[int, int]
"""Partition and broker, ``partition:broker`` in Kafka's lists."""


@dataclass(frozen=True, slots=True)
class ThrottledPairs:
    """Pairs of one topic, for its list of throttled leaders and of throttled followers."""

    leader: frozenset[Pair] = frozenset()
    follower: frozenset[Pair] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.leader or self.follower)

    def __sub__(self, other: ThrottledPairs) -> ThrottledPairs:
        return ThrottledPairs(self.leader - other.leader, self.follower - other.follower)

    @property
    def partitions(self) -> frozenset[int]:
        return frozenset(partition for partition, _ in self.leader | self.follower)


NONE = ThrottledPairs()


@dataclass(frozen=True, slots=True)
class StepThrottles:
    """``pairs`` by topic; ``rates`` by broker in bytes per second, for sending and for fetching alike.

    As something that is set: what the ledger has as ours and neither cleared nor obliged, 0 for a broker with one of
    the two rates only. ``held``: why nothing may be submitted now: ours was taken away, and it is not time yet to set
    it again.
    """

    pairs: Mapping[str, ThrottledPairs] = field(default_factory=dict)
    rates: Mapping[int, int] = field(default_factory=dict)
    held: tuple[CodedReason, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeLists:
    """Both lists of a topic, at once: APPEND of ``add``, SUBTRACT of ``remove``. ``rows`` are those it is for."""

    topic: str
    add: ThrottledPairs
    remove: ThrottledPairs
    rows: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class SetRate:
    """Both rates of a broker, in bytes per second."""

    broker: int
    rate: int
    rows: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class ClearRate:
    """Both rates of a broker back to what the ledger has from before; no row in flight uses them."""

    broker: int


@dataclass(frozen=True, slots=True)
class StepChanges:
    """``unreachable``: brokers that should have the rate and cannot be given it now."""

    lists: tuple[ChangeLists, ...]
    rates: tuple[SetRate, ...]
    clears: tuple[ClearRate, ...]
    unreachable: tuple[int, ...]


def compute_wanted_throttles(moves: Iterable[RunRow], rate: int) -> StepThrottles:
    """For the rows in flight that copy something: sources (current − adding) send, destinations (target − sources)
    fetch. Both rates stand on all of them, because a destination leads other partitions that are sources.
    """
    leader: defaultdict[str, set[Pair]] = defaultdict(set)
    follower: defaultdict[str, set[Pair]] = defaultdict(set)
    brokers: set[int] = set()
    for move in moves:
        work = move.work
        if not move.in_flight or not work.adding:
            continue
        row = work.row
        leader[row.topic].update((row.partition, broker) for broker in row.current)
        follower[row.topic].update((row.partition, broker) for broker in work.adding)
        brokers.update(row.current, work.adding)
    pairs = {topic: ThrottledPairs(frozenset(own), frozenset(follower[topic])) for topic, own in leader.items()}
    return StepThrottles(pairs, dict.fromkeys(sorted(brokers), rate))


def plan_throttle_changes(
    ours: StepThrottles, want: StepThrottles, moves: Iterable[RunRow], reachable: Collection[int]
) -> StepChanges:
    """From what is set to what is wanted; each topic's lists change at most once, and nothing that is right does."""
    lists = []
    for topic in sorted({*ours.pairs, *want.pairs}):
        has, needs = ours.pairs.get(topic, NONE), want.pairs.get(topic, NONE)
        if has != needs:
            add, remove = needs - has, has - needs
            rows = tuple((topic, partition) for partition in sorted(add.partitions | remove.partitions))
            lists.append(ChangeLists(topic, add, remove, rows))
    differ = {broker for broker, rate in want.rates.items() if ours.rates.get(broker) != rate}
    users = _group_rows_by_broker(moves, differ)
    rates = [SetRate(b, want.rates[b], tuple(users[b])) for b in sorted(differ) if b in reachable]
    clears = [ClearRate(broker) for broker in sorted(ours.rates) if broker not in want.rates]
    return StepChanges(
        tuple(lists), tuple(rates), tuple(clears), tuple(sorted(b for b in differ if b not in reachable))
    )


def _group_rows_by_broker(moves: Iterable[RunRow], brokers: Collection[int]) -> Mapping[int, list[Key]]:
    users: defaultdict[int, list[Key]] = defaultdict(list)
    if not brokers:
        return users
    for move in moves:
        if move.in_flight and move.work.adding:
            for broker in (*move.work.row.current, *move.work.adding):
                if broker in brokers:
                    users[broker].append(move.key)
    return users


Action = ChangeLists | SetRate | BrokerSlot | SubmitAction | CancelAction | ReorderAction | ClearRate | ElectAction


@dataclass(frozen=True, slots=True)
class StepPlan:
    """``transitions`` are rows that changed, at most one each; ``actions`` stand in the order in which they are taken.

    ``held``: why nothing is submitted to any row. ``brake``: what min-ISR holds up; its caller proposes
    to cancel. ``unreachable``: brokers that cannot be given the throttle now. ``over``: every row has
    ended and will stay so, no leader is left to be elected, and nothing of the throttle is left to be cleared.
    """

    transitions: tuple[StateTransition, ...]
    actions: tuple[Action, ...]
    held: tuple[CodedReason, ...] = ()
    brake: MinIsrGuard = field(default_factory=MinIsrGuard)
    unreachable: tuple[int, ...] = ()
    over: bool = False


def plan_step(
    moves: Sequence[RunRow],
    seen: ClusterObservation,
    options: RunOptions,
    now: datetime,
    mode: RunMode = RunMode.EXECUTING,
    throttles: StepThrottles | None = None,
) -> StepPlan:
    """Return the plan of this step. ``moves`` are all rows of the run; ``throttles``: those set by us, none by default.

    ``options.throttle`` is the rate in force now, bytes per second. Linear in the rows but for sorting those that fit.
    """
    return _StepRun(moves, seen, options, now, mode, throttles or StepThrottles()).taken()


def apply_reply(move: RunRow, reply: CallReply, now: datetime, answer: str = "") -> RunRow:
    """The row after Kafka's answer to its last ``SubmitAction``, or to a refused ``BrokerSlot`` before it;
    ``answer``: Kafka's own words where it did not accept it.

    Accepted is not done, and lost is not refused: the next look tells.
    """
    if move.state is not RowState.SUBMITTING:
        return move
    if reply is CallReply.LOST:
        return move.to(
            RowState.UNKNOWN, now, AnswerUnclear(answer) if answer else PlainReason(RowReasonCode.ANSWER_LOST)
        )
    answered = replace(move, unanswered=move.unanswered - 1)
    if reply is CallReply.ACCEPTED:
        return answered.to(RowState.MOVING, now)
    return answered.to(RowState.FAILED, now, RefusedByKafka(answer))


def undo_unsent(transition: StateTransition, now: datetime, why: CodedReason) -> RunRow:
    """The row of which a request was stored that certainly never left, with the reason: as if it had not been stored.

    It takes its turn in the next step, and counts no attempt.
    """
    before = transition.before
    return before.to(RowState.WAITING, now, why) if before.state in BEFORE else before


def cancel_row(move: RunRow, now: datetime, reason: CodedReason) -> RunRow:
    """Return the row as an operator cancels it, in a run that goes on; an ended row stays as it ended."""
    if move.state in BEFORE:
        return move.to(RowState.CANCELLED, now, reason)
    return move if move.ended or move.state is RowState.CANCELLING else move.to(RowState.CANCELLING, now, reason)


def apply_answer(move: RunRow, now: datetime, *, again: bool, reason: CodedReason | None = None) -> RunRow:
    """A row that asked, with the operator's answer: it takes its turn as if for the first time, or is given up."""
    if not move.asks:
        return move
    if again:
        return replace(move.to(RowState.PENDING, now), attempt=0, first_at=None, asks=False)
    return replace(move.to(RowState.CANCELLED, now, reason or PlainReason(RowReasonCode.GIVEN_UP)), asks=False)


class _StepRun:
    def __init__(
        self,
        moves: Sequence[RunRow],
        seen: ClusterObservation,
        options: RunOptions,
        now: datetime,
        mode: RunMode,
        throttles: StepThrottles,
    ) -> None:
        self._before, self._after = moves, list(moves)
        self._seen, self._options, self._now, self._mode, self._throttles = seen, options, now, mode, throttles
        self._health = RunHealth(seen)
        self._plain = FastPathFilter(seen, options, self._health)
        self._brake = evaluate_brake(seen)
        self._held = () if mode is RunMode.CANCELLING else (*collect_hold_reasons(seen, mode, now), *throttles.held)
        self._submits: list[SubmitAction] = []
        self._follow: list[CancelAction | ReorderAction] = []

    def taken(self) -> StepPlan:
        candidates = self._look()
        if not self._held and self._mode is RunMode.EXECUTING:
            self._submit(candidates)
        throttle = plan_throttle_changes(
            self._throttles,
            compute_wanted_throttles(self._after, self._options.throttle),
            self._after,
            {id_ for id_, broker in self._seen.brokers.items() if broker.alive},
        )
        elections, electing = self._elections()
        actions: tuple[Action, ...] = (
            *throttle.lists,
            *throttle.rates,
            *self._places(),
            *self._submits,
            *sorted(self._follow, key=lambda action: isinstance(action, ReorderAction)),
            *throttle.clears,
            *elections,
        )
        pairs = zip(self._before, self._after, strict=True)
        return StepPlan(
            tuple(StateTransition(before, after) for before, after in pairs if before is not after),
            actions,
            self._held,
            self._brake,
            throttle.unreachable,
            over=not actions and not electing and all(move.over(self._now) for move in self._after),
        )

    def _look(self) -> list[RunRow]:
        """Every row as the cluster shows it. Returns those that may be submitted if there is a slot."""
        candidates = []
        executing = self._mode is not RunMode.CANCELLING
        for place, move in enumerate(self._before):
            if move.state in BEFORE:
                if executing and self._plain(move):
                    candidates.append(move)
                    continue
                after = self._not_begun(move)
                if after.state is RowState.PENDING and after.hint is None and observation_covers(after, self._seen):
                    candidates.append(after)
                self._after[place] = after
                continue
            looked = (reconcile_move if move.in_flight else look_again)(move, self._seen, self._mode, self._now)
            if looked.action is not None:
                self._follow.append(looked.action)
            self._after[place] = self._untraced(looked) if looked.untraced else looked.move
        return candidates

    def _not_begun(self, move: RunRow) -> RunRow:
        if self._mode is RunMode.CANCELLING:
            return move.to(RowState.CANCELLED, self._now, PlainReason(RowReasonCode.CANCELLED_BEFORE))
        if move.submitted_at is not None and self._arrived(move):
            return reconcile_move(move, self._seen, self._mode, self._now).move
        after = check_content(move, self._seen, self._options, self._now)
        if after.state not in BEFORE or after.hint is not None or not self._seen.partitions.get(move.key):
            return after
        wrong = self._health.wrong(after.work)
        return after.to(RowState.WAITING if wrong else RowState.PENDING, self._now, wrong)

    def _arrived(self, move: RunRow) -> bool:
        """Return whether an earlier request took effect after all, for a row that takes its turn again."""
        partition = self._seen.partitions.get(move.key)
        if partition is None:
            return False
        if partition.listed is not None:
            return move.may_be_ours(self._now) and is_our_reassignment(move, partition.listed)
        return partition.replicas == move.work.row.target

    def _untraced(self, looked: MoveUpdate) -> RunRow:
        """Submit a row again whose sent or stored request left no trace, if it could be submitted as a new one."""
        move = looked.move
        asks = ask_operator(move, self._now)
        if asks is not None:
            return asks
        wrong = self._health.wrong(move.work)
        if self._held or wrong or self._braked(move):
            return move.to(RowState.UNKNOWN, self._now, wrong) if wrong else move
        intent, submit = prepare_submit(move, self._now)
        self._submits.append(submit)
        return intent

    def _braked(self, move: RunRow) -> bool:
        """While a partition is under min-ISR, only what repairs such a one is submitted."""
        if not self._brake.under:
            return False
        partition = self._seen.partitions[move.key]
        return not (is_under_min_isr(partition) and repairs(move.work, partition))

    def _submit(self, candidates: Sequence[RunRow]) -> None:
        window = AdmissionWindow(self._seen, self._options, self._brake.halved)
        for move in self._after:
            if move.holds_slot(self._now):
                window.take(move.work)
        free = [move for move in candidates if not self._braked(move)] if self._brake.under else candidates
        taken = choose_moves(free, self._after, window, self._seen)[:MOST_SUBMITTED]
        place = {move.key: number for number, move in enumerate(self._before)} if taken else {}
        for move in taken:
            self._after[place[move.key]], submit = prepare_submit(move, self._now)
            self._submits.append(submit)

    def _places(self) -> list[BrokerSlot]:
        """Return the directories for new replicas of the rows submitted now, where the plan names them."""
        keys = {submit.key for submit in self._submits}
        rows = [move.work.row for move in self._after if move.key in keys and move.work.row.log_dirs]
        return [BrokerSlot((row.topic, row.partition), row.directories) for row in rows if row.directories]

    def _elections(self) -> tuple[list[ElectAction], bool]:
        """Preferred leaders of the rows that are done, once all have ended; and whether some are under way.

        What is held up is waited for; not where that may have no end, and then the rows say why.
        """
        if not self._options.elect_leaders or self._mode is not RunMode.EXECUTING:
            return [], False
        if any(move.state not in ENDED for move in self._after):
            return [], False
        elections, pending, waited = [], False, self._held != () and self._waited()
        for place, move in enumerate(self._after):
            if not self._to_elect(move):
                continue
            if self._held and (not self._seen.window_open or waited):
                gave_up = replace(move, elections=MOST_ATTEMPTS)
                self._after[place] = gave_up.to(RowState.DONE, self._now, NotElected(self._held[0]))
                continue
            pending = True
            if self._held:
                continue
            if move.elections == 0 or move.acted_at is None or self._now - move.acted_at >= RETRY:
                self._after[place] = replace(move, elections=move.elections + 1, acted_at=self._now)
                elections.append(ElectAction(move.key))
        return elections, pending

    def _waited(self) -> bool:
        """Return whether no row ended within the last ``ASK_AFTER``."""
        ended = [move.since for move in self._after if move.since is not None]
        return not ended or self._now - max(ended) >= ASK_AFTER

    def _to_elect(self, move: RunRow) -> bool:
        row = move.work.row
        if move.state is not RowState.DONE or row.current[0] == row.target[0] or move.elections >= MOST_ATTEMPTS:
            return False
        partition = self._seen.partitions.get(move.key)
        if partition is None or partition.replicas != row.target or partition.leader == row.target[0]:
            return False
        return row.target[0] in partition.isr
