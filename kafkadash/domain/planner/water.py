"""Filling brokers and racks evenly, like water: how many replicas each should have at the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kafkadash.domain.planner.demand import Ints


def rack_bounds(factors: Ints, stays: Ints, room: Ints) -> tuple[Ints, Ints]:
    """P×R: least and most replicas of each partition per rack, as even as what must stay and what has room allows.

    ``factors`` P: replicas at the end. ``stays`` P×R: replicas that must stay there. ``room`` P×R: brokers that may
    hold one at the end, at least as many as stay. Where all racks have room and nothing must stay these are ⌊RF/R⌋ and
    ⌈RF/R⌉. A partition that finds no room for all of its replicas is given what there is.
    """
    most_level = int(factors.max()) if len(factors) else 0
    level = np.zeros(len(factors), np.int64)
    for tried in range(1, most_level + 1):
        filled = np.maximum(stays, np.minimum(tried, room)).sum(axis=1)
        level[filled <= factors] = tried
    least = np.maximum(stays, np.minimum(level[:, None], room))
    most = np.maximum(stays, np.minimum(level[:, None] + 1, room))
    return least, np.where((least.sum(axis=1) >= factors)[:, None], least, most)


def broker_bounds(
    total: int, least: Ints, most: Ints, rack_of: Ints, rack_least: Ints, rack_most: Ints
) -> tuple[Ints, Ints]:
    """B: ⌊target⌋ and ⌈target⌉ of each broker's replicas, ``total`` of them, as even as the bounds allow.

    ``least`` and ``most`` B: what a broker has to hold, and may. ``rack_least`` and ``rack_most`` R: the same of racks.
    Water rises at the same level everywhere; a rack that is full, or has to have more, has a level of its own.
    """
    racks = len(rack_least)

    def held(level: int) -> Ints:
        brokers = np.clip(level, least, most)
        return np.clip(np.bincount(rack_of, weights=brokers, minlength=racks).astype(np.int64), rack_least, rack_most)

    level = _highest(lambda tried: int(held(tried).sum()) <= total, total)
    share = held(level)
    spare = total - int(share.sum())
    # What is left over would lift some brokers by one: it goes to racks that have room, in turn.
    room = held(level + 1) - share
    low, high = np.zeros_like(least), np.zeros_like(most)
    for rack in range(racks):
        of_rack = rack_of == rack
        if not of_rack.any():
            continue
        possible = (int(share[rack]), int(share[rack] + min(spare, int(room[rack]))))
        low[of_rack], high[of_rack] = _level_in(possible, least[of_rack], most[of_rack])
    return low, high


def _level_in(amount: tuple[int, int], least: Ints, most: Ints) -> tuple[Ints, Ints]:
    """Least and most of each broker of a rack that gets between so many and so many."""
    fewest, highest = amount
    low = _highest(lambda tried: int(np.clip(tried, least, most).sum()) <= fewest, fewest)
    high = _highest(lambda tried: int(np.clip(tried, least, most).sum()) <= highest, highest)
    top = np.clip(high, least, most)
    if int(top.sum()) < highest:
        top = np.clip(high + 1, least, most)
    return np.clip(low, least, most), top


def _highest(holds: Callable[[int], bool], at_most: int) -> int:
    """The highest level from 0 for which it holds; it holds at 0 or is taken to, and not any more once it does not."""
    low, high = 0, at_most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
