"""What can be wrong with one entry of Kafka's reassignment JSON, in sentences (``domain.kafka_json`` adds the line)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from kafkadash.domain.plan import ANY_DIRECTORY
from kafkadash.domain.problem import ProblemCode
from kafkadash.domain.refusals import files as said
from kafkadash.domain.wording import count

LARGEST_ID = 2**31 - 1
LONGEST_PATH = 4096
"""Characters; PATH_MAX of Linux."""
FIELDS = frozenset({"topic", "partition", "replicas", "log_dirs"})

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


class Entry(dict[str, Any]):
    """An object of the file; ``twice`` are names that it has more than once."""

    twice: tuple[str, ...] = ()


def entry_faults(entry: Entry) -> Iterator[tuple[str, str]]:
    """(code, sentence) of all that is wrong with one entry."""
    for name in entry.twice:
        yield ProblemCode.DUPLICATE_FIELD, said.FIELD_TWICE(field=shown(name))
    topic, partition = entry.get("topic"), entry.get("partition")
    if "topic" not in entry:
        yield "missing field", _missing("The entry", "topic")
    elif not isinstance(topic, str):
        yield ProblemCode.OTHER_SHAPE, _shape('"topic"', shown(topic), "a name in quotes")
    elif not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        yield "bad topic", said.NO_NAME_OF_A_TOPIC(field='"topic"', found=shown(topic))
    if "partition" not in entry:
        yield "missing field", _missing("The entry", "partition")
    elif not _is_id(partition):
        yield "bad number", _shape('"partition"', shown(partition), "a whole number from 0 on")
    # A topic that is none may hold what neither a page nor PostgreSQL takes: it is shown escaped, above.
    named = isinstance(topic, str) and _TOPIC.fullmatch(topic) and _is_id(partition)
    yield from _list_faults(entry, f"{topic}-{partition}" if named else "The entry")


def _list_faults(entry: Entry, name: str) -> Iterator[tuple[str, str]]:
    replicas = entry.get("replicas")
    if "replicas" not in entry:
        yield "missing field", _missing(name, "replicas")
        return
    if not isinstance(replicas, list):
        yield ProblemCode.OTHER_SHAPE, _shape(f'{name}: "replicas"', kind_of_value(replicas), "a list of broker ids")
        return
    if not replicas:
        yield "no replicas", said.NO_REPLICAS(row=name)
    bad = [broker for broker in replicas if not _is_id(broker)]
    if bad:
        more = f" ({len(bad) - 1:,} more like it)" if len(bad) > 1 else ""
        yield "bad number", said.NO_ID_OF_A_BROKER(row=name, found=shown(bad[0]), more=more)
    elif len(set(replicas)) != len(replicas):
        for broker, times in sorted(Counter(replicas).items()):
            if times > 1:
                yield "duplicate replica", said.REPLICA_TWICE(row=name, broker=broker, times=_times(times))
    if "log_dirs" in entry:
        yield from _directory_faults(entry["log_dirs"], replicas, name)


def _directory_faults(log_dirs: object, replicas: Sequence[object], name: str) -> Iterator[tuple[str, str]]:
    if not isinstance(log_dirs, list) or not all(isinstance(path, str) for path in log_dirs):
        yield ProblemCode.OTHER_SHAPE, said.DIRECTORIES_NO_LIST(row=name, field='"log_dirs"')
    elif len(log_dirs) != len(replicas):
        dirs = count(len(log_dirs), "log directory", "log directories")
        has = count(len(replicas), "replica")
        yield "log dirs", said.DIRECTORIES_NOT_AS_MANY(row=name, replicas=has, directories=dirs)
    elif any(path != ANY_DIRECTORY and not path.startswith("/") for path in log_dirs):
        yield "log dirs", said.DIRECTORY_NOT_ABSOLUTE(row=name)
    else:
        for path in log_dirs:
            if not path.isprintable() or len(path) > LONGEST_PATH:
                yield "log dirs", said.DIRECTORY_IMPOSSIBLE(row=name, path=shown(path))


def _missing(where: str, field: str) -> str:
    return said.FIELD_MISSING(where=where, field=f'"{field}"')


def _shape(field: str, found: str, wanted: str) -> str:
    return said.FIELD_OF_OTHER_SHAPE(field=field, found=found, wanted=wanted)


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_ID


def _times(number: int) -> str:
    return "twice" if number == 2 else f"{number} times"


def shown(value: object) -> str:
    """A value of the file in a sentence, cut short."""
    text = json.dumps(value) if not isinstance(value, int) or isinstance(value, bool) else str(value)[:60]
    return text if len(text) <= 60 else f"{text[:57]}…"


def kind_of_value(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return "a text"
        case None:
            return "null"
        case _:
            return "a number"
