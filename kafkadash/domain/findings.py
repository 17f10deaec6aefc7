"""What is wrong with a cluster, judged from facts and from their ages.

Critical means that producers or consumers fail now: partitions without a leader, writes that are refused, controllers
without a majority, a broker down that hosts replicas. Everything else that is wrong is a warning. What cannot be told
is said to be so: a kind that cannot be judged is *blind*, and a blind kind closes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kafkadash.domain.facts import Facts
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind, Source
from kafkadash.domain.judges import JUDGES
from kafkadash.domain.judges.directories import unread
from kafkadash.domain.judges.groups import unread_groups
from kafkadash.domain.judges.pipeline import old_forecasts
from kafkadash.domain.staleness import ages


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All findings of one moment, most urgent first, and what could not be judged: whole kinds, or single scopes.

    ``taken`` is when the facts of a kind were read; kinds whose facts were never read are missing in it.
    """

    found: tuple[Finding, ...]
    blind: frozenset[FindingKind] = frozenset()
    blind_scopes: frozenset[tuple[FindingKind, str]] = frozenset()
    taken: Mapping[FindingKind, datetime] = field(default_factory=dict)

    def cannot_tell(self, kind: FindingKind, scope: str) -> bool:
        return kind in self.blind or (kind, scope) in self.blind_scopes


def evaluate(facts: Facts, now: datetime) -> Evaluation:
    """Judges one cluster at ``now``. Pure: the same facts at the same time give the same answer."""
    own = ages(facts, now)
    found = [
        Finding(a.kind, a.sentence, a.answer, now, detail=a.detail, measured=a.measured, limit=a.limit, since=a.since)
        for a in own
    ]
    taken = dict.fromkeys((kind for kind in FindingKind if kind.about.source is Source.AGES), now)
    blind = set()
    reading = facts.collected
    for kind in FindingKind:
        source = kind.about.source
        if source is Source.AGES:
            continue
        if at := facts.refreshed(source).taken_at:
            taken[kind] = at
        if not reading or not _can_judge(kind, facts, now):
            blind.add(kind)
        if reading and not _out_of_date(kind, facts, now):
            found += JUDGES[kind](facts, taken.get(kind, now), now)
    scopes = frozenset((*_blind_directories(facts, now), *unread_groups(facts, now), *old_forecasts(facts, now)))
    found.sort(key=lambda f: (f.state.severity, f.kind.rank, _natural(f.scope)))
    return Evaluation(tuple(found), frozenset(blind), scopes, taken)


def _out_of_date(kind: FindingKind, facts: Facts, now: datetime) -> bool:
    """Old facts find nothing. Silence of the controllers is no old fact: it is what is seen now."""
    if kind is FindingKind.QUORUM_LOST:
        return facts.metadata.stale(now)
    return facts.refreshed(kind.about.source).stale(now)


def _can_judge(kind: FindingKind, facts: Facts, now: datetime) -> bool:
    """Whether not finding it means that it is not there."""
    if _out_of_date(kind, facts, now):
        return False
    match kind:
        case FindingKind.QUORUM_LOST:
            return not facts.kraft or not facts.quorum.stale(now)
        case FindingKind.QUORUM_MARGIN | FindingKind.QUORUM_FLAPPING:
            return facts.voters is not None or not facts.kraft
        case FindingKind.OFFLINE:
            return facts.offline.number is not None
        case FindingKind.UNDER_MIN_ISR:
            return facts.under_min_isr.number is not None and not facts.configs.stale(now)
        case FindingKind.AT_MIN_ISR:
            return facts.at_min_isr.number is not None and not facts.configs.stale(now)
        case FindingKind.UNDER_REPLICATED:
            # Whether a move explains it is told by the listing; that nothing is under-replicated needs none.
            return facts.under_replicated.number is not None and (
                facts.under_replicated.number == 0 or not facts.reassignments.stale(now)
            )
        case FindingKind.TOPICS_HIDDEN:
            return facts.hidden_topics is not None
        case FindingKind.BROKER_DOWN | FindingKind.BROKER_AWAY:
            return facts.brokers_gone is not None and not (facts.answers and facts.answers.stale(now))
        case FindingKind.RACK_VIOLATION:
            # A single rack, or none at all, has nothing to violate. Some brokers without one hide how the others lie.
            without = facts.brokers_without_rack
            return facts.rack_violations is not None or (
                without is not None and without in (0, facts.brokers_registered)
            )
        case _:
            return True


def _blind_directories(facts: Facts, now: datetime) -> Iterator[tuple[FindingKind, str]]:
    """Those of brokers that did not answer lately. One that left for good, with nothing on it, has none any more."""
    for broker in facts.brokers:
        left = broker.gone and not broker.replicas
        if not left and (broker.gone or unread(facts, broker, now)):
            for directory in broker.directories:
                for kind in (FindingKind.DISK_FULL, FindingKind.FAILED_DIRECTORY):
                    yield kind, f"{broker.id}:{directory.path}"


def _natural(scope: str) -> tuple[int, str]:
    """Broker 9 before broker 10."""
    head, _, tail = scope.partition(":")
    return (int(head), tail) if head.isascii() and head.isdigit() and len(head) < 11 else (-1, scope)
