"""Bytes and names that clients of Kafka wrote, and that its brokers hand on without having looked into them.

A broker does not decode the assignment of a classic member, and takes any text as a client id or a group instance id.
Everything of that kind is hostile until it has passed through here: counts and lengths are checked against the bytes
that are left, work is bounded, and names follow Kafka's own rules.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

MAX_ASSIGNED_TOPICS, MAX_ASSIGNED_PARTITIONS = 10_000, 50_000
# org.apache.kafka.common.internals.Topic: MAX_NAME_LENGTH, LEGAL_CHARS, and the two names that are folders.
LEGAL_TOPIC_NAME = re.compile(rb"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}\Z")
MAX_BYTES, MAX_BYTES_OF_GROUP = 64 * 2**20, 4 * 2**20
MAX_TEXT = 255
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SMALLEST_TOPIC = 2 + 1 + 4  # a name of one letter, no partitions


class UnreadableBytes(ValueError):
    """These bytes are not what the protocol says, or are more than anybody writes in earnest."""


class ByteReader:
    """Reads big-endian values one after the other. Everything raises UnreadableBytes at the end of the bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes that were not read yet."""
        return len(self._content) - self._at

    def read_int16(self) -> int:
        return int.from_bytes(self.read_bytes(2), "big", signed=True)

    def read_int32(self) -> int:
        return int.from_bytes(self.read_bytes(4), "big", signed=True)

    def read_bytes(self, length: int) -> bytes:
        if not 0 <= length <= self.left:
            raise UnreadableBytes(f"{length} bytes are announced, {self.left} are left")
        start = self._at
        self._at += length
        return self._content[start : self._at]

    def read_int32s(self, number: int) -> tuple[int, ...]:
        return struct.unpack(f">{number}i", self.read_bytes(4 * number))


def decode_assignment(content: bytes) -> dict[str, tuple[int, ...]]:
    """Topic → partitions of a classic member (ConsumerProtocolAssignment.json; later versions only add at the end).

    Empty for no bytes, which is what members have while their group rebalances. Raises UnreadableBytes for anything
    else that is no assignment, and for more than 10,000 topics or 50,000 partitions.
    """
    if not content:
        return {}
    reader = ByteReader(bytes(content))
    reader.read_int16()  # the version
    topics = reader.read_int32()
    if not 0 <= topics <= min(MAX_ASSIGNED_TOPICS, reader.left // _SMALLEST_TOPIC):
        raise UnreadableBytes(f"{topics} topics are announced in {reader.left} bytes")
    found: dict[str, tuple[int, ...]] = {}
    partitions = 0
    for _ in range(topics):
        name = reader.read_bytes(reader.read_int16())
        if LEGAL_TOPIC_NAME.match(name) is None:
            raise UnreadableBytes("a topic has a name that Kafka does not allow")
        number = reader.read_int32()
        partitions += max(0, number)
        if partitions > MAX_ASSIGNED_PARTITIONS:
            raise UnreadableBytes(f"more than {MAX_ASSIGNED_PARTITIONS:,} partitions are assigned")
        assigned = reader.read_int32s(number)
        if assigned and min(assigned) < 0:
            raise UnreadableBytes("a partition has a negative number")
        topic = name.decode("ascii")
        if topic in found:
            raise UnreadableBytes("a topic is assigned twice")
        found[topic] = assigned
    return found


class AssignmentReading:
    """Decodes the assignments of one call, 64 MiB of them at most, 4 MiB for each group."""

    def __init__(self) -> None:
        self._left = MAX_BYTES

    def decode_group(self, assignments: Sequence[bytes]) -> list[dict[str, tuple[int, ...]] | None]:
        """Assignments of the members, in their order; None for one that cannot be read."""
        left = min(self._left, MAX_BYTES_OF_GROUP)
        found: list[dict[str, tuple[int, ...]] | None] = []
        for assignment in assignments:
            if len(assignment) > left:
                found.append(None)
                continue
            left -= len(assignment)
            self._left -= len(assignment)
            try:
                found.append(decode_assignment(assignment))
            except UnreadableBytes:
                found.append(None)
        return found


def clean_text(text: str) -> str:
    """A client's own words, fit to be stored and shown: 255 characters at most, the replacement character for controls.

    PostgreSQL stores neither NUL nor half a surrogate pair.
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text[:MAX_TEXT])
