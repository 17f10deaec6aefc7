"""Nodes of the controller quorum, judged on the leader's clock.

The sentence that says how the controllers stand, and when their leader is called flapping.

Lag over time: lines that keep the worst, gaps that stay gaps, and the sentence above the chart.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import as_message
from kafkadash.core.status import NEVER, HealthState, RefreshStatus
from kafkadash.monitoring.quorum.rules import (
    MOST_LINES,
    LagBuckets,
    LeaderTerm,
    NodeStanding,
    NodeStatus,
    QuorumHealth,
    QuorumNode,
    QuorumVerdict,
    coarsen_values,
    describe_lag,
    format_seconds,
    is_flapping,
    judge_quorum,
    lag_lines,
    leader_changes,
    quorum_verdict,
    recent_changes,
)

pytestmark = pytest.mark.domain

NOW_MS = 1_700_000_000_000


def node(
    id_: int, behind_ms: int | None, *, voter: bool = True, end: int | None = 500, fetched_ms: int = 100
) -> QuorumNode:
    if behind_ms is None:
        return QuorumNode(id_, "d", voter, end, None if end is None else NOW_MS - fetched_ms, None)
    return QuorumNode(id_, "d", voter, end, NOW_MS - fetched_ms, NOW_MS - behind_ms)


def judged(*nodes: QuorumNode, epoch_seen_s: float = 600, missing: tuple[int, ...] = ()) -> QuorumHealth:
    return judge_quorum([node(1, 0), *nodes], leader_id=1, epoch_seen_s=epoch_seen_s, missing=missing)


def other(result: QuorumHealth) -> NodeStanding:
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
    result = judge_quorum([node(2, 5)], leader_id=1, epoch_seen_s=600)
    assert result.voters[0].status is NodeStatus.UNKNOWN
    assert result.voters[0].lag_ms is None


NOW = datetime(2026, 11, 21, 2, 3, 4, tzinfo=UTC)
MS = 1_700_000_000_000
FRESH = RefreshStatus(NOW - timedelta(seconds=6), 10)


def of(*behind: int | None) -> QuorumHealth:
    """Voter 1 leads; the others are this many ms behind, None: not heard from since the leader changed."""
    nodes = [QuorumNode(1, "", voter=True, log_end_offset=9, last_fetch_ms=None, last_caught_up_ms=MS)]
    for id_, ms in enumerate(behind, 2):
        then = None if ms is None else MS - ms
        end = None if ms is None else 9
        nodes.append(QuorumNode(id_, "", voter=True, log_end_offset=end, last_fetch_ms=then, last_caught_up_ms=then))
    return judge_quorum(nodes, leader_id=1, epoch_seen_s=1)


def said(
    seen: QuorumHealth | None, asked: RefreshStatus = FRESH, metadata: RefreshStatus = FRESH, recent_changes: int = 0
) -> QuorumVerdict:
    return quorum_verdict(seen, asked, metadata, recent_changes, NOW)


@pytest.mark.parametrize(
    ("seen", "state", "title"),
    [
        (of(5, 5), HealthState.OK, "Quorum tolerates 1 more failure"),
        (of(5, 5, 5, 5), HealthState.OK, "Quorum tolerates 2 more failures"),
        (of(5, 5, 5, 9000), HealthState.WARNING, "Quorum tolerates 1 more failure"),
        (of(5, 9000), HealthState.WARNING, "Quorum tolerates 0 more failures"),
        (of(9000, 9000), HealthState.WARNING, "Only 1 of 3 quorum voters in sync"),
        (of(5, 9000, 9000, 9000), HealthState.WARNING, "Only 2 of 5 quorum voters in sync"),
        (of(5), HealthState.OK, "Quorum tolerates 0 more failures"),
        (of(), HealthState.OK, "Quorum has a single voter"),
        (of(None, None), HealthState.UNKNOWN, "Quorum margin unknown"),
        (of(5, None), HealthState.UNKNOWN, "Quorum tolerates 0 more failures (unconfirmed)"),
        (of(5, 5, 5, None), HealthState.OK, "Quorum tolerates at least 1 more failure"),
    ],
)
def test_the_title_counts_what_may_still_fail(seen: QuorumHealth, state: HealthState, title: str) -> None:
    assert (said(seen).state, said(seen).title) == (state, title)


def test_an_old_kafka_that_tells_no_times_is_named_as_the_reason() -> None:
    nodes = [
        QuorumNode(n, "", voter=True, log_end_offset=9, last_fetch_ms=None, last_caught_up_ms=None) for n in (1, 2)
    ]
    verdict = said(judge_quorum(nodes, leader_id=1, epoch_seen_s=600))
    assert verdict.state is HealthState.UNKNOWN
    assert "before 3.3" in verdict.detail


@pytest.mark.parametrize("failure", [FailureKind.QUORUM_UNAVAILABLE, FailureKind.DEADLINE_EXCEEDED])
def test_silent_controllers_behind_brokers_that_answer_are_a_lost_quorum(failure: str) -> None:
    asked = RefreshStatus(
        NOW - timedelta(seconds=70), 10, failures=2, failure=failure, error=as_message("It timed out.")
    )
    verdict = said(of(5, 5), asked)
    assert verdict.lost
    assert verdict.state is HealthState.CRITICAL
    assert verdict.title == "Controller quorum lost"
    assert "1 min 10 s ago" in verdict.detail


def test_one_refresh_without_an_answer_is_not_yet_a_lost_quorum() -> None:
    asked = RefreshStatus(
        NOW - timedelta(seconds=15),
        10,
        failures=1,
        failure=FailureKind.QUORUM_UNAVAILABLE,
        error=as_message("It timed out."),
    )
    assert said(of(5, 5), asked).title == "Quorum tolerates 1 more failure"


def test_a_cluster_that_does_not_answer_at_all_has_an_unknown_quorum_not_a_lost_one() -> None:
    asked = RefreshStatus(
        NOW - timedelta(minutes=12),
        10,
        failures=9,
        failure=FailureKind.DEADLINE_EXCEEDED,
        error=as_message("It timed out."),
    )
    silent = RefreshStatus(
        NOW - timedelta(minutes=12),
        30,
        failures=3,
        failure=FailureKind.DEADLINE_EXCEEDED,
        error=as_message("It timed out."),
    )
    verdict = said(of(5, 5), asked, silent)
    assert (verdict.state, verdict.lost) == (HealthState.UNKNOWN, False)
    assert verdict.title == "Quorum state unknown: data is 12 min old"
    assert verdict.detail == "It timed out."


def test_never_asked_and_not_allowed_are_unknown_and_say_why() -> None:
    assert said(None, NEVER).title == "Quorum state unknown: no response yet"
    refused = RefreshStatus(
        None, 10, failures=9, failure=FailureKind.NOT_AUTHORIZED, error=as_message("The principal needs Describe.")
    )
    verdict = said(None, refused)
    assert verdict.title == "Quorum state unknown: access denied"
    assert verdict.detail == "The principal needs Describe."


@pytest.mark.parametrize(("number", "flaps"), [(3, False), (4, True)])
def test_more_than_three_changes_in_ten_minutes_are_flapping(number: int, flaps: bool) -> None:
    begin = NOW - timedelta(minutes=9)
    reigns = [LeaderTerm(1, 40, NOW - timedelta(hours=3), begin)]
    reigns += [LeaderTerm(1 + n % 2, 41 + n, begin + timedelta(minutes=n), begin) for n in range(number)]
    seen = leader_changes(reigns)
    assert recent_changes(seen, NOW) == number
    assert is_flapping(seen, NOW) is flaps
    title = said(of(5, 5), recent_changes=number).title
    assert title == ("Quorum leader changed 4 times in 10 min" if flaps else "Quorum tolerates 1 more failure")


def test_changes_longer_ago_do_not_flap() -> None:
    reigns = [LeaderTerm(1, n, NOW - timedelta(minutes=60 - n), NOW) for n in range(8)]
    assert len(leader_changes(reigns)) == 7
    assert not is_flapping(leader_changes(reigns), NOW)


def test_what_is_known_first_is_no_change_and_epochs_nobody_saw_are_counted() -> None:
    first = LeaderTerm(1, 40, NOW - timedelta(hours=3), NOW - timedelta(hours=1))
    later = LeaderTerm(2, 43, NOW - timedelta(hours=1), NOW)
    assert leader_changes([first]) == []
    [change] = leader_changes([later, first])
    assert (change.before, change.after, change.unseen) == (first, later, 2)


BUCKETS = 20


def history(
    lag: dict[int, dict[int, int]], voters: set[int], heard: set[int] | None = None, watched_from: int = 0
) -> LagBuckets:
    every = set(range(BUCKETS))
    return LagBuckets(
        0, 60, BUCKETS, frozenset(voters), lag, frozenset(every if heard is None else heard), watched_from
    )


def say_lag(seen: LagBuckets) -> str:
    return describe_lag(seen, lag_lines(seen), {bucket: f"00:{bucket:02}" for bucket in range(BUCKETS + 1)})


LAGS = st.dictionaries(
    st.integers(1, 40),
    st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(0, 60_000), max_size=BUCKETS),
    max_size=40,
)


@given(LAGS, st.sets(st.integers(1, 5)))
def test_no_spike_is_lost_whatever_shares_a_line(lag: dict[int, dict[int, int]], voters: set[int]) -> None:
    seen = history(lag, voters)
    lines = lag_lines(seen)
    assert len(lines) <= max(MOST_LINES, len(voters) + 1)
    for bucket in range(BUCKETS):
        worst = max((own[bucket] for own in lag.values() if bucket in own), default=None)
        drawn = max((v for line in lines if (v := line.values[bucket]) is not None), default=None)
        assert drawn == worst
        for size in (1, 3, 7):
            table = [coarsen_values(line.values, size)[bucket // size] for line in lines]
            assert worst is None or max(v for v in table if v is not None) >= worst


@given(LAGS)
def test_what_is_not_known_is_a_gap(lag: dict[int, dict[int, int]]) -> None:
    few = dict(list(lag.items())[: MOST_LINES - 1])
    for line in lag_lines(history(few, set())):
        own = few[int(line.label.removeprefix("broker "))]
        assert [bucket for bucket, value in enumerate(line.values) if value is None] == [
            bucket for bucket in range(BUCKETS) if bucket not in own
        ]


def steady(ms: int) -> dict[int, int]:
    return dict.fromkeys(range(BUCKETS), ms)


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (history({1: steady(210), 2: steady(340)}, {1, 2}), "Below 0.4 s throughout."),
        (
            history({1: steady(210), 5: steady(300) | {7: 2100, 8: 2400, 9: 2000}}, {1}),
            "Below 0.3 s throughout, except broker 5: up to 2.4 s, 00:07 to 00:10.",
        ),
        (
            history({5: steady(3000), 6: steady(9000)}, set()),
            "Broker 6: up to 9.0 s, 00:00 to 00:20; broker 5 lagged too.",
        ),
        (
            history({1: steady(210)}, {1}, heard=set(range(5, 18)), watched_from=5),
            "Below 0.3 s throughout. No response from the controllers in 2 of 15 intervals.",
        ),
        (history({}, set(), heard=set()), "No responses from the controllers in this period."),
        (history({1: {}}, {1}), "No lag data: the leader did not report times of other nodes."),
    ],
)
def test_the_sentence(seen: LagBuckets, sentence: str) -> None:
    assert say_lag(seen) == sentence


@pytest.mark.parametrize(
    ("ms", "words"), [(0, "0.0 s"), (640, "0.6 s"), (12_400, "12 s"), (119_999, "119 s"), (120_000, "2 min")]
)
def test_a_lag_in_words(ms: int, words: str) -> None:
    assert format_seconds(ms) == words
