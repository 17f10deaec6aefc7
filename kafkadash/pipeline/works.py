"""The jobs of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.domain.segments import SegmentKind as Facts
from kafkadash.pipeline.work import Frames, Looks, Scope, Shared, Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _lags(frames: Frames) -> DataFrame:
    from kafkadash.pipeline.jobs import rollup

    return rollup.lags(frames[Facts.GROUP_OFFSET])


LAGS = Shared("lags", frozenset({Facts.GROUP_OFFSET}), _lags)
GROUPS = Looks(Facts.GROUP_OFFSET)


def works() -> Sequence[Work]:
    from kafkadash.pipeline.jobs import rollup, verdict
    from kafkadash.pipeline.jobs.catch_up import catch_up
    from kafkadash.pipeline.jobs.quorum import quorum_rollup

    offsets, replicas = frozenset({Facts.GROUP_OFFSET}), frozenset({Facts.REPLICA})
    moves, quorum = frozenset({Facts.REASSIGNMENT}), frozenset({Facts.QUORUM})
    lags = frozenset({LAGS})
    return (
        Work(
            ResultKind.LAG_ROLLUP,
            offsets,
            Scope.MINUTES,
            lambda frames: rollup.lag_rollup(frames[LAGS]),
            shared=lags,
        ),
        Work(
            ResultKind.TOPIC_ROLLUP,
            offsets | replicas,
            Scope.MINUTES,
            lambda frames: rollup.topic_rollup(frames[LAGS], frames[Facts.REPLICA], frames[Facts.MANIFEST]),
            replicas | {Facts.MANIFEST},
            lags,
        ),
        Work(
            ResultKind.CLUSTER_ROLLUP,
            offsets,
            Scope.MINUTES,
            lambda frames: rollup.cluster_rollup(frames[LAGS]),
            shared=lags,
        ),
        Work(
            ResultKind.BROKER_ROLLUP,
            replicas,
            Scope.MINUTES,
            lambda frames: rollup.broker_rollup(frames[Facts.REPLICA]),
        ),
        Work(
            ResultKind.LAG_VERDICT,
            offsets,
            Scope.RECENT,
            lambda frames: verdict.lag_verdicts(frames[GROUPS]),
            looks=frozenset({GROUPS}),
        ),
        Work(
            ResultKind.CATCH_UP,
            moves,
            Scope.RECENT,
            lambda frames: catch_up(frames[Facts.REASSIGNMENT], frames[Facts.REPLICA], frames[Facts.MANIFEST]),
            beside=replicas | {Facts.MANIFEST},
        ),
        # Of whole minutes, with the refresh before each, from which a change is counted.
        Work(
            ResultKind.QUORUM_ROLLUP,
            quorum,
            Scope.RECENT,
            lambda frames: quorum_rollup(frames[Facts.QUORUM]),
            at="bucket",
        ),
    )
