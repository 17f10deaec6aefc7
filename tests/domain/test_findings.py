"""Judging a cluster: what is critical, what is only a warning, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.findings import BrokerAway, Facts, FindingKind, Judgement, board_title, judge
from kafkadash.domain.status import Refreshed, State, is_stale

NOW = datetime(2026, 11, 21, 2, 3, 4, tzinfo=UTC)


def ago(**lengths: float) -> datetime:
    return NOW - timedelta(**lengths)


FRESH = Refreshed(taken_at=ago(seconds=3), interval_s=10)
WELL = Facts(
    metadata=replace(FRESH, interval_s=30),
    reassignments=FRESH,
    quorum=FRESH,
    partitions=1120,
    offline_partitions=0,
    under_replicated=0,
    under_replicated_moving=0,
    brokers_gone=0,
    voters=3,
    voters_in_sync=3,
    voters_failing=0,
)


def kinds(judgement: Judgement) -> list[FindingKind]:
    return [finding.kind for finding in judgement.findings]


def test_a_cluster_without_faults_and_with_fresh_data_is_ok() -> None:
    assert judge(WELL, NOW) == Judgement(State.OK)
    assert judge(WELL, NOW).title("demo") == "demo is OK."


@pytest.mark.parametrize(
    ("offline", "title"),
    [(1, "demo has 1 partition without a leader."), (2310, "demo has 2,310 partitions without a leader.")],
)
def test_partitions_without_a_leader_are_critical(offline: int, title: str) -> None:
    judgement = judge(replace(WELL, offline_partitions=offline), NOW)
    assert judgement.state is State.CRITICAL
    assert judgement.title("demo") == title
    assert judgement.findings[0].measured.startswith(f"{offline:,} partition")


def test_under_replicated_partitions_count_only_where_no_move_explains_them() -> None:
    explained = replace(WELL, under_replicated=3, under_replicated_moving=3)
    assert judge(explained, NOW).state is State.OK
    judgement = judge(replace(explained, under_replicated=44), NOW)
    assert judgement.state is State.WARNING
    assert judgement.findings[0].sentence == "41 partitions are under-replicated, not explained by a move."
    assert judgement.findings[0].detail == "3 more are explained by moves"


class TestBrokers:
    def test_one_that_hosts_replicas_and_is_fenced_is_critical(self) -> None:
        down = BrokerAway(2, fenced=True, replicas=229, since=ago(minutes=7))
        finding = judge(replace(WELL, away=(down,)), NOW).findings[0]
        assert (finding.kind, finding.state) == (FindingKind.BROKER_DOWN, State.CRITICAL)
        assert finding.sentence == "Broker 2 is down and hosts replicas."
        assert finding.since == ago(minutes=7)

    def test_one_that_hosts_nothing_is_a_warning(self) -> None:
        judgement = judge(replace(WELL, away=(BrokerAway(2, fenced=True, replicas=0, since=None),)), NOW)
        assert (judgement.state, kinds(judgement)) == (State.WARNING, [FindingKind.BROKER_AWAY])

    def test_one_that_was_taken_out_a_day_ago_is_forgotten(self) -> None:
        left = BrokerAway(9, fenced=False, replicas=0, since=ago(hours=23))
        assert judge(replace(WELL, away=(left,)), NOW).state is State.WARNING
        assert judge(replace(WELL, away=(replace(left, since=ago(hours=25)),)), NOW).state is State.OK

    def test_one_that_was_down_before_anybody_looked_is_counted(self) -> None:
        finding = judge(replace(WELL, brokers_gone=1), NOW).findings[0]
        assert finding.kind is FindingKind.BROKER_DOWN
        assert finding.sentence == "1 broker is down and hosts replicas."

    def test_several_are_named_up_to_three(self) -> None:
        down = tuple(BrokerAway(n, fenced=True, replicas=1, since=None) for n in range(1, 5))
        assert judge(replace(WELL, away=down[:3]), NOW).title("demo") == "demo has brokers 1, 2 and 3 down."
        assert judge(replace(WELL, away=down), NOW).title("demo") == "demo has 4 brokers down."


class TestQuorum:
    def test_silent_controllers_of_answering_brokers_are_critical(self) -> None:
        lost = Refreshed(ago(minutes=2), 10, failures=2, failure="QuorumUnavailable", error="No majority.")
        judgement = judge(replace(WELL, quorum=lost, reassignments=lost), NOW)
        assert judgement.state is State.CRITICAL
        assert kinds(judgement) == [FindingKind.QUORUM_LOST]
        assert judgement.title("demo") == "demo has no controller quorum."
        assert "for 2 min" in judgement.findings[0].sentence

    def test_one_failure_alone_is_not_yet_a_loss(self) -> None:
        once = replace(FRESH, failures=1, failure="DeadlineExceeded", error="Too slow.")
        assert judge(replace(WELL, quorum=once), NOW).state is State.OK

    def test_a_refusal_by_the_controllers_is_not_a_loss_of_the_majority(self) -> None:
        refused = Refreshed(ago(minutes=2), 10, failures=9, failure="NotAuthorized", error="The principal needs more.")
        judgement = judge(replace(WELL, quorum=refused), NOW)
        assert (judgement.state, kinds(judgement)) == (State.UNKNOWN, [FindingKind.STALE])
        assert judgement.findings[0].detail == "The principal needs more."

    def test_a_voter_known_to_fail_without_margin_is_a_warning(self) -> None:
        judgement = judge(replace(WELL, voters_in_sync=2, voters_failing=1), NOW)
        assert (judgement.state, kinds(judgement)) == (State.WARNING, [FindingKind.QUORUM_MARGIN])

    def test_a_voter_not_heard_from_since_the_leader_changed_is_no_warning(self) -> None:
        assert judge(replace(WELL, voters_in_sync=2, voters_failing=0), NOW).state is State.OK

    def test_a_single_controller_has_no_margin_and_that_is_how_it_was_built(self) -> None:
        assert judge(replace(WELL, voters=1, voters_in_sync=1), NOW).state is State.OK

    def test_a_cluster_with_zookeeper_has_none(self) -> None:
        assert judge(replace(WELL, kraft=False, quorum=Refreshed()), NOW).state is State.OK


class TestAge:
    def test_nothing_is_ok_once_metadata_is_older_than_twice_its_interval(self) -> None:
        at_the_limit = replace(WELL, metadata=Refreshed(ago(seconds=60), 30))
        assert judge(at_the_limit, NOW).state is State.OK
        judgement = judge(replace(WELL, metadata=Refreshed(ago(seconds=61), 30)), NOW)
        assert judgement.state is State.UNKNOWN
        assert judgement.title("demo") == "Cannot tell about demo: nothing was collected for 1 min."

    def test_what_was_wrong_before_is_history_when_nobody_answers(self) -> None:
        silent = Refreshed(ago(minutes=12), 30, failures=20, failure="Unreachable", error="Connection refused.")
        judgement = judge(replace(WELL, metadata=silent, offline_partitions=7), NOW)
        assert judgement.state is State.UNKNOWN
        assert judgement.title("ledger-dr") == "Cannot tell about ledger-dr: no broker has answered for 12 min."
        assert judgement.findings[0].detail == "Connection refused."

    @pytest.mark.parametrize(
        ("metadata", "answer"),
        [
            (Refreshed(), "nothing was collected yet"),
            (Refreshed(failures=3, failure="Unreachable", error="refused"), "no broker has answered yet"),
        ],
    )
    def test_a_cluster_that_was_never_reached_says_so(self, metadata: Refreshed, answer: str) -> None:
        judgement = judge(replace(WELL, metadata=metadata), NOW)
        assert (judgement.state, judgement.findings[0].answer) == (State.UNKNOWN, answer)

    def test_old_reassignments_make_it_unknown_and_do_not_hide_what_is_worse(self) -> None:
        old = replace(WELL, reassignments=Refreshed(ago(minutes=3), 10))
        assert judge(old, NOW).title("demo") == "Cannot tell about demo: nothing new about reassignments for 3 min."
        worse = judge(replace(old, offline_partitions=1), NOW)
        assert (worse.state, kinds(worse)) == (State.CRITICAL, [FindingKind.OFFLINE, FindingKind.STALE])

    def test_a_pace_that_was_quickened_does_not_make_data_stale_sooner_than_ten_seconds(self) -> None:
        assert not is_stale(ago(seconds=9), 2, NOW)
        assert is_stale(ago(seconds=11), 2, NOW)

    @given(
        age=st.floats(min_value=0, max_value=10**6),
        interval=st.floats(min_value=1, max_value=600),
        offline=st.integers(min_value=0, max_value=5),
    )
    def test_old_data_is_never_ok(self, age: float, interval: float, offline: int) -> None:
        facts = replace(WELL, metadata=Refreshed(ago(seconds=age), interval), offline_partitions=offline)
        if is_stale(ago(seconds=age), interval, NOW):
            assert judge(facts, NOW).state is State.UNKNOWN


def test_a_cluster_that_is_switched_off_is_not_judged() -> None:
    judgement = judge(replace(WELL, enabled=False, offline_partitions=7, metadata=Refreshed()), NOW)
    assert judgement.state is State.MAINTENANCE


def test_findings_come_in_the_order_of_urgency() -> None:
    everything = replace(
        WELL,
        offline_partitions=1,
        under_replicated=5,
        away=(BrokerAway(2, fenced=True, replicas=3, since=None), BrokerAway(3, fenced=True, replicas=0, since=None)),
        voters_in_sync=1,
        voters_failing=2,
        reassignments=Refreshed(ago(minutes=3), 10),
    )
    assert kinds(judge(everything, NOW)) == [
        FindingKind.OFFLINE,
        FindingKind.BROKER_DOWN,
        FindingKind.QUORUM_MARGIN,
        FindingKind.UNDER_REPLICATED,
        FindingKind.BROKER_AWAY,
        FindingKind.STALE,
    ]


class TestBoardTitle:
    ok = judge(WELL, NOW)
    off = judge(replace(WELL, enabled=False), NOW)
    broken = judge(replace(WELL, offline_partitions=2), NOW)

    @pytest.mark.parametrize(
        ("clusters", "title"),
        [
            ([], "No cluster is registered yet."),
            ([("demo", ok)], "demo is OK."),
            ([("a", ok), ("b", ok), ("c", ok)], "All 3 clusters are OK."),
            ([("off", off), ("a", ok), ("b", ok)], "2 clusters are OK, 1 not watched."),
            ([("off", off)], "off is not watched: collection is switched off."),
            ([("x", off), ("y", off)], "None of 2 clusters is watched."),
            ([("demo", broken), ("a", ok)], "demo has 2 partitions without a leader."),
        ],
    )
    def test_it_says_the_worst_that_is_true(self, clusters: list[tuple[str, Judgement]], title: str) -> None:
        assert board_title(clusters) == title
