"""Facts about a cluster in which nothing is wrong, and what is found once something is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.status import HealthState, RefreshStatus
from kafkadash.findings.facts import BrokerFact, ClusterFacts, DirectoryFact, PartitionFacts, PipelineFact
from kafkadash.findings.judgement import evaluate, rolled_up
from kafkadash.findings.kinds import FactSource, FindingCode, FindingKind

NOW = datetime(2026, 11, 21, 2, 3, 4, tzinfo=UTC)
NONE = PartitionFacts(0)
GB = 10**9


def ago(**lengths: float) -> datetime:
    return NOW - timedelta(**lengths)


FRESH = RefreshStatus(taken_at=ago(seconds=3), interval_s=30)
WELL = ClusterFacts(
    metadata=FRESH,
    reassignments=FRESH,
    quorum=FRESH,
    log_dirs=FRESH,
    configs=FRESH,
    versions=FRESH,
    groups=FRESH,
    transactions=FRESH,
    runs=FRESH,
    reading=FRESH,
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


def kinds(facts: ClusterFacts) -> list[FindingKind]:
    return [finding.kind for finding in evaluate(facts, NOW).found]


def only(facts: ClusterFacts) -> tuple[FindingKind, str, CodedMessage]:
    """The one finding there is: kind, scope, message."""
    (finding,) = evaluate(facts, NOW).found
    return finding.kind, finding.scope, finding.message


def says(facts: ClusterFacts, code: FindingCode, **params: Any) -> bool:
    """True where the most urgent finding has this code, and these parameters among others."""
    message = evaluate(facts, NOW).found[0].message
    return message == coded(code, **{**message.params, **params})


def state(facts: ClusterFacts) -> HealthState:
    return rolled_up([finding.state for finding in evaluate(facts, NOW).found])


def with_brokers(*changed: BrokerFact) -> ClusterFacts:
    others = [b for b in WELL.brokers if b.id not in {c.id for c in changed}]
    return replace(WELL, brokers=(*others, *changed))


def with_directory(directory: DirectoryFact, **broker: Any) -> ClusterFacts:
    own = BrokerFact(2, replicas=1120, leaders=373, directories=(directory,), directories_at=FRESH.taken_at)
    return with_brokers(replace(own, **broker))


def with_old(source: FactSource) -> ClusterFacts:
    old: dict[str, Any] = {source.value: RefreshStatus(ago(hours=2), 30)}
    return replace(WELL, **old)
