"""Checks of a reassignment before it runs: content apart from health, in a fixed order.

``check_preconditions`` is pure and uses the last stored facts. Facts that were never read, or are too old, make a check
unknown, never passed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from kafkadash.changes.checks import ChangeCheck, CheckOutcome, CheckResult, CheckSubject
from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.core.formatting import format_duration, run_time
from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.core.racks import judge_spread
from kafkadash.core.status import NEVER, RefreshStatus
from kafkadash.kafka.config_values import MIN_ISR
from kafkadash.monitoring.quorum.rules import majority_lost
from kafkadash.planning.impact import run_seconds
from kafkadash.planning.problem_codes import CheckErrorCode, CheckTitle, FactKind
from kafkadash.planning.topology import ClusterTopology, PlannedPartition, PlannedTopic

MOST_PROBLEMS = 200
WHOLE_DISK = 1.0
WINDOW = "window"
"""Code of the check that knows how long the run would take."""


@dataclass(frozen=True, slots=True)
class MovingPartitions:
    """A reassignment that Kafka lists."""

    adding: frozenset[int]
    removing: frozenset[int]


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """Stored facts about the cluster: all its brokers, at least the topics of the plan, all that moves.

    The four tell how reading each kind of facts went; ``zookeeper``: there is no quorum to ask.
    """

    topology: ClusterTopology
    moving: Mapping[tuple[str, int], MovingPartitions] = field(default_factory=dict)
    metadata: RefreshStatus = NEVER
    reassignments: RefreshStatus = NEVER
    quorum: RefreshStatus = NEVER
    log_dirs: RefreshStatus = NEVER
    zookeeper: bool = False

    @property
    def facts_at(self) -> datetime | None:
        """Age of the oldest; None if some were never read."""
        kinds = [self.metadata, self.reassignments, self.log_dirs, *([] if self.zookeeper else [self.quorum])]
        times = [kind.taken_at for kind in kinds]
        known = [at for at in times if at is not None]
        return min(known) if len(known) == len(times) else None


@dataclass(frozen=True, slots=True)
class PreconditionLimits:
    """Limits that the author set beside the options: ``disk``, 0 to 1 of a broker's disk (None: all of it).

    ``taken_back``: number of the request whose run a rollback takes back, 0 for what is no rollback.
    ``min_isr_may_change``: a step before this one may lower min-ISR still.
    """

    disk: float | None = None
    taken_back: int = 0
    min_isr_may_change: bool = False


def check_preconditions(
    rows: Sequence[PartitionMove], options: RunOptions, limits: PreconditionLimits, seen: ClusterSeen, now: datetime
) -> CheckOutcome:
    """All checks, in the order of the page."""
    return _PreconditionJudge(rows, options, limits, seen, now).checked()


class _PreconditionJudge:
    def __init__(
        self,
        rows: Sequence[PartitionMove],
        options: RunOptions,
        limits: PreconditionLimits,
        seen: ClusterSeen,
        now: datetime,
    ) -> None:
        self._rows, self._options, self._limits, self._seen, self._now = rows, options, limits, seen, now
        topics = {row.topic for row in rows}
        self._topics: dict[str, tuple[PlannedTopic, dict[int, PlannedPartition]]] = {
            name: (topic, {p.partition: p for p in topic.partitions})
            for name, topic in seen.topology.topics.items()
            if name in topics
        }
        self._known = [
            (row, own[0], p)
            for row in rows
            if (own := self._topics.get(row.topic)) and (p := own[1].get(row.partition))
        ]
        self._receiving = sorted({broker for row in rows for broker in row.adding})

    def checked(self) -> CheckOutcome:
        checks = (
            self._as_planned(),
            self._not_moving(),
            self._factor(),
            self._targets(),
            self._cordoned(),
            self._quorum(),
            self._disk(),
            self._racks(),
            self._min_isr(),
            self._throttle(),
            self._window(),
        )
        return CheckOutcome(tuple(check for check in checks if check is not None), self._seen.facts_at)

    def _as_planned(self) -> ChangeCheck:
        title = coded(CheckTitle.AS_PLANNED)
        old = self._old(FactKind.TOPICS_AND_BROKERS, self._seen.metadata)
        if old:
            return _build_unknown_check("as_planned", CheckSubject.CONTENT, title, old)
        found = [problem for row in self._rows if (problem := self._differs(row))]
        wrong = len(found)
        problems = list({(problem.code, *problem.params.values()): problem for problem in found}.values())
        return _build_check(
            "as_planned", CheckSubject.CONTENT, title, problems, _format_share(len(self._rows) - wrong, len(self._rows))
        )

    def _differs(self, row: PartitionMove) -> CodedMessage | None:
        own = self._topics.get(row.topic)
        if own is None:
            return coded(CheckErrorCode.GONE, name=row.topic)
        topic, partitions = own
        if topic.id != row.topic_id:
            return coded(CheckErrorCode.TOPIC_REPLACED, topic=row.topic)
        partition = partitions.get(row.partition)
        if partition is None:
            return coded(CheckErrorCode.GONE, name=row.name)
        if partition.replicas == row.current:
            return None
        moving = self._seen.moving.get((row.topic, row.partition))
        there_now = set(partition.replicas)
        if moving and moving.adding & there_now and there_now - moving.adding == set(row.current):
            return None  # that it moves is said by the next check
        as_asked = partition.replicas == row.target
        code = CheckErrorCode.AS_PLANNED_ALREADY if as_asked else CheckErrorCode.OTHER_THAN_PLANNED
        return coded(code, row=row.name, replicas=partition.replicas, expected=row.current)

    def _not_moving(self) -> ChangeCheck:
        title = coded(CheckTitle.NOT_MOVING)
        old = self._old(FactKind.REASSIGNMENTS, self._seen.reassignments)
        if old:
            return _build_unknown_check("not_moving", CheckSubject.CONTENT, title, old)
        problems = []
        for row in self._rows:
            moving = self._seen.moving.get((row.topic, row.partition))
            if moving:
                adding, removing = tuple(sorted(moving.adding)), tuple(sorted(moving.removing))
                code = CheckErrorCode.MOVING_BY_OTHERS
                problems.append(coded(code, row=row.name, adding=adding, removing=removing))
        return _build_check("not_moving", CheckSubject.CONTENT, title, problems, f"{len(problems):,}")

    def _factor(self) -> ChangeCheck:
        if self._options.change_rf:
            changed = sum(len(row.target) != len(row.current) for row in self._rows)
            figure, title = f"{changed:,} of {len(self._rows):,}", coded(CheckTitle.FACTOR_AS_ASKED)
            return _build_check("replication_factor", CheckSubject.CONTENT, title, self._under_min_isr(), figure)
        problems = [
            coded(CheckErrorCode.FACTOR_CHANGES, row=row.name, replicas=len(row.current), target=len(row.target))
            for row in self._rows
            if len(row.target) != len(row.current)
        ]
        figure = _format_share(len(self._rows) - len(problems), len(self._rows))
        return _build_check("replication_factor", CheckSubject.CONTENT, coded(CheckTitle.FACTOR_KEPT), problems, figure)

    def _under_min_isr(self) -> list[CodedMessage]:
        """Partitions that would have fewer replicas than min-ISR: Kafka then refuses producers with acks=all.

        The min-ISR check tells of topics whose min-ISR was not read.
        """
        if self._limits.min_isr_may_change:
            return []
        return [
            coded(CheckErrorCode.FACTOR_UNDER_MIN_ISR, row=row.name, target=len(row.target), needed=topic.min_isr)
            for row, topic, _ in self._known
            if topic.min_isr is not None and len(row.target) < min(topic.min_isr, len(row.current))
        ]

    def _targets(self) -> ChangeCheck:
        title = coded(CheckTitle.TARGETS_ALIVE)
        old = self._old(FactKind.TOPICS_AND_BROKERS, self._seen.metadata)
        if old:
            return _build_unknown_check("targets_alive", CheckSubject.HEALTH, title, old)
        problems = []
        for id_ in self._receiving:
            broker = self._seen.topology.brokers.get(id_)
            if broker is None or not broker.alive:
                problems.append(coded(CheckErrorCode.TARGET_NOT_REGISTERED, broker=id_))
            elif broker.fenced:
                problems.append(coded(CheckErrorCode.TARGET_FENCED, broker=id_))
            elif broker.silent:
                problems.append(coded(CheckErrorCode.TARGET_SILENT, broker=id_))
        figure = _format_share(len(self._receiving) - len(problems), len(self._receiving))
        return _build_check("targets_alive", CheckSubject.HEALTH, title, problems, figure)

    def _cordoned(self) -> ChangeCheck:
        title = coded(CheckTitle.NOT_CORDONED)
        old = self._old(FactKind.LOG_DIRECTORIES, self._seen.log_dirs)
        if old:
            return _build_unknown_check("not_cordoned", CheckSubject.HEALTH, title, old)
        known = [b for id_ in self._receiving if (b := self._seen.topology.brokers.get(id_))]
        problems = [coded(CheckErrorCode.TARGET_CORDONED, broker=b.id) for b in known if b.cordoned]
        unread = tuple(b.id for b in known if not b.dirs)
        if unread and not problems:
            why = coded(CheckErrorCode.DIRECTORIES_UNREAD, brokers=unread)
            return _build_unknown_check("not_cordoned", CheckSubject.HEALTH, title, why)
        return _build_check(
            "not_cordoned", CheckSubject.HEALTH, title, problems, _format_share(len(known) - len(problems), len(known))
        )

    def _quorum(self) -> ChangeCheck:
        seen = self._seen
        if seen.zookeeper:
            old = self._old(FactKind.REASSIGNMENTS, seen.reassignments)
            title = coded(CheckTitle.CONTROLLER_ANSWERS)
            return (
                _build_unknown_check("quorum", CheckSubject.HEALTH, title, old)
                if old
                else _build_check("quorum", CheckSubject.HEALTH, title, [])
            )
        title = coded(CheckTitle.QUORUM_ANSWERS)
        if majority_lost(seen.quorum, seen.metadata):
            return _build_check("quorum", CheckSubject.HEALTH, title, [coded(CheckErrorCode.QUORUM_LOST)])
        old = self._old(FactKind.QUORUM, seen.quorum)
        return (
            _build_unknown_check("quorum", CheckSubject.HEALTH, title, old)
            if old
            else _build_check("quorum", CheckSubject.HEALTH, title, [])
        )

    def _disk(self) -> ChangeCheck:
        limit = self._limits.disk if self._limits.disk is not None else WHOLE_DISK
        title = coded(CheckTitle.DISK_BELOW_LIMIT, limit=100 * limit)
        old = self._old(FactKind.LOG_DIRECTORIES, self._seen.log_dirs)
        if old:
            return _build_unknown_check("disk", CheckSubject.HEALTH, title, old)
        arriving, _ = self._traffic
        largest: defaultdict[int, int] = defaultdict(int)
        for row, _, p in self._known:
            for id_ in row.adding:
                largest[id_] = max(largest[id_], p.size_bytes or 0)
        problems, unread, worst = [], [], (0.0, -1)
        for id_ in self._receiving:
            broker = self._seen.topology.brokers.get(id_)
            rooms = broker.rooms(limit) if broker else None
            total, used = (broker.disk_bytes, broker.used_bytes) if broker else (None, None)
            if rooms is None:
                unread.append(id_)
                continue
            share = (used + arriving[id_]) / total if total and used is not None else None
            worst = max(worst, (share or 0.0, id_))
            if arriving[id_] > sum(rooms):
                code, coming = CheckErrorCode.DISK_TOO_SMALL, arriving[id_]
                problems.append(coded(code, broker=id_, share=share, coming=coming, room=sum(rooms)))
            elif largest[id_] > max(rooms, default=0):
                code, room = CheckErrorCode.DIRECTORIES_TOO_SMALL, max(rooms, default=0)
                problems.append(coded(code, broker=id_, replica=largest[id_], room=room))
        figure = f"{100 * worst[0]:.1f} %, broker {worst[1]}" if worst[1] >= 0 else ""
        if problems:
            return _build_check("disk", CheckSubject.HEALTH, title, problems, figure)
        unsized = sum(bool(row.adding) and p.size_bytes is None for row, _, p in self._known)
        why = [coded(CheckErrorCode.DISK_NOT_KNOWN, brokers=tuple(unread))] if unread else []
        why += [coded(CheckErrorCode.SIZE_NOT_KNOWN, partitions=unsized)] if unsized else []
        return (
            _build_unknown_check("disk", CheckSubject.HEALTH, title, *why)
            if why
            else _build_check("disk", CheckSubject.HEALTH, title, [], figure)
        )

    def _racks(self) -> ChangeCheck:
        """Only what the digest covers allows a worse spread (``RunOptions.may_lose_racks``)."""
        accepted, taken_back = self._options.may_lose_racks, self._limits.taken_back
        title = coded(CheckTitle.SPREAD_KEPT)
        if accepted and taken_back:
            title = coded(CheckTitle.SPREAD_AS_BEFORE, number=taken_back)
        elif accepted:
            title = coded(CheckTitle.SPREAD_AS_ACCEPTED)
        old = self._old(FactKind.TOPICS_AND_BROKERS, self._seen.metadata)
        if old:
            return _build_unknown_check("rack_spread", CheckSubject.HEALTH, title, old)
        racks = self._seen.topology.racks
        if not racks:
            registered = [b for b in self._seen.topology.brokers.values() if b.alive]
            if len({b.rack for b in registered}) <= 1:
                return _build_check("rack_spread", CheckSubject.HEALTH, title, [], "one rack or none")
            return _build_unknown_check(
                "rack_spread", CheckSubject.HEALTH, title, coded(CheckErrorCode.RACKS_NOT_NAMED)
            )
        number = len(set(racks.values()))
        moves: dict[tuple[str, ...], int] = {}
        before = after = worse = 0
        problems = []
        for row in self._rows:
            now, then = (_count_moves(replicas, racks, number, moves) for replicas in (row.current, row.target))
            before += now > 0
            after += then > 0
            worse += then > now
            if then > now and not accepted:
                problems.append(coded(CheckErrorCode.SPREAD_WORSE, row=row.name, replicas=row.target))
        figure = f"{before:,} → {choose_plural('# violation|# violations', after)}"
        if worse and not problems:
            figure += f", {worse:,} worse"
        return replace(
            _build_check("rack_spread", CheckSubject.HEALTH, title, problems, figure), lasting=bool(problems)
        )

    def _min_isr(self) -> ChangeCheck:
        """A move costs the leader bandwidth that a replica which lags needs; one that is offline needs none."""
        title = coded(CheckTitle.IN_SYNC)
        old = self._old(FactKind.TOPICS_AND_BROKERS, self._seen.metadata)
        if old:
            return _build_unknown_check("min_isr", CheckSubject.HEALTH, title, old)
        brokers = self._seen.topology.brokers
        serving = {b.id for b in brokers.values() if b.up}
        problems: list[CodedMessage] = []
        unread: set[str] = set()
        for row, topic, p in self._known:
            if p.leader is None:
                problems.append(coded(CheckErrorCode.LEADERLESS, row=row.name))
            elif topic.min_isr is None:
                unread.add(topic.name)
            elif len(p.isr) < topic.min_isr:
                missing = [b for b in p.replicas if b not in p.isr]
                repaired = bool(row.adding) and set(missing) <= set(row.removing)
                if not repaired and any(b in serving for b in missing):
                    code, in_sync, needed = CheckErrorCode.LAGGING, len(p.isr), topic.min_isr
                    lagging = coded(code, row=row.name, in_sync=in_sync, needed=needed, brokers=tuple(missing))
                    problems.append(lagging)
        if unread and not problems:
            why = coded(CheckErrorCode.MIN_ISR_UNREAD, setting=MIN_ISR, topics=len(unread))
            return _build_unknown_check("min_isr", CheckSubject.HEALTH, title, why)
        return _build_check("min_isr", CheckSubject.HEALTH, title, problems, f"{len(problems):,}")

    def _throttle(self) -> ChangeCheck | None:
        """None where nobody measured what any of the partitions receives: then there is nothing to compare with."""
        title = coded(CheckTitle.THROTTLE_SUFFICES)
        inbound: defaultdict[int, float] = defaultdict(float)
        unknown = 0
        if all(p.bytes_in_per_s is None for row, _, p in self._known if row.adding):
            return None
        for row, _, p in self._known:
            if p.bytes_in_per_s is None:
                unknown += bool(row.adding)
                continue
            for broker in row.adding:
                inbound[broker] += p.bytes_in_per_s
        need, broker = max(((rate, -id_) for id_, rate in inbound.items()), default=(0.0, 0))
        throttle = self._options.throttle
        figure = f"{throttle / 1e6:,.1f} > {need / 1e6:,.1f} MB/s"
        if throttle <= need:
            problem = coded(
                CheckErrorCode.THROTTLE_TOO_LOW, broker=-broker, inbound=need / 1e6, throttle=throttle / 1e6
            )
            return _build_check("throttle", CheckSubject.HEALTH, title, [problem], figure.replace(">", "≤"))
        if unknown:
            why = coded(CheckErrorCode.INBOUND_UNKNOWN, partitions=unknown)
            return _build_unknown_check("throttle", CheckSubject.HEALTH, title, why)
        return _build_check("throttle", CheckSubject.HEALTH, title, [], figure)

    def _window(self) -> ChangeCheck:
        """With the bytes of the busiest broker as ``amount``: how long a waiting request would take now."""
        title = coded(CheckTitle.FITS_WINDOW)
        opens, closes = _parse_instant(self._options.not_before), _parse_instant(self._options.not_after)
        arriving, leaving = self._traffic
        sized = all(p.size_bytes is not None for row, _, p in self._known if row.adding)
        busiest = max([0, *arriving.values(), *leaving.values()]) if sized else None
        if closes is None:
            return replace(_build_check(WINDOW, CheckSubject.HEALTH, title, [], "no end"), amount=busiest)
        if self._now >= closes:
            ended = _build_check(
                WINDOW, CheckSubject.HEALTH, title, [coded(CheckErrorCode.WINDOW_HAS_ENDED, closed=closes.isoformat())]
            )
            return replace(ended, lasting=True, amount=busiest)
        start = max(self._now, opens) if opens else self._now
        length = (closes - start).total_seconds()
        needs = run_seconds(busiest, max(1, self._options.throttle))
        if needs is None:
            return _build_unknown_check(WINDOW, CheckSubject.HEALTH, title, coded(CheckErrorCode.LENGTH_NOT_KNOWN))
        figure = f"{run_time(needs)} of {format_duration(length)}"
        problems = []
        if start + timedelta(seconds=needs) > closes:
            problems = [coded(CheckErrorCode.WINDOW_TOO_SHORT, needs=needs, length=length)]
        return replace(_build_check(WINDOW, CheckSubject.HEALTH, title, problems, figure), amount=busiest)

    @cached_property
    def _traffic(self) -> tuple[Counter[int], Counter[int]]:
        """Bytes that arrive at and leave from each broker, as far as sizes are known."""
        arriving: Counter[int] = Counter()
        leaving: Counter[int] = Counter()
        for row, _, p in self._known:
            adding = row.adding
            if p.size_bytes and adding:
                leaving[p.leader if p.leader is not None else row.current[0]] += p.size_bytes * len(adding)
                for broker in adding:
                    arriving[broker] += p.size_bytes
        return arriving, leaving

    def _old(self, kind: FactKind, read: RefreshStatus) -> CodedMessage | None:
        """Return what keeps facts from being relied on; None where they can."""
        if read.taken_at is None:
            quorum = kind is FactKind.QUORUM
            return (
                coded(CheckErrorCode.QUORUM_NEVER_READ)
                if quorum
                else coded(CheckErrorCode.FACTS_NEVER_READ, facts=kind)
            )
        if read.stale(self._now):
            ago = (self._now - read.taken_at).total_seconds()
            if kind is FactKind.QUORUM:
                return coded(CheckErrorCode.QUORUM_READ_LONG_AGO, ago=ago)
            return coded(CheckErrorCode.FACTS_READ_LONG_AGO, facts=kind, ago=ago)
        return None


def _count_moves(
    replicas: tuple[int, ...], racks: Mapping[int, str], number: int, known: dict[tuple[str, ...], int]
) -> int:
    key = tuple(racks.get(broker, "\0") for broker in replicas)
    found = known.get(key)
    if found is None:
        found = known[key] = judge_spread(replicas, racks, number).moves
    return found


def _build_check(
    code: str, about: CheckSubject, title: CodedMessage, problems: Sequence[CodedMessage], figure: str = ""
) -> ChangeCheck:
    result = CheckResult.FAILED if problems else CheckResult.PASSED
    return ChangeCheck(code, about, result, title, figure, tuple(problems[:MOST_PROBLEMS]), len(problems))


def _build_unknown_check(code: str, about: CheckSubject, title: CodedMessage, *why: CodedMessage) -> ChangeCheck:
    return ChangeCheck(code, about, CheckResult.UNKNOWN, title, "", why, len(why))


def _format_share(good: int, total: int) -> str:
    return f"{good:,} of {total:,}"


def _parse_instant(text: str) -> datetime | None:
    """Return the UTC instant of an option in ISO 8601; None for '' (open)."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None
