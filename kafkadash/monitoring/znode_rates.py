"""Rates of brokers that are down, from their znodes.

In ZooKeeper mode, a broker reads its configs there when it starts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.clusters.secrets import SecretError
from kafkadash.core.messages import CodedMessage
from kafkadash.kafka.api import ConfigEntry, ConfigOrigin, ConfigResource, KafkaFailure
from kafkadash.kafka.connect import open_zookeeper
from kafkadash.kafka.throttles import RATES
from kafkadash.kafka.znodes import read_absent_configs

_LONGEST_S = 2.0
"""For ZooKeeper: what is read of live brokers waits for it."""


@dataclass(frozen=True, slots=True)
class ZNodeRates:
    """Rates of brokers that are not registered, as ``ResourceConfigs``; ``failure`` says why none could be read."""

    resources: Mapping[ConfigResource, Mapping[str, ConfigEntry]] = field(default_factory=dict)
    failure: CodedMessage | None = None


def read_znode_rates(cluster: Cluster, brokers: Collection[int], deadline: float) -> ZNodeRates:
    """Ask ZooKeeper, where the cluster has one, about those of the brokers that are not registered there."""
    if not brokers or cluster.mode != ClusterMode.ZOOKEEPER or not cluster.zookeeper:
        return ZNodeRates()
    try:
        connection = cluster.zookeeper_connection()
        assert connection is not None
        with open_zookeeper(connection, deadline=min(_LONGEST_S, deadline)) as session:
            found = read_absent_configs(session, brokers)
    except (KafkaFailure, SecretError) as error:
        return ZNodeRates(failure=error.message)
    return ZNodeRates({ConfigResource.broker(broker): _keep_rates(configs) for broker, configs in found.items()})


def _keep_rates(configs: Mapping[str, str]) -> dict[str, ConfigEntry]:
    return {
        key: ConfigEntry(key, configs[key], ConfigOrigin.DYNAMIC_BROKER_CONFIG, sensitive=False, read_only=False)
        for key in RATES
        if key in configs
    }
