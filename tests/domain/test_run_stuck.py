"""Which mark a row in flight gets, and which cause comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkadash.domain.executor_state import BrokerSeen, Listed, Move, Observation, PartitionSeen, State, TopicSeen, Work
from kafkadash.domain.plan import Row
from kafkadash.domain.row_reasons import DisksFull, DisksNotRead
from kafkadash.domain.run_memory import CopyMemory, RowMemory
from kafkadash.domain.run_progress import Cause, Direction, Mark
from kafkadash.domain.run_stuck import Fix, ForeignThrottle, Surroundings, cause, fixes, mark
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
) -> tuple[Cause, str]:
    return cause(MOVE, row, looked, around, inbound, NOW)


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
    ("state", "words"), [(BrokerSeen(alive=False), "away"), (BrokerSeen(fenced=True), "fenced"), (None, "registered")]
)
def test_cause__destination_away__comes_before_all(state: BrokerSeen | None, words: str) -> None:
    looked = seen(replace(PARTITION, leader=None))
    brokers = {b: s for b, s in looked.brokers.items() if b != 4} | ({4: state} if state else {})

    found, said = why(replace(looked, brokers=brokers))

    assert found is Cause.DESTINATION_AWAY
    assert "Broker 4" in said
    assert words in said


def test_cause__copied_and_in_sync_with_a_kept_replica_away__names_it() -> None:
    copied = replace(BEHIND, copies={4: CopyMemory(end=1000)}, copied_at=NOW - 400)
    partition = replace(PARTITION, isr=frozenset({1, 4}), offline=frozenset({2}))

    found, said = why(seen(partition), copied)

    assert found is Cause.KEPT_REPLICA_AWAY
    assert "broker 2, which keeps a replica, is away" in said


def test_cause__no_leader() -> None:
    assert why(seen(replace(PARTITION, leader=None)))[0] is Cause.NO_LEADER


def test_cause__throttle_of_somebody_else_below_what_it_receives__says_both_figures_and_whose_it_is() -> None:
    foreign = ForeignThrottle("broker", "1", "leader.replication.throttled.rate", "10")
    around = Surroundings(60 * MB, {OUT_1: 10}, (foreign,))

    found, said = why(seen(), around=around)

    assert found is Cause.BELOW_INBOUND
    assert said == (
        "Broker 1 sends replicas at no more than 10 B/s; orders-0 receives 0.2 MB/s, so it can never finish."
        " That limit is not ours. Raise that limit, or cancel the row."
    )
    assert fixes(found, foreign=True)[0] is Fix.SETTLE_THROTTLE
    assert fixes(found)[0] is Fix.RAISE_THROTTLE


def test_cause__all_copies_to_one_broker_receive_more_than_its_throttle() -> None:
    found, said = why(seen(), around=Surroundings(2 * MB, inbound={INTO_4: 3.5 * MB}))

    assert found is Cause.BELOW_INBOUND
    assert "3.5 MB/s" in said
    assert "2.0 MB/s" in said


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (BrokerSeen(full=DisksFull(4, 10**9, 2 * 10**9)), "1.0 GB"),
        (BrokerSeen(full=DisksNotRead(4)), "not read"),
        (BrokerSeen(cordoned=True), "cord"),
    ],
)
def test_cause__destination_disk(state: BrokerSeen, words: str) -> None:
    found, said = why(seen(b4=state))

    assert found is Cause.DESTINATION_DISK
    assert words in said


def test_cause__source_at_its_throttle_while_others_idle__names_who_could_send() -> None:
    found, said = why(seen(), around=replace(AROUND, rates={OUT_1: 58.0 * MB, (2, Direction.OUT): 1.0 * MB}))

    assert found is Cause.SOURCE_AT_THROTTLE
    assert "sends 58.0 MB/s of the 60.0 MB/s it may" in said
    assert "2 and 3" in said
    assert Fix.ELECT_LEADER in fixes(found)


def test_cause__throttle_of_somebody_else() -> None:
    foreign = ForeignThrottle("broker", "4", "follower.replication.throttled.rate", "5000000")

    found, said = why(seen(), around=replace(AROUND, foreign=(foreign,), limits={INTO_4: 5 * MB}))

    assert found is Cause.FOREIGN_THROTTLE
    assert "follower.replication.throttled.rate is 5.0 MB/s" in said
    assert fixes(found)[0] is Fix.SETTLE_THROTTLE


def test_cause__kafka_refuses_to_tell__says_its_words() -> None:
    found, said = why(seen(), replace(BEHIND, refused="Topic authorization failed."))

    assert found is Cause.REFUSED
    assert "Topic authorization failed." in said


def test_cause__nothing_matches__says_for_how_long_and_what_was_looked_at() -> None:
    found, said = why(seen())

    assert found is Cause.UNKNOWN
    assert "6 min 40 s" in said


def test_fixes__every_cause_has_one() -> None:
    assert all(fixes(each) for each in Cause)
    assert fixes(None) == ()
