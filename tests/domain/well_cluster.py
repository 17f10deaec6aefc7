"""Facts about a cluster in which nothing is wrong, and what is found once something is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kafkadash.domain.facts import BrokerFact, DirectoryFact, Facts, Partitions, PipelineFact
from kafkadash.domain.finding_kinds import FindingKind, Source
from kafkadash.domain.findings import evaluate
from kafkadash.domain.headline import Point, headline, rolled_up
from kafkadash.domain.status import Refreshed, State

NOW = datetime(2026, 11, 21, 2, 3, 4, tzinfo=UTC)
NONE = Partitions(0)
GB = 10**9


def ago(**lengths: float) -> datetime:
    return NOW - timedelta(**lengths)


FRESH = Refreshed(taken_at=ago(seconds=3), interval_s=30)
WELL = Facts(
    metadata=FRESH,
    reassignments=FRESH,
    quorum=FRESH,
    log_dirs=FRESH,
    configs=FRESH,
    versions=FRESH,
    groups=FRESH,
    pipeline=FRESH,
    pipeline_stands=PipelineFact(ago(seconds=5), 10),
    hidden_topics=0,
    partitions=1120,
    offline=NONE,
    under_min_isr=NONE,
    at_min_isr=NONE,
    under_replicated=NONE,
    rack_violations=0,
    brokers_gone=0,
    brokers=tuple(BrokerFact(n, replicas=1120, leaders=373, release="4.3 or newer") for n in (1, 2, 3)),
    voters=3,
    voters_in_sync=3,
    voters_failing=0,
    elections=0,
)


def kinds(facts: Facts) -> list[FindingKind]:
    return [finding.kind for finding in evaluate(facts, NOW).found]


def only(facts: Facts) -> tuple[FindingKind, str, str]:
    """The one finding there is: kind, scope, sentence."""
    (finding,) = evaluate(facts, NOW).found
    return finding.kind, finding.scope, finding.sentence


def state(facts: Facts) -> State:
    return rolled_up([finding.state for finding in evaluate(facts, NOW).found])


def title(facts: Facts) -> str:
    found = evaluate(facts, NOW).found
    return headline("demo", state(facts), [Point(f.kind, f.state, f.answer, owner="ann") for f in found])


def with_brokers(*changed: BrokerFact) -> Facts:
    others = [b for b in WELL.brokers if b.id not in {c.id for c in changed}]
    return replace(WELL, brokers=(*others, *changed))


def with_directory(directory: DirectoryFact, **broker: Any) -> Facts:
    own = BrokerFact(2, replicas=1120, leaders=373, directories=(directory,), directories_at=FRESH.taken_at)
    return with_brokers(replace(own, **broker))


def with_old(source: Source) -> Facts:
    old: dict[str, Any] = {source.value: Refreshed(ago(hours=2), 30)}
    return replace(WELL, **old)
