"""Which replicas a broker hosts: from the packed partitions of all topics, and from its packed sizes."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db.models import BooleanField, F, Func, JSONField, QuerySet, Value

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import BrokerWeights, TopicState

_FLAT_OBJECT = r"\s*:\s*(\{[^{}]*\})"


class _Hosts(Func):
    """Whether a topic's packed partitions assign a replica to the broker; their element 3 holds the replicas."""

    function = "jsonb_path_exists"
    template = "%(function)s(%(expressions)s)"
    output_field = BooleanField()


def topics_hosted_by(cluster: Cluster, broker: int) -> QuerySet[TopicState]:
    """Topics with a replica on this broker, by the last metadata. PostgreSQL unpacks all topics that are left to it."""
    hosts = _Hosts(
        F("partitions"),
        Func(Value("$[*][3][*] ? (@ == $broker)"), template="%(expressions)s::jsonpath"),
        Value({"broker": broker}, JSONField()),
    )
    return TopicState.objects.filter(cluster=cluster).alias(hosted=hosts).filter(hosted=True)


def sizes_by_topic(weights: BrokerWeights) -> Mapping[str, Mapping[str, int]]:
    """Topic → partition, as text → bytes, of all replicas on one broker."""
    sizes: dict[str, dict[str, int]] = json.loads(zlib.decompress(weights.data))
    return sizes


def leader_sizes(cluster: Cluster, topic: str, leaders: Mapping[int, int | None]) -> dict[int, int]:
    """Partition → bytes of its leader's replica, where that broker was read; ``leaders``: partition → leader.

    Finds the topic in the text instead of reading all of it: on a large cluster a broker has thousands of topics.
    """
    brokers = {leader for leader in leaders.values() if leader is not None}
    name = re.compile(re.escape(json.dumps(topic)) + _FLAT_OBJECT)
    found: dict[int, Mapping[str, Any]] = {}
    for broker, data in _packed(cluster, brokers):
        match = name.search(zlib.decompress(data).decode())
        found[broker] = json.loads(match[1]) if match else {}
    sizes = {}
    for partition, leader in leaders.items():
        size = found.get(leader, {}).get(str(partition)) if leader is not None else None
        if size is not None:
            sizes[partition] = size
    return sizes


def _packed(cluster: Cluster, brokers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    rows = BrokerWeights.objects.filter(cluster=cluster, broker_id__in=list(brokers))
    for broker, data in rows.values_list("broker_id", "data"):
        yield broker, bytes(data)
