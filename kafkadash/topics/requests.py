"""Requests that changes of topics share: new partitions in as many requests as Kafka wants."""

from __future__ import annotations

from collections.abc import Callable

from kafkadash.kafka.api import ItemChanged, ItemError, KafkaFailure
from kafkadash.short_runs.kinds import Items
from kafkadash.short_runs.state import PlannedItem
from kafkadash.topics.placement import MOST_PARTITIONS

BATCH = 1000


def send_in_parts(items: Items, deadline: float, send: Callable[[Items, float], ItemChanged[str]]) -> ItemChanged[str]:
    """Send items with new partitions in requests that Kafka takes, and join the answers.

    Raises KafkaFailure where the first request was not sent; items of later ones are refused then, without a code.
    """
    parts = split_by_partitions(items)
    done: set[str] = set()
    refused: dict[str, ItemError] = {}
    lost: dict[str, ItemError] = {}
    for number, part in enumerate(parts):
        try:
            answer = send(part, deadline / len(parts))
        except KafkaFailure as failure:
            if not number:
                raise
            refused |= {item.subject: ItemError(failure.message) for item in part}
            continue
        done |= answer.done
        refused |= answer.refused
        lost |= answer.lost
    return ItemChanged(frozenset(done), refused, lost)


def split_by_partitions(items: Items) -> list[list[PlannedItem]]:
    """Split items into requests of at most 10,000 new partitions, which is what Kafka takes."""
    parts: list[list[PlannedItem]] = []
    room = 0
    for item in items:
        needed = len(item.content["replicas"])
        if not parts or needed > room:
            parts.append([])
            room = MOST_PARTITIONS
        parts[-1].append(item)
        room -= needed
    return parts
