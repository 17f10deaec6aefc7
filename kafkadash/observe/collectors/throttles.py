"""Throttles that are set, with value, source and age; and those that nothing in flight needs any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kafkadash.clusters.models import Cluster
from kafkadash.domain.throttles import LISTS, RATES, InFlight, in_flight, list_needed, rate_needed
from kafkadash.kafka.port import CLUSTER_DEFAULT, ConfigEntry, ConfigResource, ConfigResourceType, OngoingReassignment
from kafkadash.kafka.port import ConfigSource as KafkaSource
from kafkadash.observe.collectors.writing import update_rows
from kafkadash.observe.models import BrokerWeights, ConfigSource, ThrottledResource, ThrottleState

SOURCES: Mapping[KafkaSource, ConfigSource] = {
    KafkaSource.DYNAMIC_TOPIC_CONFIG: ConfigSource.TOPIC,
    KafkaSource.DYNAMIC_BROKER_CONFIG: ConfigSource.BROKER,
    KafkaSource.DYNAMIC_DEFAULT_BROKER_CONFIG: ConfigSource.CLUSTER_DEFAULT,
    KafkaSource.STATIC_BROKER_CONFIG: ConfigSource.STATIC,
    KafkaSource.DEFAULT_CONFIG: ConfigSource.DEFAULT,
}
Key = tuple[str, str, str]  # resource, its name, config key


@dataclass(slots=True)
class ThrottleChanges:
    """What a refresh does to the rows. ``orphans`` counts resources; it is None where it could not be judged."""

    new: list[ThrottleState] = field(default_factory=list)
    changed: list[ThrottleState] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    orphans: int | None = None
    read_at: datetime | None = None

    def write(self) -> None:
        ThrottleState.objects.filter(pk__in=self.gone).delete()
        ThrottleState.objects.filter(pk__in=self.read).update(read_at=self.read_at)
        names = ("value", "source", "changed_at", "read_at", "unneeded_since", "orphan")
        update_rows(ThrottleState, {row.pk: {name: getattr(row, name) for name in names} for row in self.changed})
        ThrottleState.objects.bulk_create(self.new)


def compare_throttles(
    cluster: Cluster,
    read: Mapping[ConfigResource, Mapping[str, ConfigEntry]],
    is_gone: Callable[[ConfigResource], bool],
    moving: InFlight | None,
    taken_at: datetime,
) -> ThrottleChanges:
    """Compares what was read with the rows. ``moving`` is None where the reassignments could not be listed.

    A row whose resource was not read keeps what was last known, with its age, unless ``is_gone``.
    """
    known = {(t.resource, t.name, t.key): t for t in ThrottleState.objects.filter(cluster=cluster)}
    changes = ThrottleChanges(read_at=taken_at)
    seen = {key: entry for resource, entries in read.items() for key, entry in _set_throttles(resource, entries)}
    kept: list[ThrottleState] = []
    for key, entry in seen.items():
        row = known.get(key)
        before = _state(row) if row else None
        if row is None:
            row = _new_row(cluster, key, entry, taken_at)
        else:
            _take_over(row, entry, taken_at)
        _judge(row, moving, taken_at)
        kept.append(row)
        if before is None:
            changes.new.append(row)
        elif before != _state(row):
            row.read_at = taken_at
            changes.changed.append(row)
        else:
            changes.read.append(row.pk)
    for key, row in known.items():
        if key in seen:
            continue
        resource = resource_of(row)
        if resource in read or is_gone(resource):
            changes.gone.append(row.pk)
            continue
        before = _state(row)
        _judge(row, moving, taken_at)
        kept.append(row)
        if before != _state(row):
            changes.changed.append(row)
    if moving is not None:
        changes.orphans = len({(row.resource, row.name) for row in kept if row.orphan})
    return changes


def what_moves(cluster: Cluster, rows: Sequence[OngoingReassignment]) -> InFlight:
    """The listed reassignments, and the copies between disks that the last look at the directories found."""
    weights = BrokerWeights.objects.filter(cluster=cluster).values_list("broker_id", "dirs")
    copies = {
        broker: sum(numbers) if None not in (numbers := [d.get("copies") for d in dirs]) else None
        for broker, dirs in weights
    }
    return in_flight(((row.topic, row.partition, row.replicas) for row in rows), copies)


def resource_of(row: ThrottleState) -> ConfigResource:
    match row.resource:
        case ThrottledResource.TOPIC:
            return ConfigResource.topic(row.name)
        case ThrottledResource.BROKER:
            return ConfigResource.broker(int(row.name))
        case _:
            return CLUSTER_DEFAULT


def _set_throttles(resource: ConfigResource, entries: Mapping[str, ConfigEntry]) -> Iterable[tuple[Key, ConfigEntry]]:
    """What is set on this resource itself: a default is not, and what a broker inherits is set on the cluster."""
    keys: tuple[str, ...]
    inherited: tuple[KafkaSource, ...]
    if resource.type is ConfigResourceType.TOPIC:
        keys, kind = LISTS, ThrottledResource.TOPIC
        inherited = (KafkaSource.DEFAULT_CONFIG,)
    elif resource == CLUSTER_DEFAULT:
        keys, kind, inherited = RATES, ThrottledResource.CLUSTER, (KafkaSource.DEFAULT_CONFIG,)
    else:
        keys, kind = RATES, ThrottledResource.BROKER
        inherited = (KafkaSource.DEFAULT_CONFIG, KafkaSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    for key in keys:
        entry = entries.get(key)
        if entry is not None and entry.source not in inherited:
            yield (str(kind), resource.name, key), entry


def _new_row(cluster: Cluster, key: Key, entry: ConfigEntry, taken_at: datetime) -> ThrottleState:
    resource, name, config = key
    return ThrottleState(
        cluster=cluster,
        resource=resource,
        name=name,
        key=config,
        value=entry.value or "",
        source=source_of(entry),
        first_seen_at=taken_at,
        changed_at=taken_at,
        read_at=taken_at,
    )


def source_of(entry: ConfigEntry) -> ConfigSource:
    return SOURCES.get(entry.source, ConfigSource.OTHER)


def _take_over(row: ThrottleState, entry: ConfigEntry, taken_at: datetime) -> None:
    value, source = entry.value or "", source_of(entry)
    if (row.value, row.source) != (value, source):
        row.value, row.source, row.changed_at = value, source, taken_at
        row.unneeded_since, row.orphan = None, False


def _judge(row: ThrottleState, moving: InFlight | None, taken_at: datetime) -> None:
    """An orphan is in force and needed by nothing in two refreshes in a row, as throttles are set before the moves.

    What is claimed has an owner who takes it away. Where the reassignments are not known, what was judged before stays.
    """
    if moving is None and not row.claimed_by:
        return
    if row.claimed_by or moving is None or _needed(row, moving):
        row.unneeded_since, row.orphan = None, False
    elif row.unneeded_since is None:
        row.unneeded_since = taken_at
    else:
        row.orphan = True


def _needed(row: ThrottleState, moving: InFlight) -> bool:
    """A list without entries is off: it is set, but there is nothing to need it."""
    if row.resource == ThrottledResource.TOPIC:
        return not row.value or list_needed(row.name, row.value, moving)
    return rate_needed(row.key, int(row.name) if row.resource == ThrottledResource.BROKER else None, moving)


def _state(row: ThrottleState) -> tuple[object, ...]:
    return row.value, row.source, row.unneeded_since, row.orphan
