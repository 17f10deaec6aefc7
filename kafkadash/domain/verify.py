"""What became of the partitions of a reassignment file, judged and said as ``kafka-reassign-partitions --verify`` does.

The rules and the words are those of org.apache.kafka.tools.reassign.ReassignPartitionsCommand
(findPartitionReassignmentStates, partitionReassignmentStatesToString, findLogDirMoveStates, replicaMoveStatesToString):
a partition in Kafka's listing is "still in progress", whatever it moves to; any other is completed only if its replicas
are those of the file in the file's order. Where these words hide something, ``Verdict.note`` says it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kafkadash.domain.kafka_json import JsonRow
from kafkadash.domain.plan import ANY_DIRECTORY
from kafkadash.domain.wording import listed

Replica = tuple[int, str, int]
"""Broker, topic, partition."""


class State(StrEnum):
    """Of one partition, the worst first."""

    FAILED = "failed"
    MISSING = "missing"
    UNKNOWN = "unknown"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


ORDER: Mapping[State, int] = {state: place for place, state in enumerate(State)}


@dataclass(frozen=True, slots=True)
class Moving:
    """A row of Kafka's listing: ``replicas`` with those that go, ``target`` without them."""

    replicas: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Directories:
    """Where a broker has a replica: its directory, and the one it is being moved to. None: in no live directory."""

    current: str | None = None
    future: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What the cluster tells. Partitions that are in neither ``moving`` nor ``replicas`` do not exist.

    ``unread``: topic → why it could not be read. ``directories`` has the replicas of brokers that answered;
    ``silent``: broker → why its directories are not known.
    """

    moving: Mapping[tuple[str, int], Moving]
    replicas: Mapping[tuple[str, int], tuple[int, ...]]
    unread: Mapping[str, str] = field(default_factory=dict)
    directories: Mapping[Replica, Directories] = field(default_factory=dict)
    silent: Mapping[int, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For the process that judges: lists, as keys of JSON are texts."""
        return {
            "moving": [[*place, move.replicas, move.target] for place, move in self.moving.items()],
            "replicas": [[*place, replicas] for place, replicas in self.replicas.items()],
            "unread": dict(self.unread),
            "directories": [[*replica, found.current, found.future] for replica, found in self.directories.items()],
            "silent": list(self.silent.items()),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Told:
        return cls(
            {(topic, n): Moving(tuple(replicas), tuple(target)) for topic, n, replicas, target in given["moving"]},
            {(topic, n): tuple(replicas) for topic, n, replicas in given["replicas"]},
            given["unread"],
            {(broker, topic, n): Directories(now, then) for broker, topic, n, now, then in given["directories"]},
            dict(given["silent"]),
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """One partition of the file. ``words`` are Kafka's own, a sentence for the partition and one for each directory
    asked for; empty where Kafka's tool would have ended with an error. ``note`` is ours.
    """

    topic: str
    partition: int
    target: tuple[int, ...]
    state: State
    words: tuple[str, ...]
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


def verify(rows: Iterable[JsonRow], told: Told) -> list[Verdict]:
    """A verdict for each row, the worst first, else by topic and partition."""
    found = [_judge(row, told) for row in rows]
    found.sort(key=lambda verdict: (ORDER[verdict.state], verdict.topic, verdict.partition))
    return found


def directories_asked(row: JsonRow) -> list[tuple[int, str]]:
    """(broker, directory) of the replicas whose directory the file names."""
    pairs = zip(row.replicas, row.log_dirs, strict=False)
    return [(broker, path) for broker, path in pairs if path != ANY_DIRECTORY]


def topics_of(rows: Iterable[JsonRow]) -> list[str]:
    return sorted({row.topic for row in rows})


def brokers_of(rows: Iterable[JsonRow]) -> list[int]:
    """Return the brokers for which the file names directories."""
    return sorted({broker for row in rows for broker, _ in directories_asked(row)})


def tally(verdicts: Iterable[Verdict]) -> Counter[State]:
    return Counter(verdict.state for verdict in verdicts)


def answer(counts: Mapping[State, int]) -> str:
    """The whole in a sentence: "3 of 5 are done, 1 is in progress, 1 failed." """
    total = sum(counts.values())
    done = counts.get(State.COMPLETED, 0)
    if done == total:
        return f"{'It is' if total == 1 else f'All {total:,} are'} done."
    rest = [
        _clause(counts.get(state, 0), one, several)
        for state, one, several in (
            (State.IN_PROGRESS, "is in progress", "are in progress"),
            (State.FAILED, "failed", "failed"),
            (State.MISSING, "does not exist", "do not exist"),
            (State.UNKNOWN, "could not be read", "could not be read"),
        )
        if counts.get(state)
    ]
    if total == 1:
        return f"It{rest[0].removeprefix('1')}."
    of = f"{done:,} of {total:,} partitions {'is' if done == 1 else 'are'} done"
    return f"{', '.join([of, *rest])}."


def _clause(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _judge(row: JsonRow, told: Told) -> Verdict:
    state, words, note = _of_partition(row, told)
    directories = [_of_directory(row, broker, path, told) for broker, path in directories_asked(row)]
    if state in (State.COMPLETED, State.IN_PROGRESS):
        # Until the partition has arrived, a replica that is not where it shall be has not failed.
        worst = min((found for found, _, _ in directories), key=ORDER.__getitem__, default=state)
        state = worst if state == State.COMPLETED else state
    said = [text for text in (words, *(text for _, text, _ in directories)) if text]
    notes = [text for text in (note, *dict.fromkeys(text for _, _, text in directories)) if text]
    return Verdict(row.topic, row.partition, row.replicas, state, tuple(said), " ".join(notes))


def _of_partition(row: JsonRow, told: Told) -> tuple[State, str, str]:
    place = (row.topic, row.partition)
    moving = told.moving.get(place)
    if moving is not None:
        other = moving.target != row.replicas
        note = f"It moves to {_ids(moving.target)}, not to what the file says." if other else ""
        return State.IN_PROGRESS, f"Reassignment of partition {row.name} is still in progress.", note
    if row.topic in told.unread:
        return State.UNKNOWN, "", told.unread[row.topic]
    now = told.replicas.get(place)
    if now == row.replicas:
        return State.COMPLETED, f"Reassignment of partition {row.name} is completed.", ""
    words = (
        f"There is no active reassignment of partition {row.name}, "
        f"but replica set is {_ids(now or ())} rather than {_ids(row.replicas)}."
    )
    if now is None:
        return State.MISSING, words, f"Partition {row.name} does not exist."
    return State.FAILED, words, _difference(now, row.replicas)


def _difference(now: Sequence[int], target: Sequence[int]) -> str:
    if set(now) == set(target):
        return "These are the same brokers in another order: nothing is left to copy, the preferred leader differs."
    absent = [str(broker) for broker in target if broker not in now]
    return f"{listed(absent)} {'has' if len(absent) == 1 else 'have'} no replica of it." if absent else ""


def _of_directory(row: JsonRow, broker: int, target: str, told: Told) -> tuple[State, str, str]:
    """Of one replica whose directory the file names."""
    if broker in told.silent:
        return State.UNKNOWN, "", f"Directories of broker {broker} are not known: {told.silent[broker]}"
    found = told.directories.get((broker, row.topic, row.partition), Directories())
    on = f"Partition {row.name} on broker {broker}"
    replica = f"{row.name}-{broker}"
    if found.current is None:
        words = f"Partition {row.name} is not found in any live log dir on broker {broker}. "
        return State.FAILED, f"{words}There is likely an offline log directory on the broker.", ""
    if found.future is None:
        if found.current == target:
            return State.COMPLETED, f"Reassignment of replica {replica} completed successfully.", ""
        return State.FAILED, f"{on} is not being moved from log dir {found.current} to {target}.", ""
    if found.future == target:
        return State.IN_PROGRESS, f"Reassignment of replica {replica} is still in progress.", ""
    return State.FAILED, f"{on} is being moved to log dir {found.future} instead of {target}.", ""


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
