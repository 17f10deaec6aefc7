"""What the death of brokers does, against counting it the slow and obvious way."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.findings.simulation import (
    BrokerLoss,
    SimulatedPartition,
    SimulationResult,
    quorum_after,
    simulate_failure,
    single_losses,
)
from kafkadash.monitoring.quorum.rules import QuorumNode, judge_quorum

pytestmark = pytest.mark.domain

BROKERS = range(1, 8)
RACKS: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b", 5: "", 6: None, 7: "c"}


@st.composite
def placed(draw: st.DrawFn, number: int = 0) -> SimulatedPartition:
    replicas = draw(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=5, unique=True))
    isr = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    leader = draw(st.one_of(st.none(), st.sampled_from(isr)))
    eligible = draw(st.lists(st.sampled_from(replicas), unique=True).map(lambda elr: [r for r in elr if r not in isr]))
    min_isr = draw(st.one_of(st.none(), st.integers(1, 4)))
    return SimulatedPartition("t", number, leader, replicas, isr, min_isr, eligible)


@st.composite
def clusters(draw: st.DrawFn) -> list[SimulatedPartition]:
    return [draw(placed(number)) for number in range(draw(st.integers(0, 25)))]


SOME = st.sets(st.sampled_from(BROKERS), max_size=7)


def naive(partitions: list[SimulatedPartition], alive: set[int], dying: set[int]) -> dict[str, set[int]]:
    """By the definitions alone: which partitions get into which state, and how many leaders each broker has then."""
    found: dict[str, set[int]] = {"offline": set(), "under": set(), "at": set(), "moving": set(), "unknown": set()}
    for p in partitions:
        touched = bool(set(p.isr) & dying) or p.leader in dying
        if p.leader is None or not touched:
            continue
        left = [r for r in p.replicas if r in set(p.isr) & alive - dying]
        left = left or [r for r in p.replicas if r in set(p.eligible) & alive - dying][:1]
        if not left:
            found["offline"].add(p.number)
            continue
        if p.leader in dying:
            found["moving"].add(p.number)
        if p.min_isr is None:
            found["unknown"].add(p.number)
        elif len(left) < p.min_isr <= len(p.isr):
            found["under"].add(p.number)
        elif len(left) == p.min_isr:
            found["at"].add(p.number)
    return found


def numbers(result: SimulationResult) -> dict[str, set[int]]:
    lists = {
        "offline": result.offline,
        "under": result.under_min_isr,
        "at": result.at_min_isr,
        "moving": result.moving,
    }
    return {name: {hit.partition.number for hit in hits} for name, hits in lists.items()}


@given(clusters(), SOME, SOME)
def test_a_drill_is_what_the_definitions_say(
    partitions: list[SimulatedPartition], away: set[int], dying: set[int]
) -> None:
    alive = set(BROKERS) - away
    result, expected = simulate_failure(partitions, alive, dying), naive(partitions, alive, dying)
    unknown = expected.pop("unknown")
    assert numbers(result) == expected
    assert result.unknown_min_isr == len(unknown)
    assert result.partitions == len(partitions)


@given(clusters(), SOME)
def test_every_partition_that_is_online_then_has_one_living_leader(
    partitions: list[SimulatedPartition], dying: set[int]
) -> None:
    result = simulate_failure(partitions, BROKERS, dying)
    online_now = sum(p.leader is not None for p in partitions)
    assert sum(load.leaders_now for load in result.load.values()) == sum(
        p.leader is not None and p.leader not in dying for p in partitions
    )
    assert sum(load.leaders_then for load in result.load.values()) == online_now - len(result.offline)
    assert result.load.keys() == set(BROKERS) - dying
    for hit in result.moving:
        assert hit.leader_then in (hit.partition.eligible if hit.by_elr else hit.partition.isr)
        assert hit.leader_then not in dying
        order = list(hit.partition.replicas)
        ahead = order[: order.index(hit.left[0])]
        assert not any(r in hit.partition.isr and r not in dying for r in ahead)


@given(clusters(), SOME)
def test_what_is_at_min_isr_then_is_counted_as_after_the_loss(
    partitions: list[SimulatedPartition], dying: set[int]
) -> None:
    result = simulate_failure(partitions, BROKERS, dying)
    then = 0
    for p in partitions:
        left = [r for r in p.isr if r not in dying] if p.leader is not None else list(p.isr)
        left = left or [r for r in p.eligible if r not in dying][:1]
        then += p.min_isr is not None and len(left) == p.min_isr
    assert result.at_then == then
    assert result.at_now == sum(p.min_isr is not None and len(p.isr) == p.min_isr for p in partitions)


@given(clusters(), SOME)
def test_every_single_loss_is_the_drill_of_it(partitions: list[SimulatedPartition], away: set[int]) -> None:
    racks = {broker: rack for broker, rack in RACKS.items() if broker not in away}
    rows = single_losses(partitions, racks)
    expected: list[tuple[str, tuple[int, ...]]] = [("broker", (b,)) for b in racks]
    named = {rack for rack in racks.values() if rack is not None}
    expected += [("rack", tuple(sorted(b for b, own in racks.items() if own == rack))) for rack in named]
    assert Counter((row.kind, row.brokers) for row in rows) == Counter(expected)
    for row in rows:
        alone = simulate_failure(partitions, racks, row.brokers)
        assert figures(row) == (
            len(alone.offline),
            len(alone.under_min_isr),
            len(alone.at_min_isr),
            len(alone.moving),
            alone.unknown_min_isr,
        )
        busiest = alone.busiest
        assert (row.busiest, row.busiest_now, row.busiest_then) == (
            (None, 0, 0) if busiest is None else (busiest[0], busiest[1].leaders_now, busiest[1].leaders_then)
        )
    severities = [row.severity for row in rows]
    assert severities == sorted(severities, reverse=True)


def figures(row: BrokerLoss) -> tuple[int, ...]:
    return row.offline, row.under_min_isr, row.at_min_isr, row.moving, row.unknown_min_isr


def test_a_partition_with_two_replicas_in_one_rack_goes_offline_with_it() -> None:
    result = simulate_failure([SimulatedPartition("clicks", 12, 2, [2, 5], [2, 5], 1)], range(1, 7), {2, 5})
    [hit] = result.offline
    assert (hit.partition.topic, hit.partition.number, hit.leader_then) == ("clicks", 12, None)


def test_the_next_replica_in_sync_leads_even_if_another_stands_before_it() -> None:
    [hit] = simulate_failure([SimulatedPartition("t", 0, 1, [1, 2, 3], [1, 3], 1)], range(1, 4), {1}).moving
    assert hit.leader_then == 3


def test_a_living_replica_of_the_elr_leads_once_the_whole_isr_is_gone() -> None:
    partition = SimulatedPartition("t", 0, 1, [1, 2, 3], [1], 2, [2, 3])
    result = simulate_failure([partition], {1, 3}, {1})
    assert (result.offline, result.by_elr, result.load[3].leaders_then) == ([], 1, 1)
    assert (result.moving[0].leader_then, result.moving[0].left) == (3, (3,))
    assert [hit.leader_then for hit in simulate_failure([partition], {1}, {1}).offline] == [None]


def test_what_refuses_writes_already_is_not_counted_as_more() -> None:
    result = simulate_failure([SimulatedPartition("t", 0, 1, [1, 2, 3], [1, 2], 3)], range(1, 4), {2})
    assert (result.under_now, result.under_min_isr) == (1, [])


def test_an_unknown_min_isr_is_no_verdict() -> None:
    result = simulate_failure([SimulatedPartition("t", 0, 1, [1, 2], [1, 2], None)], range(1, 3), {2})
    assert (result.min_isr_known, result.unknown_min_isr, result.under_min_isr, result.at_min_isr) == (0, 1, [], [])


def voter(id_: int, behind: int = 0) -> QuorumNode:
    return QuorumNode(id_, "", voter=True, log_end_offset=1, last_fetch_ms=1000, last_caught_up_ms=10_000 - behind)


@pytest.mark.parametrize(
    ("voters", "dying", "then", "lost", "certain"),
    [
        ((1, 2, 3), {1}, 2, False, True),
        ((1, 2, 3), {1, 2}, 1, True, True),
        ((101, 102, 103), {1, 2}, 3, False, False),
        ((1, 102, 103), {1}, 2, False, False),
        ((1,), {1}, 0, True, True),
    ],
)
def test_combined_nodes_die_as_voters_too(
    voters: tuple[int, ...], dying: set[int], then: int, lost: bool, certain: bool
) -> None:
    seen = judge_quorum([voter(id_) for id_ in voters], leader_id=voters[0], epoch_seen_s=600)
    after = quorum_after(seen, brokers=range(1, 7), dying=dying)
    assert (after.in_sync_then, after.lost, after.certain) == (then, lost, certain)


@pytest.mark.parametrize(("dying", "lost", "doubtful"), [({4}, False, True), ({2}, False, True), ({1, 2}, True, False)])
def test_a_voter_not_heard_from_since_the_leader_changed_may_be_in_sync(
    dying: set[int], lost: bool, doubtful: bool
) -> None:
    """2 and 3 have not fetched from the new leader 1 yet: whether 3 makes a majority with it is not known."""
    unheard = [QuorumNode(id_, "", True, None, None, None) for id_ in (2, 3)]
    seen = judge_quorum([voter(1), *unheard], leader_id=1, epoch_seen_s=2)
    after = quorum_after(seen, brokers=range(1, 5), dying=dying)
    assert (after.lost, after.doubtful, after.certain) == (lost, doubtful, lost)


def test_a_voter_that_lags_does_not_count_before_nor_after() -> None:
    seen = judge_quorum([voter(1), voter(2, 9000), voter(3)], leader_id=1, epoch_seen_s=600)
    after = quorum_after(seen, brokers=range(1, 4), dying={3})
    assert (after.in_sync_now, after.in_sync_then, after.lost) == (2, 1, True)
