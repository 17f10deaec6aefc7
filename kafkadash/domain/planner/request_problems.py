"""Whether a request can be planned at all, before anything is placed: on a page, in a command, in the child process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kafkadash.domain.planner.planned import brokers_named, why_unfit
from kafkadash.domain.planner.request import (
    ADD,
    BALANCE,
    DRAIN,
    PLANNED_MODES,
    REPAIR_RACKS,
    REPLACE,
    SET_RF,
    PlanRequest,
)
from kafkadash.domain.planner.topic_choice import BadPattern, chooses, chosen, compiled
from kafkadash.domain.planner.topology import Broker, Topology
from kafkadash.domain.problem import Problem, ProblemCode
from kafkadash.domain.refusals import asked as said
from kafkadash.domain.refusals import plan_requests as own
from kafkadash.domain.wording import capital, count, listed_shortly, size

_COPYING = (ADD, DRAIN, REPLACE, REPAIR_RACKS, SET_RF, BALANCE)


def problems_of(request: PlanRequest, topology: Topology) -> list[Problem]:
    """A sentence for each thing that keeps the request from being planned on this cluster; none where nothing does."""
    judge = _Judge(request, topology)
    found = [*judge.figures(), *judge.topics()]
    if request.mode in PLANNED_MODES:
        found += [*judge.named(), *judge.factor()]
    if request.mode in _COPYING:
        found += judge.racks()
        if not found:
            found += [*judge.receivers_left(), *judge.disks()]
    return found


def receivers(request: PlanRequest, topology: Topology) -> list[Broker]:
    """Who may be given new replicas, by id; in a mode that copies nothing nobody."""
    if request.mode not in _COPYING:
        return []
    allowed = set(topology.brokers if request.targets is None else request.targets)
    if not request.rebalance and request.mode in (ADD, REPLACE):
        allowed &= set(request.brokers if request.mode == ADD else request.replacements)
    if request.mode in (DRAIN, REPLACE):
        allowed -= set(request.brokers)
    return [broker for id_, broker in sorted(topology.brokers.items()) if id_ in allowed and broker.eligible]


def limit_passed_today(request: PlanRequest, topology: Topology) -> list[Problem]:
    """For a limit that somebody chose for this very plan: that one of those that may be given replicas is above it.

    Where the limit is the usual one, such a broker is given nothing, and all others are; see ``problems_of``.
    """
    over = _over_today(request, receivers(request, topology))
    return [_passed(request, over)] if over else []


def _over_today(request: PlanRequest, brokers: Sequence[Broker]) -> dict[Broker, float]:
    """Those above the disk limit before anything moves, with the share of their disk that is in use."""
    limit = request.disk_limit
    shares = {
        broker: broker.used_bytes / broker.disk_bytes
        for broker in brokers
        if broker.disk_bytes and broker.used_bytes is not None
    }
    return {broker: share for broker, share in shares.items() if limit is not None and share > limit}


def _passed(request: PlanRequest, over: Mapping[Broker, float]) -> Problem:
    fullest = max(over, key=lambda broker: (over[broker], -broker.id))
    sentence = own.DISK_LIMIT_PASSED(
        broker=fullest.id,
        share=f"{100 * over[fullest]:.1f} %",
        used=size(fullest.used_bytes or 0),
        total=size(fullest.disk_bytes or 0),
        more=f" (the fullest of {len(over):,})" if len(over) > 1 else "",
        limit=100 * (request.disk_limit or 0),
    )
    return Problem(ProblemCode.DISK_LIMIT, sentence)


class _Judge:
    def __init__(self, request: PlanRequest, topology: Topology) -> None:
        self._request, self._topology = request, topology
        self._known = topology.brokers

    def figures(self) -> Iterator[Problem]:
        """Numbers that mean nothing, whatever the cluster."""
        eps, limit, most = self._request.eps, self._request.disk_limit, self._request.most_replicas
        if eps is not None and not 0 <= eps <= 1:
            yield Problem(ProblemCode.EPS, own.EPS_OUTSIDE(eps=eps))
        if limit is not None and not 0 <= limit <= 1:
            yield Problem(ProblemCode.DISK_LIMIT, own.DISK_LIMIT_OUTSIDE(limit=limit))
        if most is not None and most < 1:
            yield Problem(ProblemCode.MOST_REPLICAS, own.MOST_REPLICAS_TOO_LOW(most=most))

    def topics(self) -> Iterator[Problem]:
        request, names = self._request, self._topology.topics
        unknown = sorted(set(request.topics) - names.keys())
        if unknown:
            yield Problem(ProblemCode.UNKNOWN_TOPIC, own.TOPICS_UNKNOWN(topics=listed_shortly(unknown, 8)))
        faults = list(self._patterns())
        yield from faults
        if chooses(request) and names and not unknown and not faults and not chosen(request, names):
            why = f"no name matches “{request.pattern}”"
            if request.excluded and chosen(replace(request, excluded=""), names):
                why = f"“{request.excluded}” excludes them"
            topics = count(len(names), "topic")
            yield Problem(ProblemCode.NO_TOPIC, own.NO_TOPIC_CHOSEN(topics=topics, why=why))

    def _patterns(self) -> Iterator[Problem]:
        for pattern in filter(None, (self._request.pattern, self._request.excluded)):
            try:
                compiled(pattern)
            except BadPattern as error:
                yield Problem(ProblemCode.REGULAR_EXPRESSION, own.PATTERN_WRONG(pattern=pattern, fault=error))

    def named(self) -> Iterator[Problem]:
        """The brokers that are named, and those that have to be."""
        request = self._request
        brokers, others = set(request.brokers), set(request.replacements)
        missing = {DRAIN: said.NO_BROKER_NAMED, ADD: own.NO_BROKERS_TO_ADD, REPLACE: own.NO_BROKERS_TO_REPLACE}
        if not brokers and request.mode in missing:
            yield Problem(ProblemCode.NO_BROKER, missing[request.mode]())
        leave = request.mode in (DRAIN, REPLACE)
        # One that is not registered any more, but holds replicas still, can be drained; it can be given none.
        unknown = brokers - self._known.keys() - (self._holding() if leave else set())
        takers = others if request.mode == REPLACE else brokers if request.mode == ADD else set()
        unknown |= takers - self._known.keys()
        if unknown:
            there = f"there are {listed_shortly(list(map(str, sorted(self._known))), 20)}"
            verb = "is" if len(unknown) == 1 else "are"
            named = brokers_named(sorted(unknown))
            sentence = said.BROKERS_UNKNOWN(verb=verb, brokers=named, there=there if self._known else "none is known")
            yield Problem(ProblemCode.UNKNOWN_BROKER, sentence)
        odd = set(request.targets or ()) - self._known.keys()
        if odd:
            yield Problem(ProblemCode.UNKNOWN_BROKER, said.TARGETS_UNKNOWN(brokers=brokers_named(sorted(odd))))
        if request.mode == REPLACE and brokers:
            yield from self._replacements(brokers, others)
        for id_ in sorted(takers & self._known.keys() - brokers if leave else takers & self._known.keys()):
            if not self._known[id_].eligible:
                why = why_unfit(self._known[id_])
                yield Problem(ProblemCode.UNFIT_BROKER, said.BROKER_UNFIT(broker=id_, why=why, more=""))

    def _replacements(self, brokers: set[int], others: set[int]) -> Iterator[Problem]:
        if not others:
            yield Problem(ProblemCode.NO_REPLACEMENT, own.NO_REPLACEMENTS(brokers=brokers_named(sorted(brokers))))
        both = sorted(brokers & others)
        if both:
            sentence = own.REPLACED_BY_ITSELF(brokers=capital(brokers_named(both)))
            yield Problem(ProblemCode.REPLACED_BY_ITSELF, sentence)

    def factor(self) -> Iterator[Problem]:
        if self._request.mode != SET_RF:
            return
        factor = self._request.factor
        can = sum(broker.alive for broker in self._known.values())
        if factor is None:
            yield Problem(ProblemCode.NO_FACTOR, own.NO_FACTOR())
        elif factor < 1:
            yield Problem(ProblemCode.FACTOR, own.FACTOR_TOO_LOW(factor=factor))
        elif factor > can:
            verb = "is" if can == 1 else "are"
            yield Problem(ProblemCode.FACTOR, own.FACTOR_TOO_HIGH(factor=factor, verb=verb, brokers=can, most=can))

    def racks(self) -> Iterator[Problem]:
        if self._request.ignore_racks:
            return
        alive = [broker for broker in self._known.values() if broker.alive]
        unnamed = sorted(broker.id for broker in alive if broker.rack is None)
        if unnamed and len(unnamed) < len(alive):
            verb = "names" if len(unnamed) == 1 else "name"
            yield Problem(ProblemCode.MIXED_RACKS, said.RACKS_MIXED(brokers=capital(brokers_named(unnamed)), verb=verb))

    def receivers_left(self) -> Iterator[Problem]:
        leaving = set(self._request.brokers) if self._request.mode in (DRAIN, REPLACE) else set()
        if leaving and {broker.id for broker in self._known.values() if broker.alive} <= leaving:
            yield Problem(ProblemCode.ALL_BROKERS, said.ALL_WOULD_BE_DRAINED())
        elif not receivers(self._request, self._topology):
            yield Problem(ProblemCode.NO_TARGET, said.NO_TARGET())

    def disks(self) -> Iterator[Problem]:
        """All that may be given replicas are above the limit before anything moves; the fullest is named."""
        able = receivers(self._request, self._topology)
        over = _over_today(self._request, able)
        if over and len(over) == len(able):
            yield _passed(self._request, over)

    def _holding(self) -> set[int]:
        return {id_ for topic in self._topology.topics.values() for p in topic.partitions for id_ in p.replicas}
