"""Stored samples of a group as ``domain.lag_group`` judges them: in the collector, on pages and for findings alike."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafkadash.domain.lag import LagState
from kafkadash.domain.lag_group import GroupLag, PartitionLag, group_lag, partition_lag
from kafkadash.domain.lag_look import Look
from kafkadash.domain.lag_trend import Drain
from kafkadash.observe.group_window import NOT_KNOWN, Key, Window, unpack
from kafkadash.observe.models import GroupState

WORST_FIRST = (
    LagState.STOP,
    LagState.STALL,
    LagState.ERR,
    LagState.REWIND,
    LagState.WARN,
    LagState.UNKNOWN,
    LagState.OK,
)
"""The order in which partitions of a group, and filters of groups, are shown."""
RANKS: Mapping[LagState, int] = {state: rank for rank, state in enumerate(WORST_FIRST)}


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group as it was described; ``instance_id`` is None for a dynamic one (KIP-345)."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assigned: Mapping[str, Sequence[int]]

    @property
    def name(self) -> str:
        return self.instance_id or self.client_id or self.member_id


def members_of(row: GroupState) -> list[Member]:
    return [Member(*fields) for fields in json.loads(zlib.decompress(bytes(row.window.members)))]


def read_group(row: GroupState, members: Sequence[Member]) -> tuple[list[PartitionLag], GroupLag]:
    """A stored group judged as it was at its newest look; ``row`` with its ``window``."""
    window = unpack(bytes(row.window.data))
    has_members = None if row.members is None else row.members > 0
    owners = None if row.members is None else _owners(members)
    partitions = list(
        partition_lags(window, row.times, has_members=has_members, allowed=row.allowed_lag, owners=owners)
    )
    return partitions, group_lag(partitions, members=row.members, allowed=row.allowed_lag)


def partition_lags(
    window: Window,
    times: Sequence[float],
    *,
    has_members: bool | None,
    allowed: int,
    owners: Mapping[Key, str] | None = None,
) -> Iterator[PartitionLag]:
    """Every partition of the window, in its order. ``times`` of the samples oldest first; ``owners`` None: unknown."""
    for key, start, moved, since, commits, ends in window.by_partition():
        looks = [
            Look(at, None if commit == NOT_KNOWN else commit, None if end == NOT_KNOWN else end)
            for at, commit, end in zip(times, commits, ends, strict=True)
            if commit != NOT_KNOWN or end != NOT_KNOWN
        ]
        if commits[-1] == ends[-1] == NOT_KNOWN:  # the newest look brought nothing, and the older ones cannot speak
            looks.append(Look(times[-1], None, None))
        yield partition_lag(
            key[0],
            key[1],
            looks,
            has_members=has_members,
            start=None if start == NOT_KNOWN else start,
            allowed=allowed,
            moved_at=None if moved == NOT_KNOWN else float(moved),
            seen_since=float(since),
            member=None if owners is None else owners.get(key, ""),
        )


def _owners(members: Sequence[Member]) -> dict[Key, str]:
    return {
        (topic, number): member.name
        for member in members
        for topic, numbers in member.assigned.items()
        for number in numbers
    }


@dataclass(frozen=True, slots=True)
class Flow:
    """How a group moves: the longest time lag and that of the others in seconds, rates in records per second.

    ``drain_s``: of the partition that takes longest, None where none drains or one never does (``never``).
    """

    time_lag_s: float | None
    rest_time_lag_s: float | None
    read: float | None
    written: float | None
    drain_s: float | None
    never: bool


def flow_of(partitions: Sequence[PartitionLag]) -> Flow:
    lags = sorted((lag.seconds for lag in (each.time_lag for each in partitions) if lag is not None), reverse=True)
    trends = [each.trend for each in partitions]
    reads = [trend.read for trend in trends if trend.read is not None]
    writes = [trend.written for trend in trends if trend.written is not None]
    drains = [trend.drain_s for trend in trends if trend.drain_s is not None]
    never = any(trend.drain is Drain.NEVER for trend in trends)
    return Flow(
        lags[0] if lags else None,
        lags[1] if len(lags) > 1 else None,
        sum(reads) if reads else None,
        sum(writes) if writes else None,
        None if never else max(drains, default=None),
        never,
    )


def topics_of(partitions: Sequence[PartitionLag]) -> dict[str, list[int | str | None]]:
    """topic → how many of its partitions, their lag or None, their worst state."""
    found: dict[str, tuple[int, int | None, int]] = {}
    for each in partitions:
        number, lag, rank = found.get(each.topic, (0, None, len(WORST_FIRST) - 1))
        own = each.lag
        if own is not None:
            lag = (lag or 0) + own
        found[each.topic] = (number + 1, lag, min(rank, RANKS[each.state]))
    return {topic: [number, lag, WORST_FIRST[rank].value] for topic, (number, lag, rank) in found.items()}
