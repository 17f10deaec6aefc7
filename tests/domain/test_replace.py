"""Which brokers take the place of those that a partition does not get to."""

from __future__ import annotations

import pytest

from kafkadash.domain.planner.replace import lost_of, replaced
from kafkadash.domain.planner.topology import Broker, Directory

GB = 10**9


def broker(id_: int, rack: str | None, *, used: int | None = 10, alive: bool = True, fenced: bool = False) -> Broker:
    disk = Directory("/data", 100 * GB, None if used is None else used * GB)
    return Broker(id_, rack, alive=alive, fenced=fenced, dirs=(disk,))


def cluster(*brokers: Broker) -> dict[int, Broker]:
    return {each.id: each for each in brokers}


BASE = (broker(1, "a"), broker(2, "b"), broker(3, "c"), broker(6, "c", alive=False))


@pytest.mark.parametrize(
    ("others", "found"),
    [
        ((broker(7, "a"), broker(8, "c")), (8, 2, 1)),
        ((broker(7, "a"), broker(8, "d")), (8, 2, 1)),
        ((broker(7, "a", used=1), broker(8, "b", used=90)), (7, 2, 1)),
        ((broker(7, "c", used=50), broker(8, "c", used=40)), (8, 2, 1)),
        ((broker(7, "c", used=None), broker(8, "c", used=80)), (8, 2, 1)),
        ((broker(7, "c", fenced=True), broker(8, "a")), (8, 2, 1)),
    ],
    ids=["the same rack", "a rack of its own", "the emptiest", "more room", "room that is known", "not fenced"],
)
def test_it_keeps_racks_apart_and_then_takes_the_most_room(others: tuple[Broker, ...], found: tuple[int, ...]) -> None:
    brokers = cluster(broker(1, "a"), broker(2, "b"), broker(6, "c", alive=False), *others)
    assert replaced((4, 2, 1), (6, 2, 1), {6}, brokers, disk_limit=0.85) == found


def test_the_order_stays_and_no_broker_comes_twice() -> None:
    brokers = cluster(*BASE, broker(7, "c"), broker(8, "b", alive=False))
    assert replaced((1, 7), (1, 6, 8), {6, 8}, brokers, disk_limit=0.85) == (1, 3, 2), "7 is what it leaves"


def test_nobody_is_left() -> None:
    assert replaced((2, 3, 1), (6, 3, 2), {6}, cluster(*BASE), disk_limit=0.85) is None


def test_what_is_lost_is_what_is_away_or_else_all_it_is_copied_to() -> None:
    brokers = cluster(*BASE)
    assert lost_of((3, 2, 1), (6, 2, 1), brokers) == {6}
    assert lost_of((3, 2, 1), (9, 2, 1), brokers) == {9}, "it is not known any more"
    assert lost_of((2, 6), (3, 6), brokers) == {6}, "what it keeps is away"
    assert lost_of((6, 2), (3, 2), brokers) == {3}
    assert not lost_of((1, 2), (2, 1), brokers)
