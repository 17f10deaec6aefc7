"""Judgement of a cluster: findings from its facts and the ages of the facts, and the life of findings over time.

Critical means that producers or consumers fail now: partitions without a leader, refused writes, controllers without a
majority, a down broker that hosts replicas. Everything else is a warning. A kind that cannot be judged is *blind*, and
a blind kind closes no finding.

``judge_reading`` are the findings that follow from the ages alone: disabled, unreachable, stale, another cluster. They
need no new reading of the cluster, so pages compute them at display time.

``reconcile`` compares open findings with current ones. A finding is identified by kind and scope. It opens after being
seen in as many different readings as its kind requires, keeps its identity while it is seen, and closes when a reading
that can judge it no longer shows it. A second call with the same facts changes nothing.

``write_headline`` and ``board_headline`` are the headings of pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from kafkadash.core.failures import NO_ANSWER_FAILURES, NO_CONTROLLER_FAILURES
from kafkadash.core.formatting import long_duration, round_duration
from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.core.status import QUICKEST_JUDGED_S, HealthState, RefreshStatus, is_stale
from kafkadash.findings.facts import ClusterFacts, ProductFacts
from kafkadash.findings.judges import (
    JUDGES,
    failing_receivers,
    has_forecast,
    is_unread,
    old_forecasts,
    overdue_tasks,
    unread_groups,
)
from kafkadash.findings.kinds import FactSource, FindingCode, FindingKind, JudgedFinding
from kafkadash.watchdog.rules import AUDITED, list_blockers

_READ_FROM = (
    FactSource.ANSWERS,
    FactSource.REASSIGNMENTS,
    FactSource.QUORUM,
    FactSource.LOG_DIRS,
    FactSource.CONFIGS,
    FactSource.VERSIONS,
    FactSource.GROUPS,
    FactSource.CANARY,
    FactSource.TRANSACTIONS,
    FactSource.RUNS,
    FactSource.READING,
    FactSource.PIPELINE,
)


UNREAD = "unread"
"""Scope of the stale-data finding about facts that were never read. That about others has the scope ''."""
_OF_CANARY = (FindingKind.CANARY_FAILS, FindingKind.CANARY_SLOW)


def judge_reading(facts: ClusterFacts, now: datetime) -> tuple[JudgedFinding, ...]:
    """Findings about our own reading, most urgent first; their parameters hold ages, so they are made at each look."""
    if not facts.enabled:
        return (JudgedFinding(FindingKind.DISABLED, coded(FindingCode.COLLECTION_OFF), now),)
    if facts.other_kafka_id:
        return (_other_cluster_finding(facts, now),)
    if facts.same_as:
        return (_double_finding(facts, now),)
    if facts.metadata.stale(now):
        return (_nothing_new(facts, now),)
    zookeeper = _zookeeper_finding(facts, now)
    return (*_stale_findings(facts, now), *([zookeeper] if zookeeper else []))


def is_trusted(facts: ClusterFacts, now: datetime) -> bool:
    """Return whether the cluster is read currently; if not, all stored facts about it are out of date."""
    return facts.collected and not facts.metadata.stale(now)


def hides_unread(facts: ClusterFacts, now: datetime) -> bool:
    """Return whether nothing is read of the cluster, so that facts which were never read are no finding of their own.

    Their finding stays open with its owner until they are.
    """
    return facts.collected and facts.metadata.stale(now)


def not_judged(judged_at: datetime | None, facts: ClusterFacts, now: datetime) -> JudgedFinding | None:
    """Facts that nobody judged lately: without this, the absence of findings would look like health."""
    if judged_at is not None and not is_stale(judged_at, facts.metadata.interval_s, now):
        return None
    age = _age_seconds(judged_at, now)
    return JudgedFinding(
        FindingKind.STALE,
        coded(FindingCode.NOT_JUDGED_YET) if age is None else coded(FindingCode.NOT_JUDGED, age=age),
        now,
        measured="never evaluated" if age is None else long_duration(age),
        limit=f"limit {_describe_limit([facts.metadata])}",
        since=judged_at,
    )


def _zookeeper_finding(facts: ClusterFacts, now: datetime) -> JudgedFinding | None:
    """Tell that ZooKeeper is not read, or that nobody entered its address."""
    if not facts.zookeeper:
        return None
    if facts.ensemble is None:
        message = coded(FindingCode.ZOOKEEPER_ADDRESS)
        return JudgedFinding(
            FindingKind.ZOOKEEPER, message, now, measured="ZooKeeper mode", limit="without its address"
        )
    if not facts.ensemble.stale(now):
        return None
    age = _age_seconds(facts.ensemble.taken_at, now)
    return JudgedFinding(
        FindingKind.ZOOKEEPER,
        coded(FindingCode.ZOOKEEPER_OLD, why=facts.ensemble.error),
        now,
        measured="no data" if age is None else long_duration(age),
        limit=f"limit {_describe_limit([facts.ensemble])}",
        since=facts.ensemble.taken_at,
    )


def _other_cluster_finding(facts: ClusterFacts, now: datetime) -> JudgedFinding:
    return JudgedFinding(
        FindingKind.ANOTHER_CLUSTER,
        coded(FindingCode.OTHER_CLUSTER_ANSWERS, registered=facts.kafka_id, other=facts.other_kafka_id),
        now,
        measured="other ID",
        limit="than registered",
        since=facts.metadata.taken_at,
    )


def _double_finding(facts: ClusterFacts, now: datetime) -> JudgedFinding:
    return JudgedFinding(
        FindingKind.REGISTERED_TWICE,
        coded(FindingCode.REGISTERED_TWICE, first=facts.same_as),
        now,
        measured="2 registrations",
        limit="limit 1",
        since=facts.metadata.taken_at,
    )


def _nothing_new(facts: ClusterFacts, now: datetime) -> JudgedFinding:
    """Nothing younger than twice the interval tells the state: whatever else is stored is history."""
    metadata = facts.metadata
    kind = FindingKind.UNREACHABLE if metadata.failures else FindingKind.STALE
    if metadata.failures and metadata.failure in NO_ANSWER_FAILURES:
        code, never = FindingCode.NO_BROKER_ANSWERS, FindingCode.NO_BROKER_ANSWERED_YET
    elif metadata.failures:
        code, never = FindingCode.NOTHING_READ, FindingCode.NOTHING_READ_YET
    else:
        code, never = FindingCode.NOTHING_COLLECTED, FindingCode.NOTHING_COLLECTED_YET
    age = _age_seconds(metadata.taken_at, now)
    why = metadata.error
    return JudgedFinding(
        kind,
        coded(never, why=why) if age is None else coded(code, age=age, why=why),
        now,
        measured="no data" if age is None else long_duration(age),
        limit=choose_plural("# address|# addresses", facts.addresses)
        if age is None
        else f"limit {_describe_limit([metadata])}",
        since=metadata.taken_at,
    )


def _stale_findings(facts: ClusterFacts, now: datetime) -> Iterator[JudgedFinding]:
    """Facts besides metadata that are too old to say that all is well, apart from those that were never read."""
    kinds = {source: facts.refreshed(source) for source in _READ_FROM if _is_asked(source, facts)}
    stale = {source: kind for source, kind in kinds.items() if kind.stale(now)}
    read = {source: kind.taken_at for source, kind in stale.items() if kind.taken_at is not None}
    if read:
        own = [stale[source] for source in read]
        oldest = min(read.values())
        age, why = _age_seconds(oldest, now), _first_error(own)
        yield JudgedFinding(
            FindingKind.STALE,
            coded(FindingCode.FACTS_OLD, sources=tuple(source.value for source in read), age=age, why=why),
            now,
            measured=long_duration(age or 0),
            limit=f"limit {_describe_limit(own)}",
            since=oldest,
        )
    if unread := {source: kind for source, kind in stale.items() if kind.taken_at is None}:
        names, why = tuple(source.value for source in unread), _first_error(unread.values())
        yield JudgedFinding(
            FindingKind.STALE,
            coded(FindingCode.FACTS_UNREAD_YET, sources=names, why=why),
            now,
            scope=UNREAD,
            measured="no data",
            limit=f"limit {_describe_limit(unread.values())}",
        )


def _first_error(kinds: Iterable[RefreshStatus]) -> CodedMessage | None:
    return next((kind.error for kind in kinds if kind.error), None)


def _age_seconds(then: datetime | None, now: datetime) -> int | None:
    """Return seconds, as exact as they are shown."""
    return None if then is None else round_duration((now - then).total_seconds())


def _is_asked(source: FactSource, facts: ClusterFacts) -> bool:
    """Controllers form a quorum only in KRaft mode; what their silence keeps from us has a finding of its own.

    Answers, groups, the canary, transactions and the pipeline are asked where they are collected, started and set up.
    """
    if source is FactSource.ANSWERS:
        return facts.answers is not None
    if source is FactSource.GROUPS:
        return facts.groups is not None
    if source is FactSource.CANARY:
        return facts.canary is not None
    if source is FactSource.TRANSACTIONS:
        return facts.transactions is not None
    if source is FactSource.RUNS:
        return facts.runs is not None
    if source is FactSource.READING:
        return facts.reading is not None
    if source is FactSource.PIPELINE:
        return facts.pipeline is not None
    if facts.controllers_silent and facts.refreshed(source).failure in NO_CONTROLLER_FAILURES:
        return False
    return source is not FactSource.QUORUM or facts.kraft


def _describe_limit(kinds: Iterable[RefreshStatus]) -> str:
    return long_duration(max(2 * max(kind.interval_s, QUICKEST_JUDGED_S) for kind in kinds))


@dataclass(frozen=True, slots=True)
class FindingEvaluation:
    """All findings of one moment, most urgent first, and what could not be judged: whole kinds, or single scopes.

    ``taken`` is when the facts of a kind were read; kinds whose facts were never read are missing in it.
    ``unknown_kinds``: nobody can tell whether there is any finding, as they are blind or each of their scopes is.
    """

    found: tuple[JudgedFinding, ...]
    blind: frozenset[FindingKind] = frozenset()
    blind_scopes: frozenset[tuple[FindingKind, str]] = frozenset()
    taken: Mapping[FindingKind, datetime] = field(default_factory=dict)
    unknown_kinds: frozenset[FindingKind] = frozenset()

    def cannot_tell(self, kind: FindingKind, scope: str) -> bool:
        return kind in self.blind or (kind, scope) in self.blind_scopes


def evaluate(facts: ClusterFacts, now: datetime) -> FindingEvaluation:
    """Judges one cluster at ``now``. Pure: the same facts at the same time give the same answer."""
    found = list(judge_reading(facts, now))
    taken = dict.fromkeys((kind for kind in FindingKind if kind.about.source is FactSource.AGES), now)
    blind = set()
    reading = facts.collected
    for kind in FindingKind:
        source = kind.about.source
        if source in (FactSource.AGES, FactSource.PRODUCT):
            continue
        if at := facts.refreshed(source).taken_at:
            taken[kind] = at
        if not reading or not _can_judge(kind, facts, now):
            blind.add(kind)
        if reading and not _out_of_date(kind, facts, now):
            found += JUDGES[kind](facts, taken.get(kind, now), now)
    blind_canaries = ((kind, str(broker)) for broker in facts.canaries_blind for kind in _OF_CANARY)
    scopes = frozenset(
        (
            *_blind_directories(facts, now),
            *unread_groups(facts, now),
            *old_forecasts(facts, now),
            *blind_canaries,
            *([(FindingKind.HANGING_TRANSACTION, "")] if facts.hanging_blind else []),
            *([(FindingKind.STALE, UNREAD)] if hides_unread(facts, now) else []),
        )
    )
    found.sort(key=lambda f: (f.state.severity, f.kind.rank, _natural_key(f.scope)))
    unknown = frozenset((*blind, *_blind_throughout(facts, now)))
    return FindingEvaluation(tuple(found), frozenset(blind), scopes, taken, unknown)


def evaluate_product(facts: ProductFacts, now: datetime) -> FindingEvaluation:
    """Judge kafkadash itself. A task that gets no work because another one is overdue cannot be judged."""
    found = (*overdue_tasks(facts, now), *failing_receivers(facts, now))
    named = {finding.scope for finding in found if finding.kind is FindingKind.OWN_TASK}
    blocked = (name for name in AUDITED if named & list_blockers(name))
    blind = frozenset((FindingKind.OWN_TASK, name) for name in blocked)
    taken = dict.fromkeys((kind for kind in FindingKind if kind.about.source is FactSource.PRODUCT), now)
    return FindingEvaluation(found, blind_scopes=blind, taken=taken)


def _out_of_date(kind: FindingKind, facts: ClusterFacts, now: datetime) -> bool:
    """Old facts find nothing. Silence of the controllers is no old fact: it is what is seen now."""
    if kind is FindingKind.QUORUM_LOST:
        return facts.metadata.stale(now)
    if kind.about.source is FactSource.CANARY and facts.canary is None:
        return False  # it was stopped: nobody measures any more
    return facts.refreshed(kind.about.source).stale(now)


def is_current(kind: FindingKind, facts: ClusterFacts, now: datetime) -> bool:
    """Return whether everything that a kind is judged by is read currently.

    ``facts`` need only hold the ages, and the number of under-replicated partitions.
    """
    if _out_of_date(kind, facts, now):
        return False
    match kind:
        case FindingKind.QUORUM_LOST:
            return not facts.kraft or not facts.quorum.stale(now)
        case FindingKind.UNDER_MIN_ISR | FindingKind.AT_MIN_ISR:
            return not facts.configs.stale(now)
        case FindingKind.UNDER_REPLICATED:
            # Whether a move explains it is told by the listing; that nothing is under-replicated needs none.
            return facts.under_replicated.number == 0 or not facts.reassignments.stale(now)
        case FindingKind.BROKER_DOWN | FindingKind.BROKER_AWAY:
            return not (facts.answers and facts.answers.stale(now))
        case _:
            return True


def _can_judge(kind: FindingKind, facts: ClusterFacts, now: datetime) -> bool:
    """Return whether the absence of a finding of this kind proves that the problem is absent."""
    if not is_current(kind, facts, now):
        return False
    match kind:
        case FindingKind.QUORUM_MARGIN | FindingKind.QUORUM_FLAPPING:
            return facts.voters is not None or not facts.kraft
        case FindingKind.OFFLINE:
            return facts.offline.number is not None
        case FindingKind.UNDER_MIN_ISR:
            return facts.under_min_isr.number is not None
        case FindingKind.AT_MIN_ISR:
            return facts.at_min_isr.number is not None
        case FindingKind.UNDER_REPLICATED:
            return facts.under_replicated.number is not None
        case FindingKind.MIXED_VERSIONS:
            # Since when they differ is not known right after an upgrade of kafkadash.
            return facts.mixed_since is not None or len({b.release for b in facts.brokers if b.release}) <= 1
        case FindingKind.TOPICS_HIDDEN:
            return facts.hidden_topics is not None
        case FindingKind.BROKER_DOWN | FindingKind.BROKER_AWAY:
            return facts.brokers_gone is not None
        case FindingKind.RACK_VIOLATION:
            # A single rack, or none at all, has nothing to violate. Some brokers without one hide how the others lie.
            without = facts.brokers_without_rack
            return facts.rack_violations is not None or (
                without is not None and without in (0, facts.brokers_registered)
            )
        case _:
            return True


def _blind_directories(facts: ClusterFacts, now: datetime) -> Iterator[tuple[FindingKind, str]]:
    """Yield directories of brokers that did not answer lately. A broker that left without replicas has none."""
    for broker in facts.brokers:
        left = broker.gone and not broker.replicas
        if not left and (broker.gone or is_unread(facts, broker, now)):
            for directory in broker.directories:
                for kind in (FindingKind.DISK_FULL, FindingKind.FAILED_DIRECTORY):
                    yield kind, f"{broker.id}:{directory.path}"


def _blind_throughout(facts: ClusterFacts, now: datetime) -> Iterator[FindingKind]:
    """Yield kinds that are judged scope by scope, where nothing is known of any scope."""
    read = [broker for broker in facts.brokers if not (broker.gone or is_unread(facts, broker, now))]
    if facts.brokers and not read:
        yield FindingKind.FAILED_DIRECTORY
    if facts.brokers and all(each.total_bytes is None for broker in read for each in broker.directories):
        yield FindingKind.DISK_FULL  # also where Kafka tells no sizes
    if not has_forecast(facts, now):
        yield FindingKind.DISK_SOON
    if facts.canary and not facts.canary_measured:
        yield from _OF_CANARY
    if facts.groups and not facts.groups_judged:
        yield from (FindingKind.CONSUMER_LAG, FindingKind.CONSUMER_LOSS)
    if facts.hanging_blind:
        yield FindingKind.HANGING_TRANSACTION


def _natural_key(scope: str) -> tuple[int, str]:
    """Broker 9 before broker 10."""
    head, _, tail = scope.partition(":")
    return (int(head), tail) if head.isascii() and head.isdigit() and len(head) < 11 else (-1, scope)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KnownFindings(Generic[T]):
    """A finding that is not closed. ``seen_at`` is when the facts behind its last look were read.

    ``looks``: in how many different readings it was seen so far; ``opened``: whether that was enough. ``row`` is
    whatever the caller keeps it in.
    """

    kind: FindingKind
    scope: str
    opened: bool
    looks: int
    seen_at: datetime
    row: T


@dataclass(frozen=True, slots=True)
class OpenFinding(Generic[T]):
    """A known finding seen again, with what it says now."""

    known: KnownFindings[T]
    finding: JudgedFinding
    looks: int
    opens: bool


@dataclass(frozen=True, slots=True)
class JudgementSteps(Generic[T]):
    """``begin``: found for the first time, and whether each opens at once. ``close``: over, and since which reading.

    ``drop``: never opened and not seen again.
    """

    begin: tuple[tuple[JudgedFinding, bool], ...]
    seen: tuple[OpenFinding[T], ...]
    close: tuple[tuple[KnownFindings[T], datetime], ...]
    drop: tuple[KnownFindings[T], ...]


def reconcile(known: Sequence[KnownFindings[T]], evaluation: FindingEvaluation, now: datetime) -> JudgementSteps[T]:
    """Return the steps for every known and found finding. ``known`` holds at most one of each kind and scope."""
    before = {(k.kind, k.scope): k for k in known}
    found = {(f.kind, f.scope): f for f in evaluation.found}
    begin, seen, close, drop = [], [], [], []
    for key, finding in found.items():
        own = before.get(key)
        if own is None:
            begin.append((finding, finding.kind.about.looks <= 1))
        elif finding.taken_at >= own.seen_at:
            looks = own.looks + (finding.taken_at > own.seen_at)
            seen.append(OpenFinding(own, finding, looks, not own.opened and looks >= finding.kind.about.looks))
    for key, own in before.items():
        if key in found or evaluation.cannot_tell(*key):
            continue
        if own.opened:
            close.append((own, max(own.seen_at, evaluation.taken.get(own.kind, now))))
        else:
            drop.append(own)
    return JudgementSteps(tuple(begin), tuple(seen), tuple(close), tuple(drop))


@dataclass(frozen=True, slots=True)
class JudgedPoint:
    """A finding as a heading needs it: ``title`` lacks the cluster, ``number`` counts the things it is about."""

    kind: FindingKind
    state: HealthState
    title: str
    owner: str = ""
    number: int = 1


def rolled_up(states: Sequence[HealthState]) -> HealthState:
    """The worst child; OK if there is none."""
    return min(states, key=lambda state: state.severity, default=HealthState.OK)


def write_headline(name: str, state: HealthState, points: Sequence[JudgedPoint]) -> str:
    """Return the headline of one cluster in this state; ``points`` most urgent first."""
    worst = next((p for p in points if p.state is state), None)
    if worst is None:
        return f"{name} is OK" if state is HealthState.OK else f"{name}: state unknown"
    alike = [p for p in points if (p.kind, p.state) == (worst.kind, worst.state)]
    title = worst.title
    if len(alike) > 1 and worst.kind.about.many:
        title = worst.kind.about.many.format(n=f"{sum(p.number for p in alike):,}")
    if state is HealthState.UNKNOWN and worst.kind.about.state is not state:
        return f"{title} on {name} (stale)"
    if state is HealthState.MAINTENANCE and worst.kind.about.state is not state:
        return f"{title} on {name} (maintenance)"
    unacknowledged = state is HealthState.CRITICAL and not any(p.owner for p in points if p.state is state)
    return f"{title} on {name}{' (unacknowledged)' if unacknowledged else ''}"


def board_headline(states: Sequence[HealthState], worst: str, unwatched: int) -> str:
    """Return the headline of all clusters. ``states``: worst first; ``worst``: the headline of the first cluster.

    ``unwatched`` of the clusters are not collected; others in this state are so by a maintenance window.
    """
    if not states:
        return "No clusters yet"
    silent = sum(state is HealthState.MAINTENANCE for state in states)
    if states[0] not in (HealthState.OK, HealthState.MAINTENANCE) or silent > unwatched:
        return worst
    well = len(states) - silent
    if not silent:
        return worst if well == 1 else f"All {well} clusters are OK"
    if not well:
        return worst if silent == 1 else f"None of {silent} clusters is watched"
    return f"{choose_plural('# cluster is|# clusters are', well)} OK, {silent} not watched"
