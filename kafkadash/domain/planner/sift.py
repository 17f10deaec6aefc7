"""The exact flow of a large cluster by that of the few partitions that can matter.

What costs least to move are the small ones. So most partitions are kept as they are, the others are placed exactly, and
the prices of that placement are offered to all: whoever could be placed cheaper at them takes part in the next round.
When nobody could, those prices prove that all of them together are placed with the least bytes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kafkadash.domain.planner.certificate import cheapest, prices_of
from kafkadash.domain.planner.decode import NotPlaced, decoded
from kafkadash.domain.planner.demand import NOBODY, Answer, Demand, Flags, Ints
from kafkadash.domain.planner.flow import NoFlow, solve

WORTH_IT = 5_000
"""Partitions; fewer are solved at once."""
SPARE, MORE = 20, 8
"""Replicas that each broker offers beyond those that it has too many; times as many where that was not enough."""
ROUNDS, PLACED = 12, 3
LARGEST_SHARE = 0.7
"""Of the partitions; if more take part, it is no gain."""


def sifted(demand: Demand) -> Answer | None:
    """A placement of the least bytes; None where all partitions have to be solved at once to know."""
    if demand.partitions < WORTH_IT:
        return None
    settled = demand.settled
    spare = SPARE
    taking = ~settled | _offered(demand, settled, spare)
    for _ in range(ROUNDS):
        if np.count_nonzero(taking) > LARGEST_SHARE * demand.partitions:
            return None
        part = _part(demand, taking)
        answer = _placed(part)
        if answer is None:
            spare *= MORE
            taking |= _offered(demand, settled, spare)
            continue
        prices = prices_of(part, answer.stays, answer.new)
        if prices is None:
            return None
        tempted = _tempted(demand, prices, np.flatnonzero(~taking))
        if not len(tempted):
            return _whole(demand, taking, answer)
        taking[tempted] = True
    return None


def _offered(demand: Demand, settled: Flags, spare: int) -> Flags:
    """P: the cheapest partitions of each broker, as many as it has too many and some more."""
    counts = np.bincount(demand.held[demand.may_stay], minlength=demand.brokers)
    wanted = spare + np.where(counts > demand.most, counts - demand.least, 0)
    rows = np.flatnonzero(settled)
    rows = rows[np.argsort(demand.bytes[rows], kind="stable")]
    leaving = demand.may_stay[rows] & ~demand.must_stay[rows]
    brokers = np.where(leaving, demand.held[rows], demand.brokers).ravel().astype(np.int32)
    order = np.argsort(brokers, kind="stable")
    many = np.bincount(brokers, minlength=demand.brokers + 1)
    begin = np.cumsum(many) - many
    most = np.minimum(wanted, many[:-1])
    chosen = [order[start : start + some] for start, some in zip(begin[:-1], most, strict=True)]
    offered = np.zeros(demand.partitions, np.bool_)
    offered[rows[np.concatenate(chosen) // demand.held.shape[1]]] = True
    return offered


def _part(demand: Demand, taking: Flags) -> Demand:
    """The partitions that take part, and what the others leave of the bounds."""
    kept = np.bincount(demand.held[demand.may_stay & ~taking[:, None]], minlength=demand.brokers)
    return replace(demand.only(taking), least=demand.least - kept, most=demand.most - kept)


def _placed(part: Demand) -> Answer | None:
    """None where that cannot be had with these partitions alone."""
    explicit: Ints | None = None
    for _ in range(PLACED):
        try:
            return decoded(part, solve(part, explicit))
        except NoFlow:
            return None
        except NotPlaced as left:
            explicit = left.partitions if explicit is None else np.union1d(explicit, left.partitions)
    return None


def _tempted(demand: Demand, prices: Ints, rows: Ints) -> Ints:
    """Which of these partitions, that stay as they are, would rather not at the prices."""
    gain = int(prices[demand.receivers].max(initial=0)) - int(prices.min(initial=0))
    rows = rows[demand.bytes[rows] < gain]
    some = demand.only(rows)
    kept = np.where(some.may_stay, -prices[some.held], 0).sum(axis=1)
    tempted: Ints = rows[cheapest(some, prices) < kept]
    return tempted


def _whole(demand: Demand, taking: Flags, answer: Answer) -> Answer:
    stays = demand.may_stay.copy()
    stays[taking] = answer.stays
    new = np.full((demand.partitions, answer.new.shape[1]), NOBODY, np.int64)
    new[taking] = answer.new
    return Answer(stays, new)
