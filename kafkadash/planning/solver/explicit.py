"""Plans of rows that were brought: every row of an uploaded plan (Kafka's JSON) is compared with the cluster.

Nothing is chosen here, so pages use it as well: no solver and no arrays are loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kafkadash.changes.plan import ANY_DIRECTORY, PartitionMove, PlanErrorCode, UnfitReason
from kafkadash.core.messages import coded, first_names
from kafkadash.core.problems import InputProblem
from kafkadash.planning.kafka_json import JsonRow, ParsedFile
from kafkadash.planning.solver.request_problems import (
    PlanAnswer,
    already_moving,
    build_planned,
    disk_notices,
    find_overflows,
    sum_arriving,
    why_unfit,
)
from kafkadash.planning.topology import ClusterTopology, PlannedPartition, PlannedTopic

MOST_NAMED = 5


def plan_explicitly(
    parsed: ParsedFile, topology: ClusterTopology, *, change_rf: bool = False, disk_limit: float | None = None
) -> PlanAnswer:
    """The rows that change something, or all that is in their way, each problem with its line.

    ``change_rf`` allows rows to have more or fewer replicas than now; ``disk_limit`` is 0 to 1 of a broker's disk.
    """
    return _ExplicitPlan(parsed, topology, change_rf, disk_limit).plan()


class _ExplicitPlan:
    def __init__(
        self, parsed: ParsedFile, topology: ClusterTopology, change_rf: bool, disk_limit: float | None
    ) -> None:
        self._parsed, self._topology = parsed, topology
        self._change_rf, self._limit = change_rf, disk_limit
        self._problems: list[InputProblem] = list(parsed.problems)
        self._notices: list[InputProblem] = list(parsed.notices)
        self._as_asked = 0
        self._unknown_topics: dict[str, list[int]] = {}
        self._unfit: dict[tuple[int, UnfitReason | None], list[int]] = {}
        self._kept_away: dict[int, int] = {}
        self._topics: dict[str, tuple[PlannedTopic, dict[int, PlannedPartition]]] = {}

    def plan(self) -> PlanAnswer:
        moves: list[tuple[PartitionMove, PlannedPartition]] = []
        for json_row in self._parsed.rows:
            placed = self._placed(json_row)
            if placed is not None:
                topic, partition = placed
                faults = list(self._faults(json_row, partition))
                self._problems.extend(faults)
                if json_row.replicas == partition.replicas and not faults:
                    self._as_asked += 1
                elif not faults:
                    row = PartitionMove(
                        topic.name,
                        topic.id,
                        json_row.partition,
                        partition.replicas,
                        json_row.replicas,
                        _list_requested_dirs(json_row),
                    )
                    moves.append((row, partition))
        self._gathered()
        self._disks(moves)
        if not moves and not self._problems:
            self._problems.append(InputProblem(coded(PlanErrorCode.ALL_AS_ASKED, partitions=self._as_asked)))
        elif self._as_asked:
            self._notices.append(InputProblem(coded(PlanErrorCode.SOME_AS_ASKED, partitions=self._as_asked)))
        self._problems.sort(key=lambda p: (p.line or 0, p.column or 0))
        return build_planned((row for row, _ in moves), self._problems, self._notices)

    def _placed(self, json_row: JsonRow) -> tuple[PlannedTopic, PlannedPartition] | None:
        if json_row.topic not in self._topics:
            topic = self._topology.topics.get(json_row.topic)
            if topic is None:
                self._unknown_topics.setdefault(json_row.topic, []).append(json_row.line)
                return None
            self._topics[json_row.topic] = topic, {p.partition: p for p in topic.partitions}
        topic, partitions = self._topics[json_row.topic]
        partition = partitions.get(json_row.partition)
        if partition is None:
            unknown = coded(
                PlanErrorCode.PARTITION_UNKNOWN, row=json_row.name, topic=json_row.topic, partitions=len(partitions)
            )
            self._problems.append(InputProblem(unknown, json_row.line))
            return None
        return topic, partition

    def _faults(self, json_row: JsonRow, partition: PlannedPartition) -> Iterator[InputProblem]:
        for broker in json_row.replicas:
            known = self._topology.brokers.get(broker)
            if known is None:
                self._unfit.setdefault((broker, None), []).append(json_row.line)
            elif broker not in partition.replicas:
                if not known.eligible:
                    self._unfit.setdefault((broker, why_unfit(known)), []).append(json_row.line)
            elif not known.up:
                self._kept_away[broker] = self._kept_away.get(broker, 0) + 1
        if partition.moving:
            yield already_moving(json_row.name, json_row.line)
        now, then = len(partition.replicas), len(json_row.replicas)
        if now != then and not self._change_rf and not partition.moving:
            other = coded(PlanErrorCode.OTHER_FACTOR, row=json_row.name, replicas=now, target=then)
            yield InputProblem(other, json_row.line)
        if json_row.log_dirs:
            yield from self._directory_faults(json_row, partition)

    def _directory_faults(self, json_row: JsonRow, partition: PlannedPartition) -> Iterator[InputProblem]:
        for broker, path in zip(json_row.replicas, json_row.log_dirs, strict=True):
            paths = [d.path for d in self._topology.brokers[broker].dirs] if broker in self._topology.brokers else []
            if path != ANY_DIRECTORY and any(paths) and path not in paths:
                code, there = PlanErrorCode.DIRECTORY_UNKNOWN, first_names(paths)
                yield InputProblem(coded(code, row=json_row.name, broker=broker, path=path, paths=there), json_row.line)
        if json_row.replicas == partition.replicas and _list_requested_dirs(json_row):
            yield InputProblem(coded(PlanErrorCode.DIRECTORIES_ONLY, row=json_row.name), json_row.line)
            return
        for broker, path in zip(json_row.replicas, json_row.log_dirs, strict=True):
            if path != ANY_DIRECTORY and broker in partition.replicas:
                code = PlanErrorCode.DIRECTORY_OF_ONE_THAT_STAYS
                yield InputProblem(coded(code, row=json_row.name, broker=broker, path=path), json_row.line)

    def _gathered(self) -> None:
        """Problems that many rows share, with the line of the first."""
        for topic, lines in self._unknown_topics.items():
            unknown = coded(PlanErrorCode.TOPIC_UNKNOWN, topic=topic, entries=len(lines))
            self._problems.append(InputProblem(unknown, lines[0]))
        for (broker, why), lines in self._unfit.items():
            unfit = coded(PlanErrorCode.BROKER_UNKNOWN, broker=broker, entries=len(lines))
            if why is not None:
                unfit = coded(PlanErrorCode.BROKER_UNFIT, broker=broker, why=why, entries=len(lines))
            self._problems.append(InputProblem(unfit, lines[0]))
        for broker, rows in sorted(self._kept_away.items()):
            self._notices.append(InputProblem(coded(PlanErrorCode.KEPT_ON_ONE_AWAY, partitions=rows, broker=broker)))

    def _disks(self, moves: list[tuple[PartitionMove, PlannedPartition]]) -> None:
        if self._limit is None:
            return
        copied = sum_arriving(moves)
        self._problems += find_overflows(copied, self._topology, self._limit)
        self._notices += disk_notices(copied, self._topology, self._limit)


def _list_requested_dirs(json_row: JsonRow) -> tuple[str, ...]:
    """Empty where no directory is asked for: "any" everywhere says nothing."""
    return () if all(path == ANY_DIRECTORY for path in json_row.log_dirs) else json_row.log_dirs


def plan_unfinished(parsed: ParsedFile, topology: ClusterTopology, *, disk_limit: float | None = None) -> PlanAnswer:
    """Like an explicit assignment, but what moves now, or is gone since, is left out; factors may change as they were
    to change then. That nothing is left is a problem.
    """
    there = {(name, p.partition): p for name, topic in topology.topics.items() for p in topic.partitions}
    gone = [row for row in parsed.rows if (row.topic, row.partition) not in there]
    known = [row for row in parsed.rows if (row.topic, row.partition) in there]
    busy = [row for row in known if there[row.topic, row.partition].moving]
    left = [row for row in known if not there[row.topic, row.partition].moving]
    notices = list(parsed.notices)
    if gone:
        notices.append(InputProblem(coded(PlanErrorCode.GONE_LEFT_OUT, partitions=_name_rows(gone))))
    if busy:
        notices.append(InputProblem(coded(PlanErrorCode.MOVING_LEFT_OUT, partitions=_name_rows(busy))))
    if not left and not parsed.problems:
        return build_planned((), [InputProblem(coded(PlanErrorCode.NOTHING_LEFT_TO_FINISH))], notices)
    return plan_explicitly(replace(parsed, rows=left, notices=notices), topology, change_rf=True, disk_limit=disk_limit)


def _name_rows(rows: list[JsonRow]) -> tuple[str | int, ...]:
    return first_names([row.name for row in rows], MOST_NAMED)
