"""Stored rows as the facts that a judgement takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Least

from kafkadash.changes.troubles import load_failed_changes
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.messages import reason_message
from kafkadash.core.status import NEVER, QUICKEST_JUDGED_S, RefreshStatus
from kafkadash.execution.troubles import load_troubles
from kafkadash.findings.facts import (
    BrokerFact,
    ClusterFacts,
    DirectoryFact,
    DriftFact,
    EligibleFacts,
    FilesSetAside,
    ForecastFact,
    GroupFact,
    HangingFact,
    IncompleteFact,
    PartitionFacts,
    PipelineFact,
    RunFact,
)
from kafkadash.findings.judges import MORE
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.history.models import DiskForecast, PipelineLedger
from kafkadash.history.standing import PipelineStatus, pipeline_standing
from kafkadash.monitoring.canary.rules import NEWEST, find_trouble, find_unmeasured, take_recent
from kafkadash.monitoring.canary.samples import load_newest
from kafkadash.monitoring.eligible_replicas import LeaderCandidates, load_candidates
from kafkadash.monitoring.freshness import newest_quorums, read_statuses
from kafkadash.monitoring.groups.rules import LagState
from kafkadash.monitoring.models import (
    ON_REQUEST,
    BrokerState,
    BrokerWeights,
    Capabilities,
    ClusterState,
    CollectorKind,
    CollectorRun,
    ConfigDrift,
    GroupState,
    MoveOutcome,
    QuorumSnapshot,
    ReassignmentSnapshot,
    ThrottleState,
    TopicState,
    ZooKeeperState,
)
from kafkadash.monitoring.partitions import AbsentBrokers, PartitionShape
from kafkadash.monitoring.quorum.rules import FLAPPING_WITHIN, LeaderTerm, leader_changes, recent_changes
from kafkadash.monitoring.transactions.rules import TransactionVerdict
from kafkadash.monitoring.transactions.stored import load_snapshot, read_transactions
from kafkadash.short_runs.troubles import load_short_troubles

_MOST_TOPICS = 50
"""Topics that are looked into for names of partitions; their number comes from the figures of the cluster."""

_SET_ASIDE_FOR = timedelta(hours=24)
_MOST_SET_ASIDE = 20
"""A finding about files that could not be read stays for a day after the last of them."""

_GAP_INTERVALS = 4
"""Intervals without a probe after which earlier ones say nothing about now."""

_Moves = Mapping[tuple[str, int], frozenset[int]]


def age_facts(
    cluster: Cluster, statuses: Mapping[str, RefreshStatus], ensemble: ZooKeeperState | None = None
) -> ClusterFacts:
    """Only what is known of our own reading, by kind. One query where ZooKeeper is read and ``ensemble``, the row of
    that, is not given; else none.
    """
    return ClusterFacts(
        enabled=cluster.enabled,
        kraft=cluster.mode == ClusterMode.KRAFT,
        zookeeper=cluster.mode == ClusterMode.ZOOKEEPER,
        ensemble=_read_ensemble(cluster, statuses, ensemble),
        addresses=len([a for a in cluster.bootstrap_servers.split(",") if a.strip()]),
        kafka_id=cluster.kafka_id,
        other_kafka_id=cluster.other_kafka_id,
        same_as=cluster.same_as.name if cluster.same_as else "",
        answers=statuses.get(CollectorKind.ANSWERS),
        metadata=statuses.get(CollectorKind.METADATA, NEVER),
        reassignments=statuses.get(CollectorKind.REASSIGNMENTS, NEVER),
        quorum=statuses.get(CollectorKind.QUORUM, NEVER),
        log_dirs=statuses.get(CollectorKind.LOG_DIRS, NEVER),
        configs=statuses.get(CollectorKind.CONFIGS, NEVER),
        versions=statuses.get(CollectorKind.VERSIONS, NEVER),
        groups=statuses.get(CollectorKind.GROUPS),
        canary=statuses.get(CollectorKind.CANARY),
        transactions=statuses.get(CollectorKind.TRANSACTIONS),
    )


def _read_ensemble(
    cluster: Cluster, statuses: Mapping[str, RefreshStatus], known: ZooKeeperState | None
) -> RefreshStatus | None:
    """How ZooKeeper is read, which is done with the reassignments."""
    if cluster.mode != ClusterMode.ZOOKEEPER or not cluster.zookeeper:
        return None
    state = known or ZooKeeperState.objects.filter(cluster=cluster).first() or ZooKeeperState()
    interval = statuses.get(CollectorKind.REASSIGNMENTS, NEVER).interval_s
    return RefreshStatus(state.taken_at, interval, failures=int(bool(state.error_code)), error=state.error)


def facts_of(cluster: Cluster, now: datetime) -> ClusterFacts:
    """Everything that is stored about one cluster, in at most twenty-nine queries.

    The ages are read first: facts that are stored meanwhile are then taken for older than they are, never for newer.
    """
    facts = age_facts(cluster, read_statuses([cluster.pk])[cluster.pk])
    figures = ClusterState.objects.filter(cluster=cluster).first() or ClusterState(cluster=cluster)
    running = list(
        ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING).values_list(
            "topic", "partition", "adding", "removing", "claimed_by"
        )
    )
    moves = {(topic, partition): frozenset(adding) for topic, partition, adding, *_ in running}
    capable = Capabilities.objects.filter(cluster=cluster).only("features", "software", "mixed_since").first()
    brokers = tuple(_read_brokers(cluster, capable.software if capable else []))
    elr = _ElrSource(cluster, facts, brokers, capable.features if capable else {}, now)
    return replace(
        partition_facts(cluster, figures, moves, facts, elr),
        hidden_topics=figures.hidden_topics,
        rack_violations=figures.rack_violations,
        brokers_without_rack=figures.brokers_without_rack,
        brokers_registered=figures.brokers,
        brokers_gone=figures.brokers_gone,
        brokers=brokers,
        mixed_since=capable.mixed_since if capable else None,
        config_drift=_read_drift(cluster),
        runs=RefreshStatus(now, QUICKEST_JUDGED_S),
        run_troubles=_read_troubles(cluster, now),
        reading=RefreshStatus(now, QUICKEST_JUDGED_S),
        incomplete=_read_incomplete(cluster),
        **(_canary_facts(cluster, facts.canary) if facts.canary else {}),
        **(_transaction_facts(cluster) if facts.transactions else {}),
        zombies=tuple(
            sorted(f"{topic}-{number}" for topic, number, adding, removing, _ in running if {*adding} & {*removing})
        ),
        moved_by={
            broker: int(claim.removeprefix("#"))
            for _, _, adding, removing, claim in running
            if claim.removeprefix("#").isdecimal()
            for broker in (*adding, *removing)
        },
        orphan_throttles=tuple(
            str(t) for t in ThrottleState.objects.filter(cluster=cluster, orphan=True).order_by("resource", "name")
        ),
        **(_quorum_facts(cluster, now) if facts.kraft else {}),
        **(_group_facts(cluster, facts.groups, now) if facts.groups else {}),
        **_pipeline_facts(cluster, now),
    )


def _read_troubles(cluster: Cluster, now: datetime) -> tuple[RunFact, ...]:
    """Troubles of runs of all kinds of changes, by change and kind. Four queries, and one while moves go on."""
    found = (*load_failed_changes(cluster, now), *load_short_troubles(cluster, now), *load_troubles(cluster, now))
    return tuple(
        RunFact(each.number, each.kind.value, each.count, each.since, reason_message(each.why))
        for each in sorted(found, key=lambda each: (each.number, each.kind))
    )


def _read_incomplete(cluster: Cluster) -> IncompleteFact | None:
    """Kinds that were read before a first attempt ended are not known yet."""
    runs = CollectorRun.objects.filter(cluster=cluster, complete_at=None, attempted_at__isnull=False)
    kinds = tuple(runs.exclude(kind__in=ON_REQUEST).order_by("kind").values_list("kind", flat=True))
    return IncompleteFact(kinds, cluster.created_at) if kinds else None


def _canary_facts(cluster: Cluster, status: RefreshStatus) -> dict[str, Any]:
    longest = timedelta(seconds=_GAP_INTERVALS * max(status.interval_s, QUICKEST_JUDGED_S))
    samples = take_recent(load_newest(cluster, NEWEST), longest)
    blind = frozenset(find_unmeasured(samples))
    measured = bool(samples and samples[-1].readings.keys() - blind)
    return {"canaries": tuple(find_trouble(samples)), "canaries_blind": blind, "canary_measured": measured}


def _transaction_facts(cluster: Cluster) -> dict[str, Any]:
    snapshot = load_snapshot(cluster, gaps=False)
    stored = read_transactions(snapshot)
    hanging = [each for each in stored if each.verdict is TransactionVerdict.HANGING]
    fact = None
    if snapshot and hanging:
        cut = snapshot.transaction_count - len(stored) if len(hanging) == len(stored) else 0
        since = datetime.fromtimestamp(min(each.seen_at for each in hanging), UTC)
        places = tuple(dict.fromkeys(each.name for each in hanging))
        fact = HangingFact(len(hanging), places, since, unread=snapshot.unasked + cut)
    return {"hanging": fact, "hanging_blind": any(each.is_blind for each in stored)}


def age_pipeline(status: PipelineStatus) -> RefreshStatus | None:
    """Return when the pipeline was last looked at; None where no pipeline ever reported. No query."""
    return RefreshStatus(status.looked.taken_at, status.looked.interval_s) if status.set_up else None


def _pipeline_facts(cluster: Cluster, now: datetime) -> dict[str, Any]:
    """Nothing where no pipeline ever reported. A file that could not be read may have had facts of every cluster."""
    status = pipeline_standing(now)
    if not status.set_up:
        return {}
    aside = PipelineLedger.objects.filter(ingested_at__gte=now - _SET_ASIDE_FOR).exclude(set_aside=[])
    return {
        "pipeline": age_pipeline(status),
        "pipeline_stands": PipelineFact(
            status.well_at,
            status.interval_s,
            tuple(
                FilesSetAside(file, why, entry.ingested_at)
                for entry in aside.order_by("-ingested_at")[:_MOST_SET_ASIDE]
                for file, why in entry.files_set_aside
            ),
        ),
        "forecasts": tuple(
            ForecastFact(
                broker=row.broker,
                path=row.directory,
                used_bytes=row.used_bytes,
                total_bytes=row.total_bytes,
                grows_per_day=row.grows_per_day,
                made_at=row.observed_at,
                from_at=row.from_at,
            )
            for row in DiskForecast.objects.filter(cluster=cluster).order_by("broker", "directory")
        ),
    }


ELR_FEATURE = "eligible.leader.replicas.version"


@dataclass(frozen=True, slots=True)
class _ElrSource:
    """Reads the stored ELR of a cluster, with its brokers and feature levels (``Capabilities.features``)."""

    cluster: Cluster
    facts: ClusterFacts
    brokers: tuple[BrokerFact, ...]
    features: Mapping[str, Any]
    now: datetime

    def load(self, topics: Collection[TopicState]) -> Mapping[tuple[str, int], LeaderCandidates]:
        """Return the ELR by topic ID and partition; {} where the cluster keeps none. One query.

        A cluster below level 1 of the feature tells empty lists, and one that was read before the metadata is unknown.
        """
        metadata = self.facts.metadata.taken_at
        if not topics or metadata is None or self.facts.versions.stale(self.now):
            return {}
        if not (self.features.get(ELR_FEATURE) or {}).get("finalized"):
            return {}
        stored = load_candidates(self.cluster, [topic.topic_id for topic in topics])
        return {place: own for place, own in stored.items() if own.eligible is not None and own.taken_at >= metadata}

    @property
    def live(self) -> frozenset[int]:
        return frozenset(broker.id for broker in self.brokers if not (broker.gone or broker.fenced))


@dataclass(slots=True)
class _ElrCount:
    """Counts partitions for ``EligibleFacts``."""

    known: int = 0
    hosts: list[frozenset[int]] = field(default_factory=list)

    def count(self, eligible: Collection[int]) -> None:
        self.known += 1
        if eligible:
            self.hosts.append(frozenset(eligible))

    def sum_up(self) -> EligibleFacts:
        common = frozenset.intersection(*self.hosts) if self.hosts else frozenset()
        brokers = common or frozenset().union(*self.hosts)
        return EligibleFacts(self.known, len(self.hosts), tuple(sorted(brokers)), each=bool(common))


@dataclass(slots=True)
class _TroubledPartitions:
    """Result of reading topics with trouble. ``explained`` counts under-replicated partitions of a move.

    ``at_min_last`` counts partitions at min-ISR with one replica in sync.
    """

    offline: list[str] = field(default_factory=list)
    under_min_isr: list[str] = field(default_factory=list)
    at_min_isr: list[str] = field(default_factory=list)
    under_replicated: list[str] = field(default_factory=list)
    absent: AbsentBrokers = field(default_factory=AbsentBrokers)
    explained: int = 0
    at_min_explained: int = 0
    at_min_last: int = 0
    offline_elr: _ElrCount = field(default_factory=_ElrCount)
    under_elr: _ElrCount = field(default_factory=_ElrCount)


def partition_facts(
    cluster: Cluster,
    figures: ClusterState,
    moves: _Moves,
    facts: ClusterFacts | None = None,
    elr: _ElrSource | None = None,
) -> ClusterFacts:
    """``facts`` with what is known of partitions. ``moves``: (topic, partition) → brokers that are being added."""
    trouble = TopicState.objects.filter(cluster=cluster).filter(
        Q(offline_partitions__gt=0) | Q(under_replicated__gt=0) | Q(under_min_isr__gt=0)
    )
    refusing_first = F("under_min_isr").desc(nulls_last=True)
    worst = trouble.order_by("-offline_partitions", refusing_first, "-under_replicated", "name")
    topics = list(worst.only("name", "topic_id", "partitions", "min_isr")[: _MOST_TOPICS + 1])
    complete = len(topics) <= _MOST_TOPICS
    if moves and not complete:
        # Moves that were first seen after the last look at the metadata explain what that look found.
        names = {topic for topic, _ in moves} - {topic.name for topic in topics}
        topics += trouble.filter(name__in=names).only("name", "topic_id", "partitions", "min_isr")
    looked = _look_into(topics, moves)
    if elr is not None:
        _count_eligible(looked, topics, elr)
    sums = TopicState.objects.filter(cluster=cluster).aggregate(
        at_min_last=Sum(
            Least("at_min_isr", "under_replicated"), filter=Q(replication_factor__gt=F("min_isr"), min_isr=1), default=0
        ),
        at_min_isr=Sum(
            # With slack, a partition at min-ISR misses a replica; others of its topic may have none to spare.
            Least("at_min_isr", "under_replicated"),
            filter=Q(replication_factor__gt=F("min_isr")),
            default=0,
        ),
        offline_unjudged=Sum("offline_partitions", filter=Q(under_min_isr=None), default=0),
    )
    at_min_isr = None
    if figures.at_min_isr is not None:
        at_min_isr = len(looked.at_min_isr) + looked.at_min_explained if complete else sums["at_min_isr"]
    refusing = _subtract_offline(figures, sums["offline_unjudged"])
    # The collector has stored it for clusters with more troubled topics than are looked into here.
    absent = looked.absent.as_json() if complete else figures.absent_brokers or {}

    def find_absent(name: str, number: int | None, looked_at: int) -> frozenset[int] | None:
        known = name in absent and number and (number == looked_at or not complete)
        return frozenset(absent[name]) if known else None

    return replace(
        facts or ClusterFacts(),
        partitions=figures.partitions,
        offline=replace(
            _build_partitions(figures.offline_partitions, looked.offline),
            absent=find_absent("offline", figures.offline_partitions, len(looked.offline)),
        ),
        under_min_isr=replace(
            _build_partitions(refusing, looked.under_min_isr),
            absent=find_absent("under_min_isr", refusing, len(looked.under_min_isr)),
        ),
        offline_elr=looked.offline_elr.sum_up(),
        under_elr=looked.under_elr.sum_up(),
        at_min_isr=replace(
            _build_partitions(at_min_isr, looked.at_min_isr),
            absent=find_absent("at_min_isr", at_min_isr, len(looked.at_min_isr) + looked.at_min_explained),
        ),
        at_min_isr_moving=min(at_min_isr or 0, max(figures.at_min_isr_moving or 0, looked.at_min_explained)),
        at_min_isr_last=looked.at_min_last if complete else sums["at_min_last"],
        under_replicated=replace(
            _build_partitions(figures.under_replicated, looked.under_replicated, absent.get("under_replicated", ())),
            absent=find_absent(
                "under_replicated", figures.under_replicated, len(looked.under_replicated) + looked.explained
            ),
        ),
        under_replicated_moving=max(figures.under_replicated_moving or 0, looked.explained),
    )


def count_refusing(cluster: Cluster, figures: ClusterState) -> int | None:
    """Partitions with a leader that refuse writes with acks=all. Asks nothing while no partition is offline."""
    unjudged = 0
    if figures.under_min_isr is not None and figures.offline_partitions:
        topics = TopicState.objects.filter(cluster=cluster, under_min_isr=None)
        unjudged = topics.aggregate(number=Sum("offline_partitions", default=0))["number"]
    return _subtract_offline(figures, unjudged)


def _subtract_offline(figures: ClusterState, offline_unjudged: int) -> int | None:
    """Offline ones are among those under min-ISR only where min.insync.replicas of their topic is known."""
    if figures.under_min_isr is None or figures.offline_partitions is None:
        return None
    return max(0, figures.under_min_isr - max(0, figures.offline_partitions - offline_unjudged))


def _look_into(topics: Iterable[TopicState], moves: _Moves) -> _TroubledPartitions:
    looked = _TroubledPartitions()
    for topic in topics:
        for number, leader, _, replicas, isr, _ in topic.partitions:
            name = f"{topic.name}-{number}"
            shape = PartitionShape(leader, tuple(replicas), tuple(isr), moves.get((topic.name, number), frozenset()))
            looked.absent.add(shape, topic.min_isr)
            if shape.offline:
                looked.offline.append(name)
            elif topic.min_isr is not None and len(isr) < topic.min_isr:
                looked.under_min_isr.append(name)
            at_min = topic.min_isr is not None and len(isr) == topic.min_isr < len(replicas)
            if shape.explained_by_move:
                looked.explained += 1
                looked.at_min_explained += at_min
                continue
            if at_min:
                looked.at_min_isr.append(name)
                looked.at_min_last += len(isr) == 1
            if shape.under_replicated:
                looked.under_replicated.append(name)
    return looked


def _count_eligible(looked: _TroubledPartitions, topics: Collection[TopicState], elr: _ElrSource) -> None:
    """Count offline and under-min-ISR partitions by their ELR.

    Kafka elects a live eligible replica by itself, so an offline partition with one is about to have a leader. Kafka
    holds the high watermark of a partition with fewer replicas in sync than min.insync.replicas, or than it has.
    """
    known = elr.load(topics)
    live = elr.live if known else frozenset()
    for topic in topics if known else ():
        for number, leader, _, replicas, isr, offline in topic.partitions:
            own = known.get((topic.topic_id, number))
            if own is None or own.eligible is None:
                continue
            if leader is None:
                clean = {*isr, *own.eligible} & {*replicas}
                if clean.isdisjoint(live - {*offline}):
                    looked.offline_elr.count(clean)
            elif topic.min_isr is not None and len(isr) < min(topic.min_isr, len(replicas)):
                looked.under_elr.count(own.eligible)


def _build_partitions(number: int | None, names: list[str], missing: Iterable[int] = ()) -> PartitionFacts:
    """Which broker is missing is only said if it is the same one everywhere."""
    brokers = tuple(sorted(missing))
    return PartitionFacts(number, tuple(names[:3]) if number else (), brokers if number and len(brokers) == 1 else ())


def _read_drift(cluster: Cluster) -> tuple[DriftFact, ...]:
    keys = ConfigDrift.objects.filter(cluster=cluster, format=1).values_list("keys", flat=True).first() or {}
    return tuple(DriftFact(key, datetime.fromtimestamp(since, UTC)) for key, (since, _) in sorted(keys.items()))


def _read_brokers(cluster: Cluster, software: Iterable[Mapping[str, Any]]) -> Iterator[BrokerFact]:
    sets = {broker: number for number, group in enumerate(software) for broker in group["brokers"]}
    weights = {
        broker: (dirs, taken_at)
        for broker, dirs, taken_at in BrokerWeights.objects.filter(cluster=cluster).values_list(
            "broker_id", "dirs", "taken_at"
        )
    }
    for broker in BrokerState.objects.filter(cluster=cluster).defer("config"):
        dirs, taken_at = weights.get(broker.broker_id, ((), None))
        silent = broker.silent_since is not None and broker.gone_at is None and not broker.fenced
        yield BrokerFact(
            id=broker.broker_id,
            fenced=bool(broker.fenced),
            gone=broker.gone_at is not None,
            silent=silent,
            replicas=broker.replicas,
            leaders=broker.leaders,
            since=broker.silent_since if silent else broker.gone_at or broker.changed_at,
            release=broker.release,
            software=sets.get(broker.broker_id),
            directories=tuple(
                DirectoryFact(d["path"], d["total_bytes"], d["usable_bytes"], d["error"] or "") for d in dirs
            ),
            directories_at=taken_at,
        )


def _quorum_facts(cluster: Cluster, now: datetime) -> dict[str, Any]:
    seen = newest_quorums([cluster.pk]).get(cluster.pk)
    if seen is None:
        return {}
    return {
        "voters": len(seen.quorum.voters),
        "voters_in_sync": seen.quorum.in_sync,
        "voters_failing": seen.quorum.failing,
        "elections": recent_changes(leader_changes(_recent_reigns(cluster, now)), now),
    }


def _recent_reigns(cluster: Cluster, now: datetime) -> list[LeaderTerm]:
    """Return the leader terms of the window in which changes count, and the last term before it."""
    answers = QuorumSnapshot.objects.filter(cluster=cluster)
    begin = now - FLAPPING_WITHIN
    last = answers.filter(taken_at__lt=begin).order_by("-taken_at").values_list("leader_id", "leader_epoch", "taken_at")
    before = {(leader, epoch): LeaderTerm(leader, epoch, at, at) for leader, epoch, at in last[:1]}
    found = answers.filter(taken_at__gte=begin).values_list("leader_id", "leader_epoch")
    for leader, epoch, first, newest in found.annotate(first=Min("taken_at"), newest=Max("taken_at")):
        known = before.get((leader, epoch))
        before[leader, epoch] = LeaderTerm(leader, epoch, known.first_seen if known else first, newest)
    return list(before.values())


def _group_facts(cluster: Cluster, read: RefreshStatus, now: datetime) -> dict[str, Any]:
    """Groups that do not read, of which records were lost, whose data is old, or which have findings; and which do."""
    failing = [state.value for state in LagState if state.failing]
    old = now - timedelta(seconds=2 * max(read.interval_s, QUICKEST_JUDGED_S))
    rows = GroupState.objects.filter(cluster=cluster, gone_at=None)
    named = Finding.objects.filter(
        cluster=cluster, closed_at=None, kind__in=[FindingKind.CONSUMER_LAG, FindingKind.CONSUMER_LOSS]
    )
    scopes = frozenset(named.values_list("scope", flat=True))
    spoken_of = Q(key__in=scopes - {MORE}) | Q(in_doubt__gt=0) if MORE in scopes else Q(key__in=scopes)
    return {
        "groups_in_trouble": tuple(
            GroupFact(
                key=group.key,
                name=group.name,
                worst=LagState(group.worst) if group.worst else LagState.UNKNOWN,
                taken_at=group.taken_at,
                place=f"{group.worst_topic}-{group.worst_partition}",
                place_lag=group.worst_lag,
                lag=group.lag,
                allowed=group.allowed_lag,
                partitions=group.partitions,
                failing=sum(group.counts.get(state, 0) for state in failing),
                members=group.members,
                since=group.verdict_since,
                lost=group.lost,
                lag_unknown=group.lag_unknown,
                in_doubt=group.in_doubt,
                held=len(group.held),
            )
            for group in rows.filter(Q(worst__in=failing) | Q(lost__gt=0) | Q(taken_at__lt=old) | spoken_of).defer(
                "topics", "times"
            )
        ),
        "groups_named": scopes - {MORE},
        "groups_judged": _are_judged(rows, old),
    }


def _are_judged(groups: QuerySet[GroupState], old: datetime) -> bool:
    """Return whether a group was read after ``old`` and has a verdict, or there are no groups. One query."""
    told = Count("pk", filter=Q(taken_at__gte=old) & ~Q(worst=LagState.UNKNOWN.value))
    numbers = groups.aggregate(every=Count("pk"), told=told)
    return not numbers["every"] or bool(numbers["told"])
