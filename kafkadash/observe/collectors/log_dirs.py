"""Log directories: how many bytes every replica takes, and how full every directory is."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from kafkadash.clusters.models import Cluster
from kafkadash.domain.topology import two_digits
from kafkadash.kafka.hidden_topics import hidden_sentence, hidden_topics
from kafkadash.kafka.port import KafkaFailure, LogDir, LogDirs
from kafkadash.observe.collectors.disk_facts import disk_facts
from kafkadash.observe.collectors.metadata import store_figures
from kafkadash.observe.collectors.reading import Asking, Reading, moment, refuse_nothing, silent
from kafkadash.observe.collectors.writing import portioned, update_rows
from kafkadash.observe.lease import Stamp, one_writer_of_shapes
from kafkadash.observe.models import BrokerState, BrokerWeights, TopicState

_Sizes = dict[str, dict[int, int]]


def read(asking: Asking) -> Reading:
    """Asks every broker for its directories. A broker that does not answer keeps its last row, with its age."""
    asking.step()
    brokers = asking.admin.describe_cluster(deadline=asking.deadline).brokers
    fenced = {b.id for b in brokers if b.fenced}
    asking.step()
    answer = asking.admin.log_dirs([b.id for b in brokers if not b.fenced], deadline=asking.deadline)
    refuse_nothing(answer.brokers, answer.errors)
    hidden = _hidden_topics(asking, answer)
    taken_at = moment(answer.taken_at)
    weights: list[BrokerWeights] = []
    topic_bytes: Counter[str] = Counter()
    for broker, dirs in answer.brokers.items():  # one after the other: all sizes at once would fill the memory
        sizes = _sizes(dirs)
        topic_bytes.update({topic: sum(partitions.values()) for topic, partitions in sizes.items()})
        weights.append(_weights(asking.cluster, broker, dirs, sizes, taken_at))
    whole = not fenced and not answer.errors and not any(d.error for dirs in answer.brokers.values() for d in dirs)
    # A sum over some of the directories would look like a topic that shrank: it is stored only when all answered.
    sizes_changed = _changed_sizes(asking.cluster, topic_bytes, answer.brokers) if whole else {}

    def write(_: Stamp) -> None:
        one_writer_of_shapes(asking.cluster.pk)
        # That nothing is hidden is known only of disks that were all read.
        if hidden or (whole and hidden is not None):
            store_figures(asking.cluster, {"hidden_topics": len(hidden)})
        BrokerWeights.objects.bulk_create(
            weights,
            update_conflicts=True,
            unique_fields=["cluster", "broker_id"],
            update_fields=["format", "data", "dirs", "replica_bytes", "taken_at"],
        )

    def write_sizes(changes: Mapping[int, Mapping[str, object]]) -> None:
        one_writer_of_shapes(asking.cluster.pk)
        update_rows(TopicState, changes)

    return Reading(
        taken_at=taken_at,
        portions=[partial(write_sizes, part) for part in portioned(sizes_changed)],
        rows=sum(len(d.replicas) for dirs in answer.brokers.values() for d in dirs),
        write=write,
        not_answered=sorted(silent(answer.errors) | fenced),
        errors=[*_errors(answer, fenced), *([hidden_sentence(hidden)] if hidden else [])],
        facts=disk_facts(asking.cluster, answer.brokers, taken_at),
    )


def _weights(cluster: Cluster, broker: int, dirs: Sequence[LogDir], sizes: _Sizes, taken_at: datetime) -> BrokerWeights:
    return BrokerWeights(
        cluster=cluster,
        broker_id=broker,
        data=zlib.compress(json.dumps(sizes, separators=(",", ":")).encode(), 1),
        dirs=[_directory(d) for d in dirs],
        replica_bytes=sum(sum(partitions.values()) for partitions in sizes.values()),
        taken_at=taken_at,
    )


def _errors(answer: LogDirs, fenced: Collection[int]) -> Iterator[str]:
    """A sentence for each broker, and for each directory, without figures."""
    yield from (f"broker {broker}: {error.text}" for broker, error in sorted(answer.errors.items()))
    yield from (f"broker {broker} is fenced and was not asked" for broker in sorted(fenced))
    for broker, dirs in sorted(answer.brokers.items()):
        yield from (f"broker {broker}, {d.path}: {d.error.text}" for d in dirs if d.error)


def _hidden_topics(asking: Asking, answer: LogDirs) -> list[str] | None:
    """Topics with replicas on the disks that the metadata keeps from us; None where that was not found out."""
    known = set(TopicState.objects.filter(cluster=asking.cluster).values_list("name", flat=True))
    if not known and not BrokerState.objects.filter(cluster=asking.cluster).exists():
        return None  # the metadata was never read
    on_disk = {replica.topic for dirs in answer.brokers.values() for each in dirs for replica in each.replicas}
    if not on_disk - known:
        return []
    asking.step()
    try:
        return hidden_topics(asking.admin, on_disk - known, deadline=asking.deadline)
    except KafkaFailure:  # the sizes are good without it, and the next refresh asks again
        return None


def _sizes(dirs: Sequence[LogDir]) -> _Sizes:
    """topic → partition → bytes of the current replicas; copies on their way to another disk are left out."""
    sizes: _Sizes = {}
    for directory in dirs:
        for replica in directory.replicas:
            if not replica.future:
                sizes.setdefault(replica.topic, {})[replica.partition] = replica.size_bytes
    return sizes


def _directory(directory: LogDir) -> dict[str, object]:
    """``copies``: replicas on their way to this directory from another one of the same broker."""
    return {
        "path": directory.path,
        "total_bytes": directory.total_bytes,
        "usable_bytes": directory.usable_bytes,
        "replica_bytes": sum(r.size_bytes for r in directory.replicas),
        "replicas": len(directory.replicas),
        "copies": sum(r.future for r in directory.replicas),
        "cordoned": directory.cordoned,
        "error": directory.error.text if directory.error else None,
    }


def _changed_sizes(
    cluster: Cluster, topic_bytes: Counter[str], answered: Collection[int]
) -> dict[int, dict[str, object]]:
    """Primary key → new size, rounded. Nothing while a broker that hosts replicas is away from the cluster."""
    away = BrokerState.objects.filter(cluster=cluster, replicas__gt=0).exclude(broker_id__in=answered)
    if away.exists():
        return {}
    changed: dict[int, dict[str, object]] = {}
    for pk, name, before in TopicState.objects.filter(cluster=cluster).values_list("pk", "name", "size_bytes"):
        size = two_digits(topic_bytes[name]) if name in topic_bytes else None
        if size != before:
            changed[pk] = {"size_bytes": size}
    return changed
