"""Kafka's own JSON of a reassignment: a reader that knows the line of every entry, and a writer.

Format: ``{"version":1,"partitions":[{"topic","partition","replicas"[,"log_dirs"]}]}``, as
org.apache.kafka.tools.reassign.ReassignPartitionsCommand (parsePartitionReassignmentData, parseExecuteAssignmentArgs)
reads it: a missing version is 1, unknown fields are ignored, and no list is empty or has duplicates. Unlike Kafka's
tool, which stops at the first fault, every problem is listed. Entries are decoded one by one, so that lines are known
without a second parser and half of a broken file is still judged.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkadash.changes.plan import ANY_DIRECTORY, PartitionMove
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.problems import InputProblem
from kafkadash.planning.problem_codes import FileErrorCode, FilePart, JsonFault

LARGEST_ID = 2**31 - 1
LONGEST_PATH = 4096
"""Characters; PATH_MAX of Linux."""
FIELDS = frozenset({"topic", "partition", "replicas", "log_dirs"})

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


class JsonEntry(dict[str, Any]):
    """An object of the file; ``twice`` are names that it has more than once."""

    twice: tuple[str, ...] = ()


def entry_faults(entry: JsonEntry) -> Iterator[CodedMessage]:
    """Yield all that is wrong with one entry."""
    for name in entry.twice:
        yield coded(FileErrorCode.FIELD_TWICE, field=shorten_value(name))
    topic, partition = entry.get("topic"), entry.get("partition")
    if "topic" not in entry:
        yield _missing(coded(FilePart.ANY_ENTRY), "topic")
    elif not isinstance(topic, str):
        yield other_shape('"topic"', shorten_value(topic), coded(FilePart.QUOTED_NAME))
    elif not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        yield coded(FileErrorCode.NO_NAME_OF_A_TOPIC, field='"topic"', found=shorten_value(topic))
    if "partition" not in entry:
        yield _missing(coded(FilePart.ANY_ENTRY), "partition")
    elif not _is_id(partition):
        yield other_shape('"partition"', shorten_value(partition), coded(FilePart.WHOLE_NUMBER))
    # A topic that is none may hold what neither a page nor PostgreSQL takes: it is shown escaped, above.
    named = isinstance(topic, str) and _TOPIC.fullmatch(topic) and _is_id(partition)
    yield from _list_faults(entry, f"{topic}-{partition}" if named else coded(FilePart.ANY_ENTRY))


def _list_faults(entry: JsonEntry, name: CodedMessage | str) -> Iterator[CodedMessage]:
    replicas = entry.get("replicas")
    if "replicas" not in entry:
        yield _missing(name, "replicas")
        return
    if not isinstance(replicas, list):
        field = coded(FilePart.ROW_FIELD, row=name, field="replicas")
        yield other_shape(field, kind_of_value(replicas), coded(FilePart.LIST_OF_BROKERS))
        return
    if not replicas:
        yield coded(FileErrorCode.NO_REPLICAS, row=name)
    bad = [broker for broker in replicas if not _is_id(broker)]
    if bad:
        yield coded(FileErrorCode.NO_ID_OF_A_BROKER, row=name, found=shorten_value(bad[0]), wrong=len(bad))
    elif len(set(replicas)) != len(replicas):
        for broker, times in sorted(Counter(replicas).items()):
            if times > 1:
                yield coded(FileErrorCode.REPLICA_TWICE, row=name, broker=broker, times=times)
    if "log_dirs" in entry:
        yield from _directory_faults(entry["log_dirs"], replicas, name)


def _directory_faults(log_dirs: object, replicas: Sequence[object], name: CodedMessage | str) -> Iterator[CodedMessage]:
    if not isinstance(log_dirs, list) or not all(isinstance(path, str) for path in log_dirs):
        yield coded(FileErrorCode.DIRECTORIES_NO_LIST, row=name, field='"log_dirs"')
    elif len(log_dirs) != len(replicas):
        code = FileErrorCode.DIRECTORIES_NOT_AS_MANY
        yield coded(code, row=name, replicas=len(replicas), directories=len(log_dirs))
    elif any(path != ANY_DIRECTORY and not path.startswith("/") for path in log_dirs):
        yield coded(FileErrorCode.DIRECTORY_NOT_ABSOLUTE, row=name)
    else:
        for path in log_dirs:
            if not path.isprintable() or len(path) > LONGEST_PATH:
                yield coded(FileErrorCode.DIRECTORY_IMPOSSIBLE, row=name, path=shorten_value(path))


def other_shape(field: CodedMessage | str, found: CodedMessage | str, wanted: CodedMessage) -> CodedMessage:
    return coded(FileErrorCode.FIELD_OF_OTHER_SHAPE, field=field, found=found, wanted=wanted)


def _missing(where: CodedMessage | str, field: str) -> CodedMessage:
    return coded(FileErrorCode.FIELD_MISSING, where=where, field=f'"{field}"')


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_ID


def shorten_value(value: object) -> str:
    """A value of the file in a sentence, cut short."""
    text = json.dumps(value) if not isinstance(value, int) or isinstance(value, bool) else str(value)[:60]
    return text if len(text) <= 60 else f"{text[:57]}…"


def kind_of_value(value: object) -> CodedMessage:
    match value:
        case bool():
            return coded(FilePart.TRUE_OR_FALSE)
        case dict():
            return coded(FilePart.OBJECT)
        case list():
            return coded(FilePart.LIST)
        case str():
            return coded(FilePart.TEXT)
        case None:
            return coded(FilePart.NULL)
        case _:
            return coded(FilePart.NUMBER)


STEP_CHARS = 500_000
MOST_PROBLEMS = 10_000
"""After so many the rest is not read: a file of 50 MB could hold 25 million, which are gigabytes of problems."""
MOST_UNKNOWN_FIELDS = 1_000
LONGEST_VALUE = 1_000_000
"""Characters of one entry, or of another field: as Python's objects 50 MB of brackets would be two gigabytes."""

_LONGEST_TOKEN = 16  # where an error in a text that was cut may begin before its end, but for strings
_BLANKS = re.compile(r"[ \t\r\n]*")
_GENERATED = ("Current partition replica assignment", "Proposed partition reassignment configuration")
_FAULTS = {
    "Expecting ',' delimiter": JsonFault.COMMA_MISSING,
    "Expecting ':' delimiter": JsonFault.COLON_MISSING,
    "Expecting value": JsonFault.VALUE_MISSING,
    "Expecting property name enclosed in double quotes": JsonFault.FIELD_NAME_MISSING,
    "Unterminated string starting at": JsonFault.TEXT_NOT_ENDED,
    "Invalid control character at": JsonFault.CONTROL_CHARACTER,
    "Illegal trailing comma before end of object": JsonFault.COMMA_BEFORE_END,
    "Illegal trailing comma before end of array": JsonFault.COMMA_BEFORE_END,
}
"""``json.JSONDecodeError`` has no code, only these messages."""

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)  # possessive: nothing is kept to go back to

Progress = Callable[[float], None]
"""Is told the share that is done, from 0 to 1."""


class JsonRow(NamedTuple):
    """Entry of the file: ``replicas`` are the requested ones, in order; ``log_dirs`` one for each, or empty."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...]
    line: int

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """Content of the file, in its order. With ``problems`` nothing of it may be planned; ``notices`` only inform."""

    rows: list[JsonRow]
    problems: list[InputProblem]
    notices: list[InputProblem] = field(default_factory=list)


class _NotJson(Exception):
    """``fault`` is at ``position``."""

    def __init__(self, position: int, fault: JsonFault, **params: object) -> None:
        super().__init__(fault)
        self.position, self.fault = position, coded(fault, **params)


class _EnoughProblems(Exception):
    """Signal that ``MOST_PROBLEMS`` were found."""


class _NoConstant(ValueError):
    """NaN or an infinity, which JSON does not have."""


def read_reassignment(content: bytes | str, progress: Progress | None = None) -> ParsedFile:
    """Reads a file of Kafka's format; never raises for what stands in it."""
    problems: list[InputProblem] = []
    decoded = _decode_content(content, problems)
    if decoded is None:
        return ParsedFile([], problems)
    notices: list[InputProblem] = []
    if decoded.startswith("\ufeff"):
        decoded = decoded[1:]
        notices.append(InputProblem(coded(FileErrorCode.MARK_IGNORED)))
    reader = _JsonReader(decoded, problems, notices, progress or (lambda _: None))
    try:
        with suppress(_EnoughProblems):
            reader.read()
    except _NotJson as error:
        line, column = reader.place(error.position)
        problems.append(InputProblem(coded(FileErrorCode.NOT_JSON, fault=error.fault), line, column))
    problems.sort(key=lambda p: (p.line or 0, p.column or 0))
    return ParsedFile(reader.rows, problems, notices)


def write_reassignment(rows: Iterable[tuple[str, int, Sequence[int], Sequence[str]]]) -> bytes:
    """Kafka's JSON, one partition a line, of (topic, partition, replicas, log dirs or nothing)."""
    lines = []
    for topic, partition, replicas, log_dirs in rows:
        entry: dict[str, Any] = {"topic": topic, "partition": partition, "replicas": list(replicas)}
        if log_dirs:
            entry["log_dirs"] = list(log_dirs)
        lines.append(json.dumps(entry, separators=(",", ":")))
    return ('{"version":1,"partitions":[\n' + ",\n".join(lines) + "\n]}\n").encode()


def plan_json(rows: Iterable[PartitionMove]) -> bytes:
    """Kafka's JSON of a plan; of ``plan.way_back`` the rollback."""
    return write_reassignment((row.topic, row.partition, row.target, row.log_dirs) for row in rows)


def _decode_content(content: bytes | str, problems: list[InputProblem]) -> str | None:
    if isinstance(content, str):
        return content
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        problems.append(InputProblem(coded(FileErrorCode.UTF_16), 1))
        return None
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        start = content.rfind(b"\n", 0, error.start) + 1
        column = len(content[start : error.start].decode(errors="replace")) + 1
        problems.append(InputProblem(coded(FileErrorCode.NOT_UTF_8, byte=content[error.start]), line, column))
        return None


class _JsonReader:
    """Walks over the outer object and its partitions; what is inside an entry is left to ``json``, which is fast."""

    def __init__(
        self, content: str, problems: list[InputProblem], notices: list[InputProblem], progress: Progress
    ) -> None:
        self.rows: list[JsonRow] = []
        self._content = content
        self._problems, self._notices, self._progress = problems, notices, progress
        self._decoder = json.JSONDecoder(object_pairs_hook=_build_entry, parse_constant=_no_constant)
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
            self._problems.append(InputProblem(coded(FileErrorCode.NOTHING_IN_IT)))
            return
        if content.startswith(_GENERATED, start):
            generated = coded(FileErrorCode.GENERATED, heading=_GENERATED[1])
            self._problems.append(InputProblem(generated, self._line(start)))
            return
        if content[start] != "{":
            is_long_list = content[start] == "[" and len(content) - start > LONGEST_VALUE
            found = coded(FilePart.LIST) if is_long_list else kind_of_value(self._value(start)[0])
            self._problems.append(InputProblem(coded(FileErrorCode.NO_OBJECT, found=found), self._line(start)))
            return
        end = self._outer(start)
        rest = self._skip(end)
        if rest < len(content):
            raise _NotJson(rest, JsonFault.SOMETHING_FOLLOWS)
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
                raise _NotJson(position, JsonFault.FIELD_NAME_MISSING)
            name, colon = self._value(position)
            line = self._line(position)
            if name in named:
                twice = coded(FileErrorCode.STANDS_TWICE, again=shorten_value(name), line=named[name])
                self._problems.append(InputProblem(twice, line))
            named.setdefault(name, line)
            colon = self._skip(colon)
            if self._at(colon) != ":":
                raise _NotJson(colon, JsonFault.COLON_MISSING)
            position = self._skip(self._field(name, self._skip(colon + 1)))
            self._refuse_more(line)
            match self._at(position):
                case "}":
                    self._shape(named, start)
                    return position + 1
                case ",":
                    position = self._skip(position + 1)
                case _:
                    raise _NotJson(position, JsonFault.COMMA_MISSING)

    def _field(self, name: str, position: int) -> int:
        """The value of a field of the outer object; returns the position behind it."""
        if name == "partitions" and self._at(position) == "[":
            return self._partitions(position)
        line = self._line(position)
        value, end = self._value(position)
        if name == "partitions":
            self._other_shape('"partitions"', value, FilePart.LIST_OF_OBJECTS, line)
        elif name == "version" and (isinstance(value, bool) or value != 1 or not isinstance(value, int)):
            other = coded(FileErrorCode.OTHER_VERSION, field='"version"', found=shorten_value(value))
            self._problems.append(InputProblem(other, line))
        elif name not in ("version", "topics"):
            self._note_unknown(name, line)
        return end

    def _partitions(self, start: int) -> int:
        position = self._skip(start + 1)
        if self._at(position) == "]":
            nothing = coded(FileErrorCode.NOTHING_ASKED_FOR, field='"partitions"')
            self._problems.append(InputProblem(nothing, self._line(start)))
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
                    raise _NotJson(position, JsonFault.COMMA_MISSING)

    def _entry(self, entry: object, line: int) -> None:
        if not isinstance(entry, JsonEntry):
            self._other_shape(coded(FilePart.ENTRY_OF_PARTITIONS), entry, FilePart.OBJECT, line)
            return
        for name in entry.keys() - FIELDS:
            self._note_unknown(name, line)
        faults = list(entry_faults(entry))
        if faults:
            self._problems.extend(InputProblem(fault, line) for fault in faults)
            return
        topic = self._topics.setdefault(entry["topic"], entry["topic"])
        row = JsonRow(topic, entry["partition"], tuple(entry["replicas"]), tuple(entry.get("log_dirs", ())), line)
        before = self._seen.get((topic, row.partition))
        if before is not None:
            twice = coded(FileErrorCode.STANDS_TWICE, again=row.name, line=before)
            self._problems.append(InputProblem(twice, line))
            return
        self._seen[topic, row.partition] = line
        self.rows.append(row)

    def _shape(self, named: dict[str, int], start: int) -> None:
        line, _ = self.place(start)
        if "partitions" not in named:
            missing = coded(FileErrorCode.FIELD_MISSING, where=coded(FilePart.WHOLE_OBJECT), field='"partitions"')
            other = coded(FileErrorCode.TOPICS_TO_MOVE) if "topics" in named else missing
            self._problems.append(InputProblem(other, line))
            return
        if "topics" in named:
            self._note_unknown("topics", named["topics"])
        if "version" not in named:
            self._notices.append(InputProblem(coded(FileErrorCode.VERSION_MISSING), line))

    def _other_shape(self, field: CodedMessage | str, found: object, wanted: FilePart, line: int) -> None:
        self._problems.append(InputProblem(other_shape(field, kind_of_value(found), coded(wanted)), line))

    def _refuse_more(self, line: int) -> None:
        if len(self._problems) >= MOST_PROBLEMS:
            # Without a line it comes first, where it is seen.
            self._problems.append(InputProblem(coded(FileErrorCode.TOO_MANY_PROBLEMS, most=MOST_PROBLEMS, line=line)))
            raise _EnoughProblems

    def _note_unknown(self, name: str, line: int) -> None:
        if name not in self._unknown and len(self._unknown) >= MOST_UNKNOWN_FIELDS:
            return  # those that are listed make the point
        first, times = self._unknown.get(name, (line, 0))
        self._unknown[name] = (first, times + 1)

    def _finish(self) -> None:
        for name, (line, times) in sorted(self._unknown.items(), key=lambda item: (item[1], item[0])):
            unknown = coded(FileErrorCode.FIELD_UNKNOWN, field=shorten_value(name), times=times)
            self._notices.append(InputProblem(unknown, line))
        self._progress(1.0)

    def _report(self, position: int) -> None:
        if position - self._reported >= STEP_CHARS:
            self._reported = position
            self._progress(position / len(self._content))

    def _line(self, position: int) -> int:
        """Return the line of a position that is not before the last one asked for: each line break is counted once."""
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
                raise _NotJson(position, JsonFault.TOO_LONG, most=LONGEST_VALUE) from error
            if error.pos >= len(self._window) and not unterminated:
                raise _NotJson(self._from + error.pos, JsonFault.ENDS_IN_THE_MIDDLE) from error
            if error.msg in _FAULTS:
                raise _NotJson(self._from + error.pos, _FAULTS[error.msg]) from error
            words = error.msg[:1].lower() + error.msg[1:]
            raise _NotJson(self._from + error.pos, JsonFault.OTHER_FAULT, words=words) from error
        except RecursionError as error:
            raise _NotJson(position, JsonFault.NESTED_TOO_DEEPLY) from error
        except _NoConstant as error:
            raise _NotJson(position, JsonFault.NO_CONSTANT, name=str(error)) from error
        except ValueError as error:  # what else json raises comes from int(): sys.int_info.default_max_str_digits
            raise _NotJson(position, JsonFault.TOO_MANY_DIGITS) from error
        return value, self._from + end


def _build_entry(pairs: list[tuple[str, Any]]) -> JsonEntry:
    result = JsonEntry(pairs)
    if len(result) != len(pairs):
        times = Counter(name for name, _ in pairs)
        result.twice = tuple(name for name, number in times.items() if number > 1)
    return result


def _no_constant(name: str) -> object:
    raise _NoConstant(name)
