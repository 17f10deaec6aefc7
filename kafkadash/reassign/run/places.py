"""Which directory the replicas that will come are put into: told to their brokers before the moves are submitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kafkadash.domain.executor_state import Key, Place
from kafkadash.kafka.changing import KafkaChanges, ReplicaPlace
from kafkadash.kafka.port import KafkaFailure

AT_ONCE = 500
"""Rows of one round of requests."""


@dataclass(slots=True)
class Unplaced:
    """Rows that must not be submitted, with the sentence for each: refused by Kafka, or to be tried again."""

    refused: dict[Key, str] = field(default_factory=dict)
    again: dict[Key, str] = field(default_factory=dict)


def place(client: KafkaChanges, wanted: Sequence[Place], *, deadline: float, may: Callable[[], bool]) -> Unplaced:
    """One request to each broker. A lost one is tried again with the next submission: sent twice, it does no harm."""
    unplaced = Unplaced()
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        places = {ReplicaPlace(broker, *row.key): path for row in some for broker, path in row.directories}
        try:
            if not may():
                unplaced.again.update({row.key: "There was no time left for it in this step." for row in some})
                continue
            answer = client.place_replicas(places, deadline=deadline)
        except KafkaFailure as failure:
            unplaced.again.update({row.key: str(failure) for row in some})
            continue
        for replica, error in answer.refused.items():
            found = unplaced.again if error.code is None else unplaced.refused
            found[replica.topic, replica.partition] = error.message
        for replica, error in answer.lost.items():
            unplaced.again[replica.topic, replica.partition] = error.message
    return unplaced
