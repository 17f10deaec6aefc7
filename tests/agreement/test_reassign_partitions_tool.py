"""Reassignments as stored, against ``kafka-reassign-partitions`` and raw reads of the replicas' log ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import Kind, Outcome, ReassignmentSnapshot
from kafkadash.playground.cluster import Playground
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.runs import broker_hung
from tests.agreement.tools import EARLIEST, LATEST, ListedMove, Tools
from tests.waiting import wait_until

SLOW = 200_000  # bytes per second: a few MiB last longer than a test looks at them


def test_reassignments__throttled_move__equal_the_listing_until_it_completes(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[1, 2]], mib=4)
    mover.start(topic, [3, 2], throttle=SLOW)

    refresh(Kind.REASSIGNMENTS)
    listed = tools.moves()
    assert stored_moves(cluster) == listed
    assert ListedMove(topic, 0, (3, 2, 1), (3,), (1,)) in listed

    mover.let_go(topic)
    wait_until(lambda: tools.replicas(topic) == (3, 2), "the move is over", 30)
    refresh(Kind.REASSIGNMENTS)
    listed = tools.moves()
    assert stored_moves(cluster) == listed
    assert topic not in {move.topic for move in listed}
    row = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
    assert (row.outcome, row.percent) == (Outcome.COMPLETED, 100.0)
    assert tuple(row.target) == tools.topics("--topic", topic)[topic].partitions[0].replicas == (3, 2)


def test_reassignments__cancelled_by_kafkas_tool__end_as_cancelled(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[2, 1]], mib=4)
    mover.start(topic, [3, 1], throttle=SLOW)
    refresh(Kind.REASSIGNMENTS)
    assert topic in {move.topic for move in stored_moves(cluster)}

    mover.cancel(topic)
    refresh(Kind.REASSIGNMENTS)
    listed = tools.moves()
    assert stored_moves(cluster) == listed
    assert topic not in {move.topic for move in listed}
    row = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
    assert row.outcome == Outcome.CANCELLED
    assert row.percent is not None
    assert row.percent < 100.0
    assert set(row.original) == set(tools.topics("--topic", topic)[topic].partitions[0].replicas) == {1, 2}


def test_reassignments__topic_deleted_while_it_moves__end_as_topic_deleted(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[3, 1]], mib=4)
    mover.start(topic, [2, 1], throttle=SLOW)
    refresh(Kind.REASSIGNMENTS)
    assert topic in {move.topic for move in stored_moves(cluster)}

    tools.run("topics", "--delete", "--topic", topic)
    mover.forget(topic)
    wait_until(lambda: tools.replicas(topic) == (), "no broker knows the topic any more", 30)
    assert topic not in {move.topic for move in tools.moves()}
    refresh(Kind.REASSIGNMENTS)
    row = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
    assert row.outcome == Outcome.TOPIC_DELETED


def test_reassignments__destination_hangs_and_goes_on__equal_the_listing_all_along(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    mover: Mover,
    playground: Playground,
    tools: Tools,
) -> None:
    topic = make_topic([[1, 2]], mib=8)
    mover.start(topic, [3, 2], throttle=SLOW)
    refresh(Kind.REASSIGNMENTS)
    row = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
    with broker_hung(playground, tools, 3):
        refresh(Kind.REASSIGNMENTS)
        assert stored_moves(cluster) == tools.moves()
        row.refresh_from_db()
        assert (row.outcome, row.percent) == (Outcome.RUNNING, None), "nobody can tell how far it is"
    refresh(Kind.REASSIGNMENTS)
    assert stored_moves(cluster) == tools.moves()
    mover.let_go(topic)
    wait_until(lambda: tools.replicas(topic) == (3, 2), "the move is over", 60)
    refresh(Kind.REASSIGNMENTS)
    assert stored_moves(cluster) == tools.moves()
    row.refresh_from_db()
    assert (row.outcome, row.percent) == (Outcome.COMPLETED, 100.0), "the same row, to its end"
    wait_until(tools.in_sync, "every replica is in sync again", 60)


def test_percent__while_it_copies__lies_between_raw_reads_just_before_and_after(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[1, 2]], mib=8)
    mover.start(topic, [1, 3], throttle=500_000)
    wait_until(lambda: tools.has_copy(3, topic), "the copy has begun", 30)
    # Nobody writes to the topic, so only the log end of the replica that is added moves.
    start, end = tools.offset(1, topic, EARLIEST), tools.offset(1, topic, LATEST)

    def copied() -> float:
        return 100.0 * (tools.offset(3, topic, LATEST) - start) / (end - start)

    def more_than(least: float) -> Callable[[], bool]:
        return lambda: copied() > least

    seen: list[float] = []
    last = 0.0
    while len(seen) < 4 and last < 85.0:
        wait_until(more_than(last + 3.0), f"more than {last + 3.0:.1f} % is copied", 30)
        before = copied()
        refresh(Kind.REASSIGNMENTS)
        last = copied()
        row = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
        assert row.percent is not None
        assert before - 1e-6 <= row.percent <= last + 1e-6
        assert (row.leader_log_start, row.leader_log_end) == (start, end)
        seen.append(row.percent)
    assert len(seen) == 4, f"the copy outran the test: {seen}"
    assert all(earlier < later for earlier, later in itertools.pairwise(seen))


def stored_moves(cluster: Cluster) -> list[ListedMove]:
    running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=Outcome.RUNNING)
    return [
        ListedMove(row.topic, row.partition, tuple(row.replicas), tuple(row.adding), tuple(row.removing))
        for row in running.order_by("topic", "partition")
    ]
