"""Rules and words of ``kafka-reassign-partitions --verify`` for the partitions of a reassignment file.

Both come from org.apache.kafka.tools.reassign.ReassignPartitionsCommand (findPartitionReassignmentStates,
partitionReassignmentStatesToString, findLogDirMoveStates, replicaMoveStatesToString): a partition in Kafka's listing is
"still in progress", whatever its target; any other is completed only if its replicas are those of the file in the
file's order. Where these words hide something, ``PartitionVerdict.note`` says it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kafkadash.changes.plan import ANY_DIRECTORY
from kafkadash.core.formatting import join_items
from kafkadash.core.messages import choose_plural
from kafkadash.planning.kafka_json import JsonRow

Replica = tuple[int, str, int]
"""Broker, topic, partition."""


class VerifyState(StrEnum):
    """States of one partition, the worst first."""

    FAILED = "failed"
    MISSING = "missing"
    UNKNOWN = "unknown"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


ORDER: Mapping[VerifyState, int] = {state: place for place, state in enumerate(VerifyState)}


@dataclass(frozen=True, slots=True)
class MovingPartition:
    """A row of Kafka's listing: ``replicas`` with those that go, ``target`` without them."""

    replicas: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReplicaDirectories:
    """Directories of a replica on a broker: the current one, and the one of a move. None: in no live directory."""

    current: str | None = None
    future: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterAnswers:
    """Answers of the cluster. Partitions that are in neither ``moving`` nor ``replicas`` do not exist.

    ``unread``: topic → why it could not be read. ``directories`` has the replicas of brokers that answered;
    ``silent``: broker → why its directories are not known.
    """

    moving: Mapping[tuple[str, int], MovingPartition]
    replicas: Mapping[tuple[str, int], tuple[int, ...]]
    unread: Mapping[str, str] = field(default_factory=dict)
    directories: Mapping[Replica, ReplicaDirectories] = field(default_factory=dict)
    silent: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionVerdict:
    """Verdict on one partition of the file. ``words`` are Kafka's own, a sentence for the partition and one for each
    directory asked for; empty where Kafka's tool would have ended with an error. ``note`` is kafkadash's.
    """

    topic: str
    partition: int
    target: tuple[int, ...]
    state: VerifyState
    words: tuple[str, ...]
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


def verify(rows: Iterable[JsonRow], told: ClusterAnswers) -> list[PartitionVerdict]:
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


def tally(verdicts: Iterable[PartitionVerdict]) -> Counter[VerifyState]:
    return Counter(verdict.state for verdict in verdicts)


def summarize_counts(counts: Mapping[VerifyState, int]) -> str:
    """Return a summary such as "3 of 5 partitions completed, 1 in progress, 1 failed"."""
    total = sum(counts.values())
    done = counts.get(VerifyState.COMPLETED, 0)
    if done == total:
        return choose_plural("# partition completed|All # partitions completed", total)
    rest = [
        f"{counts[state]:,} {text}"
        for state, text in (
            (VerifyState.IN_PROGRESS, "in progress"),
            (VerifyState.FAILED, "failed"),
            (VerifyState.MISSING, "not found"),
            (VerifyState.UNKNOWN, "not read"),
        )
        if counts.get(state)
    ]
    return ", ".join([f"{done:,} of {choose_plural('# partition|# partitions', total)} completed", *rest])


def _judge(row: JsonRow, told: ClusterAnswers) -> PartitionVerdict:
    state, words, note = _of_partition(row, told)
    directories = [_of_directory(row, broker, path, told) for broker, path in directories_asked(row)]
    if state in (VerifyState.COMPLETED, VerifyState.IN_PROGRESS):
        # Until the partition has arrived, a replica that is not where it shall be has not failed.
        worst = min((found for found, _, _ in directories), key=ORDER.__getitem__, default=state)
        state = worst if state == VerifyState.COMPLETED else state
    texts = [text for text in (words, *(text for _, text, _ in directories)) if text]
    notes = [text for text in (note, *dict.fromkeys(text for _, _, text in directories)) if text]
    return PartitionVerdict(row.topic, row.partition, row.replicas, state, tuple(texts), " ".join(notes))


def _of_partition(row: JsonRow, told: ClusterAnswers) -> tuple[VerifyState, str, str]:
    place = (row.topic, row.partition)
    moving = told.moving.get(place)
    if moving is not None:
        other = moving.target != row.replicas
        note = f"The current target is {_join_ids(moving.target)}, not the one in the file." if other else ""
        return VerifyState.IN_PROGRESS, f"Reassignment of partition {row.name} is still in progress.", note
    if row.topic in told.unread:
        return VerifyState.UNKNOWN, "", told.unread[row.topic]
    now = told.replicas.get(place)
    if now == row.replicas:
        return VerifyState.COMPLETED, f"Reassignment of partition {row.name} is completed.", ""
    words = (
        f"There is no active reassignment of partition {row.name}, "
        f"but replica set is {_join_ids(now or ())} rather than {_join_ids(row.replicas)}."
    )
    if now is None:
        return VerifyState.MISSING, words, f"Partition {row.name} does not exist."
    return VerifyState.FAILED, words, _describe_difference(now, row.replicas)


def _describe_difference(now: Sequence[int], target: Sequence[int]) -> str:
    if set(now) == set(target):
        return "Same brokers in another order: nothing is left to copy, but the preferred leader may differ."
    absent = [str(broker) for broker in target if broker not in now]
    texts = f"Broker {join_items(absent)} has no replica.|Brokers {join_items(absent)} have no replica."
    return choose_plural(texts, len(absent)) if absent else ""


def _of_directory(row: JsonRow, broker: int, target: str, told: ClusterAnswers) -> tuple[VerifyState, str, str]:
    """Return the verdict (state, Kafka's words, note) on one replica whose directory the file names."""
    if broker in told.silent:
        return VerifyState.UNKNOWN, "", f"Log directories of broker {broker} are unknown: {told.silent[broker]}"
    found = told.directories.get((broker, row.topic, row.partition), ReplicaDirectories())
    on = f"Partition {row.name} on broker {broker}"
    replica = f"{row.name}-{broker}"
    if found.current is None:
        words = f"Partition {row.name} is not found in any live log dir on broker {broker}. "
        return VerifyState.FAILED, f"{words}There is likely an offline log directory on the broker.", ""
    if found.future is None:
        if found.current == target:
            return VerifyState.COMPLETED, f"Reassignment of replica {replica} completed successfully.", ""
        return VerifyState.FAILED, f"{on} is not being moved from log dir {found.current} to {target}.", ""
    if found.future == target:
        return VerifyState.IN_PROGRESS, f"Reassignment of replica {replica} is still in progress.", ""
    return VerifyState.FAILED, f"{on} is being moved to log dir {found.future} instead of {target}.", ""


def _join_ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
