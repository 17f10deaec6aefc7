"""Kafka's own JSON of a reassignment, read with the line of every entry, and written.

Format: ``{"version":1,"partitions":[{"topic","partition","replicas"[,"log_dirs"]}]}``, as
org.apache.kafka.tools.reassign.ReassignPartitionsCommand (parsePartitionReassignmentData, parseExecuteAssignmentArgs)
reads it: a missing version is 1, unknown fields are ignored, and no lists are empty or name anything twice. Unlike
Kafka's tool, which stops at the first fault, every problem is listed. Entries are decoded one by one, so that lines are
known without a second parser and half of a broken file is still judged.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkadash.domain.kafka_json_entry import FIELDS, Entry, entry_faults, kind_of_value, shown
from kafkadash.domain.plan import Row
from kafkadash.domain.problem import Problem, ProblemCode
from kafkadash.domain.refusals import files as said
from kafkadash.domain.wording import count

STEP_CHARS = 500_000
MOST_PROBLEMS = 10_000
"""After so many the rest is not read: a file of 50 MB could hold 25 million, which are gigabytes of sentences."""
MOST_UNKNOWN_FIELDS = 1_000
LONGEST_VALUE = 1_000_000
"""Characters of one entry, or of another field: as Python's objects 50 MB of brackets would be two gigabytes."""

_LONGEST_TOKEN = 16  # where an error in a text that was cut may begin before its end, but for strings
_BLANKS = re.compile(r"[ \t\r\n]*")
_GENERATED = ("Current partition replica assignment", "Proposed partition reassignment configuration")
_WORDS = {
    "Expecting ',' delimiter": "a comma or a closing bracket is missing here",
    "Expecting ':' delimiter": "a colon is missing here",
    "Expecting value": "a value is missing here",
    "Expecting property name enclosed in double quotes": "a field name in double quotes is missing here",
    "Unterminated string starting at": "a text begins here that nothing ends",
    "Invalid control character at": "a text holds a control character here, such as a line break",
    "Illegal trailing comma before end of object": "a comma stands here with nothing after it",
    "Illegal trailing comma before end of array": "a comma stands here with nothing after it",
}

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)

Progress = Callable[[float], None]
"""Is told the share that is done, from 0 to 1."""


class JsonRow(NamedTuple):
    """One entry of the file: ``replicas`` are those asked for, in order; ``log_dirs`` one for each, or empty."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...]
    line: int

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the file asks for, in its order. With ``problems`` nothing of it may be planned; ``notices`` only inform."""

    rows: list[JsonRow]
    problems: list[Problem]
    notices: list[Problem] = field(default_factory=list)


class _NotJson(Exception):
    """At ``position``, in the words of ``str()``."""

    def __init__(self, position: int, words: str) -> None:
        super().__init__(words)
        self.position = position


class _Enough(Exception):
    """There are ``MOST_PROBLEMS`` by now."""


class _NoConstant(ValueError):
    """NaN or an infinity, which JSON does not have."""


def read_reassignment(content: bytes | str, progress: Progress | None = None) -> Parsed:
    """Reads a file of Kafka's format; never raises for what stands in it."""
    problems: list[Problem] = []
    decoded = _decoded(content, problems)
    if decoded is None:
        return Parsed([], problems)
    notices: list[Problem] = []
    if decoded.startswith("\ufeff"):
        decoded = decoded[1:]
        notices.append(Problem(ProblemCode.BYTE_ORDER_MARK, said.MARK_IGNORED()))
    reader = _Reader(decoded, problems, notices, progress or (lambda _: None))
    try:
        with suppress(_Enough):
            reader.read()
    except _NotJson as error:
        line, column = reader.place(error.position)
        problems.append(Problem(ProblemCode.NOT_JSON, said.NOT_JSON(fault=error), line, column))
    problems.sort(key=lambda p: (p.line or 0, p.column or 0))
    return Parsed(reader.rows, problems, notices)


def write_reassignment(rows: Iterable[tuple[str, int, Sequence[int], Sequence[str]]]) -> bytes:
    """Kafka's JSON, one partition a line, of (topic, partition, replicas, log dirs or nothing)."""
    lines = []
    for topic, partition, replicas, log_dirs in rows:
        entry: dict[str, Any] = {"topic": topic, "partition": partition, "replicas": list(replicas)}
        if log_dirs:
            entry["log_dirs"] = list(log_dirs)
        lines.append(json.dumps(entry, separators=(",", ":")))
    return ('{"version":1,"partitions":[\n' + ",\n".join(lines) + "\n]}\n").encode()


def plan_json(rows: Iterable[Row]) -> bytes:
    """Kafka's JSON of a plan; of ``plan.way_back`` the rollback."""
    return write_reassignment((row.topic, row.partition, row.target, row.log_dirs) for row in rows)


def _decoded(content: bytes | str, problems: list[Problem]) -> str | None:
    if isinstance(content, str):
        return content
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        problems.append(Problem(ProblemCode.NOT_UTF_8, said.UTF_16(), 1))
        return None
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        start = content.rfind(b"\n", 0, error.start) + 1
        column = len(content[start : error.start].decode(errors="replace")) + 1
        problems.append(Problem(ProblemCode.NOT_UTF_8, said.NOT_UTF_8(byte=content[error.start]), line, column))
        return None


class _Reader:
    """Walks over the outer object and its partitions; what is inside an entry is left to ``json``, which is fast."""

    def __init__(self, content: str, problems: list[Problem], notices: list[Problem], progress: Progress) -> None:
        self.rows: list[JsonRow] = []
        self._content = content
        self._problems, self._notices, self._progress = problems, notices, progress
        self._decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant)
        self._newline = "\n" if "\n" in content else "\r"
        self._counted, self._lines = 0, 1
        self._reported = 0
        self._window, self._from = "", 0
        self._unknown: dict[str, tuple[int, int]] = {}
        self._topics: dict[str, str] = {}
        self._seen: dict[tuple[str, int], int] = {}

    def place(self, position: int) -> tuple[int, int]:
        """Line and column, counted from 1."""
        line = self._content.count(self._newline, 0, position) + 1
        return line, position - self._content.rfind(self._newline, 0, position)

    def read(self) -> None:
        content = self._content
        start = self._skip(0)
        if start == len(content):
            self._problems.append(Problem(ProblemCode.EMPTY, said.NOTHING_IN_IT()))
            return
        if content.startswith(_GENERATED, start):
            self._problems.append(
                Problem(ProblemCode.OTHER_SHAPE, said.GENERATED(heading=_GENERATED[1]), self._line(start))
            )
            return
        if content[start] != "{":
            is_long_list = content[start] == "[" and len(content) - start > LONGEST_VALUE
            found = "a list" if is_long_list else kind_of_value(self._value(start)[0])
            self._problems.append(Problem(ProblemCode.OTHER_SHAPE, said.NO_OBJECT(found=found), self._line(start)))
            return
        end = self._outer(start)
        rest = self._skip(end)
        if rest < len(content):
            raise _NotJson(rest, "something follows after the end of the object")
        self._finish()

    def _outer(self, start: int) -> int:
        """The outer object; returns the position behind it."""
        named: dict[str, int] = {}
        position = self._skip(start + 1)
        if self._at(position) == "}":
            self._shape(named, start)
            return position + 1
        while True:
            if self._at(position) != '"':
                raise _NotJson(position, _WORDS["Expecting property name enclosed in double quotes"])
            name, colon = self._value(position)
            line = self._line(position)
            if name in named:
                sentence = said.STANDS_TWICE(again=shown(name), line=named[name])
                self._problems.append(Problem(ProblemCode.DUPLICATE_FIELD, sentence, line))
            named.setdefault(name, line)
            colon = self._skip(colon)
            if self._at(colon) != ":":
                raise _NotJson(colon, _WORDS["Expecting ':' delimiter"])
            position = self._skip(self._field(name, self._skip(colon + 1)))
            self._refuse_more(line)
            match self._at(position):
                case "}":
                    self._shape(named, start)
                    return position + 1
                case ",":
                    position = self._skip(position + 1)
                case _:
                    raise _NotJson(position, _WORDS["Expecting ',' delimiter"])

    def _field(self, name: str, position: int) -> int:
        """The value of a field of the outer object; returns the position behind it."""
        if name == "partitions" and self._at(position) == "[":
            return self._partitions(position)
        line = self._line(position)
        value, end = self._value(position)
        if name == "partitions":
            self._other_shape('"partitions"', value, "a list of objects", line)
        elif name == "version" and (isinstance(value, bool) or value != 1 or not isinstance(value, int)):
            sentence = said.OTHER_VERSION(field='"version"', found=shown(value))
            self._problems.append(Problem(ProblemCode.WRONG_VERSION, sentence, line))
        elif name not in ("version", "topics"):
            self._note_unknown(name, line)
        return end

    def _partitions(self, start: int) -> int:
        position = self._skip(start + 1)
        if self._at(position) == "]":
            sentence = said.NOTHING_ASKED_FOR(field='"partitions"')
            self._problems.append(Problem(ProblemCode.EMPTY, sentence, self._line(start)))
            return position + 1
        while True:
            line = self._line(position)
            entry, end = self._value(position)
            self._entry(entry, line)
            self._refuse_more(line)
            self._report(end)
            position = self._skip(end)
            match self._at(position):
                case "]":
                    return position + 1
                case ",":
                    position = self._skip(position + 1)
                case _:
                    raise _NotJson(position, _WORDS["Expecting ',' delimiter"])

    def _entry(self, entry: object, line: int) -> None:
        if not isinstance(entry, Entry):
            self._other_shape('An entry of "partitions"', entry, "an object", line)
            return
        for name in entry.keys() - FIELDS:
            self._note_unknown(name, line)
        faults = list(entry_faults(entry))
        if faults:
            self._problems.extend(Problem(code, sentence, line) for code, sentence in faults)
            return
        topic = self._topics.setdefault(entry["topic"], entry["topic"])
        row = JsonRow(topic, entry["partition"], tuple(entry["replicas"]), tuple(entry.get("log_dirs", ())), line)
        before = self._seen.get((topic, row.partition))
        if before is not None:
            sentence = said.STANDS_TWICE(again=row.name, line=before)
            self._problems.append(Problem(ProblemCode.DUPLICATE_PARTITION, sentence, line))
            return
        self._seen[topic, row.partition] = line
        self.rows.append(row)

    def _shape(self, named: dict[str, int], start: int) -> None:
        line, _ = self.place(start)
        if "partitions" not in named:
            missing = said.FIELD_MISSING(where="The object", field='"partitions"')
            sentence = said.TOPICS_TO_MOVE() if "topics" in named else missing
            self._problems.append(Problem(ProblemCode.OTHER_SHAPE, sentence, line))
            return
        if "topics" in named:
            self._note_unknown("topics", named["topics"])
        if "version" not in named:
            self._notices.append(Problem(ProblemCode.NO_VERSION, said.VERSION_MISSING(), line))

    def _other_shape(self, field: str, found: object, wanted: str, line: int) -> None:
        sentence = said.FIELD_OF_OTHER_SHAPE(field=field, found=kind_of_value(found), wanted=wanted)
        self._problems.append(Problem(ProblemCode.OTHER_SHAPE, sentence, line))

    def _refuse_more(self, line: int) -> None:
        if len(self._problems) >= MOST_PROBLEMS:
            sentence = said.TOO_MANY_PROBLEMS(most=MOST_PROBLEMS, line=line)
            self._problems.append(
                Problem(ProblemCode.TOO_MANY, sentence)
            )  # without a line it comes first, where it is seen
            raise _Enough

    def _note_unknown(self, name: str, line: int) -> None:
        if name not in self._unknown and len(self._unknown) >= MOST_UNKNOWN_FIELDS:
            return  # those that are listed make the point
        first, times = self._unknown.get(name, (line, 0))
        self._unknown[name] = (first, times + 1)

    def _finish(self) -> None:
        for name, (line, times) in sorted(self._unknown.items(), key=lambda item: (item[1], item[0])):
            more = f" (the first of {count(times, 'time')})" if times > 1 else ""
            self._notices.append(
                Problem(ProblemCode.UNKNOWN_FIELD, said.FIELD_UNKNOWN(field=shown(name), more=more), line)
            )
        self._progress(1.0)

    def _report(self, position: int) -> None:
        if position - self._reported >= STEP_CHARS:
            self._reported = position
            self._progress(position / len(self._content))

    def _line(self, position: int) -> int:
        """Of a position that is not before the last one asked for: every line break is counted once."""
        self._lines += self._content.count(self._newline, self._counted, position)
        self._counted = max(position, self._counted)
        return self._lines

    def _skip(self, position: int) -> int:
        match = _BLANKS.match(self._content, position)
        return match.end() if match else position

    def _at(self, position: int) -> str:
        return self._content[position : position + 1]

    def _value(self, position: int) -> tuple[Any, int]:
        """The value that begins here and the position behind it. It is looked at through a window of the text, which
        reaches ``LONGEST_VALUE`` beyond its beginning at least, so that no more than that is ever made objects of.
        """
        if not 0 <= position - self._from < LONGEST_VALUE or not self._window:
            self._window, self._from = self._content[position : position + 2 * LONGEST_VALUE], position
        try:
            value, end = self._decoder.raw_decode(self._window, position - self._from)
        except json.JSONDecodeError as error:
            unterminated = self._window[error.pos : error.pos + 1] == '"' and not _STRING.match(self._window, error.pos)
            ends_there = error.pos >= len(self._window) - _LONGEST_TOKEN or unterminated
            if ends_there and self._from + len(self._window) < len(self._content):
                most = f"{LONGEST_VALUE:,}"
                raise _NotJson(position, f"what begins here has more than {most} characters") from error
            words = _WORDS.get(error.msg, error.msg[:1].lower() + error.msg[1:])
            if error.pos >= len(self._window) and not unterminated:
                words = "it ends in the middle"
            raise _NotJson(self._from + error.pos, words) from error
        except RecursionError as error:
            raise _NotJson(position, "lists or objects are nested too deeply here") from error
        except _NoConstant as error:
            raise _NotJson(position, str(error)) from error
        except ValueError as error:  # what else json raises comes from int(): sys.int_info.default_max_str_digits
            raise _NotJson(position, "a number here has thousands of digits") from error
        return value, self._from + end


def _pairs(pairs: list[tuple[str, Any]]) -> Entry:
    result = Entry(pairs)
    if len(result) != len(pairs):
        times = Counter(name for name, _ in pairs)
        result.twice = tuple(name for name, number in times.items() if number > 1)
    return result


def _no_constant(name: str) -> object:
    raise _NoConstant(f"{name} is no number of JSON")
