"""What the way back copies: what left comes back, from whoever leads then."""

from __future__ import annotations

from kafkadash.domain.plan import Row
from kafkadash.domain.way_back import WayBack, way_back_of
from tests.factories import GB
from tests.reassign.plans import world

WORLD = world({"orders": [[1, 2, 3], [3, 4, 5], [2, 1, 3]]})


def row(partition: int, current: tuple[int, ...], target: tuple[int, ...]) -> Row:
    return Row("orders", "id", partition, current, target)


def test_each_replica_that_left_is_copied_to_its_broker() -> None:
    rows = [row(0, (1, 2, 3), (1, 2, 6)), row(1, (3, 4, 5), (6, 4, 5)), row(2, (2, 1, 3), (2, 1, 6))]
    assert way_back_of(rows, WORLD) == WayBack(partitions=3, copied_bytes=9 * GB, longest_bytes=9 * GB)


def test_what_leads_then_sends_all_copies_of_a_partition() -> None:
    assert way_back_of([row(0, (1, 2, 3), (4, 5, 6))], WORLD).longest_bytes == 9 * GB


def test_replicas_that_were_only_added_or_reordered_copy_nothing_on_the_way_back() -> None:
    rows = [row(0, (1, 2, 3), (1, 2, 3, 4)), row(1, (3, 4, 5), (4, 3, 5))]
    assert way_back_of(rows, WORLD) == WayBack(partitions=2, copied_bytes=0, longest_bytes=0)


def test_an_unknown_size_makes_it_unknown() -> None:
    unsized = world({"orders": [[1, 2, 3]]}, size=None)
    assert way_back_of([row(0, (1, 2, 3), (1, 2, 6))], unsized) == WayBack(1, None, None)
    assert way_back_of([row(7, (1, 2, 3), (1, 2, 6))], WORLD) == WayBack(1, None, None)
