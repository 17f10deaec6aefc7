"""Which partitions a request is about."""

from __future__ import annotations

import re

import numpy as np

from kafkadash.domain.planner.columns import Columns
from kafkadash.domain.planner.demand import Flags
from kafkadash.domain.planner.request import PlanRequest


def selected(columns: Columns, request: PlanRequest) -> Flags:
    """P: whether the topic of a partition is one that the request names. Raises re.error."""
    pattern = re.compile(request.pattern) if request.pattern else None
    excluded = re.compile(request.excluded) if request.excluded else None
    named = frozenset(request.topics)
    answers: dict[str, bool] = {}

    def wanted(name: str) -> bool:
        if name not in answers:
            chosen = not (named or pattern) or name in named or bool(pattern and pattern.fullmatch(name))
            answers[name] = chosen and not (excluded and excluded.fullmatch(name))
        return answers[name]

    return np.fromiter((wanted(topic.name) for topic, _ in columns.rows), np.bool_, len(columns.rows))


def moving(columns: Columns) -> Flags:
    """P: whether a partition is being reassigned already."""
    return np.fromiter((partition.moving for _, partition in columns.rows), np.bool_, len(columns.rows))
