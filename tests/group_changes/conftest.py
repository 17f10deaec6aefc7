"""A stored cluster with the empty group "billing" and a virtual Kafka that coordinates it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.accounts.models import User
from kafkadash.core.messages import as_message
from kafkadash.group_changes.reset import KIND
from kafkadash.kafka.api import (
    CommittedOffsets,
    GroupDescription,
    ItemChanged,
    ItemError,
    LogSpan,
    LogSpans,
    TopicPartition,
)
from tests.execution.model_kafka import ModelKafka
from tests.execution.worlds import model_of
from tests.groups import group_seen, samples
from tests.monitoring.memory_kafka import MemoryGroup, MemoryGroups
from tests.planning.stored import stored
from tests.short_runs.worlds import ShortWorld, stepped

HAS_MEMBERS = ItemError(as_message("The group has members."), 25, "UNKNOWN_MEMBER_ID")
LOST = ItemError(as_message("did not answer in time"), 16, "NOT_COORDINATOR")


@dataclass
class GroupKafka(ModelKafka):
    """``known``: the groups and logs. A record has its offset as its time in milliseconds. ``refuse`` as of topics."""

    known: MemoryGroups = field(default_factory=lambda: MemoryGroups(time.time))

    def committed(self, groups: Collection[str], *, deadline: float) -> CommittedOffsets:
        self._called("committed")
        return self.known.committed(groups, deadline=deadline)

    def log_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        self._called("log_spans")
        return self.known.log_spans(partitions, deadline=deadline)

    def offsets_at(self, partitions: Mapping[str, Collection[int]], at_ms: int, *, deadline: float) -> LogSpans:
        self._called("offsets_at")
        whole = self.known.log_spans(partitions, deadline=deadline)
        late = {
            topic: {
                n: LogSpan(min(max(at_ms, span.start), span.end), span.end, span.taken_at) for n, span in own.items()
            }
            for topic, own in whole.spans.items()
        }
        return LogSpans(late, whole.errors, whole.taken_at)

    def describe_groups(self, groups: Collection[str], *, deadline: float) -> dict[str, GroupDescription]:
        self._called("describe_groups")
        return {name: row for name, row in self.known.groups(deadline=deadline).groups.items() if name in groups}

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], *, deadline: float
    ) -> ItemChanged[TopicPartition]:
        def commit(own: MemoryGroup, partition: TopicPartition) -> None:
            own.committed.setdefault(partition.topic, {})[partition.partition] = offsets[partition]

        return self._change("commit_offsets", group, offsets, commit) if offsets else ItemChanged()

    def delete_offsets(
        self, group: str, partitions: Collection[TopicPartition], *, deadline: float
    ) -> ItemChanged[TopicPartition]:
        def remove(own: MemoryGroup, partition: TopicPartition) -> None:
            own.committed.get(partition.topic, {}).pop(partition.partition, None)

        return self._change("delete_offsets", group, partitions, remove) if partitions else ItemChanged()

    def delete_groups(self, groups: Collection[str], *, deadline: float) -> ItemChanged[str]:
        self._called("delete_groups")
        self.sent.append(("delete_groups", sorted(groups)))
        there = {name for name in groups if name in self.known.all}
        gone = {name: ItemError(as_message("does not exist"), 69, "GROUP_ID_NOT_FOUND") for name in {*groups} - there}
        full = {name: HAS_MEMBERS for name in there if self.known.all[name].members}
        empty = there - full.keys()
        for name in empty if self.lose is not False else ():
            del self.known.all[name]
        lost = {} if self.lose is None else dict.fromkeys(empty, LOST)
        return ItemChanged(frozenset(empty - lost.keys()), {**gone, **full}, lost)

    def _change(
        self,
        call: str,
        group: str,
        partitions: Collection[TopicPartition],
        do: Callable[[MemoryGroup, TopicPartition], None],
    ) -> ItemChanged[TopicPartition]:
        self._called(call)
        self.sent.append((call, dict(partitions) if isinstance(partitions, Mapping) else sorted(partitions)))
        own = self.known.all[group]
        refused = {
            each: self.refuse.get(each, HAS_MEMBERS) for each in partitions if own.members or each in self.refuse
        }
        rest = [each for each in partitions if each not in refused]
        for each in rest if self.lose is not False else ():
            do(own, each)
        lost = {} if self.lose is None else dict.fromkeys(rest, LOST)
        return ItemChanged(frozenset(rest) - lost.keys(), refused, lost)


class GroupWorld(ShortWorld):
    """billing has committed 60 of 100 in orders-0 and 100 of 100 in orders-1, and nothing of the others."""

    kafka: GroupKafka

    @property
    def group(self) -> MemoryGroup:
        return self.kafka.known.all["billing"]

    @property
    def commits(self) -> dict[int, int]:
        """Committed offsets of orders, in Kafka."""
        return self.group.committed.get("orders", {})

    @property
    def requests(self) -> list[tuple[str, object]]:
        return self.kafka.sent

    def wanted(
        self, to: str, topic: str = "", partitions: list[int] | None = None, **more: object
    ) -> dict[str, object]:
        return {"group": "billing", "to": to, "topic": topic, "partitions": partitions or [], **more}

    def typed(self, **offsets: int | None) -> dict[str, object]:
        """``typed(_0=70)``: offset 70 for orders-0."""
        numbers = {name.removeprefix("_"): offset for name, offset in offsets.items()}
        return {"group": "billing", "to": "offsets", "offsets": {"orders": numbers}}


@pytest.fixture
def world(db: None, operator: User) -> Iterator[GroupWorld]:
    cluster = stored()
    kafka = GroupKafka(**vars(model_of(cluster)))
    kafka.known.log("orders", [100] * 5)
    kafka.known.add("billing", {"orders": {0: 60, 1: 100}})
    partitions = {("orders", 0): samples([60] * 3, 40), ("orders", 1): samples([100] * 3)}
    group_seen(cluster, "billing", partitions, now=datetime.now(UTC) - timedelta(seconds=20))
    made = GroupWorld(cluster, kafka, operator, KIND)
    with stepped(made):
        yield made
