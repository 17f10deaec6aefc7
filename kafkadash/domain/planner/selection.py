"""Which partitions a request is about."""

from __future__ import annotations

import numpy as np

from kafkadash.domain.planner.columns import Columns
from kafkadash.domain.planner.demand import Flags
from kafkadash.domain.planner.request import PlanRequest
from kafkadash.domain.planner.topic_choice import chosen


def selected(columns: Columns, request: PlanRequest) -> Flags:
    """P: whether the topic of a partition is one that the request names. Raises BadPattern."""
    names = frozenset(chosen(request, {topic.name for topic, _ in columns.rows}))
    return np.fromiter((topic.name in names for topic, _ in columns.rows), np.bool_, len(columns.rows))


def moving(columns: Columns) -> Flags:
    """P: whether a partition is being reassigned already."""
    return np.fromiter((partition.moving for _, partition in columns.rows), np.bool_, len(columns.rows))
