"""Restarts: the answer for one broker, the order of brokers, and the command with its exit codes, from stored rows."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module

import pytest
from django.core.management import CommandError, call_command

from kafkadash.accounts.errors import CodedCommandError
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.findings.errors import OnCallErrorCode as Code
from kafkadash.findings.restart import RestartPlace, RestartVerdict
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import (
    BrokerState,
    ClusterState,
    CollectorKind,
    MoveOutcome,
    QuorumSnapshot,
    ReassignmentSnapshot,
    TopicState,
)
from tests.factories import NOW, BrokerFactory, ReassignmentFactory, TopicFactory, ended, silent
from tests.pages.conftest import Page
from tests.pages.test_catch_up import follower, store
from tests.pages.test_drill import topic
from tests.quorums import answers

pytestmark = pytest.mark.django_db

GetPage = Callable[[str], Page]
YES, NO, UNKNOWN = RestartVerdict.YES, RestartVerdict.NO, RestartVerdict.UNKNOWN
ORDER = "/clusters/demo/restart/"


def address(broker: int) -> str:
    return f"/clusters/demo/brokers/{broker}/restart/"


def codes(page: Page) -> list[str]:
    return [reason.get("data-reason") for reason in page.find("#restart-reasons li")]


def verdict(page: Page) -> str:
    return page.first("#restart-demo").get("data-verdict")


def test_cluster_is_well__says_yes_on_a_page_that_its_broker_links(demo: Cluster, get_page: GetPage) -> None:
    topic(demo, "t", [1, 2, 3])
    page = get_page(address(2))
    assert (verdict(page), codes(page)) == (YES, [])
    assert page.context["check"].sentence.code is Code.RESTART_ALLOWED
    assert page.context["check"].sentence.advice in page.first(".page-head").text
    assert not page.tells(Code.RESTART_ALLOWED, "main"), "the title has the verdict"
    assert page.states(".status-pill") == ["ok"]
    for other in ("/clusters/demo/brokers/2/", "/clusters/demo/drill/?broker=2"):
        assert address(2) in get_page(other).links(".page-actions")


def test_partitions_that_stop__are_listed_with_what_is_left(demo: Cluster, get_page: GetPage) -> None:
    topic(demo, "lonely", *[[2]] * 30, min_isr=1)
    topic(demo, "pair", [2, 3], [1, 3])
    page = get_page(address(2))
    assert (verdict(page), codes(page)) == (NO, [Code.RESTART_GOES_OFFLINE, Code.RESTART_STOPS_WRITES])
    assert page.figures("#restart-reasons li")[0] == "30"
    assert len(page.find("#restart-partitions tbody tr")) == 25
    assert page.figures("#restart-partitions .panel-foot") == ["6"]
    assert page.links("#restart-partitions .panel-foot") == ["/clusters/demo/drill/?broker=2"]
    lasting = [reason.get("data-reason") for reason in page.find("#restart-lasting li")]
    assert lasting == [Code.RESTART_ALWAYS_OFFLINE, Code.RESTART_ALWAYS_STOPS_WRITES]


def test_broker_restarted_before__is_waited_for_with_its_time_left(demo: Cluster, get_page: GetPage) -> None:
    late = TopicFactory.create(cluster=demo, name="ledger", partitions=[[0, 1, 5, [1, 2, 3], [1, 2], []]], min_isr=1)
    store(demo, follower(late, 90_000, 1_100, 100))
    page = get_page(address(1))
    assert (verdict(page), codes(page)) == (NO, [Code.RESTART_OTHERS_BEHIND])
    assert page.cells("behind-3") == ["3", "up", "1", "ledger-0", "1 min 30 s"]
    assert verdict(get_page(address(3))) == YES
    TopicState.objects.update(partitions=[[0, 1, 5, [1, 2, 3], [1, 2, 3], []]])
    assert verdict(get_page(address(1))) == YES, "the metadata is newer than the sample"
    demo.collector_runs.filter(kind=CollectorKind.METADATA).update(succeeded_at=NOW - timedelta(seconds=9))
    assert codes(get_page(address(1))) == [Code.RESTART_OTHERS_BEHIND]


def test_reassignment_that_runs_or_has_just_ended__is_counted(demo: Cluster, get_page: GetPage) -> None:
    topic(demo, "t", [1, 2, 3])
    move = {"topic": "t", "partition": 0, "adding": [], "removing": [3], "target": [1, 2], "original": [1, 2, 3]}
    ReassignmentFactory.create(cluster=demo, **move)
    assert codes(get_page(address(1))) == [Code.RESTART_STOPS_WRITES]
    ReassignmentSnapshot.objects.all().delete()
    ended(demo, MoveOutcome.COMPLETED, NOW - timedelta(seconds=1), **move)
    assert codes(get_page(address(1))) == [Code.RESTART_STOPS_WRITES]
    ReassignmentSnapshot.objects.update(ended_at=NOW - timedelta(minutes=1))
    assert codes(get_page(address(1))) == []


@pytest.mark.parametrize(
    "kind",
    [
        CollectorKind.METADATA,
        CollectorKind.ANSWERS,
        CollectorKind.CONFIGS,
        CollectorKind.REASSIGNMENTS,
        CollectorKind.QUORUM,
    ],
)
def test_facts_that_are_old_or_missing__leave_it_open(demo: Cluster, get_page: GetPage, kind: str) -> None:
    topic(demo, "t", [1, 2, 3])
    run = demo.collector_runs.filter(kind=kind)
    run.update(succeeded_at=NOW - timedelta(minutes=9))
    page = get_page(address(1))
    assert (verdict(page), codes(page)) == (UNKNOWN, [Code.RESTART_FACTS_STALE])
    run.delete()
    assert verdict(get_page(address(1))) == UNKNOWN


def test_what_cannot_be_seen__leaves_it_open(demo: Cluster, get_page: GetPage) -> None:
    topic(demo, "t", [1, 2, 3], min_isr=None)
    ClusterState.objects.update(hidden_topics=None)
    BrokerState.objects.filter(broker_id=3).update(silent_since=NOW)
    QuorumSnapshot.objects.all().delete()
    assert set(codes(get_page(address(1)))) == {
        Code.RESTART_MIN_ISR_UNKNOWN,
        Code.RESTART_TOPICS_UNCOUNTED,
        Code.RESTART_BROKERS_SILENT,
        Code.RESTART_QUORUM_UNKNOWN,
    }
    assert verdict(get_page(address(1))) == UNKNOWN


def test_zookeeper__needs_no_quorum(demo: Cluster, get_page: GetPage) -> None:
    Cluster.objects.update(mode=ClusterMode.ZOOKEEPER)
    topic(demo, "t", [1, 2, 3])
    assert verdict(get_page(address(1))) == YES


def test_voter_in_the_process_of_the_broker__must_be_spared(demo: Cluster, get_page: GetPage) -> None:
    topic(demo, "t", [1, 2, 3])
    until, lead = NOW - timedelta(seconds=3), ((timedelta(0), 1, 7),)
    answers(demo, until, timedelta(minutes=1), voters=(1, 2), observers=(3,), leaders=lead)
    assert codes(get_page(address(1))) == [Code.RESTART_LOSES_QUORUM]
    assert verdict(get_page(address(3))) == YES
    assert get_page(ORDER).states("#restart-order-demo tbody .status-mark") == ["ok", "critical", "critical"]


def test_broker_that_is_unregistered_and_empty__may_be_started(demo: Cluster, get_page: GetPage) -> None:
    BrokerFactory.create(cluster=demo, broker_id=9, replicas=0, gone_at=NOW)
    page = get_page(address(9))
    assert verdict(page) == YES
    assert page.tells(Code.RESTART_OF_DOWN, "main")
    # Its process may run, fenced, and vote.
    until, lead = NOW - timedelta(seconds=3), ((timedelta(0), 1, 7),)
    answers(demo, until, timedelta(minutes=1), voters=(1, 9), observers=(2, 3), leaders=lead)
    assert codes(get_page(address(9))) == [Code.RESTART_LOSES_QUORUM]


def test_order__names_places_and_brokers_without_a_safe_restart(demo: Cluster, get_page: GetPage) -> None:
    topic(demo, "t", [1, 2, 3])
    topic(demo, "lonely", [1], min_isr=1)
    page = get_page(ORDER)
    assert page.first("#restart-order-demo").get("data-verdict") == NO
    assert {row.get("id"): row.get("data-place") for row in page.find("#restart-order-demo tbody tr")} == {
        "restart-3": RestartPlace.NEXT,
        "restart-2": RestartPlace.LATER,
        "restart-1": RestartPlace.NEVER,
    }
    assert page.first("#restart-1 [data-reason]").get("data-reason") == Code.RESTART_ALWAYS_OFFLINE
    one = get_page(f"{ORDER}?rack=eu-1a")
    assert [row.get("id") for row in one.find("#restart-order-demo tbody tr")] == ["restart-3"]
    assert one.first("#restart-order-demo").get("data-verdict") == YES
    assert get_page(f"{ORDER}?rack=mars").tells(Code.DRILL_RACK_UNKNOWN, "[role=note]")


def test_order__before_anything_was_collected__links_the_collection(demo: Cluster, get_page: GetPage) -> None:
    BrokerState.objects.all().delete()
    demo.collector_runs.filter(kind=CollectorKind.METADATA).update(succeeded_at=None)
    assert get_page(ORDER).links("[data-empty=unread]") == ["/clusters/demo/#collection-demo"]


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output of the command."""
    out = io.StringIO()
    try:
        call_command("restart-check", *arguments, stdout=out, stderr=io.StringIO())
    except CodedCommandError as error:
        return error.returncode, error.message.shown_code
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture
def frozen_database_time(monkeypatch: pytest.MonkeyPatch) -> None:
    command = import_module("kafkadash.findings.management.commands.restart-check")
    monkeypatch.setattr(command, "read_database_time", lambda: NOW)


class TestCommand:
    def test_exit_code__is_the_answer(self, demo: Cluster) -> None:
        topic(demo, "t", [1, 2, 3])
        topic(demo, "lonely", [3], min_isr=1)
        code, out = run("demo", "--broker", "1")
        assert (code, "3 s ago" in out) == (0, True)
        code, out = run("demo", "--broker", "3")
        assert (code, f"({Code.RESTART_GOES_OFFLINE})" in out) == (1, True)
        code, out = run("demo")
        assert (code, f"({Code.RESTART_ALWAYS_OFFLINE})" in out) == (1, True)
        assert run("demo", "--rack", "eu-1b")[0] == 0
        silent(demo, NOW - timedelta(minutes=9))
        assert run("demo", "--broker", "3")[0] == 3

    def test_bad_input__has_a_code_of_its_own(self, demo: Cluster) -> None:
        assert run("nowhere") == (2, "cluster-unknown")
        assert run("demo", "--broker", "9") == (2, Code.DRILL_BROKERS_UNKNOWN)
        assert run("demo", "--rack", "mars") == (2, Code.DRILL_RACK_UNKNOWN)
        for seconds in ("0", "soon", "nan", "inf"):
            with pytest.raises(CommandError):
                run("demo", "--timeout", seconds)
        demo.collector_runs.filter(kind=CollectorKind.METADATA).update(succeeded_at=None)
        assert run("demo", "--broker", "1") == (2, CollectionErrorCode.NOT_COLLECTED)

    def test_json__has_the_lists_behind_the_answer(self, demo: Cluster) -> None:
        topic(demo, "lonely", [3], min_isr=1)
        code, out = run("demo", "--broker", "3", "--rack", "eu-1a", "--json")
        found = json.loads(out)
        assert (code, found["verdict"], found["stale"]) == (1, NO, False)
        assert (found["check"]["broker"], found["check"]["offline"]) == (3, ["lonely-0"])
        assert [reason["code"] for reason in found["check"]["reasons"]] == [Code.RESTART_GOES_OFFLINE]
        assert found["check"]["quorum"]["is_voter"] is False
        assert (found["order"], [step["broker"] for step in found["never"]]) == ([], [3])

    @pytest.mark.usefixtures("frozen_database_time")
    def test_wait__takes_only_facts_that_are_newer_than_the_call(
        self, demo: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topic(demo, "t", [1, 2, 3])
        waits: list[float] = []

        def read_again(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 2:
                demo.collector_runs.update(succeeded_at=NOW)

        monkeypatch.setattr("time.sleep", read_again)
        assert run("demo", "--broker", "1", "--wait")[0] == 0
        assert len(waits) == 2

    @pytest.mark.usefixtures("frozen_database_time")
    def test_wait__ends_at_its_timeout_with_the_last_answer(
        self, demo: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topic(demo, "lonely", [3], min_isr=1)
        monkeypatch.setattr("time.sleep", lambda _: None)
        code, out = run("demo", "--broker", "3", "--wait", "--timeout", "0.001")
        assert (code, f"({Code.RESTART_FACTS_EARLY})" in out) == (1, True)
