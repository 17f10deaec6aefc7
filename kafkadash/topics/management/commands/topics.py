"""``manage.py topics``: topics as stored, in the lines of ``kafka-topics``, and proposals to change them."""

from __future__ import annotations

import base64
import random
import uuid
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafkadash.accounts.errors import command_error
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import CollectorKind, TopicState
from kafkadash.monitoring.stored_commands import BAD, add_output_options, find_cluster, find_freshness, join_brokers
from kafkadash.short_runs.commands import ItemCommand, add_proposal_options
from kafkadash.topics.creation import KIND as CREATION
from kafkadash.topics.creation import load_brokers
from kafkadash.topics.deletion import KIND as DELETION
from kafkadash.topics.errors import TopicErrorCode
from kafkadash.topics.forms import BALANCED, KIP_36, TYPED, TopicsForm
from kafkadash.topics.growth import KIND as GROWTH


class Command(ItemCommand):
    help = (
        "Lists and describes topics, from collected data, and proposes to create, grow or delete them. "
        "Exit code 2: bad input, or a topic is not known."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        lister = actions.add_parser("list", help="names of all topics")
        describe = actions.add_parser("describe", help="partitions, leaders, replicas, ISR and configs of topics")
        describe.add_argument("names", nargs="+", metavar="TOPIC")
        add_output_options(lister, describe)
        create = actions.add_parser("create", help="propose new topics")
        create.add_argument("names", nargs="+", metavar="TOPIC")
        create.add_argument("--partitions", metavar="N")
        create.add_argument("--replication-factor", metavar="N")
        create.add_argument("--replica-assignment", metavar="1:2,2:3", help="as of kafka-topics; instead of N and N")
        create.add_argument("--balanced", action="store_true", help="place by what brokers hold, not by KIP-36")
        create.add_argument("--start", metavar="N", help="KIP-36: place of the first leader; default: drawn")
        create.add_argument("--shift", metavar="N", help="KIP-36: first shift of followers; default: drawn")
        create.add_argument("--config", action="append", default=[], metavar="KEY=VALUE")
        grow = actions.add_parser("add-partitions", help="propose more partitions of a topic")
        grow.add_argument("name", metavar="TOPIC")
        grow.add_argument("--partitions", type=int, required=True, metavar="N", help="how many it has afterwards")
        delete = actions.add_parser("delete", help="propose to delete topics; --confirm: the name, or how many")
        delete.add_argument("names", nargs="+", metavar="TOPIC")
        add_proposal_options(create, grow, delete)

    def answer(self, options: Mapping[str, Any]) -> None:
        cluster = find_cluster(options["cluster"])
        match options["action"]:
            case "list":
                self._list(cluster, as_data=options["json"])
            case "describe":
                self._describe(cluster, options["names"], as_data=options["json"])
            case "create":
                self._create(cluster, options)
            case "add-partitions":
                self._grow(cluster, options)
            case _:
                self._delete(cluster, options)

    def _list(self, cluster: Cluster, *, as_data: bool) -> None:
        freshness = find_freshness(cluster, CollectorKind.METADATA)
        names = list(TopicState.objects.filter(cluster=cluster).order_by("name").values_list("name", flat=True))
        if as_data:
            self.print_json(freshness, {"topics": names})
            return
        self.print_age(freshness)
        for name in names:
            self.stdout.write(name)

    def _describe(self, cluster: Cluster, names: Sequence[str], *, as_data: bool) -> None:
        freshness = find_freshness(cluster, CollectorKind.METADATA)
        topics = find_topics(cluster, names)
        if as_data:
            self.print_json(freshness, {"topics": [describe_topic(topic) for topic in topics]})
            return
        self.print_age(freshness)
        for topic in topics:
            for line in format_topic(topic):
                self.stdout.write(line)

    def _create(self, cluster: Cluster, options: Mapping[str, Any]) -> None:
        brokers = load_brokers(cluster)
        draw = max(1, len(brokers.racks))
        assignment = options["replica_assignment"]
        typed = {
            "names": "\n".join(options["names"]),
            "placement": TYPED if assignment is not None else BALANCED if options["balanced"] else KIP_36,
            "partitions": options["partitions"] or "",
            "factor": options["replication_factor"] or "",
            "start": options["start"] or str(random.randrange(draw)),
            "shift": options["shift"] or str(random.randrange(draw)),
            "assignment": assignment or "",
            "configs": "\n".join(options["config"]),
        }
        form = TopicsForm(typed, cluster=cluster, brokers=brokers)
        if not form.is_valid():
            self.refuse_form(cluster, form)
        number = len(options["names"])
        title = f"Create topic {options['names'][0]}" if number == 1 else f"Create {count_topics(number)}"
        self.propose(cluster, CREATION, form.cleaned_data, title, options)

    def _grow(self, cluster: Cluster, options: Mapping[str, Any]) -> None:
        [topic] = find_topics(cluster, [options["name"]])
        wanted = {"topic": topic.name, "count": options["partitions"]}
        self.propose(cluster, GROWTH, wanted, f"Add partitions to {topic.name}", options)

    def _delete(self, cluster: Cluster, options: Mapping[str, Any]) -> None:
        topics = find_topics(cluster, options["names"])
        kept = next((topic.name for topic in topics if not topic.deletable), None)
        if kept is not None:
            raise command_error(TopicErrorCode.NOT_DELETABLE, cluster=cluster.name, topic=kept, returncode=BAD)
        title = f"Delete topic {topics[0].name}" if len(topics) == 1 else f"Delete {count_topics(len(topics))}"
        self.propose(cluster, DELETION, {"topic_ids": [topic.topic_id for topic in topics]}, title, options)


def find_topics(cluster: Cluster, names: Sequence[str]) -> list[TopicState]:
    """Return the stored topics in the order of their names. Raises CodedCommandError for one that is not stored."""
    stored = {row.name: row for row in TopicState.objects.filter(cluster=cluster, name__in=names)}
    missing = next((name for name in names if name not in stored), None)
    if missing is not None:
        raise command_error(CollectionErrorCode.TOPIC_NOT_SEEN, cluster=cluster.name, topic=missing, returncode=BAD)
    return [stored[name] for name in sorted(stored)]


def count_topics(number: int) -> str:
    return choose_plural("# topic|# topics", number)


def format_topic(topic: TopicState) -> Iterator[str]:
    """Format a topic like ``kafka-topics --describe`` (TopicCommand.TopicDescription and PartitionDescription)."""
    configs = ",".join(f"{key}={'' if value is None else value}" for key, value in sorted(_list_configs(topic).items()))
    fields = {
        "Topic": topic.name,
        "TopicId": _format_topic_id(topic),
        "PartitionCount": topic.partition_count,
        "ReplicationFactor": topic.replication_factor,
        "Configs": "unknown" if topic.config is None else configs,
    }
    yield "\t".join(f"{name}: {value}" for name, value in fields.items())
    for partition, leader, _, replicas, isr, _ in topic.partitions:
        led = "none" if leader is None else leader
        row = {"Topic": topic.name, "Partition": partition, "Leader": led}
        row |= {"Replicas": join_brokers(replicas), "Isr": join_brokers(isr)}
        yield "\t" + "\t".join(f"{name}: {value}" for name, value in row.items())


def describe_topic(topic: TopicState) -> dict[str, Any]:
    """Return a topic for programs; null where nobody knows. ``configs`` are those that are not Kafka's defaults."""
    return {
        "topic": topic.name,
        "topic_id": None if topic.topic_id == topic.name else topic.topic_id,
        "internal": topic.internal,
        "partition_count": topic.partition_count,
        "replication_factor": topic.replication_factor,
        "size_bytes": topic.size_bytes,
        "configs": None if topic.config is None else _list_configs(topic),
        "partitions": [
            {"partition": partition, "leader": leader, "leader_epoch": epoch, "replicas": replicas, "isr": isr}
            for partition, leader, epoch, replicas, isr, _ in topic.partitions
        ],
    }


def _list_configs(topic: TopicState) -> dict[str, str | None]:
    return {key: value for key, (value, _) in (topic.config or {}).items()}


def _format_topic_id(topic: TopicState) -> str:
    """Return the id as Kafka's tools print it (class Uuid): url-safe base64 without padding."""
    try:
        return base64.urlsafe_b64encode(uuid.UUID(topic.topic_id).bytes).decode().rstrip("=")
    except ValueError:  # before Kafka 2.8 a topic has none
        return "none"
