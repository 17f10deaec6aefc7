"""Taking a cluster out of kafkadash: at once for everybody who looks, row by row for the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import models, transaction
from django.db.models.functions import Now
from django.http import HttpRequest

from kafkadash.accounts.audit import record
from kafkadash.accounts.models import User
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import CONNECTION_FIELDS, Refused, shown_values
from kafkadash.domain.messages import message_text

# Rows of one delete: a few tens of milliseconds, so nobody waits for a lock.
BATCH = 1000

# What the rows are to people; a kind of row that is not here is called as its model is.
_WORDS = {
    "clusters.ClusterRole": ("role on this cluster alone", "roles on this cluster alone"),
    "clusters.AllowedLag": ("rule about allowed lag", "rules about allowed lag"),
    "observe.QuorumReplicaState": ("state of a controller or observer", "states of controllers and observers"),
    "observe.ThrottleState": ("throttle as it was seen", "throttles as they were seen"),
    "observe.Capabilities": ("record of what it can do", "records of what it can do"),
    "oncall.Finding": ("finding", "findings"),
    "oncall.Judgement": ("record that it was judged", "records that it was judged"),
    "reassign.Execution": (
        "run of a change, with its throttles to be cleared",
        "runs of changes, with their throttles",
    ),
    "jobs.Job": ("connection test or other job", "connection tests and other jobs"),
    "observe.CollectorRun": ("collector", "collectors"),
    "observe.Collection": ("record of a refresh", "records of refreshes"),
    "observe.ClusterState": ("row of figures of the whole cluster", "rows of figures of the whole cluster"),
    "observe.TopicState": ("topic", "topics"),
    "observe.BrokerState": ("broker", "brokers"),
    "observe.BrokerWeights": ("broker's sizes", "brokers' sizes"),
    "observe.ReassignmentSnapshot": ("reassignment as it was seen", "reassignments as they were seen"),
    "observe.Series": ("line of history", "lines of history"),
    "observe.CatchUp": ("speed of a replica as it was measured", "speeds of replicas as they were measured"),
    "observe.Workload": ("topic's workload", "topics' workloads"),
    "observe.DiskForecast": ("forecast of a log directory", "forecasts of log directories"),
    "observe.VerdictCount": ("count of compared verdicts", "counts of compared verdicts"),
    "observe.VerdictDifference": ("verdict that differed", "verdicts that differed"),
    "observe.QuorumSnapshot": ("answer of the controller quorum", "answers of the controller quorum"),
}


@dataclass(frozen=True, slots=True)
class Belonging:
    """How many rows of one kind go with a cluster."""

    rows: int
    words: str


@dataclass(frozen=True, slots=True)
class Stays:
    """What kafkadash did in Kafka that nobody would undo if the cluster were removed now.

    ``refused``: why it must not be, in a sentence, '' where it may; ``left``: what stays there then, in sentences.
    """

    refused: str = ""
    left: tuple[str, ...] = ()


_told_by: list[Callable[[Cluster], Stays]] = []
_stopped_by: list[Callable[[Cluster], None]] = []


def ask_before_removal(tells: Callable[[Cluster], Stays], stops: Callable[[Cluster], None]) -> None:
    """For the apps above, which know what they did in a cluster: ``tells`` is asked whenever one is to be removed.

    ``stops`` comes before it in the transaction of the removal: of what is at work there nothing more can be written,
    and what was being written is waited for.
    """
    _told_by.append(tells)
    _stopped_by.append(stops)


def stays_in_kafka(cluster: Cluster) -> Stays:
    """What all of them say, together."""
    told = [tells(cluster) for tells in _told_by]
    refused = " ".join(each.refused for each in told if each.refused)
    return Stays(refused, tuple(sentence for each in told for sentence in each.left))


def belongings(cluster: Cluster) -> list[Belonging]:
    """What kafkadash would forget with this cluster, kinds without rows left out."""
    found = []
    for model, field in _relations():
        rows = model._base_manager.filter(**{field: cluster}).count()
        if rows:
            meta = model._meta
            one, many = _WORDS.get(meta.label, (str(meta.verbose_name), str(meta.verbose_name_plural)))
            found.append(Belonging(rows, one if rows == 1 else many))
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
        raise Refused({"typed_name": [message_text(ClusterErrorCode.NAME_TO_CONFIRM, cluster=cluster.name)]})
    with transaction.atomic():
        for stops in _stopped_by:
            stops(cluster)
        stays = stays_in_kafka(cluster)
        if stays.refused:
            raise Refused({"": [stays.refused]})
        # Collectors lock their run before the cluster's row: the same order here, or both would wait for each other.
        for model, field in _relations():
            if model._meta.label == "observe.CollectorRun":
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
