"""How far a plan is from the least, as the wizard and the review page say it: proven, nearly, or not known."""

from __future__ import annotations

from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import RequestFactory

from kafkadash.clusters.models import Cluster
from kafkadash.domain.planner.request import Proof
from kafkadash.reassign.asked import BALANCE, Asked
from kafkadash.reassign.models import PlanReport
from kafkadash.reassign.review_sections import review_context
from tests.factories import GB, NOW
from tests.pages.conftest import Page
from tests.reassign.plans import drained, planned, world
from tests.reassign.stored import Wizard

pytestmark = pytest.mark.django_db

EXACT = Proof(15 * GB, 15 * GB, {3: 2}, {}).as_json()
VERIFIED = [["least movement", True, "15.0 GB, bound 15.0 GB", []]]
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
    assert "5 moves, 15.0 GB. No plan that drains broker 3 under these limits moves less." in words
    figures = "this plan 15.0 GB lower bound 15.0 GB gap 0 B Kafka’s own generate would move 2.4 TB"
    assert figures in words
    assert "verified without the solver" in words
    assert BADGE in words


def test_what_is_not_verified_is_not_said_to_be(drain: Wizard) -> None:
    assert "verified without the solver" not in says(drain, EXACT, rules=[])
    cannot = [["least movement", None, "", ["Not judged."]]]
    assert "verified without the solver" not in says(drain, EXACT, rules=cannot)


def test_generate_is_not_named_where_it_was_not_reckoned(drain: Wizard) -> None:
    assert "generate" not in says(drain, EXACT)


@pytest.mark.parametrize(
    ("proof", "sentence"),
    [
        (
            Proof(15 * GB, 12 * GB, {}, {}, disk_bound=15 * GB - 150_000_000),
            "No plan that drains broker 3 under these limits moves less than 14.8 GB: this one is at most 1.0 % above",
        ),
        (
            Proof(15 * GB, 15 * GB - 1, {}, {}),
            "moves less than 15.0 GB: this one is less than 0.1 % above that.",
        ),
        (
            Proof(15 * GB, 15 * GB, {}, {}, estimated=2),
            "With 2 partitions of unknown size taken to be as large as others of their topic, no plan that drains",
        ),
        (Proof(15 * GB, 0, {}, {}), "How far that is from the least is not known: the lower bound is 0 B."),
    ],
)
def test_what_is_not_quite_proven_says_how_far_it_is_and_has_no_badge(
    drain: Wizard, proof: Proof, sentence: str
) -> None:
    words = says(drain, proof.as_json())
    assert sentence in words
    assert BADGE not in words


def test_without_a_proof_nothing_is_claimed(drain: Wizard) -> None:
    words = says(drain, None)
    assert "Broker 3 holds this much: no plan that drains it moves less." in words
    assert BADGE not in words
    assert "lower bound" not in words


def test_the_review_page_says_the_same(cluster: Cluster) -> None:
    topology = world({"orders": [[3, 1, 2], [1, 2, 4]]})
    asked = Asked(BALANCE, eps=0.05)
    proof = Proof(3 * GB, 3 * GB, {}, {}).as_json()
    change = planned(cluster, topology, drained(topology, 3, 6), asked=asked, proof=proof, rules=VERIFIED)
    context = review_context(change, RequestFactory().get("/"), NOW)
    page = Page(render_to_string("reassign/_review.html", {"of_kind": context}))
    assert page.words("proof") == (
        f"{BADGE} No plan that balances replicas, disks and leaders under these limits moves less. this plan 3.0 GB "
        "lower bound 3.0 GB gap 0 B verified without the solver"
    )


def test_the_review_page_of_a_brought_plan_proves_nothing(cluster: Cluster) -> None:
    topology = world({"orders": [[3, 1, 2], [1, 2, 4]]})
    change = planned(cluster, topology, drained(topology, 3, 6))
    context = review_context(change, RequestFactory().get("/"), NOW)
    assert 'id="proof"' not in render_to_string("reassign/_review.html", {"of_kind": context})
