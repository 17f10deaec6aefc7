"""The kind of change "broker-unregister": a stopped, empty broker is taken out of the cluster (UnregisterBroker 64).

Kafka unregisters any broker, also one that is alive or hosts replicas. So an item is ready only where the broker is
fenced, no partition lists it among its replicas, and no reassignment adds it. It is reached when the broker is not
registered. There is no rollback: a broker registers itself when it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Q

from kafkadash.broker_life.errors import BrokerLifeCheckTitle, BrokerLifeErrorCode
from kafkadash.broker_life.reasons import (
    AnotherAddress,
    BrokerGetsReplicas,
    BrokerHostsReplicas,
    BrokerReasonCode,
    TopicsKeptBack,
)
from kafkadash.changes.rights import NeededRight
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason, PlainReason, coded, reason_message
from kafkadash.kafka.api import (
    BROKER_ID_NOT_REGISTERED,
    QUORUM_TOPIC,
    BrokerInfo,
    ItemChanged,
    WholeClient,
    hidden_topics,
)
from kafkadash.monitoring.brokers import sizes_by_topic
from kafkadash.monitoring.models import BrokerState, BrokerWeights, CollectorKind, MoveOutcome, ReassignmentSnapshot
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import Items, ItemWords, PlannedItems, ShortKind, doubt_refusals, name_answers
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState

KIND = "broker-unregister"
MAYBE_REGISTERED = Q(gone_at=None) | Q(fenced=None)
"""A cluster that does not tell which brokers are fenced does not list them either."""


def plan_unregister(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan to unregister one ``broker``, where it is stopped and empty. Two queries."""
    subject = f"broker {wanted['broker']}"
    row = BrokerState.objects.filter(MAYBE_REGISTERED, cluster=cluster, broker_id=wanted["broker"]).first()
    fault = find_stored_fault(cluster, row) if row else PlainReason(BrokerReasonCode.NOT_REGISTERED)
    if row is None or fault is not None:
        return PlannedItems([], [coded(BrokerLifeErrorCode.DOES_NOT_FIT, item=subject, why=reason_message(fault))])
    content = {"broker": row.broker_id, "host": row.host, "port": row.port, "rack": row.rack}
    return PlannedItems([PlannedItem(subject, content)])


def find_fault(fenced: bool | None, adding: int, hosted: int, hidden: int) -> CodedReason | None:
    """Return why a registered broker cannot be unregistered, None where it can.

    Replicas that a reassignment adds count among those that a broker hosts, so these come first.
    """
    if not fenced:
        return PlainReason(BrokerReasonCode.FENCED_UNKNOWN if fenced is None else BrokerReasonCode.ALIVE)
    if adding:
        return BrokerGetsReplicas(adding)
    if hosted:
        return BrokerHostsReplicas(hosted)
    return TopicsKeptBack(hidden) if hidden else None


def find_stored_fault(cluster: Cluster, row: BrokerState) -> CodedReason | None:
    """Return why a broker cannot be unregistered, from stored rows. One query.

    Whether topics are hidden is asked of Kafka: the stored figure stays while any disk is not read.
    """
    return find_fault(row.fenced, count_adding(cluster, row.broker_id), row.replicas, hidden=0)


def count_adding(cluster: Cluster, broker: int) -> int:
    """Count the partitions whose reassignments add a broker, as stored. One query."""
    running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING)
    return running.filter(adding__contains=[broker]).count()


def count_on_disk(weights: BrokerWeights) -> dict[str, int]:
    """Count the replicas of each topic on the disks of a broker, as these were last read."""
    sizes = sizes_by_topic(weights)
    return {topic: len(partitions) for topic, partitions in sizes.items() if topic != QUORUM_TOPIC}


def judge_unregister(item: PlannedItem, broker: BrokerInfo, adding: int, hosted: int, hidden: int) -> ItemReading:
    """Compare an item with the cluster, where the broker is registered."""
    address, expected = f"{broker.host}:{broker.port}", f"{item.content['host']}:{item.content['port']}"
    moved = AnotherAddress(address, expected) if broker.fenced and address != expected else None
    reason = moved or find_fault(broker.fenced, adding, hosted, hidden)
    return ItemReading(ReadingState.UNFIT if reason else ReadingState.READY, reason, {"fenced": broker.fenced})


def read_unregister(cluster: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read the registered brokers, then what moves, and all topics. Raises KafkaFailure.

    The item is left out where a topic was not read.
    """
    [item] = items
    id_, part = item.content["broker"], deadline / 4
    described = client.describe_cluster(deadline=part).brokers
    broker = next((each for each in described if each.id == id_), None)
    if broker is None:
        tells_fenced = all(each.fenced is not None for each in described)
        unknown = ItemReading(ReadingState.UNFIT, PlainReason(BrokerReasonCode.FENCED_UNKNOWN))
        return {item.subject: ItemReading(ReadingState.REACHED) if tells_fenced else unknown}
    adding = sum(id_ in row.adding for row in client.list_reassignments(deadline=part).rows)
    topics = client.metadata(deadline=part).topics
    if any(topic.error for topic in topics):
        return {}
    hosted = sum(id_ in partition.replicas for topic in topics for partition in topic.partitions)
    weights = BrokerWeights.objects.filter(cluster=cluster, broker_id=id_).first()
    suspects = count_on_disk(weights).keys() - {topic.name for topic in topics} if weights else ()
    hidden = len(hidden_topics(client, suspects, deadline=part))
    return {item.subject: judge_unregister(item, broker, adding, hosted, hidden)}


def send_unregister(client: WholeClient, items: Items, deadline: float) -> ItemChanged[str]:
    """Send one UnregisterBroker request (64).

    A broker that Kafka no longer knows may have been unregistered by an earlier request whose answer was lost.
    """
    [item] = items
    broker = item.content["broker"]
    answer = client.unregister_broker(broker, deadline=deadline)
    return doubt_refusals(name_answers(answer, {broker: (item.subject,)}), BROKER_ID_NOT_REGISTERED)


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why brokers cannot be unregistered, from stored rows. One that is gone needs nothing. Two queries."""
    ids = [item.content["broker"] for item in items]
    rows = BrokerState.objects.filter(MAYBE_REGISTERED, cluster=cluster, broker_id__in=ids)
    subjects = {item.content["broker"]: item.subject for item in items}
    found = {subjects[row.broker_id]: find_stored_fault(cluster, row) for row in rows}
    return {subject: fault for subject, fault in found.items() if fault is not None}


def describe_unregister(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    content = item.content
    where = f"{content['host']}:{content['port']}"
    where += "" if content["rack"] is None else f", rack {content['rack']}"
    return ItemWords("not registered" if before == {} else f"fenced; {where}", "unregistered")


def describe_start(items: Items) -> list[str]:
    [item] = items
    return [
        f"Broker {item.content['broker']} is taken out of the cluster. It is fenced and hosts no replica.",
        "There is no rollback: start the broker, and it registers itself again.",
    ]


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Unregistering of a broker",
            noun="# broker|# brokers",
            batch=1,
            plan=plan_unregister,
            read=read_unregister,
            send=send_unregister,
            facts=(CollectorKind.METADATA, CollectorKind.REASSIGNMENTS),
            title=BrokerLifeCheckTitle.UNREGISTER_FITS,
            find_faults=find_faults,
            risk=lambda _, items: RiskFacts(0.0, 0.0, unregistered_brokers=len(items)),
            rights=lambda _: [NeededRight("Alter")],
            words=describe_unregister,
            start_words=describe_start,
            columns=("Broker", "Now", "Planned"),
            confirm=lambda items: str(items[0].content["broker"]),
        )
    )
