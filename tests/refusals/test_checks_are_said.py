"""What the checks of a reassignment find, as the page of the change shows it: what is wrong, and below what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.recheck import stored_checks
from kafkadash.domain.checks import About, Check, Result
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology import Directory
from kafkadash.domain.reassignment_checks import Moving, Seen
from kafkadash.domain.refusals import checks
from kafkadash.domain.status import NEVER, Refreshed
from tests.domain.test_reassignment_checks import (
    CLUSTER,
    OLD,
    OPTIONS,
    READ,
    ROWS,
    SEEN,
    checked,
    with_broker,
    with_partition,
    with_topic,
)
from tests.domain.topologies import broker, row
from tests.refusals.desk import Desk
from tests.refusals.driving import Case, case, each

pytestmark = pytest.mark.django_db


class Shown:
    """The page of a change whose checks these are."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._change = desk, desk.change()

    def page(self, seen: Seen = SEEN, rows: Sequence[Row] = ROWS, **options: Any) -> str:
        found = checked(seen, rows, replace(OPTIONS, **options))
        ChangeRequest.objects.update(checks=stored_checks(found), checked_at=self._change.checked_at)
        return self._desk.see("vera", self._change)

    def target(self, *target: int) -> str:
        return self.page(rows=[row(CLUSTER, "orders", 0, target)])


@pytest.fixture
def shown(desk: Desk) -> Shown:
    return Shown(desk)


MOVING = {("orders", 1): Moving(frozenset({5}), frozenset({2}))}
FOUR_DIRECTORIES = tuple(Directory(f"/{n}", 1000, 795) for n in range(4))


@each(
    case(checks.GONE, lambda s: s.page(replace(SEEN, topology=replace(CLUSTER, topics={}))), name="orders"),
    case(checks.TOPIC_REPLACED, lambda s: s.page(with_topic(id="another")), topic="orders"),
    case(
        checks.AS_PLANNED_ALREADY,
        lambda s: s.page(with_partition(0, replicas=(1, 2, 6))),
        row="orders-0",
        replicas="1, 2, 6",
        expected="1, 2, 3",
    ),
    case(
        checks.OTHER_THAN_PLANNED,
        lambda s: s.page(with_partition(0, replicas=(2, 1, 3))),
        row="orders-0",
        replicas="2, 1, 3",
        expected="1, 2, 3",
    ),
    case(
        checks.MOVING_BY_OTHERS,
        lambda s: s.page(replace(SEEN, moving=MOVING)),
        row="orders-1",
        what=" (adding 5, removing 2)",
    ),
    case(checks.FACTOR_CHANGES, lambda s: s.target(1, 2), row="orders-0", replicas="3 replicas", target=2),
    case(checks.TARGET_NOT_REGISTERED, lambda s: s.page(with_broker(6, alive=False)), broker=6),
    case(checks.TARGET_FENCED, lambda s: s.page(with_broker(6, fenced=True)), broker=6),
    case(checks.TARGET_SILENT, lambda s: s.page(with_broker(6, silent=True)), broker=6),
    case(
        checks.TARGET_CORDONED,
        lambda s: s.page(with_broker(6, dirs=(replace(broker(6).dirs[0], cordoned=True),))),
        broker=6,
    ),
    case(checks.DIRECTORIES_UNREAD, lambda s: s.page(with_broker(6, dirs=())), brokers="broker 6"),
    case(
        checks.QUORUM_LOST,
        lambda s: s.page(replace(SEEN, quorum=Refreshed(READ, failures=2, failure=FailureKind.QUORUM_UNAVAILABLE))),
    ),
    case(
        checks.DISK_TOO_SMALL,
        lambda s: s.page(with_broker(6, dirs=(replace(broker(6).dirs[0], used_bytes=790),))),
        broker=6,
        comes="would come to 81.0 % of its disk",
        coming="20 B",
        room="10 B",
    ),
    case(
        checks.DIRECTORIES_TOO_SMALL,
        lambda s: s.page(with_broker(6, dirs=FOUR_DIRECTORIES)),
        broker=6,
        replica="10 B",
        has="the emptiest has room for 5 B",
    ),
    case(checks.DISK_NOT_KNOWN, lambda s: s.page(with_broker(6, dirs=())), brokers="broker 6"),
    case(checks.SIZE_NOT_KNOWN, lambda s: s.page(with_partition(0, size_bytes=None)), partitions="1 partition"),
    case(checks.RACKS_NOT_NAMED, lambda s: s.page(with_broker(4, rack=None))),
    case(checks.SPREAD_WORSE, lambda s: s.target(1, 2, 4), row="orders-0", replicas="1, 2, 4"),
    case(checks.LEADERLESS, lambda s: s.page(with_partition(0, leader=None)), row="orders-0"),
    case(
        checks.LAGGING,
        lambda s: s.page(with_partition(0, isr=(1,))),
        row="orders-0",
        has="1 of 2 needed replicas in sync",
        brokers="brokers 2 and 3",
    ),
    case(
        checks.MIN_ISR_UNREAD,
        lambda s: s.page(with_topic(min_isr=None)),
        setting="min.insync.replicas",
        topics="1 topic",
    ),
    case(
        checks.THROTTLE_TOO_LOW,
        lambda s: s.page(with_partition(0, bytes_in_per_s=70e6)),
        broker=6,
        inbound=70.0,
        throttle=60.0,
    ),
    case(
        checks.INBOUND_UNKNOWN,
        lambda s: s.page(with_partition(0, bytes_in_per_s=None)),
        partitions="1 partition",
        receive="receives",
    ),
    case(
        checks.WINDOW_HAS_ENDED,
        lambda s: s.page(not_after="2026-11-21T21:00:00Z"),
        closed=READ.replace(hour=21, minute=0),
    ),
    case(
        checks.WINDOW_TOO_SHORT,
        lambda s: s.page(not_before="2026-11-22T03:59:59Z", not_after="2026-11-22T04:00:00Z", throttle=1),
        needs="32 s",
        length="1 s",
    ),
    case(
        checks.LENGTH_NOT_KNOWN,
        lambda s: s.page(with_partition(0, size_bytes=None), not_after="2026-11-22T04:00:00Z"),
    ),
    case(checks.FACTS_NEVER_READ, lambda s: s.page(replace(SEEN, metadata=NEVER)), facts="topics and brokers"),
    case(checks.QUORUM_NEVER_READ, lambda s: s.page(replace(SEEN, quorum=NEVER))),
    case(
        checks.FACTS_READ_LONG_AGO,
        lambda s: s.page(replace(SEEN, quorum=OLD)),
        facts="quorum",
        was="was",
        ago="5 min",
    ),
)
def test_on_the_page_of_the_change(one: Case, shown: Shown) -> None:
    one.check(shown)


def test_what_to_do_is_said_once_for_all_rows(shown: Shown) -> None:
    page = shown.page(with_topic(id="another", partitions=()), rows=ROWS)
    assert page.count("Make the plan again.") == 1


def test_an_old_version_stored_no_advice(shown: Shown) -> None:
    check = Check("racks", About.HEALTH, Result.FAILED, "Racks", problems=("No.",), then="Mend it.")
    stored = {name: value for name, value in check.as_json().items() if name != "then"}
    assert Check.from_json(stored) == replace(check, then="")
