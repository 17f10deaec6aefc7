"""Why a row in flight does not get on, as the step stores it and the page of the run shows it."""

from __future__ import annotations

from dataclasses import replace

from kafkadash.domain.executor_state import BrokerSeen
from kafkadash.domain.refusals import stuck
from kafkadash.domain.row_reasons import DisksFull, DisksNotRead
from kafkadash.domain.run_memory import CopyMemory
from kafkadash.domain.run_progress import Direction
from kafkadash.domain.run_stuck import ForeignThrottle, Surroundings
from tests.domain.test_run_stuck import AROUND, BEHIND, INTO_4, MB, NOW, OUT_1, PARTITION, seen, why
from tests.refusals.driving import Case, case, each

COPIED = replace(BEHIND, copies={4: CopyMemory(end=1000)}, copied_at=NOW - 400)
FOREIGN_RATE = ForeignThrottle("broker", "4", "follower.replication.throttled.rate", "5000000")
FOREIGN_LIST = ForeignThrottle("topic", "orders", "leader.replication.throttled.replicas", "")


def unregistered() -> str:
    looked = seen()
    return why(replace(looked, brokers={b: s for b, s in looked.brokers.items() if b != 4}))[1]


def others_idle() -> str:
    return why(seen(), around=replace(AROUND, rates={OUT_1: 58.0 * MB, (2, Direction.OUT): 1.0 * MB}))[1]


@each(
    case(stuck.DESTINATION_UNREGISTERED, unregistered, broker=4),
    case(stuck.DESTINATION_AWAY, lambda: why(seen(b4=BrokerSeen(alive=False)))[1], broker=4, state="away"),
    case(
        stuck.KEPT_NOT_IN_SYNC,
        lambda: why(seen(replace(PARTITION, isr=frozenset({1, 4}), offline=frozenset({2}))), COPIED)[1],
        brokers="broker 2",
        keep="keeps",
        are="is",
        state="away",
    ),
    case(stuck.NO_SOURCE, lambda: why(seen(replace(PARTITION, leader=None)))[1]),
    case(
        stuck.LIMIT_BELOW_INBOUND,
        lambda: why(seen(), around=Surroundings(60 * MB, {OUT_1: 10}))[1],
        broker=1,
        does="sends",
        limit="10 B/s",
        what="orders-0 receives 0.2 MB/s",
        whose=" That limit is not ours.",
    ),
    case(
        stuck.COPY_BELOW_INBOUND,
        lambda: why(seen(), replace(BEHIND, losing_since=NOW - 400))[1],
        rate="0.2 MB/s",
        row="orders-0",
    ),
    case(
        stuck.DESTINATION_DISK_FULL,
        lambda: why(seen(b4=BrokerSeen(full=DisksFull(4, 10**9, 2 * 10**9))))[1],
        broker=4,
        room="1.0 GB",
        coming="2.0 GB",
    ),
    case(stuck.DESTINATION_DISK_NOT_READ, lambda: why(seen(b4=BrokerSeen(full=DisksNotRead(4))))[1], broker=4),
    case(stuck.DESTINATION_CORDONED, lambda: why(seen(b4=BrokerSeen(cordoned=True)))[1], broker=4),
    case(
        stuck.SOURCE_AT_ITS_LIMIT,
        others_idle,
        broker=1,
        sent="58.0 MB/s",
        limit="60.0 MB/s",
        others="2 other brokers",
        which="2 and 3",
    ),
    case(
        stuck.RATE_OF_OTHERS,
        lambda: why(seen(), around=replace(AROUND, foreign=(FOREIGN_RATE,), limits={INTO_4: 5 * MB}))[1],
        broker="4",
        key="follower.replication.throttled.rate",
        rate="5.0 MB/s",
    ),
    case(
        stuck.LIST_OF_OTHERS,
        lambda: why(seen(), around=replace(AROUND, foreign=(FOREIGN_LIST,)))[1],
        key="leader.replication.throttled.replicas",
        topic="orders",
    ),
    case(stuck.CLUSTER_REFUSES, lambda: why(seen(), replace(BEHIND, refused="Not allowed."))[1], words="Not allowed."),
    case(stuck.NO_CAUSE_FOUND, lambda: why(seen())[1], quiet="6 min 40 s"),
)
def test_by_a_look_at_the_row(one: Case) -> None:
    one.check()
