"""Collectors of API versions and features, and of answers of brokers as a sign of life.

Versions tell the metadata mode of the cluster, the common capabilities of all brokers, and their least Kafka release.

Answers are asked for often: controllers take a broker for alive until its session has timed out
(broker.session.timeout.ms, 9 s), and metadata says so that long, while a killed process refuses connections at once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from kafkadash.clusters.metadata_mode import judge_mode
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.leases import WriteStamp, one_writer_of_shapes
from kafkadash.core.rows import update_rows
from kafkadash.kafka.api import ApiVersions, KafkaFailure
from kafkadash.monitoring.collectors import (
    CollectContext,
    CollectedFacts,
    broker_errors,
    find_silent_brokers,
    refuse_nothing,
    to_utc,
)
from kafkadash.monitoring.metadata_collector import store_figures
from kafkadash.monitoring.models import BrokerState, Capabilities, CollectorKind, GroupState, PrincipalRights

# Lowest Kafka release that offers a version of a request, newest first: (API key, version, release).
_FIRST_OFFERED: Sequence[tuple[int, int, str]] = (
    (35, 5, "4.3"),  # DescribeLogDirs with cordoned directories
    (45, 1, "4.1"),  # AlterPartitionReassignments with allow_replication_factor_change
    (60, 2, "4.0"),  # DescribeCluster with fenced brokers
    (55, 2, "3.9"),  # DescribeQuorum with directory ids
    (60, 1, "3.7"),  # DescribeCluster with the type of endpoint (KIP-919); in ZooKeeper mode there is no 55
    (55, 1, "3.3"),  # DescribeQuorum with timestamps (KIP-836)
    (60, 0, "2.8"),  # DescribeCluster (KIP-700)
    (45, 0, "2.4"),  # AlterPartitionReassignments (KIP-455)
)


def at_least(offered: Mapping[int, tuple[int, int]]) -> str:
    """The newest Kafka release this broker is sure to have reached, or '' when it is older than 2.4.

    ``offered``: API key → (lowest, highest version). Patch releases do not show in the protocol.
    """
    for key, version, release in _FIRST_OFFERED:
        if key in offered and offered[key][1] >= version:
            return release
    return ""


def common_ranges(ranges: Sequence[Mapping[str, Sequence[int]]]) -> dict[str, list[int]]:
    """API key or feature → [lowest, highest] that all have in common; those that some of them lack are left out."""
    if not ranges:
        return {}
    found: dict[str, list[int]] = {}
    for key in ranges[0]:
        if all(key in own for own in ranges):
            low, high = max(own[key][0] for own in ranges), min(own[key][1] for own in ranges)
            if low <= high:
                found[key] = [low, high]
    return found


def read(asking: CollectContext) -> CollectedFacts:
    """Asks every broker. With brokers of different age the oldest one speaks for the cluster."""
    asking.step()
    answer = asking.admin.api_versions(deadline=asking.deadline)
    refuse_nothing(answer.brokers, answer.errors)
    asking.step()
    rights = _read_rights(asking)
    cluster, taken_at = asking.cluster, to_utc(answer.taken_at)
    releases = {broker: at_least(offered) for broker, offered in answer.brokers.items()}
    mode = judge_mode(answer, ClusterMode(cluster.mode))
    rows = BrokerState.objects.filter(cluster=cluster).only("broker_id", "release", "gone_at", "replicas")
    known = {b.broker_id: b for b in rows}
    changed = {
        known[broker].pk: {"release": release}
        for broker, release in sorted(releases.items())
        if broker in known and known[broker].release != release
    }
    # A broker that did not answer is what it was the last time; one that went with its replicas may come back.
    stays = {b.broker_id: b.release for b in known.values() if b.gone_at is None or b.replicas}
    others = {broker: release for broker, release in stays.items() if release}
    oldest = min({**others, **releases}.values(), key=_release_order, default="")
    stored = Capabilities.objects.filter(cluster=cluster).first()
    members = stays.keys() | answer.brokers.keys() | answer.errors.keys()
    told = _list_software(answer, releases, members, stored.software if stored else [])
    software = _group_software(told)
    capable = {**_pack_capabilities(answer, told, members), "software": software}
    mixed_since = (stored and stored.mixed_since) or taken_at
    capable["mixed_since"] = mixed_since if len(software) > 1 else None

    def write(_: WriteStamp) -> None:
        one_writer_of_shapes(cluster.pk)
        _learn_mode(cluster, mode)
        if releases:
            store_figures(cluster, {"kafka_version": f"{oldest} or newer" if oldest else ""})
            if stored is None or any(getattr(stored, name) != value for name, value in capable.items()):
                Capabilities.objects.update_or_create(cluster=cluster, defaults={**capable, "changed_at": taken_at})
        if rights is not None:
            PrincipalRights.objects.update_or_create(cluster=cluster, defaults=rights)
        update_rows(BrokerState, changed)

    return CollectedFacts(
        taken_at=taken_at,
        rows=len(answer.brokers),
        write=write,
        not_answered=sorted(find_silent_brokers(answer.errors)),
        errors=broker_errors(answer.errors),
    )


def _read_rights(asking: CollectContext) -> dict[str, object] | None:
    """Return the columns of ``PrincipalRights``; None where this refresh cannot tell, so that the last reading stays.

    Versions are collected all the same: rights that Kafka does not tell are no failure of them.
    """
    try:
        granted = asking.admin.permissions(deadline=asking.deadline)
    except KafkaFailure:
        return None
    return {
        "on_cluster": None if granted.cluster is None else sorted(granted.cluster),
        "on_topics": _pack_rights(granted.topics),
        "on_groups": _read_rights_on_groups(asking),
        "taken_at": to_utc(granted.taken_at),
    }


def _read_rights_on_groups(asking: CollectContext) -> dict[str, object]:
    """Those of groups that could not be described are unknown, also where all others have the same."""
    groups = GroupState.objects.filter(cluster=asking.cluster, gone_at=None).exclude(name="")
    names = list(groups.values_list("name", flat=True))
    asking.step()
    try:
        told = asking.groups.group_permissions(names, deadline=asking.deadline) if names else {}
    except KafkaFailure:
        told = {}
    # A group that is new since then may have other rights, so that the names are kept in any case.
    return _pack_rights({name: told.get(name) for name in names}) | {"names": sorted(names)}


def _pack_rights(rights: Mapping[str, frozenset[str] | None]) -> dict[str, object]:
    """Name what most have once, and the others each."""
    sets = {name: None if held is None else sorted(held) for name, held in rights.items()}
    counted = Counter(tuple(held) for held in sets.values() if held is not None)
    usual = list(counted.most_common(1)[0][0]) if counted else None
    packed: dict[str, object] = {"usual": usual}
    packed["others"] = others = {name: held for name, held in sets.items() if held != usual}
    if others:  # then one that was not told may have either
        packed["names"] = sorted(sets)
    return packed


def _list_software(
    answer: ApiVersions, releases: Mapping[int, str], members: Collection[int], before: Sequence[Mapping[str, Any]]
) -> dict[int, Mapping[str, Any]]:
    """Return release, APIs and features by broker; ``before``, as stored, has those that did not answer."""
    told = {broker: group for group in before for broker in group["brokers"]}
    for broker, offered in answer.brokers.items():
        features = answer.features[broker].supported if broker in answer.features else {}
        told[broker] = {
            "release": releases[broker],
            "apis": {str(key): list(levels) for key, levels in sorted(offered.items())},
            "features": {name: list(levels) for name, levels in sorted(features.items())},
        }
    return {broker: told[broker] for broker in sorted(told.keys() & set(members))}


def _pack_capabilities(
    answer: ApiVersions, told: Mapping[int, Mapping[str, Any]], members: Collection[int]
) -> dict[str, object]:
    """The packed columns of ``Capabilities``."""
    newest = max(answer.features.values(), key=lambda own: -1 if own.epoch is None else own.epoch, default=None)
    supported = common_ranges([own["features"] for own in told.values()])
    finalized = newest.finalized if newest else {}
    return {
        "apis": common_ranges([own["apis"] for own in told.values()]) if len(told) == len(members) else {},
        "features": {
            name: {"finalized": finalized.get(name), "supported": supported.get(name)}
            for name in sorted({*supported, *finalized})
        },
        "releases": {str(broker): own["release"] for broker, own in told.items()},
    }


MOST_SETS, MOST_APIS, MOST_FEATURES = 20, 300, 100
"""Bounds of what is stored of the brokers' software."""


def _group_software(told: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return ``Capabilities.software``."""
    groups: dict[str, dict[str, Any]] = {}
    for broker, own in told.items():
        same = {
            "release": own["release"],
            "apis": dict(list(own["apis"].items())[:MOST_APIS]),
            "features": dict(list(own["features"].items())[:MOST_FEATURES]),
        }
        groups.setdefault(json.dumps(same, sort_keys=True), {**same, "brokers": []})["brokers"].append(broker)
    return sorted(groups.values(), key=lambda group: (-len(group["brokers"]), group["brokers"]))[:MOST_SETS]


def _learn_mode(cluster: Cluster, mode: ClusterMode) -> None:
    if cluster.mode != mode:
        Cluster.objects.filter(pk=cluster.pk).update(mode=mode)


def _release_order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part)


TRY_S = 4.0
"""A broker that does not answer within two tries of so many seconds is silent; one that refuses is so at once."""


def read_answers(asking: CollectContext) -> CollectedFacts:
    """Asks every broker that the cluster lists as alive; one that fails is asked once more, over a new connection."""
    answer = _ask_versions(asking)
    if silent := find_silent_brokers(answer.errors):
        answer = _ask_versions(asking)
        silent &= find_silent_brokers(answer.errors)
    refuse_nothing(answer.brokers, answer.errors)
    taken_at = to_utc(answer.taken_at)
    known = list(
        BrokerState.objects.filter(cluster=asking.cluster).only("broker_id", "silent_since", "fenced", "gone_at")
    )
    changed = _silence_changes(known, answer.brokers, silent, taken_at)

    def write(_: WriteStamp) -> None:
        one_writer_of_shapes(asking.cluster.pk)
        update_rows(BrokerState, changed)

    listed = answer.brokers.keys() | answer.errors.keys()
    up = {row.broker_id for row in known if row.gone_at is None and not row.fenced}
    return CollectedFacts(
        taken_at=taken_at,
        rows=len(listed),
        write=write,
        not_answered=sorted(silent),
        errors=broker_errors(answer.errors),
        doubts=[CollectorKind.METADATA] if changed or up != listed else [],
    )


def _ask_versions(asking: CollectContext) -> ApiVersions:
    asking.step()
    return asking.admin.api_versions(deadline=min(TRY_S, asking.deadline))


def _silence_changes(
    known: Collection[BrokerState], answered: Collection[int], silent: Collection[int], taken_at: datetime
) -> dict[int, dict[str, datetime | None]]:
    """Primary key → since when it is silent. One that is not listed as alive stays what it was until it answers."""
    changed: dict[int, dict[str, datetime | None]] = {}
    for row in known:
        if row.broker_id in silent and row.silent_since is None:
            changed[row.pk] = {"silent_since": taken_at}
        elif row.broker_id in answered and row.silent_since is not None:
            changed[row.pk] = {"silent_since": None}
    return changed
