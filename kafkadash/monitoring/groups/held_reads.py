"""Partitions in which an open transaction holds back a group: consumers with read_committed stop at the last stable
offset, so the group stalls although its members are well.

Kafka tells of no group whether it reads with read_committed. A stalled partition counts as held if its committed offset
has reached the last stable offset and the log goes on behind that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafkadash.kafka.api import KafkaFailure, KafkaGroups, LogSpans, OpenTransaction
from kafkadash.monitoring.groups.rules import LagState, PartitionLag

MOST_SUSPECTS, MOST_HELD, MOST_NAMED = 1_000, 100, 3
"""Partitions whose last stable offset is read in a refresh, whose producers are, and producers kept of each."""
STALLED = (LagState.STALL, LagState.ERR)


class HeldRead(NamedTuple):
    """``stable``: last stable offset. ``producers``: ids of those with an open transaction, the oldest first; None
    where the principal may not ask, or Kafka does not tell. ``owner``: the transactional id of the oldest, "" where no
    coordinator lists its transaction as in progress (it hangs, or ACLs hide it), None where that is not known.
    """

    topic: str
    partition: int
    stable: int
    producers: Sequence[int] | None
    owner: str | None = None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class StalledRead:
    """Stalled partition of a group; ``committed`` and log ``end`` in records."""

    group: str
    topic: str
    partition: int
    committed: int
    end: int


def list_stalled(group: str, judged: Iterable[PartitionLag]) -> list[StalledRead]:
    """Return partitions that may be held: where members are assigned, or unknown, and the offset does not move."""
    return [
        StalledRead(group, each.topic, each.partition, each.committed, each.end)
        for each in judged
        if each.state in STALLED and each.committed is not None and each.end is not None
    ]


def find_held(kafka: KafkaGroups, stalled: Sequence[StalledRead], deadline: float) -> dict[str, list[HeldRead]] | None:
    """Return held partitions by group; a group with a partition of which nobody tells is left out. None: none told."""
    suspects = stalled[:MOST_SUSPECTS]
    wanted: dict[str, set[int]] = {}
    for each in suspects:
        wanted.setdefault(each.topic, set()).add(each.partition)
    try:
        stable = kafka.stable_spans(wanted, deadline=deadline)
    except KafkaFailure:
        return None
    held = [each for each in suspects if _is_held(each, stable)]
    opened = _read_producers(kafka, held[:MOST_HELD], deadline)
    owners = _read_owners(
        kafka, {own[0].producer_id for topic in opened.values() for own in topic.values() if own}, deadline
    )
    found: dict[str, list[HeldRead]] = {each.group: [] for each in suspects}
    for each in held:
        own = opened.get(each.topic, {}).get(each.partition)
        producers = None if own is None else [producer.producer_id for producer in own[:MOST_NAMED]]
        end = stable.spans[each.topic][each.partition].end
        owner = owners.get(producers[0], "") if producers and owners is not None else None
        found[each.group].append(HeldRead(each.topic, each.partition, end, producers, owner))
    for each in stalled:
        if each.partition not in stable.spans.get(each.topic, {}):
            found.pop(each.group, None)
    return found


def _is_held(each: StalledRead, stable: LogSpans) -> bool:
    span = stable.spans.get(each.topic, {}).get(each.partition)
    return span is not None and each.committed >= span.end and span.end < each.end


def _read_producers(
    kafka: KafkaGroups, held: Sequence[StalledRead], deadline: float
) -> Mapping[str, Mapping[int, Sequence[OpenTransaction]]]:
    wanted: dict[str, set[int]] = {}
    for each in held:
        wanted.setdefault(each.topic, set()).add(each.partition)
    try:
        return kafka.open_transactions(wanted, deadline=deadline) if wanted else {}
    except KafkaFailure:
        return {}


def _read_owners(kafka: KafkaGroups, producers: Collection[int], deadline: float) -> Mapping[int, str] | None:
    try:
        return kafka.transactional_ids(producers, deadline=deadline) if producers else None
    except KafkaFailure:
        return None


def read_held(stored: Sequence[Any]) -> list[HeldRead]:
    """Read ``GroupState.held``."""
    return [HeldRead(*fields) for fields in stored]
