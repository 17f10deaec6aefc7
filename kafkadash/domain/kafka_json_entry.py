"""What can be wrong with one entry of Kafka's reassignment JSON, in sentences (``domain.kafka_json`` adds the line)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from kafkadash.domain.plan import ANY_DIRECTORY
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
        yield "duplicate field", f"The entry has {shown(name)} more than once."
    topic, partition = entry.get("topic"), entry.get("partition")
    if "topic" not in entry:
        yield "missing field", 'The entry has no "topic".'
    elif not isinstance(topic, str):
        yield "other shape", f'"topic" is {shown(topic)}; it has to be a name in quotes.'
    elif not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        yield "bad topic", f'"topic" is {shown(topic)}, which no topic can be called.'
    if "partition" not in entry:
        yield "missing field", 'The entry has no "partition".'
    elif not _is_id(partition):
        yield "bad number", f'"partition" is {shown(partition)}; it has to be a whole number from 0 on.'
    # A topic that is none may hold what neither a page nor PostgreSQL takes: it is shown escaped, above.
    named = isinstance(topic, str) and _TOPIC.fullmatch(topic) and _is_id(partition)
    yield from _list_faults(entry, f"{topic}-{partition}" if named else "The entry")


def _list_faults(entry: Entry, name: str) -> Iterator[tuple[str, str]]:
    replicas = entry.get("replicas")
    if "replicas" not in entry:
        yield "missing field", f'{name} has no "replicas".'
        return
    if not isinstance(replicas, list):
        yield "other shape", f'{name}: "replicas" is {kind_of_value(replicas)}; it has to be a list of broker ids.'
        return
    if not replicas:
        yield "no replicas", f"{name} has an empty list of replicas."
    bad = [broker for broker in replicas if not _is_id(broker)]
    if bad:
        more = f" ({len(bad) - 1:,} more like it)" if len(bad) > 1 else ""
        yield "bad number", f"{name}: {shown(bad[0])} is no broker id; ids are whole numbers from 0 on{more}."
    elif len(set(replicas)) != len(replicas):
        for broker, times in sorted(Counter(replicas).items()):
            if times > 1:
                yield "duplicate replica", f"{name} names broker {broker} {_times(times)} in its replicas."
    if "log_dirs" in entry:
        yield from _directory_faults(entry["log_dirs"], replicas, name)


def _directory_faults(log_dirs: object, replicas: Sequence[object], name: str) -> Iterator[tuple[str, str]]:
    if not isinstance(log_dirs, list) or not all(isinstance(path, str) for path in log_dirs):
        yield "other shape", f'{name}: "log_dirs" has to be a list of paths or "any", one for each replica.'
    elif len(log_dirs) != len(replicas):
        dirs = count(len(log_dirs), "log directory", "log directories")
        yield "log dirs", f"{name} has {count(len(replicas), 'replica')} and {dirs}; it needs one for each replica."
    elif any(path != ANY_DIRECTORY and not path.startswith("/") for path in log_dirs):
        yield "log dirs", f'{name}: a log directory has to be an absolute path or "any".'
    else:
        for path in log_dirs:
            if not path.isprintable() or len(path) > LONGEST_PATH:
                yield "log dirs", f"{name}: {shown(path)} can be no log directory: too long, or not printable."


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
