"""Bytes that clients wrote: nothing of them raises anything but UnreadableBytes, nor takes long."""

from __future__ import annotations

import contextlib
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.kafka.group_reads import (
    MAX_ASSIGNED_PARTITIONS,
    MAX_ASSIGNED_TOPICS,
    AssignmentReading,
    UnreadableBytes,
    clean_text,
    decode_assignment,
)
from tests.effort import slowness_now

MOST_SECONDS = 0.05


def written(topics: dict[str, list[int]], version: int = 0, more: bytes = b"") -> bytes:
    parts = [struct.pack(">hi", version, len(topics))]
    for name, partitions in topics.items():
        encoded = name.encode()
        parts.append(
            struct.pack(f">h{len(encoded)}si{len(partitions)}i", len(encoded), encoded, len(partitions), *partitions)
        )
    return b"".join(parts) + more


topic_names = st.text("abcXYZ019._-", min_size=1, max_size=20).filter(lambda name: name not in {".", ".."})
assignments = st.dictionaries(topic_names, st.lists(st.integers(0, 2**31 - 1), max_size=5), max_size=5)


@given(assignments, st.integers(0, 3), st.binary(max_size=8))
def test_assignment__as_clients_write_it__is_read(topics: dict[str, list[int]], version: int, more: bytes) -> None:
    assert decode_assignment(written(topics, version, more)) == {name: tuple(of) for name, of in topics.items()}


@given(st.one_of(st.binary(max_size=400), st.binary(max_size=60).map(lambda tail: b"\x00\x00" + tail)))
def test_assignment__any_bytes__is_read_or_refused_soon(content: bytes) -> None:
    began = time.thread_time()
    try:
        found = decode_assignment(content)
    except UnreadableBytes:
        found = {}
    assert time.thread_time() - began < MOST_SECONDS
    assert all(min(of, default=0) >= 0 for of in found.values())


@given(assignments.map(written), st.data())
def test_assignment__one_byte_changed__is_read_or_refused(content: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(content) - 1))
    changed = content[:place] + bytes([data.draw(st.integers(0, 255))]) + content[place + 1 :]
    with contextlib.suppress(UnreadableBytes):
        decode_assignment(changed)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(
            struct.pack(">hih", 0, 2**31 - 1, 1) + b"a" + struct.pack(">ih", 0, -6), id="a cursor that moves back"
        ),
        pytest.param(struct.pack(">hi", 0, -1), id="fewer topics than none"),
        pytest.param(struct.pack(">hih", 0, 1, -1) + b"a" * 8, id="a name of negative length"),
        pytest.param(struct.pack(">hih", 0, 1, 1) + b"a" + struct.pack(">i", -1), id="fewer partitions than none"),
        pytest.param(struct.pack(">hih", 0, 1, 1) + b"a" + struct.pack(">i", 2**31 - 1), id="more than is there"),
        pytest.param(written({"a": [-1]}), id="a partition below 0"),
        pytest.param(written({"a\x00b": [0]}), id="NUL in a name"),
        pytest.param(written({"a/b": [0]}), id="a name that no address takes"),
        pytest.param(written({"..": [0]}), id="a name of a folder"),
        pytest.param(written({"a" * 250: [0]}), id="a long name"),
        pytest.param(written({"a\n": [0]}), id="a line's end in a name"),
        pytest.param(written({"a": [0]})[:-1], id="cut off"),
        pytest.param(b"\x00", id="one byte"),
        pytest.param(struct.pack(">hi", 0, 2) + 2 * written({"a": [0]})[6:], id="a topic twice"),
    ],
)
def test_assignment__hostile__is_refused(content: bytes) -> None:
    with pytest.raises(UnreadableBytes):
        decode_assignment(content)


def test_assignment__as_large_as_is_allowed__is_read_soon() -> None:
    wide = written({f"topic-{number}": [0] for number in range(MAX_ASSIGNED_TOPICS)})
    deep = written({"topic": list(range(MAX_ASSIGNED_PARTITIONS))})

    for content in (wide, deep):
        began = time.thread_time()
        decode_assignment(content)
        assert time.thread_time() - began < MOST_SECONDS * slowness_now()

    with pytest.raises(UnreadableBytes):
        decode_assignment(written({f"topic-{number}": [0] for number in range(MAX_ASSIGNED_TOPICS + 1)}))
    with pytest.raises(UnreadableBytes):
        decode_assignment(written({"topic": list(range(MAX_ASSIGNED_PARTITIONS + 1))}))


def test_group__of_500_members_with_a_megabyte_each__is_read_as_far_as_is_allowed() -> None:
    megabyte = written({"topic": []}, more=bytes(2**20 - 100))

    found = AssignmentReading().decode_group([megabyte] * 500)

    assert found == [{"topic": ()}] * 4 + [None] * 496


@given(st.text(max_size=600))
def test_text__of_a_client__can_be_stored(text: str) -> None:
    cleaned = clean_text(text)

    assert len(cleaned) <= 255
    assert not any(character < " " or 0x7F <= ord(character) <= 0x9F for character in cleaned)
    assert cleaned.encode().decode() == cleaned
