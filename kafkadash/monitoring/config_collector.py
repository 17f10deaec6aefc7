"""Collector of configs of topics and brokers that differ from Kafka's default, and of the throttles among them.

The keys that topics and brokers have, with type and inherited value, are kept once per cluster.

A throttle that nothing in flight needs any more is marked as an orphan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django.db.models import Sum

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.formatting import LARGEST_INT, read_whole_number
from kafkadash.core.leases import WriteStamp, one_writer_of_shapes
from kafkadash.core.messages import CodedMessage, coded, join_messages
from kafkadash.core.rows import update_rows
from kafkadash.kafka.api import (
    CLUSTER_DEFAULT,
    UNKNOWN_TOPIC_OR_PARTITION,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ItemError,
    KafkaFailure,
    NotAuthorized,
    OngoingReassignment,
    ResourceConfigs,
)
from kafkadash.kafka.api import ConfigOrigin as KafkaSource
from kafkadash.kafka.config_values import MIN_ISR
from kafkadash.kafka.throttles import LISTS, RATES, MovesOfTopic, in_flight, list_needed, rate_needed
from kafkadash.monitoring.cluster_events.rules import ChangedConfig, EventCode, EventDraft, find_config_events
from kafkadash.monitoring.cluster_events.store import store_events
from kafkadash.monitoring.collectors import (
    AUTHORIZATION_FAILED,
    CollectContext,
    CollectedFacts,
    find_silent_brokers,
    split_updates,
    to_utc,
)
from kafkadash.monitoring.config_drift import Drift, compare_configs
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.metadata_collector import store_figures
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    ConfigCatalog,
    ConfigDrift,
    ConfigSource,
    ThrottledResource,
    ThrottleState,
    TopicState,
)
from kafkadash.monitoring.partitions import PartitionShape, count_health
from kafkadash.monitoring.znode_rates import ZNodeRates, read_znode_rates

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
    """Row changes of one refresh. ``orphans`` counts resources; None if orphans could not be determined."""

    new: list[ThrottleState] = field(default_factory=list)
    changed: list[ThrottleState] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    orphans: int | None = None
    read_at: datetime | None = None

    def write(self) -> None:
        ThrottleState.objects.filter(pk__in=self.gone).delete()
        ThrottleState.objects.filter(pk__in=self.read).update(read_at=self.read_at)
        names = ("value", "source", "changed_at", "read_at", "from_znode", "unneeded_since", "orphan")
        update_rows(ThrottleState, {row.pk: {name: getattr(row, name) for name in names} for row in self.changed})
        ThrottleState.objects.bulk_create(self.new)


def compare_throttles(
    cluster: Cluster,
    answered: Mapping[ConfigResource, Mapping[str, ConfigEntry]],
    absent: Mapping[ConfigResource, Mapping[str, ConfigEntry]],
    is_gone: Callable[[ConfigResource], bool],
    moving: MovesOfTopic | None,
    taken_at: datetime,
) -> ThrottleChanges:
    """Compares what was read with the rows. ``moving`` is None where the reassignments could not be listed.

    ``absent``: what ZooKeeper tells of brokers that are down.
    A row whose resource was not read keeps what was last known, with its age, unless ``is_gone``.
    """
    known = {(t.resource, t.name, t.key): t for t in ThrottleState.objects.filter(cluster=cluster)}
    changes = ThrottleChanges(read_at=taken_at)
    read = {**answered, **absent}
    seen = {key: entry for resource, entries in read.items() for key, entry in _set_throttles(resource, entries)}
    kept: list[ThrottleState] = []
    for key, entry in seen.items():
        row = known.get(key)
        before = _compared_columns(row) if row else None
        if row is None:
            row = _new_row(cluster, key, entry, taken_at)
        else:
            _take_over(row, entry, taken_at)
        row.from_znode = resource_of(row) in absent
        _judge_throttle(row, moving, taken_at)
        kept.append(row)
        if before is None:
            changes.new.append(row)
        elif before != _compared_columns(row):
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
        before = _compared_columns(row)
        _judge_throttle(row, moving, taken_at)
        kept.append(row)
        if before != _compared_columns(row):
            changes.changed.append(row)
    if moving is not None:
        changes.orphans = len({(row.resource, row.name) for row in kept if row.orphan})
    return changes


def what_moves(cluster: Cluster, rows: Sequence[OngoingReassignment]) -> MovesOfTopic:
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
    """Return the throttles set on this resource itself: no defaults, and no values that a broker inherits."""
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


def _judge_throttle(row: ThrottleState, moving: MovesOfTopic | None, taken_at: datetime) -> None:
    """An orphan is in force and needed by nothing in two refreshes in a row, as throttles are set before the moves.

    What is claimed has an owner who takes it away. Where the reassignments are not known, what was judged before stays.
    """
    if moving is None and not row.claimed_by:
        return
    if row.claimed_by or moving is None or _is_needed(row, moving):
        row.unneeded_since, row.orphan = None, False
    elif row.unneeded_since is None:
        row.unneeded_since = taken_at
    else:
        row.orphan = True


def _is_needed(row: ThrottleState, moving: MovesOfTopic) -> bool:
    """A list without entries is off: it is set, but there is nothing to need it."""
    if row.resource == ThrottledResource.TOPIC:
        return not row.value or list_needed(row.name, row.value, moving)
    return rate_needed(row.key, int(row.name) if row.resource == ThrottledResource.BROKER else None, moving)


def _compared_columns(row: ThrottleState) -> tuple[object, ...]:
    return row.value, row.source, row.from_znode, row.unneeded_since, row.orphan


Packed = dict[str, list[str | None]]
T = TypeVar("T")


def read(asking: CollectContext) -> CollectedFacts:
    """Asks every broker for itself, and any of them for the topics that are known.

    What may not be read is not known any more, and an error says which permission is missing. A broker that does not
    answer keeps what was last known of it, with its age.
    """
    cluster = asking.cluster
    answers = _read_configs(asking)
    brokers, topics, known = answers.brokers, answers.topics, answers.known
    taken_at = to_utc(min(brokers.taken_at, topics.taken_at))
    errors = {**brokers.errors, **topics.errors}
    if errors and not brokers.resources and not topics.resources:
        # All of it is refused: what is silent raises by itself.
        raise NotAuthorized(join_messages(error.message for error in errors.values()))
    throttles = compare_throttles(
        cluster,
        {**brokers.resources, **topics.resources},
        answers.absent.resources,
        lambda resource: _is_gone(resource, known, errors),
        None if answers.moving is None else what_moves(cluster, answers.moving),
        taken_at,
    )
    topic_changes, changed_topics = _changed_topics(known, topics.resources, topics.errors)
    compared = _compare_brokers(cluster, brokers.resources, taken_at)
    stored = ConfigCatalog.objects.filter(cluster=cluster).first()
    catalog = _changed_catalog(stored, brokers.resources, topics.resources)
    topic_events = find_config_events(EventCode.TOPIC_CONFIGS, changed_topics)
    broker_events = _find_broker_events(compared, stored, catalog)

    def tell(events: Sequence[EventDraft]) -> None:
        store_events(cluster.pk, events, taken_at, asking.succeeded_at)

    def write_topics(part: Mapping[int, Mapping[str, object]], events: Sequence[EventDraft]) -> None:
        _write_topics(cluster, part)
        tell(events)

    # Events go with the first portion, as those of the metadata collector.
    portions = [
        partial(write_topics, part, () if place else topic_events)
        for place, part in enumerate(split_updates(topic_changes))
    ]
    drift = _find_drift(cluster, compared, catalog.get("brokers", stored.brokers if stored else {}), taken_at)

    def write(_: WriteStamp) -> None:
        one_writer_of_shapes(cluster.pk)
        if portions:
            store_figures(cluster, _min_isr_figures(cluster))
        update_rows(BrokerState, compared.changed)
        tell(broker_events)
        BrokerState.objects.filter(pk__in=compared.unchanged).update(config_at=taken_at)
        if catalog:
            ConfigCatalog.objects.update_or_create(cluster=cluster, defaults=catalog)
        if drift is not None:
            defaults = {"keys": drift, "changed_at": taken_at}
            ConfigDrift.objects.update_or_create(cluster=cluster, defaults=defaults)
        throttles.write()
        if throttles.orphans is not None:
            store_figures(cluster, {"orphan_throttles": throttles.orphans})

    unread = {int(r.name): error for r, error in brokers.errors.items() if r != CLUSTER_DEFAULT}
    return CollectedFacts(
        taken_at=taken_at,
        rows=len(brokers.resources.keys() - {CLUSTER_DEFAULT}) + len(topics.resources),
        write=write,
        portions=portions,
        not_answered=sorted(find_silent_brokers(unread) | answers.fenced),
        errors=list(answers.told()),
    )


@dataclass(frozen=True, slots=True)
class _ConfigAnswers:
    """Kafka's answers. ``moving`` is None if listing the reassignments failed; ``not_listed`` is the reason.

    ``absent``: ZooKeeper's answer about brokers that are down.
    """

    known: Mapping[str, _KnownTopic]
    fenced: frozenset[int]
    brokers: ResourceConfigs
    absent: ZNodeRates
    topics: ResourceConfigs
    moving: Sequence[OngoingReassignment] | None
    not_listed: CodedMessage | None

    def told(self) -> Iterator[CodedMessage]:
        """Yield a message for everything that was not read."""
        yield from _told_once(self.brokers.errors)
        yield from _told_once(self.topics.errors)
        yield from (coded(CollectionErrorCode.BROKER_FENCED, broker=broker) for broker in sorted(self.fenced))
        if self.not_listed:
            yield coded(CollectionErrorCode.THROTTLES_IN_DOUBT, why=self.not_listed)
        if self.absent.failure:
            yield coded(CollectionErrorCode.ZOOKEEPER_NOT_READ, why=self.absent.failure)


def _read_configs(asking: CollectContext) -> _ConfigAnswers:
    """Which brokers there are, their configs with the cluster's default, those of the topics, and what moves."""
    admin, deadline = asking.admin, asking.deadline
    asking.step()
    described = admin.describe_cluster(deadline=deadline)
    live = {b.id for b in described.brokers if not b.fenced}
    fenced = frozenset(b.id for b in described.brokers if b.fenced) - live
    asking.step()
    brokers = admin.describe_configs([CLUSTER_DEFAULT, *map(ConfigResource.broker, sorted(live))], deadline=deadline)
    asking.step()
    absent = read_znode_rates(asking.cluster, _known_brokers(asking.cluster) - live - fenced, deadline)
    known = _known_topics(asking.cluster)
    asking.step()
    topics = admin.describe_configs([ConfigResource.topic(name) for name in known], deadline=deadline)
    asking.step()
    moving, not_listed = _attempt(lambda: admin.list_reassignments(deadline=deadline).rows)
    return _ConfigAnswers(known, fenced, brokers, absent, topics, moving, not_listed)


def _known_brokers(cluster: Cluster) -> set[int]:
    """Return the brokers in ZooKeeper mode, where one that is down is not listed any more; none in KRaft mode.

    One that was forgotten since it is gone may have left a rate behind.
    """
    if cluster.mode != ClusterMode.ZOOKEEPER:
        return set()
    rates = ThrottleState.objects.filter(cluster=cluster, resource=ThrottledResource.BROKER)
    known = BrokerState.objects.filter(cluster=cluster).values_list("broker_id", flat=True)
    return {*known, *map(int, rates.values_list("name", flat=True).distinct())}


def _write_topics(cluster: Cluster, changes: Mapping[int, Mapping[str, object]]) -> None:
    one_writer_of_shapes(cluster.pk)
    update_rows(TopicState, changes)


@dataclass(frozen=True, slots=True)
class _KnownTopic:
    pk: int
    config_shape: str
    min_isr: int | None


def _known_topics(cluster: Cluster) -> dict[str, _KnownTopic]:
    rows = TopicState.objects.filter(cluster=cluster).values_list("name", "pk", "config_shape", "min_isr")
    return {row[0]: _KnownTopic(*row[1:]) for row in rows}


def _changed_topics(
    known: Mapping[str, _KnownTopic],
    read: Mapping[ConfigResource, Mapping[str, ConfigEntry]],
    errors: Mapping[ConfigResource, ItemError],
) -> tuple[dict[int, dict[str, object]], list[ChangedConfig]]:
    """Return primary key → new values of topics whose config differs from the stored one, or may not be read any more.

    Second, the configs before and after, where both are known.
    """
    changes: dict[int, dict[str, object]] = {}
    changed: list[ChangedConfig] = []
    recount: dict[int, int | None] = {}
    for resource, entries in read.items():
        before = known[resource.name]
        config, min_isr = pack_config(entries), _min_isr(entries)
        shape = _digest_config(config, min_isr)
        if shape != before.config_shape:
            changes[before.pk] = {"config": config, "config_shape": shape, "min_isr": min_isr}
            recount[before.pk] = min_isr
    for resource, error in errors.items():
        before = known[resource.name]
        if error.code in AUTHORIZATION_FAILED and before.config_shape:
            changes[before.pk] = {"config": None, "config_shape": "", "min_isr": None}
            recount[before.pk] = None
    rows = TopicState.objects.filter(pk__in=recount).values_list("pk", "name", "config", "partitions")
    for pk, name, config_before, partitions in rows.iterator():
        shapes = [PartitionShape(p[1], tuple(p[3]), tuple(p[4])) for p in partitions]
        counts = count_health(shapes, recount[pk])
        changes[pk] |= {"under_min_isr": counts.under_min_isr, "at_min_isr": counts.at_min_isr}
        config_after = changes[pk]["config"]
        if config_before is not None and isinstance(config_after, dict):
            changed.append(ChangedConfig(name, config_before, config_after))
    return {pk: values for pk, values in sorted(changes.items()) if "under_min_isr" in values}, changed


@dataclass(frozen=True, slots=True)
class _ComparedBrokers:
    """``changed``: primary key → new values where a broker's config changed. ``unchanged``: primary keys of the others.

    ``configs``: broker → config of all registered brokers, as read now or before; ``unread``: those of before.
    """

    changed: dict[int, dict[str, object]] = field(default_factory=dict)
    unchanged: list[int] = field(default_factory=list)
    configs: dict[int, Packed] = field(default_factory=dict)
    unread: list[int] = field(default_factory=list)
    differing: list[ChangedConfig] = field(default_factory=list)


def _compare_brokers(
    cluster: Cluster, read: Mapping[ConfigResource, Mapping[str, ConfigEntry]], taken_at: datetime
) -> _ComparedBrokers:
    compared = _ComparedBrokers()
    rows = BrokerState.objects.filter(cluster=cluster).values_list("pk", "broker_id", "config", "config_at", "gone_at")
    for pk, broker, before, read_at, gone_at in rows:
        entries = read.get(ConfigResource.broker(broker))
        config = before if entries is None else pack_config(entries)
        if config is not None and (gone_at is None or entries is not None):
            compared.configs[broker] = config
        if entries is None:
            if broker in compared.configs:
                compared.unread.append(broker)
            continue
        if config == before:
            compared.unchanged.append(pk)
        else:
            compared.changed[pk] = {"config": config, "config_at": taken_at}
            if before is not None and config is not None:
                compared.differing.append(ChangedConfig(str(broker), before, config, read_at))
    return compared


def _find_broker_events(
    compared: _ComparedBrokers, stored: ConfigCatalog | None, catalog: Mapping[str, Any]
) -> list[EventDraft]:
    """Return events of broker configs. What brokers inherit from a default that changed is told with the default."""
    events: list[EventDraft] = []
    own = compared.differing
    if stored is not None and stored.default is not None and catalog.get("default") is not None:
        default = ChangedConfig("", stored.default, catalog["default"])
        events += find_config_events(EventCode.DEFAULT_CONFIGS, [default])
        own = [
            replace(each, before=_without_inherited(each.before), after=_without_inherited(each.after)) for each in own
        ]
    return [*events, *find_config_events(EventCode.BROKER_CONFIGS, own)]


def _without_inherited(config: Mapping[str, Sequence[str | None]]) -> dict[str, Sequence[str | None]]:
    return {key: entry for key, entry in config.items() if entry[1] != ConfigSource.CLUSTER_DEFAULT}


def _find_drift(
    cluster: Cluster, compared: _ComparedBrokers, catalog: Mapping[str, Any], taken_at: datetime
) -> Drift | None:
    """Return in what the configs differ; None where that is stored already."""
    stored = ConfigDrift.objects.filter(cluster=cluster).first()
    before = stored.keys if stored else {}
    found = compare_configs(compared.configs, catalog, before, taken_at, compared.unread)
    return found if stored is None or found != stored.keys else None


def _changed_catalog(
    stored: ConfigCatalog | None,
    brokers: Mapping[ConfigResource, Mapping[str, ConfigEntry]],
    topics: Mapping[ConfigResource, Mapping[str, ConfigEntry]],
) -> dict[str, Any]:
    """Return the columns of the catalog that differ from the stored ones. Resources that were not read stay."""
    found: dict[str, Any] = {}
    if own := [entries for resource, entries in topics.items()]:
        found["topics"] = _describe_keys(own, {KafkaSource.DYNAMIC_TOPIC_CONFIG})
    if own := [entries for resource, entries in brokers.items() if resource != CLUSTER_DEFAULT]:
        dynamic = {KafkaSource.DYNAMIC_BROKER_CONFIG, KafkaSource.DYNAMIC_DEFAULT_BROKER_CONFIG}
        found["brokers"] = _describe_keys(own, dynamic)
    if CLUSTER_DEFAULT in brokers:
        found["default"] = pack_config(brokers[CLUSTER_DEFAULT])
    return {name: value for name, value in found.items() if stored is None or value != getattr(stored, name)}


def _describe_keys(
    resources: Iterable[Mapping[str, ConfigEntry]], own: Collection[KafkaSource]
) -> dict[str, list[object]]:
    """Return {key: [type, read-only, sensitive, inherited]}; a value with a source of ``own`` is not inherited.

    Static values may differ between brokers, so one that is Kafka's default is preferred: it is the same everywhere.
    """
    described: dict[str, list[object]] = {}
    settled: set[str] = set()
    for entries in resources:
        for key, entry in entries.items():
            if key in settled:
                continue
            by_default = entry.source is KafkaSource.DEFAULT_CONFIG
            inherited = None if entry.source in own else [entry.value, str(source_of(entry))]
            if key not in described or (inherited is not None and (by_default or described[key][3] is None)):
                described[key] = [int(entry.type), entry.read_only, entry.sensitive, inherited]
            if by_default:
                settled.add(key)
    return dict(sorted(described.items()))


def pack_config(entries: Mapping[str, ConfigEntry]) -> Packed:
    """{key: [value, source]} of what is not Kafka's default."""
    return {
        entry.name: [entry.value, str(source_of(entry))]
        for entry in entries.values()
        if entry.source is not KafkaSource.DEFAULT_CONFIG
    }


def _min_isr(entries: Mapping[str, ConfigEntry]) -> int | None:
    entry = entries.get(MIN_ISR)
    return read_whole_number(entry.value, LARGEST_INT) if entry and entry.value else None


def _digest_config(config: Packed, min_isr: int | None) -> str:
    text = json.dumps([config, min_isr], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _min_isr_figures(cluster: Cluster) -> dict[str, int | None]:
    """Sums over the topics whose min.insync.replicas is known, as the metadata collector counts them."""
    return TopicState.objects.filter(cluster=cluster).aggregate(
        under_min_isr=Sum("under_min_isr"), at_min_isr=Sum("at_min_isr")
    )


def _is_gone(
    resource: ConfigResource, known: Mapping[str, _KnownTopic], errors: Mapping[ConfigResource, ItemError]
) -> bool:
    if resource.type is not ConfigResourceType.TOPIC:
        return False
    error = errors.get(resource)
    return resource.name not in known or (error is not None and error.code == UNKNOWN_TOPIC_OR_PARTITION)


def _told_once(errors: Mapping[ConfigResource, ItemError]) -> Iterator[CodedMessage]:
    """Yield one message for each reason, however many topics it concerns, and none for topics that were deleted."""
    alike: dict[tuple[int | None, str], list[ItemError]] = {}
    for error in errors.values():
        if error.code != UNKNOWN_TOPIC_OR_PARTITION:
            alike.setdefault((error.code, "" if error.code else error.text), []).append(error)
    for same in alike.values():
        others = len(same) - 1
        why = same[0].message
        yield coded(CollectionErrorCode.SAME_FOR_OTHERS, why=why, others=others) if others else why


def _attempt(question: Callable[[], T]) -> tuple[T | None, CodedMessage | None]:
    """Return what came back, or the message that says why nothing did."""
    try:
        return question(), None
    except KafkaFailure as failure:
        return None, failure.message
