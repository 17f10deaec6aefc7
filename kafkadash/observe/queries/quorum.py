"""The controller quorum as last answered."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.observe.models import BrokerState, CollectorRun, Kind
from kafkadash.observe.standing import freshness_of, newest_quorums


def quorum_context(cluster: Cluster, now: datetime) -> dict[str, Any]:
    """The newest answer of the controllers, with registered brokers that it misses."""
    registered = BrokerState.objects.filter(cluster=cluster, gone_at=None).values_list("broker_id", flat=True)
    seen = newest_quorums([cluster.pk], list(registered)).get(cluster.pk)
    run = CollectorRun.objects.filter(cluster=cluster, kind=Kind.QUORUM).first()
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": seen.snapshot.taken_at if seen else None,
        "seen": seen,
        "run": run,
        "freshness": freshness_of(run, now),
        "zookeeper": cluster.mode == Mode.ZOOKEEPER,
    }
