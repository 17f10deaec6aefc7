"""Table of the jobs of a batch, with the facts they read and the results they make, for stream, backfill and tests.

A job with the scope MINUTES gets every row of each minute that a batch touched, and answers for these minutes. A job
with the scope RECENT also gets the rows of the last refreshes before each of these minutes (``batch.RECENT`` of each
kind and cluster); of its answers those count that are for a touched minute, by the column that ``PipelineWork.at``
names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from kafkadash.export.results import ResultKind
from kafkadash.export.schema import SegmentKind
from kafkadash.export.schema import SegmentKind as Facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Frames = Mapping["SegmentKind | SharedFrames | SampleLooks", "DataFrame"]
Job = Callable[[Frames], "DataFrame"]


@dataclass(frozen=True, slots=True)
class SampleLooks:
    """Locations of a kind's rows, for a job that reads them itself; ``lake.FactLake.looks`` defines the form."""

    kind: SegmentKind


@dataclass(frozen=True, slots=True)
class SharedFrames:
    """Input shared by several jobs, computed once; ``reads``: kinds whose rows of the minutes it is made from."""

    name: str
    reads: frozenset[SegmentKind]
    job: Job


class WorkScope(StrEnum):
    MINUTES = "minutes"
    RECENT = "recent"


@dataclass(frozen=True, slots=True)
class PipelineWork:
    """``needs``: without new facts of one of these there is nothing to do. ``beside``: what is read besides them.

    ``shared``: made of such rows before. ``looks``: kinds of which it is told the files, not given the rows.
    ``at``: the column of its answers that tells their time.
    """

    kind: ResultKind
    needs: frozenset[SegmentKind]
    scope: WorkScope
    job: Job
    beside: frozenset[SegmentKind] = frozenset()
    shared: frozenset[SharedFrames] = frozenset()
    looks: frozenset[SampleLooks] = frozenset()
    at: str = "observed_at"

    @property
    def reads(self) -> frozenset[SegmentKind]:
        """Rows that its job is given; of what it knows by ``shared`` and ``looks`` only, none."""
        return self.beside if self.shared or self.looks else self.needs | self.beside


def _lags(frames: Frames) -> DataFrame:
    from kafkadash.pipeline.jobs import rollup

    return rollup.gather_lags(frames[Facts.GROUP_OFFSET])


LAGS = SharedFrames("lags", frozenset({Facts.GROUP_OFFSET}), _lags)
GROUPS = SampleLooks(Facts.GROUP_OFFSET)


def works() -> Sequence[PipelineWork]:
    from kafkadash.pipeline.jobs import figures as verdict
    from kafkadash.pipeline.jobs import rollup
    from kafkadash.pipeline.jobs.catch_up import catch_up
    from kafkadash.pipeline.jobs.quorum import quorum_rollup

    offsets, replicas = frozenset({Facts.GROUP_OFFSET}), frozenset({Facts.REPLICA})
    moves, quorum, traffic = (frozenset({kind}) for kind in (Facts.REASSIGNMENT, Facts.QUORUM, Facts.TRAFFIC))
    lags = frozenset({LAGS})
    return (
        PipelineWork(
            ResultKind.LAG_ROLLUP,
            offsets,
            WorkScope.MINUTES,
            lambda frames: rollup.lag_rollup(frames[LAGS]),
            shared=lags,
        ),
        PipelineWork(
            ResultKind.TOPIC_ROLLUP,
            offsets | replicas,
            WorkScope.MINUTES,
            lambda frames: rollup.topic_rollup(frames[LAGS], frames[Facts.REPLICA], frames[Facts.MANIFEST]),
            replicas | {Facts.MANIFEST},
            lags,
        ),
        PipelineWork(
            ResultKind.CLUSTER_ROLLUP,
            offsets,
            WorkScope.MINUTES,
            lambda frames: rollup.cluster_rollup(frames[LAGS]),
            shared=lags,
        ),
        PipelineWork(
            ResultKind.BROKER_ROLLUP,
            replicas,
            WorkScope.MINUTES,
            lambda frames: rollup.broker_rollup(frames[Facts.REPLICA]),
        ),
        PipelineWork(
            ResultKind.BYTES_IN,
            traffic,
            WorkScope.MINUTES,
            lambda frames: rollup.traffic_rollup(frames[Facts.TRAFFIC], ResultKind.BYTES_IN),
        ),
        PipelineWork(
            ResultKind.RECORDS_IN,
            traffic,
            WorkScope.MINUTES,
            lambda frames: rollup.traffic_rollup(frames[Facts.TRAFFIC], ResultKind.RECORDS_IN),
        ),
        PipelineWork(
            ResultKind.LAG_VERDICT,
            offsets,
            WorkScope.RECENT,
            lambda frames: verdict.lag_verdicts(frames[GROUPS]),
            looks=frozenset({GROUPS}),
        ),
        PipelineWork(
            ResultKind.CATCH_UP,
            moves,
            WorkScope.RECENT,
            lambda frames: catch_up(frames[Facts.REASSIGNMENT], frames[Facts.REPLICA], frames[Facts.MANIFEST]),
            beside=replicas | {Facts.MANIFEST},
        ),
        # Of whole minutes, with the refresh before each, from which a change is counted.
        PipelineWork(
            ResultKind.QUORUM_ROLLUP,
            quorum,
            WorkScope.RECENT,
            lambda frames: quorum_rollup(frames[Facts.QUORUM]),
            at="bucket",
        ),
    )
