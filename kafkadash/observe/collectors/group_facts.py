"""What the collector of groups leaves for the pipeline: each pair of group and partition, with the look before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkadash.domain.lag_group import PartitionLag
from kafkadash.domain.lag_look import Look, lag_of
from kafkadash.kafka.groups import Group

_NAMES = (
    "group",
    "topic",
    "partition",
    "committed",
    "log_start",
    "log_end",
    "lag",
    "group_state",
    "members",
    "allowed_lag",
    "previous_committed",
    "previous_lag",
    "previous_at",
    "verdict",
)
_NOTHING = Look(0.0, None, None)


@dataclass(slots=True)
class GroupFacts:
    """Columns of ``SegmentKind.GROUP_OFFSET``, a row for each partition of some groups."""

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _NAMES})

    def add(self, group: Group, judged: Sequence[PartitionLag]) -> None:
        columns, members = self.columns, None if group.members is None else len(group.members)
        for each in judged:
            before = each.looks[-2] if len(each.looks) > 1 else _NOTHING
            row = (
                group.name,
                each.topic,
                each.partition,
                each.committed,
                each.start,
                each.end,
                each.lag,
                group.state,
                members,
                each.allowed,
                before.committed,
                lag_of(before.committed, before.end),
                round(before.at * 1_000_000) if before.at else None,
                each.state.value,
            )
            for name, value in zip(_NAMES, row, strict=True):
                columns[name].append(value)
