"""Window of the last samples of all partitions of a group, as packed columns, and the lag judged from a stored window.

A cluster may have 200,000 pairs of group and partition with ten samples each, so a sample is an array over the
partitions: a new sample replaces the oldest without touching the others. The collector, pages and findings all judge
stored samples through this module.
"""

from __future__ import annotations

import json
import operator
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from kafkadash.monitoring.groups.rules import (
    WINDOW,
    GroupLag,
    LagDrain,
    LagState,
    OffsetSample,
    PartitionLag,
    group_lag,
    partition_lag,
)
from kafkadash.monitoring.models import GroupState

NOT_KNOWN = -1
"""In the arrays: no commit, or an end or a start that nobody told."""

_SINGLE = 3  # columns that a window has once
Key = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True)
class GroupSamples:
    """``committed`` and ``ends``: a sample each, oldest first, with a number for each of ``keys``; ``starts`` is the
    newest log start of each. All are offsets, or ``NOT_KNOWN``.

    ``moved``: when the commit was last seen to move, or ``NOT_KNOWN``; ``since``: when the partition was first looked
    at. Both in whole seconds since the epoch.
    """

    keys: tuple[Key, ...]
    starts: array[int]
    moved: array[int]
    since: array[int]
    committed: tuple[array[int], ...]
    ends: tuple[array[int], ...]

    @property
    def samples(self) -> int:
        return len(self.committed)

    def by_partition(self) -> Iterable[tuple[Key, int, int, int, Sequence[int], Sequence[int]]]:
        """Key, log start, when it moved, since when it is known, commits and ends (both oldest first) of each."""
        return zip(
            self.keys,
            self.starts,
            self.moved,
            self.since,
            zip(*self.committed, strict=True),
            zip(*self.ends, strict=True),
            strict=True,
        )

    def same(self, other: GroupSamples) -> bool:
        """Return whether both hold the same numbers, so that there is nothing new to store."""
        if not self.keys and not other.keys:
            return True
        return self.keys == other.keys and _columns(self) == _columns(other)


@dataclass(frozen=True, slots=True)
class GroupSample:
    """Sample of all partitions of a group. Each column has one number per element of ``keys``."""

    keys: tuple[Key, ...]
    starts: array[int]
    committed: array[int]
    ends: array[int]


def append_sample(window: GroupSamples | None, sample: GroupSample, at: float) -> GroupSamples:
    """With the look of this time as its newest sample; of partitions that are new, older samples are not known."""
    now = int(at)
    if window is None or not window.samples:
        fresh = array("q", [now]) * len(sample.keys)
        never = array("q", [NOT_KNOWN]) * len(sample.keys)
        return GroupSamples(sample.keys, sample.starts, never, fresh, (sample.committed,), (sample.ends,))
    committed, ends, moved, since = window.committed, window.ends, window.moved, window.since
    if sample.keys != window.keys:
        place = {key: index for index, key in enumerate(window.keys)}
        order = [place.get(key, NOT_KNOWN) for key in sample.keys]
        committed, ends = (tuple(_reorder_column(column, order) for column in columns) for columns in (committed, ends))
        moved = _reorder_column(moved, order)
        since = array("q", [now if index < 0 else window.since[index] for index in order])
    if sample.committed != committed[-1]:
        pairs = zip(committed[-1], sample.committed, moved, strict=True)
        moved = array("q", [then if before == after else now for before, after, then in pairs])
        if sample.keys != window.keys:  # that a new partition has a commit is no movement that anybody saw
            moved = array("q", [when if began < now else NOT_KNOWN for when, began in zip(moved, since, strict=True)])
    committed, ends = committed[1 - WINDOW :], ends[1 - WINDOW :]
    return GroupSamples(sample.keys, sample.starts, moved, since, (*committed, sample.committed), (*ends, sample.ends))


def without_newest(window: GroupSamples) -> GroupSamples:
    """Return the window without its newest sample; it keeps the partitions that the newest sample has."""
    return replace(window, committed=window.committed[:-1], ends=window.ends[:-1])


def pack_window(window: GroupSamples) -> bytes:
    """zlib of a line of JSON, {"format": 1, "samples": n, "differences": bool, "topics": [[topic, [partitions]]]}, and
    of the columns as little-endian 64-bit integers: starts, moved, since, then commits, then ends, each newest first.

    With differences, a column after the first of its kind holds what the newer one is ahead of it: small numbers, which
    take a third of the room.
    """
    columns, differ = _encode_differences(window)
    topics = [[topic, [number for _, number in keys]] for topic, keys in groupby(window.keys, key=lambda key: key[0])]
    head = {"format": 1, "samples": window.samples, "differences": differ, "topics": topics}
    packed = zlib.compressobj(1)
    parts = [packed.compress(json.dumps(head, separators=(",", ":")).encode() + b"\n")]
    parts += [packed.compress(_little_endian(column)) for column in columns]
    return b"".join([*parts, packed.flush()])


def unpack_window(data: bytes) -> GroupSamples:
    """The window that ``pack_window`` was given. Raises ValueError for a format that this release does not know."""
    raw = zlib.decompress(data)
    line = raw.index(b"\n")
    head = json.loads(raw[:line])
    if head["format"] != 1:
        raise ValueError(f"windows of format {head['format']} are not known here")
    keys = tuple((topic, number) for topic, numbers in head["topics"] for number in numbers)
    size, samples = 8 * len(keys), head["samples"]
    columns = []
    for begin in range(line + 1, line + 1 + size * (_SINGLE + 2 * samples), size or 1):
        column = array("q")
        column.frombytes(raw[begin : begin + size])
        columns.append(column if sys.byteorder == "little" else _swap_bytes(column))
    if not keys:
        columns = [array("q") for _ in range(_SINGLE + 2 * samples)]
    committed, ends = columns[_SINGLE : _SINGLE + samples], columns[_SINGLE + samples :]
    if head["differences"]:
        committed, ends = _decode_differences(committed), _decode_differences(ends)
    starts, moved, since = columns[:_SINGLE]
    return GroupSamples(keys, starts, moved, since, tuple(reversed(committed)), tuple(reversed(ends)))


def build_sample(
    committed: Mapping[str, Mapping[int, int]],
    assigned: Mapping[str, Iterable[int]],
    spans: Mapping[str, Mapping[int, tuple[int, int, float]]],
) -> GroupSample:
    """Build a group's sample from its commits, its members' assigned partitions, and log start and end offsets."""
    keys: list[Key] = []
    for topic in sorted(committed.keys() | assigned.keys()):
        numbers = {*committed.get(topic, ()), *assigned.get(topic, ())}
        keys += [(topic, number) for number in sorted(numbers)]
    starts, commits, ends = array("q"), array("q"), array("q")
    for topic, topic_keys in groupby(keys, key=lambda key: key[0]):
        known, own = committed.get(topic, {}), spans.get(topic, {})
        for _, number in topic_keys:
            span = own.get(number)
            commits.append(known.get(number, NOT_KNOWN))
            starts.append(NOT_KNOWN if span is None else span[0])
            ends.append(NOT_KNOWN if span is None else span[1])
    return GroupSample(tuple(keys), starts, commits, ends)


def _columns(window: GroupSamples) -> list[array[int]]:
    return [window.starts, window.moved, window.since, *window.committed, *window.ends]


def _reorder_column(column: array[int], order: Sequence[int]) -> array[int]:
    return array("q", [NOT_KNOWN if index < 0 else column[index] for index in order])


def _encode_differences(window: GroupSamples) -> tuple[list[array[int]], bool]:
    single = (window.starts, window.moved, window.since)
    try:
        return [*single, *_each_to_newer(window.committed), *_each_to_newer(window.ends)], True
    except OverflowError:  # somebody committed the greatest number there is
        return [*single, *reversed(window.committed), *reversed(window.ends)], False


def _each_to_newer(columns: Sequence[array[int]]) -> list[array[int]]:
    """Newest first."""
    found = [columns[-1]] if columns else []
    for newer, older in zip(reversed(columns), reversed(columns[:-1]), strict=False):
        found.append(array("q", map(operator.sub, newer, older)))
    return found


def _decode_differences(columns: Sequence[array[int]]) -> list[array[int]]:
    found = list(columns[:1])
    for column in columns[1:]:
        found.append(array("q", map(operator.sub, found[-1], column)))
    return found


def _little_endian(column: array[int]) -> bytes:
    return (column if sys.byteorder == "little" else _swap_bytes(column)).tobytes()


def _swap_bytes(column: array[int]) -> array[int]:
    other = array("q", column)
    other.byteswap()
    return other


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
class SampledMember:
    """A member of a group as it was described; ``instance_id`` is None for a dynamic one (KIP-345)."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assigned: Mapping[str, Sequence[int]]

    @property
    def name(self) -> str:
        return self.instance_id or self.client_id or self.member_id

    @property
    def topics(self) -> list[str]:
        return sorted(self.assigned)


def members_of(row: GroupState) -> list[SampledMember]:
    return [SampledMember(*fields) for fields in json.loads(zlib.decompress(bytes(row.window.members)))]


def read_group(row: GroupState, members: Sequence[SampledMember]) -> tuple[list[PartitionLag], GroupLag]:
    """A stored group judged as it was at its newest look; ``row`` with its ``window``."""
    window = unpack_window(bytes(row.window.data))
    has_members = None if row.members is None else row.members > 0
    owners = None if row.members is None else _owners(members)
    partitions = list(
        partition_lags(window, row.times, has_members=has_members, allowed=row.allowed_lag, owners=owners)
    )
    return partitions, group_lag(partitions, members=row.members, allowed=row.allowed_lag)


def partition_lags(
    window: GroupSamples,
    times: Sequence[float],
    *,
    has_members: bool | None,
    allowed: int,
    owners: Mapping[Key, str] | None = None,
) -> Iterator[PartitionLag]:
    """Every partition of the window, in its order. ``times`` of the samples oldest first; ``owners`` None: unknown."""
    for key, start, moved, since, commits, ends in window.by_partition():
        looks = [
            OffsetSample(at, None if commit == NOT_KNOWN else commit, None if end == NOT_KNOWN else end)
            for at, commit, end in zip(times, commits, ends, strict=True)
            if commit != NOT_KNOWN or end != NOT_KNOWN
        ]
        if commits[-1] == ends[-1] == NOT_KNOWN:  # the newest look brought nothing, and the older ones cannot speak
            looks.append(OffsetSample(times[-1], None, None))
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


def _owners(members: Sequence[SampledMember]) -> dict[Key, str]:
    return {
        (topic, number): member.name
        for member in members
        for topic, numbers in member.assigned.items()
        for number in numbers
    }


@dataclass(frozen=True, slots=True)
class LagFlow:
    """How a group moves: the longest time lag and that of the others in seconds, rates in records per second.

    ``drain_s``: of the partition that takes longest, None where none drains or one never does (``never``).
    """

    time_lag_s: float | None
    rest_time_lag_s: float | None
    read: float | None
    written: float | None
    drain_s: float | None
    never: bool


def flow_of(partitions: Sequence[PartitionLag]) -> LagFlow:
    lags = sorted((lag.seconds for lag in (each.time_lag for each in partitions) if lag is not None), reverse=True)
    trends = [each.trend for each in partitions]
    reads = [trend.read for trend in trends if trend.read is not None]
    writes = [trend.written for trend in trends if trend.written is not None]
    drains = [trend.drain_s for trend in trends if trend.drain_s is not None]
    never = any(trend.drain is LagDrain.NEVER for trend in trends)
    return LagFlow(
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
