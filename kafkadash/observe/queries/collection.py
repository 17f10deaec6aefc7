"""How the facts of a cluster are collected."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import OuterRef, Subquery

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.observe.models import Collection, CollectorRun, Kind
from kafkadash.observe.standing import Freshness, Standing, freshness_of, standing

_GRAINS = {
    Kind.ANSWERS: "brokers",
    Kind.METADATA: "partitions",
    Kind.REASSIGNMENTS: "in flight",
    Kind.QUORUM: "nodes",
    Kind.LOG_DIRS: "replicas",
    Kind.CONFIGS: "topics and brokers",
    Kind.VERSIONS: "brokers",
    Kind.GROUPS: "groups",
}


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """How one kind of facts is collected. ``newest`` is its last refresh, good or not; None before the first."""

    kind: Kind
    freshness: Freshness
    run: CollectorRun | None
    newest: Collection | None

    @property
    def gave_up(self) -> bool:
        """Whether the credentials were refused so often that nobody tries any more."""
        run = self.run
        return run is not None and bool(run.failures) and run.refusals >= settings.REFUSED_TRIES

    @property
    def grain(self) -> str:
        """What a refresh of this kind counts."""
        return _GRAINS[self.kind]


def collection_context(cluster: Cluster, now: datetime, known: Standing | None = None) -> dict[str, Any]:
    """How each kind of facts is read, and how its last refresh went."""
    of_kind = Collection.objects.filter(cluster=cluster, kind=OuterRef("kind")).order_by("-started_at")
    newest = CollectorRun.objects.filter(cluster=cluster).annotate(newest=Subquery(of_kind.values("pk")[:1]))
    runs = (known or standing(cluster, now)).runs
    last = {c.kind: c for c in Collection.objects.filter(pk__in=newest.values("newest"))}
    kinds = [k for k in Kind if k != Kind.QUORUM or cluster.mode != Mode.ZOOKEEPER]
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": max((run.attempted_at for run in runs.values() if run.attempted_at), default=None),
        "rows": [CollectionRow(k, freshness_of(runs.get(k), now), runs.get(k), last.get(k)) for k in kinds],
    }
