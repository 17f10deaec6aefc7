"""Configs of a fake cluster: Kafka's defaults, what is set where, and DescribeConfigs' answer to it.

As kafka.server.ConfigHelper tells them: a topic's own value beats that of the cluster, a broker's own that of the
default for all. A broker's replication rates have no default: what is not set is absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
TOPIC_TYPE, BROKER_TYPE = 2, 4
TOPIC_SOURCE, BROKER_SOURCE, CLUSTER_SOURCE, STATIC_SOURCE, DEFAULT_SOURCE = 1, 2, 3, 4, 5

TOPIC_DEFAULTS: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.type": "producer",
    "compression.zstd.level": "3",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
BROKER_DEFAULTS: Mapping[str, str] = {
    "log.cleaner.threads": "1",
    "message.max.bytes": "1048588",
    "min.insync.replicas": "1",
    "num.io.threads": "8",
    "replica.fetch.max.bytes": "1048576",
}
SENSITIVE = "ssl.keystore.password"


@dataclass(slots=True)
class FakeConfigs:
    """What is set: of topics, of single brokers, for all brokers. Change it through ``ClusterModel.set_config``."""

    topics: dict[str, dict[str, str]] = field(default_factory=dict)
    brokers: dict[int, dict[str, str]] = field(default_factory=dict)
    default: dict[str, str] = field(default_factory=dict)
    static: dict[int, dict[str, str]] = field(default_factory=dict)

    def of_topic(self, name: str) -> dict[str, tuple[str, int]]:
        """Config name → (value, source)."""
        entries = {key: (value, DEFAULT_SOURCE) for key, value in TOPIC_DEFAULTS.items()}
        entries.update({k: (v, CLUSTER_SOURCE) for k, v in self.default.items() if k in TOPIC_DEFAULTS})
        entries.update({k: (v, TOPIC_SOURCE) for k, v in self.topics.get(name, {}).items()})
        return entries

    def of_broker(self, broker: int, rack: str | None) -> dict[str, tuple[str | None, int]]:
        entries: dict[str, tuple[str | None, int]] = {k: (v, DEFAULT_SOURCE) for k, v in BROKER_DEFAULTS.items()}
        entries["node.id"] = (str(broker), STATIC_SOURCE)
        entries[SENSITIVE] = (None, STATIC_SOURCE)
        if rack is not None:
            entries["broker.rack"] = (rack, STATIC_SOURCE)
        entries.update({k: (v, STATIC_SOURCE) for k, v in self.static.get(broker, {}).items()})
        entries.update({k: (v, CLUSTER_SOURCE) for k, v in self.default.items()})
        entries.update({k: (v, BROKER_SOURCE) for k, v in self.brokers.get(broker, {}).items()})
        return entries

    def of_all_brokers(self) -> dict[str, tuple[str, int]]:
        return {k: (v, CLUSTER_SOURCE) for k, v in self.default.items()}


def picked(
    entries: Mapping[str, tuple[str | None, int]], keys: Iterable[str] | None
) -> list[tuple[str, str | None, int]]:
    """(name, value, source) of the asked keys; of all where none is named (also with an empty list)."""
    wanted = frozenset(keys or ())
    return [(name, *entry) for name, entry in entries.items() if not wanted or name in wanted]
