"""The page that compares brokers: Kafka versions, feature levels that may be raised, and configs that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import PROPOSE, VIEW, cluster_for, is_allowed, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import join_items, listed_shortly
from kafkadash.core.messages import choose_plural
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.configs import source_words
from kafkadash.monitoring.freshness import FactFreshness, not_read
from kafkadash.monitoring.models import (
    BrokerState,
    Capabilities,
    CollectorKind,
    ConfigCatalog,
    ConfigDrift,
    ConfigSource,
)
from kafkadash.monitoring.offers import find_level, list_lacks

MOST_BROKERS, MOST_LINKS = 10, 3
METADATA_VERSION = "metadata.version"

# Names of the API keys 0 to 94, in their order (org.apache.kafka.common.protocol.ApiKeys of Kafka 4.4).
_NAMES = (
    "Produce,Fetch,ListOffsets,Metadata,LeaderAndIsr,StopReplica,UpdateMetadata,ControlledShutdown,OffsetCommit,"
    "OffsetFetch,FindCoordinator,JoinGroup,Heartbeat,LeaveGroup,SyncGroup,DescribeGroups,ListGroups,SaslHandshake,"
    "ApiVersions,CreateTopics,DeleteTopics,DeleteRecords,InitProducerId,OffsetForLeaderEpoch,AddPartitionsToTxn,"
    "AddOffsetsToTxn,EndTxn,WriteTxnMarkers,TxnOffsetCommit,DescribeAcls,CreateAcls,DeleteAcls,DescribeConfigs,"
    "AlterConfigs,AlterReplicaLogDirs,DescribeLogDirs,SaslAuthenticate,CreatePartitions,CreateDelegationToken,"
    "RenewDelegationToken,ExpireDelegationToken,DescribeDelegationToken,DeleteGroups,ElectLeaders,"
    "IncrementalAlterConfigs,AlterPartitionReassignments,ListPartitionReassignments,OffsetDelete,"
    "DescribeClientQuotas,AlterClientQuotas,DescribeUserScramCredentials,AlterUserScramCredentials,Vote,"
    "BeginQuorumEpoch,EndQuorumEpoch,DescribeQuorum,AlterPartition,UpdateFeatures,Envelope,FetchSnapshot,"
    "DescribeCluster,DescribeProducers,BrokerRegistration,BrokerHeartbeat,UnregisterBroker,DescribeTransactions,"
    "ListTransactions,AllocateProducerIds,ConsumerGroupHeartbeat,ConsumerGroupDescribe,ControllerRegistration,"
    "GetTelemetrySubscriptions,PushTelemetry,AssignReplicasToDirs,ListConfigResources,DescribeTopicPartitions,"
    "ShareGroupHeartbeat,ShareGroupDescribe,ShareFetch,ShareAcknowledge,AddRaftVoter,RemoveRaftVoter,UpdateRaftVoter,"
    "InitializeShareGroupState,ReadShareGroupState,WriteShareGroupState,DeleteShareGroupState,"
    "ReadShareGroupStateSummary,StreamsGroupHeartbeat,StreamsGroupDescribe,DescribeShareGroupOffsets,"
    "AlterShareGroupOffsets,DeleteShareGroupOffsets,StreamsGroupTopologyDescriptionUpdate,UnregisterController"
)
_API_NAMES = tuple(_NAMES.split(","))

# Levels of metadata.version that Kafka names (org.apache.kafka.server.common.MetadataVersion of Kafka 4.4).
_METADATA_RELEASES = {
    level: f"{release}-IV{number}"
    for release, first, last in (
        ("3.3", 4, 7),
        ("3.4", 8, 8),
        ("3.5", 9, 11),
        ("3.6", 12, 14),
        ("3.7", 15, 19),
        ("3.8", 20, 20),
        ("3.9", 21, 21),
        ("4.0", 22, 25),
        ("4.1", 26, 27),
        ("4.2", 28, 29),
        ("4.3", 30, 30),
        ("4.4", 31, 33),
    )
    for number, level in enumerate(range(first, last + 1))
}


_SOURCES: Mapping[str, str] = {
    ConfigSource.BROKER: "dynamic",
    ConfigSource.CLUSTER_DEFAULT: "dynamic default",
    ConfigSource.STATIC: "static",
}


def name_level(feature: str, level: int | None) -> str:
    """Return a level as Kafka's tools take it: a release for ``metadata.version`` where its name is known."""
    if level is None:
        return "none"
    return _METADATA_RELEASES.get(level, str(level)) if feature == METADATA_VERSION else str(level)


def name_api(key: str) -> str:
    """Return the name of an API key, or the key where this version does not know it."""
    number = int(key) if key.isascii() and key.isdigit() and len(key) < 6 else len(_API_NAMES)
    return _API_NAMES[number] if number < len(_API_NAMES) else f"API {key}"


@dataclass(frozen=True, slots=True)
class BrokerSet:
    """Brokers that have the same value, or run the same software; ``words`` are the value."""

    words: str
    brokers: Sequence[int]
    source: str = ""

    @property
    def named(self) -> str:
        return listed_shortly([str(broker) for broker in self.brokers], MOST_BROKERS)

    @property
    def source_words(self) -> str:
        return _SOURCES.get(self.source) or source_words(self.source)


@dataclass(frozen=True, slots=True)
class DifferingValue:
    """A key in which brokers differ. ``edit``: brokers on which a change of the config can be proposed."""

    key: str
    sets: Sequence[BrokerSet]
    since: datetime | None = None
    edit: Sequence[int] = ()
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """A feature (KIP-584). ``supported`` is None where not all brokers know it, ``raised`` where it is the highest.

    Each is "unknown" where a broker that never told its levels may have others.
    """

    name: str
    finalized: str
    supported: str | None
    raised: str | None


_UNKNOWN = "unknown"


def list_features(features: Mapping[str, Any], *, complete: bool = True) -> list[FeatureLevel]:
    """Return the features of ``Capabilities.features``; ``complete``: every broker told its levels."""
    found = []
    for name, levels in sorted(features.items()):
        low, high = levels["supported"] or (None, None)
        current = find_level(features, name)
        supported = None if high is None else f"{name_level(name, low)} to {name_level(name, high)}"
        raised = name_level(name, high) if high is not None and current is not None and high > current else None
        if not complete:
            supported, raised = supported and _UNKNOWN, raised and _UNKNOWN
        finalized = _UNKNOWN if current is None else name_level(name, current)
        found.append(FeatureLevel(name, finalized, supported, raised))
    return found


def list_software(software: Sequence[Mapping[str, Any]]) -> list[BrokerSet]:
    return [BrokerSet(group["release"] or "older than 2.4", group["brokers"]) for group in software]


def list_differing_software(software: Sequence[Mapping[str, Any]]) -> list[DifferingValue]:
    """Return API versions and supported feature levels that are not the same on all brokers, features first."""
    found = []
    for part in ("features", "apis"):
        keys = {key for group in software for key in group[part]}
        for key in sorted(keys, key=lambda key: (len(key), key) if part == "apis" else (0, key)):
            values: dict[str, list[int]] = {}
            for group in software:
                values.setdefault(_describe_range(part, key, group[part].get(key)), []).extend(group["brokers"])
            if len(values) > 1:
                name = key if part == "features" else name_api(key)
                found.append(DifferingValue(name, [BrokerSet(words, sorted(own)) for words, own in values.items()]))
    return found


def _describe_range(part: str, key: str, levels: Sequence[int] | None) -> str:
    if levels is None:
        return "not supported"
    low, high = (name_level(key, level) if part == "features" else str(level) for level in levels)
    return low if low == high else f"{low} to {high}"


def list_differing_configs(
    keys: Mapping[str, Sequence[Any]], catalog: Mapping[str, Sequence[Any]], *, may_propose: bool
) -> list[DifferingValue]:
    """Return the keys of ``ConfigDrift``; those whose value is not that of most brokers are edited, where Kafka can."""
    found = []
    for key, (since, values) in sorted(keys.items()):
        sets = [BrokerSet("not set" if value is None else value, brokers, source) for value, source, brokers in values]
        read_only = bool(catalog[key][1]) if key in catalog else True
        others = [broker for own in sets[1:] if own.words != sets[0].words for broker in own.brokers]
        edit = others[:MOST_LINKS] if may_propose and not read_only else ()
        found.append(DifferingValue(key, sets, datetime.fromtimestamp(since, UTC), edit, read_only))
    return found


def drift_context(
    cluster: Cluster, versions: FactFreshness, configs: FactFreshness, *, may_propose: bool
) -> dict[str, Any]:
    """Return the context of the page. Four queries."""
    capable = Capabilities.objects.filter(cluster=cluster).first()
    drift = ConfigDrift.objects.filter(cluster=cluster, format=1).first()
    catalog = ConfigCatalog.objects.filter(cluster=cluster).values_list("brokers", flat=True).first() or {}
    software = capable.software if capable else []
    differing = list_differing_configs(drift.keys if drift else {}, catalog, may_propose=may_propose)
    sets = list_software(software)
    # One that went with its replicas may come back, and Kafka before 4.0 does not tell whether it is registered.
    brokers = BrokerState.objects.filter(Q(gone_at=None) | Q(replicas__gt=0), cluster=cluster).order_by("broker_id")
    rows = list(brokers.annotate(read=Q(config__isnull=False)).values_list("broker_id", "gone_at", "read"))
    registered = {broker: read for broker, gone_at, read in rows if gone_at is None}
    told = registered.keys() & {broker for own in sets for broker in own.brokers}
    compared = min(sum(registered.values()), len(told))
    untold = [str(broker) for broker, *_ in rows if capable and str(broker) not in capable.releases]
    return {
        "versions_freshness": versions,
        "configs_freshness": configs,
        "brokers": len(registered),
        "compared": compared,
        "versions_known": bool(software),
        "configs_known": drift is not None,
        "software": sets,
        "mixed_since": capable.mixed_since if capable else None,
        "differing_software": list_differing_software(software),
        "features": list_features(capable.features, complete=not untold) if capable else [],
        "untold": listed_shortly(untold, MOST_BROKERS) if untold else "",
        "lacks": list_lacks(capable),
        "differing_configs": differing,
        "title": f"{cluster.name}: the comparison is old"
        if any(each.stale and each.taken_at for each in (versions, configs))
        else _describe(cluster.name, sets, differing, compared if drift is not None else 0, len(registered)),
    }


def _describe(
    name: str, sets: Sequence[BrokerSet], configs: Sequence[DifferingValue], compared: int, brokers: int
) -> str:
    """``compared`` of the registered brokers were read; those that never were may differ."""
    releases = {own.words for own in sets}
    differ = []
    if len(releases) > 1:
        differ.append(choose_plural("# Kafka version|# Kafka versions", len(releases)))
    elif len(sets) > 1:
        differ.append(choose_plural("# API set|# API sets", len(sets)))
    if configs:
        differ.append(choose_plural("# config differs|# configs differ", len(configs)))
    if differ:
        return f"{name}: {join_items(differ)}"
    if compared < 2:
        return f"{name}: brokers not compared yet" if compared < brokers or not brokers else f"{name}: a single broker"
    return f"{name}: {'all' if compared >= brokers else f'{compared:,} of'} {brokers:,} brokers are alike"


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def drift(request: HttpRequest, slug: str) -> HttpResponse:
    """Show in what the brokers of a cluster differ, and which feature levels may be raised."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.VERSIONS)
    standing = bar["standing"]
    kinds = (CollectorKind.VERSIONS, CollectorKind.CONFIGS)
    versions, configs = (standing.freshness_of(kind) for kind in kinds)
    may_propose = not cluster.read_only and is_allowed(request.user, PROPOSE, cluster)
    context = {
        **bar,
        "tab": "brokers",
        "live_keys": [read_hint(kind, slug) for kind in kinds],
        "not_read": not_read(cluster, standing.runs, kinds),
        "may_propose": may_propose,
        **drift_context(cluster, versions, configs, may_propose=may_propose),
    }
    return render(request, "monitoring/drift.html", context)
