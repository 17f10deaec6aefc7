"""Causes of findings: which open finding, or which run of a change, explains another finding. Pure.

A finding has a cause only where the facts prove it. Partitions that lack replicas follow from brokers that are down if
those brokers hold every replica that is missing; where not all partitions were looked at, nothing is proven.

A cause that closed still explains its consequences while the cluster recovers: for ``REPLICAS_SETTLE`` partitions whose
replicas catch up, for ``LEADERS_SETTLE`` a broker that leads fewer, as Kafka moves leaders back every 5 minutes, and
for ``READING_SETTLES`` old data of a cluster that answers again, as not every kind is read in the same second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from kafkadash.findings.facts import ClusterFacts
from kafkadash.findings.judgement import is_trusted
from kafkadash.findings.judges import UNSEEN
from kafkadash.findings.kinds import FactSource, FindingKind

REPLICAS_SETTLE = timedelta(minutes=1)
LEADERS_SETTLE = timedelta(minutes=10)
READING_SETTLES = timedelta(minutes=1)
HELD_BACK = timedelta(seconds=15)
"""Partitions may lack replicas seconds before their broker is judged down, and data is old for seconds where a refresh
met that broker. Messages about them wait for so long.
"""

OF_REPLICAS = frozenset(
    {FindingKind.OFFLINE, FindingKind.UNDER_MIN_ISR, FindingKind.AT_MIN_ISR, FindingKind.UNDER_REPLICATED}
)
CLOSED_CAUSES = frozenset({FindingKind.BROKER_DOWN, FindingKind.UNREACHABLE})
"""Kinds that explain others after they closed."""
_WHOLE_CLUSTER = frozenset(
    {FindingKind.UNREACHABLE, FindingKind.STALE, FindingKind.ANOTHER_CLUSTER, FindingKind.REGISTERED_TWICE}
)
_NOT_OF_CLUSTER = frozenset({FactSource.AGES, FactSource.PIPELINE})
FAILED_RUN = "failed"
_TROUBLES = (FAILED_RUN, "blocked", "stuck", "asks", "unread", "stalled", "owes")
"""Troubles of a run: each may have those after it as consequences. A run that failed explains throttles that it owes,
and one that cannot read the cluster does not get on.
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CauseCandidate(Generic[T]):
    """Finding that is open, or closed at ``closed_at``; ``row`` is whatever the caller keeps it in."""

    kind: FindingKind
    scope: str
    began_at: datetime
    closed_at: datetime | None
    row: T


@dataclass(frozen=True, slots=True)
class FindingCause(Generic[T]):
    """Cause of a finding: the row of another finding, or the number of a change whose run goes on."""

    row: T | None = None
    run: int | None = None


@dataclass(frozen=True, slots=True)
class ExplainedFinding(Generic[T]):
    """Open finding with its stored cause. ``seen``: the facts show it now; otherwise nobody can tell."""

    kind: FindingKind
    scope: str
    seen: bool
    cause: FindingCause[T]


def find_cause(
    finding: ExplainedFinding[T], facts: ClusterFacts, candidates: Sequence[CauseCandidate[T]], now: datetime
) -> FindingCause[T]:
    """Return the cause of the finding as far as it is proven. ``candidates`` may include the finding itself."""
    if not facts.enabled:
        return finding.cause
    if not is_trusted(facts, now):
        return _explain_by_silence(finding, candidates)
    if finding.kind in OF_REPLICAS:
        if not finding.seen:
            return _keep_valid(finding, candidates, now)
        return _explain_by_brokers(finding, facts, candidates, now)
    if finding.kind is FindingKind.STALE:
        return FindingCause(next((each.row for each in _ended_outages(candidates, now)), None))
    if finding.kind is FindingKind.LEADER_SKEW:
        return _explain_leaders(finding, facts, candidates, now)
    if finding.kind is FindingKind.RUN_TROUBLE:
        return _explain_trouble(finding, candidates)
    return FindingCause()


def may_follow(kind: FindingKind, facts: ClusterFacts) -> bool:
    """Return whether a broker that is not judged down yet may explain a finding of this kind."""
    return kind is FindingKind.STALE or bool(absent_brokers(kind, facts))


def _explain_by_silence(finding: ExplainedFinding[T], candidates: Sequence[CauseCandidate[T]]) -> FindingCause[T]:
    if finding.kind.about.source in _NOT_OF_CLUSTER:
        return FindingCause()
    whole = (each for each in candidates if each.kind in _WHOLE_CLUSTER and not each.scope)
    roots = (each.row for each in whole if each.closed_at is None)
    return FindingCause(next(roots, None))


def _ended_outages(candidates: Sequence[CauseCandidate[T]], now: datetime) -> Iterator[CauseCandidate[T]]:
    for each in candidates:
        if each.kind is FindingKind.UNREACHABLE and each.closed_at and now - each.closed_at <= READING_SETTLES:
            yield each


def _keep_valid(
    finding: ExplainedFinding[T], candidates: Sequence[CauseCandidate[T]], now: datetime
) -> FindingCause[T]:
    known = [each.row for each in _down_brokers(candidates, REPLICAS_SETTLE, now)]
    return finding.cause if finding.cause.row in known else FindingCause()


def _explain_by_brokers(
    finding: ExplainedFinding[T], facts: ClusterFacts, candidates: Sequence[CauseCandidate[T]], now: datetime
) -> FindingCause[T]:
    absent = absent_brokers(finding.kind, facts)
    down = {each.scope: each for each in _down_brokers(candidates, REPLICAS_SETTLE, now)}
    known = {broker.id for broker in facts.brokers}
    found = [down.get(str(broker) if broker in known else UNSEEN) for broker in absent]
    explaining = [each for each in found if each is not None]
    if not explaining or len(explaining) < len(found):
        return FindingCause()
    if any(each.row == finding.cause.row and each.closed_at is None for each in explaining):
        return finding.cause
    # Before the last one went down, the partitions had enough replicas.
    last = max(explaining, key=lambda each: (each.closed_at is None, each.began_at, each.scope))
    return FindingCause(last.row)


def _explain_leaders(
    finding: ExplainedFinding[T], facts: ClusterFacts, candidates: Sequence[CauseCandidate[T]], now: datetime
) -> FindingCause[T]:
    for each in _down_brokers(candidates, LEADERS_SETTLE, now):
        if each.scope == finding.scope:
            return FindingCause(each.row)
    run = facts.moved_by.get(int(finding.scope)) if finding.scope.isdecimal() else None
    return FindingCause(run=run)


def _explain_trouble(finding: ExplainedFinding[T], candidates: Sequence[CauseCandidate[T]]) -> FindingCause[T]:
    number, _, trouble = finding.scope.partition(":")
    own = {each.scope: each.row for each in candidates if each.kind is finding.kind and each.closed_at is None}
    for earlier in _TROUBLES:
        if earlier == trouble:
            break
        if row := own.get(f"{number}:{earlier}"):
            return FindingCause(row)
    return FindingCause()


def absent_brokers(kind: FindingKind, facts: ClusterFacts) -> frozenset[int]:
    """Return the brokers whose absence makes a finding of this kind; none where that is not known."""
    partitions: Mapping[FindingKind, frozenset[int] | None] = {
        FindingKind.OFFLINE: facts.offline.absent,
        FindingKind.UNDER_MIN_ISR: facts.under_min_isr.absent,
        FindingKind.AT_MIN_ISR: facts.at_min_isr.absent,
        FindingKind.UNDER_REPLICATED: facts.under_replicated.absent,
    }
    return partitions.get(kind) or frozenset()


def _down_brokers(candidates: Sequence[CauseCandidate[T]], settle: timedelta, now: datetime) -> list[CauseCandidate[T]]:
    """Return findings of brokers that are down or came back lately, those that are down last."""
    found = [
        each
        for each in candidates
        if each.kind is FindingKind.BROKER_DOWN and (each.closed_at is None or now - each.closed_at <= settle)
    ]
    return sorted(found, key=lambda each: (each.closed_at is None, each.closed_at or each.began_at))
