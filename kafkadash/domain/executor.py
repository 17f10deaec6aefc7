"""One step of an execution (04-changes.md §3): from the rows, and what was read of the cluster, to what is done now.

``step`` is pure. Its caller reads listing and metadata, calls it, stores the transitions and with them the intents,
takes the actions in their order, and stores the replies through ``replied``. Whoever dies in between leaves an intent,
and the next step decides from the cluster. An action whose predecessors failed is not taken: a row whose throttle could
not be set is not submitted, and its intent is resolved like any other that left no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kafkadash.domain.executor_look import Looked, asking, look, look_again, ours, submitted, tells
from kafkadash.domain.executor_state import (
    ASK_AFTER,
    BEFORE,
    ENDED,
    MOST_ATTEMPTS,
    MOST_SUBMITTED,
    RETRY,
    Cancel,
    Elect,
    Mode,
    Move,
    Observation,
    Place,
    Reorder,
    Reply,
    State,
    Submit,
    Transition,
)
from kafkadash.domain.executor_throttles import ChangeLists, ClearRate, SetRate, Throttles, changes, wanted
from kafkadash.domain.executor_window import Brake, Health, Plain, Window, brake, chosen, content, held, repairs, under
from kafkadash.domain.plan import Options
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.row_reasons import (
    AnswerLost,
    AnswerUnclear,
    CancelledBefore,
    GivenUp,
    NotElected,
    RefusedByKafka,
)

Action = ChangeLists | SetRate | Place | Submit | Cancel | Reorder | ClearRate | Elect


@dataclass(frozen=True, slots=True)
class Step:
    """``transitions`` are rows that changed, at most one each; ``actions`` stand in the order in which they are taken.

    ``held``: why nothing is submitted to any row. ``brake``: what min-ISR holds up; its caller proposes
    to cancel. ``unreachable``: brokers that cannot be given the throttle now. ``over``: every row has
    ended and will stay so, no leader is left to be elected, and nothing of the throttle is left to be cleared.
    """

    transitions: tuple[Transition, ...]
    actions: tuple[Action, ...]
    held: tuple[CodedReason, ...] = ()
    brake: Brake = field(default_factory=Brake)
    unreachable: tuple[int, ...] = ()
    over: bool = False


def step(
    moves: Sequence[Move],
    seen: Observation,
    options: Options,
    now: datetime,
    mode: Mode = Mode.EXECUTING,
    throttles: Throttles | None = None,
) -> Step:
    """What happens now. ``moves`` are all rows of the run; ``throttles`` is what is set by us, none if not given.

    ``options.throttle`` is the rate in force now, bytes per second. Linear in the rows but for sorting those that fit.
    """
    return _Step(moves, seen, options, now, mode, throttles or Throttles()).taken()


def replied(move: Move, reply: Reply, now: datetime, answer: str = "") -> Move:
    """The row after Kafka's answer to its last ``Submit``, or to the ``Place`` before it, where that was not accepted;
    ``answer``: Kafka's own words where it did not accept it.

    Accepted is not done, and lost is not refused: the next look tells.
    """
    if move.state is not State.SUBMITTING:
        return move
    if reply is Reply.LOST:
        return move.to(State.UNKNOWN, now, AnswerUnclear(answer) if answer else AnswerLost())
    answered = replace(move, unanswered=move.unanswered - 1)
    if reply is Reply.ACCEPTED:
        return answered.to(State.MOVING, now)
    return answered.to(State.FAILED, now, RefusedByKafka(answer))


def unsent(transition: Transition, now: datetime, why: CodedReason) -> Move:
    """The row of which a request was stored that certainly never left, with the reason: as if it had not been stored.

    It takes its turn in the next step, and counts no attempt.
    """
    before = transition.before
    return before.to(State.WAITING, now, why) if before.state in BEFORE else before


def cancelled(move: Move, now: datetime, reason: CodedReason) -> Move:
    """One row as an operator cancels it, in a run that goes on; what has ended stays as it ended."""
    if move.state in BEFORE:
        return move.to(State.CANCELLED, now, reason)
    return move if move.ended or move.state is State.CANCELLING else move.to(State.CANCELLING, now, reason)


def answered(move: Move, now: datetime, *, again: bool, reason: CodedReason | None = None) -> Move:
    """A row that asked, with the operator's answer: it takes its turn as if for the first time, or is given up."""
    if not move.asks:
        return move
    if again:
        return replace(move.to(State.PENDING, now), attempt=0, first_at=None, asks=False)
    return replace(move.to(State.CANCELLED, now, reason or GivenUp()), asks=False)


class _Step:
    def __init__(
        self,
        moves: Sequence[Move],
        seen: Observation,
        options: Options,
        now: datetime,
        mode: Mode,
        throttles: Throttles,
    ) -> None:
        self._before, self._after = moves, list(moves)
        self._seen, self._options, self._now, self._mode, self._throttles = seen, options, now, mode, throttles
        self._health = Health(seen)
        self._plain = Plain(seen, options, self._health)
        self._brake = brake(seen)
        self._held = () if mode is Mode.CANCELLING else (*held(seen, mode, now), *throttles.held)
        self._submits: list[Submit] = []
        self._follow: list[Cancel | Reorder] = []

    def taken(self) -> Step:
        candidates = self._look()
        if not self._held and self._mode is Mode.EXECUTING:
            self._submit(candidates)
        throttle = changes(
            self._throttles,
            wanted(self._after, self._options.throttle),
            self._after,
            {id_ for id_, broker in self._seen.brokers.items() if broker.alive},
        )
        elections, electing = self._elections()
        actions: tuple[Action, ...] = (
            *throttle.lists,
            *throttle.rates,
            *self._places(),
            *self._submits,
            *sorted(self._follow, key=lambda action: isinstance(action, Reorder)),
            *throttle.clears,
            *elections,
        )
        pairs = zip(self._before, self._after, strict=True)
        return Step(
            tuple(Transition(before, after) for before, after in pairs if before is not after),
            actions,
            self._held,
            self._brake,
            throttle.unreachable,
            over=not actions and not electing and all(move.over(self._now) for move in self._after),
        )

    def _look(self) -> list[Move]:
        """Every row as the cluster shows it. Returns those that may be submitted if there is a slot."""
        candidates = []
        executing = self._mode is not Mode.CANCELLING
        for place, move in enumerate(self._before):
            if move.state in BEFORE:
                if executing and self._plain(move):
                    candidates.append(move)
                    continue
                after = self._not_begun(move)
                if after.state is State.PENDING and after.hint is None and tells(after, self._seen):
                    candidates.append(after)
                self._after[place] = after
                continue
            looked = (look if move.in_flight else look_again)(move, self._seen, self._mode, self._now)
            if looked.action is not None:
                self._follow.append(looked.action)
            self._after[place] = self._untraced(looked) if looked.untraced else looked.move
        return candidates

    def _not_begun(self, move: Move) -> Move:
        if self._mode is Mode.CANCELLING:
            return move.to(State.CANCELLED, self._now, CancelledBefore())
        if move.submitted_at is not None and self._arrived(move):
            return look(move, self._seen, self._mode, self._now).move
        after = content(move, self._seen, self._options, self._now)
        if after.state not in BEFORE or after.hint is not None or not self._seen.partitions.get(move.key):
            return after
        wrong = self._health.wrong(after.work)
        return after.to(State.WAITING if wrong else State.PENDING, self._now, wrong)

    def _arrived(self, move: Move) -> bool:
        """Of a row that takes its turn once more: whether an earlier request of ours was at work after all."""
        partition = self._seen.partitions.get(move.key)
        if partition is None:
            return False
        if partition.listed is not None:
            return move.may_be_ours(self._now) and ours(move, partition.listed)
        return partition.replicas == move.work.row.target

    def _untraced(self, looked: Looked) -> Move:
        """What was sent, or only stored, left no trace: once more, if the row could be submitted as a new one."""
        move = looked.move
        asks = asking(move, self._now)
        if asks is not None:
            return asks
        wrong = self._health.wrong(move.work)
        if self._held or wrong or self._braked(move):
            return move.to(State.UNKNOWN, self._now, wrong) if wrong else move
        intent, submit = submitted(move, self._now)
        self._submits.append(submit)
        return intent

    def _braked(self, move: Move) -> bool:
        """While a partition is under min-ISR, only what repairs such a one is submitted."""
        if not self._brake.under:
            return False
        partition = self._seen.partitions[move.key]
        return not (under(partition) and repairs(move.work, partition))

    def _submit(self, candidates: Sequence[Move]) -> None:
        window = Window(self._seen, self._options, self._brake.halved)
        for move in self._after:
            if move.holds_slot(self._now):
                window.take(move.work)
        free = [move for move in candidates if not self._braked(move)] if self._brake.under else candidates
        taken = chosen(free, self._after, window, self._seen)[:MOST_SUBMITTED]
        place = {move.key: number for number, move in enumerate(self._before)} if taken else {}
        for move in taken:
            self._after[place[move.key]], submit = submitted(move, self._now)
            self._submits.append(submit)

    def _places(self) -> list[Place]:
        """Where the new replicas of the rows submitted now shall lie, where the plan says."""
        keys = {submit.key for submit in self._submits}
        rows = [move.work.row for move in self._after if move.key in keys and move.work.row.log_dirs]
        return [Place((row.topic, row.partition), row.directories) for row in rows if row.directories]

    def _elections(self) -> tuple[list[Elect], bool]:
        """Preferred leaders of the rows that are done, once all have ended; and whether some are under way.

        What is held up is waited for; not where that may have no end, and then the rows say why.
        """
        if not self._options.elect_leaders or self._mode is not Mode.EXECUTING:
            return [], False
        if any(move.state not in ENDED for move in self._after):
            return [], False
        elections, pending, waited = [], False, self._held != () and self._waited()
        for place, move in enumerate(self._after):
            if not self._to_elect(move):
                continue
            if self._held and (not self._seen.window_open or waited):
                gave_up = replace(move, elections=MOST_ATTEMPTS)
                self._after[place] = gave_up.to(State.DONE, self._now, NotElected(self._held[0]))
                continue
            pending = True
            if self._held:
                continue
            if move.elections == 0 or move.acted_at is None or self._now - move.acted_at >= RETRY:
                self._after[place] = replace(move, elections=move.elections + 1, acted_at=self._now)
                elections.append(Elect(move.key))
        return elections, pending

    def _waited(self) -> bool:
        """Whether the last row ended long ago."""
        ended = [move.since for move in self._after if move.since is not None]
        return not ended or self._now - max(ended) >= ASK_AFTER

    def _to_elect(self, move: Move) -> bool:
        row = move.work.row
        if move.state is not State.DONE or row.current[0] == row.target[0] or move.elections >= MOST_ATTEMPTS:
            return False
        partition = self._seen.partitions.get(move.key)
        if partition is None or partition.replicas != row.target or partition.leader == row.target[0]:
            return False
        return row.target[0] in partition.isr
