"""Configs of topics, brokers and the default of all brokers, as stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kafkadash.clusters.models import Cluster
from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.kafka.api import CLUSTER_DEFAULT, ConfigResource, ConfigType
from kafkadash.kafka.throttles import LISTS, RATES
from kafkadash.monitoring.configs import source_words
from kafkadash.monitoring.models import BrokerState, ConfigCatalog, ConfigSource, TopicState

LONGEST_SUBJECT = 300
THROTTLES = frozenset({*LISTS, *RATES})


class OwnerKind(StrEnum):
    """Kind of what has configs; the values are stored in inputs and items."""

    TOPIC = "topic"
    BROKER = "broker"
    DEFAULT = "default"


_OWN_SOURCES = {
    OwnerKind.TOPIC: ConfigSource.TOPIC,
    OwnerKind.BROKER: ConfigSource.BROKER,
    OwnerKind.DEFAULT: ConfigSource.CLUSTER_DEFAULT,
}


@dataclass(frozen=True, slots=True)
class ConfigOwner:
    """A topic, a broker or the default of all brokers. ``identity``: topic ID, broker ID, or ''.

    ``config`` as ``TopicState.config``, None where it was not read. ``factor``: the replication factor of a topic.
    """

    kind: OwnerKind
    identity: str
    name: str
    config: Mapping[str, Sequence[str | None]] | None
    factor: int | None = None

    @property
    def subject(self) -> str:
        return describe_owner(self.kind, self.name)

    def own_value(self, key: str) -> str | None:
        """Return the value that is set on the owner itself, None where none is."""
        return (self.config or {})[key][0] if self.sets(key) else None

    def sets(self, key: str) -> bool:
        """Return whether a value is set on the owner itself, also a sensitive one, which nobody knows."""
        _, source = (self.config or {}).get(key, (None, None))
        return source == _OWN_SOURCES[self.kind]

    def in_force(self, key: ConfigKey) -> tuple[str | None, str]:
        """Return value and source; the source is '' where none is known, or the default of all brokers sets none."""
        if self.kind is OwnerKind.DEFAULT and not self.sets(key.key):
            return None, ""
        value, source = (self.config or {}).get(key.key) or key.inherited or (None, "")
        return value, source or ""


def describe_owner(kind: str, name: str) -> str:
    """Return "orders", "broker 3" or "all brokers"."""
    return name if kind == OwnerKind.TOPIC else f"broker {name}" if kind == OwnerKind.BROKER else "all brokers"


def resource_of(kind: str, name: str) -> ConfigResource:
    if kind == OwnerKind.TOPIC:
        return ConfigResource.topic(name)
    return ConfigResource.broker(int(name)) if kind == OwnerKind.BROKER else CLUSTER_DEFAULT


def name_item(owner: ConfigOwner, key: str) -> str:
    return f"{owner.subject}: {key}"


def load_owners(cluster: Cluster, kind: str, identities: Collection[str]) -> dict[str, ConfigOwner]:
    """Return owners of a kind by their identity, without brokers that are not registered. One query."""
    if kind == OwnerKind.TOPIC:
        topics = TopicState.objects.filter(cluster=cluster, topic_id__in=identities).order_by("name")
        columns = ("topic_id", "name", "config", "replication_factor")
        found = [ConfigOwner(OwnerKind.TOPIC, *row) for row in topics.values_list(*columns)]
    elif kind == OwnerKind.BROKER:
        brokers = BrokerState.objects.filter(cluster=cluster, gone_at=None, broker_id__in=map(int, identities))
        rows = brokers.values_list("broker_id", "config")
        found = [ConfigOwner(OwnerKind.BROKER, str(broker), str(broker), config) for broker, config in rows]
    else:
        catalog = ConfigCatalog.objects.filter(cluster=cluster).first()
        found = [ConfigOwner(OwnerKind.DEFAULT, "", "", catalog.default if catalog else None)]
    return {owner.identity: owner for owner in found}


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A config that owners of a kind have. ``inherited``: (value, source) without one of the owner's own, if known."""

    key: str
    type: ConfigType
    read_only: bool
    sensitive: bool
    inherited: tuple[str | None, str] | None

    @property
    def type_words(self) -> str:
        """Return Kafka's name of the type, '' where it is unknown."""
        return "" if self.type is ConfigType.UNKNOWN else self.type.name.lower()

    def find_lock(self, owner: ConfigOwner | None = None) -> CodedMessage | None:
        """Return why nobody edits this config here, None where somebody may."""
        if self.key in THROTTLES:
            return coded(ConfigErrorCode.KEY_OF_THROTTLES, key=self.key)
        if self.sensitive or self.type is ConfigType.PASSWORD:
            return coded(ConfigErrorCode.KEY_SENSITIVE, key=self.key)
        if self.read_only:
            return coded(ConfigErrorCode.KEY_READ_ONLY, key=self.key)
        if owner is not None and len(name_item(owner, self.key)) > LONGEST_SUBJECT:
            return coded(ConfigErrorCode.KEY_TOO_LONG)
        return None


def load_keys(cluster: Cluster, kind: str) -> dict[str, ConfigKey]:
    """Return the configs that owners of a kind have, by key; none before they were read. One query."""
    catalog = ConfigCatalog.objects.filter(cluster=cluster).first()
    if catalog is None:
        return {}
    keys, default = {}, catalog.default or {}
    for key, row in (catalog.topics if kind == OwnerKind.TOPIC else catalog.brokers).items():
        number, read_only, sensitive, inherited = row
        if kind == OwnerKind.BROKER and key in default:
            inherited = default[key]
        elif kind != OwnerKind.TOPIC and inherited and inherited[1] != ConfigSource.DEFAULT:
            inherited = None  # each broker has a file of its own
        keys[key] = ConfigKey(key, ConfigType(number), read_only, sensitive, tuple(inherited) if inherited else None)
    return keys


def describe_value(value: str | None, source: str = "") -> str:
    """Return a value with its source, where it is not the owner's own."""
    shown = "no value" if value is None else value or '""'
    return f"{shown} ({source_words(source)})" if source else shown
