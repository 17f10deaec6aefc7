"""What follows from the ages of the facts alone: switched off, unreachable, stale, another cluster.

Nobody needs to look at the cluster to say it, so pages say it at the time they are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from kafkadash.domain.facts import Facts
from kafkadash.domain.failure_kinds import NO_ANSWER_FAILURES, NO_CONTROLLER_FAILURES
from kafkadash.domain.finding_kinds import FindingKind, Source
from kafkadash.domain.status import QUICKEST_JUDGED_S, Refreshed, is_stale
from kafkadash.domain.wording import capital, count, listed, long_duration

READ_FROM = {
    Source.ANSWERS: "answers of brokers",
    Source.REASSIGNMENTS: "reassignments",
    Source.QUORUM: "the controller quorum",
    Source.LOG_DIRS: "log directories",
    Source.CONFIGS: "configs and throttles",
    Source.VERSIONS: "versions",
    Source.GROUPS: "consumer groups",
    Source.PIPELINE: "the pipeline",
}


@dataclass(frozen=True, slots=True)
class AgeFinding:
    """As ``findings.Finding``; its words hold ages, so they are made anew each time they are shown."""

    kind: FindingKind
    sentence: str
    answer: str
    detail: str = ""
    measured: str = ""
    limit: str = ""
    since: datetime | None = None


def ages(facts: Facts, now: datetime) -> tuple[AgeFinding, ...]:
    """Findings about our own reading, most urgent first."""
    if not facts.enabled:
        return (_DISABLED,)
    if facts.other_kafka_id:
        return (_another(facts),)
    if facts.same_as:
        return (_double(facts),)
    if facts.metadata.stale(now):
        return (_nothing_new(facts, now),)
    return (*_stale(facts, now), *([_ZOOKEEPER] if facts.zookeeper else []))


def trusted(facts: Facts, now: datetime) -> bool:
    """Whether the cluster is read at all; if not, everything stored about it is history."""
    return facts.collected and not facts.metadata.stale(now)


def not_judged(judged_at: datetime | None, facts: Facts, now: datetime) -> AgeFinding | None:
    """Facts that nobody judged lately: without this, the absence of findings would look like health."""
    interval_s = facts.metadata.interval_s
    if judged_at is not None and not is_stale(judged_at, interval_s, now):
        return None
    age = long_duration((now - judged_at).total_seconds()) if judged_at else ""
    answer = f"what was read has not been judged for {age}" if age else "what was read has not been judged yet"
    return AgeFinding(
        FindingKind.STALE,
        f"{capital(answer)}.",
        answer,
        detail="Facts are stored, but the workers did not judge them; look at their log",
        measured=age or "not judged",
        limit=f"limit {_limit([facts.metadata])}",
        since=judged_at,
    )


_DISABLED = AgeFinding(
    FindingKind.DISABLED,
    "Collection is switched off; nothing is read from this cluster.",
    "is not watched: collection is switched off",
)
_ZOOKEEPER = AgeFinding(
    FindingKind.ZOOKEEPER,
    "This cluster runs in ZooKeeper mode, which kafkadash does not support yet.",
    "it runs in ZooKeeper mode, which is not supported yet",
    detail="Brokers and partitions are shown as far as brokers tell; controllers and ZooKeeper itself are not watched",
    measured="ZooKeeper mode",
    limit="KRaft is supported",
)


def _another(facts: Facts) -> AgeFinding:
    return AgeFinding(
        FindingKind.ANOTHER_CLUSTER,
        f"The address now leads to another Kafka cluster, {facts.other_kafka_id}. Nothing of it is stored.",
        "its address leads to another Kafka cluster",
        detail=f"Registered was {facts.kafka_id} · correct the address, or register the other one under its own name",
        measured="another id",
        limit="than the registered one",
        since=facts.metadata.taken_at,
    )


def _double(facts: Facts) -> AgeFinding:
    return AgeFinding(
        FindingKind.REGISTERED_TWICE,
        f"It is the same Kafka cluster as {facts.same_as}, which was registered first. It is not read, and read-only.",
        f"it is the same Kafka cluster as {facts.same_as}",
        detail=f"Use {facts.same_as}, and remove this one under Settings",
        measured="registered twice",
        limit="once",
        since=facts.metadata.taken_at,
    )


def _nothing_new(facts: Facts, now: datetime) -> AgeFinding:
    """Nothing younger than twice the interval tells the state: whatever else is stored is history."""
    metadata = facts.metadata
    silent = metadata.failure in NO_ANSWER_FAILURES
    if metadata.failures:
        said = "no broker has answered" if silent else "nothing could be read"
        kind, never = FindingKind.UNREACHABLE, f"{said} yet"
    else:
        kind, said, never = FindingKind.STALE, "nothing was collected", "nothing was collected yet"
    old = metadata.taken_at is not None
    age = long_duration((now - metadata.taken_at).total_seconds()) if metadata.taken_at else ""
    answer = f"{said} for {age}" if old else never
    return AgeFinding(
        kind,
        f"{capital(answer)}." + (" What you see elsewhere about this cluster is history." if old else ""),
        answer,
        detail=metadata.error,
        measured=age or "no data",
        limit=f"limit {_limit([metadata])}" if old else count(facts.addresses, "address", "addresses"),
        since=metadata.taken_at,
    )


def _stale(facts: Facts, now: datetime) -> Iterator[AgeFinding]:
    """Facts besides metadata that are too old to say that all is well."""
    kinds = {name: facts.refreshed(source) for source, name in READ_FROM.items() if _asked(source, facts)}
    old = {name: kind for name, kind in kinds.items() if kind.stale(now)}
    if not old:
        return
    names = listed(list(old))
    seen = [kind.taken_at for kind in old.values() if kind.taken_at]
    if len(seen) < len(old):
        names = listed([name for name, kind in old.items() if kind.taken_at is None])
        answer, measured = f"{names} could not be read yet", "no data"
    else:
        measured = long_duration((now - min(seen)).total_seconds())
        answer = f"nothing new about {names} for {measured}"
    yield AgeFinding(
        FindingKind.STALE,
        capital(answer) + ".",
        answer,
        detail=next((kind.error for kind in old.values() if kind.error), ""),
        measured=measured,
        limit=f"limit {_limit(old.values())}",
        since=min(seen, default=None),
    )


def _asked(source: Source, facts: Facts) -> bool:
    """Controllers form a quorum only in KRaft mode; what their silence keeps from us has a finding of its own.

    Answers, groups and the pipeline are asked where they are collected and set up.
    """
    if source is Source.ANSWERS:
        return facts.answers is not None
    if source is Source.GROUPS:
        return facts.groups is not None
    if source is Source.PIPELINE:
        return facts.pipeline is not None
    if facts.controllers_silent and facts.refreshed(source).failure in NO_CONTROLLER_FAILURES:
        return False
    return source is not Source.QUORUM or facts.kraft


def _limit(kinds: Iterable[Refreshed]) -> str:
    return long_duration(max(2 * max(kind.interval_s, QUICKEST_JUDGED_S) for kind in kinds))
