"""Judges of findings, kind by kind: each gets fresh facts, the time they were read, and the current time.

A cluster may have thousands of unread consumer groups, most often unused ones. So a group whose members are present and
do not read never competes with those for space, and groups without space are one finding with a sum.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from kafkadash.core.failures import QUORUM_FAILURES
from kafkadash.core.formatting import MINUTE, long_duration, round_duration, round_size
from kafkadash.core.messages import CodedMessage, choose_plural, coded, first_names
from kafkadash.core.status import is_stale
from kafkadash.findings.facts import (
    BrokerFact,
    ClusterFacts,
    DirectoryFact,
    EligibleFacts,
    ForecastFact,
    GroupFact,
    PartitionFacts,
    ProductFacts,
)
from kafkadash.findings.kinds import FactSource, FindingCode, FindingKind, FindingNoteCode, JudgedFinding
from kafkadash.monitoring.canary.rules import SLOW_MS, CanaryTrouble
from kafkadash.monitoring.groups.rules import LagState
from kafkadash.monitoring.quorum.rules import FLAPPING_CHANGES
from kafkadash.watchdog.rules import AUDIT, AUDITED, BEAT, DEAD_MAN, PRUNE, TICK, find_overdue


def counted_finding(
    kind: FindingKind, message: CodedMessage, number: int, unit: str, at: datetime, scope: str = ""
) -> JudgedFinding:
    """``unit`` in the singular."""
    return JudgedFinding(
        kind,
        message,
        at,
        scope=scope,
        value=number,
        unit=f"{unit}s",
        threshold=0,
        measured=choose_plural(f"# {unit}|# {unit}s", number),
        limit="limit 0",
    )


EMPTY_BROKER_WARNS = timedelta(days=1)
"""A broker that left and holds no replica was taken out on purpose; that is worth a warning for a day."""

SKEW_MIN_PARTITIONS = 50
SKEW_PERCENT = 20.0
"""Leaders of a broker above or below the mean, in percent of it; on few partitions a percentage says nothing."""

UNSEEN = "unseen"
"""Scope of brokers that hold replicas but were never alive since the cluster is watched."""


def broker_down(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    down = [b for b in facts.brokers if b.away and b.replicas]
    for broker in down:
        params = {"broker": broker.id, "replicas": broker.replicas}
        if broker.silent:
            message = coded(FindingCode.DOWN_SILENT, **params, leaders=broker.leaders)
        else:
            message = coded(FindingCode.DOWN_NOT_REGISTERED if broker.gone else FindingCode.DOWN_FENCED, **params)
        yield JudgedFinding(
            FindingKind.BROKER_DOWN,
            message,
            at,
            scope=str(broker.id),
            value=broker.replicas,
            unit="replicas",
            threshold=0,
            measured=choose_plural("# replica|# replicas", broker.replicas),
            limit="affected",
            since=broker.since,
        )
    unseen = (facts.brokers_gone or 0) - sum(b.gone for b in down)
    if unseen > 0:
        message = coded(FindingCode.DOWN_UNSEEN, brokers=unseen)
        yield counted_finding(FindingKind.BROKER_DOWN, message, unseen, "broker", at, UNSEEN)


def broker_away(facts: ClusterFacts, at: datetime, now: datetime) -> Iterator[JudgedFinding]:
    for broker in facts.brokers:
        recently = broker.since is not None and now - broker.since < EMPTY_BROKER_WARNS
        if broker.away and not broker.replicas and (not broker.gone or recently):
            code = FindingCode.AWAY_SILENT if broker.silent else FindingCode.AWAY_FENCED
            yield JudgedFinding(
                FindingKind.BROKER_AWAY,
                coded(FindingCode.AWAY_NOT_REGISTERED if broker.gone else code, broker=broker.id),
                at,
                scope=str(broker.id),
                value=0,
                unit="replicas",
                measured="0 replicas",
                limit="hosted",
                since=broker.since,
            )


def leader_skew(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    """Judge leaders against a broker's share: of all leaders, the part that it has of all replicas.

    A broker that was drained is expected to lead less. Nothing while a broker is away: its leaders are elsewhere, and
    that is what the finding about it says.
    """
    hosting = [b for b in facts.brokers if b.replicas]
    if (facts.partitions or 0) < SKEW_MIN_PARTITIONS or len(hosting) < 2 or any(b.away for b in hosting):
        return
    leaders, replicas = sum(b.leaders for b in hosting), sum(b.replicas for b in hosting)
    shares = {b.id: leaders * b.replicas / replicas for b in hosting}
    # Within one leader of its share no other spread would be better.
    uneven = [b for b in hosting if leaders and not math.floor(shares[b.id]) <= b.leaders <= math.ceil(shares[b.id])]
    # Of two that differ as much, the one that leads too few, because a broker that came back explains that.
    worst = max(uneven, key=lambda b: (abs(b.leaders - shares[b.id]), b.leaders < shares[b.id], -b.id), default=None)
    if worst is None:
        return
    share = shares[worst.id]
    skew = 100 * (worst.leaders - share) / share
    if abs(skew) >= SKEW_PERCENT:
        yield JudgedFinding(
            FindingKind.LEADER_SKEW,
            coded(
                FindingCode.LEADS_MORE if skew > 0 else FindingCode.LEADS_FEWER,
                broker=worst.id,
                percent=round(abs(skew)),
                leaders=worst.leaders,
                share=round(share, 1),
            ),
            at,
            scope=str(worst.id),
            value=round(skew, 1),
            unit="%",
            threshold=SKEW_PERCENT,
            measured=f"{'+' if skew > 0 else '−'}{abs(skew):.0f} %",
            limit=f"from its share, limit {SKEW_PERCENT:.0f} %",
        )


DRIFT_WARNS = timedelta(hours=1)
"""A rolling upgrade or restart makes brokers differ for a while; that is no drift at once."""


def mixed_versions(facts: ClusterFacts, at: datetime, now: datetime) -> Iterator[JudgedFinding]:
    up = [b for b in facts.brokers if not b.away]
    releases = Counter(b.release for b in up if b.release)
    sets = {b.software for b in up if b.software is not None}
    number = len(releases) if len(releases) > 1 else len(sets)
    if number <= 1 or facts.mixed_since is None or now - facts.mixed_since < DRIFT_WARNS:
        return
    message = coded(FindingCode.APIS_DIFFER, versions=number)
    if len(releases) > 1:
        parts = tuple(
            coded(FindingNoteCode.RELEASE, release=release, brokers=brokers)
            for release, brokers in sorted(releases.items())
        )
        message = coded(FindingCode.VERSIONS_DIFFER, versions=number, releases=parts)
    yield JudgedFinding(
        FindingKind.MIXED_VERSIONS,
        message,
        at,
        value=number,
        unit="versions",
        threshold=1,
        measured=f"{number} versions",
        limit="limit 1",
        since=facts.mixed_since,
    )


def config_drift(facts: ClusterFacts, at: datetime, now: datetime) -> Iterator[JudgedFinding]:
    lasting = [drift for drift in facts.config_drift if now - drift.since >= DRIFT_WARNS]
    if lasting:
        names = first_names([drift.key for drift in lasting])
        message = coded(FindingCode.CONFIGS_DIFFER, keys=len(lasting), names=names)
        finding = counted_finding(FindingKind.CONFIG_DRIFT, message, len(lasting), "config", at)
        yield replace(finding, since=min(drift.since for drift in lasting))


def canary_fails(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    """Brokers that are away have a finding of their own."""
    for trouble in _canaries(facts):
        if trouble.reason is not None:
            reason = coded(trouble.reason, detail=trouble.detail)
            yield JudgedFinding(
                FindingKind.CANARY_FAILS,
                coded(FindingCode.CANARY_FAILED, broker=trouble.broker, probes=trouble.probes, why=reason),
                at,
                scope=str(trouble.broker),
                value=trouble.probes,
                unit="probes",
                threshold=0,
                measured=choose_plural("# probe|# probes", trouble.probes),
                limit="failed in a row",
                since=trouble.since,
            )


def canary_slow(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    for trouble in _canaries(facts):
        if trouble.median_ms is not None:
            milliseconds = round(trouble.median_ms)
            yield JudgedFinding(
                FindingKind.CANARY_SLOW,
                coded(FindingCode.CANARY_LATE, broker=trouble.broker, milliseconds=milliseconds, most=SLOW_MS),
                at,
                scope=str(trouble.broker),
                value=milliseconds,
                unit="ms",
                threshold=SLOW_MS,
                measured=f"{milliseconds:,} ms",
                limit=f"limit {SLOW_MS:,} ms",
                since=trouble.since,
            )


def _canaries(facts: ClusterFacts) -> Iterator[CanaryTrouble]:
    away = {broker.id for broker in facts.brokers if broker.away}
    return (trouble for trouble in facts.canaries if trouble.broker not in away)


def quorum_lost(facts: ClusterFacts, at: datetime, now: datetime) -> Iterator[JudgedFinding]:
    """Controllers silent while brokers answer: nothing can be changed, and no leader elected (KIP-500)."""
    quorum = facts.quorum
    if facts.controllers_silent:
        yield JudgedFinding(
            FindingKind.QUORUM_LOST,
            coded(FindingCode.QUORUM_SILENT, why=quorum.error),
            now,
            value=quorum.failures,
            unit="refresh",
            threshold=QUORUM_FAILURES,
            measured=choose_plural("# refresh|# refreshes", quorum.failures),
            limit="failed in a row",
            since=at if quorum.taken_at else None,
        )


def quorum_margin(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    voters, in_sync = facts.voters or 0, facts.voters_in_sync or 0
    majority = voters // 2 + 1
    if facts.kraft and facts.voters_failing and in_sync <= majority:
        yield JudgedFinding(
            FindingKind.QUORUM_MARGIN,
            coded(FindingCode.QUORUM_AT_MARGIN, in_sync=in_sync, voters=voters, majority=majority),
            at,
            value=in_sync - majority,
            unit="more failures",
            threshold=1,
            measured=f"{in_sync} of {voters}",
            limit=f"voters in sync, majority is {majority}",
        )


def quorum_flapping(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    elections = facts.elections or 0
    if facts.kraft and elections > FLAPPING_CHANGES:
        yield JudgedFinding(
            FindingKind.QUORUM_FLAPPING,
            coded(FindingCode.KEEPS_ELECTING, elections=elections),
            at,
            value=elections,
            unit="elections",
            threshold=FLAPPING_CHANGES,
            measured=choose_plural("# election|# elections", elections),
            limit=f"in 10 min, limit {FLAPPING_CHANGES}",
        )


DISK_PERCENT = (80.0, 90.0)
"""A directory that is filled this far is a finding; past the second it says so louder."""


def failed_directory(facts: ClusterFacts, at: datetime, now: datetime) -> Iterator[JudgedFinding]:
    for broker, directory in _read_directories(facts, now):
        if directory.error:
            yield JudgedFinding(
                FindingKind.FAILED_DIRECTORY,
                coded(FindingCode.DIRECTORY_FAILED, broker=broker.id, path=directory.path, fault=directory.error),
                broker.directories_at or at,
                scope=f"{broker.id}:{directory.path}",
                value=1,
                unit="directories",
                threshold=0,
                measured="1 directory",
                limit="offline",
            )


def disk_full(facts: ClusterFacts, at: datetime, now: datetime) -> Iterator[JudgedFinding]:
    for broker, directory in _read_directories(facts, now):
        percent = _used_percent(directory)
        if percent is None or percent < DISK_PERCENT[0] or directory.error:
            continue
        limit = max(step for step in DISK_PERCENT if percent >= step)
        percent = math.floor(percent * 10) / 10  # down, so that nothing looks full before it is
        yield JudgedFinding(
            FindingKind.DISK_FULL,
            coded(
                FindingCode.DIRECTORY_FILLS_UP,
                broker=broker.id,
                path=directory.path,
                percent=percent,
                free=round_size(directory.usable_bytes or 0),
                total=directory.total_bytes,
            ),
            broker.directories_at or at,
            scope=f"{broker.id}:{directory.path}",
            value=percent,
            unit="%",
            threshold=limit,
            measured=f"{percent:.1f} %",
            limit=f"limit {limit:.0f} %",
        )


def _read_directories(facts: ClusterFacts, now: datetime) -> Iterator[tuple[BrokerFact, DirectoryFact]]:
    """Directories that were read lately, of brokers that are there."""
    for broker in facts.brokers:
        if not broker.gone and not is_unread(facts, broker, now):
            for directory in broker.directories:
                yield broker, directory


def is_unread(facts: ClusterFacts, broker: BrokerFact, now: datetime) -> bool:
    """Return whether the broker's directories were not read lately."""
    return broker.directories_at is None or is_stale(broker.directories_at, facts.log_dirs.interval_s, now)


def _used_percent(directory: DirectoryFact) -> float | None:
    """How full the volume of a directory is, in percent; None where Kafka does not tell."""
    total, usable = directory.total_bytes, directory.usable_bytes
    return None if not total or usable is None else 100 * (total - usable) / total


MOST_STOPPED = 10
"""Groups without members that have a finding of their own; of the others together ``MOST_NAMED``."""
MOST_NAMED = 20
MORE = "more"
"""Scope of the finding that sums up the others; no key is like it."""

_LONGEST = 80


def consumer_lag(facts: ClusterFacts, at: datetime, now: datetime) -> Iterator[JudgedFinding]:
    """Yield a finding for each group that stalls, stopped or was rewound; the rest share one finding."""
    failing = [group for group in _read_lately(facts, now) if group.worst.failing]
    own, others = _choose_named(failing, facts.groups_named, lambda group: group.lag or 0)
    for group in own:
        params = {"group": shorten_name(group.name), "waiting": group.lag or 0, "notes": _partition_notes(group)}
        if group.worst is not LagState.STOP:
            params["place"] = group.place
        yield JudgedFinding(
            FindingKind.CONSUMER_LAG,
            coded(_CODES[group.worst], **params),
            group.taken_at,
            scope=group.key,
            value=group.lag,
            unit="records",
            threshold=group.allowed,
            measured="" if group.lag is None else choose_plural("# record|# records", group.lag),
            limit=f"lag threshold: {group.allowed:,} per partition" if group.allowed else "lag threshold: 0",
            since=group.since,
        )
    if others:
        states = Counter(group.worst for group in others)
        message = coded(
            FindingCode.MORE_GROUPS_BEHIND,
            groups=len(others),
            total=len(others) + len(own),
            states=tuple(coded(code, groups=states[s]) for s, code in _IN_SUMS.items() if states[s]),
            names=_first_group_names(others),
        )
        yield counted_finding(FindingKind.CONSUMER_LAG, message, len(others), "group", at, MORE)


def consumer_loss(facts: ClusterFacts, at: datetime, now: datetime) -> Iterator[JudgedFinding]:
    """Yield a finding for each group that lost unread records below the log start; the rest share one finding."""
    losing = [group for group in _read_lately(facts, now) if group.lost]
    own, others = _choose_named(losing, facts.groups_named, lambda group: group.lost or 0)
    for group in own:
        lost = group.lost or 0
        yield JudgedFinding(
            FindingKind.CONSUMER_LOSS,
            coded(FindingCode.RECORDS_LOST, group=shorten_name(group.name), records=lost),
            group.taken_at,
            scope=group.key,
            value=lost,
            unit="records",
            threshold=0,
            measured=choose_plural("# record|# records", lost),
            limit="limit 0",
        )
    if others:
        message = coded(
            FindingCode.MORE_RECORDS_LOST,
            groups=len(others),
            total=len(others) + len(own),
            names=_first_group_names(others),
        )
        yield counted_finding(FindingKind.CONSUMER_LOSS, message, len(others), "group", at, MORE)


def unread_groups(facts: ClusterFacts, now: datetime) -> Iterator[tuple[FindingKind, str]]:
    """Yield groups that cannot be judged: not read lately (the coordinator does not answer, for example), or in doubt
    because their samples begin anew or a leader does not return its log end offset.

    While there is any such group, the finding that sums up the other groups may not close either.
    """
    old = {group.key for group in facts.groups_in_trouble if _is_old(facts, group, now)}
    no_leader = {g.key for g in facts.groups_in_trouble if g.lag_unknown and facts.offline.number != 0}
    in_doubt = {g.key for g in facts.groups_in_trouble if g.in_doubt and not g.worst.failing}
    for kind, keys in (
        (FindingKind.CONSUMER_LAG, old | no_leader | in_doubt),
        (FindingKind.CONSUMER_LOSS, old | no_leader),
    ):
        yield from ((kind, key) for key in keys)
        if keys:
            yield kind, MORE


def shorten_name(name: str) -> str:
    """A group may have a name of 32,767 characters."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


_CODES = {
    LagState.STALL: FindingCode.GROUP_STALLS,
    LagState.ERR: FindingCode.GROUP_STANDS_STILL,
    LagState.REWIND: FindingCode.GROUP_SET_BACK,
    LagState.STOP: FindingCode.GROUP_STOPPED,
}
_IN_SUMS = {
    LagState.STALL: FindingNoteCode.GROUPS_STALL,
    LagState.ERR: FindingNoteCode.GROUPS_STAND_STILL,
    LagState.REWIND: FindingNoteCode.GROUPS_SET_BACK,
    LagState.STOP: FindingNoteCode.GROUPS_STOPPED,
}


def _first_group_names(groups: Sequence[GroupFact]) -> tuple[str | int, ...]:
    return first_names([shorten_name(group.name) for group in groups])


def _partition_notes(group: GroupFact) -> tuple[CodedMessage, ...]:
    notes = []
    if group.partitions > 1:
        notes.append(coded(FindingNoteCode.FAILING_PARTITIONS, failing=group.failing, partitions=group.partitions))
        if group.place_lag is not None:
            notes.append(coded(FindingNoteCode.MOST_WAIT_IN, waiting=group.place_lag, place=group.place))
    if group.worst is LagState.ERR:
        notes.append(coded(FindingNoteCode.MEMBERS_UNKNOWN))
    elif group.members:
        notes.append(coded(FindingNoteCode.MEMBERS, members=group.members))
    if group.held:
        notes.append(coded(FindingNoteCode.OPEN_TRANSACTION, partitions=group.held))
    return tuple(notes)


def _choose_named(
    groups: Sequence[GroupFact], named: frozenset[str], how_bad: Callable[[GroupFact], int]
) -> tuple[list[GroupFact], list[GroupFact]]:
    """Return the groups that get a finding of their own, and the rest.

    A group that has one keeps it while it is in trouble; otherwise a finding would close before its problem ends.
    """
    own = [group for group in groups if group.key in named]
    room = MOST_NAMED + MOST_STOPPED - len(own)
    room_stopped = MOST_STOPPED - sum(group.worst is LagState.STOP for group in own)
    rest = []
    by_need = sorted(groups, key=lambda g: (g.worst is LagState.STOP, -how_bad(g), g.key))
    room_others = MOST_NAMED - sum(group.worst is not LagState.STOP for group in own)
    for group in by_need:
        if group.key in named:
            continue
        stopped = group.worst is LagState.STOP
        if room > 0 and (room_stopped if stopped else room_others) > 0:
            own.append(group)
            room, room_stopped, room_others = room - 1, room_stopped - stopped, room_others - (not stopped)
        else:
            rest.append(group)
    return own, rest


def _read_lately(facts: ClusterFacts, now: datetime) -> list[GroupFact]:
    return [group for group in facts.groups_in_trouble if not _is_old(facts, group, now)]


def _is_old(facts: ClusterFacts, group: GroupFact, now: datetime) -> bool:
    return facts.groups is None or is_stale(group.taken_at, facts.groups.interval_s, now)


NAMED = 3
"""So many names are said; of the others, how many there are."""


def hanging_transaction(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    if fact := facts.hanging:
        count = {"transactions": fact.transactions, "partitions": len(fact.places), "names": first_names(fact.places)}
        message = (
            coded(FindingCode.TRANSACTIONS_HANG_AT_LEAST, **count, unread=fact.unread)
            if fact.unread
            else coded(FindingCode.TRANSACTIONS_HANG, **count)
        )
        finding = counted_finding(FindingKind.HANGING_TRANSACTION, message, fact.transactions, "transaction", at)
        yield replace(finding, since=fact.since)


def offline_partitions(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    if number := facts.offline.number:
        notes = _name_partitions(facts.offline)
        if facts.partitions:
            notes = (*notes, coded(FindingNoteCode.OF_PARTITIONS, partitions=facts.partitions))
        notes = (*notes, *_return_notes(facts.offline_elr))
        message = coded(FindingCode.PARTITIONS_LEADERLESS, partitions=number, notes=notes)
        yield counted_finding(FindingKind.OFFLINE, message, number, "partition", at)


def under_min_isr(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    if number := facts.under_min_isr.number:
        named = _name_partitions(facts.under_min_isr)
        notes = (*named, coded(FindingNoteCode.PRODUCERS_SEE), *_eligible_notes(facts.under_elr))
        message = coded(FindingCode.WRITES_REFUSED, partitions=number, notes=notes)
        yield counted_finding(FindingKind.UNDER_MIN_ISR, message, number, "partition", at)


def at_min_isr(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    number = (facts.at_min_isr.number or 0) - facts.at_min_isr_moving
    if number > 0:
        last = min(facts.at_min_isr_last, number)  # have one replica in sync, and go offline with it
        notes = (*_name_partitions(facts.at_min_isr), *_explained_note(facts.at_min_isr_moving))
        if 0 < last < number:
            others = number - last
            message = coded(FindingCode.NEXT_DOES_BOTH, partitions=number, last=last, others=others, notes=notes)
        else:
            code = FindingCode.NEXT_GOES_OFFLINE if last else FindingCode.NEXT_STOPS_WRITES
            message = coded(code, partitions=number, notes=notes)
        yield counted_finding(FindingKind.AT_MIN_ISR, message, number, "partition", at)


def under_replicated(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    number = (facts.under_replicated.number or 0) - facts.under_replicated_moving
    if number > 0:
        missing = facts.under_replicated.missing
        notes = (
            *((coded(FindingNoteCode.MISS_REPLICA, partitions=number, brokers=missing),) if missing else ()),
            *_name_partitions(facts.under_replicated),
            *_explained_note(facts.under_replicated_moving),
        )
        message = coded(FindingCode.UNDER_REPLICATED, partitions=number, notes=notes)
        yield counted_finding(FindingKind.UNDER_REPLICATED, message, number, "partition", at)


def rack_violation(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    if number := facts.rack_violations:
        message = coded(FindingCode.RACKS_UNEVEN, partitions=number)
        yield counted_finding(FindingKind.RACK_VIOLATION, message, number, "partition", at)


def topics_hidden(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    """Yield a finding if Kafka hides topics: their state is unknown, so finding no problem does not prove OK."""
    if number := facts.hidden_topics:
        message = coded(FindingCode.TOPICS_NOT_SHOWN, topics=number)
        yield counted_finding(FindingKind.TOPICS_HIDDEN, message, number, "topic", at)


def _name_partitions(partitions: PartitionFacts) -> tuple[CodedMessage, ...]:
    """The first of them by name, with how many more there are."""
    names = partitions.names[:NAMED]
    rest = (partitions.number or 0) - len(names)
    return (coded(FindingNoteCode.NAMED, names=(*names, rest) if rest > 0 else names),) if names else ()


def _explained_note(moving: int) -> tuple[CodedMessage, ...]:
    return (coded(FindingNoteCode.EXPLAINED_BY_MOVES, partitions=moving),) if moving else ()


def _return_notes(elr: EligibleFacts) -> Iterator[CodedMessage]:
    """Yield which brokers bring offline partitions back with all committed records, and how many none does."""
    if elr.eligible:
        code = FindingNoteCode.RETURN_OF_ANY if elr.each else FindingNoteCode.RETURN_OF_ALL
        yield coded(code, partitions=elr.eligible, brokers=elr.brokers)
    if lost := elr.known - elr.eligible:
        yield coded(FindingNoteCode.NO_ELIGIBLE, partitions=lost)


def _eligible_notes(elr: EligibleFacts) -> Iterator[CodedMessage]:
    """Yield the effects of the strict min-ISR rule of clusters with an ELR (KIP-966)."""
    if elr.known:
        yield coded(FindingNoteCode.WATERMARK_HELD, partitions=elr.known)
    if elr.eligible:
        yield coded(FindingNoteCode.CAN_LEAD, partitions=elr.eligible, brokers=elr.brokers)


SOON = timedelta(hours=24)
FORECAST_HOLDS = timedelta(hours=3)
"""Forecasts are made every hour; one that is older than this says nothing any more."""
MISSED = 3
"""The pipeline stands still after so many intervals without a batch."""


def disk_soon(facts: ClusterFacts, _: datetime, now: datetime) -> Iterator[JudgedFinding]:
    for forecast in facts.forecasts:
        left = full_in(forecast, now)
        if left is None or left >= SOON or _too_old(forecast, now):
            continue
        seconds = left.total_seconds()
        params = {
            "broker": forecast.broker,
            "path": forecast.path,
            "growth": round(forecast.grows_per_day),
            "seen": round_duration((forecast.made_at - forecast.from_at).total_seconds()),
            "free": max(0, forecast.total_bytes - forecast.used_bytes),
            "total": forecast.total_bytes,
        }
        at_once = seconds < MINUTE
        yield JudgedFinding(
            FindingKind.DISK_SOON,
            coded(FindingCode.DIRECTORY_FULL_NOW, **params)
            if at_once
            else coded(FindingCode.DIRECTORY_FULL_SOON, **params, left=round_duration(seconds)),
            forecast.made_at,
            scope=f"{forecast.broker}:{forecast.path}",
            value=round(seconds / 3600, 1),
            unit="hours",
            threshold=SOON.total_seconds() / 3600,
            measured="less than 1 min" if at_once else f"about {long_duration(seconds)}",
            limit="limit 24 h",
        )


def segment_set_aside(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    aside = facts.pipeline_stands.set_aside if facts.pipeline_stands else ()
    if number := len(aside):
        newest = max(aside, key=lambda file: (file.at, file.file))
        names = first_names([file.file for file in aside])
        yield JudgedFinding(
            FindingKind.SEGMENT_SET_ASIDE,
            coded(FindingCode.SEGMENTS_UNREAD, segments=number, why=newest.why, names=names),
            at,
            value=number,
            unit="segments",
            threshold=0,
            measured=choose_plural("# segment|# segments", number),
            limit="limit 0",
            since=min(file.at for file in aside),
        )


def pipeline_still(facts: ClusterFacts, at: datetime, now: datetime) -> Iterator[JudgedFinding]:
    """Nothing live depends on it; history, percentiles and forecasts do."""
    stands = facts.pipeline_stands
    if stands is None or stands.batch_at is None or now - stands.batch_at <= MISSED * _interval(stands.interval_s):
        return
    age = long_duration((now - stands.batch_at).total_seconds())
    limit = long_duration(MISSED * stands.interval_s)
    yield JudgedFinding(
        FindingKind.PIPELINE_STILL,
        coded(FindingCode.PIPELINE_STILL),
        at,
        measured=age,
        limit=f"limit {limit}",
        since=stands.batch_at,
    )


def old_forecasts(facts: ClusterFacts, now: datetime) -> Iterator[tuple[FindingKind, str]]:
    """Directories of which no forecast holds any more: whether they will be full cannot be told."""
    for forecast in facts.forecasts:
        if _too_old(forecast, now):
            yield FindingKind.DISK_SOON, f"{forecast.broker}:{forecast.path}"


def has_forecast(facts: ClusterFacts, now: datetime) -> bool:
    """Return whether the forecast of any directory holds now."""
    return any(not _too_old(forecast, now) for forecast in facts.forecasts)


def full_in(forecast: ForecastFact, now: datetime) -> timedelta | None:
    """From now on, if it grows as it did; None where it does not, or not within a year."""
    if forecast.grows_per_day <= 0:
        return None
    days = (forecast.total_bytes - forecast.used_bytes) / forecast.grows_per_day
    if days > 365:
        return None
    return max(timedelta(), timedelta(days=days) - (now - forecast.made_at))


def _too_old(forecast: ForecastFact, now: datetime) -> bool:
    return now - forecast.made_at > FORECAST_HOLDS


def _interval(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


_RUN_CODES: Mapping[str, FindingCode] = {
    "failed": FindingCode.RUN_FAILED,
    "stuck": FindingCode.RUN_STUCK,
    "asks": FindingCode.RUN_ASKS,
    "blocked": FindingCode.RUN_BLOCKED,
    "unread": FindingCode.RUN_UNREAD,
    "stalled": FindingCode.RUN_STALLED,
    "owes": FindingCode.RUN_OWES,
}
READ_WITHIN = timedelta(minutes=10)
"""A new cluster is read completely within this time, or has a finding."""


def never_read(facts: ClusterFacts, at: datetime, now: datetime) -> Iterator[JudgedFinding]:
    fact = facts.incomplete
    if fact is None or now - fact.since <= READ_WITHIN:
        return
    kinds = tuple(kind for kind in fact.kinds if facts.kraft or kind != FactSource.QUORUM)
    if kinds:
        message = coded(FindingCode.NEVER_COMPLETE, sources=kinds)
        finding = counted_finding(FindingKind.NEVER_READ, message, len(kinds), "kind of facts", at)
        measured = choose_plural("# kind of facts|# kinds of facts", len(kinds))
        yield replace(finding, unit="kinds of facts", measured=measured, since=fact.since)


_TASK_CODES: Mapping[str, FindingCode] = {
    AUDIT: FindingCode.AUDIT_SILENT,
    BEAT: FindingCode.BEAT_SILENT,
    TICK: FindingCode.TICK_SILENT,
    PRUNE: FindingCode.CLEANUP_LATE,
    DEAD_MAN: FindingCode.DEAD_MAN_LATE,
}


def overdue_tasks(facts: ProductFacts, now: datetime) -> Iterator[JudgedFinding]:
    for each in find_overdue(facts.rounds, now):
        schedule = AUDITED[each.name]
        message = coded(FindingCode.QUEUE_SILENT, queue=each.name) if schedule.queue else coded(_TASK_CODES[each.name])
        yield JudgedFinding(
            FindingKind.OWN_TASK,
            message,
            now,
            scope=each.name,
            measured=long_duration((now - each.since).total_seconds()),
            limit=f"limit {long_duration(schedule.limit_s)}",
            since=each.since,
        )


RECEIVER_PATIENCE = timedelta(minutes=10)


def failing_receivers(facts: ProductFacts, now: datetime) -> Iterator[JudgedFinding]:
    for receiver in facts.receivers:
        if now - receiver.since > RECEIVER_PATIENCE:
            yield JudgedFinding(
                FindingKind.RECEIVER_FAILS,
                coded(FindingCode.RECEIVER_FAILS, receiver=receiver.name, why=receiver.error),
                now,
                scope=str(receiver.number),
                since=receiver.since,
            )


_COUNTED = frozenset({FindingCode.RUN_STUCK, FindingCode.RUN_ASKS, FindingCode.RUN_OWES})


def run_trouble(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    for fact in facts.run_troubles:
        code = _RUN_CODES[fact.kind]
        params: dict[str, Any] = {"number": fact.number}
        if code in _COUNTED:
            params["count"] = fact.count
        elif code is FindingCode.RUN_STALLED:
            params["why"] = fact.why
        scope = f"{fact.number}:{fact.kind}"
        yield JudgedFinding(FindingKind.RUN_TROUBLE, coded(code, **params), at, scope=scope, since=fact.since)


def orphan_throttle(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    if number := len(facts.orphan_throttles):
        names = first_names(facts.orphan_throttles)
        message = coded(FindingCode.THROTTLES_ORPHANED, throttles=number, names=names)
        yield counted_finding(FindingKind.ORPHAN_THROTTLE, message, number, "throttle", at)


def zombie_reassignment(facts: ClusterFacts, at: datetime, _: datetime) -> Iterator[JudgedFinding]:
    if number := len(facts.zombies):
        message = coded(FindingCode.MOVES_NEVER_END, moves=number, names=first_names(facts.zombies))
        yield counted_finding(FindingKind.ZOMBIE_REASSIGNMENT, message, number, "reassignment", at)


JUDGES: Mapping[FindingKind, Callable[[ClusterFacts, datetime, datetime], Iterator[JudgedFinding]]] = {
    FindingKind.OFFLINE: offline_partitions,
    FindingKind.QUORUM_LOST: quorum_lost,
    FindingKind.QUORUM_MARGIN: quorum_margin,
    FindingKind.UNDER_MIN_ISR: under_min_isr,
    FindingKind.BROKER_DOWN: broker_down,
    FindingKind.CANARY_FAILS: canary_fails,
    FindingKind.FAILED_DIRECTORY: failed_directory,
    FindingKind.AT_MIN_ISR: at_min_isr,
    FindingKind.UNDER_REPLICATED: under_replicated,
    FindingKind.CANARY_SLOW: canary_slow,
    FindingKind.DISK_SOON: disk_soon,
    FindingKind.DISK_FULL: disk_full,
    FindingKind.QUORUM_FLAPPING: quorum_flapping,
    FindingKind.CONSUMER_LAG: consumer_lag,
    FindingKind.HANGING_TRANSACTION: hanging_transaction,
    FindingKind.CONSUMER_LOSS: consumer_loss,
    FindingKind.RUN_TROUBLE: run_trouble,
    FindingKind.ORPHAN_THROTTLE: orphan_throttle,
    FindingKind.ZOMBIE_REASSIGNMENT: zombie_reassignment,
    FindingKind.RACK_VIOLATION: rack_violation,
    FindingKind.LEADER_SKEW: leader_skew,
    FindingKind.MIXED_VERSIONS: mixed_versions,
    FindingKind.CONFIG_DRIFT: config_drift,
    FindingKind.BROKER_AWAY: broker_away,
    FindingKind.SEGMENT_SET_ASIDE: segment_set_aside,
    FindingKind.PIPELINE_STILL: pipeline_still,
    FindingKind.NEVER_READ: never_read,
    FindingKind.TOPICS_HIDDEN: topics_hidden,
}
