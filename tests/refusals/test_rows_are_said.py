"""Why a row waits, was left out or ended otherwise, as the pure step decides it from one look."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

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
from kafkadash.domain.refusals import rows, turns
from tests.domain.executor_cluster import START
from tests.domain.one_row import AT_REST, IN_FLIGHT, OPTIONS, ROW, after, moving, seen
from tests.refusals.driving import Case, case, each

LATER = 30.0
"""Seconds after which a broker's metadata are not late any more."""


def ended(partition: PartitionSeen, move: Move | None = None, mode: Mode = Mode.EXECUTING) -> str:
    """The reason of a row after three looks that say the same."""
    looks = [seen(partition, seconds=LATER + 2 * number) for number in range(3)]
    return after(move or moving(), *looks, mode=mode).reason


def waits(partition: PartitionSeen = AT_REST, **brokers: BrokerSeen | None) -> str:
    """The reason of a row that is pending, with these brokers (b5=…) otherwise than well; None: not there."""
    known: dict[int, BrokerSeen] = {number: BrokerSeen() for number in range(1, 7)}
    for name, broker in brokers.items():
        known.pop(int(name[1:]))
        if broker is not None:
            known[int(name[1:])] = broker
    return after(Move(Work(ROW, 10)), seen(partition, brokers=known)).reason


def held(mode: Mode = Mode.EXECUTING, late: float = 0.0, **other: object) -> str:
    taken = step([Move(Work(ROW, 10))], seen(**other), OPTIONS, START + timedelta(seconds=late), mode)  # type: ignore[arg-type]
    return " ".join(taken.held)


def gone(**topics: TopicSeen) -> str:
    looks = [replace(seen(None, seconds=LATER + 2 * n), topics=topics) for n in range(3)]
    return after(moving(), *looks).reason


def asks() -> str:
    long_ago = START - timedelta(minutes=20)
    move = moving(state=State.UNKNOWN, attempt=3, unanswered=3, first_at=long_ago, submitted_at=long_ago)
    return after(replace(move, acted_at=long_ago), seen()).reason


def reordered_by_others() -> str:
    row = replace(ROW, target=(1, 3, 2))
    return ended(PartitionSeen((2, 1, 3), frozenset({1, 2, 3}), 2), moving(row))


def order_not_restored() -> str:
    partition = PartitionSeen((2, 3, 1), frozenset({1, 2, 3}), 2)
    return ended(partition, moving(state=State.CANCELLING, reorders=3), Mode.CANCELLING)


def late(mode: Mode, state: State = State.SUPERSEDED) -> str:
    return after(moving(state=state, unanswered=1), seen(IN_FLIGHT, seconds=2), mode=mode).reason


def brake() -> str:
    pressed = Pressed("other", 3, (1, 2, 3), frozenset({1}), 2)
    taken = step([Move(Work(ROW, 10))], replace(seen(), pressed=(pressed,)), OPTIONS, START)
    return f"{taken.brake.words} {rows.BRAKE.then}"


def untold() -> str:
    """Cancelled, and nobody describes its topic for ten minutes."""
    nothing = {"topics": {}, "unread": frozenset({"t"})}
    looks = [replace(seen(None, seconds=seconds), **nothing) for seconds in (0, 601)]  # type: ignore[arg-type]
    return after(moving(), *looks, mode=Mode.CANCELLING).reason


def not_elected() -> str:
    done = Move(Work(ROW, 10), State.DONE, since=START - timedelta(hours=1))
    look = replace(seen(PartitionSeen((2, 5, 3), frozenset({2, 3, 5}), 3)), window_open=False)
    return step([done], look, OPTIONS, START).transitions[0].after.reason


FOREIGN = Listed((4, 6, 3, 1), frozenset({4, 6}), frozenset({1}))
ZOMBIE = Listed((3, 1, 2, 5), frozenset({5}), frozenset({5}))


@each(
    case(rows.REASSIGNED_BY_OTHERS, lambda: waits(replace(AT_REST, listed=FOREIGN))),
    case(
        rows.NOT_AS_PLANNED,
        lambda: ended(replace(AT_REST, replicas=(1, 3, 2)), Move(Work(ROW, 10))),
        expected="3, 1, 2",
    ),
    case(
        rows.THERE_ALREADY, lambda: ended(replace(AT_REST, replicas=(2, 5, 3)), Move(Work(ROW, 10))), replicas="2, 5, 3"
    ),
    case(
        rows.FACTOR_NOT_APPROVED,
        lambda: ended(AT_REST, Move(Work(replace(ROW, target=(2, 5)), 10))),
        has="3 replicas",
        target=2,
    ),
    case(rows.TOPIC_DELETED, gone, topic="t"),
    case(rows.TOPIC_CREATED_AGAIN, lambda: gone(t=replace(seen().topics["t"], id="another")), topic="t"),
    case(rows.MOVED_BY_OTHERS, lambda: ended(replace(IN_FLIGHT, listed=FOREIGN))),
    case(
        rows.OLD_REPLICAS_SUBMITTED,
        lambda: ended(PartitionSeen((3, 1, 2, 5), frozenset({1, 2, 3}), 3, 2, listed=ZOMBIE)),
    ),
    case(
        rows.CHANGED_BY_OTHERS,
        lambda: ended(PartitionSeen((3, 1, 6), frozenset({1, 3, 6}), 3)),
        replicas="3, 1, 6",
        target="2, 5, 3",
    ),
    case(rows.CANCELLED_BY_OTHERS, lambda: ended(AT_REST)),
    case(rows.ORDERED_BY_OTHERS, reordered_by_others),
    case(rows.ORDER_NOT_RESTORED, order_not_restored, replicas="2, 3, 1"),
    case(rows.NO_TRACE, asks, times="3 times"),
    case(rows.ANSWER_LOST, lambda: replied(moving(state=State.SUBMITTING), Reply.LOST, START).reason),
    case(rows.ARRIVED_LATE, lambda: late(Mode.EXECUTING)),
    case(rows.ARRIVED_LATE_CANCELLED, lambda: late(Mode.CANCELLING)),
    case(rows.UNTOLD, untold, topic="t"),
    case(rows.GIVEN_UP, lambda: answered(replace(moving(), asks=True), START, again=False).reason),
    case(rows.CANCELLED_BEFORE, lambda: ended(AT_REST, Move(Work(ROW, 10)), Mode.CANCELLING)),
    case(rows.NOT_ELECTED, not_elected),
    case(rows.BROKER_AWAY, lambda: waits(b2=BrokerSeen(alive=False)), broker=2),
    case(rows.BROKER_FENCED, lambda: waits(b5=BrokerSeen(fenced=True)), broker=5),
    case(rows.BROKER_NOT_REGISTERED, lambda: waits(b5=None), broker=5),
    case(rows.BROKER_CORDONED, lambda: waits(b5=BrokerSeen(cordoned=True)), broker=5),
    case(
        rows.RATE_IN_USE,
        lambda: waits(b5=BrokerSeen(others_rate="60000000")),
        broker=5,
        rate="60,000,000 bytes/s",
    ),
    case(rows.NO_LEADER, lambda: waits(replace(AT_REST, leader=None))),
    case(rows.UNDER_MIN_ISR, lambda: waits(replace(AT_REST, isr=frozenset({3}), min_isr=2)), brokers="1, 2"),
    case(rows.BRAKE, brake, partitions="other-3 is"),
    case(rows.PAUSED, lambda: held(Mode.PAUSED)),
    case(rows.WINDOW_CLOSED, lambda: held(window_open=False)),
    case(rows.LOOK_TOO_OLD, lambda: held(late=60), age="1 min"),
    case(turns.QUORUM_SILENT, lambda: held(quorum=False)),
    case(turns.LISTING_UNREAD, lambda: held(listing=False)),
)
def test_by_a_step_without_its_surroundings(one: Case) -> None:
    one.check()
