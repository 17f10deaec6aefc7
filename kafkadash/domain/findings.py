"""Is a cluster well? Judged from stored figures and from their ages, so that nothing old is ever called OK.

Critical means that producers or consumers fail now: partitions without a leader, controllers without a majority, a
broker down that hosts replicas. Everything else that is wrong is a warning. What cannot be told is unknown, never OK.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from kafkadash.domain.status import NEVER, QUICKEST_JUDGED_S, Refreshed, State
from kafkadash.domain.wording import count, listed, long_duration

QUORUM_FAILURES = 2
"""Refreshes in a row without an answer of the controllers: one alone may be a change of the leader."""

EMPTY_BROKER_WARNS = timedelta(days=1)
"""A broker that left and holds no replica was taken out on purpose; that is worth a warning for a day."""

NO_CONTROLLER_FAILURES = frozenset({"QuorumUnavailable", "DeadlineExceeded"})
"""Failures (names of ``kafka.port`` classes) that mean silence of the controllers, not a refusal by them."""


class FindingKind(Enum):
    """What can be wrong, in the order of urgency."""

    OFFLINE = "offline partitions"
    QUORUM_LOST = "no controller quorum"
    QUORUM_MARGIN = "quorum without margin"
    BROKER_DOWN = "broker down"
    UNDER_REPLICATED = "under-replicated"
    BROKER_AWAY = "broker away"
    STALE = "stale data"
    DISABLED = "collection off"


_RANK = {kind: rank for rank, kind in enumerate(FindingKind)}


@dataclass(frozen=True, slots=True)
class BrokerAway:
    """A broker that serves nothing: fenced (registered, but not let in) or gone (no longer registered)."""

    id: int
    fenced: bool
    replicas: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is stored about a cluster. None: not known. ``voters_in_sync`` counts those *known* to be in sync."""

    enabled: bool = True
    kraft: bool = True
    addresses: int = 1
    metadata: Refreshed = NEVER
    reassignments: Refreshed = NEVER
    quorum: Refreshed = NEVER
    partitions: int | None = None
    offline_partitions: int | None = None
    under_replicated: int | None = None
    under_replicated_moving: int | None = None
    brokers_gone: int | None = None
    away: tuple[BrokerAway, ...] = ()
    voters: int | None = None
    voters_in_sync: int | None = None
    voters_failing: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. ``answer`` continues the cluster's name in a title, ``sentence`` stands alone."""

    kind: FindingKind
    state: State
    word: str
    sentence: str
    answer: str
    detail: str = ""
    measured: str = ""
    limit: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The state of a cluster and why; ``findings`` most urgent first, none when all is well."""

    state: State
    findings: tuple[Finding, ...] = ()

    def title(self, name: str) -> str:
        """The answer in one sentence, to stand as a page's heading."""
        if not self.findings:
            return f"{name} is OK."
        worst = self.findings[0]
        if worst.state is State.UNKNOWN:
            return f"Cannot tell about {name}: {worst.answer}."
        return f"{name} {worst.answer}."


def judge(facts: Facts, now: datetime) -> Judgement:
    """The state of one cluster at ``now``. The roll-up takes the worst finding."""
    if not facts.enabled:
        return Judgement(State.MAINTENANCE, (_disabled(),))
    if facts.metadata.stale(now):
        return Judgement(State.UNKNOWN, (_unreachable(facts, now),))
    found = sorted(_findings(facts, now), key=lambda f: (f.state.severity, _RANK[f.kind]))
    return Judgement(found[0].state if found else State.OK, tuple(found))


def board_title(clusters: Sequence[tuple[str, Judgement]]) -> str:
    """What is true of all clusters, in one sentence; ``clusters`` are (name, judgement), worst first."""
    if not clusters:
        return "No cluster is registered yet."
    worst_name, worst = clusters[0]
    if worst.state not in (State.OK, State.MAINTENANCE):
        return worst.title(worst_name)
    silent = sum(judgement.state is State.MAINTENANCE for _, judgement in clusters)
    well = len(clusters) - silent
    if not silent:
        return worst.title(worst_name) if well == 1 else f"All {well} clusters are OK."
    if not well:
        return worst.title(worst_name) if silent == 1 else f"None of {silent} clusters is watched."
    return f"{count(well, 'cluster is', 'clusters are')} OK, {silent} not watched."


def _findings(facts: Facts, now: datetime) -> Iterator[Finding]:
    yield from _offline(facts)
    lost = _quorum_lost(facts, now)
    if lost:
        yield lost
    else:
        yield from _quorum_margin(facts, now)
        yield from _stale(facts, now)
    yield from _brokers(facts, now)
    yield from _under_replicated(facts)


def _offline(facts: Facts) -> Iterator[Finding]:
    offline = facts.offline_partitions
    if offline:
        verb = "has" if offline == 1 else "have"
        yield Finding(
            FindingKind.OFFLINE,
            State.CRITICAL,
            "Critical",
            f"{count(offline, 'partition')} {verb} no leader: nobody can read or write {_it(offline)}.",
            f"has {count(offline, 'partition')} without a leader",
            detail=f"of {count(facts.partitions, 'partition')}" if facts.partitions else "",
            measured=count(offline, "partition"),
            limit="limit 0",
        )


def _quorum_lost(facts: Facts, now: datetime) -> Finding | None:
    """Controllers silent while brokers answer: nothing can be changed, and no leader elected (KIP-500)."""
    quorum = facts.quorum
    if not facts.kraft or quorum.failures < QUORUM_FAILURES or quorum.failure not in NO_CONTROLLER_FAILURES:
        return None
    since = f" for {long_duration((now - quorum.taken_at).total_seconds())}" if quorum.taken_at else ""
    return Finding(
        FindingKind.QUORUM_LOST,
        State.CRITICAL,
        "Critical",
        f"The controllers have not answered{since}: no leader can be elected and nothing can be changed.",
        "has no controller quorum",
        detail=quorum.error,
        measured=f"{quorum.failures} refreshes",
        limit="in a row without an answer",
        since=quorum.taken_at,
    )


def _quorum_margin(facts: Facts, now: datetime) -> Iterator[Finding]:
    if not facts.kraft or facts.quorum.stale(now) or not facts.voters_failing:
        return
    voters, in_sync = facts.voters or 0, facts.voters_in_sync or 0
    if in_sync - (voters // 2 + 1) <= 0:
        yield Finding(
            FindingKind.QUORUM_MARGIN,
            State.WARNING,
            "Quorum",
            "One more failed controller takes the majority away.",
            "survives no further failure of a controller",
            detail=f"{in_sync} of {voters} voters are known to be in sync, the majority is {voters // 2 + 1}",
            measured=f"{in_sync} of {voters}",
            limit="voters in sync",
        )


def _brokers(facts: Facts, now: datetime) -> Iterator[Finding]:
    down = [broker for broker in facts.away if broker.replicas]
    unseen = (facts.brokers_gone or 0) - sum(not broker.fenced for broker in down)
    if down or unseen > 0:
        total = len(down) + max(0, unseen)
        ids = _names(down)
        hosting = sum(broker.replicas for broker in down)
        which = ids if down and unseen <= 0 else count(total, "broker")
        yield Finding(
            FindingKind.BROKER_DOWN,
            State.CRITICAL,
            "Critical",
            f"{_capital(which)} {'is' if total == 1 else 'are'} down and {'hosts' if total == 1 else 'host'} replicas.",
            f"has {which} down",
            detail=f"{count(hosting, 'replica')} on {ids}" if down else "never seen alive since the cluster is watched",
            measured=count(total, "broker"),
            limit="limit 0",
            since=min((b.since for b in down if b.since), default=None),
        )
    empty = [b for b in facts.away if not b.replicas and (b.fenced or _recent(b.since, now))]
    if empty:
        yield Finding(
            FindingKind.BROKER_AWAY,
            State.WARNING,
            "Warning",
            f"{_capital(_names(empty))} {'is' if len(empty) == 1 else 'are'} away; no replica is hosted there.",
            f"misses {_names(empty)}",
            detail=listed([f"broker {b.id} is {'fenced' if b.fenced else 'gone'}" for b in empty[:3]]),
            measured=count(len(empty), "broker"),
            limit="limit 0",
            since=min((b.since for b in empty if b.since), default=None),
        )


def _under_replicated(facts: Facts) -> Iterator[Finding]:
    moving = facts.under_replicated_moving or 0
    unexplained = (facts.under_replicated or 0) - moving
    if unexplained > 0:
        verb = "is" if unexplained == 1 else "are"
        yield Finding(
            FindingKind.UNDER_REPLICATED,
            State.WARNING,
            "Warning",
            f"{count(unexplained, 'partition')} {verb} under-replicated, not explained by a move.",
            f"has {count(unexplained, 'under-replicated partition')}",
            detail=f"{moving:,} more {'is' if moving == 1 else 'are'} explained by moves" if moving else "",
            measured=count(unexplained, "partition"),
            limit="limit 0",
        )


def _stale(facts: Facts, now: datetime) -> Iterator[Finding]:
    """Facts besides metadata that are too old to say that all is well."""
    kinds = [("reassignments", facts.reassignments), *([("the controller quorum", facts.quorum)] * facts.kraft)]
    old = [(name, kind) for name, kind in kinds if kind.stale(now)]
    if not old:
        return
    names = listed([name for name, _ in old])
    seen = [kind.taken_at for _, kind in old if kind.taken_at]
    if len(seen) < len(old):
        answer, measured = f"{names} could not be read yet", "no data"
    else:
        age = long_duration((now - min(seen)).total_seconds())
        answer, measured = f"nothing new about {names} for {age}", age
    yield Finding(
        FindingKind.STALE,
        State.UNKNOWN,
        "Cannot tell",
        _capital(answer) + ".",
        answer,
        detail=next((kind.error for _, kind in old if kind.error), ""),
        measured=measured,
        limit=f"limit {_limit(kind for _, kind in old)}",
        since=min(seen, default=None),
    )


def _unreachable(facts: Facts, now: datetime) -> Finding:
    """Nothing younger than twice the interval tells the state: whatever else is stored is history."""
    metadata = facts.metadata
    tried = metadata.failures > 0
    if metadata.taken_at is None:
        answer = "no broker has answered yet" if tried else "nothing was collected yet"
        measured = "no data"
    else:
        age = long_duration((now - metadata.taken_at).total_seconds())
        answer = f"no broker has answered for {age}" if tried else f"nothing was collected for {age}"
        measured = age
    history = " What you see elsewhere about this cluster is history." if metadata.taken_at else ""
    return Finding(
        FindingKind.STALE,
        State.UNKNOWN,
        "Cannot tell",
        f"{_capital(answer)}.{history}",
        answer,
        detail=metadata.error,
        measured=measured,
        limit=f"limit {_limit([metadata])}" if metadata.taken_at else count(facts.addresses, "address", "addresses"),
        since=metadata.taken_at,
    )


def _disabled() -> Finding:
    return Finding(
        FindingKind.DISABLED,
        State.MAINTENANCE,
        "Not watched",
        "Collection is switched off; nothing is read from this cluster.",
        "is not watched: collection is switched off",
    )


def _names(brokers: Sequence[BrokerAway], most: int = 3) -> str:
    ids = [str(broker.id) for broker in brokers]
    if len(ids) == 1:
        return f"broker {ids[0]}"
    return f"brokers {listed(ids)}" if len(ids) <= most else f"{len(ids):,} brokers"


def _limit(kinds: Iterable[Refreshed]) -> str:
    return long_duration(max(2 * max(kind.interval_s, QUICKEST_JUDGED_S) for kind in kinds))


def _recent(since: datetime | None, now: datetime) -> bool:
    return since is not None and now - since < EMPTY_BROKER_WARNS


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _it(number: int) -> str:
    return "it" if number == 1 else "them"
