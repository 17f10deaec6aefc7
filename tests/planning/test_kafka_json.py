"""Kafka's JSON of a reassignment: what is read, and the code and the line of everything that is wrong.

Kafka's JSON of a reassignment, however it is laid out, written and read again, and a large one.

The interchange format of a topology.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.changes.plan import PartitionMove, way_back
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.problems import InputProblem
from kafkadash.planning.kafka_json import JsonRow, ParsedFile, plan_json, read_reassignment, write_reassignment
from kafkadash.planning.problem_codes import FileErrorCode as Code
from kafkadash.planning.problem_codes import FilePart, JsonFault
from kafkadash.planning.topology import (
    BadTopology,
    ClusterTopology,
    LogDirectory,
    PlannedBroker,
    PlannedPartition,
    PlannedTopic,
    read_topology,
    write_topology,
)

pytestmark = pytest.mark.domain

ANY_ENTRY = coded(FilePart.ANY_ENTRY)


def entry(body: str) -> ParsedFile:
    """Of a file whose line 3 is this entry."""
    return read_reassignment(f'{{"version": 1,\n "partitions": [\n{body}\n]}}')


def problem(code: Code, line: int | None = 3, column: int | None = None, /, **params: object) -> InputProblem:
    return InputProblem(coded(code, **params), line, column)


def not_json(fault: JsonFault, line: int, column: int, **params: object) -> InputProblem:
    return problem(Code.NOT_JSON, line, column, fault=coded(fault, **params))


def other_shape(field: object, found: object, wanted: FilePart) -> InputProblem:
    return problem(Code.FIELD_OF_OTHER_SHAPE, field=field, found=found, wanted=coded(wanted))


def test_read__every_entry_with_its_line__in_the_order_of_the_file() -> None:
    parsed = read_reassignment(
        b'{"version":1,"partitions":[\n'
        b'{"topic":"orders","partition":1,"replicas":[2,3]},\n'
        b'{"topic":"orders","partition":0,"replicas":[1],"log_dirs":["/d0"]}]}'
    )
    assert parsed == ParsedFile([JsonRow("orders", 1, (2, 3), (), 2), JsonRow("orders", 0, (1,), ("/d0",), 3)], [])


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", problem(Code.NOTHING_IN_IT, None)),
        (" \n", problem(Code.NOTHING_IN_IT, None)),
        ("hello", not_json(JsonFault.VALUE_MISSING, 1, 1)),
        ('{"version":1,\n "partitions" [', not_json(JsonFault.COLON_MISSING, 2, 15)),
        ("{'version':1}", not_json(JsonFault.FIELD_NAME_MISSING, 1, 2)),
        ('{"version":1,\n"partitions":[', not_json(JsonFault.ENDS_IN_THE_MIDDLE, 2, 15)),
        (
            '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1 2]}]}',
            not_json(JsonFault.COMMA_MISSING, 1, 69),
        ),
        (
            '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[NaN]}]}',
            not_json(JsonFault.NO_CONSTANT, 1, 28, name="NaN"),
        ),
        (
            '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1]}]}\n}',
            not_json(JsonFault.SOMETHING_FOLLOWS, 2, 1),
        ),
        (b'{"version":1,\n"partitions":[{"topic":"\xe4"}]}', problem(Code.NOT_UTF_8, 2, 25, byte=0xE4)),
        ("{}".encode("utf-16"), problem(Code.UTF_16, 1)),
        ("[]", problem(Code.NO_OBJECT, 1, found=coded(FilePart.LIST))),
        (
            '{"version":1}',
            problem(Code.FIELD_MISSING, 1, where=coded(FilePart.WHOLE_OBJECT), field='"partitions"'),
        ),
        ('{"version":1,"topics":[{"topic":"a"}]}', problem(Code.TOPICS_TO_MOVE, 1)),
        (
            "Current partition replica assignment\n{}\n",
            problem(Code.GENERATED, 1, heading="Proposed partition reassignment configuration"),
        ),
        ('{"version":1,\n"partitions":[]}', problem(Code.NOTHING_ASKED_FOR, 2, field='"partitions"')),
        (
            '{"version":1,\n\n"partitions":{}}',
            other_shape('"partitions"', coded(FilePart.OBJECT), FilePart.LIST_OF_OBJECTS),
        ),
        (
            '{"version":2,\n"partitions":[{"topic":"a","partition":0,"replicas":[1]}]}',
            problem(Code.OTHER_VERSION, 1, field='"version"', found="2"),
        ),
        (
            '{"version":true,\n"partitions":[{"topic":"a","partition":0,"replicas":[1]}]}',
            problem(Code.OTHER_VERSION, 1, field='"version"', found="true"),
        ),
        ('{"partitions":' + "[" * 200_000, not_json(JsonFault.NESTED_TOO_DEEPLY, 1, 16)),
    ],
)
def test_read__a_file_that_is_no_reassignment__tells_where_and_why(content: bytes | str, found: InputProblem) -> None:
    assert read_reassignment(content).problems == [found]


def missing(field: str) -> InputProblem:
    return problem(Code.FIELD_MISSING, where=ANY_ENTRY, field=f'"{field}"')


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("7", [other_shape(coded(FilePart.ENTRY_OF_PARTITIONS), coded(FilePart.NUMBER), FilePart.OBJECT)]),
        ("{}", [missing("topic"), missing("partition"), missing("replicas")]),
        ('{"topic":"a","partition":0,"replicas":[]}', [problem(Code.NO_REPLICAS, row="a-0")]),
        (
            '{"topic":"a","partition":0,"replicas":[1,2,1]}',
            [problem(Code.REPLICA_TWICE, row="a-0", broker=1, times=2)],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[3,3,3]}',
            [problem(Code.REPLICA_TWICE, row="a-0", broker=3, times=3)],
        ),
        (
            '{"topic":"a","partition":-1,"replicas":[1]}',
            [other_shape('"partition"', "-1", FilePart.WHOLE_NUMBER)],
        ),
        (
            '{"topic":"a","partition":true,"replicas":[1]}',
            [other_shape('"partition"', "true", FilePart.WHOLE_NUMBER)],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[-2]}',
            [problem(Code.NO_ID_OF_A_BROKER, row="a-0", found="-2", wrong=1)],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[1.0, "2", true]}',
            [problem(Code.NO_ID_OF_A_BROKER, row="a-0", found="1.0", wrong=3)],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[99999999999]}',
            [problem(Code.NO_ID_OF_A_BROKER, row="a-0", found="99999999999", wrong=1)],
        ),
        (
            '{"topic":"a","partition":0,"replicas":1}',
            [
                other_shape(
                    coded(FilePart.ROW_FIELD, row="a-0", field="replicas"),
                    coded(FilePart.NUMBER),
                    FilePart.LIST_OF_BROKERS,
                )
            ],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any"]}',
            [problem(Code.DIRECTORIES_NOT_AS_MANY, row="a-0", replicas=2, directories=1)],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[1],"log_dirs":["d0"]}',
            [problem(Code.DIRECTORY_NOT_ABSOLUTE, row="a-0")],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[1],"log_dirs":"any"}',
            [problem(Code.DIRECTORIES_NO_LIST, row="a-0", field='"log_dirs"')],
        ),
        ('{"topic":7,"partition":0,"replicas":[1]}', [other_shape('"topic"', "7", FilePart.QUOTED_NAME)]),
        (
            '{"topic":"<b>x</b>","partition":0,"replicas":[1]}',
            [problem(Code.NO_NAME_OF_A_TOPIC, field='"topic"', found='"<b>x</b>"')],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[1],"replicas":[2]}',
            [problem(Code.FIELD_TWICE, field='"replicas"')],
        ),
        # What no database takes is escaped
        (
            r'{"topic":"\ud800","partition":0,"replicas":[]}',
            [
                problem(Code.NO_NAME_OF_A_TOPIC, field='"topic"', found=r'"\ud800"'),
                problem(Code.NO_REPLICAS, row=ANY_ENTRY),
            ],
        ),
        (
            r'{"topic":"a\u0000","partition":0,"replicas":[1,1]}',
            [
                problem(Code.NO_NAME_OF_A_TOPIC, field='"topic"', found=r'"a\u0000"'),
                problem(Code.REPLICA_TWICE, row=ANY_ENTRY, broker=1, times=2),
            ],
        ),
        (
            r'{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["/\ud800","/\u0000"]}',
            [problem(Code.DIRECTORY_IMPOSSIBLE, row="t-0", path=path) for path in (r'"/\ud800"', r'"/\u0000"')],
        ),
        (
            f'{{"topic":"t","partition":0,"replicas":[1],"log_dirs":["/{"x" * 4096}"]}}',
            [problem(Code.DIRECTORY_IMPOSSIBLE, row="t-0", path=f'"/{"x" * 55}…')],
        ),
        (
            f'{{"topic":"t","partition":{"9" * 5000},"replicas":[1]}}',
            [not_json(JsonFault.TOO_MANY_DIGITS, 3, 1)],
        ),
    ],
)
def test_read__an_entry_that_is_wrong__is_no_row_and_tells_its_line(body: str, found: list[InputProblem]) -> None:
    parsed = entry(body)
    assert (parsed.problems, parsed.rows) == (found, [])


def test_read__after_ten_thousand_problems__the_rest_is_not_read() -> None:
    parsed = read_reassignment('{"version":1,"partitions":[' + "1,\n" * 50_000 + "1]}")
    assert len(parsed.problems) == 10_001
    assert parsed.problems[0] == problem(Code.TOO_MANY_PROBLEMS, None, most=10_000, line=10_000)


def test_read__unknown_fields_without_end__are_not_all_listed() -> None:
    names = ",".join(f'"x{n}":1' for n in range(5_000))
    parsed = read_reassignment('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}],' + names + "}")
    assert (len(parsed.rows), len(parsed.problems), len(parsed.notices)) == (1, 0, 1_000)


def test_read__a_value_that_is_longer_than_any__is_not_made_objects_of() -> None:
    brackets = "[]," * 1_000_000 + "[]"
    for body, column in (
        (f'{{"version":[{brackets}],"partitions":[]}}', 12),
        (f'{{"version":1,"partitions":[[{brackets}]]}}', 28),
        (f'{{"version":1,"partitions":[{{"topic":"{"t" * 3_000_000}"}}]}}', 28),
    ):
        assert read_reassignment(body).problems == [not_json(JsonFault.TOO_LONG, 1, column, most=1_000_000)]
    assert read_reassignment(f"[{brackets}]").problems == [problem(Code.NO_OBJECT, 1, found=coded(FilePart.LIST))]


def test_read__entries_beyond_the_first_megabyte__have_their_lines_and_their_faults_too() -> None:
    rows = "".join(f'{{"topic":"t","partition":{n},"replicas":[1]}},\n' for n in range(80_000))
    parsed = read_reassignment(
        '{"version":1,"partitions":[\n' + rows + '{"topic":"t","partition":1e0,"replicas":[1,]}]}'
    )
    assert len(parsed.rows) == 80_000
    assert [row.line for row in parsed.rows] == list(range(2, 80_002))
    assert [problem.line for problem in parsed.problems] == [80_002]
    whole = read_reassignment('{"version":1,"partitions":[\n' + rows + '{"topic":"t","partition":9')
    assert whole.problems == [not_json(JsonFault.ENDS_IN_THE_MIDDLE, 80_002, 27)]


def test_read__a_partition_that_stands_there_twice__names_both_lines() -> None:
    one = '{"topic":"a","partition":4,"replicas":[1]}'
    assert entry(f"{one},\n{one}").problems == [problem(Code.STANDS_TWICE, 4, again="a-4", line=3)]


def test_read__several_faults__all_are_listed_and_so_is_the_place_where_it_breaks_off() -> None:
    bad = '{"topic":"a","partition":0,"replicas":[]}'
    assert [p.line for p in entry(f"{bad},\n{bad},\n{{").problems] == [3, 4, 6]


def test_read__what_kafkas_tool_tolerates__is_only_noticed() -> None:
    parsed = read_reassignment(
        '\ufeff{"made_by":"x","partitions":[\n'
        '{"topic":"a","partition":0,"replicas":[1],"note":1},\n'
        '{"topic":"a","partition":1,"replicas":[1],"note":2}]}'
    )
    assert not parsed.problems
    assert parsed.notices == [
        problem(Code.MARK_IGNORED, None),
        problem(Code.VERSION_MISSING, 1),
        problem(Code.FIELD_UNKNOWN, 1, field='"made_by"', times=1),
        problem(Code.FIELD_UNKNOWN, 2, field='"note"', times=2),
    ]


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
    plan = (PartitionMove("a", "id", 0, (1, 2), (3, 2), ("/d", "any")),)
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


WHOLE = coded(FilePart.TOPOLOGY)
BROKER = coded(FilePart.BROKER, broker=1)
TOPIC = coded(FilePart.TOPIC, topic="t")
PARTITION = coded(FilePart.PARTITION, where=TOPIC, partition=0)
IDS = st.integers(0, 2**31 - 1)
BYTES = st.none() | st.integers(0, 2**50)
DIRECTORIES = st.builds(LogDirectory, st.text(min_size=1, max_size=5), BYTES, BYTES, st.booleans())
PARTITIONS = st.builds(
    PlannedPartition,
    IDS,
    st.lists(IDS, min_size=1, max_size=4, unique=True).map(tuple),
    st.lists(IDS, max_size=3).map(tuple),
    st.none() | IDS,
    BYTES,
    st.none() | st.floats(0, 1e12),
    st.booleans(),
)


@st.composite
def topologies(draw: st.DrawFn) -> ClusterTopology:
    brokers = {
        id_: PlannedBroker(
            id_,
            draw(st.none() | st.text(max_size=3)),
            draw(st.booleans()),
            draw(st.booleans()),
            draw(st.lists(DIRECTORIES, max_size=2).map(tuple)),
        )
        for id_ in draw(st.sets(IDS, max_size=3))
    }
    topics = {
        name: PlannedTopic(
            name,
            tuple(
                sorted(
                    draw(st.lists(PARTITIONS, max_size=3, unique_by=lambda p: p.partition)), key=lambda p: p.partition
                )
            ),
            draw(st.text(max_size=4)),
            draw(st.booleans()),
            draw(st.none() | IDS),
        )
        for name in draw(st.sets(st.text(min_size=1, max_size=4), max_size=3))
    }
    return ClusterTopology(brokers, topics, draw(st.text(max_size=4)))


@given(topologies())
def test_written_and_read__is_the_same(topology: ClusterTopology) -> None:
    assert read_topology(write_topology(topology)) == topology


def test_read__the_format_of_the_planner__what_is_missing_is_not_known() -> None:
    topology = read_topology(
        '{"brokers":[{"id":0,"rack":"a","disk_bytes":4000,"alive":true},{"id":1}],'
        '"topics":[{"name":"t","partitions":[{"partition":0,"replicas":[0,1],"isr":[0],"leader":0,"size_bytes":123,'
        '"bytes_in_per_s":1.0},{"partition":1,"replicas":[1]}]}]}'
    )
    assert topology.brokers[0] == PlannedBroker(0, "a", dirs=(LogDirectory("", 4000),))
    assert topology.brokers[0].disk_bytes == 4000
    assert topology.brokers[1] == PlannedBroker(1)
    assert topology.brokers[1].disk_bytes is None
    assert topology.topics["t"].partitions == (
        PlannedPartition(0, (0, 1), (0,), 0, 123, 1.0),
        PlannedPartition(1, (1,), (), None, None, None),
    )


def entry_of(name: str) -> CodedMessage:
    return coded(FilePart.ENTRY_NUMBER, number=1, list=name)


def shape(where: CodedMessage, name: str, wanted: FilePart, **params: object) -> CodedMessage:
    return coded(
        Code.TOPOLOGY_SHAPE, field=coded(FilePart.FIELD_OF, where=where, name=name), wanted=coded(wanted, **params)
    )


def one_partition(**fields: object) -> dict[str, Any]:
    return {"brokers": [], "topics": [{"name": "t", "partitions": [{"partition": 0, "replicas": [1], **fields}]}]}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff{", coded(Code.TOPOLOGY_NOT_UTF_8)),
        ("[]", coded(Code.TOPOLOGY_SHAPE, field=WHOLE, wanted=coded(FilePart.OBJECT))),
        ("{}", coded(Code.FIELD_MISSING, where=WHOLE, field=coded(FilePart.NAMED_LIST, name="brokers"))),
        (
            {"brokers": []},
            coded(Code.FIELD_MISSING, where=WHOLE, field=coded(FilePart.NAMED_LIST, name="topics")),
        ),
        (
            {"brokers": [{"rack": "a"}], "topics": []},
            coded(Code.FIELD_MISSING, where=entry_of("brokers"), field="“id”"),
        ),
        ({"brokers": [{"id": 1}, {"id": 1}], "topics": []}, coded(Code.TOPOLOGY_TWICE, one=BROKER)),
        ({"brokers": [{"id": 1, "rack": 7}], "topics": []}, shape(BROKER, "rack", FilePart.TEXT_OR_NULL)),
        (
            {"brokers": [{"id": 1, "disk_bytes": -1}], "topics": []},
            shape(BROKER, "disk_bytes", FilePart.WHOLE_NUMBER),
        ),
        (
            {"brokers": [{"id": 2**31}], "topics": []},
            shape(entry_of("brokers"), "id", FilePart.AT_MOST, most=2**31 - 1),
        ),
        (
            {"brokers": [], "topics": [{"partitions": []}]},
            coded(Code.FIELD_MISSING, where=entry_of("topics"), field="“name”"),
        ),
        (one_partition(replicas=[1, 1]), shape(PARTITION, "replicas", FilePart.LIST_OF_REPLICAS)),
        (
            {"brokers": [], "topics": [{"name": "t", "partitions": [{"partition": 0, "replicas": [1]}] * 2}]},
            coded(Code.TOPOLOGY_PARTITION_TWICE, where=TOPIC, partition=0),
        ),
        (one_partition(leader=True), shape(PARTITION, "leader", FilePart.WHOLE_NUMBER)),
    ],
)
def test_read__what_is_no_topology__tells_where_and_why(
    content: str | bytes | dict[str, Any], problem: CodedMessage
) -> None:
    with pytest.raises(BadTopology) as raised:
        read_topology(json.dumps(content) if isinstance(content, dict) else content)
    assert raised.value.message == problem


def test_read__what_is_no_json__is_told_in_the_words_of_the_parser() -> None:
    with pytest.raises(BadTopology) as raised:
        read_topology("{")
    assert raised.value.code == Code.TOPOLOGY_NOT_JSON
    assert "line 1 column 2" in raised.value.message.params["error"]


def test_room__of_directories_that_take_replicas__up_to_the_limit() -> None:
    full, half, closed = (
        LogDirectory("/a", 100, 90),
        LogDirectory("/b", 100, 50),
        LogDirectory("/c", 100, 0, cordoned=True),
    )
    assert PlannedBroker(1, dirs=(full, half, closed)).room(0.8) == 30
    assert PlannedBroker(1, dirs=(full, half, LogDirectory("/d", None, 5))).room(0.8) is None
    assert PlannedBroker(1).room(0.8) is None


def test_racks__are_told_only_where_all_registered_brokers_name_one_of_several() -> None:
    assert ClusterTopology(
        {1: PlannedBroker(1, "a"), 2: PlannedBroker(2, "b"), 3: PlannedBroker(3, None, alive=False)}
    ).racks == {1: "a", 2: "b"}
    assert ClusterTopology({1: PlannedBroker(1, "a"), 2: PlannedBroker(2, "b"), 3: PlannedBroker(3)}).racks == {}
    assert ClusterTopology({1: PlannedBroker(1, "a"), 2: PlannedBroker(2, "a")}).racks == {}
