"""Rules of restarts: whether a broker may be restarted now, and an order in which all of them may, one at a time.

A restart takes a broker out as a failure does, so its effects are those of ``simulate_failure``. A running reassignment
may end while the broker restarts (org.apache.kafka.controller.PartitionReassignmentReplicas: once all adding replicas
are in the ISR, those that are removed leave it), so such a partition must bear the restart as it is and as it is then.

A restart is allowed only if that is certain. Facts that are old, missing or hidden leave it open.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from kafkadash.core.messages import CodedMessage, coded, first_names
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.simulation import (
    HitPartition,
    QuorumAfter,
    SimulatedPartition,
    quorum_after,
    simulate_failure,
    single_losses,
)
from kafkadash.monitoring.quorum.rules import QuorumHealth

MOST_NAMED = 3
_Place = tuple[str, int]
"""Topic and partition."""


class RestartVerdict(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class RestartBroker(NamedTuple):
    """Broker that is registered, or that has replicas; ``state`` as of ``monitoring.brokers.broker_word``."""

    id: int
    rack: str | None
    state: str

    @property
    def is_down(self) -> bool:
        return self.state in ("fenced", "gone")


class EndingMove(NamedTuple):
    """Reassignment that runs, or that ended after the metadata was read; ``replicas`` are those at its end.

    ``cancelled``: it ended without its adding replicas.
    """

    adding: frozenset[int]
    replicas: Sequence[int]
    running: bool = True
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class RestartFacts:
    """Stored facts of a cluster, as of one moment.

    ``stale`` and ``early`` are kinds of facts, as text: too old, or read before the check began. ``quorum`` is None
    where it is unknown, and with ZooKeeper, whose servers are no brokers. ``hidden_topics`` is a lower bound, None
    where that is unknown. ``catching_up``: broker → seconds left, None where they are unknown. ``behind_since``:
    replicas by broker that were found outside the ISR after the metadata was read.
    """

    partitions: Sequence[SimulatedPartition]
    brokers: Mapping[int, RestartBroker]
    moves: Mapping[_Place, EndingMove] = field(default_factory=dict)
    kraft: bool = True
    quorum: QuorumHealth | None = None
    controller: int | None = None
    hidden_topics: int | None = 0
    metadata_stale: bool = False
    stale: Sequence[str] = ()
    early: Sequence[str] = ()
    quorum_stale: bool = False
    catching_up: Mapping[int, float | None] = field(default_factory=dict)
    behind_since: Mapping[int, int] = field(default_factory=dict)

    @property
    def serving(self) -> frozenset[int]:
        return frozenset(broker.id for broker in self.brokers.values() if broker.state == "up")

    @property
    def silent(self) -> frozenset[int]:
        return frozenset(broker.id for broker in self.brokers.values() if broker.state == "silent")


@dataclass(frozen=True, slots=True)
class BehindBroker:
    """Broker with ``replicas`` that are not in sync, or without which partitions have no leader.

    ``names``: the first of these partitions. ``seconds_left`` is None where it is unknown.
    """

    id: int
    state: str
    replicas: int
    names: tuple[str, ...] = ()
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class RestartCheck:
    """Answer for one broker. ``sentence`` has the verdict, ``reasons`` what is against a restart, worst first.

    ``offline`` and ``under_min_isr`` are partitions that get there by the restart, ``behind`` the other brokers that
    have not caught up. ``quorum`` is None where it is unknown.
    """

    broker: RestartBroker
    verdict: RestartVerdict
    sentence: CodedMessage
    reasons: Sequence[CodedMessage] = ()
    offline: Sequence[HitPartition] = ()
    under_min_isr: Sequence[HitPartition] = ()
    unknown_min_isr: int = 0
    behind: Sequence[BehindBroker] = ()
    quorum: QuorumAfter | None = None


_AGAINST = frozenset(
    {
        OnCallErrorCode.RESTART_GOES_OFFLINE,
        OnCallErrorCode.RESTART_STOPS_WRITES,
        OnCallErrorCode.RESTART_LOSES_QUORUM,
        OnCallErrorCode.RESTART_OTHERS_BEHIND,
    }
)
"""Reasons that forbid a restart; the others leave it open."""


def judge_restart(facts: RestartFacts, broker: int) -> RestartCheck:
    """Return whether this broker may be restarted now. Raises KeyError for a broker that ``facts`` do not have.

    A broker that is down already serves nothing, so only the quorum can be hurt: its process may run, fenced, and vote.
    Before Kafka 4.0 such a broker is not listed.
    """
    own = facts.brokers[broker]
    offline, under, unknown = ([], [], 0) if own.is_down else _simulate_restart(facts, broker)
    behind = () if own.is_down else find_behind(facts, broker)
    after = quorum_after(facts.quorum, facts.brokers, {broker}) if facts.quorum else None
    reasons: list[CodedMessage] = []
    if offline:
        reasons.append(coded(OnCallErrorCode.RESTART_GOES_OFFLINE, **_count_hits(offline)))
    if under:
        reasons.append(coded(OnCallErrorCode.RESTART_STOPS_WRITES, **_count_hits(under)))
    reasons += [*_judge_quorum_after(facts, after), *_name_behind(behind), *_list_doubts(facts, broker)]
    if unknown:
        reasons.append(coded(OnCallErrorCode.RESTART_MIN_ISR_UNKNOWN, partitions=unknown))
    verdict = _decide(facts, reasons)
    code = _SENTENCES[verdict]
    if own.is_down and verdict is RestartVerdict.YES:
        code = OnCallErrorCode.RESTART_OF_DOWN
    return RestartCheck(
        own, verdict, coded(code, broker=broker), tuple(reasons), offline, under, unknown, behind, after
    )


_SENTENCES = {
    RestartVerdict.YES: OnCallErrorCode.RESTART_ALLOWED,
    RestartVerdict.NO: OnCallErrorCode.RESTART_REFUSED,
    RestartVerdict.UNKNOWN: OnCallErrorCode.RESTART_UNDECIDED,
}


def _decide(facts: RestartFacts, reasons: Sequence[CodedMessage]) -> RestartVerdict:
    """Old metadata forbids nothing and allows nothing."""
    if not reasons:
        return RestartVerdict.YES
    forbidden = any(reason.code in _AGAINST for reason in reasons)
    return RestartVerdict.NO if forbidden and not facts.metadata_stale else RestartVerdict.UNKNOWN


def _simulate_restart(facts: RestartFacts, broker: int) -> tuple[Sequence[HitPartition], Sequence[HitPartition], int]:
    """Return the partitions that go offline, those that get under min-ISR, and how many nobody can judge."""
    now = simulate_failure(_list_exposed(facts, broker), facts.serving, {broker})
    then = simulate_failure(_end_moves(facts, broker), facts.serving, {broker})
    offline = _join_hits(now.offline, then.offline)
    under = _join_hits(now.under_min_isr, then.under_min_isr, without=offline)
    return offline, under, max(now.unknown_min_isr, then.unknown_min_isr)


def _list_exposed(facts: RestartFacts, broker: int) -> Iterator[SimulatedPartition]:
    """Yield the partitions that a restart can hurt. The others keep enough of an ISR whose members are all up."""
    others_up = facts.brokers.keys() - facts.serving <= {broker}
    for p in facts.partitions:
        isr = p.isr
        if broker not in isr and p.leader != broker:
            continue
        size, least = len(isr), p.min_isr
        if least is None or size <= least or size == 1 or not others_up:
            yield p


def _end_moves(facts: RestartFacts, broker: int) -> Iterator[SimulatedPartition]:
    """Yield the partitions whose reassignment may end while the broker is down, as they are then."""
    for p in facts.partitions if facts.moves else ():
        move = facts.moves.get(p[:2])
        if move is None or p.leader is None or (move.running and broker in move.adding):
            continue
        joined = frozenset[int]() if move.cancelled else move.adding
        isr = [r for r in move.replicas if r in p.isr or r in joined]
        if broker in isr:
            leader = p.leader if p.leader in isr else isr[0]
            yield SimulatedPartition(p.topic, p.number, leader, move.replicas, isr, p.min_isr)


def _join_hits(*lists: Sequence[HitPartition], without: Sequence[HitPartition] = ()) -> list[HitPartition]:
    """Return each partition once."""
    worse = {hit.partition[:2] for hit in without}
    found: dict[_Place, HitPartition] = {}
    for hit in (hit for hits in lists for hit in hits):
        found.setdefault(hit.partition[:2], hit)
    return [hit for place, hit in found.items() if place not in worse]


def find_behind(facts: RestartFacts, broker: int | None = None) -> tuple[BehindBroker, ...]:
    """Return the brokers but ``broker`` whose replicas are outside the ISR, by id, without replicas that are added.

    A partition without a leader counts for the brokers that could lead it.
    """
    counts: Counter[int] = Counter()
    names: defaultdict[int, list[str]] = defaultdict(list)
    for p in facts.partitions:
        if p.leader is not None and len(p.isr) >= len(p.replicas):
            continue
        awaited = (
            [r for r in p.replicas if r not in p.isr] if p.leader is not None else p.isr or p.eligible or p.replicas
        )
        move = facts.moves.get(p[:2])
        for replica in awaited:
            if replica == broker or (move is not None and replica in move.adding):
                continue
            counts[replica] += 1
            if len(names[replica]) < MOST_NAMED:
                names[replica].append(f"{p.topic}-{p.number}")
    for replica, number in facts.behind_since.items():
        if replica != broker and replica not in counts:
            counts[replica] = number
    return tuple(
        BehindBroker(
            id=each,
            state=facts.brokers[each].state if each in facts.brokers else "gone",
            replicas=counts[each],
            names=tuple(names[each]),
            seconds_left=facts.catching_up.get(each),
        )
        for each in sorted(counts)
    )


def _count_hits(hits: Sequence[HitPartition]) -> dict[str, Any]:
    names = [f"{hit.partition.topic}-{hit.partition.number}" for hit in hits]
    return {"partitions": len(hits), "names": first_names(names)}


def _name_behind(behind: Sequence[BehindBroker]) -> Iterator[CodedMessage]:
    if behind:
        yield coded(
            OnCallErrorCode.RESTART_OTHERS_BEHIND,
            replicas=sum(each.replicas for each in behind),
            brokers=[each.id for each in behind],
        )


def _judge_quorum_after(facts: RestartFacts, after: QuorumAfter | None) -> Iterator[CodedMessage]:
    if after is None:
        if facts.kraft and not facts.quorum_stale:
            yield coded(OnCallErrorCode.RESTART_QUORUM_UNKNOWN)
    elif after.lost:
        yield coded(
            OnCallErrorCode.RESTART_LOSES_QUORUM,
            left=after.in_sync_then,
            voters=after.voters,
            majority=after.majority,
        )
    elif after.doubtful:
        yield coded(OnCallErrorCode.RESTART_VOTERS_UNHEARD, voters=after.unheard_then)


def _list_doubts(facts: RestartFacts, broker: int | None) -> Iterator[CodedMessage]:
    """Yield what leaves the answer open, whatever the simulation shows."""
    if facts.stale:
        yield coded(OnCallErrorCode.RESTART_FACTS_STALE, kinds=list(facts.stale))
    if facts.early:
        yield coded(OnCallErrorCode.RESTART_FACTS_EARLY, kinds=list(facts.early))
    if silent := sorted(facts.silent - {broker}):
        yield coded(OnCallErrorCode.RESTART_BROKERS_SILENT, brokers=silent)
    if facts.hidden_topics is None:
        yield coded(OnCallErrorCode.RESTART_TOPICS_UNCOUNTED)
    elif facts.hidden_topics:
        yield coded(OnCallErrorCode.RESTART_TOPICS_HIDDEN, topics=facts.hidden_topics)


class RestartPlace(StrEnum):
    """Places of brokers in the order of restarts, first to last."""

    START = "start"
    BEHIND = "behind"
    NEXT = "next"
    LATER = "later"
    AFTER_MOVES = "after moves"
    UNDECIDED = "unknown"
    NEVER = "never"


_PLACES = {place: rank for rank, place in enumerate(RestartPlace)}


@dataclass(frozen=True, slots=True)
class RestartStep:
    """Broker in the order; ``reasons``: why it comes where it does, or has no place."""

    broker: RestartBroker
    place: RestartPlace
    reasons: Sequence[CodedMessage] = ()


@dataclass(frozen=True, slots=True)
class RestartOrder:
    """Restarts one after the other; each is allowed once the one before has caught up.

    ``verdict`` is yes if all brokers have a place and the first restart is allowed now. ``never``: brokers that no
    order restarts safely. ``check`` is the answer for the first broker that is not ``BEHIND``, None without one.
    """

    verdict: RestartVerdict
    steps: Sequence[RestartStep]
    never: Sequence[RestartStep]
    check: RestartCheck | None


def order_restarts(facts: RestartFacts, brokers: Collection[int]) -> RestartOrder:
    """Return the order of these brokers: those that are down or behind, the others by rack, the controller last."""
    down = {broker.id for broker in facts.brokers.values() if broker.is_down}
    behind = {each.id for each in find_behind(facts)}
    reasons = _find_obstacles(facts)
    ranked: list[RestartStep] = []
    for broker in (facts.brokers[each] for each in sorted(brokers)):
        own = reasons.get(broker.id, ())
        place = RestartPlace.LATER
        if broker.id in down:
            place, own = RestartPlace.START, ()
        elif own:
            place = max((_REASON_PLACES[reason.code] for reason in own), key=_PLACES.__getitem__)
        elif broker.id in behind:
            place = RestartPlace.BEHIND
        ranked.append(RestartStep(broker, place, own))
    ranked.sort(key=lambda step: _sort_key(facts, step))
    steps = [step for step in ranked if step.place is not RestartPlace.NEVER]
    never = [step for step in ranked if step.place is RestartPlace.NEVER]
    first = next((step for step in steps if step.place is not RestartPlace.BEHIND), None)
    check = judge_restart(facts, first.broker.id) if first else None
    allowed = check is not None and check.verdict is RestartVerdict.YES
    if first and allowed and first.place is RestartPlace.LATER:
        steps[steps.index(first)] = replace(first, place=RestartPlace.NEXT)
    return RestartOrder(_judge_order(facts, steps, never, check), steps, never, check)


def _judge_order(
    facts: RestartFacts, steps: Sequence[RestartStep], never: Sequence[RestartStep], check: RestartCheck | None
) -> RestartVerdict:
    if facts.metadata_stale:
        return RestartVerdict.UNKNOWN
    if never or check is None or check.verdict is RestartVerdict.NO:
        return RestartVerdict.NO
    undecided = any(step.place is RestartPlace.UNDECIDED for step in steps)
    return RestartVerdict.UNKNOWN if undecided else check.verdict


def _sort_key(facts: RestartFacts, step: RestartStep) -> tuple[int, bool, bool, str, int]:
    rack = step.broker.rack
    return _PLACES[step.place], step.broker.id == facts.controller, rack is None, rack or "", step.broker.id


_REASON_PLACES: Mapping[str, RestartPlace] = {
    OnCallErrorCode.RESTART_ALWAYS_OFFLINE: RestartPlace.NEVER,
    OnCallErrorCode.RESTART_ALWAYS_STOPS_WRITES: RestartPlace.NEVER,
    OnCallErrorCode.RESTART_ALWAYS_LOSES_QUORUM: RestartPlace.NEVER,
    OnCallErrorCode.RESTART_MIN_ISR_UNKNOWN: RestartPlace.UNDECIDED,
    OnCallErrorCode.RESTART_AFTER_MOVES: RestartPlace.AFTER_MOVES,
}


def _find_obstacles(facts: RestartFacts) -> dict[int, list[CodedMessage]]:
    """Return what is against a restart of each broker even with all replicas in sync; brokers without any are left out.

    Running reassignments count as they end, and beside that as they are: then the restart can follow them.
    """
    at_end, so_far = [], []
    for p in facts.partitions:
        move = facts.moves.get(p[:2]) if facts.moves else None
        replicas = p.replicas if move is None else move.replicas
        if _is_thin(len(replicas), p.min_isr):
            at_end.append(_with_all_in_sync(p, replicas))
        if move is not None and move.running:
            stays = [r for r in p.replicas if r in p.isr or r not in move.adding]
            if _is_thin(len(stays), p.min_isr):
                so_far.append(_with_all_in_sync(p, stays))
    racks: dict[int, str | None] = dict.fromkeys(r for p in (*at_end, *so_far) for r in p.replicas)
    topics = _name_topics(at_end)
    found: defaultdict[int, list[CodedMessage]] = defaultdict(list)
    for loss in single_losses(at_end, racks):
        (broker,) = loss.brokers
        for code, partitions in (
            (OnCallErrorCode.RESTART_ALWAYS_OFFLINE, loss.offline),
            (OnCallErrorCode.RESTART_ALWAYS_STOPS_WRITES, loss.under_min_isr),
        ):
            if partitions:
                names = first_names(list(topics[broker, code]))
                found[broker].append(CodedMessage(code, {"partitions": partitions, "topics": names}))
        if loss.unknown_min_isr:
            unknown = coded(OnCallErrorCode.RESTART_MIN_ISR_UNKNOWN, partitions=loss.unknown_min_isr)
            found[broker].append(unknown)
    for loss in single_losses(so_far, racks):
        (broker,) = loss.brokers
        if waiting := loss.offline + loss.under_min_isr:
            found[broker].append(coded(OnCallErrorCode.RESTART_AFTER_MOVES, partitions=waiting))
    for voter in _find_needed_voters(facts):
        assert facts.quorum is not None
        voters = len(facts.quorum.voters)
        found[voter].append(coded(OnCallErrorCode.RESTART_ALWAYS_LOSES_QUORUM, voters=voters))
    return found


def list_lasting_reasons(facts: RestartFacts, broker: int) -> list[CodedMessage]:
    """Return what is against each restart of this broker, so that no waiting helps."""
    found = _find_obstacles(facts).get(broker, [])
    return [reason for reason in found if _REASON_PLACES[reason.code] is RestartPlace.NEVER]


def _is_thin(replicas: int, min_isr: int | None) -> bool:
    """Return whether a partition with all replicas in sync may suffer from the loss of one."""
    return replicas == 1 or min_isr is None or replicas <= min_isr


def _with_all_in_sync(partition: SimulatedPartition, replicas: Sequence[int]) -> SimulatedPartition:
    leader = next(iter(replicas), None)
    return SimulatedPartition(partition.topic, partition.number, leader, replicas, replicas, partition.min_isr)


def _name_topics(thin: Sequence[SimulatedPartition]) -> Mapping[tuple[int, OnCallErrorCode], dict[str, None]]:
    """Return the topics for which each broker cannot be restarted, by what its restart does to them."""
    topics: defaultdict[tuple[int, OnCallErrorCode], dict[str, None]] = defaultdict(dict)
    for p in thin:
        if len(p.replicas) == 1:
            topics[p.replicas[0], OnCallErrorCode.RESTART_ALWAYS_OFFLINE][p.topic] = None
        elif p.min_isr == len(p.replicas):
            for replica in p.replicas:
                topics[replica, OnCallErrorCode.RESTART_ALWAYS_STOPS_WRITES][p.topic] = None
    return topics


def _find_needed_voters(facts: RestartFacts) -> Iterator[int]:
    """Yield brokers that are voters of a quorum which cannot spare one, even with all of them in sync."""
    voters = [] if facts.quorum is None else [voter.node.id for voter in facts.quorum.voters]
    if facts.quorum is not None and len(voters) - 1 < facts.quorum.majority:
        yield from (voter for voter in voters if voter in facts.brokers)
