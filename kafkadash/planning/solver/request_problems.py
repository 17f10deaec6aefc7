"""Checks of a request before planning, on pages, in commands and in the child process, and the answer of every mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kafkadash.changes.plan import PartitionMove, PlanErrorCode, UnfitReason
from kafkadash.core.messages import coded, first_names
from kafkadash.core.problems import InputProblem
from kafkadash.planning.solver.request import (
    ADD,
    BALANCE,
    DRAIN,
    PLANNED_MODES,
    REPAIR_RACKS,
    REPLACE,
    SET_RF,
    BadPattern,
    PlanProof,
    PlanRequest,
    choose_topics,
    compile_pattern,
    limits_topics,
)
from kafkadash.planning.topology import ClusterTopology, PlannedBroker, PlannedPartition


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """``rows`` sorted by topic and partition; none where there is a problem. ``notices`` keep nothing from going on.

    ``proof``: how far it is from the least that has to move; None where rows were brought or nothing is moved.
    """

    rows: tuple[PartitionMove, ...]
    problems: tuple[InputProblem, ...] = ()
    notices: tuple[InputProblem, ...] = ()
    proof: PlanProof | None = None


def build_planned(
    rows: Iterable[PartitionMove],
    problems: Sequence[InputProblem],
    notices: Sequence[InputProblem],
    proof: PlanProof | None = None,
) -> PlanAnswer:
    if problems:
        return PlanAnswer((), tuple(problems), tuple(notices))
    return PlanAnswer(tuple(sorted(rows, key=lambda row: (row.topic, row.partition))), (), tuple(notices), proof)


@dataclass(frozen=True, slots=True)
class ArrivingBytes:
    """Bytes that rows copy: broker → bytes, broker → bytes of its largest new replica, and rows of unknown size."""

    bytes: Counter[int]
    largest: Mapping[int, int]
    unsized: int


def find_overflows(arriving: ArrivingBytes, topology: ClusterTopology, limit: float) -> list[InputProblem]:
    """A problem per broker that would be above ``limit`` (0 to 1) of its disk while what leaves is not yet deleted.

    A broker whose disk is not known is not judged here.
    """
    found = []
    for id_, incoming in sorted(arriving.bytes.items()):
        broker = topology.brokers.get(id_)
        rooms = broker.rooms(limit) if broker else None
        if broker is None or rooms is None:
            continue
        largest = arriving.largest.get(id_, 0)
        if incoming > sum(rooms):
            total, used = broker.disk_bytes or 0, broker.used_bytes or 0
            over = coded(
                PlanErrorCode.DISK_LIMIT,
                broker=id_,
                share=(used + incoming) / total if total else None,
                used=used,
                coming=incoming,
                total=total,
                limit=100 * limit,
                room=sum(rooms),
            )
            found.append(InputProblem(over))
        elif largest > max(rooms, default=0):
            code, room = PlanErrorCode.DISK_LIMIT_OF_A_DIRECTORY, max(rooms, default=0)
            found.append(InputProblem(coded(code, broker=id_, replica=largest, room=room, limit=100 * limit)))
    return found


def disk_notices(arriving: ArrivingBytes, topology: ClusterTopology, limit: float) -> list[InputProblem]:
    """Return the notices on what keeps the disk limit from being judged."""
    receiving, unsized = arriving.bytes.keys(), arriving.unsized
    found = []
    unknown = [b for b in sorted(receiving) if b in topology.brokers and topology.brokers[b].room(limit) is None]
    if unknown:
        found.append(InputProblem(coded(PlanErrorCode.DISK_UNJUDGED, brokers=tuple(unknown))))
    if unsized:
        found.append(InputProblem(coded(PlanErrorCode.SIZE_UNJUDGED, partitions=unsized)))
    return found


def sum_arriving(moves: Iterable[tuple[PartitionMove, PlannedPartition]]) -> ArrivingBytes:
    copied: Counter[int] = Counter()
    largest: dict[int, int] = {}
    unsized = 0
    for row, partition in moves:
        adding = row.adding
        unsized += bool(adding) and partition.size_bytes is None
        for broker in adding:
            copied[broker] += partition.size_bytes or 0
            largest[broker] = max(largest.get(broker, 0), partition.size_bytes or 0)
    return ArrivingBytes(copied, largest, unsized)


def already_moving(name: str, line: int | None = None) -> InputProblem:
    return InputProblem(coded(PlanErrorCode.MOVES_ALREADY, row=name), line)


def why_unfit(broker: PlannedBroker) -> UnfitReason:
    """Return why a broker that is not eligible can be given no replicas."""
    if not broker.alive:
        return UnfitReason.AWAY
    if broker.fenced:
        return UnfitReason.FENCED
    return UnfitReason.SILENT if broker.silent else UnfitReason.CORDONED


NO_BROKERS = {
    DRAIN: PlanErrorCode.NO_BROKER_NAMED,
    ADD: PlanErrorCode.NO_BROKERS_TO_ADD,
    REPLACE: PlanErrorCode.NO_BROKERS_TO_REPLACE,
}
_COPYING = (ADD, DRAIN, REPLACE, REPAIR_RACKS, SET_RF, BALANCE)


def problems_of(request: PlanRequest, topology: ClusterTopology) -> list[InputProblem]:
    """Return what keeps the request from being planned on this cluster."""
    judge = _RequestJudge(request, topology)
    found = [*judge.figures(), *judge.topics()]
    if request.mode in PLANNED_MODES:
        found += [*judge.named(), *judge.factor()]
    if request.mode in _COPYING:
        found += judge.racks()
        if not found:
            found += [*judge.receivers_left(), *judge.disks()]
    return found


def list_receivers(request: PlanRequest, topology: ClusterTopology) -> list[PlannedBroker]:
    """Return the brokers that may be given new replicas, by id; none in a mode that copies nothing."""
    if request.mode not in _COPYING:
        return []
    allowed = set(topology.brokers if request.targets is None else request.targets)
    if not request.rebalance and request.mode in (ADD, REPLACE):
        allowed &= set(request.brokers if request.mode == ADD else request.replacements)
    if request.mode in (DRAIN, REPLACE):
        allowed -= set(request.brokers)
    return [broker for id_, broker in sorted(topology.brokers.items()) if id_ in allowed and broker.eligible]


def limit_passed_today(request: PlanRequest, topology: ClusterTopology) -> list[InputProblem]:
    """For a limit that somebody chose for this very plan: that one of those that may be given replicas is above it.

    Where the limit is the usual one, such a broker is given nothing, and all others are; see ``problems_of``.
    """
    over = _over_today(request, list_receivers(request, topology))
    return [_report_passed_limit(request, over)] if over else []


def _over_today(request: PlanRequest, brokers: Sequence[PlannedBroker]) -> dict[PlannedBroker, float]:
    """Return the brokers above the disk limit before anything moves, with the share of their disk that is in use."""
    limit = request.disk_limit
    shares = {
        broker: broker.used_bytes / broker.disk_bytes
        for broker in brokers
        if broker.disk_bytes and broker.used_bytes is not None
    }
    return {broker: share for broker, share in shares.items() if limit is not None and share > limit}


def _report_passed_limit(request: PlanRequest, over: Mapping[PlannedBroker, float]) -> InputProblem:
    fullest = max(over, key=lambda broker: (over[broker], -broker.id))
    passed = coded(
        PlanErrorCode.DISK_LIMIT_PASSED,
        broker=fullest.id,
        share=over[fullest],
        used=fullest.used_bytes or 0,
        total=fullest.disk_bytes or 0,
        over=len(over),
        limit=100 * (request.disk_limit or 0),
    )
    return InputProblem(passed)


class _RequestJudge:
    def __init__(self, request: PlanRequest, topology: ClusterTopology) -> None:
        self._request, self._topology = request, topology
        self._known = topology.brokers

    def figures(self) -> Iterator[InputProblem]:
        """Numbers that mean nothing, whatever the cluster."""
        eps, limit, most = self._request.eps, self._request.disk_limit, self._request.most_replicas
        if eps is not None and not 0 <= eps <= 1:
            yield InputProblem(coded(PlanErrorCode.EPS_OUTSIDE, eps=eps))
        if limit is not None and not 0 <= limit <= 1:
            yield InputProblem(coded(PlanErrorCode.DISK_LIMIT_OUTSIDE, limit=limit))
        if most is not None and most < 1:
            yield InputProblem(coded(PlanErrorCode.MOST_REPLICAS_TOO_LOW, most=most))

    def topics(self) -> Iterator[InputProblem]:
        request, names = self._request, self._topology.topics
        unknown = sorted(set(request.topics) - names.keys())
        if unknown:
            yield InputProblem(coded(PlanErrorCode.TOPICS_UNKNOWN, topics=first_names(unknown, 8)))
        faults = list(self._patterns())
        yield from faults
        if not limits_topics(request) or not names or unknown or faults:
            return
        internal = self._topology.internal_topics
        if not choose_topics(request, names, internal):
            if request.excluded and choose_topics(replace(request, excluded=""), names, internal):
                code, pattern = PlanErrorCode.ALL_TOPICS_EXCLUDED, request.excluded
            else:
                code, pattern = PlanErrorCode.NO_TOPIC_CHOSEN, request.pattern
            yield InputProblem(coded(code, topics=len(names), pattern=pattern))

    def _patterns(self) -> Iterator[InputProblem]:
        for pattern in filter(None, (self._request.pattern, self._request.excluded)):
            try:
                compile_pattern(pattern)
            except BadPattern as error:
                yield InputProblem(coded(PlanErrorCode.PATTERN_WRONG, pattern=pattern, fault=str(error)))

    def named(self) -> Iterator[InputProblem]:
        """The brokers that are named, and those that have to be."""
        request = self._request
        brokers, others = set(request.brokers), set(request.replacements)
        if not brokers and request.mode in NO_BROKERS:
            yield InputProblem(coded(NO_BROKERS[request.mode]))
        leave = request.mode in (DRAIN, REPLACE)
        # One that is not registered any more, but holds replicas still, can be drained; it can be given none.
        unknown = brokers - self._known.keys() - (self._holding() if leave else set())
        takers = others if request.mode == REPLACE else brokers if request.mode == ADD else set()
        unknown |= takers - self._known.keys()
        if unknown:
            brokers_there = tuple(sorted(self._known))
            yield InputProblem(
                coded(PlanErrorCode.BROKERS_UNKNOWN, brokers=tuple(sorted(unknown)), known=brokers_there)
            )
        odd = set(request.targets or ()) - self._known.keys()
        if odd:
            yield InputProblem(coded(PlanErrorCode.TARGETS_UNKNOWN, brokers=tuple(sorted(odd))))
        if request.mode == REPLACE and brokers:
            yield from self._replacements(brokers, others)
        for id_ in sorted(takers & self._known.keys() - brokers if leave else takers & self._known.keys()):
            if not self._known[id_].eligible:
                why = why_unfit(self._known[id_])
                yield InputProblem(coded(PlanErrorCode.BROKER_UNFIT, broker=id_, why=why, entries=1))

    def _replacements(self, brokers: set[int], others: set[int]) -> Iterator[InputProblem]:
        if not others:
            yield InputProblem(coded(PlanErrorCode.NO_REPLACEMENTS, brokers=tuple(sorted(brokers))))
        both = sorted(brokers & others)
        if both:
            yield InputProblem(coded(PlanErrorCode.REPLACED_BY_ITSELF, brokers=tuple(both)))

    def factor(self) -> Iterator[InputProblem]:
        if self._request.mode != SET_RF:
            return
        factor = self._request.factor
        can = sum(broker.alive for broker in self._known.values())
        if factor is None:
            yield InputProblem(coded(PlanErrorCode.NO_FACTOR))
        elif factor < 1:
            yield InputProblem(coded(PlanErrorCode.FACTOR_TOO_LOW, factor=factor))
        elif factor > can:
            yield InputProblem(coded(PlanErrorCode.FACTOR_TOO_HIGH, factor=factor, brokers=can))

    def racks(self) -> Iterator[InputProblem]:
        if self._request.ignore_racks:
            return
        alive = [broker for broker in self._known.values() if broker.alive]
        unnamed = sorted(broker.id for broker in alive if broker.rack is None)
        if unnamed and len(unnamed) < len(alive):
            yield InputProblem(coded(PlanErrorCode.RACKS_MIXED, brokers=tuple(unnamed)))

    def receivers_left(self) -> Iterator[InputProblem]:
        leaving = set(self._request.brokers) if self._request.mode in (DRAIN, REPLACE) else set()
        if leaving and {broker.id for broker in self._known.values() if broker.alive} <= leaving:
            yield InputProblem(coded(PlanErrorCode.ALL_WOULD_BE_DRAINED))
        elif not list_receivers(self._request, self._topology):
            yield InputProblem(coded(PlanErrorCode.NO_TARGET))

    def disks(self) -> Iterator[InputProblem]:
        """All that may be given replicas are above the limit before anything moves; the fullest is named."""
        able = list_receivers(self._request, self._topology)
        over = _over_today(self._request, able)
        if over and len(over) == len(able):
            yield _report_passed_limit(self._request, over)

    def _holding(self) -> set[int]:
        return {id_ for topic in self._topology.topics.values() for p in topic.partitions for id_ in p.replicas}
