"""Nodes of the controller quorum, judged on the leader's clock."""

from __future__ import annotations

import pytest

from kafkadash.domain.quorum import NodeStanding, NodeStatus, Quorum, QuorumNode, quorum

NOW_MS = 1_700_000_000_000


def node(
    id_: int, behind_ms: int | None, *, voter: bool = True, end: int | None = 500, fetched_ms: int = 100
) -> QuorumNode:
    if behind_ms is None:
        return QuorumNode(id_, "d", voter, end, None if end is None else NOW_MS - fetched_ms, None)
    return QuorumNode(id_, "d", voter, end, NOW_MS - fetched_ms, NOW_MS - behind_ms)


def judged(*nodes: QuorumNode, epoch_seen_s: float = 600, missing: tuple[int, ...] = ()) -> Quorum:
    return quorum([node(1, 0), *nodes], leader_id=1, epoch_seen_s=epoch_seen_s, missing=missing)


def other(result: Quorum) -> NodeStanding:
    return next(s for s in (*result.voters, *result.observers) if s.node.id != 1)


@pytest.mark.parametrize(
    ("behind_ms", "status"),
    [(0, NodeStatus.IN_SYNC), (1999, NodeStatus.IN_SYNC), (2000, NodeStatus.LAGGING), (None, NodeStatus.UNKNOWN)],
)
def test_a_voter_lags_from_the_fetch_timeout_on(behind_ms: int | None, status: NodeStatus) -> None:
    standing = other(judged(node(2, behind_ms)))
    assert (standing.status, standing.lag_ms) == (status, behind_ms)


def test_the_lag_in_records_is_never_negative() -> None:
    assert other(judged(node(2, 10, end=480))).lag_records == 20
    assert other(judged(node(2, 10, end=501))).lag_records == 0


def test_a_node_that_has_not_fetched_for_five_minutes_is_offline() -> None:
    assert other(judged(node(2, 10, fetched_ms=300_001))).status is NodeStatus.OFFLINE


@pytest.mark.parametrize(("epoch_seen_s", "status"), [(14, NodeStatus.UNKNOWN), (16, NodeStatus.OFFLINE)])
def test_a_node_unheard_of_gets_some_time_after_the_leader_changed(epoch_seen_s: float, status: NodeStatus) -> None:
    standing = other(judged(node(2, None, end=None), epoch_seen_s=epoch_seen_s))
    assert standing.status is status
    assert (standing.lag_ms, standing.lag_records) == (None, None)


def test_a_registered_broker_that_the_answer_misses_is_offline_and_not_healthy() -> None:
    result = judged(node(5, 10, voter=False), missing=(5, 6))
    assert [(s.node.id, s.status) for s in result.observers] == [(5, NodeStatus.IN_SYNC), (6, NodeStatus.OFFLINE)]


@pytest.mark.parametrize(
    ("others", "in_sync", "failing", "survives"),
    [
        ([node(2, 5), node(3, 5)], 3, 0, 1),
        ([node(2, 5), node(3, 9000)], 2, 1, 0),
        ([node(2, 5), node(3, None)], 2, 0, 0),
        ([node(2, 9000), node(3, 9000)], 1, 2, 0),
        ([], 1, 0, 0),
        ([node(n, 5) for n in (2, 3, 4, 5)], 5, 0, 2),
    ],
)
def test_the_margin_counts_voters_known_to_be_in_sync(
    others: list[QuorumNode], in_sync: int, failing: int, survives: int
) -> None:
    result = judged(*others, node(9, 5, voter=False))
    assert (result.in_sync, result.failing, result.survives) == (in_sync, failing, survives)


def test_without_the_leaders_own_entry_no_age_is_made_up() -> None:
    result = quorum([node(2, 5)], leader_id=1, epoch_seen_s=600)
    assert result.voters[0].status is NodeStatus.UNKNOWN
    assert result.voters[0].lag_ms is None
