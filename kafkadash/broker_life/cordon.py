"""The kind of change "broker-cordon": log directories that take no new replicas, from now on or no more (KIP-1066).

An item is one broker with the value of its own ``cordoned.log.dirs`` (IncrementalAlterConfigs 44): ``*`` for all
directories, some of them, or None where it is not set. It is reached when the broker has the value and its directories
say so, ready when it has the value of the plan, and it does not fit where somebody has set another one since.
A rollback restores the values from before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import Max

from kafkadash.broker_life.errors import BrokerLifeCheckTitle, BrokerLifeErrorCode
from kafkadash.broker_life.reasons import BrokerReasonCode, CordonChanged, CordonInherited, CordonLevelTooLow
from kafkadash.changes.rights import NeededRight
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.messages import CodedReason, PlainReason, choose_plural, coded, reason_message
from kafkadash.kafka.api import ConfigChange, ConfigEntry, ConfigOrigin, ConfigResource, LogDir, WholeClient
from kafkadash.monitoring.brokers import broker_word
from kafkadash.monitoring.freshness import UP, freshness_of_kind, read_statuses
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    CollectorKind,
    ConfigSource,
    TopicState,
    is_closed,
)
from kafkadash.monitoring.offers import KafkaFeature, load_lack
from kafkadash.monitoring.stored_commands import format_time
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import DoneItem, Items, ItemWords, PlannedItems, ShortKind, alter_configs
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState

KIND = "broker-cordon"
KEY = "cordoned.log.dirs"
ALL = "*"
BATCH = 100


@dataclass(frozen=True, slots=True)
class StoredCordon:
    """Cordon of a broker as stored. ``value``: of the broker's own config, None where it is not set there.

    ``inherited``: the value that it has from elsewhere, '' for none. ``fault``: why it cannot be changed.
    """

    value: str | None
    inherited: str
    fault: CodedReason | None


def load_cordons(cluster: Cluster, brokers: Collection[int]) -> dict[int, StoredCordon]:
    """Load the cordons of brokers that were ever seen. Two queries."""
    weights = BrokerWeights.objects.filter(cluster=cluster, broker_id__in=brokers)
    directories = dict(weights.values_list("broker_id", "dirs"))
    rows = BrokerState.objects.filter(cluster=cluster, broker_id__in=brokers)
    return {row.broker_id: _read_stored(row, directories.get(row.broker_id, [])) for row in rows}


def _read_stored(row: BrokerState, directories: Sequence[Mapping[str, Any]]) -> StoredCordon:
    value, source = (row.config or {}).get(KEY, (None, ConfigSource.DEFAULT))
    own = source == ConfigSource.BROKER
    fault: CodedReason | None = None
    if broker_word(row) != "up":
        fault = PlainReason(BrokerReasonCode.NOT_RUNNING)
    elif row.config is None or not directories:
        fault = PlainReason(BrokerReasonCode.UNREAD)
    elif any(directory["cordoned"] is None for directory in directories if not directory["error"]):
        fault = PlainReason(BrokerReasonCode.NO_CORDONS)
    return StoredCordon(value if own else None, "" if own else value or "", fault)


def _find_refusal(cluster: Cluster) -> CodedReason | None:
    """Return why Kafka would refuse every cordon, as far as its versions were read lately. Two queries.

    It takes uncordons all the same. What was planned is judged by Kafka itself, as levels are raised at any time.
    """
    lack = load_lack(cluster, KafkaFeature.CORDONS)
    if lack is None:
        return None
    read = freshness_of_kind(CollectorKind.VERSIONS, read_statuses([cluster.pk])[cluster.pk], clock.now())
    if read.stale or read.taken_at is None:
        return None
    if not lack.level:
        return PlainReason(BrokerReasonCode.NO_CORDONS)
    return CordonLevelTooLow(lack.level, lack.release, format_time(read.taken_at))


def plan_cordon(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan the ``values`` of brokers: id to value, None to unset it. Those that have it need nothing. Four queries.

    A rollback has ``found``, the values that the run left: where another one is set, the broker is left out. While
    facts are older than the run, the value from before it is still stored.
    """
    values = {int(broker): value for broker, value in wanted["values"].items()}
    found = {int(broker): value for broker, value in wanted.get("found", {}).items()}
    stored = load_cordons(cluster, values.keys())
    refusal = _find_refusal(cluster) if any(map(split_directories, values.values())) else None
    items, left_out = [], []
    for broker, value in sorted(values.items()):
        own = stored.get(broker)
        fault = own.fault if own else PlainReason(BrokerReasonCode.NOT_REGISTERED)
        if not fault and split_directories(value):
            fault = refusal
        if own and not fault and value is None and own.inherited and broker not in found:
            fault = CordonInherited(own.inherited)
        if own and not fault and broker in found and own.value not in (found[broker], value):
            fault = CordonChanged(own.value, found[broker])
        if own is None or fault is not None:
            left_out.append(coded(BrokerLifeErrorCode.DOES_NOT_FIT, item=f"broker {broker}", why=reason_message(fault)))
        elif (now := found.get(broker, own.value)) != value:
            content = {"broker": broker, "from": now, "to": value}
            items.append(PlannedItem(f"broker {broker}", content))
    return PlannedItems(items, left_out)


def judge_cordon(item: PlannedItem, entry: ConfigEntry | None, directories: Sequence[LogDir]) -> ItemReading:
    """Compare an item with config and directories of its broker. ``entry`` is None where it has no such config.

    A directory that is offline is left out: Kafka never reports it as cordoned. Without a value of its own, the broker
    has the one of its file or of the cluster default.
    """
    online = [directory for directory in directories if directory.error is None]
    if entry is None or any(directory.cordoned is None for directory in online):
        return ItemReading(ReadingState.UNFIT, PlainReason(BrokerReasonCode.NO_CORDONS))
    own = entry.value if entry.source is ConfigOrigin.DYNAMIC_BROKER_CONFIG else None
    found = {"value": own}
    if own != item.content["to"]:
        if own != item.content["from"]:
            return ItemReading(ReadingState.UNFIT, CordonChanged(own, item.content["from"]), found)
        return ItemReading(ReadingState.READY, found=found)
    cordoned = {directory.path for directory in online if directory.cordoned}
    offline = {directory.path for directory in directories if directory.error is not None}
    named = {each.path for each in directories} if entry.value == ALL else split_directories(entry.value)
    return ItemReading(ReadingState.REACHED if cordoned == named - offline else ReadingState.READY, found=found)


def split_directories(value: str | None) -> set[str]:
    return {path for path in (each.strip() for each in (value or "").split(",")) if path}


def read_cordons(_: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read which brokers run, then their configs and log directories. Raises KafkaFailure."""
    described = client.describe_cluster(deadline=deadline / 3).brokers
    running = {broker.id for broker in described if not broker.fenced}
    readings, asked = {}, []
    for item in items:
        if item.content["broker"] in running:
            asked.append(item)
        else:
            readings[item.subject] = ItemReading(ReadingState.UNFIT, PlainReason(BrokerReasonCode.NOT_RUNNING))
    if not asked:
        return readings
    resources = [_resource_of(item) for item in asked]
    configs = client.describe_configs(resources, keys=[KEY], deadline=deadline / 3).resources
    directories = client.log_dirs([item.content["broker"] for item in asked], deadline=deadline / 3).brokers
    for item, resource in zip(asked, resources, strict=True):
        broker = item.content["broker"]
        if resource in configs and broker in directories:
            readings[item.subject] = judge_cordon(item, configs[resource].get(KEY), directories[broker])
    return readings


def _resource_of(item: PlannedItem) -> ConfigResource:
    return ConfigResource.broker(item.content["broker"])


def make_change(item: PlannedItem) -> ConfigChange:
    """Return the change of a broker's own config, which Kafka refuses below metadata.version 4.3."""
    return ConfigChange.set_or_delete(_resource_of(item), KEY, item.content["to"])


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why brokers do not fit their items any more, from stored rows. Two queries."""
    stored = load_cordons(cluster, {item.content["broker"] for item in items})
    faults: dict[str, CodedReason] = {}
    for item in items:
        own = stored.get(item.content["broker"])
        if own is None:
            faults[item.subject] = PlainReason(BrokerReasonCode.NOT_REGISTERED)
        elif own.fault:
            faults[item.subject] = own.fault
        elif own.value not in (item.content["from"], item.content["to"]):
            faults[item.subject] = CordonChanged(own.value, item.content["from"])
    return faults


def describe_cordon(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    now = item.content["from"] if before is None else before["value"]
    return ItemWords(_name(now), _name(item.content["to"]))


def _name(value: str | None) -> str:
    if value is None:
        return "not set"
    if value == ALL:
        return "all directories cordoned"
    paths = sorted(split_directories(value))
    return f"{', '.join(paths)} cordoned" if paths else "none cordoned"


def describe_start(items: Items) -> list[str]:
    cordons = [item for item in items if item.content["to"] is not None]
    sentences = []
    if cordons:
        number = choose_plural("# broker|# brokers", len(cordons))
        sentences.append(f"Directories of {number} take no new replicas. Replicas that are there stay and are served.")
    if len(cordons) < len(items):
        number = choose_plural("# broker takes|# brokers take", len(items) - len(cordons))
        sentences.append(f"{number} new replicas again, unless server.properties or the cluster default cordons.")
    return sentences


def count_left(cluster: Cluster, values: Mapping[int, str | None]) -> tuple[int, int]:
    """Return how many brokers can take new replicas with these values of brokers, and the highest replication factor.

    Three queries.
    """
    ids = set(BrokerState.objects.filter(UP, cluster=cluster).values_list("broker_id", flat=True))
    ids -= {broker for broker, value in values.items() if value == ALL}
    for broker, directories in BrokerWeights.objects.filter(cluster=cluster).values_list("broker_id", "dirs"):
        named = split_directories(values.get(broker))
        if directories and all(is_closed(each) or each["path"] in named for each in directories):
            ids.discard(broker)
    factor = TopicState.objects.filter(cluster=cluster).aggregate(most=Max("replication_factor"))["most"]
    return len(ids), factor or 1


def find_risk(cluster: Cluster, items: Items) -> RiskFacts:
    """Judge the brokers that are left where directories are cordoned; nothing is moved. Three queries."""
    values = {item.content["broker"]: item.content["to"] for item in items if item.content["to"] is not None}
    left, factor = count_left(cluster, values) if values else (0, 0)
    return RiskFacts(0.0, 0.0, lacking_brokers=max(0, factor - left))


def roll_back(done: Sequence[DoneItem]) -> dict[str, Any]:
    return {
        "values": {str(item.content["broker"]): before["value"] for item, before in done},
        "found": {str(item.content["broker"]): item.content["to"] for item, _ in done},
    }


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Cordon",
            noun="# broker|# brokers",
            batch=BATCH,
            plan=plan_cordon,
            read=read_cordons,
            send=partial(alter_configs, make_change),
            facts=(CollectorKind.METADATA, CollectorKind.CONFIGS, CollectorKind.LOG_DIRS),
            title=BrokerLifeCheckTitle.CORDON_FITS,
            find_faults=find_faults,
            risk=find_risk,
            rights=lambda _: [NeededRight("AlterConfigs")],
            words=describe_cordon,
            start_words=describe_start,
            columns=("Broker", "Now", "Planned"),
            validate=partial(alter_configs, make_change, validate_only=True),
            rollback_input=roll_back,
        )
    )
