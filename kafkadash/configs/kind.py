"""The kind of change "config-edit": configs are set or removed (IncrementalAlterConfigs 44, KIP-339).

An item is one config of a topic, of a broker or of the default of all brokers. Only the value that is set on the owner
itself counts: inherited values may differ between brokers. An item is reached when the value is set as approved, ready
when the one that was approved to be replaced is still set, and else it does not fit. Kafka names topics by their names
here, so a topic's ID is compared just before the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kafkadash.changes.rights import NeededRight, name_subjects
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.configs.errors import ConfigCheckTitle, ConfigErrorCode
from kafkadash.configs.reasons import ConfigReasonCode, ConfigValueChanged, MinIsrTooHigh
from kafkadash.configs.stored import (
    ConfigKey,
    ConfigOwner,
    OwnerKind,
    describe_owner,
    describe_value,
    load_keys,
    load_owners,
    name_item,
    resource_of,
)
from kafkadash.core.formatting import read_whole_number
from kafkadash.core.messages import CodedReason, PlainReason, choose_plural, coded
from kafkadash.kafka.api import (
    ConfigChange,
    ConfigEntry,
    ConfigOrigin,
    ConfigResource,
    TopicMetadata,
    WholeClient,
    read_named_topics,
)
from kafkadash.kafka.config_values import MIN_ISR, UNCLEAN_ELECTION, is_same_value, may_elect_uncleanly, read_number
from kafkadash.monitoring.models import BrokerState, CollectorKind, TopicState
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import (
    UNCLEAN_APPROVALS,
    DoneItem,
    Items,
    ItemWords,
    PlannedItems,
    ShortKind,
    alter_configs,
)
from kafkadash.short_runs.plans import share_of_partitions
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState
from kafkadash.topic_rules.rules import RuledItem

KIND = "config-edit"
BATCH = 1000
_SHOWN = 100
_OWN_ORIGINS = {
    OwnerKind.TOPIC: ConfigOrigin.DYNAMIC_TOPIC_CONFIG,
    OwnerKind.BROKER: ConfigOrigin.DYNAMIC_BROKER_CONFIG,
    OwnerKind.DEFAULT: ConfigOrigin.DYNAMIC_DEFAULT_BROKER_CONFIG,
}


def plan_edits(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan ``edits``: of an owner kind ``of``, its ``ids``, ``key``, and ``value`` or None to remove it.

    An edit of a rollback has ``found``, the value that the run left: where another one is set, it is left out. While
    facts are older than the run, the value from before it is still stored. Six queries at most.
    """
    edits = wanted["edits"]
    identities: dict[str, set[str]] = {}
    for edit in edits:
        identities.setdefault(edit["of"], set()).update(edit["ids"])
    owners = {of: load_owners(cluster, of, ids) for of, ids in identities.items()}
    keys = {of: load_keys(cluster, of) for of in identities}
    items: dict[str, PlannedItem] = {}
    gone = changed = same = 0
    for edit in edits:
        for identity in edit["ids"]:
            owner = owners[edit["of"]].get(identity)
            if owner is None or owner.config is None:
                gone += 1
                continue
            own, value = owner.own_value(edit["key"]), edit["value"]
            if "found" in edit:
                if not (is_same_value(own, edit["found"]) or is_same_value(own, value)):
                    changed += 1
                    continue
                own = edit["found"]
            elif is_same_value(own, value):
                same += 1
                continue
            item = _plan_item(owner, keys[edit["of"]].get(edit["key"]), edit["key"], own, value)
            items[item.subject] = item  # while a topic that is gone is stored beside one of its name, the newer one
    notes = (
        (ConfigErrorCode.LEFT_OUT_GONE, gone),
        (ConfigErrorCode.LEFT_OUT_CHANGED, changed),
        (ConfigErrorCode.LEFT_OUT_SAME, same),
    )
    return PlannedItems(list(items.values()), [coded(code, configs=number) for code, number in notes if number])


def _plan_item(
    owner: ConfigOwner, described: ConfigKey | None, key: str, before: str | None, value: str | None
) -> PlannedItem:
    stored = (owner.config or {}).get(key)
    if stored is not None and owner.own_value(key) is None:
        inherited = list(stored)  # in force now
    else:
        inherited = list(described.inherited) if described and described.inherited else []
    content = {
        "of": owner.kind,
        "id": owner.identity,
        "name": owner.name,
        "key": key,
        "value": value,
        "before": before,
        "inherited": inherited,
    }
    return PlannedItem(name_item(owner, key), content)


def judge_value(item: PlannedItem, value: str | None) -> ItemReading:
    """Compare an item with the value that is set on its owner, None where none is."""
    found = {"value": value}
    if is_same_value(value, item.content["value"]):
        return ItemReading(ReadingState.REACHED, found=found)
    if is_same_value(value, item.content["before"]):
        return ItemReading(ReadingState.READY, found=found)
    return ItemReading(ReadingState.UNFIT, _explain_change(item, value), found)


def _explain_change(item: PlannedItem, value: str | None) -> ConfigValueChanged:
    return ConfigValueChanged(_shorten(value), _shorten(item.content["before"]))


def _shorten(value: str | None) -> str:
    shown = "not set" if value is None else describe_value(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def read_values(_: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read topic IDs with a Metadata request, then the values with DescribeConfigs. Raises KafkaFailure."""
    names = {item.content["name"] for item in items if item.content["of"] == OwnerKind.TOPIC}
    found = read_named_topics(client, names, deadline=deadline / 2)
    # Before Kafka 2.8 a topic has no id.
    topics = {name: topic.topic_id or name if topic else None for name, topic in found.items()}
    asked = {_resource_of(item) for item in items if _is_asked(item, topics)}
    keys = {item.content["key"] for item in items}
    told = client.describe_configs(sorted(asked), deadline=deadline / 2, keys=keys).resources if asked else {}
    readings = {}
    for item in items:
        resource, topic_id = _resource_of(item), topics.get(item.content["name"])
        if item.content["of"] == OwnerKind.TOPIC and item.content["name"] in topics and topic_id != item.content["id"]:
            code = ConfigReasonCode.TOPIC_GONE if topic_id is None else ConfigReasonCode.TOPIC_RECREATED
            readings[item.subject] = ItemReading(ReadingState.UNFIT, PlainReason(code))
        elif resource in told:
            reading = judge_value(item, _own_value(item, told[resource]))
            fault = _judge_live_isr(item, found.get(item.content["name"]))
            if fault is not None and reading.state is ReadingState.READY:
                reading = ItemReading(ReadingState.UNFIT, fault, reading.found)
            readings[item.subject] = reading
    return readings


def _judge_live_isr(item: PlannedItem, topic: TopicMetadata | None) -> MinIsrTooHigh | None:
    """Return why the partition with fewest replicas would take no records; a value that is removed is inherited."""
    content = item.content
    if content["of"] != OwnerKind.TOPIC or topic is None or not topic.partitions:
        return None
    inherited = content["inherited"][0] if content["inherited"] else None
    value = content["value"] if content["value"] is not None else inherited
    return judge_min_isr(content["key"], value, min(len(partition.replicas) for partition in topic.partitions))


def _is_asked(item: PlannedItem, topics: Mapping[str, str | None]) -> bool:
    return item.content["of"] != OwnerKind.TOPIC or bool(topics.get(item.content["name"]) == item.content["id"])


def _own_value(item: PlannedItem, entries: Mapping[str, ConfigEntry]) -> str | None:
    entry = entries.get(item.content["key"])
    return entry.value if entry is not None and entry.source is _OWN_ORIGINS[item.content["of"]] else None


def _resource_of(item: PlannedItem) -> ConfigResource:
    return resource_of(item.content["of"], item.content["name"])


def make_change(item: PlannedItem) -> ConfigChange:
    return ConfigChange.set_or_delete(_resource_of(item), item.content["key"], item.content["value"])


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why configs cannot be changed as planned, from stored rows. Three queries at most."""
    topics = _load_of(cluster, OwnerKind.TOPIC, items)
    named = {owner.name: owner for owner in topics.values()}
    others = {of: _load_of(cluster, of, items) for of in (OwnerKind.BROKER, OwnerKind.DEFAULT)}
    faults: dict[str, CodedReason] = {}
    for item in items:
        of, identity, name = (item.content[field] for field in ("of", "id", "name"))
        owner = named.get(name) if of == OwnerKind.TOPIC else others[of].get(identity)
        if owner is None:
            code = ConfigReasonCode.TOPIC_GONE if of == OwnerKind.TOPIC else ConfigReasonCode.BROKER_GONE
            faults[item.subject] = PlainReason(code)
        elif owner.identity != identity:
            faults[item.subject] = PlainReason(ConfigReasonCode.TOPIC_RECREATED)
        elif fault := _find_fault(item, owner):
            faults[item.subject] = fault
    return faults


def _load_of(cluster: Cluster, of: OwnerKind, items: Items) -> dict[str, ConfigOwner]:
    """Return owners by identity; topics also where another one has the name now."""
    own = [item.content for item in items if item.content["of"] == of]
    if not own:
        return {}
    if of is OwnerKind.TOPIC:
        names = {content["name"] for content in own}
        newest = TopicState.objects.filter(cluster=cluster, name__in=names).order_by("changed_at")
        return load_owners(cluster, of, list(newest.values_list("topic_id", flat=True)))
    return load_owners(cluster, of, {content["id"] for content in own})


def _find_fault(item: PlannedItem, owner: ConfigOwner) -> CodedReason | None:
    if owner.config is None:
        return PlainReason(ConfigReasonCode.UNREAD)
    reading = judge_value(item, owner.own_value(item.content["key"]))
    if reading.state is ReadingState.UNFIT:
        return reading.reason
    return find_isr_fault(owner, item.content["key"], item.content["value"])


def find_isr_fault(owner: ConfigOwner, key: str, value: str | None) -> MinIsrTooHigh | None:
    return judge_min_isr(key, value, owner.factor)


def judge_min_isr(key: str, value: str | None, replicas: int | None) -> MinIsrTooHigh | None:
    """Return why producers with acks=all could not write to a partition with so many replicas any more."""
    min_isr = read_number(value) if key == MIN_ISR and value is not None else None
    if min_isr is not None and replicas is not None and min_isr > replicas:
        return MinIsrTooHigh(int(min_isr), replicas)
    return None


# ---- risk


def find_risk(cluster: Cluster, items: Items) -> RiskFacts:
    """A config copies nothing. A broker's share is that of the brokers, and the default concerns all partitions."""
    owners = {(item.content["of"], item.content["name"]) for item in items}
    topics = TopicState.objects.filter(
        cluster=cluster, name__in=[name for of, name in owners if of == OwnerKind.TOPIC]
    ).values_list("partition_count", "internal")
    share = share_of_partitions(cluster, sum(partitions for partitions, _ in topics))
    brokers = sum(of == OwnerKind.BROKER for of, _ in owners)
    if any(of == OwnerKind.DEFAULT for of, _ in owners):
        share = 1.0
    elif brokers and share is not None:
        share = max(share, brokers / max(1, BrokerState.objects.filter(cluster=cluster, gone_at=None).count()))
    at_risk = sum(map(puts_records_at_risk, items))
    return RiskFacts(0.0, share, internal_topics=sum(internal for _, internal in topics), records_at_risk=at_risk)


def puts_records_at_risk(item: PlannedItem) -> bool:
    """Return whether Kafka keeps records for a shorter time by an item, or may lose them. Not known counts as yes."""
    key = item.content["key"].removeprefix("log.")
    before, after = (_value_in_force(item, item.content[field]) for field in ("before", "value"))
    if key in ("cleanup.policy", UNCLEAN_ELECTION):
        return not is_same_value(before, after) and after != "false"
    if key in ("retention.ms", "retention.minutes", "retention.hours", "retention.bytes"):
        return _limit_of(after) < _limit_of(before) or before is None or after is None
    if key == MIN_ISR:
        return before is None or after is None or _limit_of(after) < _limit_of(before)
    return False


def count_approvals(items: Items) -> int:
    """Return the fewest approvals: as many as an unclean election needs where Kafka may hold one by itself."""
    content = (item.content for item in items)
    return UNCLEAN_APPROVALS if any(may_elect_uncleanly(each["key"], each["value"]) for each in content) else 1


def _value_in_force(item: PlannedItem, value: str | None) -> str | None:
    inherited: Sequence[str | None] = item.content["inherited"]
    return value if value is not None else inherited[0] if inherited else None


def _limit_of(value: str | None) -> float:
    """Return the number of a limit; a negative one is none."""
    number = read_whole_number((value or "").lstrip("+"))
    return float("inf") if number is None else float(number)


def find_rights(items: Items) -> list[NeededRight]:
    """Return AlterConfigs on the topics, and on the cluster for brokers and their default."""
    topics = name_subjects(item.content["name"] for item in items if item.content["of"] == OwnerKind.TOPIC)
    of_topics = [NeededRight("AlterConfigs", topics)] if topics else []
    others = any(item.content["of"] != OwnerKind.TOPIC for item in items)
    return [*([NeededRight("AlterConfigs")] if others else []), *of_topics]


def list_ruled(items: Items) -> list[RuledItem]:
    """Return what the topic rules judge: configs of topics, brokers and the default, with what they inherit."""
    return [
        rule_edit(
            item.subject, item.content["of"], item.content["key"], item.content["value"], item.content["inherited"]
        )
        for item in items
    ]


def rule_edit(subject: str, of: str, key: str, value: str | None, inherited: Sequence[str | None]) -> RuledItem:
    """Return an edit as the topic rules judge it; ``inherited``: value and source, none where they are unknown."""
    known = {key: inherited[0]} if inherited else {}
    return RuledItem(subject, configs={key: value}, inherited=known, of_broker=of != OwnerKind.TOPIC)


# ---- words


def describe_edit(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    """Values before and after; before the run, the value is that of the plan."""
    now = item.content["before"] if before is None else before.get("value")
    inherited = describe_value(*item.content["inherited"]) if item.content["inherited"] else ""
    there = describe_value(now) if now is not None else inherited or "not set"
    if item.content["value"] is None:
        return ItemWords(there, f"removed: {inherited}" if inherited else "removed")
    return ItemWords(there, describe_value(item.content["value"]))


def describe_start(items: Items) -> list[str]:
    owners = list({describe_owner(item.content["of"], item.content["name"]): item for item in items})
    configs = choose_plural("# config|# configs", len(items))
    where = owners[0] if len(owners) == 1 else f"{len(owners):,} topics or brokers"
    sentences = [f"{configs} of {where} {'changes' if len(items) == 1 else 'change'}. Kafka applies that at once."]
    if count_approvals(items) > 1:
        sentences.append("Kafka may then elect leaders that lack records, without asking.")
    if any(map(puts_records_at_risk, items)):
        sentences.append("Kafka may delete or lose records by it. A rollback restores the values, not the records.")
    return sentences


def find_rollback(done: Sequence[DoneItem]) -> dict[str, Any]:
    """Return the input that restores the values from before a run, or removes what was not set."""
    edits: dict[tuple[Any, ...], list[str]] = {}
    for item, before in done:
        content = item.content
        edits.setdefault((content["of"], content["key"], before.get("value"), content["value"]), []).append(
            content["id"]
        )
    return {
        "edits": [
            {"of": of, "ids": ids, "key": key, "value": value, "found": found}
            for (of, key, value, found), ids in edits.items()
        ]
    }


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Config change",
            noun="# config|# configs",
            batch=BATCH,
            plan=plan_edits,
            read=read_values,
            send=partial(alter_configs, make_change),
            facts=(CollectorKind.METADATA, CollectorKind.CONFIGS),
            title=ConfigCheckTitle.FITS,
            find_faults=find_faults,
            risk=find_risk,
            rights=find_rights,
            words=describe_edit,
            start_words=describe_start,
            columns=("Config", "Now", "Planned"),
            approvals_of_items=count_approvals,
            validate=partial(alter_configs, make_change, validate_only=True),
            rollback_input=find_rollback,
            ruled=list_ruled,
            passing=frozenset({ConfigReasonCode.MIN_ISR_TOO_HIGH}),
        )
    )
