"""Judging a cluster: what is critical, what is only a warning, and what cannot be told.

What is judged of old facts: they find nothing, close nothing, and nothing old is OK.

Groups that do not read: a finding each while they are few, a sum of the rest, nothing of old data.

What the pipeline says: disks that will be full, files that it set aside, and that it stands still.

What opens, goes on and closes: one open finding of a kind and scope, and nothing closes for want of data.

The sentence at the top: what is worst in a cluster, and on the board of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import CodedMessage, as_message, coded
from kafkadash.core.status import NEVER, HealthState, RefreshStatus, is_stale
from kafkadash.findings.facts import (
    BrokerFact,
    ClusterFacts,
    DirectoryFact,
    DriftFact,
    EligibleFacts,
    FilesSetAside,
    ForecastFact,
    GroupFact,
    HangingFact,
    PartitionFacts,
    PipelineFact,
)
from kafkadash.findings.judgement import (
    UNREAD,
    FindingEvaluation,
    JudgedPoint,
    KnownFindings,
    board_headline,
    evaluate,
    judge_reading,
    not_judged,
    reconcile,
    write_headline,
)
from kafkadash.findings.judges import MORE, MOST_NAMED, MOST_STOPPED, full_in, shorten_name
from kafkadash.findings.kinds import FactSource, FindingCode, FindingKind, FindingNoteCode, JudgedFinding
from kafkadash.monitoring.canary.rules import CanaryReason, CanaryTrouble
from kafkadash.monitoring.groups.rules import LagState
from tests.findings.well_cluster import (
    FRESH,
    GB,
    NOW,
    WELL,
    ago,
    kinds,
    only,
    says,
    state,
    with_brokers,
    with_directory,
    with_old,
)

pytestmark = pytest.mark.domain


def test_a_cluster_without_faults_and_with_fresh_data_is_ok() -> None:
    judged = evaluate(WELL, NOW)
    assert (judged.found, judged.blind, judged.blind_scopes) == ((), frozenset(), frozenset())
    assert state(WELL) is HealthState.OK


class TestHiddenTopics:
    def test_a_cluster_that_hides_topics_is_never_ok(self) -> None:
        facts = replace(WELL, hidden_topics=2)
        assert state(facts) is HealthState.UNKNOWN
        assert only(facts) == (FindingKind.TOPICS_HIDDEN, "", coded(FindingCode.TOPICS_NOT_SHOWN, topics=2))

    def test_what_is_worse_is_said_first(self) -> None:
        facts = replace(WELL, hidden_topics=2, offline=PartitionFacts(1, ("orders-0",)))
        assert state(facts) is HealthState.CRITICAL

    def test_not_knowing_whether_topics_are_hidden_closes_nothing(self) -> None:
        assert evaluate(replace(WELL, hidden_topics=None), NOW).cannot_tell(FindingKind.TOPICS_HIDDEN, "")


class TestPartitions:
    @pytest.mark.parametrize(("offline", "names"), [(1, ("orders-0",)), (2310, ("orders-0", 2309))])
    def test_those_without_a_leader_are_critical(self, offline: int, names: tuple[str | int, ...]) -> None:
        facts = replace(WELL, offline=PartitionFacts(offline, ("orders-0",)))
        notes = (coded(FindingNoteCode.NAMED, names=names), coded(FindingNoteCode.OF_PARTITIONS, partitions=1120))
        assert state(facts) is HealthState.CRITICAL
        assert says(facts, FindingCode.PARTITIONS_LEADERLESS, partitions=offline, notes=notes)
        finding = evaluate(facts, NOW).found[0]
        assert (finding.value, finding.unit, finding.threshold) == (offline, "partitions", 0)
        assert finding.taken_at == FRESH.taken_at

    def test_those_that_refuse_writes_are_critical(self) -> None:
        facts = replace(WELL, under_min_isr=PartitionFacts(5, ("a-1", "a-2", "a-3")))
        named = coded(FindingNoteCode.NAMED, names=("a-1", "a-2", "a-3", 2))
        notes = (named, coded(FindingNoteCode.PRODUCERS_SEE))
        assert state(facts) is HealthState.CRITICAL
        assert says(facts, FindingCode.WRITES_REFUSED, partitions=5, notes=notes)

    @pytest.mark.parametrize(
        ("elr", "codes"),
        [
            (EligibleFacts(), []),
            (EligibleFacts(2, 2, (3,), each=True), [FindingNoteCode.RETURN_OF_ANY]),
            (EligibleFacts(3, 2, (2, 3)), [FindingNoteCode.RETURN_OF_ALL, FindingNoteCode.NO_ELIGIBLE]),
        ],
    )
    def test_those_without_a_leader_say_which_brokers_bring_them_back(
        self, elr: EligibleFacts, codes: list[FindingNoteCode]
    ) -> None:
        [finding] = evaluate(replace(WELL, offline=PartitionFacts(3), offline_elr=elr), NOW).found
        assert [note.code for note in finding.message.params["notes"][1:]] == codes

    def test_those_under_min_isr_say_what_the_elr_does(self) -> None:
        facts = replace(WELL, under_min_isr=PartitionFacts(2), under_elr=EligibleFacts(2, 1, (3,), each=True))
        held = coded(FindingNoteCode.WATERMARK_HELD, partitions=2)
        can_lead = coded(FindingNoteCode.CAN_LEAD, partitions=1, brokers=(3,))
        assert says(facts, FindingCode.WRITES_REFUSED, notes=(coded(FindingNoteCode.PRODUCERS_SEE), held, can_lead))

    def test_under_replicated_ones_count_only_where_no_move_explains_them(self) -> None:
        explained = replace(WELL, under_replicated=PartitionFacts(3), under_replicated_moving=3)
        assert kinds(explained) == []
        facts = replace(explained, under_replicated=PartitionFacts(44, missing=(2,)))
        missing = coded(FindingNoteCode.MISS_REPLICA, partitions=41, brokers=(2,))
        explained_ones = coded(FindingNoteCode.EXPLAINED_BY_MOVES, partitions=3)
        assert only(facts)[2] == coded(FindingCode.UNDER_REPLICATED, partitions=41, notes=(missing, explained_ones))

    def test_those_at_min_isr_count_only_where_no_move_explains_them(self) -> None:
        explained = replace(WELL, at_min_isr=PartitionFacts(2), at_min_isr_moving=2)
        assert kinds(explained) == []
        assert only(replace(explained, at_min_isr=PartitionFacts(3)))[0] is FindingKind.AT_MIN_ISR

    @pytest.mark.parametrize(
        ("number", "last", "code", "params"),
        [
            (6, 0, FindingCode.NEXT_STOPS_WRITES, {}),
            (6, 6, FindingCode.NEXT_GOES_OFFLINE, {}),
            (1, 1, FindingCode.NEXT_GOES_OFFLINE, {}),
            (6, 5, FindingCode.NEXT_DOES_BOTH, {"last": 5, "others": 1}),
        ],
    )
    def test_what_the_next_lost_replica_does_goes_by_how_many_are_in_sync(
        self, number: int, last: int, code: FindingCode, params: dict[str, int]
    ) -> None:
        message = only(replace(WELL, at_min_isr=PartitionFacts(number), at_min_isr_last=last))[2]
        assert message == coded(code, partitions=number, notes=(), **params)

    def test_an_uneven_spread_over_racks_is_a_warning_and_unknown_racks_are_none(self) -> None:
        assert only(replace(WELL, rack_violations=4))[2] == coded(FindingCode.RACKS_UNEVEN, partitions=4)
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
        message = coded(FindingCode.DOWN_FENCED, broker=2, replicas=229)
        assert only(facts) == (FindingKind.BROKER_DOWN, "2", message)
        assert state(facts) is HealthState.CRITICAL
        assert evaluate(facts, NOW).found[0].since == ago(minutes=7)

    def test_one_that_does_not_answer_is_critical_whatever_the_controllers_say(self) -> None:
        facts = with_brokers(BrokerFact(2, silent=True, replicas=229, leaders=12, since=ago(seconds=4)))
        message = coded(FindingCode.DOWN_SILENT, broker=2, replicas=229, leaders=12)
        assert only(facts) == (FindingKind.BROKER_DOWN, "2", message)
        assert state(facts) is HealthState.CRITICAL

    def test_when_nobody_asked_them_lately_it_is_not_known_whether_one_is_down(self) -> None:
        facts = replace(WELL, answers=RefreshStatus(taken_at=ago(seconds=31), interval_s=5))
        assert evaluate(facts, NOW).cannot_tell(FindingKind.BROKER_DOWN, "2")
        assert (state(facts), kinds(facts)) == (HealthState.UNKNOWN, [FindingKind.STALE])

    def test_each_is_a_finding_of_its_own_and_they_come_by_number(self) -> None:
        facts = with_brokers(*(BrokerFact(n, gone=True, replicas=1) for n in (10, 2)))
        found = evaluate(replace(facts, brokers_gone=2), NOW).found
        assert [(f.scope, f.message.code) for f in found] == [
            ("2", FindingCode.DOWN_NOT_REGISTERED),
            ("10", FindingCode.DOWN_NOT_REGISTERED),
        ]

    @pytest.mark.parametrize(
        ("away", "code"),
        [
            ({"fenced": True}, FindingCode.AWAY_FENCED),
            ({"silent": True}, FindingCode.AWAY_SILENT),
            ({"gone": True, "since": ago(hours=1)}, FindingCode.AWAY_NOT_REGISTERED),
        ],
    )
    def test_one_that_hosts_nothing_is_a_warning(self, away: dict[str, Any], code: FindingCode) -> None:
        facts = with_brokers(BrokerFact(9, **away))
        assert state(facts) is HealthState.WARNING
        assert only(facts) == (FindingKind.BROKER_AWAY, "9", coded(code, broker=9))

    def test_one_that_was_taken_out_a_day_ago_is_forgotten(self) -> None:
        assert kinds(with_brokers(BrokerFact(9, gone=True, since=ago(hours=23)))) == [FindingKind.BROKER_AWAY]
        assert kinds(with_brokers(BrokerFact(9, gone=True, since=ago(hours=25)))) == []

    def test_one_that_was_down_before_anybody_looked_is_counted(self) -> None:
        assert only(replace(WELL, brokers_gone=1)) == (
            FindingKind.BROKER_DOWN,
            "unseen",
            coded(FindingCode.DOWN_UNSEEN, brokers=1),
        )

    def test_different_releases_are_a_warning_and_those_that_are_away_do_not_count(self) -> None:
        old = BrokerFact(3, replicas=1120, leaders=374, release="4.2")
        facts = replace(with_brokers(old), mixed_since=ago(hours=1))
        releases = tuple(
            coded(FindingNoteCode.RELEASE, release=release, brokers=number)
            for release, number in (("4.2", 1), ("4.3 or newer", 2))
        )
        message = coded(FindingCode.VERSIONS_DIFFER, versions=2, releases=releases)
        assert only(facts) == (FindingKind.MIXED_VERSIONS, "", message)
        assert kinds(replace(facts, mixed_since=ago(minutes=59))) == [], "a rolling upgrade"
        fenced = replace(with_brokers(replace(old, fenced=True)), mixed_since=ago(hours=1))
        assert FindingKind.MIXED_VERSIONS not in kinds(fenced)

    def test_since_when_they_differ_is_not_known__an_open_finding_stays(self) -> None:
        old = WELL.brokers[0]
        facts = with_brokers(replace(old, release="3.9"))
        assert FindingKind.MIXED_VERSIONS in evaluate(replace(facts, mixed_since=None), NOW).blind
        assert FindingKind.MIXED_VERSIONS not in evaluate(WELL, NOW).blind

    def test_different_api_versions_of_one_release_are_a_warning(self) -> None:
        brokers = tuple(replace(broker, software=number // 2) for number, broker in enumerate(WELL.brokers))
        facts = replace(WELL, brokers=brokers, mixed_since=ago(hours=2))
        assert only(facts) == (FindingKind.MIXED_VERSIONS, "", coded(FindingCode.APIS_DIFFER, versions=2))

    def test_configs_that_differ_for_an_hour_are_a_warning(self) -> None:
        drift = (DriftFact("num.io.threads", ago(hours=3)), DriftFact("log.retention.hours", ago(minutes=59)))
        message = coded(FindingCode.CONFIGS_DIFFER, keys=1, names=("num.io.threads",))
        assert only(replace(WELL, config_drift=drift)) == (FindingKind.CONFIG_DRIFT, "", message)
        assert evaluate(replace(WELL, config_drift=drift), NOW).found[0].since == ago(hours=3)
        assert kinds(replace(WELL, config_drift=drift[1:])) == [], "a rolling restart"


class TestTransactions:
    HANG = replace(WELL, hanging=HangingFact(4, ("a-0", "a-1", "b-0"), ago(hours=2)))

    def test_hanging_transactions_are_one_finding_of_the_cluster(self) -> None:
        [found] = evaluate(self.HANG, NOW).found
        assert (found.kind, found.scope, found.since) == (FindingKind.HANGING_TRANSACTION, "", ago(hours=2))
        names = ("a-0", "a-1", "b-0")
        assert found.message == coded(FindingCode.TRANSACTIONS_HANG, transactions=4, partitions=3, names=names)

    def test_those_that_were_not_read_make_it_a_lower_bound(self) -> None:
        [found] = evaluate(replace(WELL, hanging=HangingFact(4, ("a-0",), ago(hours=2), unread=7)), NOW).found
        names = ("a-0",)
        params = {"transactions": 4, "partitions": 1, "names": names, "unread": 7}
        assert found.message == coded(FindingCode.TRANSACTIONS_HANG_AT_LEAST, **params)

    def test_one_in_doubt_closes_nothing(self) -> None:
        kind = FindingKind.HANGING_TRANSACTION
        assert not evaluate(WELL, NOW).cannot_tell(kind, "")
        assert evaluate(replace(WELL, hanging_blind=True), NOW).cannot_tell(kind, "")
        assert evaluate(replace(WELL, transactions=NEVER), NOW).cannot_tell(kind, "")


class TestCanary:
    FAILS = CanaryTrouble(2, ago(minutes=2), 4, CanaryReason.REFUSED, "NOT_ENOUGH_REPLICAS")
    SLOW = CanaryTrouble(3, ago(minutes=5), 10, median_ms=1400.2)
    MEASURED = replace(WELL, canary=WELL.metadata)

    def test_failed_and_slow_brokers_are_found(self) -> None:
        facts = replace(self.MEASURED, canaries=(self.FAILS, self.SLOW))
        fails, slow = evaluate(facts, NOW).found
        why = coded(CanaryReason.REFUSED, detail="NOT_ENOUGH_REPLICAS")
        assert (fails.kind, fails.scope, fails.since) == (FindingKind.CANARY_FAILS, "2", ago(minutes=2))
        assert fails.message == coded(FindingCode.CANARY_FAILED, broker=2, probes=4, why=why)
        assert (slow.kind, slow.scope) == (FindingKind.CANARY_SLOW, "3")
        assert slow.message == coded(FindingCode.CANARY_LATE, broker=3, milliseconds=1400, most=1000)

    def test_a_broker_that_is_away_has_a_finding_of_its_own(self) -> None:
        away = tuple(replace(broker, fenced=broker.id == 2) for broker in WELL.brokers)
        facts = replace(self.MEASURED, canaries=(self.FAILS,), brokers=away)
        assert FindingKind.CANARY_FAILS not in kinds(facts)

    def test_a_broker_that_is_not_measured_keeps_its_finding(self) -> None:
        evaluation = evaluate(replace(self.MEASURED, canaries_blind=frozenset({2})), NOW)
        assert evaluation.cannot_tell(FindingKind.CANARY_FAILS, "2")
        assert not evaluation.cannot_tell(FindingKind.CANARY_FAILS, "3")

    def test_a_canary_that_was_stopped_leaves_nothing_open__one_that_is_silent_does(self) -> None:
        assert FindingKind.CANARY_FAILS not in evaluate(WELL, NOW).blind
        assert FindingKind.CANARY_FAILS in evaluate(replace(WELL, canary=NEVER), NOW).blind


class TestLeaders:
    @staticmethod
    def led(*leaders: int, partitions: int | None = None) -> ClusterFacts:
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

    def test_the_broker_that_is_furthest_off_is_told(self) -> None:
        assert says(self.led(120, 90, 90), FindingCode.LEADS_MORE, broker=1, percent=20, leaders=120, share=100.0)
        assert says(self.led(60, 120, 120), FindingCode.LEADS_FEWER, broker=1, percent=40)
        assert says(self.led(120, 40), FindingCode.LEADS_FEWER, broker=2, percent=50)

    def test_nothing_is_said_while_a_broker_is_down(self) -> None:
        facts = self.led(0, 180, 180)
        down = replace(facts, brokers=(replace(facts.brokers[0], fenced=True), *facts.brokers[1:]))
        assert kinds(down) == [FindingKind.BROKER_DOWN]

    def test_leader_skew__drained_broker__is_expected_to_lead_less(self) -> None:
        brokers = (
            BrokerFact(1, replicas=100, leaders=40),
            BrokerFact(2, replicas=500, leaders=200),
            BrokerFact(3, replicas=400, leaders=160),
        )
        assert kinds(replace(self.led(40, 200, 160), brokers=brokers)) == []

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

    def test_free_bytes_are_told_by_tenths_of_a_gigabyte(self) -> None:
        facts = with_directory(DirectoryFact("/a", 100 * GB, 11 * GB + 54_321_000))
        message = coded(
            FindingCode.DIRECTORY_FILLS_UP,
            broker=2,
            path="/a",
            percent=88.9,
            free=11_100_000_000,
            total=100 * GB,
        )
        assert only(facts)[2] == message

    def test_a_size_that_kafka_does_not_tell_is_no_finding(self) -> None:
        assert kinds(with_directory(DirectoryFact("/a"))) == []

    def test_a_failed_one_is_a_finding_and_not_full_as_well(self) -> None:
        facts = with_directory(DirectoryFact("/a", 100, 0, error="KafkaStorageException"))
        message = coded(FindingCode.DIRECTORY_FAILED, broker=2, path="/a", fault="KafkaStorageException")
        assert only(facts) == (FindingKind.FAILED_DIRECTORY, "2:/a", message)

    def test_those_whose_brokers_tell_no_sizes_or_nothing_are_unknown(self) -> None:
        of_directories = {FindingKind.DISK_FULL, FindingKind.FAILED_DIRECTORY}
        for facts, unknown in (
            (with_directory(DirectoryFact("/a", 100, 90)), set()),
            (with_directory(DirectoryFact("/a")), {FindingKind.DISK_FULL}),
            (with_directory(DirectoryFact("/a", 100, 90), directories_at=ago(minutes=9)), of_directories),
        ):
            assert evaluate(facts, NOW).unknown_kinds & of_directories == unknown

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
        lost = RefreshStatus(
            ago(minutes=2), 10, failures=2, failure=FailureKind.QUORUM_UNAVAILABLE, error=as_message("No majority.")
        )
        facts = replace(WELL, quorum=lost, reassignments=lost)
        assert (state(facts), kinds(facts)) == (HealthState.CRITICAL, [FindingKind.QUORUM_LOST])
        assert says(facts, FindingCode.QUORUM_SILENT, why=lost.error)
        assert evaluate(facts, NOW).found[0].since == ago(minutes=2)

    def test_one_failure_alone_is_not_yet_a_loss(self) -> None:
        assert kinds(replace(WELL, quorum=replace(FRESH, failures=1, failure=FailureKind.DEADLINE_EXCEEDED))) == []

    def test_a_refusal_by_the_controllers_is_not_a_loss_of_the_majority(self) -> None:
        refused = RefreshStatus(
            ago(minutes=2),
            10,
            failures=9,
            failure=FailureKind.NOT_AUTHORIZED,
            error=as_message("The principal needs more."),
        )
        facts = replace(WELL, quorum=refused)
        assert (state(facts), kinds(facts)) == (HealthState.UNKNOWN, [FindingKind.STALE])
        assert says(facts, FindingCode.FACTS_OLD, sources=("quorum",), age=120, why=refused.error)

    def test_old_answers_do_not_close_what_they_opened(self) -> None:
        facts = replace(
            WELL, quorum=RefreshStatus(ago(minutes=2), 10, failures=1, failure=FailureKind.DEADLINE_EXCEEDED)
        )
        assert {FindingKind.QUORUM_LOST, FindingKind.QUORUM_MARGIN} <= evaluate(facts, NOW).blind

    @pytest.mark.parametrize(("in_sync", "failing", "found"), [(2, 1, True), (2, 0, False), (3, 0, False)])
    def test_a_voter_known_to_fail_without_margin_is_a_warning(self, in_sync: int, failing: int, found: bool) -> None:
        facts = replace(WELL, voters_in_sync=in_sync, voters_failing=failing)
        messages = [finding.message for finding in evaluate(facts, NOW).found]
        assert messages == [coded(FindingCode.QUORUM_AT_MARGIN, in_sync=2, voters=3, majority=2)] * found

    def test_a_single_controller_has_no_margin_and_that_is_how_it_was_built(self) -> None:
        assert kinds(replace(WELL, voters=1, voters_in_sync=1)) == []

    def test_more_than_three_elections_in_ten_minutes_is_flapping(self) -> None:
        assert kinds(replace(WELL, elections=3)) == []
        message = coded(FindingCode.KEEPS_ELECTING, elections=4)
        assert only(replace(WELL, elections=4)) == (FindingKind.QUORUM_FLAPPING, "", message)

    def test_a_cluster_with_zookeeper_has_none_and_needs_its_address(self) -> None:
        facts = replace(WELL, kraft=False, zookeeper=True, quorum=RefreshStatus(), voters=None)
        assert (state(facts), kinds(facts)) == (HealthState.UNKNOWN, [FindingKind.ZOOKEEPER])
        read = replace(facts, ensemble=RefreshStatus(NOW, 10))
        assert (state(read), kinds(read)) == (HealthState.OK, [])
        why = coded(FindingCode.NOT_JUDGED_YET)
        unread = replace(facts, ensemble=RefreshStatus(NOW - timedelta(minutes=5), 10, error=why))
        assert only(unread) == (FindingKind.ZOOKEEPER, "", coded(FindingCode.ZOOKEEPER_OLD, why=why))


class TestMovesAndThrottles:
    def test_a_reassignment_that_adds_what_it_removes_never_ends(self) -> None:
        message = coded(FindingCode.MOVES_NEVER_END, moves=1, names=("orders-1",))
        assert only(replace(WELL, zombies=("orders-1",))) == (FindingKind.ZOMBIE_REASSIGNMENT, "", message)

    def test_a_throttle_that_nothing_needs(self) -> None:
        names = ("rate of broker 1", "rate of broker 2")
        facts = replace(WELL, orphan_throttles=names)
        assert only(facts)[2] == coded(FindingCode.THROTTLES_ORPHANED, throttles=2, names=names)


def test_findings_come_in_the_order_of_urgency() -> None:
    everything = replace(
        WELL,
        offline=PartitionFacts(1),
        under_min_isr=PartitionFacts(1),
        at_min_isr=PartitionFacts(1),
        under_replicated=PartitionFacts(5),
        brokers=(BrokerFact(2, fenced=True, replicas=3), BrokerFact(3, fenced=True)),
        voters_in_sync=1,
        voters_failing=2,
        elections=9,
        rack_violations=1,
        zombies=("a-1",),
        orphan_throttles=("x",),
        versions=RefreshStatus(ago(hours=3), 10),
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
    assert {kind for kind in FindingKind if kind.about.state is HealthState.CRITICAL} == {
        FindingKind.OFFLINE,
        FindingKind.QUORUM_LOST,
        FindingKind.UNDER_MIN_ISR,
        FindingKind.BROKER_DOWN,
        FindingKind.CANARY_FAILS,
    }


def test_an_evaluation_is_the_same_twice() -> None:
    facts = replace(WELL, offline=PartitionFacts(2), zombies=("a-1",))
    assert evaluate(facts, NOW) == evaluate(facts, NOW)
    assert isinstance(evaluate(facts, NOW), FindingEvaluation)


UNREAD_SOURCES = frozenset({FactSource.AGES, FactSource.PRODUCT})


class TestAge:
    def test_nothing_is_ok_once_metadata_is_older_than_twice_its_interval(self) -> None:
        assert kinds(replace(WELL, metadata=RefreshStatus(ago(seconds=60), 30))) == []
        facts = replace(WELL, metadata=RefreshStatus(ago(seconds=61), 30))
        assert state(facts) is HealthState.UNKNOWN
        assert says(facts, FindingCode.NOTHING_COLLECTED, age=60, why=None)

    @pytest.mark.parametrize(
        ("failure", "code"),
        [
            (FailureKind.UNREACHABLE, FindingCode.NO_BROKER_ANSWERS),
            (FailureKind.NOT_AUTHORIZED, FindingCode.NOTHING_READ),
        ],
    )
    def test_what_was_wrong_before_is_history_when_nothing_can_be_read(self, failure: str, code: FindingCode) -> None:
        silent = RefreshStatus(ago(minutes=12), 30, failures=20, failure=failure, error=as_message("Why it is so."))
        facts = replace(WELL, metadata=silent, offline=PartitionFacts(7))
        assert (state(facts), kinds(facts)) == (HealthState.UNKNOWN, [FindingKind.UNREACHABLE])
        assert says(facts, code, age=720, why=silent.error)
        assert evaluate(facts, NOW).cannot_tell(FindingKind.OFFLINE, "")

    @pytest.mark.parametrize(
        ("metadata", "kind", "code"),
        [
            (RefreshStatus(), FindingKind.STALE, FindingCode.NOTHING_COLLECTED_YET),
            (
                RefreshStatus(failures=3, failure=FailureKind.UNREACHABLE, error=as_message("refused")),
                FindingKind.UNREACHABLE,
                FindingCode.NO_BROKER_ANSWERED_YET,
            ),
            (
                RefreshStatus(failures=3, failure=FailureKind.NOT_AUTHORIZED, error=as_message("refused")),
                FindingKind.UNREACHABLE,
                FindingCode.NOTHING_READ_YET,
            ),
        ],
    )
    def test_a_cluster_that_was_never_reached_says_so(
        self, metadata: RefreshStatus, kind: FindingKind, code: FindingCode
    ) -> None:
        assert only(replace(WELL, metadata=metadata)) == (kind, "", coded(code, why=metadata.error))

    def test_old_reassignments_make_it_unknown_and_do_not_hide_what_is_worse(self) -> None:
        old = replace(WELL, reassignments=RefreshStatus(ago(minutes=3), 10))
        assert says(old, FindingCode.FACTS_OLD, sources=("reassignments",), age=180)
        worse = replace(old, offline=PartitionFacts(1))
        assert (state(worse), kinds(worse)) == (HealthState.CRITICAL, [FindingKind.OFFLINE, FindingKind.STALE])

    def test_facts_that_were_never_read_are_told_apart_from_old_ones(self) -> None:
        facts = replace(with_old(FactSource.QUORUM), versions=RefreshStatus())
        old, never = judge_reading(facts, NOW)
        assert (old.scope, old.message.code, old.message.params["sources"]) == ("", FindingCode.FACTS_OLD, ("quorum",))
        message = coded(FindingCode.FACTS_UNREAD_YET, sources=("versions",), why=None)
        assert (never.scope, never.message, never.since) == (UNREAD, message, None)

    @pytest.mark.parametrize("source", [s for s in FactSource if s not in UNREAD_SOURCES])
    def test_no_kind_of_facts_may_be_old_in_a_cluster_that_is_ok(self, source: FactSource) -> None:
        assert state(with_old(source)) is HealthState.UNKNOWN

    @pytest.mark.parametrize("kind", [k for k in FindingKind if k.about.source not in UNREAD_SOURCES])
    def test_every_kind_is_blind_once_its_facts_are_old(self, kind: FindingKind) -> None:
        assert kind in evaluate(with_old(kind.about.source), NOW).blind

    @pytest.mark.parametrize(
        ("kind", "facts"),
        [
            (FindingKind.CANARY_SLOW, replace(WELL, canary=FRESH, canary_measured=False)),
            (FindingKind.CONSUMER_LAG, replace(WELL, groups=FRESH, groups_judged=False)),
            (FindingKind.HANGING_TRANSACTION, replace(WELL, transactions=FRESH, hanging_blind=True)),
        ],
    )
    def test_a_kind_of_which_no_scope_was_read_is_unknown_and_not_blind(
        self, kind: FindingKind, facts: ClusterFacts
    ) -> None:
        evaluation = evaluate(facts, NOW)
        assert kind in evaluation.unknown_kinds - evaluation.blind

    def test_figures_that_are_not_known_judge_nothing(self) -> None:
        unknown = replace(
            WELL, offline=PartitionFacts(), under_min_isr=PartitionFacts(), under_replicated=PartitionFacts()
        )
        blind = evaluate(unknown, NOW).blind
        assert {FindingKind.OFFLINE, FindingKind.UNDER_MIN_ISR, FindingKind.UNDER_REPLICATED} <= blind

    def test_a_pace_that_was_quickened_does_not_make_data_stale_sooner_than_ten_seconds(self) -> None:
        assert not is_stale(ago(seconds=9), 2, NOW)
        assert is_stale(ago(seconds=11), 2, NOW)

    @given(
        age=st.floats(min_value=0, max_value=10**6),
        interval=st.floats(min_value=1, max_value=600),
        offline=st.integers(min_value=0, max_value=5),
    )
    def test_old_data_is_never_ok(self, age: float, interval: float, offline: int) -> None:
        facts = replace(WELL, metadata=RefreshStatus(ago(seconds=age), interval), offline=PartitionFacts(offline))
        if is_stale(ago(seconds=age), interval, NOW):
            assert state(facts) is HealthState.UNKNOWN


class TestNotJudged:
    @pytest.mark.parametrize(
        ("judged_at", "message"),
        [
            (None, coded(FindingCode.NOT_JUDGED_YET)),
            (ago(minutes=12), coded(FindingCode.NOT_JUDGED, age=720)),
        ],
    )
    def test_facts_that_nobody_judged_lately_tell_nothing(
        self, judged_at: datetime | None, message: CodedMessage
    ) -> None:
        finding = not_judged(judged_at, WELL, NOW)
        assert finding is not None
        assert (finding.kind, finding.message, finding.since) == (FindingKind.STALE, message, judged_at)

    def test_facts_that_were_judged_lately_are_no_finding(self) -> None:
        assert not_judged(ago(seconds=60), WELL, NOW) is None


class TestNotWatched:
    def test_a_cluster_that_is_switched_off_is_not_judged(self) -> None:
        facts = replace(WELL, enabled=False, offline=PartitionFacts(7), metadata=RefreshStatus())
        assert (state(facts), kinds(facts)) == (HealthState.MAINTENANCE, [FindingKind.DISABLED])
        assert evaluate(facts, NOW).cannot_tell(FindingKind.OFFLINE, "")
        assert not evaluate(facts, NOW).cannot_tell(FindingKind.UNREACHABLE, "")

    def test_the_cluster_that_was_registered_first_is_named(self) -> None:
        facts = replace(WELL, same_as="east")
        assert (state(facts), kinds(facts)) == (HealthState.UNKNOWN, [FindingKind.REGISTERED_TWICE])
        assert only(facts)[2] == coded(FindingCode.REGISTERED_TWICE, first="east")
        assert evaluate(facts, NOW).cannot_tell(FindingKind.OFFLINE, "")

    def test_another_cluster_at_the_address_is_named(self) -> None:
        facts = replace(WELL, kafka_id="one", other_kafka_id="two")
        assert (state(facts), kinds(facts)) == (HealthState.UNKNOWN, [FindingKind.ANOTHER_CLUSTER])
        assert only(facts)[2] == coded(FindingCode.OTHER_CLUSTER_ANSWERS, registered="one", other="two")


LAG, LOSS = FindingKind.CONSUMER_LAG, FindingKind.CONSUMER_LOSS
READ_AT: datetime = ago(seconds=3)


def group(key: str = "k", worst: LagState = LagState.STALL, **more: Any) -> GroupFact:
    values: dict[str, Any] = {
        "name": "invoice-writer",
        "taken_at": READ_AT,
        "place": "orders.paid-14",
        "place_lag": 41_870,
        "lag": 42_515,
        "partitions": 48,
        "failing": 1,
        "members": 6,
        "since": ago(minutes=11),
        **more,
    }
    return GroupFact(key, worst=worst, **values)


def facts_with(*groups: GroupFact, named: frozenset[str] = frozenset()) -> ClusterFacts:
    return replace(WELL, groups_in_trouble=groups, groups_named=named)


def find_groups(*groups: GroupFact, named: frozenset[str] = frozenset()) -> list[JudgedFinding]:
    return list(evaluate(facts_with(*groups, named=named), NOW).found)


@pytest.mark.parametrize(
    ("own", "code"),
    [
        (group(), FindingCode.GROUP_STALLS),
        (group(worst=LagState.STOP), FindingCode.GROUP_STOPPED),
        (group(worst=LagState.REWIND), FindingCode.GROUP_SET_BACK),
        (group(worst=LagState.ERR, lag=1), FindingCode.GROUP_STANDS_STILL),
    ],
)
def test_a_group_that_does_not_read_is_a_warning(own: GroupFact, code: FindingCode) -> None:
    (finding,) = find_groups(own)
    assert (finding.kind, finding.scope, finding.message.code) == (LAG, "k", code)
    assert (finding.message.params["group"], finding.message.params["waiting"]) == ("invoice-writer", own.lag)
    assert (finding.value, finding.unit, finding.threshold) == (own.lag, "records", 0)
    assert (finding.taken_at, finding.since, finding.state) == (READ_AT, ago(minutes=11), HealthState.WARNING)


def test_it_says_where_most_waits_and_what_is_allowed() -> None:
    (finding,) = find_groups(group(allowed=500))
    assert finding.message == coded(
        FindingCode.GROUP_STALLS,
        group="invoice-writer",
        place="orders.paid-14",
        waiting=42_515,
        notes=(
            coded(FindingNoteCode.FAILING_PARTITIONS, failing=1, partitions=48),
            coded(FindingNoteCode.MOST_WAIT_IN, waiting=41_870, place="orders.paid-14"),
            coded(FindingNoteCode.MEMBERS, members=6),
        ),
    )
    assert (finding.measured, finding.limit) == ("42,515 records", "lag threshold: 500 per partition")
    (doubtful,) = find_groups(group(worst=LagState.ERR, partitions=1))
    assert doubtful.message.params["notes"] == (coded(FindingNoteCode.MEMBERS_UNKNOWN),)


def test_an_open_transaction_that_holds_the_group__is_a_note() -> None:
    (finding,) = find_groups(group(held=2))
    assert coded(FindingNoteCode.OPEN_TRANSACTION, partitions=2) in finding.message.params["notes"]


@pytest.mark.parametrize("worst", [LagState.OK, LagState.WARN, LagState.UNKNOWN])
def test_what_reads_or_cannot_be_judged_is_no_finding(worst: LagState) -> None:
    assert find_groups(group(worst=worst)) == []


def test_records_that_were_deleted_unread_are_a_finding_of_their_own() -> None:
    (finding,) = find_groups(group(worst=LagState.OK, lost=1200))
    assert (finding.kind, finding.value, finding.measured) == (LOSS, 1200, "1,200 records")
    assert finding.message == coded(FindingCode.RECORDS_LOST, group="invoice-writer", records=1200)
    assert find_groups(group(worst=LagState.OK, lost=0)) == []


def test_it_opens_at_the_second_reading_and_closes_under_the_same_name() -> None:
    first = evaluate(facts_with(group()), NOW)
    (begun,) = reconcile([], first, NOW).begin
    assert begun[1] is False
    known = KnownFindings(LAG, "k", False, 1, READ_AT, None)
    assert not reconcile([known], first, NOW).seen[0].opens
    later = evaluate(facts_with(group(taken_at=ago(seconds=1))), NOW)
    assert reconcile([known], later, NOW).seen[0].opens
    opened = replace(known, opened=True, looks=2)
    ((closed, _),) = reconcile([opened], evaluate(facts_with(), NOW), NOW).close
    assert closed is opened


def test_a_group_whose_data_is_old_is_not_judged_and_its_finding_stays() -> None:
    old = group(taken_at=ago(minutes=5), lost=7)
    judged = evaluate(facts_with(old), NOW)
    assert judged.found == ()
    assert judged.cannot_tell(LAG, "k")
    assert judged.cannot_tell(LOSS, "k")
    assert judged.cannot_tell(LAG, MORE)
    assert not judged.cannot_tell(LAG, "another")
    known = KnownFindings(LAG, "k", True, 2, ago(minutes=5), None)
    assert reconcile([known], judged, NOW).close == ()


def test_without_a_leader_nothing_is_told_of_what_it_leads() -> None:
    own = group(worst=LagState.OK, lag_unknown=1)
    away = evaluate(replace(facts_with(own), offline=PartitionFacts(1, ("orders.paid-14",))), NOW)
    assert away.cannot_tell(LAG, "k")
    assert away.cannot_tell(LOSS, "k")
    assert away.cannot_tell(LOSS, MORE)
    assert not evaluate(facts_with(own), NOW).cannot_tell(LAG, "k"), "never committed, with all leaders there"


def test_groups_that_nobody_collects_are_no_reason_to_doubt_the_rest() -> None:
    facts = replace(WELL, groups=None, groups_in_trouble=(group(),))
    judged = evaluate(facts, NOW)
    assert judged.found == ()
    assert LAG in judged.blind
    assert state(facts) is HealthState.OK


def many(number: int, worst: LagState, prefix: str) -> list[GroupFact]:
    return [group(f"{prefix}{n:05}", worst, name=f"{prefix}-{n}", lag=n) for n in range(number)]


def test_thousands_are_few_findings_with_a_sum() -> None:
    findings = find_groups(*many(9000, LagState.STOP, "s"), *many(30, LagState.STALL, "m"))
    named = [f.scope for f in findings if f.scope != MORE]
    assert len(named) == MOST_NAMED + MOST_STOPPED
    assert sum(scope.startswith("m") for scope in named) == MOST_NAMED
    assert {"m00029", "s08999"} <= set(named)
    (rest,) = [f for f in findings if f.scope == MORE]
    assert rest.value == 9030 - len(named)
    assert rest.message == coded(
        FindingCode.MORE_GROUPS_BEHIND,
        groups=9000,
        total=9030,
        states=(
            coded(FindingNoteCode.GROUPS_STALL, groups=10),
            coded(FindingNoteCode.GROUPS_STOPPED, groups=8990),
        ),
        names=("m-9", "m-8", "m-7", 8997),
    )


@pytest.mark.parametrize(
    ("worst", "code"),
    [
        (LagState.STALL, FindingNoteCode.GROUPS_STALL),
        (LagState.ERR, FindingNoteCode.GROUPS_STAND_STILL),
        (LagState.REWIND, FindingNoteCode.GROUPS_SET_BACK),
    ],
)
def test_a_sum_counts_each_state_that_there_is(worst: LagState, code: FindingNoteCode) -> None:
    (rest,) = [f for f in find_groups(*many(22, worst, "m")) if f.scope == MORE]
    assert rest.message.params["states"] == (coded(code, groups=2),)


def test_lost_records_of_many_groups_have_a_sum() -> None:
    losing = [replace(each, lost=1) for each in many(22, LagState.OK, "m")]
    (rest,) = [f for f in find_groups(*losing) if f.scope == MORE]
    assert (rest.kind, rest.message.code) == (LOSS, FindingCode.MORE_RECORDS_LOST)
    assert (rest.message.params["groups"], rest.message.params["total"]) == (2, 22)


def test_who_has_a_finding_keeps_it_while_others_get_worse() -> None:
    """Otherwise a finding would close although nothing is over."""
    groups = many(60, LagState.STALL, "m")
    before = {f.scope for f in find_groups(*groups)} - {MORE}
    worse = [replace(each, lag=10_000 if each.key not in before else 1) for each in groups]
    assert {f.scope for f in find_groups(*worse, named=frozenset(before))} - {MORE} == before


_STATES = st.sampled_from([LagState.STALL, LagState.STOP, LagState.REWIND, LagState.ERR])
_GROUPS = st.dictionaries(st.integers(0, 80), st.tuples(_STATES, st.integers(1, 9)), min_size=1, max_size=80)


@given(st.lists(_GROUPS, min_size=1, max_size=6))
def test_each_group_is_told_once_and_none_closes_before_it_is_over(readings: list[dict[int, Any]]) -> None:
    named: frozenset[str] = frozenset()
    for reading in readings:
        groups = [group(f"{n}k", worst, lag=lag) for n, (worst, lag) in reading.items()]
        findings = find_groups(*groups, named=named)
        own = {f.scope for f in findings if f.scope != MORE}
        summed = sum(int(f.value or 0) for f in findings if f.scope == MORE)
        assert len(own) + summed == len(groups)
        assert len(own) <= MOST_NAMED + MOST_STOPPED
        assert named & {g.key for g in groups} <= own
        named = frozenset(own)


@pytest.mark.parametrize("name", ["", "²", "9" * 5000, "x" * 32_767, "a:b", "\u202e", "7:x"])
def test_no_name_of_a_group_breaks_the_judgement(name: str) -> None:
    (finding,) = find_groups(group(name[:9] or "k", name=name))
    assert finding.message.params["group"] == shorten_name(name)
    assert len(shorten_name(name)) <= 80


def test_scopes_that_look_like_numbers_are_put_in_order_all_the_same() -> None:
    names = ["²", "9" * 5000, "10:b", "9:a"]
    assert [f.scope for f in find_groups(*(group(name) for name in names))] == ["9" * 5000, "²", "9:a", "10:b"]


def test_lost_records_come_before_lag_and_both_between_disks_and_throttles() -> None:
    assert FindingKind.DISK_SOON.rank < FindingKind.DISK_FULL.rank < LOSS.rank < LAG.rank
    assert LAG.rank < FindingKind.ORPHAN_THROTTLE.rank
    assert FRESH.taken_at is not None


def forecast(**more: Any) -> ForecastFact:
    """100 GB are left and 240 GB a day come: 10 hours."""
    values: dict[str, Any] = {
        "broker": 3,
        "path": "/data/a",
        "used_bytes": 1900 * GB,
        "total_bytes": 2000 * GB,
        "grows_per_day": 240.0 * GB,
        "made_at": NOW,
        "from_at": ago(days=7),
        **more,
    }
    return ForecastFact(**values)


def find_forecast(**more: Any) -> list[JudgedFinding]:
    return list(evaluate(replace(WELL, forecasts=(forecast(**more),)), NOW).found)


def test_a_directory_that_is_full_within_a_day_is_a_warning() -> None:
    (finding,) = find_forecast()
    assert (finding.kind, finding.scope, finding.state) == (FindingKind.DISK_SOON, "3:/data/a", HealthState.WARNING)
    assert finding.message == coded(
        FindingCode.DIRECTORY_FULL_SOON,
        broker=3,
        path="/data/a",
        growth=240 * GB,
        seen=7 * 86_400,
        free=100 * GB,
        total=2000 * GB,
        left=36_000,
    )
    assert (finding.value, finding.unit, finding.threshold) == (10.0, "hours", 24)


@pytest.mark.parametrize(
    ("more", "soon"),
    [
        ({"grows_per_day": 100.0 * GB}, False),  # 24 h
        ({"grows_per_day": 101.0 * GB}, True),
        ({"grows_per_day": 0.0}, False),
        ({"grows_per_day": -5.0 * GB}, False),
        ({"grows_per_day": 1e-9}, False),
        ({"used_bytes": 2000 * GB}, True),
        ({"used_bytes": 2001 * GB}, True),
        ({"grows_per_day": 98.0 * GB, "made_at": ago(hours=1)}, True),  # an hour of the 24.5 is over
    ],
)
def test_only_what_is_full_within_a_day(more: dict[str, Any], soon: bool) -> None:
    assert bool(find_forecast(**more)) == soon


def test_an_old_forecast_says_nothing_and_closes_nothing() -> None:
    judged = evaluate(replace(WELL, forecasts=(forecast(made_at=ago(hours=4)),)), NOW)
    assert judged.found == ()
    assert judged.cannot_tell(FindingKind.DISK_SOON, "3:/data/a")
    assert not judged.cannot_tell(FindingKind.DISK_SOON, "4:/data/a")


def test_time_is_never_below_zero() -> None:
    left = full_in(forecast(used_bytes=2000 * GB, made_at=ago(hours=2)), NOW)
    assert left is not None
    assert left.total_seconds() == 0
    assert find_forecast(used_bytes=2000 * GB)[0].message.code is FindingCode.DIRECTORY_FULL_NOW


def stands(batch_s: float | None, *aside: FilesSetAside) -> ClusterFacts:
    at = None if batch_s is None else ago(seconds=batch_s)
    return replace(WELL, pipeline_stands=PipelineFact(at, 10, aside))


def test_it_stands_still_after_three_intervals() -> None:
    assert kinds(stands(30)) == []
    assert kinds(stands(31)) == [FindingKind.PIPELINE_STILL]
    (finding,) = evaluate(stands(720), NOW).found
    assert (finding.measured, finding.limit, finding.since) == ("12 min", "limit 30 s", ago(minutes=12))
    assert finding.message == coded(FindingCode.PIPELINE_STILL)
    assert state(stands(720)) is HealthState.WARNING


def test_one_that_never_ran_or_is_not_set_up_is_no_finding() -> None:
    assert kinds(stands(None)) == []
    none = replace(WELL, pipeline=None, pipeline_stands=None, forecasts=())
    assert (kinds(none), state(none)) == ([], HealthState.OK)
    assert FindingKind.DISK_SOON in evaluate(none, NOW).blind


def test_one_that_nobody_looks_at_any_more_cannot_be_told() -> None:
    old = replace(stands(720), pipeline=RefreshStatus(ago(minutes=9), 30))
    assert (kinds(old), state(old)) == ([FindingKind.STALE], HealthState.UNKNOWN)


def test_segments_that_were_set_aside_are_one_finding() -> None:
    files = [
        FilesSetAside(f"replica/{n}.parquet", as_message(f"File {n} ends too early."), ago(minutes=n)) for n in range(5)
    ]
    facts = stands(3, *files)
    names = ("replica/0.parquet", "replica/1.parquet", "replica/2.parquet", 2)
    message = coded(FindingCode.SEGMENTS_UNREAD, segments=5, why=files[0].why, names=names)
    assert only(facts) == (FindingKind.SEGMENT_SET_ASIDE, "", message)
    (finding,) = evaluate(facts, NOW).found
    assert (finding.value, finding.since) == (5, ago(minutes=4))


AT_ONCE, SECOND_LOOK = FindingKind.BROKER_DOWN, FindingKind.UNDER_REPLICATED
KEYS = [(AT_ONCE, "1"), (AT_ONCE, "2"), (SECOND_LOOK, "")]
Key = tuple[FindingKind, str]


def at(reading: int) -> datetime:
    return NOW + timedelta(seconds=reading)


def seen(reading: int, found: Sequence[Key], blind: frozenset[Key] = frozenset()) -> FindingEvaluation:
    """An evaluation of facts that were read at this time; kinds without scopes are blind as a whole."""
    return FindingEvaluation(
        tuple(JudgedFinding(kind, as_message("It is so."), at(reading), scope=scope) for kind, scope in found),
        blind_scopes=blind,
        taken=dict.fromkeys(FindingKind, at(reading)),
    )


@dataclass
class Store:
    """Applies the steps, and keeps what was open with its identity."""

    open: dict[Key, KnownFindings[int]]
    ids: count[int]
    closed: list[int]

    @classmethod
    def empty(cls) -> Store:
        return cls({}, count(), [])

    def take(self, evaluation: FindingEvaluation) -> bool:
        """True if anything changed."""
        steps = reconcile(list(self.open.values()), evaluation, at(10**6))
        for finding, opens in steps.begin:
            key = (finding.kind, finding.scope)
            assert key not in self.open
            self.open[key] = KnownFindings(*key, opens, 1, finding.taken_at, next(self.ids))
        changed = bool(steps.begin or steps.close or steps.drop)
        for step in steps.seen:
            own = step.known
            after = replace(own, opened=own.opened or step.opens, looks=step.looks, seen_at=step.finding.taken_at)
            changed |= after != own
            self.open[own.kind, own.scope] = after
        for gone, when in steps.close:
            assert when >= gone.seen_at
            assert gone.opened
            self.closed.append(gone.row)
        for gone in (*(g for g, _ in steps.close), *steps.drop):
            del self.open[gone.kind, gone.scope]
        return changed

    @property
    def opened(self) -> set[Key]:
        return {key for key, own in self.open.items() if own.opened}


def test_certain_ones_open_at_once_and_those_that_may_pass_at_the_second_reading() -> None:
    store = Store.empty()
    store.take(seen(1, KEYS))
    assert store.opened == {(AT_ONCE, "1"), (AT_ONCE, "2")}
    store.take(seen(2, KEYS))
    assert store.opened == set(KEYS)


def test_the_same_reading_judged_again_is_no_second_look() -> None:
    store = Store.empty()
    for _ in range(5):
        store.take(seen(1, [(SECOND_LOOK, "")]))
    assert store.opened == set()


def test_one_that_was_not_seen_again_before_it_opened_never_was() -> None:
    store = Store.empty()
    store.take(seen(1, [(SECOND_LOOK, "")]))
    store.take(seen(2, []))
    assert (store.open, store.closed) == ({}, [])


def test_open_and_close_carry_the_same_identity_and_a_return_another() -> None:
    store = Store.empty()
    store.take(seen(1, [(AT_ONCE, "1")]))
    first = store.open[AT_ONCE, "1"].row
    store.take(seen(2, [(AT_ONCE, "1")]))
    store.take(seen(3, []))
    store.take(seen(4, [(AT_ONCE, "1")]))
    assert store.closed == [first]
    assert store.open[AT_ONCE, "1"].row != first


def test_what_cannot_be_told_stays_as_it_is() -> None:
    store = Store.empty()
    store.take(seen(1, KEYS))
    before = dict(store.open)
    assert not store.take(seen(2, [], blind=frozenset(KEYS)))
    assert store.open == before


def test_facts_that_are_older_than_the_last_look_change_nothing() -> None:
    store = Store.empty()
    store.take(seen(5, [(AT_ONCE, "1")]))
    assert not store.take(seen(3, [(AT_ONCE, "1")]))


@st.composite
def _stories(draw: st.DrawFn) -> list[FindingEvaluation]:
    """Readings one after the other; some are judged more than once, in some a part cannot be told."""
    story, reading = [], 0
    for _ in range(draw(st.integers(1, 12))):
        reading += draw(st.integers(0, 1))
        found = draw(st.lists(st.sampled_from(KEYS), unique=True))
        blind = draw(st.lists(st.sampled_from(KEYS), unique=True))
        story.append(seen(reading, found, frozenset(blind)))
    return story


@given(_stories())
def test_any_story_keeps_the_rules(story: list[FindingEvaluation]) -> None:
    store = Store.empty()
    for evaluation in story:
        before, closed = dict(store.open), len(store.closed)
        store.take(evaluation)
        found = {(f.kind, f.scope) for f in evaluation.found}
        for key, own in before.items():
            if key in found or evaluation.cannot_tell(*key):
                assert store.open[key].row == own.row, "lost its identity, or closed without fresh data saying so"
                assert store.open[key].opened >= own.opened
            else:
                assert key not in store.open, "fresh data says that it is over"
        assert found <= set(store.open)
        assert all(own.opened == (own.looks >= key[0].about.looks) for key, own in store.open.items())
        assert len(set(store.closed)) == len(store.closed) >= closed
        assert not store.take(evaluation), "the same facts again change nothing"


class TestHeadline:
    def test_a_critical_one_without_owner_is_unacknowledged(self) -> None:
        point = JudgedPoint(FindingKind.OFFLINE, HealthState.CRITICAL, "2 partitions are offline")
        less = JudgedPoint(FindingKind.DISK_FULL, HealthState.WARNING, "Broker 3 disk is 91.0 % full", owner="ann")
        assert (
            write_headline("demo", HealthState.CRITICAL, [point, less])
            == "2 partitions are offline on demo (unacknowledged)"
        )
        taken = replace(point, owner="ann")
        assert write_headline("demo", HealthState.CRITICAL, [taken, less]) == "2 partitions are offline on demo"
        assert write_headline("demo", HealthState.WARNING, [less]) == "Broker 3 disk is 91.0 % full on demo"
        assert write_headline("demo", HealthState.OK, []) == "demo is OK"

    def test_several_of_one_kind_are_told_as_their_number(self) -> None:
        down = JudgedPoint(FindingKind.BROKER_DOWN, HealthState.CRITICAL, "Broker 2 is down", owner="ann")
        assert write_headline("demo", HealthState.CRITICAL, [down, down]) == "2 brokers are down on demo"
        hidden = JudgedPoint(FindingKind.TOPICS_HIDDEN, HealthState.UNKNOWN, "At least 2 topics are hidden")
        assert write_headline("demo", HealthState.UNKNOWN, [hidden]) == "At least 2 topics are hidden on demo"

    def test_finding_that_sums_up_others__counts_all_of_them(self) -> None:
        stuck = JudgedPoint(FindingKind.CONSUMER_LAG, HealthState.WARNING, "Consumer group a is stalled")
        more = replace(stuck, title="40 consumer groups are stuck", number=39)
        assert write_headline("demo", HealthState.WARNING, [stuck, more]) == "40 consumer groups are stuck on demo"

    def test_old_finding__is_stale_in_the_headline(self) -> None:
        old = JudgedPoint(FindingKind.CONSUMER_LAG, HealthState.UNKNOWN, "Consumer group a is stalled")
        assert write_headline("demo", HealthState.UNKNOWN, [old]) == "Consumer group a is stalled on demo (stale)"

    @pytest.mark.parametrize(
        ("clusters", "said"),
        [
            ([], "No clusters yet"),
            ([("demo", HealthState.OK)], "demo is so"),
            ([("a", HealthState.OK), ("b", HealthState.OK), ("c", HealthState.OK)], "All 3 clusters are OK"),
            (
                [("off", HealthState.MAINTENANCE), ("a", HealthState.OK), ("b", HealthState.OK)],
                "2 clusters are OK, 1 not watched",
            ),
            ([("off", HealthState.MAINTENANCE)], "off is so"),
            ([("x", HealthState.MAINTENANCE), ("y", HealthState.MAINTENANCE)], "None of 2 clusters is watched"),
            ([("demo", HealthState.CRITICAL), ("a", HealthState.OK)], "demo is so"),
        ],
    )
    def test_the_board_says_the_worst_that_is_true(self, clusters: list[tuple[str, HealthState]], said: str) -> None:
        worst = f"{clusters[0][0]} is so" if clusters else ""
        unwatched = sum(state is HealthState.MAINTENANCE for _, state in clusters)
        assert board_headline([state for _, state in clusters], worst, unwatched) == said

    def test_a_cluster_in_maintenance_is_the_headline_before_those_that_are_well(self) -> None:
        states = [HealthState.MAINTENANCE, HealthState.MAINTENANCE, HealthState.OK]
        assert board_headline(states, "demo is so", 1) == "demo is so"
