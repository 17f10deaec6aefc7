"""A cluster's overview: figures with their ages, brokers, quorum, and how it is collected."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, Mode, Role
from kafkadash.observe.models import BrokerState, BrokerWeights, Collection, Kind, QuorumSnapshot
from tests.factories import (
    GB,
    NOW,
    BrokerFactory,
    ReassignmentFactory,
    TopicFactory,
    directory,
    node,
    silent,
    watched,
)
from tests.groups import STALLED, WELL, group_seen
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]


def test_its_title_is_the_answer(get_page: GetPage) -> None:
    watched("well")
    watched("bad", offline_partitions=3)
    assert get_page("/clusters/well/").title == "well is OK."
    assert get_page("/clusters/bad/").title == "bad has 3 partitions without a leader, and nobody has it."
    assert "Critical" in get_page("/clusters/bad/").words("overview-bad")


def test_figures_keep_moves_apart_from_faults(get_page: GetPage) -> None:
    cluster = watched("demo", under_replicated=44, under_replicated_moving=3, racks=0)
    ReassignmentFactory.create_batch(3, cluster=cluster)
    words = get_page("/clusters/demo/").words("figures-demo")
    assert "Under-replicated 41 and 3 explained by moves" in words
    assert "In flight 3 reassignments" in words
    assert "Active controller 102 epoch 47" in words
    assert "Racks none no broker names its rack" in words


def test_offline_partitions_of_unread_configs_are_not_taken_off_those_that_refuse_writes(get_page: GetPage) -> None:
    demo = watched("demo", offline_partitions=3, under_min_isr=4)
    unread = {"min_isr": None, "under_min_isr": None, "at_min_isr": None}
    TopicFactory.create(cluster=demo, partitions=[[0, None, 5, [1], [1], [1]], [1, None, 5, [1], [1], [1]]], **unread)
    assert "Under min-ISR 3 refuse acks=all" in get_page("/clusters/demo/").words("figures-demo")


def test_what_was_never_read_is_unknown_and_not_zero(get_page: GetPage) -> None:
    cluster = watched("new")
    cluster.state.delete()
    cluster.collector_runs.update(succeeded_at=None, attempted_at=None)
    for model in (BrokerState, QuorumSnapshot, Collection):
        model.objects.filter(cluster=cluster).delete()
    overview = get_page("/clusters/new/")
    words = overview.words("figures-new")
    for label in ("Brokers", "Racks", "Topics", "Partitions", "Offline", "Under-replicated", "In flight", "controller"):
        assert f"{label} unknown" in words
    assert "No broker was seen yet." in overview.text
    assert "The controllers were not asked yet." in overview.text
    assert overview.words("collection-new").count("waits for a worker") == len(Kind)


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
        assert overview.words("partition-T-2") == "payments.ledger-2 Offline none 2 2 none 01:56:04"
        assert overview.words("partition-T-1") == "payments.ledger-1 At min-ISR 1 1, 2, 3 1, 3 2 01:56:04"
        assert not overview.has("partition-T-0")
        assert not overview.has("partition-T-3")

    def test_the_panel_is_hidden_while_there_are_none(self, get_page: GetPage) -> None:
        TopicFactory.create(cluster=watched("demo"))
        assert " hidden" in get_page("/clusters/demo/").start_tag("partitions-demo")


class TestBrokers:
    def test_each_has_state_rack_address_and_its_directories(self, get_page: GetPage) -> None:
        watched("demo")
        words = get_page("/clusters/demo/").words("broker-demo-1")
        assert words.startswith("1 Up eu-1b kafka-1.internal:9092 229 79 /var/lib/kafka/a 667.0 GB of 2.0 TB 33.3 %")

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
        assert "Gone" in overview.words("broker-demo-2")
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
        assert "50 of 63: those that are not up, then by id" in overview.words("brokers-demo")
        assert overview.has("broker-demo-159")
        assert not overview.has("broker-demo-158")

    def test_none_is_up_once_the_data_is_old(self, get_page: GetPage) -> None:
        silent(watched("demo"), NOW - timedelta(minutes=12), error="refused")
        overview = get_page("/clusters/demo/")
        assert "1 Was up" in overview.words("broker-demo-1")
        assert "data-stale" in overview.start_tag("brokers-demo")
        assert 'data-state="ok"' not in overview.html.split("<main")[1].split("</main>")[0]


class TestQuorum:
    def test_it_says_who_leads_and_what_it_survives(self, get_page: GetPage) -> None:
        watched("demo")
        overview = get_page("/clusters/demo/")
        words = overview.words("quorum-demo")
        assert "Controller 102 leads in epoch 47; the quorum survives 1 more failure." in words
        assert "3 of 3 voters in sync" in words
        assert 'data-controller="102"' in overview.html
        assert "101 voter In sync 8,412,907 0 210 0.2 s 0.2 s dir101AA…" in words

    def test_a_time_that_the_leader_does_not_have_is_unknown(self, get_page: GetPage) -> None:
        cluster = watched("demo")
        snapshot = QuorumSnapshot.objects.get(cluster=cluster)
        snapshot.replicas = [node(101, caught_up_ago=None), node(102, caught_up_ago=0), node(103, caught_up_ago=2400)]
        snapshot.save(update_fields=["replicas"])
        words = get_page("/clusters/demo/").words("quorum-demo")
        assert "101 voter Unknown 8,412,907 0 unknown unknown unknown" in words
        assert "103 voter Lagging 8,412,907 0 2,400 2.4 s 2.4 s" in words
        assert "1 of 3 voters in sync" in words

    def test_registered_brokers_that_it_misses_are_listed_as_offline(self, get_page: GetPage) -> None:
        cluster = watched("demo")
        BrokerFactory.create(cluster=cluster, broker_id=7)
        assert "7 observer Offline" in get_page("/clusters/demo/").words("quorum-demo")

    def test_zookeeper_mode_has_none(self, get_page: GetPage) -> None:
        Cluster.objects.filter(pk=watched("old").pk).update(mode=Mode.ZOOKEEPER)
        overview = get_page("/clusters/old/")
        assert "ZooKeeper mode has no controller quorum." in overview.words("quorum-old")
        assert "Controller quorum" not in overview.words("collection-old")


class TestCollection:
    def test_each_kind_has_age_interval_and_result(self, get_page: GetPage) -> None:
        watched("demo")
        words = get_page("/clusters/demo/").words("collection-demo-metadata")
        assert words == "Topics and brokers data 3 s old 30 s 42 ms complete, 1,120 partitions"

    def test_brokers_that_did_not_answer_are_named(self, get_page: GetPage) -> None:
        cluster = watched("demo")
        Collection.objects.filter(cluster=cluster, kind=Kind.LOG_DIRS).update(
            not_answered=[2, 3], errors=["broker 2: no answer within 8 s"]
        )
        words = get_page("/clusters/demo/").words("collection-demo-log_dirs")
        assert "No answer from brokers 2, 3 broker 2: no answer within 8 s" in words

    def test_a_failure_says_how_often_and_why(self, get_page: GetPage) -> None:
        silent(watched("demo"), NOW - timedelta(minutes=2), error="The principal needs Describe on the cluster.")
        words = get_page("/clusters/demo/").words("collection-demo-quorum")
        assert "Failed 9 times The principal needs Describe on the cluster." in words


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
    part = get_page("/clusters/demo/").words("groups-demo")
    assert "demo has no consumer groups." in part
    group_seen(demo, "fine", {("t", 0): WELL})
    assert "The only group of demo keeps up." in get_page("/clusters/demo/").words("groups-demo")
    group_seen(demo, "reader", {("t", 1): STALLED}, members={"c": {"t": [1]}})
    group_seen(demo, "alone", {("t", 2): STALLED})
    page = get_page("/clusters/demo/")
    words = page.words("groups-demo")
    assert "Of 3 groups, 1 has stopped and 1 stalls." in words
    assert "2 of 3 not OK worst: alone Stop" in words
    assert "most in t-2" in words
    assert 'href="/clusters/demo/groups/alone/"' in page.part("groups-demo")
    silent(demo, NOW - timedelta(hours=1), error="refused")
    words = get_page("/clusters/demo/").words("groups-demo")
    assert "Cannot tell how the groups of demo do" in words
    assert "when last read: 2 of 3 not OK" in words


def test_groups__that_were_not_read__are_not_called_none(get_page: GetPage) -> None:
    demo = watched("demo")
    demo.collector_runs.filter(kind=Kind.GROUPS).update(succeeded_at=None)
    words = get_page("/clusters/demo/").words("groups-demo")
    assert "Cannot tell which groups demo has: they were not read yet." in words


@pytest.mark.parametrize(
    ("racks", "without", "words"),
    [
        (1, 0, "all brokers are in one rack"),
        (1, 2, "not every broker names a rack"),
        (2, 1, "not every broker names a rack"),
        (0, 3, "no broker names its rack"),
    ],
)
def test_why_the_spread_over_racks_is_not_judged(get_page: GetPage, racks: int, without: int, words: str) -> None:
    watched("lone", racks=racks, brokers_without_rack=without)
    assert f"Uneven over racks unknown {words}" in get_page("/clusters/lone/").words("figures-lone")
