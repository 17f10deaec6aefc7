"""A finished plan as rows: nothing is lost, the largest comes first, a new plan takes the place of the old.

How far a plan is from the least, as the wizard and the review page say it: proven, nearly, or not known.

All rows of one topic of a plan, at an address of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import PartitionMove
from kafkadash.clusters.models import Cluster
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.status import NEVER
from kafkadash.monitoring.freshness import FactFreshness
from kafkadash.monitoring.models import TierState, TopicState
from kafkadash.planning.impact import impact_of
from kafkadash.planning.models import PlanReport, PlanTopic
from kafkadash.planning.plan_store import first_exceptions_of, first_rows_of, rows_of, store_report
from kafkadash.planning.problem_codes import CheckedRule, RuleCode
from kafkadash.planning.proposal import BALANCE, PlanInput
from kafkadash.planning.review import plan_page, proof_words, review_context
from kafkadash.planning.solver.request import PlanProof
from kafkadash.planning.tiered_copies import TieredCopies, load_tiered_copies
from tests.factories import GB, NOW, BrokerFactory, TopicFactory, watched
from tests.pages.conftest import Page
from tests.planning.plans import counted, drained, planned, report_of, world
from tests.planning.stored import Wizard

pytestmark = pytest.mark.django_db

WORLD = world(
    {
        "orders": [[3, 1, 2], [1, 2, 4], [2, 3, 1], [3, 5, 4], [4, 5, 3], [3, 4, 2], [2, 1, 3]],
        "clicks": [[3, 5], [1, 2]],
    }
)
ROWS = drained(WORLD, 3, instead=6)


def test_every_row_of_the_plan_is_in_its_topic_with_its_size_and_leader(cluster: Cluster) -> None:
    change = planned(cluster, WORLD, ROWS)
    stored = [row for topic in report_of(change).topics.all() for row in rows_of(topic)]
    assert {(r.topic, r.partition, r.current, r.target) for r in stored} == {
        (r.topic, r.partition, r.current, r.target) for r in ROWS
    }
    assert {r.copied_bytes for r in stored} == {3 * GB}
    assert all(r.leader == r.current[0] for r in stored)


@pytest.mark.parametrize("untiered_only", [False, True], ids=["copies the local log", "leaves out what is tiered"])
def test_tiered_topic__says_what_is_copied_and_what_stays_in_remote_storage(
    cluster: Cluster, *, untiered_only: bool
) -> None:
    config = {"follower.fetch.last.tiered.offset.enable": ["true", "cluster-default"]} if untiered_only else {}
    BrokerFactory.create(cluster=cluster, broker_id=6, config=config)
    _make_clicks_tiered(cluster)
    TierState.objects.create(
        cluster=cluster,
        topic_id="id-of-clicks",
        partitions={"0": [0, 700, 899, 1_000, 3 * GB], "1": [0, 0, None, 10, GB]},
        taken_at=NOW,
    )

    plan = plan_page(planned(cluster, WORLD, ROWS), QueryDict(), NOW)

    assert plan is not None
    fresh = FactFreshness(NOW, NEVER.interval_s, NOW)
    brokers, left = ((6,), 9 * GB) if untiered_only else ((), 7 * GB)
    assert plan.tiered == TieredCopies(1, 3 * GB, left, brokers, untiered_only, GB, fresh), "clicks-1 does not move"
    shown = render_to_string("planning/_blast.html", {"plan": plan, "now": NOW}).partition('id="tiered"')[2]
    sizes = re.findall(r"<b>[≈ ]*(\d+\.\d GB)", shown.partition("</div>")[0])
    assert sizes == ["3.0 GB", "9.0 GB", "1.0 GB"] if untiered_only else ["3.0 GB", "7.0 GB"]


def test_tiered_topic__offsets_were_not_read__is_counted_and_unknown(cluster: Cluster) -> None:
    _make_clicks_tiered(cluster)

    tiered = load_tiered_copies(cluster, report_of(planned(cluster, WORLD, ROWS)), NOW)

    assert tiered is not None
    assert (tiered.partitions, tiered.copied_bytes, tiered.left_bytes, tiered.pending_bytes) == (1, 3 * GB, None, None)
    assert tiered.freshness.stale


def test_topics_whose_configs_were_not_read__are_counted_and_named_as_unknown(cluster: Cluster) -> None:
    TopicFactory.create(cluster=cluster, name="orders", topic_id="id-of-orders", config=None)
    reordered = PartitionMove("clicks", "id-of-clicks", 1, (1, 2), (2, 1))
    change = planned(cluster, WORLD, (*(row for row in ROWS if row.topic == "orders"), reordered))

    def counted_and_unread() -> tuple[int, tuple[str, ...]]:
        tiered = load_tiered_copies(cluster, report_of(change), NOW)
        assert tiered is not None
        return tiered.partitions, tiered.unread

    TopicFactory.create(cluster=cluster, name="clicks", topic_id="id-of-clicks", config=None)
    assert counted_and_unread() == (0, ("orders",)), "clicks is not copied"
    change = planned(cluster, WORLD, ROWS)
    assert counted_and_unread() == (0, ("orders", "clicks")), "largest first"
    plan = plan_page(change, QueryDict(), NOW)
    shown = render_to_string("planning/_blast.html", {"plan": plan, "now": NOW})
    assert 'id="tiered"' not in shown
    assert re.findall(r"<b>(\d+)</b>", shown.partition('id="tiers-unread"')[2].partition("</div>")[0]) == ["2"]
    TopicState.objects.filter(name="clicks").update(config={"remote.storage.enable": ["true", "topic"]})
    assert counted_and_unread() == (1, ("orders",))


def _make_clicks_tiered(cluster: Cluster) -> None:
    config = {"remote.storage.enable": ["true", "topic"]}
    TopicFactory.create(cluster=cluster, name="clicks", topic_id="id-of-clicks", config=config)


def test_no_topic_is_tiered__says_nothing_of_tiers(cluster: Cluster) -> None:
    assert load_tiered_copies(cluster, report_of(planned(cluster, WORLD, ROWS)), NOW) is None


def test_the_topic_that_copies_most_comes_first(cluster: Cluster) -> None:
    change = planned(cluster, WORLD, ROWS)
    assert [(t.ordinal, t.topic, t.topic_id) for t in report_of(change).topics.all()] == [
        (0, "orders", "id-of-orders"),
        (1, "clicks", "id-of-clicks"),
    ]


def test_what_is_an_exception_stands_first_in_the_fold_and_in_the_order_of_the_impact_on_the_page(
    cluster: Cluster,
) -> None:
    reasons = {("orders", 6): ("largest move",), ("clicks", 0): ("2 replicas only",)}
    report = report_of(planned(cluster, WORLD, ROWS, reasons=reasons))
    orders = report.topics.get(topic="orders")
    assert [row.partition for row in first_rows_of(orders)] == [6, 0, 2, 3, 4]
    assert orders.exceptions == 1
    assert report.exceptions == 2
    assert [(row.name, row.why) for row in first_exceptions_of(report)] == [
        ("orders-6", ("largest move",)),
        ("clicks-0", ("2 replicas only",)),
    ]


def test_a_size_that_nobody_knew_stays_unknown_but_no_copy_is_nothing(cluster: Cluster) -> None:
    unsized = world({"orders": [[3, 1, 2], [1, 2, 4]]}, size=None)
    moved, reordered = drained(unsized, 3, instead=6)[0], drained(unsized, 1, instead=5)[1]
    rows = (moved, type(reordered)("orders", "id-of-orders", 1, (1, 2, 4), (4, 2, 1)))
    report = report_of(planned(cluster, unsized, rows))
    assert [row.copied_bytes for row in rows_of(report.topics.get())] == [None, 0]
    assert report.impact["copied_bytes"] is None


def test_a_new_plan_takes_the_place_of_the_old(cluster: Cluster) -> None:
    change = planned(cluster, WORLD, ROWS)
    assert change.artifact
    store_report(
        change,
        change.artifact,
        ROWS[:1],
        counted(WORLD, ROWS[:1]),
        [pack_dataclass(CheckedRule("rule", True, ""))],
        1.5,
        WORLD,
    )
    report = report_of(change)
    assert PlanTopic.objects.count() == 1
    assert report.took_s == 1.5
    assert report.rules == [pack_dataclass(CheckedRule("rule", True, ""))]


EXACT = pack_dataclass(PlanProof(15 * GB, 15 * GB, {3: 2}, {}))
VERIFIED = [pack_dataclass(CheckedRule(RuleCode.LEAST_MOVEMENT, True, "15.0 GB, bound 15.0 GB"))]
BADGE = "Proven least movement"


@pytest.fixture
def drain(wizard: Wizard, demo: Cluster) -> Wizard:
    """Broker 3 is drained, 15.0 GB; what its report says of it is for the test to write."""
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    return wizard


def says(wizard: Wizard, proof: dict[str, Any] | None, **more: Any) -> str:
    PlanReport.objects.update(proof=proof, **{"rules": VERIFIED, "generate_bytes": None, **more})
    return Page(wizard.sees("plan")).words("plan")


def test_what_is_proven_has_its_badge_and_its_figures(drain: Wizard) -> None:
    words = says(drain, EXACT, generate_bytes=2361 * GB)
    told = proof_words(PlanReport.objects.get(), "drains broker 3")
    assert told is not None
    assert (told.badge, told.verified) == (BADGE, True)
    assert [figure for _, figure in told.figures] == ["15.0 GB", "15.0 GB", "0 B", "2.4 TB"]
    for shown in (told.badge, told.sentence, "5 moves, 15.0 GB", *(" ".join(each) for each in told.figures)):
        assert shown in words


def test_what_is_not_verified_is_not_said_to_be(drain: Wizard) -> None:
    assert "optimality verified" not in says(drain, EXACT, rules=[])
    cannot = [pack_dataclass(CheckedRule(RuleCode.LEAST_MOVEMENT, None, ""))]
    assert "optimality verified" not in says(drain, EXACT, rules=cannot)


def test_generate_is_not_named_where_it_was_not_reckoned(drain: Wizard) -> None:
    assert "generate" not in says(drain, EXACT)


@pytest.mark.parametrize(
    ("proof", "figures"),
    [
        (PlanProof(15 * GB, 12 * GB, {}, {}, disk_bound=15 * GB - 150_000_000), ["14.8 GB", "1.0 %"]),
        (PlanProof(15 * GB, 15 * GB - 1, {}, {}), ["15.0 GB", "0.1 %"]),
        (PlanProof(15 * GB, 15 * GB, {}, {}, estimated=2), ["2 partitions"]),
        (PlanProof(15 * GB, 0, {}, {}), ["0 B"]),
    ],
)
def test_what_is_not_quite_proven_says_how_far_it_is_and_has_no_badge(
    drain: Wizard, proof: PlanProof, figures: list[str]
) -> None:
    words = says(drain, pack_dataclass(proof))
    told = proof_words(PlanReport.objects.get(), "drains broker 3")
    assert told is not None
    assert re.findall(r"[\d.]+ (?:GB|B|%|partitions)", told.sentence) == figures
    assert told.sentence in words
    assert BADGE not in words


def test_without_a_proof_nothing_is_claimed(drain: Wizard) -> None:
    words = says(drain, None)
    assert proof_words(PlanReport.objects.get(), "drains broker 3") is None
    assert BADGE not in words
    assert "lower bound" not in words


def test_the_review_page_says_the_same(cluster: Cluster) -> None:
    topology = world({"orders": [[3, 1, 2], [1, 2, 4]]})
    asked = PlanInput(BALANCE, eps=0.05)
    proof = pack_dataclass(PlanProof(3 * GB, 3 * GB, {}, {}))
    change = planned(cluster, topology, drained(topology, 3, 6), asked=asked, proof=proof, rules=VERIFIED)
    context = review_context(change, RequestFactory().get("/"), NOW)
    page = Page(render_to_string("planning/_review.html", {"of_kind": context}))
    told = context["plan"].proof
    assert (told.badge, told.verified, [figure for _, figure in told.figures]) == (
        BADGE,
        True,
        ["3.0 GB", "3.0 GB", "0 B"],
    )
    for shown in (told.badge, told.sentence, *(" ".join(each) for each in told.figures)):
        assert shown in page.words("proof")


def test_the_review_page_of_a_brought_plan_proves_nothing(cluster: Cluster) -> None:
    topology = world({"orders": [[3, 1, 2], [1, 2, 4]]})
    change = planned(cluster, topology, drained(topology, 3, 6))
    context = review_context(change, RequestFactory().get("/"), NOW)
    assert 'id="proof"' not in render_to_string("planning/_review.html", {"of_kind": context})


@pytest.fixture
def watched_demo() -> Cluster:
    return watched("demo")


@pytest.fixture
def get(viewer: User, client_of: Callable[[User], Client]) -> Callable[[str], Page]:
    client = client_of(viewer)

    def page(address: str) -> Page:
        response = client.get(address)
        assert response.status_code == 200
        return Page(response.content.decode())

    return page


def address(cluster: Cluster, partitions: int) -> str:
    topology = world({"orders": [[3, 1, 2], [1, 2, 3]] * (partitions // 2), "clicks": [[3, 5]]})
    rows = drained(topology, 3, instead=6)
    return f"/changes/{planned(cluster, topology, rows, impact=impact_of(rows, topology)).pk}/topics/orders/"


def test_a_plan_that_was_dropped_has_no_rows(
    watched_demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    where = address(watched_demo, 2)
    ChangeRequest.objects.update(artifact=None, digest="")
    assert client_of(viewer).get(where).status_code == 404


def test_a_name_that_no_topic_can_have_is_not_found(
    watched_demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    where = address(watched_demo, 2).replace("orders", "a%00b")
    assert client_of(viewer).get(where).status_code == 404
    assert client_of(viewer).get("/clusters/demo/topics/a%00b/").status_code == 404


def names(page: Page) -> list[str]:
    return re.findall(r'partition-name">(orders-\d+)</td>', page.html)


def test_the_title_says_how_many_move_and_every_row_is_on_one_of_its_pages(
    watched_demo: Cluster, get: Callable[[str], Page]
) -> None:
    where = address(watched_demo, 240)
    for figure in ("orders", "240 of 240", "720.0 GB"):
        assert figure in get(where).title
    found = [name for number in (1, 2, 3) for name in names(get(f"{where}?page={number}"))]
    assert found == [f"orders-{n}" for n in range(240)]


def test_exceptions_and_brokers_filter_by_address(watched_demo: Cluster, get: Callable[[str], Page]) -> None:
    where = address(watched_demo, 4)
    assert names(get(f"{where}?rows=exceptions")) == ["orders-0"], "the largest move is the only exception"
    assert len(names(get(f"{where}?on=6"))) == 4
    nothing = get(f"{where}?on=5")
    assert names(nothing) == []
    assert 'class="empty"' in nothing.html


def test_a_topic_that_is_not_in_the_plan_is_not_there(
    watched_demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    where = address(watched_demo, 4).replace("orders", "payments")
    assert client_of(viewer).get(where).status_code == 404


def test_more_rows_cost_no_more_queries(watched_demo: Cluster, get: Callable[[str], Page]) -> None:
    counts = []
    for partitions in (4, 400):
        where = address(watched_demo, partitions)
        with CaptureQueriesContext(connection) as queries:
            get(where)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 10
