"""The last samples of all partitions of a group, as columns of numbers, and how they are packed.

A cluster may have 200,000 pairs of group and partition with ten samples each, so a sample is an array over the
partitions: a new one takes the place of the oldest without touching any number of the others.
"""

from __future__ import annotations

import json
import operator
import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from kafkadash.domain.lag import WINDOW

NOT_KNOWN = -1
"""In the arrays: no commit, or an end or a start that nobody told."""

_SINGLE = 3  # columns that a window has once
Key = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True)
class Window:
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

    def same(self, other: Window) -> bool:
        """Whether both hold the same numbers, and so whether there is nothing new to store."""
        if not self.keys and not other.keys:
            return True
        return self.keys == other.keys and _columns(self) == _columns(other)


@dataclass(frozen=True, slots=True)
class Look:
    """One look at all partitions of a group; the columns have a number for each of ``keys``."""

    keys: tuple[Key, ...]
    starts: array[int]
    committed: array[int]
    ends: array[int]


def appended(window: Window | None, look: Look, at: float) -> Window:
    """With the look of this time as its newest sample; of partitions that are new, older samples are not known."""
    now = int(at)
    if window is None or not window.samples:
        fresh = array("q", [now]) * len(look.keys)
        never = array("q", [NOT_KNOWN]) * len(look.keys)
        return Window(look.keys, look.starts, never, fresh, (look.committed,), (look.ends,))
    committed, ends, moved, since = window.committed, window.ends, window.moved, window.since
    if look.keys != window.keys:
        place = {key: index for index, key in enumerate(window.keys)}
        order = [place.get(key, NOT_KNOWN) for key in look.keys]
        committed, ends = (tuple(_arranged(column, order) for column in columns) for columns in (committed, ends))
        moved = _arranged(moved, order)
        since = array("q", [now if index < 0 else window.since[index] for index in order])
    if look.committed != committed[-1]:
        pairs = zip(committed[-1], look.committed, moved, strict=True)
        moved = array("q", [then if before == after else now for before, after, then in pairs])
        if look.keys != window.keys:  # that a new partition has a commit is no movement that anybody saw
            moved = array("q", [when if began < now else NOT_KNOWN for when, began in zip(moved, since, strict=True)])
    committed, ends = committed[1 - WINDOW :], ends[1 - WINDOW :]
    return Window(look.keys, look.starts, moved, since, (*committed, look.committed), (*ends, look.ends))


def without_newest(window: Window) -> Window:
    """As it was before its last look, for the samples of partitions that the last look knew."""
    return replace(window, committed=window.committed[:-1], ends=window.ends[:-1])


def pack(window: Window) -> bytes:
    """zlib of a line of JSON, {"format": 1, "samples": n, "differences": bool, "topics": [[topic, [partitions]]]}, and
    of the columns as little-endian 64-bit integers: starts, moved, since, then commits, then ends, each newest first.

    With differences, a column after the first of its kind holds what the newer one is ahead of it: small numbers, which
    take a third of the room.
    """
    columns, differ = _differences(window)
    topics = [[topic, [number for _, number in keys]] for topic, keys in groupby(window.keys, key=lambda key: key[0])]
    head = {"format": 1, "samples": window.samples, "differences": differ, "topics": topics}
    packed = zlib.compressobj(1)
    parts = [packed.compress(json.dumps(head, separators=(",", ":")).encode() + b"\n")]
    parts += [packed.compress(_little_endian(column)) for column in columns]
    return b"".join([*parts, packed.flush()])


def unpack(data: bytes) -> Window:
    """The window that ``pack`` was given. Raises ValueError for a format that this release does not know."""
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
        columns.append(column if sys.byteorder == "little" else _swapped(column))
    if not keys:
        columns = [array("q") for _ in range(_SINGLE + 2 * samples)]
    committed, ends = columns[_SINGLE : _SINGLE + samples], columns[_SINGLE + samples :]
    if head["differences"]:
        committed, ends = _summed(committed), _summed(ends)
    starts, moved, since = columns[:_SINGLE]
    return Window(keys, starts, moved, since, tuple(reversed(committed)), tuple(reversed(ends)))


def look(
    committed: Mapping[str, Mapping[int, int]],
    assigned: Mapping[str, Iterable[int]],
    spans: Mapping[str, Mapping[int, tuple[int, int, float]]],
) -> Look:
    """What was seen of a group: its commits, what its members are assigned, and start and end of the logs."""
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
    return Look(tuple(keys), starts, commits, ends)


def _columns(window: Window) -> list[array[int]]:
    return [window.starts, window.moved, window.since, *window.committed, *window.ends]


def _arranged(column: array[int], order: Sequence[int]) -> array[int]:
    return array("q", [NOT_KNOWN if index < 0 else column[index] for index in order])


def _differences(window: Window) -> tuple[list[array[int]], bool]:
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


def _summed(columns: Sequence[array[int]]) -> list[array[int]]:
    found = list(columns[:1])
    for column in columns[1:]:
        found.append(array("q", map(operator.sub, found[-1], column)))
    return found


def _little_endian(column: array[int]) -> bytes:
    return (column if sys.byteorder == "little" else _swapped(column)).tobytes()


def _swapped(column: array[int]) -> array[int]:
    other = array("q", column)
    other.byteswap()
    return other
