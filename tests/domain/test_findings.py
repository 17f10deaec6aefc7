"""Judging a cluster: what is critical, what is only a warning, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkadash.domain.facts import BrokerFact, DirectoryFact, Facts, Partitions
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.findings import Evaluation, evaluate
from kafkadash.domain.status import Refreshed, State
from tests.domain.well_cluster import FRESH, GB, NOW, WELL, ago, kinds, only, state, title, with_brokers, with_directory


def test_a_cluster_without_faults_and_with_fresh_data_is_ok() -> None:
    judged = evaluate(WELL, NOW)
    assert (judged.found, judged.blind, judged.blind_scopes) == ((), frozenset(), frozenset())
    assert title(WELL) == "demo is OK."


class TestHiddenTopics:
    def test_a_cluster_that_hides_topics_is_never_ok(self) -> None:
        facts = replace(WELL, hidden_topics=2)
        assert (state(facts), title(facts)) == (State.UNKNOWN, "Cannot tell about demo: some topics are hidden.")
        assert only(facts)[0] is FindingKind.TOPICS_HIDDEN

    def test_what_is_worse_is_said_first(self) -> None:
        facts = replace(WELL, hidden_topics=2, offline=Partitions(1, ("orders-0",)))
        assert state(facts) is State.CRITICAL

    def test_not_knowing_whether_topics_are_hidden_closes_nothing(self) -> None:
        assert evaluate(replace(WELL, hidden_topics=None), NOW).cannot_tell(FindingKind.TOPICS_HIDDEN, "")


class TestPartitions:
    @pytest.mark.parametrize(
        ("offline", "answer"),
        [(1, "demo has 1 partition without a leader."), (2310, "demo has 2,310 partitions without a leader.")],
    )
    def test_those_without_a_leader_are_critical(self, offline: int, answer: str) -> None:
        facts = replace(WELL, offline=Partitions(offline, ("orders-0",)))
        assert (state(facts), title(facts)) == (State.CRITICAL, answer)
        finding = evaluate(facts, NOW).found[0]
        assert (finding.value, finding.unit, finding.threshold) == (offline, "partitions", 0)
        assert finding.taken_at == FRESH.taken_at

    def test_those_that_refuse_writes_are_critical(self) -> None:
        facts = replace(WELL, under_min_isr=Partitions(5, ("a-1", "a-2", "a-3")))
        assert (state(facts), title(facts)) == (State.CRITICAL, "demo refuses writes to 5 partitions.")
        assert evaluate(facts, NOW).found[0].detail == "a-1, a-2, a-3 and 2 more · producers see NOT_ENOUGH_REPLICAS"

    def test_under_replicated_ones_count_only_where_no_move_explains_them(self) -> None:
        explained = replace(WELL, under_replicated=Partitions(3), under_replicated_moving=3)
        assert kinds(explained) == []
        facts = replace(explained, under_replicated=Partitions(44, missing=(2,)))
        (finding,) = evaluate(facts, NOW).found
        assert finding.sentence == "41 partitions are under-replicated, not explained by a move."
        assert finding.detail == "All miss their replica on broker 2 · 3 more are explained by moves"

    def test_those_at_min_isr_count_only_where_no_move_explains_them(self) -> None:
        explained = replace(WELL, at_min_isr=Partitions(2), at_min_isr_moving=2)
        assert kinds(explained) == []
        assert only(replace(explained, at_min_isr=Partitions(3)))[0] is FindingKind.AT_MIN_ISR

    @pytest.mark.parametrize(
        ("number", "last", "words"),
        [
            (6, 0, "6 partitions are at min-ISR: the next lost replica stops writes."),
            (6, 6, "6 partitions are at min-ISR: the next lost replica takes them offline."),
            (1, 1, "1 partition is at min-ISR: the next lost replica takes it offline."),
            (
                6,
                5,
                (
                    "6 partitions are at min-ISR: the next lost replica takes 5 of them offline and stops writes "
                    "to the other."
                ),
            ),
        ],
    )
    def test_what_the_next_lost_replica_does_goes_by_how_many_are_in_sync(
        self, number: int, last: int, words: str
    ) -> None:
        assert only(replace(WELL, at_min_isr=Partitions(number), at_min_isr_last=last))[2] == words

    def test_an_uneven_spread_over_racks_is_a_warning_and_unknown_racks_are_none(self) -> None:
        assert only(replace(WELL, rack_violations=4))[2] == "4 partitions are not spread evenly over the racks."
        assert kinds(replace(WELL, rack_violations=None)) == []

    @pytest.mark.parametrize(
        ("without_rack", "blind"), [(0, False), (3, False), (1, True), (None, True)], ids=["one", "none", "some", "?"]
    )
    def test_brokers_that_lost_their_rack_hide_the_spread_and_one_rack_or_none_has_none(
        self, without_rack: int | None, blind: bool
    ) -> None:
        facts = replace(WELL, rack_violations=None, brokers_without_rack=without_rack, brokers_registered=3)
        assert (FindingKind.RACK_VIOLATION in evaluate(facts, NOW).blind) == blind


class TestBrokers:
    def test_one_that_hosts_replicas_and_is_fenced_is_critical(self) -> None:
        facts = with_brokers(BrokerFact(2, fenced=True, replicas=229, since=ago(minutes=7)))
        assert only(facts) == (FindingKind.BROKER_DOWN, "2", "Broker 2 is down and hosts 229 replicas.")
        assert state(facts) is State.CRITICAL
        assert evaluate(facts, NOW).found[0].since == ago(minutes=7)

    def test_one_that_does_not_answer_is_critical_whatever_the_controllers_say(self) -> None:
        facts = with_brokers(BrokerFact(2, silent=True, replicas=229, leaders=12, since=ago(seconds=4)))
        assert only(facts) == (FindingKind.BROKER_DOWN, "2", "Broker 2 does not answer and hosts 229 replicas.")
        assert "12 partitions led by it not served" in evaluate(facts, NOW).found[0].detail
        assert state(facts) is State.CRITICAL

    def test_when_nobody_asked_them_lately_it_is_not_known_whether_one_is_down(self) -> None:
        facts = replace(WELL, answers=Refreshed(taken_at=ago(seconds=31), interval_s=5))
        assert evaluate(facts, NOW).cannot_tell(FindingKind.BROKER_DOWN, "2")
        assert (state(facts), kinds(facts)) == (State.UNKNOWN, [FindingKind.STALE])

    def test_each_is_a_finding_of_its_own_and_they_come_by_number(self) -> None:
        facts = with_brokers(*(BrokerFact(n, gone=True, replicas=1) for n in (10, 2)))
        assert [f.scope for f in evaluate(replace(facts, brokers_gone=2), NOW).found] == ["2", "10"]
        assert title(replace(facts, brokers_gone=2)) == "demo has 2 brokers down that host replicas."

    def test_one_that_hosts_nothing_is_a_warning(self) -> None:
        facts = with_brokers(BrokerFact(9, fenced=True))
        assert (state(facts), kinds(facts)) == (State.WARNING, [FindingKind.BROKER_AWAY])

    def test_one_that_was_taken_out_a_day_ago_is_forgotten(self) -> None:
        assert kinds(with_brokers(BrokerFact(9, gone=True, since=ago(hours=23)))) == [FindingKind.BROKER_AWAY]
        assert kinds(with_brokers(BrokerFact(9, gone=True, since=ago(hours=25)))) == []

    def test_one_that_was_down_before_anybody_looked_is_counted(self) -> None:
        assert only(replace(WELL, brokers_gone=1)) == (
            FindingKind.BROKER_DOWN,
            "unseen",
            "1 broker is down and hosts replicas.",
        )

    def test_different_releases_are_a_warning_and_those_that_are_away_do_not_count(self) -> None:
        old = BrokerFact(3, replicas=1120, leaders=374, release="4.2")
        facts = with_brokers(old)
        assert only(facts)[0] is FindingKind.MIXED_VERSIONS
        assert "4.2 on 1 broker and 4.3 or newer on 2 brokers" in evaluate(facts, NOW).found[0].detail
        assert FindingKind.MIXED_VERSIONS not in kinds(with_brokers(replace(old, fenced=True)))


class TestLeaders:
    @staticmethod
    def led(*leaders: int, partitions: int | None = None) -> Facts:
        brokers = tuple(BrokerFact(n, replicas=500, leaders=count) for n, count in enumerate(leaders, 1))
        return replace(WELL, brokers=brokers, partitions=sum(leaders) if partitions is None else partitions)

    @pytest.mark.parametrize(
        ("leaders", "found"),
        [
            ((120, 90, 90), True),  # +20 %
            ((119, 90, 91), False),
            ((60, 120, 120), True),  # −40 %
            ((20, 10, 10), False),  # 40 partitions: a percentage says nothing
            ((2, 1, 1) + (1,) * 46, False),  # within one leader of the mean, no other spread is better
        ],
    )
    def test_twenty_percent_off_the_mean_is_a_warning(self, leaders: tuple[int, ...], found: bool) -> None:
        assert kinds(self.led(*leaders)) == [FindingKind.LEADER_SKEW] * found

    def test_nothing_is_said_while_a_broker_is_down(self) -> None:
        facts = self.led(0, 180, 180)
        down = replace(facts, brokers=(replace(facts.brokers[0], fenced=True), *facts.brokers[1:]))
        assert kinds(down) == [FindingKind.BROKER_DOWN]

    def test_a_broker_that_hosts_nothing_yet_has_no_share(self) -> None:
        facts = self.led(150, 150)
        assert kinds(replace(facts, brokers=(*facts.brokers, BrokerFact(3)))) == []


class TestDisks:
    @pytest.mark.parametrize(
        ("usable", "measured", "threshold"),
        [(21, None, None), (20, "80.0 %", 80), (11, "89.0 %", 80), (10, "90.0 %", 90), (0, "100.0 %", 90)],
    )
    def test_each_directory_is_judged_by_itself(
        self, usable: int, measured: str | None, threshold: float | None
    ) -> None:
        found = evaluate(with_directory(DirectoryFact("/a", 100 * GB, usable * GB)), NOW).found
        assert [(f.scope, f.measured, f.threshold) for f in found] == (
            [("2:/a", measured, threshold)] if measured else []
        )

    def test_a_size_that_kafka_does_not_tell_is_no_finding(self) -> None:
        assert kinds(with_directory(DirectoryFact("/a"))) == []

    def test_a_failed_one_is_a_finding_and_not_full_as_well(self) -> None:
        facts = with_directory(DirectoryFact("/a", 100, 0, error="KafkaStorageException"))
        assert only(facts)[:2] == (FindingKind.FAILED_DIRECTORY, "2:/a")

    def test_those_of_a_broker_that_does_not_answer_cannot_be_told(self) -> None:
        facts = with_directory(DirectoryFact("/a", 100, 1), directories_at=ago(minutes=9))
        judged = evaluate(facts, NOW)
        assert judged.found == ()
        assert judged.cannot_tell(FindingKind.DISK_FULL, "2:/a")
        assert not judged.cannot_tell(FindingKind.DISK_FULL, "1:/a")

    def test_a_broker_that_left_for_good_has_none_any_more(self) -> None:
        facts = with_directory(DirectoryFact("/a", 100, 1), gone=True, replicas=0, directories_at=ago(days=9))
        assert not evaluate(facts, NOW).cannot_tell(FindingKind.DISK_FULL, "2:/a")


class TestQuorum:
    def test_silent_controllers_of_answering_brokers_are_critical(self) -> None:
        lost = Refreshed(ago(minutes=2), 10, failures=2, failure=FailureKind.QUORUM_UNAVAILABLE, error="No majority.")
        facts = replace(WELL, quorum=lost, reassignments=lost)
        assert (state(facts), kinds(facts)) == (State.CRITICAL, [FindingKind.QUORUM_LOST])
        assert title(facts) == "demo has no controller quorum."
        assert evaluate(facts, NOW).found[0].since == ago(minutes=2)

    def test_one_failure_alone_is_not_yet_a_loss(self) -> None:
        assert kinds(replace(WELL, quorum=replace(FRESH, failures=1, failure=FailureKind.DEADLINE_EXCEEDED))) == []

    def test_a_refusal_by_the_controllers_is_not_a_loss_of_the_majority(self) -> None:
        refused = Refreshed(
            ago(minutes=2), 10, failures=9, failure=FailureKind.NOT_AUTHORIZED, error="The principal needs more."
        )
        facts = replace(WELL, quorum=refused)
        assert (state(facts), kinds(facts)) == (State.UNKNOWN, [FindingKind.STALE])
        assert evaluate(facts, NOW).found[0].detail == "The principal needs more."

    def test_old_answers_do_not_close_what_they_opened(self) -> None:
        facts = replace(WELL, quorum=Refreshed(ago(minutes=2), 10, failures=1, failure=FailureKind.DEADLINE_EXCEEDED))
        assert {FindingKind.QUORUM_LOST, FindingKind.QUORUM_MARGIN} <= evaluate(facts, NOW).blind

    @pytest.mark.parametrize(("in_sync", "failing", "found"), [(2, 1, True), (2, 0, False), (3, 0, False)])
    def test_a_voter_known_to_fail_without_margin_is_a_warning(self, in_sync: int, failing: int, found: bool) -> None:
        facts = replace(WELL, voters_in_sync=in_sync, voters_failing=failing)
        assert kinds(facts) == [FindingKind.QUORUM_MARGIN] * found

    def test_a_single_controller_has_no_margin_and_that_is_how_it_was_built(self) -> None:
        assert kinds(replace(WELL, voters=1, voters_in_sync=1)) == []

    def test_more_than_three_elections_in_ten_minutes_is_flapping(self) -> None:
        assert kinds(replace(WELL, elections=3)) == []
        assert kinds(replace(WELL, elections=4)) == [FindingKind.QUORUM_FLAPPING]

    def test_a_cluster_with_zookeeper_has_none_and_is_named_as_not_supported(self) -> None:
        facts = replace(WELL, kraft=False, zookeeper=True, quorum=Refreshed(), voters=None)
        assert (state(facts), kinds(facts)) == (State.UNKNOWN, [FindingKind.ZOOKEEPER])


class TestMovesAndThrottles:
    def test_a_reassignment_that_adds_what_it_removes_never_ends(self) -> None:
        assert only(replace(WELL, zombies=("orders-1",)))[0] is FindingKind.ZOMBIE_REASSIGNMENT

    def test_a_throttle_that_nothing_needs(self) -> None:
        facts = replace(WELL, orphan_throttles=("rate of broker 1", "rate of broker 2"))
        assert only(facts)[2].startswith("2 replication throttles are in force although nothing moves that needs them")


def test_findings_come_in_the_order_of_urgency() -> None:
    everything = replace(
        WELL,
        offline=Partitions(1),
        under_min_isr=Partitions(1),
        at_min_isr=Partitions(1),
        under_replicated=Partitions(5),
        brokers=(BrokerFact(2, fenced=True, replicas=3), BrokerFact(3, fenced=True)),
        voters_in_sync=1,
        voters_failing=2,
        elections=9,
        rack_violations=1,
        zombies=("a-1",),
        orphan_throttles=("x",),
        versions=Refreshed(ago(hours=3), 10),
    )
    assert kinds(everything) == [
        FindingKind.OFFLINE,
        FindingKind.UNDER_MIN_ISR,
        FindingKind.BROKER_DOWN,
        FindingKind.QUORUM_MARGIN,
        FindingKind.AT_MIN_ISR,
        FindingKind.UNDER_REPLICATED,
        FindingKind.QUORUM_FLAPPING,
        FindingKind.ORPHAN_THROTTLE,
        FindingKind.ZOMBIE_REASSIGNMENT,
        FindingKind.RACK_VIOLATION,
        FindingKind.BROKER_AWAY,
        FindingKind.STALE,
    ]


def test_only_what_fails_now_is_critical() -> None:
    assert {kind for kind in FindingKind if kind.about.state is State.CRITICAL} == {
        FindingKind.OFFLINE,
        FindingKind.QUORUM_LOST,
        FindingKind.UNDER_MIN_ISR,
        FindingKind.BROKER_DOWN,
    }


def test_an_evaluation_is_the_same_twice() -> None:
    facts = replace(WELL, offline=Partitions(2), zombies=("a-1",))
    assert evaluate(facts, NOW) == evaluate(facts, NOW)
    assert isinstance(evaluate(facts, NOW), Evaluation)
