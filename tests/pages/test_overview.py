"""The status board: the title is the answer, the worst comes first, nothing old is green.

A cluster's overview: figures with their ages, brokers, quorum, and how it is collected.

The menu of clusters above a cluster's page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.management import get_commands, load_command_class
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, ClusterMode, Role
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import as_message
from kafkadash.findings.models import Finding
from kafkadash.findings.services import judge
from kafkadash.monitoring.models import (
    ON_REQUEST,
    BrokerState,
    BrokerWeights,
    Collection,
    CollectorKind,
    QuorumSnapshot,
    ZooKeeperState,
)
from tests.factories import (
    GB,
    NOW,
    BrokerFactory,
    ReassignmentFactory,
    TopicFactory,
    directory,
    judged,
    node,
    silent,
    watched,
)
from tests.groups import STALLED, WELL, group_seen
from tests.pages.conftest import Page, figures_of, text_of
from tests.stored_messages import each_of_other_versions

GetPage = Callable[[str], Page]


def parses(text: str, command: str, arguments: str) -> bool:
    """The page prints this command, and the command takes these arguments."""
    parser = load_command_class(get_commands()[command], command).create_parser("manage.py", command)
    parser.parse_args(arguments.split())
    return f"python manage.py {command} {arguments}" in text


def offline(name: str) -> Cluster:
    return watched(name, offline_partitions=2)


def test_it_says_what_to_do_when_no_cluster_is_registered(get_page: GetPage) -> None:
    board = get_page("/")
    assert board.find("[data-empty=no-cluster]")
    assert parses(board.text, "cluster", "register NAME --bootstrap HOST:PORT")


def test_it_says_what_to_do_when_no_cluster_is_visible(stranger: User, client_of: Callable[[User], Client]) -> None:
    watched("secret")
    board = Page(client_of(stranger).get("/").content.decode())
    assert board.find("[data-empty=no-role]")
    assert parses(board.text, "user", "give stan --role viewer")
    assert "secret" not in board.html


def test_healthy_clusters_take_one_line_each(get_page: GetPage) -> None:
    for name in ("b", "a", "c"):
        watched(name)
    board = get_page("/")
    assert figures_of(board.title) == ["3"]
    assert board.states("#clusters-quiet .cluster-line") == ["ok"] * 3
    assert board.order_of("status-a", "status-b", "status-c") == ["status-a", "status-b", "status-c"]
    assert board.figures("#status-a") == ["4.3", "3", "1,120", "1", "3 s"]
    assert 'class="cluster-line"' in board.start_tag("status-a")


def test_worst_comes_first_then_by_name(get_page: GetPage) -> None:
    watched("well")
    silent(watched("silent"), NOW - timedelta(minutes=12), error="Connection refused.")
    watched("warned", under_replicated=41)
    offline("z")
    offline("a")
    Cluster.objects.filter(pk=watched("off").pk).update(enabled=False)
    judged(Cluster.objects.get(name="warned"))
    board = get_page("/")
    ids = [f"status-{name}" for name in ("a", "z", "warned", "silent", "off", "well")]
    assert board.order_of(*ids) == ids
    assert figures_of(board.title) == ["2"]
    assert board.figures("#clusters-quiet .cluster-head") == ["1", "1"]


def test_a_broken_cluster_says_sentence_number_since_and_next_step(get_page: GetPage) -> None:
    cluster = watched("demo", brokers_fenced=1)
    BrokerState.objects.filter(cluster=cluster, broker_id=2).update(fenced=True, changed_at=NOW - timedelta(minutes=7))
    judged(cluster)
    row = Finding.objects.get(cluster=cluster)
    board = get_page("/")
    shown = board.first(f"#finding-{row.public_id}")
    assert (shown.get("data-finding"), shown.get("data-state")) == ("broker-down", "critical")
    assert figures_of(shown.first(".finding-what h3").text) == ["2", "229"]
    assert figures_of(shown.first(".finding-number").text) == ["229"]
    assert shown.texts(".finding-since b") == ["7 min"]
    assert shown.texts(".finding-since span") == ["01:56:04"]
    with time_machine.travel(NOW + timedelta(minutes=2), tick=False):
        later = get_page("/").first(f"#finding-{row.public_id}")
        assert later.texts(".finding-since b") == ["9 min"]
    assert [link.get("href") for link in shown.find(".finding-next a")] == ["/clusters/demo/brokers/2/"]
    assert f'action="/clusters/demo/findings/{row.public_id}/acknowledge/"' in board.html
    assert 'href="/runbooks/broker-down/"' in board.html


def test_a_cluster_that_does_not_answer_is_unknown_with_its_error(get_page: GetPage) -> None:
    error = "No broker accepted a connection."
    silent(watched("ledger-dr"), NOW - timedelta(minutes=12), error=error)
    board = get_page("/")
    assert "ledger-dr" in board.title
    assert figures_of(board.title) == ["12 min"]
    assert 'data-state="unknown"' in board.start_tag("status-ledger-dr")
    words = board.words("status-ledger-dr")
    assert error in words
    assert board.figures("#status-ledger-dr .cluster-head")[-1] == "12 min"
    assert 'data-state="ok"' not in board.part("status-ledger-dr")


def test_a_cluster_that_was_never_reached_has_no_figures(get_page: GetPage) -> None:
    cluster = watched("new")
    cluster.state.delete()
    cluster.collector_runs.update(succeeded_at=None, attempted_at=None)
    for model in (BrokerState, QuorumSnapshot, Collection):
        model.objects.filter(cluster=cluster).delete()
    board = get_page("/")
    assert "new" in board.title
    assert board.states("#status-new") == ["unknown"]
    assert not board.figures("#status-new .cluster-head")
    assert "0 brokers" not in board.text
    assert "no data yet" in board.words("status-new")


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("critical", {"bad"}),
        ("ok", {"well"}),
        ("maintenance", set()),
        ("nonsense", {"bad", "well"}),
        ("", {"bad", "well"}),
    ],
)
def test_the_tally_filters_by_state(get_page: GetPage, state: str, shown: set[str]) -> None:
    offline("bad")
    watched("well")
    board = get_page(f"/?state={state}")
    assert {name for name in ("bad", "well") if board.has(f"status-{name}")} == shown
    assert figures_of(board.title) == ["2"]
    assert board.figures("#board-head .tally")[0] == "1"
    assert board.states("#board-head .tally li")[0] == "critical"


def test_what_moves_is_counted_on_the_line(get_page: GetPage) -> None:
    cluster = watched("demo")
    ReassignmentFactory.create_batch(2, cluster=cluster)
    assert "2 moving" in get_page("/").words("status-demo")


def test_a_move_explains_what_metadata_saw_before_the_move_was_known(get_page: GetPage) -> None:
    cluster = watched("demo", under_replicated=2, under_replicated_moving=0)
    shape = [[0, 1, 5, [1, 2, 9], [1, 2], []], [1, 1, 5, [1, 2, 3], [1, 3], [2]]]
    TopicFactory.create(cluster=cluster, partitions=shape)
    judged(cluster)
    assert figures_of(get_page("/").title) == ["2"]
    ReassignmentFactory.create(cluster=cluster, topic="payments.ledger", partition=0, adding=[9])
    judge(cluster.pk, NOW)
    board = get_page("/")
    assert figures_of(board.title) == ["1"]
    what = board.first("[data-finding=under-replicated] .finding-what")
    assert (figures_of(what.first("h3").text), figures_of(what.first("p").text)[-1:]) == (["1"], ["1"])


def test_a_person_sees_only_the_clusters_of_his_roles(
    make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    mine, other = watched("mine"), offline("other")
    board = Page(client_of(make_user("ann", Role.VIEWER, mine)).get("/").content.decode())
    assert board.has("status-mine")
    assert other.name not in board.html
    assert board.title == "mine is OK"


def test_it_watches_the_clusters_it_shows(get_page: GetPage) -> None:
    watched("demo")
    assert 'hx-ws:connect="/live/?key=board&amp;key=status:demo"' in get_page("/").html


def test_its_title_is_the_answer(get_page: GetPage) -> None:
    watched("well")
    watched("bad", offline_partitions=3)
    assert figures_of(get_page("/clusters/well/").title) == []
    assert get_page("/clusters/well/").states("#overview-well") == ["ok"]
    bad = get_page("/clusters/bad/")
    assert figures_of(bad.title) == ["3"]
    assert bad.states("#overview-bad") == ["critical"]


def test_figures_keep_moves_apart_from_faults(get_page: GetPage) -> None:
    cluster = watched("demo", under_replicated=44, under_replicated_moving=3, racks=0)
    ReassignmentFactory.create_batch(3, cluster=cluster)
    facts = get_page("/clusters/demo/").facts("#figures-demo")
    assert figures_of(facts["Under-replicated"]) == ["41", "3"]
    assert figures_of(facts["In flight"]) == ["3"]
    assert figures_of(facts["Active controller"]) == ["102", "47"]
    assert not figures_of(facts["Racks"])


def test_offline_partitions_of_unread_configs_are_not_taken_off_those_that_refuse_writes(get_page: GetPage) -> None:
    demo = watched("demo", offline_partitions=3, under_min_isr=4)
    unread = {"min_isr": None, "under_min_isr": None, "at_min_isr": None}
    TopicFactory.create(cluster=demo, partitions=[[0, None, 5, [1], [1], [1]], [1, None, 5, [1], [1], [1]]], **unread)
    assert figures_of(get_page("/clusters/demo/").facts("#figures-demo")["Under min-ISR"])[0] == "3"


def test_what_was_never_read_is_unknown_and_not_zero(get_page: GetPage) -> None:
    cluster = watched("new")
    cluster.state.delete()
    cluster.collector_runs.update(succeeded_at=None, attempted_at=None)
    for model in (BrokerState, QuorumSnapshot, Collection):
        model.objects.filter(cluster=cluster).delete()
    overview = get_page("/clusters/new/")
    facts = overview.facts("#figures-new")
    assert len(facts) == 12
    assert not any(figures_of(said) for said in facts.values())
    assert overview.find("#brokers-new [data-empty=unread]")
    assert overview.find("#quorum-new [data-empty=unread]")
    assert len(overview.find("#collection-new [data-refresh=waits]")) == len(set(CollectorKind) - ON_REQUEST)


class TestPartitions:
    def test_those_without_a_leader_come_first_and_moves_are_left_out(self, get_page: GetPage) -> None:
        cluster = watched("demo", offline_partitions=1, under_replicated=3, under_replicated_moving=1)
        TopicFactory.create(
            cluster=cluster,
            topic_id="T",
            partitions=[
                [0, 1, 5, [1, 2, 3], [1, 2, 3], []],
                [1, 1, 5, [1, 2, 3], [1, 3], [2]],
                [2, None, 5, [2], [2], [2]],
                [3, 1, 5, [1, 2, 9], [1, 2], []],
            ],
        )
        ReassignmentFactory.create(cluster=cluster, topic="payments.ledger", partition=3, adding=[9])
        overview = get_page("/clusters/demo/")
        assert overview.order_of("partition-T-2", "partition-T-1") == ["partition-T-2", "partition-T-1"]
        cells = ["payments.ledger-2", "Offline", "none", "2", "2", "none", "01:56:04"]
        assert overview.cells("partition-T-2") == cells
        cells = ["payments.ledger-1", "At min-ISR", "1", "1, 2, 3", "1, 3", "2", "01:56:04"]
        assert overview.cells("partition-T-1") == cells
        assert not overview.has("partition-T-0")
        assert not overview.has("partition-T-3")

    def test_the_panel_is_hidden_while_there_are_none(self, get_page: GetPage) -> None:
        TopicFactory.create(cluster=watched("demo"))
        assert " hidden" in get_page("/clusters/demo/").start_tag("partitions-demo")


class TestBrokers:
    def test_each_has_state_rack_address_and_its_directories(self, get_page: GetPage) -> None:
        watched("demo")
        page = get_page("/clusters/demo/")
        assert page.cells("broker-demo-1")[:6] == ["1", "Up", "eu-1b", "kafka-1.internal:9092", "229", "79"]
        assert page.texts("#broker-demo-1 .directory .mono") == ["/var/lib/kafka/a"]
        assert page.figures("#broker-demo-1 .directory .num") == ["667.0 GB", "2.0 TB"]
        assert page.texts("#broker-demo-1 .cell-meter") == ["33.3 %"]

    def test_a_full_directory_is_not_hidden_in_a_sum(self, get_page: GetPage) -> None:
        cluster = watched("demo")
        dirs = [
            directory("/a", total=100 * GB, usable=90 * GB),
            directory("/b", total=100 * GB, usable=4 * GB),
            directory("/c", total=None, usable=None),
            directory("/d", error="KafkaStorageException"),
        ]
        BrokerWeights.objects.filter(cluster=cluster, broker_id=1).update(dirs=dirs)
        words = get_page("/clusters/demo/").words("broker-demo-1")
        for expected in ("/a 10.0 GB of 100.0 GB 10.0 %", "/b 96.0 GB of 100.0 GB 96.0 %", "/c 667.0 GB of unknown"):
            assert expected in words
        assert "/d KafkaStorageException" in words

    def test_fenced_and_gone_ones_say_so(self, get_page: GetPage) -> None:
        cluster = watched("demo")
        BrokerState.objects.filter(cluster=cluster, broker_id=1).update(fenced=True)
        BrokerState.objects.filter(cluster=cluster, broker_id=2).update(gone_at=NOW - timedelta(hours=1), replicas=0)
        overview = get_page("/clusters/demo/")
        assert "Fenced" in overview.words("broker-demo-1")
        assert 'data-broker-state="critical"' in overview.start_tag("broker-demo-1")
        assert "Unregistered" in overview.words("broker-demo-2")
        assert 'data-broker-state="warning"' in overview.start_tag("broker-demo-2")

    def test_no_rack_and_an_empty_rack_name_are_not_the_same(self, get_page: GetPage) -> None:
        cluster = watched("demo")
        BrokerState.objects.filter(cluster=cluster, broker_id=1).update(rack=None)
        BrokerState.objects.filter(cluster=cluster, broker_id=2).update(rack="")
        overview = get_page("/clusters/demo/")
        assert "1 Up none kafka-1" in overview.words("broker-demo-1")
        assert "2 Up kafka-2" in overview.words("broker-demo-2")

    def test_of_many_the_broken_ones_are_shown(self, get_page: GetPage) -> None:
        cluster = watched("demo")
        for broker_id in range(100, 160):
            BrokerFactory.create(cluster=cluster, broker_id=broker_id)
        BrokerState.objects.filter(cluster=cluster, broker_id=159).update(fenced=True)
        overview = get_page("/clusters/demo/")
        assert overview.figures("#brokers-demo .panel-note") == ["50", "63"]
        assert overview.has("broker-demo-159")
        assert not overview.has("broker-demo-158")

    def test_none_is_up_once_the_data_is_old(self, get_page: GetPage) -> None:
        silent(watched("demo"), NOW - timedelta(minutes=12), error="refused")
        overview = get_page("/clusters/demo/")
        assert "1 Was up" in overview.words("broker-demo-1")
        assert "data-stale" in overview.start_tag("brokers-demo")
        assert 'data-state="ok"' not in overview.html.split("<main")[1].split("</main>")[0]


def rows(page: Page) -> list[list[str]]:
    """The nodes of the quorum, cell by cell."""
    return [row.texts("th") + row.texts("td") for row in page.find("#quorum-demo tbody tr") if row.find("td")]


class TestQuorum:
    def test_it_says_who_leads_and_what_it_survives(self, get_page: GetPage) -> None:
        watched("demo")
        overview = get_page("/clusters/demo/")
        assert overview.figures("#quorum-demo .prose-strong") == ["102", "47", "1"]
        assert overview.figures("#quorum-demo .inline-facts")[:2] == ["3", "3"]
        assert 'data-controller="102"' in overview.html
        cells = ["101", "voter", "In sync", "8,412,907", "0", "210", "0.2 s", "0.2 s", "dir101AA…"]
        assert next(row for row in rows(overview) if row[0] == "101") == cells

    def test_a_time_that_the_leader_does_not_have_is_unknown(self, get_page: GetPage) -> None:
        cluster = watched("demo")
        snapshot = QuorumSnapshot.objects.get(cluster=cluster)
        snapshot.replicas = [node(101, caught_up_ago=None), node(102, caught_up_ago=0), node(103, caught_up_ago=2400)]
        snapshot.save(update_fields=["replicas"])
        page = get_page("/clusters/demo/")
        nodes = {row[0]: row[1:8] for row in rows(page)}
        assert nodes["101"] == ["voter", "Unknown", "8,412,907", "0", "unknown", "unknown", "unknown"]
        assert nodes["103"] == ["voter", "Lagging", "8,412,907", "0", "2,400", "2.4 s", "2.4 s"]
        assert page.figures("#quorum-demo .inline-facts")[:2] == ["1", "3"]

    def test_registered_brokers_that_it_misses_are_listed_as_offline(self, get_page: GetPage) -> None:
        cluster = watched("demo")
        BrokerFactory.create(cluster=cluster, broker_id=7)
        assert "7 observer Offline" in get_page("/clusters/demo/").words("quorum-demo")

    def test_zookeeper_mode_has_none(self, get_page: GetPage) -> None:
        Cluster.objects.filter(pk=watched("old").pk).update(mode=ClusterMode.ZOOKEEPER)
        overview = get_page("/clusters/old/")
        assert overview.find("#quorum-old [data-empty=zookeeper]")
        assert "Controller quorum" not in overview.words("collection-old")

    def test_zookeeper_mode_names_the_controller(self, get_page: GetPage) -> None:
        old = watched("old")
        Cluster.objects.filter(pk=old.pk).update(mode=ClusterMode.ZOOKEEPER, zookeeper="z:2181")
        assert "Active controller unknown" in get_page("/clusters/old/").words("figures-old")
        state = ZooKeeperState.objects.create(cluster=old, taken_at=NOW, controller_id=41, controller_epoch=9)
        words = get_page("/clusters/old/").words("figures-old")
        assert "Active controller 41 epoch 9" in words
        assert "last known" not in words
        state.taken_at = NOW - timedelta(hours=1)
        state.save()
        assert "last known" in get_page("/clusters/old/").words("figures-old")


class TestCollection:
    def test_each_kind_has_age_interval_and_result(self, get_page: GetPage) -> None:
        watched("demo")
        page = get_page("/clusters/demo/")
        assert page.figures("#collection-demo-metadata") == ["3 s", "30 s", "42 ms", "1,120"]
        assert not page.find("#collection-demo-metadata .status-mark")

    def test_brokers_that_did_not_answer_are_named(self, get_page: GetPage) -> None:
        cluster = watched("demo")
        error = "broker 2: no answer within 8 s"
        Collection.objects.filter(cluster=cluster, kind=CollectorKind.LOG_DIRS).update(
            not_answered=[2, 3], errors=[as_message(error).as_json()]
        )
        page = get_page("/clusters/demo/")
        assert page.figures("#collection-demo-log_dirs .status-mark") == ["2", "3"]
        assert page.states("#collection-demo-log_dirs .status-mark") == ["warning"]
        assert page.texts("#collection-demo-log_dirs .refresh-error") == [error]

    def test_a_failure_says_how_often_and_why(self, get_page: GetPage) -> None:
        error = "The principal needs Describe on the cluster."
        silent(watched("demo"), NOW - timedelta(minutes=2), error=error)
        page = get_page("/clusters/demo/")
        assert page.figures("#collection-demo-quorum .status-mark") == ["9"]
        assert page.texts("#collection-demo-quorum .refresh-error") == [error]

    @each_of_other_versions
    def test_a_failure_of_another_version_is_shown_as_stored(
        self, get_page: GetPage, code: str, params: dict[str, Any]
    ) -> None:
        demo = watched("demo")
        demo.collector_runs.update(failures=1, last_error_code=code, last_error_params=params)
        Collection.objects.filter(kind=CollectorKind.LOG_DIRS).update(errors=[{"code": code, "params": params}])
        page = get_page("/clusters/demo/")
        assert code in page.words("collection-demo-quorum")
        demo.collector_runs.update(failures=0)
        assert code in get_page("/clusters/demo/").words("collection-demo-log_dirs")

    def test_refused_credentials_say_when_they_are_tried_again(self, get_page: GetPage) -> None:
        refused = FailureKind.CREDENTIALS_REFUSED
        silent(watched("demo"), NOW - timedelta(minutes=2), error="Refused.", failure=refused)
        assert "Retries become less frequent" in get_page("/clusters/demo/").words("collection-demo-quorum")


def said(page: bytes) -> str:
    found = re.search(r"<main.*</main>", page.decode(), re.DOTALL)
    assert found is not None
    return found[0]


def test_somebody_without_a_role_on_it_does_not_learn_that_it_exists(
    make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    watched("secret")
    client = client_of(make_user("ann", Role.VIEWER, watched("mine")))
    there, nowhere = client.get("/clusters/secret/"), client.get("/clusters/nowhere/")
    assert (there.status_code, nowhere.status_code) == (404, 404)
    # Word for word what is said of a name that nobody has.
    assert said(there.content).replace("secret", "nowhere") == said(nowhere.content)
    assert client.get("/clusters/mine/").status_code == 200


def test_groups__how_many_how_they_do_and_the_worst_with_its_page(get_page: GetPage) -> None:
    demo = watched("demo")
    assert not get_page("/clusters/demo/").has("worst-group")
    group_seen(demo, "fine", {("t", 0): WELL})
    assert not get_page("/clusters/demo/").has("worst-group")
    group_seen(demo, "reader", {("t", 1): STALLED}, members={"c": {"t": [1]}})
    group_seen(demo, "alone", {("t", 2): STALLED})
    page = get_page("/clusters/demo/")
    assert page.figures("#groups-demo .prose-strong") == ["1", "3", "1"]
    assert page.figures("#worst-group")[:2] == ["2", "3"]
    assert page.texts("#worst-group .mono") == ["alone", "t-2"]
    assert page.texts("#worst-group .status-mark") == ["No active members"]
    assert page.links("#worst-group") == ["/clusters/demo/groups/alone/"]
    silent(demo, NOW - timedelta(hours=1), error="refused")
    page = get_page("/clusters/demo/")
    assert page.figures("#groups-demo .prose-strong") == ["3", "1 h"]
    assert page.start_tag("groups-demo").endswith("data-stale>")
    assert page.figures("#worst-group")[:2] == ["2", "3"]


def test_groups__that_were_not_read__are_not_called_none(get_page: GetPage) -> None:
    demo = watched("demo")
    demo.collector_runs.filter(kind=CollectorKind.GROUPS).update(succeeded_at=None)
    page = get_page("/clusters/demo/")
    assert not page.figures("#groups-demo .prose-strong")
    assert "data-stale" in page.start_tag("groups-demo")


@pytest.mark.parametrize(
    ("racks", "without", "why"), [(1, 0, "one-rack"), (1, 2, "unnamed"), (2, 1, "unnamed"), (0, 3, "no-rack")]
)
def test_why_the_spread_over_racks_is_not_judged(get_page: GetPage, racks: int, without: int, why: str) -> None:
    watched("lone", racks=racks, brokers_without_rack=without)
    page = get_page("/clusters/lone/")
    assert page.first("#figures-lone [data-judged]").get("data-judged") == why
    assert not figures_of(page.facts("#figures-lone")["Rack violations"])


def test_it_lists_states_worst_first_and_marks_where_one_is(get_page: Callable[[str], Page]) -> None:
    watched("well")
    watched("bad", offline_partitions=1)
    menu = get_page("/clusters/?current=well").html
    assert text_of(menu) == "bad critical well OK"
    assert menu.count('aria-current="true"') == 1
    assert 'href="/clusters/well/" data-state="ok" aria-current="true"' in menu


def test_it_lists_only_what_one_may_see(make_user: Callable[..., User], client_of: Callable[[User], Client]) -> None:
    watched("secret")
    client = client_of(make_user("ann", Role.VIEWER, watched("mine")))
    assert b"secret" not in client.get("/clusters/").content
    assert b"secret" not in client.get("/clusters/mine/").content
