"""What may be submitted now, and in what order: content, brokers, the cluster, the brake, the window."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kafkadash.domain import executor
from kafkadash.domain.executor import answered, step
from kafkadash.domain.executor_state import (
    BrokerSeen,
    Move,
    Observation,
    PartitionSeen,
    Pressed,
    State,
    Submit,
    TopicSeen,
    Work,
)
from kafkadash.domain.plan import Options, Row
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.row_reasons import (
    BrokerAway,
    BrokerCordoned,
    BrokerFenced,
    BrokerNotRegistered,
    DisksNotRead,
    FactorNotApproved,
    NotAsPlanned,
    ReassignedByOthers,
    ThereAlready,
)
from kafkadash.domain.run_reasons import ListingUnread, LookTooOld, QuorumSilent, RunWindowClosed, UnderMinIsrBrake
from tests.domain.executor_cluster import START
from tests.domain.one_row import AT_REST, IN_FLIGHT, KEY, OPTIONS, ROW, after, seen


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        (IN_FLIGHT, ReassignedByOthers((2, 5, 3))),
        (replace(AT_REST, replicas=(1, 3, 2)), NotAsPlanned((1, 3, 2), (3, 1, 2))),
        (replace(AT_REST, replicas=(2, 5, 3)), ThereAlready((2, 5, 3), (3, 1, 2))),
    ],
)
def test_content_changed_before_its_submit__is_skipped(partition: PartitionSeen, reason: CodedReason) -> None:
    row = after(Move(Work(ROW, 10)), seen(partition), seen(partition, seconds=2))
    assert (row.state, row.reason) == (State.SKIPPED, reason)


def test_replication_factor__is_not_changed_without_approval() -> None:
    row = Move(Work(Row("t", "id", 0, (3, 1, 2), (3, 1)), 10))
    assert after(row, seen()).reason == FactorNotApproved(3, 2)


@pytest.mark.parametrize(
    ("broker", "known", "reason"),
    [
        (5, None, BrokerNotRegistered(5)),
        (5, BrokerSeen(fenced=True), BrokerFenced(5)),
        (5, BrokerSeen(cordoned=True), BrokerCordoned(5)),
        (5, BrokerSeen(full=DisksNotRead(5)), DisksNotRead(5)),
        (2, BrokerSeen(alive=False), BrokerAway(2)),
    ],
)
def test_target_unwell__waits_and_goes_on_when_it_is_well(
    broker: int, known: BrokerSeen | None, reason: CodedReason
) -> None:
    brokers = {b: BrokerSeen() for b in range(1, 7)} | ({broker: known} if known else {})
    if known is None:
        del brokers[broker]
    row = after(Move(Work(ROW, 10)), seen(brokers=brokers))
    assert (row.state, row.reason) == (State.WAITING, reason)
    assert after(row, seen(seconds=2)).state is State.SUBMITTING


@pytest.mark.parametrize(
    ("other", "held"),
    [
        ({"quorum": False}, QuorumSilent()),
        ({"listing": False}, ListingUnread()),
        ({"window_open": False}, RunWindowClosed()),
    ],
)
def test_cluster_unwell__holds_everything(other: dict[str, Any], held: CodedReason) -> None:
    taken = step([Move(Work(ROW, 10))], seen(**other), OPTIONS, START)
    assert taken.held == (held,)
    assert taken.actions == ()


def test_old_look__is_not_acted_on() -> None:
    assert step([Move(Work(ROW, 10))], seen(), OPTIONS, START + timedelta(minutes=1)).held == (LookTooOld(60.0),)


def pressed(isr: set[int], *, offline: tuple[int, ...] = ()) -> tuple[Pressed, ...]:
    return (Pressed("other", 3, (3, 5, 6), frozenset(isr), 2, frozenset(offline)),)


def test_brake__under_min_isr_with_nobody_away_submits_nothing() -> None:
    taken = step([Move(Work(ROW, 10))], seen(pressed=pressed({3})), OPTIONS, START)
    assert taken.actions == ()
    assert taken.brake.reason == UnderMinIsrBrake("other-3", 1)


def test_brake__the_missing_replicas_are_offline__changes_nothing() -> None:
    taken = step([Move(Work(ROW, 10))], seen(pressed=pressed({3}, offline=(5, 6))), OPTIONS, START)
    assert Submit(KEY, (2, 5, 3)) in taken.actions


def test_brake__a_row_that_repairs_the_partition_passes() -> None:
    lags = replace(AT_REST, isr=frozenset({3}))
    repair = Move(Work(Row("t", "id", 0, (3, 1, 2), (3, 5, 6)), 10))
    look = seen(lags, pressed=(Pressed("t", 0, (3, 1, 2), frozenset({3}), 2),))
    assert Submit(KEY, (3, 5, 6)) in step([repair], look, OPTIONS, START).actions


def fleet(count: int, size: int = 10) -> tuple[list[Move], Observation]:
    rows = [Row("t", "id", number, (number % 2 + 1, 3, 4), (number % 2 + 1, 3, 5)) for number in range(count)]
    there = {("t", row.partition): PartitionSeen(row.current, frozenset(row.current), row.current[0]) for row in rows}
    look = seen(partitions=there, topics={"t": TopicSeen("id", 100)})
    return [Move(Work(row, size * (row.partition + 1))) for row in rows], look


def submits(moves: list[Move], look: Observation, options: Options = OPTIONS) -> list[int]:
    return [a.key[1] for a in step(moves, look, options, START).actions if isinstance(a, Submit)]


def test_window__k_per_broker_n_per_cluster_and_half_of_a_topic() -> None:
    moves, look = fleet(20)
    assert submits(moves, look) == [19, 18, 17, 16, 15]
    assert submits(moves, look, replace(OPTIONS, per_cluster=3)) == [19, 18, 17]
    assert submits(moves, replace(look, topics={"t": TopicSeen("id", 4)})) == [19, 18]
    assert submits(moves, replace(look, topics={"t": TopicSeen("id", 1)})) == [19]


def test_window__at_min_isr_halves_the_moves_of_its_brokers() -> None:
    moves, look = fleet(20)
    assert submits(moves, replace(look, pressed=pressed({3, 6}))) == [19, 18]
    assert submits(moves, replace(look, pressed=pressed({3, 6}, offline=(5,)))) == [19, 18, 17, 16, 15]


def test_order__repairs_then_racks_then_the_largest() -> None:
    moves, look = fleet(4)
    moves[1] = replace(moves[1], work=Work(moves[1].work.row, 1, mends_racks=True))
    broken = replace(look.partitions["t", 0], isr=frozenset({1, 3}), offline=frozenset({4}))
    look = replace(look, partitions={**look.partitions, ("t", 0): broken})
    assert submits(moves, look) == [0, 1, 3, 2]


def test_intents_of_one_step__are_few_enough_for_a_short_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many may move at once: the others begin in the next steps."""
    monkeypatch.setattr(executor, "MOST_SUBMITTED", 2)
    rows = [Row("t", "id", number, (3, 1, 2), (2, 5, 3)) for number in range(5)]
    partitions = {("t", number): AT_REST for number in range(5)}
    look = seen(partitions=partitions)
    limits = replace(OPTIONS, per_broker=100, per_cluster=100)
    moves = [Move(Work(row, 10)) for row in rows]
    taken = step(moves, replace(look, topics={"t": TopicSeen("id", 50)}), limits, START)
    assert len([action for action in taken.actions if isinstance(action, Submit)]) == 2
    assert [t.after.state for t in taken.transitions] == [State.SUBMITTING] * 2


def test_asked_and_answered__takes_its_turn_in_the_window() -> None:
    moves, look = fleet(2)
    asks = replace(moves[0], state=State.UNKNOWN, asks=True, attempt=3, acted_at=START - timedelta(hours=1))
    again = answered(asks, START, again=True)
    assert submits([again, moves[1]], look, replace(OPTIONS, per_cluster=1)) == [1]
