"""Topics and brokers: the shape of the cluster, written only where it changed."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.port import ClusterDescription
from kafkadash.observe.collectors.brokers import BROKER_FIELDS, compare_brokers
from kafkadash.observe.collectors.reading import Asking, Reading, moment
from kafkadash.observe.collectors.topics import TOPIC_FIELDS, Topics, compare_topics
from kafkadash.observe.lease import Stamp, one_writer_of_shapes
from kafkadash.observe.models import BrokerState, ClusterState, TopicState


class AnotherCluster(Exception):
    """The address leads to a Kafka cluster with a different id than the one that was registered."""


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
    topics = compare_topics(cluster, metadata.topics, described.brokers, taken_at)
    brokers = compare_brokers(cluster, described.brokers, metadata.brokers, topics, taken_at)
    figures = _cluster_figures(described, topics)

    def write(_: Stamp) -> None:
        one_writer_of_shapes(cluster.pk)
        _learn_identity(cluster, described)
        if topics.gone:
            TopicState.objects.filter(pk__in=topics.gone).delete()
        TopicState.objects.bulk_create(
            topics.changed,
            batch_size=1000,
            update_conflicts=True,
            unique_fields=["cluster", "topic_id"],
            update_fields=TOPIC_FIELDS,
        )
        BrokerState.objects.bulk_create(
            brokers, update_conflicts=True, unique_fields=["cluster", "broker_id"], update_fields=BROKER_FIELDS
        )
        store_figures(cluster, figures)

    return Reading(taken_at=taken_at, rows=topics.health.partitions, write=write, errors=topics.errors)


def store_figures(cluster: Cluster, figures: Mapping[str, object]) -> None:
    """Writes the cluster's row where one of these figures differs from it."""
    known = ClusterState.objects.filter(cluster=cluster).values(*figures).first()
    if known is None or known != figures:
        ClusterState.objects.update_or_create(cluster=cluster, defaults=dict(figures))


def other_cluster_sentence(cluster: Cluster, other_id: str) -> str:
    return (
        f"The address of {cluster.name} now leads to the Kafka cluster {other_id}, not to {cluster.kafka_id}."
        " Nothing of it is stored. Correct the address, or register the other cluster under a name of its own."
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
