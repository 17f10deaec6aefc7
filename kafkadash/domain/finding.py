"""A finding: one thing that is wrong, in a sentence and in a number."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.status import State


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. ``answer`` continues the cluster's name in a title, ``sentence`` stands alone.

    ``scope`` tells findings of one kind apart (a broker's id, "broker:path"; '' where the cluster has only one).
    ``value`` in ``unit`` is the measured number, ``threshold`` what it must not reach; ``measured`` and ``limit`` say
    both in words. ``taken_at`` is when the facts were read, ``since`` when it began, if they tell.
    """

    kind: FindingKind
    sentence: str
    answer: str
    taken_at: datetime
    scope: str = ""
    detail: str = ""
    value: float | None = None
    unit: str = ""
    threshold: float | None = None
    measured: str = ""
    limit: str = ""
    since: datetime | None = None

    @property
    def state(self) -> State:
        return self.kind.about.state
