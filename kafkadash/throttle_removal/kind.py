"""The kind of change "throttle-removal": replication throttles that nothing needs are removed (KIP-73).

Each item is one config of a broker, the cluster default or a topic. A rate is deleted if it has the planned value. Of a
list of replicas, the planned pairs are subtracted, so that pairs which others add meanwhile stay; a list that is left
empty is off. Nothing is removed that a reassignment in flight needs, or that a run of kafkadash has set.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from kafkadash.changes.rights import NeededRight, name_subjects
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.formatting import format_size
from kafkadash.core.messages import CodedReason, PlainReason, choose_plural, coded
from kafkadash.execution.claims import find_active_run, find_open_throttles
from kafkadash.kafka.api import (
    CLUSTER_DEFAULT,
    UNKNOWN_TOPIC_OR_PARTITION,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigOrigin,
    ConfigResource,
    ConfigResourceType,
    ItemError,
    KafkaFailure,
    ResourceConfigs,
    WholeClient,
)
from kafkadash.kafka.throttles import (
    DISK_RATE,
    LISTS,
    MovesOfTopic,
    in_flight,
    list_needed,
    rate_needed,
    rate_of,
    throttled_replicas,
)
from kafkadash.monitoring.models import (
    CollectorKind,
    ConfigSource,
    ThrottledResource,
    ThrottleState,
)
from kafkadash.monitoring.znode_rates import read_znode_rates
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import Items, ItemWords, PlannedItems, ShortKind, alter_configs
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState
from kafkadash.throttle_removal.errors import RemovalCheckTitle, RemovalNoteCode
from kafkadash.throttle_removal.reasons import RemovalReasonCode, RunActive, ThrottleChanged

KIND = "throttle-removal"
BATCH = 500
_DYNAMIC = {
    ThrottledResource.TOPIC: ConfigOrigin.DYNAMIC_TOPIC_CONFIG,
    ThrottledResource.BROKER: ConfigOrigin.DYNAMIC_BROKER_CONFIG,
    ThrottledResource.CLUSTER: ConfigOrigin.DYNAMIC_DEFAULT_BROKER_CONFIG,
}
_REMOVABLE = {ConfigSource.TOPIC, ConfigSource.BROKER, ConfigSource.CLUSTER_DEFAULT}


def plan_removals(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan the removal of orphan throttles, as stored. ``wanted`` may name one ``resource`` and its ``name``."""
    rows = ThrottleState.objects.filter(cluster=cluster, orphan=True).order_by("resource", "name", "key")
    if wanted:
        rows = rows.filter(resource=wanted["resource"], name=wanted["name"])
    items, static = [], 0
    for row in rows:
        if row.source not in _REMOVABLE:
            static += 1
            continue
        content = {"resource": row.resource, "name": row.name, "key": row.key, "value": row.value}
        items.append(PlannedItem(f"{_resource_of(row.resource, row.name)}: {row.key}", content))
    left_out = [coded(RemovalNoteCode.STATIC_LEFT_OUT, throttles=static)] if static else []
    return PlannedItems(items, left_out)


def _resource_of(resource: str, name: str) -> ConfigResource:
    if resource == ThrottledResource.TOPIC:
        return ConfigResource.topic(name)
    return ConfigResource.broker(int(name)) if name else CLUSTER_DEFAULT


def _config_of(item: PlannedItem) -> ConfigResource:
    return _resource_of(item.content["resource"], item.content["name"])


def judge_removal(
    item: PlannedItem, value: str | None, moving: MovesOfTopic, claimed: Collection[tuple[str, str, str]]
) -> ItemReading:
    """Compare an item with the value that is set; None where none is."""
    content = item.content
    found = {"value": value}
    if _is_removed(item, value):
        return ItemReading(ReadingState.REACHED, found=found)
    if (content["resource"], content["name"], content["key"]) in claimed:
        return ItemReading(ReadingState.UNFIT, PlainReason(RemovalReasonCode.OURS), found)
    if content["key"] in LISTS:
        needed = list_needed(content["name"], content["value"], moving)
    else:
        needed = rate_needed(content["key"], int(content["name"]) if content["name"] else None, moving)
    if needed:
        return ItemReading(ReadingState.UNFIT, PlainReason(RemovalReasonCode.NEEDED), found)
    if content["key"] not in LISTS and value != content["value"]:
        return ItemReading(ReadingState.UNFIT, ThrottleChanged(value or "", content["value"]), found)
    return ItemReading(ReadingState.READY, found=found)


def _is_removed(item: PlannedItem, value: str | None) -> bool:
    if value is None:
        return True
    return item.content["key"] in LISTS and not _split_list(item.content["value"]) & _split_list(value)


def _split_list(value: str) -> set[str]:
    """Entries of a list of throttled replicas, as they are written."""
    return {entry.strip() for entry in value.split(",") if entry.strip()}


def read_removals(cluster: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read configs and reassignments, and of brokers with a disk rate their copies. Raises KafkaFailure."""
    resources = {_config_of(item) for item in items}
    configs = _read_configs(cluster, client, resources, {item.content["key"] for item in items}, deadline)
    moving = _read_moves(client, items, deadline)
    claimed = find_open_throttles(cluster.pk)
    readings = {}
    for item in items:
        known, value = _read_value(configs, item)
        if known:
            readings[item.subject] = judge_removal(item, value, moving, claimed)
    return readings


def _read_configs(
    cluster: Cluster,
    client: WholeClient,
    resources: Collection[ConfigResource],
    keys: Collection[str],
    deadline: float,
) -> ResourceConfigs:
    """Read as Kafka answers, and from their znodes the rates of brokers that are down in ZooKeeper mode.

    Raises KafkaFailure.
    """
    try:
        configs = client.describe_configs(resources, deadline=deadline / 2, keys=keys)
    except KafkaFailure as failure:  # nothing at all was answered
        configs = ResourceConfigs({}, dict.fromkeys(resources, ItemError(failure.message)), clock.seconds())
        absent = _read_absent(cluster, configs, deadline / 4)
        if not absent:
            raise
    else:
        absent = _read_absent(cluster, configs, deadline / 4)
    errors = {resource: error for resource, error in configs.errors.items() if resource not in absent}
    return ResourceConfigs({**configs.resources, **absent}, errors, configs.taken_at)


def _read_absent(
    cluster: Cluster, configs: ResourceConfigs, deadline: float
) -> Mapping[ConfigResource, Mapping[str, ConfigEntry]]:
    silent = [resource for resource, error in configs.errors.items() if error.code is None]
    brokers = {int(each.name) for each in silent if each.type is ConfigResourceType.BROKER and each != CLUSTER_DEFAULT}
    return read_znode_rates(cluster, brokers, deadline).resources


def _read_value(configs: ResourceConfigs, item: PlannedItem) -> tuple[bool, str | None]:
    """Return whether the value is known, and the value that is set on the resource itself; a deleted topic has none."""
    resource = _config_of(item)
    if error := configs.errors.get(resource):
        return error.code == UNKNOWN_TOPIC_OR_PARTITION, None
    entry = configs.resources[resource].get(item.content["key"])
    own = entry is not None and entry.source is _DYNAMIC[ThrottledResource(item.content["resource"])]
    return True, (entry.value or "") if entry is not None and own else None


def _read_moves(client: WholeClient, items: Items, deadline: float) -> MovesOfTopic:
    listed = client.list_reassignments(deadline=deadline).rows
    names = {item.content["name"] for item in items if item.content["key"] == DISK_RATE}
    brokers = {int(name) for name in names if name}
    if "" in names:  # the cluster default holds on every broker
        brokers |= {broker.id for broker in client.describe_cluster(deadline=deadline).brokers}
    copies: dict[int, int | None] = dict.fromkeys(brokers)
    if brokers:
        for broker, directories in client.log_dirs(brokers, deadline=deadline).brokers.items():
            copies[broker] = sum(replica.future for directory in directories for replica in directory.replicas)
    return in_flight(((row.topic, row.partition, row.replicas) for row in listed), copies)


def make_change(item: PlannedItem) -> ConfigChange:
    key, value = item.content["key"], item.content["value"]
    if key in LISTS:
        return ConfigChange(_config_of(item), key, ConfigOperation.SUBTRACT, value)
    return ConfigChange(_config_of(item), key, ConfigOperation.DELETE)


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why items do not fit throttles as stored. One query."""
    names = {item.content["name"] for item in items}
    stored = ThrottleState.objects.filter(cluster=cluster, name__in=names)
    rows = {(row.resource, row.name, row.key): row for row in stored}
    faults: dict[str, CodedReason] = {}
    for item in items:
        content = item.content
        row = rows.get((content["resource"], content["name"], content["key"]))
        if row is None or _is_removed(item, row.value):
            continue
        if not row.orphan:
            faults[item.subject] = PlainReason(RemovalReasonCode.NOT_ORPHAN)
        elif content["key"] not in LISTS and row.value != content["value"]:
            faults[item.subject] = ThrottleChanged(row.value, content["value"])
    return faults


def find_obstacle(cluster: Cluster) -> CodedReason | None:
    """Return why a removal does not start now: a run of kafkadash sets and restores throttles of this cluster."""
    number = find_active_run(cluster.pk)
    return None if number is None else RunActive(number)


def find_rights(items: Items) -> list[NeededRight]:
    """Return AlterConfigs on the cluster for rates, and on topics for their lists."""
    topics = name_subjects(item.content["name"] for item in items if item.content["key"] in LISTS)
    lists = [NeededRight("AlterConfigs", topics)] if topics else []
    rates = [NeededRight("AlterConfigs")] if any(item.content["key"] not in LISTS for item in items) else []
    return [*rates, *lists]


def describe_removal(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    value = item.content["value"] if before is None else before.get("value")
    return ItemWords("not set" if value is None else _describe_value(item.content["key"], value), "not set")


def _describe_value(key: str, value: str) -> str:
    if key in LISTS:
        listed = throttled_replicas(value)
        return "all replicas" if listed.everything else choose_plural("# replica|# replicas", len(listed.pairs))
    rate = rate_of(value)
    return value if rate is None else f"{format_size(rate)}/s"


def describe_start(items: Items) -> list[str]:
    number = choose_plural("# throttle is|# throttles are", len(items))
    return [f"{number} removed. Replication of the named brokers and replicas is no longer limited by them."]


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Throttle removal",
            noun="# throttle|# throttles",
            batch=BATCH,
            plan=plan_removals,
            read=read_removals,
            send=partial(alter_configs, make_change),
            facts=(CollectorKind.CONFIGS, CollectorKind.REASSIGNMENTS),
            title=RemovalCheckTitle.FITS,
            find_faults=find_faults,
            risk=lambda *_: RiskFacts(bytes_share=0.0, partitions_share=0.0),
            rights=find_rights,
            words=describe_removal,
            start_words=describe_start,
            columns=("Throttle", "Value", "Afterwards"),
            obstacle=find_obstacle,
        )
    )
