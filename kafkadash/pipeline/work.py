"""Which job makes which result, from which facts: one table for stream, backfill and tests.

A job with the scope MINUTES gets every row of each minute that a batch touched, and answers for these minutes. One
with the scope RECENT gets besides what the last refreshes before each of these minutes saw (``snapshots.RECENT`` of
each kind and cluster); of its answers those count that are for a touched minute, by the column that the work names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.domain.segments import SegmentKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Frames = Mapping["SegmentKind | Shared | Looks", "DataFrame"]
Job = Callable[[Frames], "DataFrame"]


@dataclass(frozen=True, slots=True)
class Looks:
    """Where rows of a kind are, for a job that reads them itself; ``lake.Lake.looks`` has the form."""

    kind: SegmentKind


@dataclass(frozen=True, slots=True)
class Shared:
    """What several jobs are made from, reckoned once for all of them; ``reads``: rows of the minutes."""

    name: str
    reads: frozenset[SegmentKind]
    job: Job


class Scope(StrEnum):
    MINUTES = "minutes"
    RECENT = "recent"


@dataclass(frozen=True, slots=True)
class Work:
    """``needs``: without new facts of one of these there is nothing to do. ``beside``: what is read besides them.

    ``shared``: made of such rows before. ``looks``: kinds of which it is told the files, not given the rows.
    ``at``: the column of its answers that tells their time.
    """

    kind: ResultKind
    needs: frozenset[SegmentKind]
    scope: Scope
    job: Job
    beside: frozenset[SegmentKind] = frozenset()
    shared: frozenset[Shared] = frozenset()
    looks: frozenset[Looks] = frozenset()
    at: str = "observed_at"

    @property
    def reads(self) -> frozenset[SegmentKind]:
        """Rows that its job is given; of what it knows by ``shared`` and ``looks`` only, none."""
        return self.beside if self.shared or self.looks else self.needs | self.beside
