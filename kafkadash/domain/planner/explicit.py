"""A plan that somebody brought as Kafka's JSON: every row is compared with the cluster, nothing is chosen here."""

from __future__ import annotations

from collections.abc import Iterator

from kafkadash.domain.kafka_json import JsonRow, Parsed
from kafkadash.domain.plan import ANY_DIRECTORY, Row
from kafkadash.domain.planner.planned import (
    Planned,
    already_moving,
    answer,
    arriving,
    disk_notices,
    overflows,
    why_unfit,
)
from kafkadash.domain.planner.topology import Partition, Topic, Topology
from kafkadash.domain.problem import Problem, ProblemCode
from kafkadash.domain.refusals import asked as said
from kafkadash.domain.wording import count, listed_shortly


def explicit(
    parsed: Parsed, topology: Topology, *, change_rf: bool = False, disk_limit: float | None = None
) -> Planned:
    """The rows that change something, or all that is in their way, each problem with its line.

    ``change_rf`` allows rows to have more or fewer replicas than now; ``disk_limit`` is 0 to 1 of a broker's disk.
    """
    return _Explicit(parsed, topology, change_rf, disk_limit).plan()


class _Explicit:
    def __init__(self, parsed: Parsed, topology: Topology, change_rf: bool, disk_limit: float | None) -> None:
        self._parsed, self._topology = parsed, topology
        self._change_rf, self._limit = change_rf, disk_limit
        self._problems: list[Problem] = list(parsed.problems)
        self._notices: list[Problem] = list(parsed.notices)
        self._as_asked = 0
        self._unknown_topics: dict[str, list[int]] = {}
        self._unfit: dict[tuple[int, str], list[int]] = {}
        self._kept_away: dict[int, int] = {}
        self._topics: dict[str, tuple[Topic, dict[int, Partition]]] = {}

    def plan(self) -> Planned:
        moves: list[tuple[Row, Partition]] = []
        for asked in self._parsed.rows:
            placed = self._placed(asked)
            if placed is not None:
                topic, partition = placed
                faults = list(self._faults(asked, partition))
                self._problems.extend(faults)
                if asked.replicas == partition.replicas and not faults:
                    self._as_asked += 1
                elif not faults:
                    row = Row(topic.name, topic.id, asked.partition, partition.replicas, asked.replicas, _dirs(asked))
                    moves.append((row, partition))
        self._gathered()
        self._disks(moves)
        if not moves and not self._problems:
            which = "The only partition of the file is"
            if self._as_asked != 1:
                which = f"All {count(self._as_asked, 'partition')} of the file are"
            self._problems.append(Problem(ProblemCode.NOTHING_TO_DO, said.ALL_AS_ASKED(partitions=which)))
        elif self._as_asked:
            are = "is" if self._as_asked == 1 else "are"
            sentence = said.SOME_AS_ASKED(partitions=count(self._as_asked, "partition"), are=are)
            self._notices.append(Problem(ProblemCode.AS_ASKED, sentence))
        self._problems.sort(key=lambda p: (p.line or 0, p.column or 0))
        return answer((row for row, _ in moves), self._problems, self._notices)

    def _placed(self, asked: JsonRow) -> tuple[Topic, Partition] | None:
        if asked.topic not in self._topics:
            topic = self._topology.topics.get(asked.topic)
            if topic is None:
                self._unknown_topics.setdefault(asked.topic, []).append(asked.line)
                return None
            self._topics[asked.topic] = topic, {p.partition: p for p in topic.partitions}
        topic, partitions = self._topics[asked.topic]
        partition = partitions.get(asked.partition)
        if partition is None:
            has = f"has {count(len(partitions), 'partition')}, 0 to {max(partitions)}" if partitions else "has none"
            sentence = said.PARTITION_UNKNOWN(row=asked.name, topic=asked.topic, has=has)
            self._problems.append(Problem(ProblemCode.UNKNOWN_PARTITION, sentence, asked.line))
            return None
        return topic, partition

    def _faults(self, asked: JsonRow, partition: Partition) -> Iterator[Problem]:
        for broker in asked.replicas:
            known = self._topology.brokers.get(broker)
            if known is None:
                self._unfit.setdefault((broker, "unknown"), []).append(asked.line)
            elif broker not in partition.replicas:
                if not known.eligible:
                    self._unfit.setdefault((broker, why_unfit(known)), []).append(asked.line)
            elif not known.up:
                self._kept_away[broker] = self._kept_away.get(broker, 0) + 1
        if partition.moving:
            yield already_moving(asked.name, asked.line)
        now, then = len(partition.replicas), len(asked.replicas)
        if now != then and not self._change_rf and not partition.moving:
            sentence = said.OTHER_FACTOR(row=asked.name, replicas=count(now, "replica"), target=then)
            yield Problem(ProblemCode.REPLICATION_FACTOR, sentence, asked.line)
        if asked.log_dirs:
            yield from self._directory_faults(asked, partition)

    def _directory_faults(self, asked: JsonRow, partition: Partition) -> Iterator[Problem]:
        for broker, path in zip(asked.replicas, asked.log_dirs, strict=True):
            paths = [d.path for d in self._topology.brokers[broker].dirs] if broker in self._topology.brokers else []
            if path != ANY_DIRECTORY and any(paths) and path not in paths:
                there = listed_shortly(paths)
                sentence = said.DIRECTORY_UNKNOWN(row=asked.name, broker=broker, path=path, paths=there)
                yield Problem(ProblemCode.UNKNOWN_DIRECTORY, sentence, asked.line)
        if asked.replicas == partition.replicas and _dirs(asked):
            yield Problem(ProblemCode.DIRECTORIES_ONLY, said.DIRECTORIES_ONLY(row=asked.name), asked.line)
            return
        for broker, path in zip(asked.replicas, asked.log_dirs, strict=True):
            if path != ANY_DIRECTORY and broker in partition.replicas:
                sentence = said.DIRECTORY_OF_ONE_THAT_STAYS(row=asked.name, broker=broker, path=path)
                yield Problem(ProblemCode.KEPT_DIRECTORY, sentence, asked.line)

    def _gathered(self) -> None:
        """Problems that many rows share, with the line of the first."""
        for topic, lines in self._unknown_topics.items():
            sentence = said.TOPIC_UNKNOWN(topic=topic, more=_more(lines))
            self._problems.append(Problem(ProblemCode.UNKNOWN_TOPIC, sentence, lines[0]))
        for (broker, why), lines in self._unfit.items():
            sentence = said.BROKER_UNKNOWN(broker=broker, more=_more(lines))
            if why != "unknown":
                sentence = said.BROKER_UNFIT(broker=broker, why=why, more=_more(lines))
            self._problems.append(
                Problem(
                    ProblemCode.UNKNOWN_BROKER if why == "unknown" else ProblemCode.UNFIT_BROKER, sentence, lines[0]
                )
            )
        for broker, rows in sorted(self._kept_away.items()):
            keep = "keeps" if rows == 1 else "keep"
            sentence = said.KEPT_ON_ONE_AWAY(partitions=count(rows, "partition"), keep=keep, broker=broker)
            self._notices.append(Problem(ProblemCode.KEPT_AWAY, sentence))

    def _disks(self, moves: list[tuple[Row, Partition]]) -> None:
        if self._limit is None:
            return
        copied = arriving(moves)
        self._problems += overflows(copied, self._topology, self._limit)
        self._notices += disk_notices(copied, self._topology, self._limit)


def _dirs(asked: JsonRow) -> tuple[str, ...]:
    """Empty where no directory is asked for: "any" everywhere says nothing."""
    return () if all(path == ANY_DIRECTORY for path in asked.log_dirs) else asked.log_dirs


def _more(lines: list[int]) -> str:
    return f" (the first of {count(len(lines), 'entry', 'entries')})" if len(lines) > 1 else ""
