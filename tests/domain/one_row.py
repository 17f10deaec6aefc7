"""One row of a run, and single looks at a cluster in which nothing else happens."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from kafkadash.domain.executor import step
from kafkadash.domain.executor_state import (
    BrokerSeen,
    Listed,
    Mode,
    Move,
    Observation,
    PartitionSeen,
    State,
    TopicSeen,
    Work,
)
from kafkadash.domain.plan import Options, Row
from tests.domain.executor_cluster import START

RATE = 2_000_000
OPTIONS = Options(RATE, RATE, RATE)
ROW = Row("t", "id", 0, (3, 1, 2), (2, 5, 3))
KEY = ("t", 0)
IN_FLIGHT = PartitionSeen(
    (2, 5, 3, 1), frozenset({1, 2, 3}), 3, 2, listed=Listed((2, 5, 3, 1), frozenset({5}), frozenset({1}))
)


AT_REST = PartitionSeen((3, 1, 2), frozenset({1, 2, 3}), 3, 2)


def seen(partition: PartitionSeen | None = AT_REST, *, seconds: float = 0, **other: object) -> Observation:
    there = {KEY: partition} if partition else {}
    look = Observation(
        START + timedelta(seconds=seconds), {"t": TopicSeen("id", 8)}, there, {b: BrokerSeen() for b in range(1, 7)}
    )
    return replace(look, **other)  # type: ignore[arg-type]


def moving(row: Row = ROW, state: State = State.MOVING, **other: object) -> Move:
    before = START - timedelta(minutes=1)
    move = Move(Work(row, 10), state, since=before, attempt=1, first_at=before, submitted_at=before, acted_at=before)
    return replace(move, **other)  # type: ignore[arg-type]


def after(move: Move, *looks: Observation, mode: Mode = Mode.EXECUTING) -> Move:
    """The row after these looks, with every request answered well."""
    for look in looks:
        taken = step([move], look, OPTIONS, look.at, mode)
        move = taken.transitions[0].after if taken.transitions else move
    return move
