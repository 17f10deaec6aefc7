"""Which directory the replicas that will come are put into: told to their brokers before the moves are submitted.

A broker that restarts in between forgets it, so it is read once more when all has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kafkadash.domain.executor_state import Key, Move, Place, State
from kafkadash.domain.reasons import CodedReason, joined
from kafkadash.domain.row_reasons import LiesElsewhere, LiesNobodyKnows, NoTimeLeft, NotSentYet
from kafkadash.kafka.changing import KafkaChanges, ReplicaPlace
from kafkadash.kafka.port import KafkaAdmin, KafkaFailure
from kafkadash.reassign.run import fail_points
from kafkadash.reassign.run.fail_points import Call

AT_ONCE = 500
"""Rows of one round of requests."""


@dataclass(slots=True)
class Unplaced:
    """Rows that must not be submitted: ``refused`` by Kafka in its own words, ``again`` is why they are tried again."""

    refused: dict[Key, str] = field(default_factory=dict)
    again: dict[Key, CodedReason] = field(default_factory=dict)


def place(client: KafkaChanges, wanted: Sequence[Place], *, deadline: float, may: Callable[[], bool]) -> Unplaced:
    """One request to each broker. A lost one is tried again with the next submission: sent twice, it does no harm."""
    unplaced = Unplaced()
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        places = {ReplicaPlace(broker, *row.key): path for row in some for broker, path in row.directories}
        try:
            if not may():
                unplaced.again.update({row.key: NoTimeLeft() for row in some})
                continue
            with fail_points.around((Call.PLACE,)):
                answer = client.place_replicas(places, deadline=deadline)
        except KafkaFailure as failure:
            unplaced.again.update({row.key: NotSentYet(str(failure)) for row in some})
            continue
        for replica, error in answer.refused.items():
            if error.code is None:
                unplaced.again[replica.topic, replica.partition] = NotSentYet(error.text)
            else:
                unplaced.refused[replica.topic, replica.partition] = error.text
        for replica, error in answer.lost.items():
            unplaced.again[replica.topic, replica.partition] = NotSentYet(error.text)
    return unplaced


def misplaced(client: KafkaAdmin, moves: Sequence[Move], *, deadline: float) -> dict[Key, CodedReason]:
    """Rows that are done, but whose new replicas do not lie where the plan says, or nobody can tell.

    Kafka is asked only where a row names a directory.
    """
    named = [move.work.row for move in moves if move.state is State.DONE and move.work.row.log_dirs]
    rows = [row for row in named if row.directories]
    if not rows:
        return {}
    asked = sorted({broker for row in rows for broker, _ in row.directories})
    lies: dict[tuple[int, Key], str] = {}
    untold: dict[int, str] = {}
    try:
        answer = client.log_dirs(asked, deadline=deadline)
    except KafkaFailure as failure:
        untold = dict.fromkeys(asked, str(failure))
    else:
        untold = {broker: error.text for broker, error in answer.errors.items()}
        for broker, directories in answer.brokers.items():
            for directory in directories:
                lies.update({(broker, (r.topic, r.partition)): directory.path for r in directory.replicas})
    found: dict[Key, CodedReason] = {}
    for row in rows:
        key = row.topic, row.partition
        for broker, path in row.directories:
            there = lies.get((broker, key))
            if there != path:
                found[key] = joined(found.get(key), _where(broker, path, there, untold.get(broker, "")))
    return found


def _where(broker: int, path: str, there: str | None, untold: str) -> CodedReason:
    return LiesNobodyKnows(broker, path, untold) if there is None else LiesElsewhere(broker, there, path)
