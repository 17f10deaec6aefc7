"""What keeps a request from being met, or met as evenly as wanted, in sentences with numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from kafkadash.domain.plan import Row
from kafkadash.domain.planner.demand import Demand, Ints
from kafkadash.domain.planner.disk_balance import LARGE, REST, Outside
from kafkadash.domain.planner.modes import Case, TooFew
from kafkadash.domain.planner.planned import already_moving, brokers_named, why_unfit
from kafkadash.domain.planner.request import DRAIN, REPLACE, PlanRequest
from kafkadash.domain.planner.topology import Partition, Topology
from kafkadash.domain.problem import Problem, ProblemCode
from kafkadash.domain.refusals import asked as said
from kafkadash.domain.refusals import placing
from kafkadash.domain.wording import capital, count, listed_shortly, size

MOST_NAMED = 5


def too_few(case: Case, few: TooFew, request: PlanRequest) -> Iterator[Problem]:
    """Topics whose replicas have no place left, a sentence for each topic and number of replicas."""
    if request.mode == REPLACE and not request.rebalance:
        held = [case.columns.rows[row] for row in np.flatnonzero(few.rows)]
        names = [f"{topic.name}-{p.partition}" for topic, p in held]
        sentence = placing.REPLACEMENT_HOLDS_IT(
            partitions=listed_shortly(names, MOST_NAMED),
            are="is" if len(names) == 1 else "are",
            brokers=brokers_named(sorted(set(request.replacements))),
        )
        yield Problem(ProblemCode.TOO_FEW_BROKERS, sentence)
        return
    short: dict[tuple[str, int], int] = {}
    for row in np.flatnonzero(few.rows):
        topic, partition = case.columns.rows[row]
        factor = len(partition.replicas) if case.aim.factor is None else case.aim.factor
        key, room = (topic.name, factor), int(few.room[row])
        short[key] = min(room, short.get(key, room))
    for (name, factor), room in short.items():
        sentence = said.TOO_FEW_BROKERS(topic=name, replicas=count(factor, "replica"), brokers=count(room, "broker"))
        yield Problem(ProblemCode.TOO_FEW_BROKERS, sentence)


def too_full(case: Case, demand: Demand, request: PlanRequest) -> Iterator[Problem]:
    """What the maximum of replicas per broker leaves no place for."""
    if request.most_replicas is None:
        return
    kept = np.bincount(demand.held[demand.must_stay], minlength=demand.brokers) + case.aim.beside
    over = np.flatnonzero(kept > request.most_replicas)
    for broker in over[:MOST_NAMED]:
        id_, held = int(case.columns.ids[broker]), int(kept[broker])
        sentence = placing.KEEPS_MORE_THAN_ALLOWED(
            broker=id_, replicas=count(held, "replica"), most=request.most_replicas
        )
        yield Problem(ProblemCode.REPLICAS_PER_BROKER, sentence)
    total = int(demand.factors.sum()) + int(case.aim.beside.sum())
    could = np.bincount(demand.held[demand.may_stay], minlength=demand.brokers) + case.aim.beside
    room = int(np.where(demand.receives, request.most_replicas, np.minimum(could, request.most_replicas)).sum())
    if not len(over) and room < total:
        sentence = placing.NO_ROOM_AT_THE_MAXIMUM(most=request.most_replicas, room=room, total=total)
        yield Problem(ProblemCode.REPLICAS_PER_BROKER, sentence)


def lost_racks(case: Case, demand: Demand, request: PlanRequest) -> Iterator[Problem]:
    """Racks that lose their last broker, where that leaves partitions in fewer racks than they are in."""
    columns = case.columns
    if request.accept_fewer_racks or request.mode not in (DRAIN, REPLACE) or len(columns.racks) < 2:
        return
    named = np.array([bool(rack) for rack in columns.racks])
    rows, places = np.nonzero(demand.held >= 0)
    now = np.zeros((len(demand.held), len(columns.racks)), np.bool_)
    now[rows, columns.rack_of[demand.held[rows, places]]] = True
    before = np.count_nonzero(now & named, axis=1)
    after = np.minimum(demand.factors, np.count_nonzero((demand.rack_most > 0) & named, axis=1))
    fewer = Counter((int(b), int(a)) for b, a in zip(before, after, strict=True) if a < b)
    if not fewer:
        return
    lost = np.flatnonzero(named & ~np.isin(np.arange(len(columns.racks)), columns.rack_of[demand.receives]))
    leaving = columns.ids[case.aim.leaving & np.isin(columns.rack_of, lost)].tolist()
    names = [columns.racks[rack] for rack in np.unique(columns.rack_of[np.isin(columns.ids, leaving)])]
    parts = [
        f"{count(number, 'partition')} would be in {count(a, 'rack')} instead of {b}"
        for (b, a), number in sorted(fewer.items(), reverse=True)
    ]
    many = len(leaving) > 1
    sentence = said.LAST_OF_A_RACK(
        brokers=capital(brokers_named(leaving)),
        verb="are" if many else "is",
        racks=f"rack {names[0]}" if len(names) == 1 else f"racks {listed_shortly(names, 8)}",
        them="them" if many else "it",
        fewer=listed_shortly(parts, 3),
    )
    yield Problem(ProblemCode.LAST_OF_A_RACK, sentence)


def left_out(case: Case) -> Iterator[Problem]:
    """Partitions that are not planned because they move already."""
    busy = [
        f"{topic.name}-{p.partition}" for (topic, p), moves in zip(case.whole.rows, case.busy, strict=True) if moves
    ]
    if busy:
        are = "is" if len(busy) == 1 else "are"
        sentence = placing.MOVING_LEFT_OUT(partitions=listed_shortly(busy, MOST_NAMED), are=are)
        yield Problem(ProblemCode.LEFT_OUT, sentence)


def idle(case: Case, request: PlanRequest) -> Iterator[Problem]:
    """Brokers that are to be emptied and are empty."""
    if request.mode not in (DRAIN, REPLACE):
        return
    held = np.bincount(case.whole.held[case.whole.held >= 0], minlength=len(case.whole.ids))
    empty = sorted(set(request.brokers) - set(case.whole.ids[held > 0].tolist()))
    hold = "holds" if len(empty) == 1 else "hold"
    if empty and len(empty) == len(set(request.brokers)):
        yield Problem(
            ProblemCode.NOTHING_TO_DO, said.NOTHING_TO_DRAIN(brokers=capital(brokers_named(empty)), hold=hold)
        )
    elif empty:
        yield Problem(ProblemCode.HOLDS_NOTHING, said.HOLDS_NOTHING(brokers=capital(brokers_named(empty)), hold=hold))


def moving_that_must(case: Case, request: PlanRequest) -> Iterator[Problem]:
    """Partitions on brokers that are to be emptied, and that move already: the brokers would not be empty."""
    if request.mode not in (DRAIN, REPLACE):
        return
    leaving = set(request.brokers)
    for (topic, p), moves in zip(case.whole.rows, case.busy, strict=True):
        if moves and not leaving.isdisjoint(p.replicas):
            yield already_moving(f"{topic.name}-{p.partition}")


def uneven(case: Case, wanted: Demand, met: Demand) -> Iterator[Problem]:
    """Brokers that cannot have as many replicas as would be even."""
    ids = case.columns.ids
    short, over = np.flatnonzero(met.least < wanted.least), np.flatnonzero(met.most > wanted.most)
    if not len(short) and not len(over):
        return
    parts = []
    for brokers, bounds, word in ((over, "most", "more"), (short, "least", "fewer")):
        for broker in brokers[:MOST_NAMED]:
            have = int(getattr(met, bounds)[broker] + case.aim.beside[broker])
            want = int(getattr(wanted, bounds)[broker] + case.aim.beside[broker])
            parts.append(f"broker {int(ids[broker])} has {have:,} instead of {want:,} ({word} than even)")
    more = len(short) + len(over) - len(parts)
    listed = "; ".join(parts) + (f"; and {more:,} more" if more > 0 else "")
    yield Problem(ProblemCode.UNEVEN, placing.AS_EVEN_AS_POSSIBLE(brokers=listed))


def left_on_down(topology: Topology, case: Case, counts: Ints, request: PlanRequest) -> Iterator[Problem]:
    """Brokers that are down and hold replicas at the end, in modes that empty none. ``counts`` B: replicas then."""
    if request.mode in (DRAIN, REPLACE):
        return
    for place in np.flatnonzero(counts):
        id_, held = int(case.whole.ids[place]), int(counts[place])
        broker = topology.brokers.get(id_)
        if broker is not None and broker.up:
            continue
        is_down = why_unfit(broker) if broker is not None else "is away"
        stay = "stays" if held == 1 else "stay"
        sentence = placing.LEFT_ON_ONE_DOWN(replicas=count(held, "replica"), stay=stay, broker=id_, is_down=is_down)
        yield Problem(ProblemCode.LEFT_ON_ONE_DOWN, sentence)


def outside(case: Case, brokers: Sequence[Outside]) -> Iterator[Problem]:
    """Brokers whose disks could not be brought within eps."""
    for one in brokers[:MOST_NAMED]:
        values = {"broker": int(case.columns.ids[one.broker]), "held": size(one.bytes), "mean": size(one.mean)}
        if one.why == LARGE:
            topic, partition = case.columns.rows[one.row]
            sentence = placing.OUTSIDE_FOR_A_LARGE_ONE(**values, partition=f"{topic.name}-{partition.partition}")
        elif one.why == REST:
            sentence = placing.OUTSIDE_FOR_THE_REST(**values)
        else:
            sentence = placing.OUTSIDE_AND_STUCK(**values)
        yield Problem(ProblemCode.OUTSIDE_EPS, sentence)
    if len(brokers) > MOST_NAMED:
        more = len(brokers) - MOST_NAMED
        yield Problem(ProblemCode.OUTSIDE_EPS, placing.MORE_OUTSIDE(brokers=count(more, "broker")))


def silent(rows: Sequence[tuple[Row, Partition]]) -> Iterator[Problem]:
    """Partitions without a leader: nothing can be copied."""
    found = [row.name for row, partition in rows if partition.leader is None and row.adding]
    if found:
        has = "has" if len(found) == 1 else "have"
        yield Problem(ProblemCode.NO_LEADER, said.LEADER_MISSING(partitions=listed_shortly(found), has=has))
