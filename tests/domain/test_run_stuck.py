"""The mark that a row in flight gets, and the reason that comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkadash.domain.executor_state import BrokerSeen, Listed, Move, Observation, PartitionSeen, State, TopicSeen, Work
from kafkadash.domain.plan import Row
from kafkadash.domain.row_reasons import DisksFull, DisksNotRead
from kafkadash.domain.run_memory import CopyMemory, RowMemory
from kafkadash.domain.run_progress import Cause, Direction, Mark
from kafkadash.domain.run_stuck import Fix, ForeignThrottle, Surroundings, fixes, mark, stuck_reason
from kafkadash.domain.stuck_reasons import (
    BrokerAboveLimit,
    ClusterRefuses,
    CopyBelowInbound,
    DestinationAway,
    DestinationCordoned,
    DestinationDiskFull,
    DestinationDiskNotRead,
    DestinationFenced,
    DestinationUnregistered,
    KeptNotInSync,
    KeptReplicaAway,
    LimitNotOurs,
    ListOfOthers,
    NoCauseFound,
    NoSource,
    RateOfOthers,
    RowAboveLimit,
    SourceAtItsLimit,
    StuckReason,
)
from tests.domain.executor_cluster import START

MB = 1_000_000
NOW = 10_000.0
KEY = ("orders", 0)
MOVE = Move(Work(Row("orders", "id", 0, (1, 2, 3), (1, 2, 4)), 500 * MB), State.MOVING)
BEHIND = RowMemory(
    0.0, {4: CopyMemory(end=10)}, source=1, log_start=0, log_end=1000, record_bytes=1000.0, grew_at=NOW - 400
)
PARTITION = PartitionSeen(
    (1, 2, 4, 3), frozenset({1, 2, 3}), 1, 2, listed=Listed((1, 2, 4, 3), frozenset({4}), frozenset({3}))
)
BROKERS = {broker: BrokerSeen() for broker in (1, 2, 3, 4)}
AROUND = Surroundings(60 * MB)
OUT_1, INTO_4 = (1, Direction.OUT), (4, Direction.IN)


def seen(partition: PartitionSeen | None = PARTITION, **brokers: BrokerSeen) -> Observation:
    at_hand = BROKERS | {int(name[1:]): state for name, state in brokers.items()}
    partitions = {KEY: partition} if partition else {}
    return Observation(START, {"orders": TopicSeen("id", 12)}, partitions, at_hand)


def why(
    looked: Observation, row: RowMemory = BEHIND, around: Surroundings = AROUND, inbound: float | None = 0.2 * MB
) -> StuckReason:
    return stuck_reason(MOVE, row, looked, around, inbound, NOW)


@pytest.mark.parametrize(
    ("quiet", "rate", "expected"),
    [
        (89, 60.0 * MB, None),
        (90, 60.0 * MB, Mark.SLOW),
        (10, 99_000.0, Mark.SLOW),
        (10, 101_000.0, None),
        (10, None, None),
        (299, 0.0, Mark.SLOW),
        (300, 0.0, Mark.STUCK),
    ],
)
def test_mark__by_how_long_it_has_not_grown_and_how_fast_it_goes(
    quiet: float, rate: float | None, expected: Mark | None
) -> None:
    assert mark(replace(BEHIND, grew_at=NOW - quiet), rate, NOW) is expected


def test_mark__all_copied__is_never_slow_but_stuck_when_it_does_not_end() -> None:
    assert mark(replace(BEHIND, copied_at=NOW - 200), 0.0, NOW) is None
    assert mark(replace(BEHIND, copied_at=NOW - 300), 0.0, NOW) is Mark.STUCK


def test_mark__producers_have_been_faster_for_five_minutes__is_stuck_though_it_grows() -> None:
    assert mark(replace(BEHIND, grew_at=NOW, losing_since=NOW - 300), 5.0 * MB, NOW) is Mark.STUCK


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (BrokerSeen(alive=False), DestinationAway(4)),
        (BrokerSeen(fenced=True), DestinationFenced(4)),
        (None, DestinationUnregistered(4)),
    ],
)
def test_reason__destination_away__comes_before_all(state: BrokerSeen | None, reason: StuckReason) -> None:
    looked = seen(replace(PARTITION, leader=None))
    brokers = {b: s for b, s in looked.brokers.items() if b != 4} | ({4: state} if state else {})

    assert why(replace(looked, brokers=brokers)) == reason


@pytest.mark.parametrize(
    ("offline", "reason"), [(frozenset({2}), KeptReplicaAway((2,))), (frozenset(), KeptNotInSync((2,)))]
)
def test_reason__copied_and_in_sync_without_a_kept_replica__names_it(
    offline: frozenset[int], reason: StuckReason
) -> None:
    copied = replace(BEHIND, copies={4: CopyMemory(end=1000)}, copied_at=NOW - 400)
    partition = replace(PARTITION, isr=frozenset({1, 4}), offline=offline)

    assert why(seen(partition), copied) == reason


def test_reason__no_leader() -> None:
    assert why(seen(replace(PARTITION, leader=None))) == NoSource()


def test_reason__throttle_of_somebody_else_below_what_it_receives__has_both_figures_and_whose_it_is() -> None:
    foreign = ForeignThrottle("broker", "1", "leader.replication.throttled.rate", "10")
    around = Surroundings(60 * MB, {OUT_1: 10}, (foreign,))

    found = why(seen(), around=around)

    assert found == RowAboveLimit(1, "out", 10, "orders-0", 0.2 * MB, also=(LimitNotOurs(),))
    assert fixes(found.cause, foreign=True)[0] is Fix.SETTLE_THROTTLE
    assert fixes(found.cause)[0] is Fix.RAISE_THROTTLE


def test_reason__all_copies_to_one_broker_receive_more_than_its_throttle() -> None:
    found = why(seen(), around=Surroundings(2 * MB, inbound={INTO_4: 3.5 * MB}))

    assert found == BrokerAboveLimit(4, "in", 2 * MB, 3.5 * MB)


def test_reason__producers_are_faster_than_its_copy() -> None:
    assert why(seen(), replace(BEHIND, losing_since=NOW - 400)) == CopyBelowInbound("orders-0", 0.2 * MB)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (BrokerSeen(full=DisksFull(4, 10**9, 2 * 10**9)), DestinationDiskFull(4, 10**9, 2 * 10**9)),
        (BrokerSeen(full=DisksNotRead(4)), DestinationDiskNotRead(4)),
        (BrokerSeen(cordoned=True), DestinationCordoned(4)),
    ],
)
def test_reason__destination_disk(state: BrokerSeen, reason: StuckReason) -> None:
    assert why(seen(b4=state)) == reason


def test_reason__source_at_its_throttle_while_others_idle__names_who_could_send() -> None:
    found = why(seen(), around=replace(AROUND, rates={OUT_1: 58.0 * MB, (2, Direction.OUT): 1.0 * MB}))

    assert found == SourceAtItsLimit(1, 58.0 * MB, 60 * MB, (2, 3))
    assert Fix.ELECT_LEADER in fixes(found.cause)


def test_reason__throttle_of_somebody_else() -> None:
    foreign = ForeignThrottle("broker", "4", "follower.replication.throttled.rate", "5000000")

    found = why(seen(), around=replace(AROUND, foreign=(foreign,), limits={INTO_4: 5 * MB}))

    assert found == RateOfOthers("4", "follower.replication.throttled.rate", "5000000")
    assert fixes(found.cause)[0] is Fix.SETTLE_THROTTLE


def test_reason__list_of_somebody_else() -> None:
    foreign = ForeignThrottle("topic", "orders", "leader.replication.throttled.replicas", "")

    found = why(seen(), around=replace(AROUND, foreign=(foreign,)))

    assert found == ListOfOthers("orders", "leader.replication.throttled.replicas")


def test_reason__kafka_refuses_to_tell__has_its_words() -> None:
    found = why(seen(), replace(BEHIND, refused="Topic authorization failed."))

    assert found == ClusterRefuses("Topic authorization failed.")


def test_reason__nothing_matches__has_for_how_long() -> None:
    assert why(seen()) == NoCauseFound(400.0)


def test_fixes__every_cause_has_one() -> None:
    assert all(fixes(each) for each in Cause)
    assert fixes(None) == ()
