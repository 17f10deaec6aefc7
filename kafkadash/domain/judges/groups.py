"""Consumer groups that do not read, and records that were deleted before they were.

A cluster may have thousands of them, most often groups that nobody uses any more. So a group whose members are there
and do not read never has to compete with those for room, and what has no room is one finding with a sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from kafkadash.domain.facts import Facts, GroupFact
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.judges.words import some
from kafkadash.domain.lag import LagState
from kafkadash.domain.status import is_stale
from kafkadash.domain.wording import count, listed

MOST_STOPPED = 10
"""Groups without members that have a finding of their own; of the others together ``MOST_NAMED``."""
MOST_NAMED = 20
MORE = "more"
"""Scope of the finding that sums up the others; no key is like it."""

_LONGEST = 80


def consumer_lag(facts: Facts, at: datetime, now: datetime) -> Iterator[Finding]:
    """One for each group that stalls, stopped or was set back."""
    failing = [group for group in _read_lately(facts, now) if group.worst.failing]
    own, others = _chosen(failing, facts.groups_named, lambda group: group.lag or 0)
    for group in own:
        waits = count(group.lag or 0, "record waits", "records wait")
        does, answer = _what_it_does(group, waits)
        name = shortened(group.name)
        yield Finding(
            FindingKind.CONSUMER_LAG,
            f"Group {name} {does}.",
            f"has {answer}: {name}",
            group.taken_at,
            scope=group.key,
            detail=_partitions(group),
            value=group.lag,
            unit="records",
            threshold=group.allowed,
            measured="" if group.lag is None else count(group.lag, "record"),
            limit=f"allowed {group.allowed:,} a partition" if group.allowed else "none allowed to wait",
            since=group.since,
        )
    if others:
        states = Counter(group.worst for group in others)
        what = [f"{states[s]:,} {words}" for s, words in _IN_SUMS.items() if states[s]]
        if len(what) == 1:
            what = [f"they {_IN_SUMS[others[0].worst]}" if len(others) > 1 else _DOES[others[0].worst]]
        yield _sum_of(
            FindingKind.CONSUMER_LAG,
            f"{count(len(others), 'more consumer group does not read', 'more consumer groups do not read')}: "
            f"{listed(what)}.",
            f"has {count(len(others) + len(own), 'consumer group')} that do not read",
            at,
            others,
        )


def consumer_loss(facts: Facts, at: datetime, now: datetime) -> Iterator[Finding]:
    """One for each group of whose unread records the log start has passed some."""
    losing = [group for group in _read_lately(facts, now) if group.lost]
    own, others = _chosen(losing, facts.groups_named, lambda group: group.lost or 0)
    for group in own:
        lost = group.lost or 0
        name = shortened(group.name)
        yield Finding(
            FindingKind.CONSUMER_LOSS,
            f"{'1 record was' if lost == 1 else f'Up to {lost:,} records were'} deleted before group {name} read "
            f"{'it' if lost == 1 else 'them'}.",
            f"has records that were deleted before group {name} read them",
            group.taken_at,
            scope=group.key,
            detail="The log start has passed what it committed; at its next fetch it goes on where its "
            "auto.offset.reset says",
            value=lost,
            unit="records",
            threshold=0,
            measured=count(lost, "record"),
            limit="limit 0",
        )
    if others:
        yield _sum_of(
            FindingKind.CONSUMER_LOSS,
            f"Records of {count(len(others), 'more consumer group')} were deleted unread.",
            f"has {count(len(others) + len(own), 'consumer group')} whose records were deleted unread",
            at,
            others,
        )


def unread_groups(facts: Facts, now: datetime) -> Iterator[tuple[FindingKind, str]]:
    """Those that were not read lately, for example because their coordinator does not answer: nothing is told of them.
    And those that cannot be judged now, because their samples begin anew or a leader does not tell its log's end: that
    they read is not told either.

    As long as there are any, the sum of the others may not close either.
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


def shortened(name: str) -> str:
    """A group may have a name of 32,767 characters, or none."""
    if not name:
        return "with the empty name"
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


_IN_SUMS = {
    LagState.STALL: "stall",
    LagState.ERR: "stand still",
    LagState.REWIND: "were set back",
    LagState.STOP: "have no members",
}


_DOES = {
    LagState.STALL: "it stalls",
    LagState.ERR: "it stands still",
    LagState.REWIND: "it was set back",
    LagState.STOP: "it has no members",
}


def _what_it_does(group: GroupFact, waits: str) -> tuple[str, str]:
    match group.worst:
        case LagState.STOP:
            return f"has no members while {waits}", "a consumer group without members"
        case LagState.REWIND:
            return f"was set back on {group.place}; {waits}", "a consumer group that was set back"
        case LagState.STALL:
            return f"stalls on {group.place}: nothing is committed while {waits}", "a consumer group that stalls"
        case _:
            return f"stands still on {group.place}; {waits}", "a consumer group that stands still"


def _partitions(group: GroupFact) -> str:
    parts = [f"{group.failing:,} of {count(group.partitions, 'partition')}"] if group.partitions > 1 else []
    if group.partitions > 1 and group.place_lag is not None:
        parts.append(f"{group.place_lag:,} wait in {group.place}")
    if group.worst is LagState.ERR:
        parts.append("whether it has members is not known")
    elif group.members:
        parts.append(f"{count(group.members, 'member')} in the group")
    return " · ".join(parts)


def _chosen(
    groups: Sequence[GroupFact], named: frozenset[str], how_bad: Callable[[GroupFact], int]
) -> tuple[list[GroupFact], list[GroupFact]]:
    """Those that get a finding of their own, and the rest.

    Who has one keeps it as long as it is in trouble, or findings would close that are not over.
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


def _sum_of(kind: FindingKind, sentence: str, answer: str, at: datetime, groups: Sequence[GroupFact]) -> Finding:
    number = len(groups)
    return Finding(
        kind,
        sentence,
        answer,
        at,
        scope=MORE,
        detail=f"{some([shortened(g.name) for g in groups])} · the list of groups has all of them, worst first",
        value=number,
        unit="groups",
        threshold=0,
        measured=count(number, "group"),
        limit="limit 0",
    )


def _read_lately(facts: Facts, now: datetime) -> list[GroupFact]:
    return [group for group in facts.groups_in_trouble if not _is_old(facts, group, now)]


def _is_old(facts: Facts, group: GroupFact, now: datetime) -> bool:
    return facts.groups is None or is_stale(group.taken_at, facts.groups.interval_s, now)
