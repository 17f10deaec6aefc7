"""What is wrong, kind by kind. A judge gets facts that are fresh, the time they were read, and the time now."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from kafkadash.domain.facts import QUORUM_FAILURES, BrokerFact, DirectoryFact, Facts, Partitions
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.quorum_history import FLAPPING_CHANGES
from kafkadash.domain.status import is_stale
from kafkadash.domain.wording import capital, count, listed

EMPTY_BROKER_WARNS = timedelta(days=1)
"""A broker that left and holds no replica was taken out on purpose; that is worth a warning for a day."""

DISK_PERCENT = (80.0, 90.0)
"""A directory that is filled this far is a finding; past the second it says so louder."""

SKEW_MIN_PARTITIONS = 50
SKEW_PERCENT = 20.0
"""Leaders of a broker above or below the mean, in percent of it; on few partitions a percentage says nothing."""

UNSEEN = "unseen"
"""Scope of brokers that hold replicas but were never alive since the cluster is watched."""

_NAMED = 3


def _offline(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    if number := facts.offline.number:
        yield _partitions(
            FindingKind.OFFLINE,
            number,
            f"{count(number, 'partition')} {_have(number)} no leader: nobody can read or write {_it(number)}.",
            f"has {count(number, 'partition')} without a leader",
            at,
            _names(facts.offline, f"of {count(facts.partitions, 'partition')}" if facts.partitions else ""),
        )


def _quorum_lost(facts: Facts, at: datetime, now: datetime) -> Iterator[Finding]:
    """Controllers silent while brokers answer: nothing can be changed, and no leader elected (KIP-500)."""
    quorum = facts.quorum
    if facts.controllers_silent:
        yield Finding(
            FindingKind.QUORUM_LOST,
            "The controllers do not answer: no leader can be elected and nothing can be changed.",
            "has no controller quorum",
            now,
            detail=quorum.error,
            value=quorum.failures,
            unit="refresh",
            threshold=QUORUM_FAILURES,
            measured=count(quorum.failures, "refresh", "refreshes"),
            limit="in a row without an answer",
            since=at if quorum.taken_at else None,
        )


def _quorum_margin(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    voters, in_sync = facts.voters or 0, facts.voters_in_sync or 0
    majority = voters // 2 + 1
    if facts.kraft and facts.voters_failing and in_sync <= majority:
        yield Finding(
            FindingKind.QUORUM_MARGIN,
            "One more failed controller takes the majority away.",
            "survives no further failure of a controller",
            at,
            detail=f"{in_sync} of {voters} voters are known to be in sync, the majority is {majority}",
            value=in_sync - majority,
            unit="more failures",
            threshold=1,
            measured=f"{in_sync} of {voters}",
            limit=f"voters in sync, needs more than {majority}",
        )


def _quorum_flapping(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    elections = facts.elections or 0
    if facts.kraft and elections > FLAPPING_CHANGES:
        yield Finding(
            FindingKind.QUORUM_FLAPPING,
            f"The controllers elected a leader {elections} times in 10 min.",
            f"elected its controller {elections} times in 10 min",
            at,
            detail="every election stops changes to the cluster for a moment",
            value=elections,
            unit="elections",
            threshold=FLAPPING_CHANGES,
            measured=count(elections, "election"),
            limit=f"in 10 min, limit {FLAPPING_CHANGES}",
        )


def _under_min_isr(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    if number := facts.under_min_isr.number:
        yield _partitions(
            FindingKind.UNDER_MIN_ISR,
            number,
            f"{count(number, 'partition')} {_are(number)} under min-ISR: writes with acks=all are refused.",
            f"refuses writes to {count(number, 'partition')}",
            at,
            _names(facts.under_min_isr, "producers see NOT_ENOUGH_REPLICAS"),
        )


def _broker_down(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    down = [b for b in facts.brokers if b.away and b.replicas]
    for broker in down:
        how = "fenced: registered, but it sends no heartbeat" if broker.fenced and not broker.gone else "not registered"
        yield Finding(
            FindingKind.BROKER_DOWN,
            f"Broker {broker.id} is down and hosts {count(broker.replicas, 'replica')}.",
            f"has broker {broker.id} down",
            at,
            scope=str(broker.id),
            detail=f"The controller has it {how}" if facts.kraft else f"It is {how.split(':', maxsplit=1)[0]}",
            value=broker.replicas,
            unit="replicas",
            threshold=0,
            measured=count(broker.replicas, "replica"),
            limit="on a broker that is down",
            since=broker.since,
        )
    unseen = (facts.brokers_gone or 0) - sum(b.gone for b in down)
    if unseen > 0:
        yield Finding(
            FindingKind.BROKER_DOWN,
            f"{count(unseen, 'broker')} {_are(unseen)} down and {'hosts' if unseen == 1 else 'host'} replicas.",
            f"has {count(unseen, 'broker')} down",
            at,
            scope=UNSEEN,
            detail="never seen alive since the cluster is watched",
            value=unseen,
            unit="brokers",
            threshold=0,
            measured=count(unseen, "broker"),
            limit="limit 0",
        )


def _broker_away(facts: Facts, at: datetime, now: datetime) -> Iterator[Finding]:
    for broker in facts.brokers:
        recently = broker.since is not None and now - broker.since < EMPTY_BROKER_WARNS
        if broker.away and not broker.replicas and (not broker.gone or recently):
            yield Finding(
                FindingKind.BROKER_AWAY,
                f"Broker {broker.id} is away; no replica is hosted there.",
                f"misses broker {broker.id}, which hosts nothing",
                at,
                scope=str(broker.id),
                detail="no longer registered" if broker.gone else "fenced: registered, but it sends no heartbeat",
                value=0,
                unit="replicas",
                measured="0 replicas",
                limit="on a broker that is away",
                since=broker.since,
            )


def _at_min_isr(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    number = (facts.at_min_isr.number or 0) - facts.at_min_isr_moving
    if number > 0:
        yield _partitions(
            FindingKind.AT_MIN_ISR,
            number,
            f"{count(number, 'partition')} {_are(number)} at min-ISR: the next lost replica stops writes.",
            f"has {count(number, 'partition')} at min-ISR",
            at,
            _names(facts.at_min_isr, _moves_too(facts.at_min_isr_moving)),
        )


def _under_replicated(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    number = (facts.under_replicated.number or 0) - facts.under_replicated_moving
    if number > 0:
        missing = facts.under_replicated.missing
        where = ""
        if missing:
            where = f"All miss {'their replica' if number > 1 else 'a replica'} on {_brokers(missing)}"
        yield _partitions(
            FindingKind.UNDER_REPLICATED,
            number,
            f"{count(number, 'partition')} {_are(number)} under-replicated, not explained by a move.",
            f"has {count(number, 'under-replicated partition')}",
            at,
            " · ".join(
                filter(None, [where, _names(facts.under_replicated), _moves_too(facts.under_replicated_moving)])
            ),
        )


def _failed_directory(facts: Facts, at: datetime, now: datetime) -> Iterator[Finding]:
    for broker, directory in _directories(facts, now):
        if directory.error:
            yield Finding(
                FindingKind.FAILED_DIRECTORY,
                f"A log directory of broker {broker.id} failed: {directory.path}.",
                f"has a failed log directory on broker {broker.id}",
                broker.directories_at or at,
                scope=f"{broker.id}:{directory.path}",
                detail=f"Its replicas are offline · {directory.error}",
                value=1,
                unit="directories",
                threshold=0,
                measured="1 directory",
                limit="offline, limit 0",
            )


def _disk_full(facts: Facts, at: datetime, now: datetime) -> Iterator[Finding]:
    for broker, directory in _directories(facts, now):
        percent = used_percent(directory)
        if percent is None or percent < DISK_PERCENT[0] or directory.error:
            continue
        limit = max(step for step in DISK_PERCENT if percent >= step)
        free = _gigabytes(directory.usable_bytes or 0)
        yield Finding(
            FindingKind.DISK_FULL,
            f"A log directory of broker {broker.id} is {_percent(percent)} full: {directory.path}.",
            f"has a log directory on broker {broker.id} that is {_percent(percent)} full",
            broker.directories_at or at,
            scope=f"{broker.id}:{directory.path}",
            detail=f"{free} free of {_gigabytes(directory.total_bytes or 0)}; a full directory goes offline",
            value=math.floor(percent * 10) / 10,
            unit="%",
            threshold=limit,
            measured=_percent(percent),
            limit=f"limit {limit:.0f} %",
        )


def _orphan_throttle(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    if number := len(facts.orphan_throttles):
        yield Finding(
            FindingKind.ORPHAN_THROTTLE,
            f"{count(number, 'replication throttle is', 'replication throttles are')} in force although nothing moves"
            f" that needs {_it(number)}.",
            f"has {count(number, 'orphan throttle')}",
            at,
            detail=f"{_some(facts.orphan_throttles)} · replication that lags is slowed down as well",
            value=number,
            unit="throttles",
            threshold=0,
            measured=count(number, "throttle"),
            limit="limit 0",
        )


def _zombie(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    if number := len(facts.zombies):
        yield _partitions(
            FindingKind.ZOMBIE_REASSIGNMENT,
            number,
            f"{count(number, 'reassignment adds and removes', 'reassignments add and remove')} the same replica and"
            f" will not end by {'itself' if number == 1 else 'themselves'}.",
            f"has {count(number, 'zombie reassignment')}",
            at,
            _some(facts.zombies),
            unit="reassignment",
        )


def _rack_violation(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    if number := facts.rack_violations:
        yield _partitions(
            FindingKind.RACK_VIOLATION,
            number,
            f"{count(number, 'partition is', 'partitions are')} not spread evenly over the racks.",
            f"has {count(number, 'partition')} that a lost rack hits harder than it must",
            at,
            "One rack holds more than its share of the replicas",
        )


def _leader_skew(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    """Nothing while a broker is away: its leaders are elsewhere, and that is what the finding about it says."""
    hosting = [b for b in facts.brokers if b.replicas]
    if (facts.partitions or 0) < SKEW_MIN_PARTITIONS or len(hosting) < 2 or any(b.away for b in hosting):
        return
    mean = sum(b.leaders for b in hosting) / len(hosting)
    # Within one leader of the mean no other spread would be better.
    uneven = [b for b in hosting if mean and not math.floor(mean) <= b.leaders <= math.ceil(mean)]
    worst = max(uneven, key=lambda b: (abs(b.leaders - mean), -b.id), default=None)
    if worst is None:
        return
    skew = 100 * (worst.leaders - mean) / mean
    if abs(skew) >= SKEW_PERCENT:
        more = "more" if skew > 0 else "fewer"
        yield Finding(
            FindingKind.LEADER_SKEW,
            f"Broker {worst.id} leads {abs(skew):.0f} % {more} partitions than the mean of all brokers.",
            f"has uneven leaders: broker {worst.id} leads {abs(skew):.0f} % {more} than the mean",
            at,
            detail=f"{count(worst.leaders, 'leader')}, the mean is {mean:,.1f}",
            value=round(skew, 1),
            unit="%",
            threshold=SKEW_PERCENT,
            measured=f"{'+' if skew > 0 else '−'}{abs(skew):.0f} %",
            limit=f"of the mean, limit {SKEW_PERCENT:.0f} %",
        )


def _mixed_versions(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    releases = Counter(b.release for b in facts.brokers if b.release and not b.away)
    if len(releases) > 1:
        parts = [f"{release} on {count(number, 'broker')}" for release, number in sorted(releases.items())]
        yield Finding(
            FindingKind.MIXED_VERSIONS,
            f"The brokers run {len(releases)} different versions of Kafka.",
            f"runs {len(releases)} versions of Kafka at once",
            at,
            detail=f"{capital(listed(parts))}, as far as API versions tell",
            value=len(releases),
            unit="versions",
            threshold=1,
            measured=f"{len(releases)} versions",
            limit="limit 1",
        )


JUDGES: Mapping[FindingKind, Callable[[Facts, datetime, datetime], Iterator[Finding]]] = {
    FindingKind.OFFLINE: _offline,
    FindingKind.QUORUM_LOST: _quorum_lost,
    FindingKind.QUORUM_MARGIN: _quorum_margin,
    FindingKind.UNDER_MIN_ISR: _under_min_isr,
    FindingKind.BROKER_DOWN: _broker_down,
    FindingKind.FAILED_DIRECTORY: _failed_directory,
    FindingKind.AT_MIN_ISR: _at_min_isr,
    FindingKind.UNDER_REPLICATED: _under_replicated,
    FindingKind.DISK_FULL: _disk_full,
    FindingKind.QUORUM_FLAPPING: _quorum_flapping,
    FindingKind.ORPHAN_THROTTLE: _orphan_throttle,
    FindingKind.ZOMBIE_REASSIGNMENT: _zombie,
    FindingKind.RACK_VIOLATION: _rack_violation,
    FindingKind.LEADER_SKEW: _leader_skew,
    FindingKind.MIXED_VERSIONS: _mixed_versions,
    FindingKind.BROKER_AWAY: _broker_away,
}


def used_percent(directory: DirectoryFact) -> float | None:
    """How full the volume of a directory is, in percent; None where Kafka does not tell."""
    total, usable = directory.total_bytes, directory.usable_bytes
    return None if not total or usable is None else 100 * (total - usable) / total


def _directories(facts: Facts, now: datetime) -> Iterator[tuple[BrokerFact, DirectoryFact]]:
    """Directories that were read lately, of brokers that are there."""
    for broker in facts.brokers:
        if not broker.gone and not unread(facts, broker, now):
            for directory in broker.directories:
                yield broker, directory


def unread(facts: Facts, broker: BrokerFact, now: datetime) -> bool:
    """Whether its directories were not read lately."""
    return broker.directories_at is None or is_stale(broker.directories_at, facts.log_dirs.interval_s, now)


def _partitions(
    kind: FindingKind, number: int, sentence: str, answer: str, at: datetime, detail: str, unit: str = "partition"
) -> Finding:
    return Finding(
        kind,
        sentence,
        answer,
        at,
        detail=detail,
        value=number,
        unit=f"{unit}s",
        threshold=0,
        measured=count(number, unit),
        limit="limit 0",
    )


def _names(partitions: Partitions, after: str = "") -> str:
    """The first of them by name, then what else is to be said."""
    rest = (partitions.number or 0) - len(partitions.names[:_NAMED])
    named = ", ".join(partitions.names[:_NAMED]) + (f" and {rest:,} more" if partitions.names and rest > 0 else "")
    return " · ".join(filter(None, [named, after]))


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")


def _moves_too(moving: int) -> str:
    return f"{moving:,} more {_are(moving)} explained by moves" if moving else ""


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {listed([str(i) for i in ids])}"


def _percent(value: float) -> str:
    """Rounded down, so that nothing looks full before it is."""
    return f"{math.floor(value * 10) / 10:.1f} %"


def _gigabytes(number: int) -> str:
    return f"{number / 1e9:,.1f} GB"


def _it(number: int) -> str:
    return "it" if number == 1 else "them"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
