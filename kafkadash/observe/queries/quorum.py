"""The controller quorum as last answered."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.observe.models import BrokerState, Kind
from kafkadash.observe.standing import Standing, standing


def quorum_context(cluster: Cluster, now: datetime, known: Standing | None = None) -> dict[str, Any]:
    """The newest answer of the controllers, with registered brokers that it misses."""
    registered = BrokerState.objects.filter(cluster=cluster, gone_at=None).values_list("broker_id", flat=True)
    read = known or standing(cluster, now)
    seen = read.quorum.lacking(list(registered)) if read.quorum else None
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": seen.snapshot.taken_at if seen else None,
        "seen": seen,
        "run": read.runs.get(Kind.QUORUM),
        "freshness": read.freshness_of(Kind.QUORUM),
        "zookeeper": cluster.mode == Mode.ZOOKEEPER,
    }
