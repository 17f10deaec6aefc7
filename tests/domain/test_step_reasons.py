"""Why a row waits, was left out or ended otherwise, as the pure step decides it from one look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from kafkadash.domain.executor import answered, replied, step
from kafkadash.domain.executor_state import (
    BrokerSeen,
    Listed,
    Mode,
    Move,
    PartitionSeen,
    Pressed,
    Reply,
    State,
    TopicSeen,
    Work,
)
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.row_reasons import (
    AnswerLost,
    AnswerUnclear,
    ArrivedLate,
    ArrivedLateCancelled,
    BrokerAway,
    BrokerCordoned,
    BrokerFenced,
    BrokerNotRegistered,
    CancelledBefore,
    CancelledByOthers,
    ChangedByOthers,
    EndUntold,
    FactorNotApproved,
    GivenUp,
    MovedByOthers,
    NoLeader,
    NotAsPlanned,
    NotElected,
    NoTraceOfIt,
    OldReplicasSubmitted,
    OrderedByOthers,
    OrderNotRestored,
    RateInUse,
    ReassignedByOthers,
    RefusedByKafka,
    ThereAlready,
    TopicCreatedAgain,
    TopicDeleted,
    UnderMinIsr,
)
from kafkadash.domain.run_reasons import (
    ListingUnread,
    LookTooOld,
    QuorumSilent,
    RunPaused,
    RunWindowClosed,
    UnderMinIsrBrake,
)
from tests.domain.executor_cluster import START
from tests.domain.one_row import AT_REST, IN_FLIGHT, OPTIONS, ROW, after, moving, seen

LATER = 30.0
"""Seconds after which a broker's metadata are not late any more."""


def ended(partition: PartitionSeen, move: Move | None = None, mode: Mode = Mode.EXECUTING) -> CodedReason | None:
    """The reason of a row after three looks that say the same."""
    looks = [seen(partition, seconds=LATER + 2 * number) for number in range(3)]
    return after(move or moving(), *looks, mode=mode).reason


def waits(partition: PartitionSeen = AT_REST, **brokers: BrokerSeen | None) -> CodedReason | None:
    """The reason of a row that is pending, with these brokers (b5=…) otherwise than well; None: not there."""
    known: dict[int, BrokerSeen] = {number: BrokerSeen() for number in range(1, 7)}
    for name, broker in brokers.items():
        known.pop(int(name[1:]))
        if broker is not None:
            known[int(name[1:])] = broker
    return after(Move(Work(ROW, 10)), seen(partition, brokers=known)).reason


def held(mode: Mode = Mode.EXECUTING, late: float = 0.0, **other: object) -> CodedReason:
    taken = step([Move(Work(ROW, 10))], seen(**other), OPTIONS, START + timedelta(seconds=late), mode)  # type: ignore[arg-type]
    return taken.held[0]


def gone(**topics: TopicSeen) -> CodedReason | None:
    looks = [replace(seen(None, seconds=LATER + 2 * n), topics=topics) for n in range(3)]
    return after(moving(), *looks).reason


def asks() -> CodedReason | None:
    long_ago = START - timedelta(minutes=20)
    move = moving(state=State.UNKNOWN, attempt=3, unanswered=3, first_at=long_ago, submitted_at=long_ago)
    return after(replace(move, acted_at=long_ago), seen()).reason


def reordered_by_others() -> CodedReason | None:
    row = replace(ROW, target=(1, 3, 2))
    return ended(PartitionSeen((2, 1, 3), frozenset({1, 2, 3}), 2), moving(row))


def order_not_restored() -> CodedReason | None:
    partition = PartitionSeen((2, 3, 1), frozenset({1, 2, 3}), 2)
    return ended(partition, moving(state=State.CANCELLING, reorders=3), Mode.CANCELLING)


def late(mode: Mode, state: State = State.SUPERSEDED) -> CodedReason | None:
    return after(moving(state=state, unanswered=1), seen(IN_FLIGHT, seconds=2), mode=mode).reason


def brake() -> CodedReason | None:
    pressed = Pressed("other", 3, (1, 2, 3), frozenset({1}), 2)
    taken = step([Move(Work(ROW, 10))], replace(seen(), pressed=(pressed,)), OPTIONS, START)
    return taken.brake.reason


def untold() -> CodedReason | None:
    """Cancelled, and nobody describes its topic for ten minutes."""
    nothing = {"topics": {}, "unread": frozenset({"t"})}
    looks = [replace(seen(None, seconds=seconds), **nothing) for seconds in (0, 601)]  # type: ignore[arg-type]
    return after(moving(), *looks, mode=Mode.CANCELLING).reason


def not_elected() -> CodedReason | None:
    done = Move(Work(ROW, 10), State.DONE, since=START - timedelta(hours=1))
    look = replace(seen(PartitionSeen((2, 5, 3), frozenset({2, 3, 5}), 3)), window_open=False)
    return step([done], look, OPTIONS, START).transitions[0].after.reason


FOREIGN = Listed((4, 6, 3, 1), frozenset({4, 6}), frozenset({1}))
ZOMBIE = Listed((3, 1, 2, 5), frozenset({5}), frozenset({5}))


REASONS: Sequence[tuple[Callable[[], CodedReason | None], CodedReason]] = (
    (lambda: waits(replace(AT_REST, listed=FOREIGN)), ReassignedByOthers((4, 6, 3))),
    (lambda: ended(replace(AT_REST, replicas=(1, 3, 2)), Move(Work(ROW, 10))), NotAsPlanned((1, 3, 2), (3, 1, 2))),
    (lambda: ended(replace(AT_REST, replicas=(2, 5, 3)), Move(Work(ROW, 10))), ThereAlready((2, 5, 3), (3, 1, 2))),
    (lambda: ended(AT_REST, Move(Work(replace(ROW, target=(2, 5)), 10))), FactorNotApproved(3, 2)),
    (gone, TopicDeleted("t")),
    (lambda: gone(t=replace(seen().topics["t"], id="another")), TopicCreatedAgain("t")),
    (lambda: ended(replace(IN_FLIGHT, listed=FOREIGN)), MovedByOthers((4, 6, 3))),
    (lambda: ended(PartitionSeen((3, 1, 2, 5), frozenset({1, 2, 3}), 3, 2, listed=ZOMBIE)), OldReplicasSubmitted()),
    (lambda: ended(PartitionSeen((3, 1, 6), frozenset({1, 3, 6}), 3)), ChangedByOthers((3, 1, 6), (2, 5, 3))),
    (lambda: ended(AT_REST), CancelledByOthers()),
    (reordered_by_others, OrderedByOthers()),
    (order_not_restored, OrderNotRestored((2, 3, 1))),
    (asks, NoTraceOfIt(3)),
    (lambda: replied(moving(state=State.SUBMITTING), Reply.LOST, START).reason, AnswerLost()),
    (
        lambda: replied(moving(state=State.SUBMITTING), Reply.LOST, START, "Timed out.").reason,
        AnswerUnclear("Timed out."),
    ),
    (lambda: replied(moving(state=State.SUBMITTING), Reply.REFUSED, START, "No.").reason, RefusedByKafka("No.")),
    (lambda: late(Mode.EXECUTING), ArrivedLate()),
    (lambda: late(Mode.CANCELLING), ArrivedLateCancelled()),
    (untold, EndUntold("t")),
    (lambda: answered(replace(moving(), asks=True), START, again=False).reason, GivenUp()),
    (lambda: ended(AT_REST, Move(Work(ROW, 10)), Mode.CANCELLING), CancelledBefore()),
    (not_elected, NotElected(RunWindowClosed())),
    (lambda: waits(b2=BrokerSeen(alive=False)), BrokerAway(2)),
    (lambda: waits(b5=BrokerSeen(fenced=True)), BrokerFenced(5)),
    (lambda: waits(b5=None), BrokerNotRegistered(5)),
    (lambda: waits(b5=BrokerSeen(cordoned=True)), BrokerCordoned(5)),
    (lambda: waits(b5=BrokerSeen(others_rate="60000000")), RateInUse(5, "60000000")),
    (lambda: waits(replace(AT_REST, leader=None)), NoLeader()),
    (lambda: waits(replace(AT_REST, isr=frozenset({3}), min_isr=2)), UnderMinIsr((1, 2))),
    (brake, UnderMinIsrBrake("other-3", 1)),
    (lambda: held(Mode.PAUSED), RunPaused()),
    (lambda: held(window_open=False), RunWindowClosed()),
    (lambda: held(late=60), LookTooOld(60.0)),
    (lambda: held(quorum=False), QuorumSilent()),
    (lambda: held(listing=False), ListingUnread()),
)


@pytest.mark.parametrize(("see", "reason"), REASONS, ids=[reason.stored_code for _, reason in REASONS])
def test_reason_of_a_step(see: Callable[[], CodedReason | None], reason: CodedReason) -> None:
    assert see() == reason
