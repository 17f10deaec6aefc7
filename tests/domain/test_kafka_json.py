"""Kafka's JSON of a reassignment: what is read, and the sentence and the line of everything that is wrong."""

from __future__ import annotations

import pytest

from kafkadash.domain.kafka_json import JsonRow, Parsed, read_reassignment


def entry(body: str) -> Parsed:
    """Of a file whose line 3 is this entry."""
    return read_reassignment(f'{{"version": 1,\n "partitions": [\n{body}\n]}}')


def said(parsed: Parsed) -> list[str]:
    return [str(problem) for problem in parsed.problems]


def test_read__every_entry_with_its_line__in_the_order_of_the_file() -> None:
    parsed = read_reassignment(
        b'{"version":1,"partitions":[\n'
        b'{"topic":"orders","partition":1,"replicas":[2,3]},\n'
        b'{"topic":"orders","partition":0,"replicas":[1],"log_dirs":["/d0"]}]}'
    )
    assert parsed == Parsed([JsonRow("orders", 1, (2, 3), (), 2), JsonRow("orders", 0, (1,), ("/d0",), 3)], [])


@pytest.mark.parametrize(
    ("content", "sentences"),
    [
        ("", ["The file is empty. Bring the JSON of the assignment."]),
        (" \n", ["The file is empty. Bring the JSON of the assignment."]),
        ("hello", ["Line 1, column 1: This is not JSON: a value is missing here. Mend it there, then bring it again."]),
        (
            '{"version":1,\n "partitions" [',
            ["Line 2, column 15: This is not JSON: a colon is missing here. Mend it there, then bring it again."],
        ),
        (
            "{'version':1}",
            [
                (
                    "Line 1, column 2: This is not JSON: a field name in double quotes is missing here. "
                    "Mend it there, then bring it again."
                )
            ],
        ),
        (
            '{"version":1,\n"partitions":[',
            ["Line 2, column 15: This is not JSON: it ends in the middle. Mend it there, then bring it again."],
        ),
        (
            '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1 2]}]}',
            [
                (
                    "Line 1, column 69: This is not JSON: a comma or a closing bracket is missing here. "
                    "Mend it there, then bring it again."
                )
            ],
        ),
        (
            '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[NaN]}]}',
            ["Line 1, column 28: This is not JSON: NaN is no number of JSON. Mend it there, then bring it again."],
        ),
        (
            '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1]}]}\n}',
            [
                (
                    "Line 2, column 1: This is not JSON: something follows after the end of the object. "
                    "Mend it there, then bring it again."
                )
            ],
        ),
        (
            b'{"version":1,\n"partitions":[{"topic":"\xe4"}]}',
            ["Line 2, column 25: The file is not UTF-8: byte 0xe4 here is part of no character. Save it as UTF-8."],
        ),
        ("{}".encode("utf-16"), ["Line 1: The file is UTF-16; Kafka reads UTF-8. Save it as UTF-8."]),
        (
            "[]",
            [
                (
                    'Line 1: The file holds a list, not an object with "version" and "partitions". '
                    "Bring Kafka’s JSON of an assignment."
                )
            ],
        ),
        ('{"version":1}', ['Line 1: The object has no "partitions". Add it.']),
        (
            '{"version":1,"topics":[{"topic":"a"}]}',
            [
                (
                    "Line 1: This is a list of topics to move, the input of kafka-reassign-partitions --generate. "
                    'What is read here is its result, with "partitions".'
                )
            ],
        ),
        (
            "Current partition replica assignment\n{}\n",
            [
                (
                    "Line 1: This is all that kafka-reassign-partitions --generate printed. "
                    "Leave only the JSON below “Proposed partition reassignment configuration”."
                )
            ],
        ),
        (
            '{"version":1,\n"partitions":[]}',
            ['Line 2: "partitions" is an empty list: nothing is asked for. Name the partitions that are to move.'],
        ),
        ('{"version":1,"partitions":{}}', ['Line 1: "partitions" is an object; it has to be a list of objects.']),
        (
            '{"version":2,\n"partitions":[{"topic":"a","partition":0,"replicas":[1]}]}',
            ['Line 1: "version" is 2; Kafka knows version 1 only. Write 1, if the file is of that format.'],
        ),
        (
            '{"version":true,\n"partitions":[{"topic":"a","partition":0,"replicas":[1]}]}',
            ['Line 1: "version" is true; Kafka knows version 1 only. Write 1, if the file is of that format.'],
        ),
        (
            '{"partitions":' + "[" * 200_000,
            [
                (
                    "Line 1, column 16: This is not JSON: lists or objects are nested too deeply here. "
                    "Mend it there, then bring it again."
                )
            ],
        ),
    ],
)
def test_read__a_file_that_is_no_reassignment__says_where_and_why(content: bytes | str, sentences: list[str]) -> None:
    assert said(read_reassignment(content)) == sentences


@pytest.mark.parametrize(
    ("body", "sentences"),
    [
        ("7", ['An entry of "partitions" is a number; it has to be an object.']),
        (
            "{}",
            [
                'The entry has no "topic". Add it.',
                'The entry has no "partition". Add it.',
                'The entry has no "replicas". Add it.',
            ],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[]}',
            ["a-0 has an empty list of replicas. Name the brokers that are to have them."],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[1,2,1]}',
            ["a-0 names broker 1 twice in its replicas. Leave it once."],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[3,3,3]}',
            ["a-0 names broker 3 3 times in its replicas. Leave it once."],
        ),
        (
            '{"topic":"a","partition":-1,"replicas":[1]}',
            ['"partition" is -1; it has to be a whole number from 0 on.'],
        ),
        (
            '{"topic":"a","partition":true,"replicas":[1]}',
            ['"partition" is true; it has to be a whole number from 0 on.'],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[-2]}',
            ["a-0: -2 is no broker id; ids are whole numbers from 0 on."],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[1.0, "2", true]}',
            ["a-0: 1.0 is no broker id; ids are whole numbers from 0 on (2 more like it)."],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[99999999999]}',
            ["a-0: 99999999999 is no broker id; ids are whole numbers from 0 on."],
        ),
        (
            '{"topic":"a","partition":0,"replicas":1}',
            ['a-0: "replicas" is a number; it has to be a list of broker ids.'],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any"]}',
            ["a-0 has 2 replicas and 1 log directory; it needs one for each replica."],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[1],"log_dirs":["d0"]}',
            ['a-0: a log directory has to be an absolute path or "any".'],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[1],"log_dirs":"any"}',
            ['a-0: "log_dirs" has to be a list of paths or "any", one for each replica.'],
        ),
        ('{"topic":7,"partition":0,"replicas":[1]}', ['"topic" is 7; it has to be a name in quotes.']),
        (
            '{"topic":"<b>x</b>","partition":0,"replicas":[1]}',
            ['"topic" is "<b>x</b>", which no topic can be called. Give the name of a topic.'],
        ),
        (
            '{"topic":"a","partition":0,"replicas":[1],"replicas":[2]}',
            ['The entry has "replicas" more than once. Leave one of them.'],
        ),
    ],
)
def test_read__an_entry_that_is_wrong__says_what_and_names_its_line(body: str, sentences: list[str]) -> None:
    assert said(entry(body)) == [f"Line 3: {sentence}" for sentence in sentences]


@pytest.mark.parametrize(
    ("body", "sentences"),
    [
        (
            r'{"topic":"\ud800","partition":0,"replicas":[]}',
            [
                r'"topic" is "\ud800", which no topic can be called. Give the name of a topic.',
                "The entry has an empty list of replicas. Name the brokers that are to have them.",
            ],
        ),
        (
            r'{"topic":"a\u0000","partition":0,"replicas":[1,1]}',
            [
                r'"topic" is "a\u0000", which no topic can be called. Give the name of a topic.',
                "The entry names broker 1 twice in its replicas. Leave it once.",
            ],
        ),
        (
            r'{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["/\ud800","/\u0000"]}',
            [
                r't-0: "/\ud800" can be no log directory: too long, or not printable. Name a directory of the broker.',
                r't-0: "/\u0000" can be no log directory: too long, or not printable. Name a directory of the broker.',
            ],
        ),
    ],
)
def test_read__what_no_database_takes__is_told_escaped(body: str, sentences: list[str]) -> None:
    parsed = entry(body)
    assert said(parsed) == [f"Line 3: {sentence}" for sentence in sentences]
    assert not parsed.rows


def test_read__after_ten_thousand_problems__the_rest_is_not_read() -> None:
    parsed = read_reassignment('{"version":1,"partitions":[' + "1,\n" * 50_000 + "1]}")
    assert len(parsed.problems) == 10_001
    assert str(parsed.problems[0]) == (
        "There are 10,000 problems up to line 10,000; what follows was not read. Mend these, then bring the file again."
    )


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
        assert said(read_reassignment(body)) == [
            (
                f"Line 1, column {column}: This is not JSON: what begins here has more than 1,000,000 characters. "
                f"Mend it there, then bring it again."
            )
        ]
    assert said(read_reassignment(f"[{brackets}]")) == [
        (
            'Line 1: The file holds a list, not an object with "version" and "partitions". '
            "Bring Kafka’s JSON of an assignment."
        )
    ]


def test_read__entries_beyond_the_first_megabyte__have_their_lines_and_their_faults_too() -> None:
    rows = "".join(f'{{"topic":"t","partition":{n},"replicas":[1]}},\n' for n in range(80_000))
    parsed = read_reassignment(
        '{"version":1,"partitions":[\n' + rows + '{"topic":"t","partition":1e0,"replicas":[1,]}]}'
    )
    assert len(parsed.rows) == 80_000
    assert [row.line for row in parsed.rows] == list(range(2, 80_002))
    assert [problem.line for problem in parsed.problems] == [80_002]
    whole = read_reassignment('{"version":1,"partitions":[\n' + rows + '{"topic":"t","partition":9')
    assert said(whole) == [
        "Line 80,002, column 27: This is not JSON: it ends in the middle. Mend it there, then bring it again."
    ]


def test_read__a_path_longer_than_any__is_told_cut_short() -> None:
    path = "/" + "x" * 4096
    assert said(entry(f'{{"topic":"t","partition":0,"replicas":[1],"log_dirs":["{path}"]}}')) == [
        f't-0: "{path[:56]}… can be no log directory: too long, or not printable. Name a directory of the broker.'.join(
            ["Line 3: ", ""]
        )
    ]


def test_read__a_number_of_thousands_of_digits__is_told_without_pythons_words() -> None:
    assert said(entry(f'{{"topic":"t","partition":{"9" * 5000},"replicas":[1]}}')) == [
        "Line 3, column 1: This is not JSON: a number here has thousands of digits. Mend it there, then bring it again."
    ]


def test_read__a_partition_that_stands_there_twice__names_both_lines() -> None:
    one = '{"topic":"a","partition":4,"replicas":[1]}'
    assert said(entry(f"{one},\n{one}")) == [
        "Line 4: a-4 stands here again; it is on line 3 already. Leave one of them."
    ]


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
    assert [str(notice) for notice in parsed.notices] == [
        "The file begins with a byte order mark. It is ignored.",
        'Line 1: There is no "version". The file is read as version 1, as Kafka’s tool does.',
        'Line 1: "made_by" is no field of Kafka’s format. It is ignored, as Kafka’s tool does.',
        'Line 2: "note" is no field of Kafka’s format (the first of 2 times). It is ignored, as Kafka’s tool does.',
    ]
