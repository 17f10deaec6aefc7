"""Log directories: how many bytes every replica takes, and how full every directory is."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence

from kafkadash.domain.topology import two_digits
from kafkadash.kafka.port import LogDir
from kafkadash.observe.collectors.reading import Asking, Reading, moment
from kafkadash.observe.lease import Stamp
from kafkadash.observe.models import BrokerWeights, TopicState


def read(asking: Asking) -> Reading:
    """Asks every broker for its directories. A broker that does not answer keeps its last row, with its age."""
    asking.step()
    brokers = asking.admin.describe_cluster(deadline=asking.deadline).brokers
    asking.step()
    answer = asking.admin.log_dirs([b.id for b in brokers if not b.fenced], deadline=asking.deadline)
    taken_at = moment(answer.taken_at)
    weights = []
    topic_bytes: Counter[str] = Counter()
    for broker, dirs in answer.brokers.items():
        sizes = _sizes(dirs)
        for topic, partitions in sizes.items():
            topic_bytes[topic] += sum(partitions.values())
        weights.append(
            BrokerWeights(
                cluster=asking.cluster,
                broker_id=broker,
                data=zlib.compress(json.dumps(sizes, separators=(",", ":")).encode()),
                dirs=[_directory(d) for d in dirs],
                replica_bytes=sum(sum(p.values()) for p in sizes.values()),
                taken_at=taken_at,
            )
        )
    # A sum over some of the brokers would look like a topic that shrank, so it is stored only when all answered.
    changed_topics = [] if answer.errors else _changed_sizes(asking.cluster.pk, topic_bytes)

    def write(_: Stamp) -> None:
        BrokerWeights.objects.bulk_create(
            weights,
            update_conflicts=True,
            unique_fields=["cluster", "broker_id"],
            update_fields=["format", "data", "dirs", "replica_bytes", "taken_at"],
        )
        TopicState.objects.bulk_update(changed_topics, ["size_bytes"], batch_size=1000)

    return Reading(
        taken_at=taken_at,
        rows=sum(len(d.replicas) for dirs in answer.brokers.values() for d in dirs),
        write=write,
        not_answered=sorted(answer.errors),
        errors=[f"broker {broker}: {error.message}" for broker, error in sorted(answer.errors.items())]
        + [
            f"broker {broker}, {d.path}: {d.error.message}"
            for broker, dirs in sorted(answer.brokers.items())
            for d in dirs
            if d.error
        ],
    )


def _sizes(dirs: Sequence[LogDir]) -> dict[str, dict[int, int]]:
    """topic → partition → bytes of the current replicas; copies on their way to another disk are left out."""
    sizes: dict[str, dict[int, int]] = {}
    for directory in dirs:
        for replica in directory.replicas:
            if not replica.future:
                sizes.setdefault(replica.topic, {})[replica.partition] = replica.size_bytes
    return sizes


def _directory(directory: LogDir) -> dict[str, object]:
    return {
        "path": directory.path,
        "total_bytes": directory.total_bytes,
        "usable_bytes": directory.usable_bytes,
        "replica_bytes": sum(r.size_bytes for r in directory.replicas),
        "cordoned": directory.cordoned,
        "error": directory.error.message if directory.error else None,
    }


def _changed_sizes(cluster_id: int, topic_bytes: Counter[str]) -> list[TopicState]:
    changed = []
    for topic in TopicState.objects.filter(cluster_id=cluster_id).only("name", "size_bytes"):
        size = two_digits(topic_bytes[topic.name]) if topic.name in topic_bytes else None
        if size != topic.size_bytes:
            topic.size_bytes = size
            changed.append(topic)
    return changed
