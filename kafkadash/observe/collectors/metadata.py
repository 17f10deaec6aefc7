"""Topics and brokers: the shape of the cluster, written only where it changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import RegisteredTwice, first_registered, remember_double, said_of_double
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.domain.messages import message_text
from kafkadash.kafka.port import ClusterDescription
from kafkadash.observe.collectors.brokers import BROKER_FIELDS, compare_brokers
from kafkadash.observe.collectors.reading import Asking, Reading, moment
from kafkadash.observe.collectors.topics import TOPIC_FIELDS, Topics, compare_topics
from kafkadash.observe.lease import Stamp, one_writer_of_shapes
from kafkadash.observe.models import BrokerState, ClusterState, TopicState

_ROWS_AT_ONCE = 400  # topics that a short transaction can write


class AnotherCluster(Exception):
    """The address leads to a Kafka cluster with a different id than the one that was registered."""

    kind = FailureKind.ANOTHER_CLUSTER


def read(asking: Asking) -> Reading:
    asking.step()
    described = asking.admin.describe_cluster(deadline=asking.deadline)
    asking.step()
    metadata = asking.admin.metadata(deadline=asking.deadline)
    cluster, taken_at = asking.cluster, moment(metadata.taken_at)
    other_id = described.cluster_id if cluster.kafka_id not in ("", described.cluster_id) else ""
    if other_id:
        _remember_conflict(cluster, other_id)
        raise AnotherCluster(other_cluster_sentence(cluster, other_id))
    first = first_registered(cluster, described.cluster_id)
    if (first and first.pk) != cluster.same_as_id:
        remember_double("collector", cluster, first)
    if first is not None:
        raise RegisteredTwice(said_of_double(cluster, first))
    topics = compare_topics(cluster, metadata.topics, described.brokers, taken_at)
    brokers = compare_brokers(cluster, described.brokers, metadata.brokers, topics, taken_at)
    figures = _cluster_figures(described, topics)

    portions = _portions(cluster, topics) if len(topics.changed) > _ROWS_AT_ONCE else []

    def write(_: Stamp) -> None:
        one_writer_of_shapes(cluster.pk)
        _learn_identity(cluster, described)
        if not portions:
            _write_topics(topics.gone, topics.changed)
        BrokerState.objects.bulk_create(
            brokers, update_conflicts=True, unique_fields=["cluster", "broker_id"], update_fields=BROKER_FIELDS
        )
        store_figures(cluster, figures)

    return Reading(
        taken_at=taken_at, rows=topics.health.partitions, write=write, errors=topics.errors, portions=portions
    )


def _portions(cluster: Cluster, topics: Topics) -> list[Callable[[], None]]:
    """What is gone goes first, so that there are never two topics of one name."""
    parts: list[tuple[list[int], list[TopicState]]] = [(topics.gone, [])]
    starts = range(0, len(topics.changed), _ROWS_AT_ONCE)
    parts += [([], topics.changed[start : start + _ROWS_AT_ONCE]) for start in starts]

    def portion(gone: list[int], changed: list[TopicState]) -> None:
        one_writer_of_shapes(cluster.pk)
        _write_topics(gone, changed)

    return [partial(portion, *part) for part in parts]


def _write_topics(gone: list[int], changed: list[TopicState]) -> None:
    if gone:
        TopicState.objects.filter(pk__in=gone).delete()
    TopicState.objects.bulk_create(
        changed, update_conflicts=True, unique_fields=["cluster", "topic_id"], update_fields=TOPIC_FIELDS
    )


def store_figures(cluster: Cluster, figures: Mapping[str, object]) -> None:
    """Writes the cluster's row where one of these figures differs from it."""
    known = ClusterState.objects.filter(cluster=cluster).values(*figures).first()
    if known is None or known != figures:
        ClusterState.objects.update_or_create(cluster=cluster, defaults=dict(figures))


def other_cluster_sentence(cluster: Cluster, other_id: str) -> str:
    return message_text(
        ClusterErrorCode.OTHER_CLUSTER, cluster=cluster.name, answered=other_id, expected=cluster.kafka_id
    )


def _remember_conflict(cluster: Cluster, other_id: str) -> None:
    """Makes the collectors of the other kinds refuse too; one column, so it needs no lease."""
    Cluster.objects.filter(pk=cluster.pk).update(other_kafka_id=other_id)


def _learn_identity(cluster: Cluster, described: ClusterDescription) -> None:
    if not cluster.kafka_id:
        Cluster.objects.filter(pk=cluster.pk, kafka_id="").update(kafka_id=described.cluster_id)
    if cluster.other_kafka_id:
        Cluster.objects.filter(pk=cluster.pk).update(other_kafka_id="")


def _cluster_figures(described: ClusterDescription, topics: Topics) -> dict[str, int | None]:
    present = {b.id for b in described.brokers}
    return {
        "brokers": len(present),
        "brokers_fenced": sum(1 for b in described.brokers if b.fenced),
        "brokers_gone": len(topics.replicas.keys() - present),
        "brokers_without_rack": sum(1 for b in described.brokers if b.rack is None),
        "racks": len({b.rack for b in described.brokers if b.rack is not None}),
        "topics": topics.count,
        "partitions": topics.health.partitions,
        "offline_partitions": topics.health.offline,
        "under_replicated": topics.health.under_replicated,
        "under_replicated_moving": topics.health.explained_by_move,
        "offline_replicas": topics.health.offline_replicas,
        "preferred_leaders": topics.health.preferred_leaders,
        "under_min_isr": topics.health.under_min_isr,
        "at_min_isr": topics.health.at_min_isr,
        "at_min_isr_moving": topics.health.at_min_isr_moving,
        "rack_violations": topics.rack_violations,
    }
