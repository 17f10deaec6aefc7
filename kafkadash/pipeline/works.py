"""The jobs of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.domain.segments import SegmentKind as Facts
from kafkadash.pipeline.work import Scope, Work


def works() -> Sequence[Work]:
    from kafkadash.pipeline.jobs import rollup, verdict

    offsets, replicas = frozenset({Facts.GROUP_OFFSET}), frozenset({Facts.REPLICA})
    return (
        Work(
            ResultKind.LAG_ROLLUP, offsets, Scope.MINUTES, lambda frames: rollup.lag_rollup(frames[Facts.GROUP_OFFSET])
        ),
        Work(
            ResultKind.TOPIC_ROLLUP,
            offsets | replicas,
            Scope.MINUTES,
            lambda frames: rollup.topic_rollup(
                frames[Facts.GROUP_OFFSET], frames[Facts.REPLICA], frames[Facts.MANIFEST]
            ),
            frozenset({Facts.MANIFEST}),
        ),
        Work(
            ResultKind.CLUSTER_ROLLUP,
            offsets,
            Scope.MINUTES,
            lambda frames: rollup.cluster_rollup(frames[Facts.GROUP_OFFSET]),
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
            lambda frames: verdict.lag_verdicts(frames[Facts.GROUP_OFFSET]),
        ),
    )
