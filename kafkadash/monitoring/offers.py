"""Features that not every release of Kafka has, and whether a cluster offers them, by its ``Capabilities``.

A feature needs an API at some version on every broker, a feature level (KIP-584) in force, or both. What a cluster
lacks is named with the release that has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.models import Capabilities


class KafkaFeature(StrEnum):
    QUORUM_LAG = "quorum-lag"
    FENCED_BROKERS = "fenced-brokers"
    UNREGISTER = "unregister"
    FACTOR_GUARD = "factor-guard"
    ELIGIBLE_REPLICAS = "eligible-replicas"
    CONSUMER_PROTOCOL = "consumer-protocol"
    SHARE_GROUPS = "share-groups"
    SHARE_LAG = "share-lag"
    STREAMS_GROUPS = "streams-groups"
    CORDONS = "cordons"


@dataclass(frozen=True, slots=True)
class FeatureNeed:
    """``apis``: API key to the least version. ``level``: feature and least level in force, None for none.

    ``release`` is the first with all of it.
    """

    words: str
    release: str
    apis: Mapping[int, int]
    level: tuple[str, int] | None = None


NEEDS: Mapping[KafkaFeature, FeatureNeed] = MappingProxyType(
    {
        KafkaFeature.QUORUM_LAG: FeatureNeed("Lag of controllers in time", "3.3 in KRaft mode", {55: 1}),
        KafkaFeature.FENCED_BROKERS: FeatureNeed("Fenced brokers", "4.0", {60: 2}),
        KafkaFeature.UNREGISTER: FeatureNeed("Unregistering of brokers", "4.0", {60: 2, 64: 0}),
        KafkaFeature.CONSUMER_PROTOCOL: FeatureNeed(
            "Consumer groups of the new protocol", "4.0", {69: 0}, ("group.version", 1)
        ),
        KafkaFeature.ELIGIBLE_REPLICAS: FeatureNeed(
            "Eligible leader replicas", "4.0", {75: 0}, ("eligible.leader.replicas.version", 1)
        ),
        KafkaFeature.FACTOR_GUARD: FeatureNeed("Kafka refuses another replication factor", "4.1", {45: 1}),
        KafkaFeature.SHARE_GROUPS: FeatureNeed("Share groups", "4.1", {77: 1, 90: 0}, ("share.version", 1)),
        KafkaFeature.STREAMS_GROUPS: FeatureNeed("Streams groups", "4.1", {89: 0}, ("streams.version", 1)),
        KafkaFeature.SHARE_LAG: FeatureNeed("Lag of share groups", "4.2", {90: 1}, ("share.version", 1)),
        KafkaFeature.CORDONS: FeatureNeed("Cordons of log directories", "4.3", {35: 5}, ("metadata.version", 30)),
    }
)

_DESCRIBE_QUORUM = "55"


@dataclass(frozen=True, slots=True)
class FeatureLack:
    """Need of a feature that a cluster does not meet.

    ``level``: feature whose level is too low; '' where the software is too old. ``current`` is that level, 0
    where none is in force.
    """

    feature: KafkaFeature
    release: str
    level: str = ""
    needed: int = 0
    current: int = 0

    @property
    def words(self) -> str:
        return NEEDS[self.feature].words

    @property
    def needed_words(self) -> str:
        """Name the release that has the feature, and the level that it needs where the one in force is too low."""
        level = f", with {self.level} {self.needed} (now {self.current})" if self.level else ""
        return f"from Kafka {self.release} on{level}"


def find_lack(capable: Capabilities | None, feature: KafkaFeature) -> FeatureLack | None:
    """Return why a cluster does not offer a feature; None where it does, and where its versions are not known.

    A broker that did not answer lately counts with what it offered before.
    """
    if capable is None or not any(_list_offered(capable)):
        return None
    need, offered = NEEDS[feature], _list_offered(capable)
    for key, version in need.apis.items():
        if any(str(key) not in apis or apis[str(key)][1] < version for apis in offered):
            return FeatureLack(feature, need.release)
    if need.level is None:
        return None
    name, needed = need.level
    current = find_level(capable.features, name) if _has_quorum(capable) else 0
    if current is None or current >= needed:
        return None
    return FeatureLack(feature, need.release, name, needed, current)


def load_lack(cluster: Cluster, feature: KafkaFeature) -> FeatureLack | None:
    """Find why a cluster does not offer a feature by its stored versions. One query."""
    return find_lack(Capabilities.objects.filter(cluster=cluster).first(), feature)


def find_level(features: Mapping[str, Any], name: str) -> int | None:
    """Return the level in force by ``Capabilities.features``, 0 for none; None where no broker told any.

    Kafka does not tell a level of 0, and in KRaft mode metadata.version always has one.
    """
    levels = {own: levels["finalized"] for own, levels in features.items() if levels["finalized"] is not None}
    return levels.get(name, 0) if levels else None


def list_lacks(capable: Capabilities | None) -> Sequence[FeatureLack]:
    """Return what a cluster does not offer, in the order of releases, without what ZooKeeper mode cannot have."""
    if capable is None:
        return []
    features = [feature for feature in NEEDS if feature is not KafkaFeature.QUORUM_LAG or _has_quorum(capable)]
    return [lack for feature in features if (lack := find_lack(capable, feature))]


def _list_offered(capable: Capabilities) -> Sequence[Mapping[str, Sequence[int]]]:
    return [group["apis"] for group in capable.software] or [capable.apis]


def _has_quorum(capable: Capabilities) -> bool:
    """Return whether the brokers are in KRaft mode: in ZooKeeper mode there is no quorum to describe."""
    return all(_DESCRIBE_QUORUM in apis for apis in _list_offered(capable))
