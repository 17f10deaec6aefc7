"""Kafka's JSON of a reassignment, however it is laid out, written and read again, and a large one."""

from __future__ import annotations

import json
import time

from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.kafka_json import JsonRow, plan_json, read_reassignment, write_reassignment
from kafkadash.domain.plan import Row, way_back

BLANKS = st.text(" \t\n", max_size=4)
ROWS = st.lists(
    st.tuples(
        st.text("abc._-", min_size=3, max_size=5),
        st.integers(0, 2**31 - 1),
        st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4, unique=True),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda row: row[:2],
)


@given(ROWS, st.data(), st.sampled_from([None, 1, 4]), st.sampled_from(["\n", "\r\n"]))
def test_read__however_it_is_laid_out__lines_are_those_on_which_entries_begin(
    rows: list[tuple[str, int, list[int]]], data: st.DataObject, indent: int | None, newline: str
) -> None:
    text, lines = '{"version":1,"partitions":[', []
    for number, (topic, partition, replicas) in enumerate(rows):
        text += (", " if number else "") + data.draw(BLANKS).replace("\n", newline)
        lines.append(text.count("\n") + 1)
        body = json.dumps({"partition": partition, "topic": topic, "replicas": replicas}, indent=indent)
        text += body.replace("\n", newline) + data.draw(BLANKS).replace("\n", newline)
    parsed = read_reassignment((text + "]}").encode())
    assert not parsed.problems
    assert parsed.rows == [
        JsonRow(topic, partition, tuple(replicas), (), line)
        for (topic, partition, replicas), line in zip(rows, lines, strict=True)
    ]


@given(ROWS)
def test_write__read_again__is_the_same(rows: list[tuple[str, int, list[int]]]) -> None:
    parsed = read_reassignment(write_reassignment((*row, ["any"] * len(row[2])) for row in rows))
    assert [(row.topic, row.partition, list(row.replicas)) for row in parsed.rows] == rows
    assert all(row.log_dirs == ("any",) * len(row.replicas) for row in parsed.rows)
    assert not parsed.problems
    assert not parsed.notices


def test_write__a_plan_and_its_rollback() -> None:
    plan = (Row("a", "id", 0, (1, 2), (3, 2), ("/d", "any")),)
    assert json.loads(plan_json(plan)) == {
        "version": 1,
        "partitions": [{"topic": "a", "partition": 0, "replicas": [3, 2], "log_dirs": ["/d", "any"]}],
    }
    assert json.loads(plan_json(way_back(plan)))["partitions"] == [{"topic": "a", "partition": 0, "replicas": [1, 2]}]


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_read__whatever_it_is__is_answered_and_never_raises(content: str | bytes) -> None:
    assert read_reassignment(content).problems


def test_read__fifty_thousand_rows__takes_little_time_and_tells_how_far_it_is() -> None:
    told: list[float] = []
    content = json.dumps(
        {
            "version": 1,
            "partitions": [
                {"topic": f"topic-{n % 500}", "partition": n // 500, "replicas": [n % 7, 7, 8]} for n in range(50_000)
            ],
        },
        indent=1,
    )
    began = time.process_time()
    parsed = read_reassignment(content, told.append)
    assert time.process_time() - began < 3
    assert len(parsed.rows) == 50_000
    assert parsed.rows[-1].line == content.count("\n") - 9
    assert told == sorted(told)
    assert len(told) > 3
    assert told[-1] == 1.0
