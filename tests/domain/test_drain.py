"""Draining brokers: what moves and where to, and every request that cannot be met with its sentence."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafkadash.domain.plan import canonical
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.request import DRAIN, PlanRequest
from kafkadash.domain.planner.topology import Broker, Directory, Partition, Topic, Topology
from kafkadash.domain.problem import ProblemCode
from kafkadash.domain.rack_spread import spread
from tests.domain.topologies import RACKS, broker, clusters, topology

THREE = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6], [3, 5, 1]]})


def targets(cluster: Topology, request: PlanRequest) -> dict[str, tuple[int, ...]]:
    planned = plan(cluster, request)
    assert not planned.problems
    return {row.name: row.target for row in planned.rows}


def said(cluster: Topology, request: PlanRequest) -> list[str]:
    planned = plan(cluster, request)
    assert planned.rows == ()
    return [str(problem) for problem in planned.problems]


def test_drain__the_newcomer_takes_the_place_of_the_leaver_and_another_replica_leads() -> None:
    assert targets(THREE, PlanRequest(DRAIN, (3,))) == {"t-0": (1, 2, 6), "t-1": (2, 6, 1), "t-3": (5, 6, 1)}


def test_drain__rows_know_the_topic_id_and_what_is_now() -> None:
    row = plan(THREE, PlanRequest(DRAIN, (3,))).rows[1]
    assert (row.topic_id, row.current) == ("id-t", (3, 1, 2))


def test_drain__two_replicas_only__may_go_where_least_is_as_long_as_the_spread_stays_even() -> None:
    cluster = topology({"t": [[3, 1]], "load": [[6, 4, 5]] * 4})
    assert targets(cluster, PlanRequest(DRAIN, (3,))) == {"t-0": (1, 2)}


@pytest.mark.parametrize(
    ("request_", "sentences"),
    [
        (PlanRequest(DRAIN, ()), ["No broker to drain is named. Name at least one."]),
        (
            PlanRequest(DRAIN, (9,)),
            ["There is no broker 9 in this cluster; there are 1, 2, 3, 4, 5 and 6. Name brokers of the cluster only."],
        ),
        (
            PlanRequest(DRAIN, (1, 8, 9)),
            [
                (
                    "There are no brokers 8 and 9 in this cluster; there are 1, 2, 3, 4, 5 and 6. "
                    "Name brokers of the cluster only."
                )
            ],
        ),
        (
            PlanRequest(DRAIN, (1, 2, 3, 4, 5, 6)),
            ["All brokers of the cluster would be drained; nobody is left to hold the replicas. Leave at least one."],
        ),
        (
            PlanRequest(DRAIN, (1,), targets=(1,)),
            [
                (
                    "No broker is left that may be given replicas: all others are away, fenced, cordoned or left "
                    "out. Bring one of them back, or drain fewer."
                )
            ],
        ),
        (
            PlanRequest(DRAIN, (3,), targets=(7, 6)),
            ["No replicas can go to broker 7: not in this cluster. Name brokers of the cluster only."],
        ),
        (
            PlanRequest(DRAIN, (3, 6)),
            [
                (
                    "Brokers 3 and 6 are the last in rack c that may hold replicas: "
                    "without them 4 partitions would be in "
                    "2 racks instead of 3. Accept fewer racks, or add a broker there."
                )
            ],
        ),
        (
            PlanRequest(DRAIN, (3, 4, 5, 6)),
            [
                (
                    "t has 3 replicas, and only 2 brokers would be left for them. "
                    "Drain fewer brokers, add some, or lower its replication factor first."
                ),
            ],
        ),
    ],
)
def test_drain__a_request_that_cannot_be_met__says_why(request_: PlanRequest, sentences: list[str]) -> None:
    assert said(THREE, request_) == sentences


def test_drain__the_last_of_a_rack__goes_when_fewer_racks_are_accepted() -> None:
    planned = targets(THREE, PlanRequest(DRAIN, (3, 6), accept_fewer_racks=True))
    assert len(planned) == 4
    assert all(len({RACKS[b] for b in target}) == 2 for target in planned.values())


def test_drain__the_last_of_a_rack__is_no_loss_where_other_racks_are_free() -> None:
    assert targets(topology({"t": [[3, 1]]}), PlanRequest(DRAIN, (3, 6))) == {"t-0": (1, 2)}


def test_drain__a_broker_that_holds_nothing() -> None:
    cluster = topology({"t": [[1, 2]]})
    nothing = plan(cluster, PlanRequest(DRAIN, (3,)))
    assert (nothing.rows, nothing.problems) == ((), ())
    assert [str(notice) for notice in nothing.notices] == [
        "Broker 3 holds no replicas; there is nothing to move. Choose another broker."
    ]
    assert [str(n) for n in plan(cluster, PlanRequest(DRAIN, (1, 3))).notices] == [
        "Broker 3 holds no replicas. The others are drained as asked."
    ]


def test_drain__a_partition_that_moves_already__is_named() -> None:
    topic = THREE.topics["t"]
    moving = tuple(replace(p, moving=p.partition < 2) for p in topic.partitions)
    cluster = replace(THREE, topics={"t": replace(topic, partitions=moving)})
    assert said(cluster, PlanRequest(DRAIN, (3,))) == [
        "t-0 is being reassigned already. Wait until that is done, or cancel it.",
        "t-1 is being reassigned already. Wait until that is done, or cancel it.",
    ]


def test_drain__some_brokers_name_no_rack__needs_the_word_to_ignore_racks() -> None:
    own = [broker(1), broker(2), broker(3), Broker(7), Broker(8)]
    cluster = topology({"t": [[1, 2, 3]]}, own)
    assert said(cluster, PlanRequest(DRAIN, (3,))) == [
        (
            "Brokers 7 and 8 name no rack while others do, so the spread over racks cannot be kept. "
            "Set broker.rack there, or plan without regard to racks."
        )
    ]
    assert targets(cluster, PlanRequest(DRAIN, (3,), ignore_racks=True)) == {"t-0": (1, 2, 7)}


def test_drain__no_broker_names_a_rack__is_planned_without() -> None:
    cluster = topology({"t": [[1, 2]]}, [Broker(1), Broker(2), Broker(3)])
    assert targets(cluster, PlanRequest(DRAIN, (1,))) == {"t-0": (2, 3)}


def test_drain__a_disk_that_would_overflow__names_broker_numbers_and_limit() -> None:
    own = [broker(1), broker(2), broker(3), broker(6, used=790)]
    cluster = topology({"t": [[1, 2, 3]]}, own, size=40)
    assert said(cluster, PlanRequest(DRAIN, (3,), disk_limit=0.8)) == [
        (
            "Broker 6 would come to 83.0 % of its disk: 790 B in use and 40 B more, of 1.0 kB. "
            "The limit is 80 %, which leaves room for 10 B. "
            "Make room on it, move less at once, or allow more under Limits."
        )
    ]
    assert targets(cluster, PlanRequest(DRAIN, (3,), disk_limit=0.9)) == {"t-0": (1, 2, 6)}


def test_drain__a_replica_larger_than_any_directory__is_said_apart() -> None:
    two = replace(broker(6), dirs=(Directory("/a", 1000, 790), Directory("/b", 1000, 785)))
    cluster = topology({"t": [[1, 2, 3]]}, [broker(1), broker(2), broker(3), two], size=20)
    assert said(cluster, PlanRequest(DRAIN, (3,), disk_limit=0.8)) == [
        (
            "Broker 6 would get a replica of 20 B, and no log directory of it has room for that: "
            "15 B at most, with a limit of 80 %. Make room in one of them, or allow more under Limits."
        )
    ]
    roomy = replace(cluster, brokers={**cluster.brokers, 9: broker(9, "c", used=500)})
    assert targets(replace(roomy), PlanRequest(DRAIN, (3,), disk_limit=0.8)) == {"t-0": (1, 2, 9)}


def test_drain__full_brokers__are_passed_over_for_those_with_room() -> None:
    own = [broker(1), broker(2), broker(3), broker(6, used=799), broker(9, "c", used=500)]
    cluster = topology({"t": [[1, 2, 3]], "full": [[9]] * 5}, own)
    assert targets(cluster, PlanRequest(DRAIN, (3,)))["t-0"] == (1, 2, 6)
    assert targets(cluster, PlanRequest(DRAIN, (3,), disk_limit=0.8))["t-0"] == (1, 2, 9)


def test_drain__what_keeps_the_limit_from_being_judged__is_noticed() -> None:
    own = [broker(1), broker(2), broker(3), broker(6, used=None)]
    cluster = topology({"t": [[1, 2, 3]]}, own, size=None)
    assert [str(n) for n in plan(cluster, PlanRequest(DRAIN, (3,), disk_limit=0.8)).notices] == [
        (
            "The disk of broker 6 is not known, so the limit was not kept there. "
            "See on the broker's page why it is not read."
        ),
        (
            "The size of 1 partition that moves is not known; it is missing in what was reckoned for disks. "
            "See on the pages of the brokers why their disks are not read."
        ),
    ]


def test_drain__dead_fenced_and_cordoned_brokers__are_no_targets() -> None:
    own = [broker(1), broker(2), broker(3), broker(6, fenced=True), broker(7, "c", alive=False), broker(9, "c")]
    cluster = topology({"t": [[1, 2, 3]], "load": [[9]] * 9}, own)
    assert targets(cluster, PlanRequest(DRAIN, (3,)))["t-0"] == (1, 2, 9)


def test_drain__leaders_of_the_drained_broker__are_spread() -> None:
    cluster = topology({"t": [[3, 1, 2], [3, 4, 5], [3, 2, 4], [3, 5, 1]] * 10})
    firsts = Counter(target[0] for target in targets(cluster, PlanRequest(DRAIN, (3,))).values())
    assert max(firsts.values()) - min(firsts.values()) <= 1
    assert set(firsts) == {1, 2, 4, 5, 6}


def _best(
    cluster: Topology, replicas: Sequence[int], leaving: frozenset[int], racks: Mapping[int, str], rack_count: int
) -> int:
    """The least moves to an even spread that any choice of newcomers leaves: what must stay may not allow none."""
    kept = [id_ for id_ in replicas if id_ not in leaving]
    free = [b.id for b in cluster.brokers.values() if b.eligible and b.id not in leaving and b.id not in kept]
    choices = itertools.combinations(free, len(replicas) - len(kept))
    return min((spread([*kept, *choice], racks, rack_count).moves for choice in choices), default=0)


@given(clusters(), st.data())
def test_drain__of_any_cluster__only_what_must_move_moves_and_everything_holds(
    cluster: Topology, data: st.DataObject
) -> None:
    leaving = frozenset(data.draw(st.sets(st.sampled_from(sorted(cluster.brokers)), min_size=1, max_size=2)))
    planned = plan(cluster, PlanRequest(DRAIN, tuple(sorted(leaving)), disk_limit=0.9))
    assume(not planned.problems)
    left = {b.rack for b in cluster.brokers.values() if b.id not in leaving}
    racks = {b.id: b.rack for b in cluster.brokers.values() if b.rack is not None}
    rows = {(row.topic, row.partition): row for row in planned.rows}
    for topic in cluster.topics.values():
        for p in topic.partitions:
            row = rows.pop((topic.name, p.partition), None)
            assert (row is not None) == (not leaving.isdisjoint(p.replicas))
            if row:
                assert len(set(row.target)) == len(p.replicas)
                assert leaving.isdisjoint(row.target)
                assert {b for b in p.replicas if b not in leaving} <= set(row.target)
                if racks:
                    before, after = (spread(list(r), racks, len(left)) for r in (p.replicas, row.target))
                    lost = {racks[b] for b in leaving} - left
                    best = _best(cluster, p.replicas, leaving, racks, len(left))
                    assert after.moves <= max(before.moves, best) or lost
    assert not rows


@given(clusters(), st.randoms())
def test_drain__the_order_in_which_things_are_known__changes_nothing(cluster: Topology, random: object) -> None:
    request = PlanRequest(DRAIN, (1,))
    turned = replace(
        cluster,
        brokers=dict(list(cluster.brokers.items())[::-1]),
        topics={name: replace(t, partitions=t.partitions[::-1]) for name, t in list(cluster.topics.items())[::-1]},
    )
    assert canonical(plan(cluster, request).rows) == canonical(plan(turned, request).rows)


@given(clusters())
def test_drain__again__has_nothing_to_do(cluster: Topology) -> None:
    planned = plan(cluster, PlanRequest(DRAIN, (1,)))
    assume(not planned.problems)
    after = {(row.topic, row.partition): row.target for row in planned.rows}
    moved = {
        name: replace(
            t, partitions=tuple(replace(p, replicas=after.get((name, p.partition), p.replicas)) for p in t.partitions)
        )
        for name, t in cluster.topics.items()
    }
    again = plan(replace(cluster, topics=moved), PlanRequest(DRAIN, (1,)))
    assert (again.rows, again.problems, [notice.code for notice in again.notices]) == (
        (),
        (),
        [ProblemCode.NOTHING_TO_DO],
    )


def test_drain__fifty_thousand_replicas_of_a_large_cluster__takes_seconds_and_evens_out() -> None:
    brokers = [broker(n, "abc"[n % 3], total=10**15, used=0) for n in range(30)]
    topics = {
        f"t{t}": Topic(
            f"t{t}",
            tuple(
                Partition(n, (a, (a + 1) % 30, (a + 2) % 30), (), a, 1000 + (n * 7919) % 5000)
                for n in range(100)
                for a in [(t * 7 + n) % 30]
            ),
        )
        for t in range(1000)
    }
    cluster = Topology({b.id: b for b in brokers}, topics)
    began = time.process_time()
    planned = plan(cluster, PlanRequest(DRAIN, (0, 1, 2, 3, 4), disk_limit=0.8))
    assert time.process_time() - began < 10
    assert len(planned.rows) > 20_000
    held = Counter(b for t in topics.values() for p in t.partitions for b in p.replicas)
    for row in planned.rows:
        held.subtract(row.removing)
        held.update(row.adding)
    for rack in range(3):
        own = [held[n] for n in range(5, 30) if n % 3 == rack]
        assert max(own) / min(own) < 1.02
