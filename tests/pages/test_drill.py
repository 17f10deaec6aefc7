"""The drill: what dies is asked for in the address, the answer is the title, every single loss is listed below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.monitoring.models import (
    BrokerState,
    ClusterState,
    CollectorKind,
    EligibleReplicaState,
    QuorumSnapshot,
    TopicState,
)
from tests.factories import NOW, BrokerFactory, TopicFactory, silent, watched
from tests.pages.conftest import Page, figures_of
from tests.quorums import answers

pytestmark = pytest.mark.django_db

GetPage = Callable[[str], Page]
ADDRESS = "/clusters/demo/drill/"
RACKS = {1: "eu 1a", 2: "eu 1b", 3: "ü-1c"}


@pytest.fixture
def demo() -> Cluster:
    cluster = watched("demo")
    for broker, rack in RACKS.items():
        BrokerState.objects.filter(cluster=cluster, broker_id=broker).update(rack=rack)
    return cluster


def topic(cluster: Cluster, name: str, *partitions: Sequence[int], min_isr: int | None = 2, **fields: Any) -> None:
    """Each partition's replicas, all in sync, led by the first."""
    rows = [[n, replicas[0], 5, list(replicas), list(replicas), []] for n, replicas in enumerate(partitions)]
    TopicFactory.create(cluster=cluster, name=name, partitions=rows, min_isr=min_isr, **fields)


def first_figures(page: Page, *tiles: str) -> list[str]:
    """The first number of each tile; '' where a tile has none."""
    facts = page.facts("#drill .stat-row")
    return [next(iter(figures_of(facts[tile])), "") for tile in tiles]


def losses(page: Page) -> list[str]:
    """How many partitions go offline, and how many more refuse writes."""
    return first_figures(page, "Go offline", "Refuse writes")


class TestTheAnswer:
    def test_a_broker_takes_partitions_offline_and_makes_others_refuse_writes(
        self, demo: Cluster, get_page: GetPage
    ) -> None:
        topic(demo, "lonely", [2], [2], min_isr=1)
        topic(demo, "pair", [2, 3], [1, 3])
        page = get_page(f"{ADDRESS}?broker=2")
        assert figures_of(page.title) == ["2", "2"]
        assert losses(page) == ["2", "1"]
        assert "lonely-0" in page.words("partitions")
        assert "pair-0" not in page.words("partitions")

    def test_a_rack_is_asked_for_by_its_name(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "t", [3, 1, 2], min_isr=1)
        page = get_page(f"{ADDRESS}?rack=%C3%BC-1c")
        assert "Rack ü-1c" in page.title
        assert losses(page) == ["0", "0"]
        assert 'href="?rack=eu%201a"' in page.html

    def test_several_brokers_die_together(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "t", [1, 2], min_isr=1)
        for query, named in (
            ("brokers=1,2", ["1", "2", "1"]),
            ("broker=1&broker=2", ["1", "2", "1"]),
            ("brokers=1&rack=eu+1b", ["1", "1"]),
        ):
            page = get_page(f"{ADDRESS}?{query}")
            assert figures_of(page.title)[-len(named) :] == named
            assert losses(page)[0] == "1"

    def test_without_a_question_the_worst_single_loss_is_the_title(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "lonely", [3], min_isr=1)
        page = get_page(ADDRESS)
        assert "rack ü-1c" in page.title
        assert figures_of(page.title)[-1] == "1"
        worst = page.first("#losses tbody tr").children
        assert [cell.text for cell in worst if not isinstance(cell, str)][:6] == ["rack ü-1c", "1", "1", "0", "0", "0"]

    def test_no_loss_that_hurts_is_said_too(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "t", [1, 2, 3])
        page = get_page(ADDRESS)
        assert not figures_of(page.title)
        assert not page.find("#losses [data-state=critical]")

    def test_leaders_go_to_the_next_replica_in_sync(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "t", [1, 3, 2], [1, 2, 3], [3, 1, 2])
        page = get_page(f"{ADDRESS}?broker=1&show=moving")
        assert figures_of(page.first("#partitions .segments [aria-current]").text) == ["2"]
        assert page.texts("#partitions tbody tr th")[0] == "t-0"
        assert page.texts("#partitions tbody tr td")[:6] == ["Leader moves", "1 → 3", "1, 3, 2", "1, 3, 2", "3, 2", "2"]
        assert page.words("survivor-3") == "3 ü-1c 1 → 2 3"

    def test_a_partition_that_the_elr_keeps_online_is_not_lost(self, demo: Cluster, get_page: GetPage) -> None:
        TopicFactory.create(cluster=demo, name="t", topic_id="t", partitions=[[0, 1, 5, [1, 2, 3], [1], []]])
        row = EligibleReplicaState.objects.create(
            cluster=demo, topic_id="t", partitions={"0": [[3], [], {}]}, taken_at=NOW
        )
        page = get_page(f"{ADDRESS}?broker=1")
        assert first_figures(page, "Go offline", "Leaders move") == ["0", "1"]
        assert page.figures("#drill [data-elr]") == ["1"]
        EligibleReplicaState.objects.filter(pk=row.pk).update(taken_at=NOW - timedelta(minutes=2))
        old = get_page(f"{ADDRESS}?broker=1")
        assert first_figures(old, "Go offline", "Leaders move") == ["1", "0"], "an old ELR is unknown"

    def test_old_data_is_judged_and_said_to_be_old(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "lonely", [2], min_isr=1)
        silent(demo, NOW - timedelta(minutes=12))
        page = get_page(f"{ADDRESS}?broker=2")
        assert figures_of(page.title) == ["2", "1", "12 min"]
        assert "data-stale" in page.start_tag("drill")
        assert first_figures(page, "Quorum") == [""]


class TestMinIsr:
    def test_where_it_was_not_read_nothing_is_claimed(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "t", [1, 2], min_isr=None)
        page = get_page(f"{ADDRESS}?broker=1")
        assert figures_of(page.title) == ["1", "1"]
        assert losses(page) == ["0", ""]
        assert page.states("#drill .stat-tile")[:3] == ["ok", "unknown", "unknown"]

    def test_some_that_are_unknown_are_counted(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "a", [1, 2], min_isr=None)
        topic(demo, "b", [1, 2])
        page = get_page(f"{ADDRESS}?broker=1")
        assert losses(page) == ["0", "1"]
        assert figures_of(page.facts("#drill .stat-row")["Refuse writes"]) == ["1", "1"]
        assert page.figures("#losses .panel-foot") == ["1", "2"]

    def test_what_refuses_writes_already_is_not_more(self, demo: Cluster, get_page: GetPage) -> None:
        TopicFactory.create(cluster=demo, name="t", min_isr=3, partitions=[[0, 1, 5, [1, 2, 3], [1, 2], [3]]])
        page = get_page(f"{ADDRESS}?broker=2")
        assert losses(page) == ["0", "0"]
        assert figures_of(page.facts("#drill .stat-row")["Refuse writes"]) == ["0", "1"]


class TestTheQuorum:
    def test_voters_of_their_own_may_or_may_not_die(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "t", [1, 2, 3])
        page = get_page(f"{ADDRESS}?rack=eu+1a")
        assert page.states("#drill .stat-tile")[-1] == "unknown"
        assert page.figures("#drill [data-voters=apart]") == ["3", "3"]

    def test_combined_nodes_die_as_voters(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "t", [3, 2, 1])
        until = NOW - timedelta(seconds=3)
        answers(demo, until, timedelta(minutes=1), voters=(1, 2, 3), observers=(), leaders=((timedelta(0), 3, 7),))
        page = get_page(f"{ADDRESS}?brokers=1,2")
        assert losses(page) == ["0", "1"]
        assert page.states("#drill .stat-tile")[-1] == "critical"
        assert page.figures("#drill [data-voters=dying]") == ["1", "2"]
        assert page.context["quorum"].lost
        assert figures_of(get_page(ADDRESS).texts("#losses tbody tr td")[6]) == ["0"]

    def test_a_single_loss_of_the_quorum_is_the_worst(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "lonely", [2], min_isr=1)
        until = NOW - timedelta(seconds=3)
        answers(demo, until, timedelta(minutes=1), voters=(1,), observers=(2, 3), leaders=((timedelta(0), 1, 7),))
        page = get_page(ADDRESS)
        assert "rack eu 1a" in page.title
        assert page.context["losses"][0].quorum_lost

    def test_brokers_of_the_rack_that_are_not_up__die_as_voters(self, demo: Cluster, get_page: GetPage) -> None:
        BrokerState.objects.filter(broker_id=2).update(gone_at=NOW, rack="eu 1a")
        until = NOW - timedelta(seconds=3)
        answers(demo, until, timedelta(minutes=1), voters=(1, 2, 3), observers=(), leaders=((timedelta(0), 3, 7),))
        page = get_page(f"{ADDRESS}?rack=eu+1a")
        assert page.context["quorum"].dying == (1, 2)
        assert page.context["losses"][0].quorum_lost

    def test_an_unknown_quorum_is_unknown(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "t", [1, 2, 3])
        QuorumSnapshot.objects.all().delete()
        page = get_page(f"{ADDRESS}?broker=1")
        assert page.states("#drill .stat-tile")[-1] == "unknown"
        assert first_figures(page, "Quorum") == [""]


class TestManyBrokers:
    def test_no_id_of_a_long_list_is_cut(self, demo: Cluster, get_page: GetPage) -> None:
        ids = ",".join(["2"] * 600 + ["1234"])
        page = get_page(f"{ADDRESS}?brokers={ids}")
        assert page.tells(OnCallErrorCode.DRILL_BROKERS_UNKNOWN, "main")
        assert "1234" in figures_of(page.first("[role=note]").text)

    def test_more_than_are_looked_at_is_said(self, demo: Cluster, get_page: GetPage) -> None:
        page = get_page(f"{ADDRESS}?brokers={'2,' * 1200}")
        assert page.tells(OnCallErrorCode.DRILL_TOO_MANY, "main")
        assert page.figures("[role=note]") == ["1,000", "1,200"]


class TestBadInput:
    @pytest.mark.parametrize(
        ("asked", "sentence"),
        [
            ("broker=9", "demo has no broker 9. Choose from 1, 2 and 3."),
            ("brokers=8,9", "demo has no brokers 8 and 9. Choose from 1, 2 and 3."),
            ("brokers=one", "“one” is not a broker ID. Enter comma-separated numbers, such as 1,2."),
            ("brokers=-1", "“-1” is not a broker ID"),
            (f"brokers={'9' * 40}", "is not a broker ID"),
            ("rack=mars", "demo has no brokers in rack mars. Choose from eu 1a, eu 1b and ü-1c."),
        ],
    )
    def test_it_is_answered_with_a_sentence(self, demo: Cluster, get_page: GetPage, asked: str, sentence: str) -> None:
        topic(demo, "t", [1, 2, 3])
        page = get_page(f"{ADDRESS}?{asked}")
        assert sentence in page.text
        assert page.has("losses")

    def test_what_is_known_of_the_question_is_answered(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "lonely", [2], min_isr=1)
        page = get_page(f"{ADDRESS}?brokers=2,9")
        assert figures_of(page.title) == ["2", "1"]
        assert page.tells(OnCallErrorCode.DRILL_BROKERS_UNKNOWN, "main")
        assert page.figures("[role=note]")[0] == "9"

    def test_a_broker_that_is_fenced_already_is_named(self, demo: Cluster, get_page: GetPage) -> None:
        BrokerFactory.create(cluster=demo, broker_id=4, fenced=True)
        topic(demo, "t", [1, 2, 3])
        page = get_page(f"{ADDRESS}?broker=4")
        assert page.tells(OnCallErrorCode.DRILL_FENCED, "main")
        assert page.figures("[role=note]") == ["4"]

    def test_nothing_collected_yet_is_said(self, demo: Cluster, get_page: GetPage) -> None:
        BrokerState.objects.all().delete()
        TopicState.objects.all().delete()
        ClusterState.objects.all().delete()
        demo.collector_runs.filter(kind=CollectorKind.METADATA).update(succeeded_at=None)
        page = get_page(f"{ADDRESS}?broker=1")
        assert not figures_of(page.title)
        assert page.links("[data-empty=unread]") == ["/clusters/demo/#collection-demo"]

    def test_no_topic_at_all_loses_nothing(self, demo: Cluster, get_page: GetPage) -> None:
        page = get_page(f"{ADDRESS}?broker=1")
        assert figures_of(page.title) == ["1"]
        assert losses(page)[0] == "0"
        assert not page.context["drilled"].unknown_min_isr


class TestLists:
    def test_they_are_paged(self, demo: Cluster, get_page: GetPage) -> None:
        topic(demo, "lonely", *[[2]] * 60, min_isr=1)
        first = get_page(f"{ADDRESS}?broker=2")
        assert "1–25 of 60" in first.words("partitions")
        assert 'href="?broker=2&amp;show=offline&amp;page=2#partitions"' in first.html
        assert "51–60 of 60" in get_page(f"{ADDRESS}?broker=2&show=offline&page=3").words("partitions")

    def test_the_losses_are_few_until_all_are_wanted(self, demo: Cluster, get_page: GetPage) -> None:
        for broker in range(10, 40):
            BrokerFactory.create(cluster=demo, broker_id=broker, rack=None)
        topic(demo, "t", [1, 2, 3])
        assert "1–15 of 36" in get_page(ADDRESS).words("losses")
        assert get_page(f"{ADDRESS}?losses=all").words("losses").count("broker ") == 33
