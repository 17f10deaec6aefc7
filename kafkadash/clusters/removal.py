"""Taking a cluster out of kafkadash: at once for everybody who looks, row by row for the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import models, transaction
from django.db.models.functions import Now
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.accounts.services import record
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import CONNECTION_FIELDS, ClusterRefused, shown_values
from kafkadash.core.messages import choose_plural, message_text

# Rows of one delete: a few tens of milliseconds, so nobody waits for a lock.
BATCH = 1000

# What the rows are to people; a kind of row that is not here is called as its model is.
_WORDS = {
    "clusters.ClusterRole": "role on this cluster|roles on this cluster",
    "clusters.AllowedLag": "lag threshold|lag thresholds",
    "monitoring.QuorumReplicaState": "quorum node state|quorum node states",
    "monitoring.ThrottleState": "observed throttle|observed throttles",
    "monitoring.Capabilities": "cluster capability record|cluster capability records",
    "monitoring.ConfigDrift": "record of differing configs|records of differing configs",
    "findings.Finding": "finding|findings",
    "findings.Judgement": "check of findings|checks of findings",
    "execution.Execution": "run, with its throttle ledger|runs, with their throttle ledgers",
    "jobs.Job": "job|jobs",
    "monitoring.CollectorRun": "collector|collectors",
    "monitoring.Collection": "refresh record|refresh records",
    "monitoring.ClusterState": "cluster summary|cluster summaries",
    "monitoring.TopicState": "topic|topics",
    "monitoring.BrokerState": "broker|brokers",
    "monitoring.BrokerWeights": "broker size record|broker size records",
    "monitoring.ReassignmentSnapshot": "observed reassignment|observed reassignments",
    "history.Series": "history series|history series",
    "history.CatchUp": "measured replication rate|measured replication rates",
    "history.Workload": "topic workload model|topic workload models",
    "history.ClusterWorkload": "cluster workload model|cluster workload models",
    "history.DiskForecast": "disk forecast|disk forecasts",
    "history.VerdictCount": "hourly verdict comparison|hourly verdict comparisons",
    "history.VerdictDifference": "verdict difference|verdict differences",
    "monitoring.QuorumSnapshot": "quorum snapshot|quorum snapshots",
    "monitoring.ClusterPoint": "trend point|trend points",
    "monitoring.TopicTraffic": "topic throughput record|topic throughput records",
    "monitoring.LogEndWindow": "log end record|log end records",
    "monitoring.ZooKeeperState": "reading of ZooKeeper|readings of ZooKeeper",
    "monitoring.TransactionSnapshot": "record of open transactions|records of open transactions",
    "monitoring.CanaryPoint": "canary probe|canary probes",
    "monitoring.BrokerCatchUp": "catch-up record of a broker|catch-up records of brokers",
}


@dataclass(frozen=True, slots=True)
class OwnedRows:
    """How many rows of one kind go with a cluster."""

    rows: int
    words: str


@dataclass(frozen=True, slots=True)
class RemovalBlocked:
    """Changes by kafkadash in Kafka that nobody would undo if the cluster were removed now.

    ``refused``: why, in a sentence, or '' where removal is allowed; ``left``: what stays in Kafka, in sentences.
    """

    refused: str = ""
    left: tuple[str, ...] = ()


_told_by: list[Callable[[Cluster], RemovalBlocked]] = []
_stopped_by: list[Callable[[Cluster], None]] = []


def ask_before_removal(tells: Callable[[Cluster], RemovalBlocked], stops: Callable[[Cluster], None]) -> None:
    """For the apps above, which know what they did in a cluster: ``tells`` is asked whenever one is to be removed.

    ``stops`` comes before it in the transaction of the removal: of what is at work there nothing more can be written,
    and what was being written is waited for.
    """
    _told_by.append(tells)
    _stopped_by.append(stops)


def stays_in_kafka(cluster: Cluster) -> RemovalBlocked:
    """Return the answers of all registered functions, joined."""
    told = [tells(cluster) for tells in _told_by]
    refused = " ".join(each.refused for each in told if each.refused)
    return RemovalBlocked(refused, tuple(sentence for each in told for sentence in each.left))


def list_belongings(cluster: Cluster) -> list[OwnedRows]:
    """Return the rows that kafkadash would forget with this cluster, kinds without rows left out."""
    found = []
    for model, field in _relations():
        rows = model._base_manager.filter(**{field: cluster}).count()
        if rows:
            meta = model._meta
            texts = _WORDS.get(meta.label, f"{meta.verbose_name}|{meta.verbose_name_plural}")
            found.append(OwnedRows(rows, choose_plural(texts, rows)))
    return found


def remove_cluster(
    actor: User | str, cluster: Cluster, *, typed_name: str, reason: str = "", request: HttpRequest | None = None
) -> None:
    """Forget a cluster. Kafka is not touched, and the audit keeps what was done here.

    The cluster is out of every page and its secrets are gone when this returns; collectors that are at it find their
    lease gone. The tick deletes the other rows (``purge_removed``). The name is free again at once.
    Raises Refused when ``typed_name`` is not the cluster's name, or something of ours is under way there.
    """
    if " ".join(typed_name.split()) != cluster.name:
        raise ClusterRefused({"typed_name": [message_text(ClusterErrorCode.NAME_TO_CONFIRM, cluster=cluster.name)]})
    with transaction.atomic():
        for stops in _stopped_by:
            stops(cluster)
        stays = stays_in_kafka(cluster)
        if stays.refused:
            raise ClusterRefused({"": [stays.refused]})
        # Collectors lock their run before the cluster's row: the same order here, or both would wait for each other.
        for model, field in _relations():
            if model._meta.label == "monitoring.CollectorRun":
                model._base_manager.filter(**{field: cluster}).delete()
        gone = Cluster.with_removed.filter(pk=cluster.pk, removed_at=None).update(
            removed_at=Now(),
            enabled=False,
            name=f"removed cluster {cluster.pk}",
            slug=f"removed--{cluster.pk}",
            sasl_username="",
            sasl_password="",
            certificate_pem="",
            key_pem="",
            zookeeper_password="",
        )
        if gone:
            before = {"name": cluster.name, "kafka_id": cluster.kafka_id, **shown_values(cluster, CONNECTION_FIELDS)}
            record(
                actor,
                "cluster.removed",
                cluster,
                cluster=cluster.slug,
                reason=reason,
                before=before,
                after={"left_in_kafka": list(stays.left)} if stays.left else None,
                request=request,
            )


def purge_removed(batch: int = BATCH) -> int:
    """Delete some rows of a removed cluster, at last the cluster itself; returns how many rows went, 0 when done."""
    cluster = Cluster.with_removed.exclude(removed_at=None).order_by("removed_at").first()
    if cluster is None:
        return 0
    for model, field in _relations():
        rows = model._base_manager.filter(**{field: cluster})
        some = list(rows.order_by("pk").values_list("pk", flat=True)[:batch])
        if some:
            return model._base_manager.filter(pk__in=some).delete()[0]
    return cluster.delete()[0]


def _relations() -> Iterator[tuple[type[models.Model], str]]:
    """Every model whose rows belong to a cluster, in any app, with the name of its foreign key."""
    for relation in Cluster._meta.related_objects:
        model: Any = relation.related_model
        yield model, relation.field.name
