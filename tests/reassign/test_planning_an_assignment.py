"""Kafka's JSON from a draft to a plan: the job for real, with its real child process, on stored rows."""

from __future__ import annotations

from html import unescape

import pytest

from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.reassign.checks import plan_rows
from tests.factories import ReassignmentFactory
from tests.reassign.stored import Wizard, kafka_json, plan_explicit, problems_of, text

pytestmark = pytest.mark.django_db


def test_an_explicit_assignment_is_planned_exactly_as_given(wizard: Wizard, demo: Cluster) -> None:
    change = plan_explicit(wizard, demo, kafka_json(("orders", 0, [6, 1, 2]), ("clicks", 1, [1, 2])))
    assert [(row.name, row.current, row.target) for row in plan_rows(str(change.artifact_id))] == [
        ("orders-0", (1, 2, 3), (6, 1, 2))
    ]
    words = text(wizard.sees("plan"))
    assert "1 move, 3.0 GB. Exactly as given." in words
    assert "1 partition of the file is as asked already. Only the others are planned." in words


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            "not json",
            "Line 1, column 1: This is not JSON: a value is missing here. Mend it there, then bring it again.",
        ),
        ('{"version":1,"partitions":[', "This is not JSON"),
        (kafka_json(("orders", 0, [1, 2, 6]), version=2), 'Line 1: "version" is 2; Kafka knows version 1 only.'),
        (
            kafka_json(("orders", 0, [1, 2, 6]), ("orders", 0, [1, 2, 5])),
            "Line 3: orders-0 stands here again; it is on line 2 already. Leave one of them.",
        ),
        (kafka_json(("orders", 0, [1, 2, 2])), "Line 2: orders-0 names broker 2 twice in its replicas. Leave it once."),
        (
            kafka_json(("nowhere", 0, [1, 2])),
            "Line 2: There is no topic nowhere in this cluster. Correct it in the file, or take it out.",
        ),
        (kafka_json(("orders", 99, [1, 2, 6])), "Line 2: There is no partition orders-99: orders has 5 partitions"),
        (
            kafka_json(("orders", 0, [1, 2, 9])),
            "Line 2: There is no broker 9 in this cluster. Name brokers of the cluster only.",
        ),
        (
            kafka_json(("orders", 0, [1, 2])),
            "Line 2: orders-0 has 3 replicas and would have 2. If that is meant, allow",
        ),
        (
            kafka_json(("<script>", 0, [1, 2])),
            'Line 2: "topic" is "<script>", which no topic can be called. Give the name of a topic.',
        ),
    ],
)
def test_what_is_wrong_with_the_json_is_told_with_its_line_and_the_json_is_kept(
    wizard: Wizard, demo: Cluster, given: str, sentence: str
) -> None:
    plan_explicit(wizard, demo, given)
    assert sentence in problems_of(wizard)[0]
    html = wizard.sees("plan")
    assert "<script>&" not in html
    assert '"<script>"' not in html
    assert given in unescape(wizard.sees("what"))


def test_fewer_replicas_are_planned_where_the_flag_allows_it(wizard: Wizard, demo: Cluster) -> None:
    change = plan_explicit(wizard, demo, kafka_json(("orders", 0, [1, 2])), change_rf="on")
    assert change.artifact_id is not None
    assert change.options["change_rf"] is True


def test_fewer_racks_are_proposed_only_where_they_are_accepted(wizard: Wizard, demo: Cluster) -> None:
    worse = kafka_json(("orders", 0, [1, 2, 4]))
    refused = plan_explicit(wizard, demo, worse)
    assert refused.artifact_id is not None
    page = wizard.sends("why", {"title": "Move it", "why": "Broker 3 fails."}).content.decode()
    assert (
        "This plan could never start: orders-0 would lie in fewer racks, or less evenly: 1, 2, 4. "
        "Plan it elsewhere, or accept fewer racks where it is said what moves." in text(page)
    )
    assert wizard.change.state == RequestState.DRAFT
    accepted = plan_explicit(wizard, demo, worse, accept_fewer_racks="on")
    assert (accepted.input["accept_fewer_racks"], accepted.options["may_lose_racks"]) == (True, True)
    assert accepted.artifact_id == refused.artifact_id
    assert accepted.digest != refused.digest, "the acceptance is part of what is approved"
    proposed = wizard.submits("Move it", "Broker 3 fails.")
    assert proposed.state == RequestState.PROPOSED
    (racks,) = [check for check in proposed.checks if check["code"] == "rack_spread"]
    assert (racks["result"], racks["title"]) == ("passed", "Rack spread gets worse only as accepted")
    page = text(wizard.client.get(f"/changes/{proposed.pk}/").content.decode())
    assert "Partitions may end in fewer racks: that was accepted." in page


def test_a_foreign_reassignment_on_a_row_keeps_it_from_being_planned(wizard: Wizard, demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo, topic="orders", topic_id="id-of-orders", partition=0)
    plan_explicit(wizard, demo, kafka_json(("orders", 0, [1, 2, 6])))
    assert problems_of(wizard) == [
        "Line 2: orders-0 is being reassigned already. Wait until that is done, or cancel it."
    ]


def test_many_problems_are_counted_and_paged(wizard: Wizard, demo: Cluster) -> None:
    plan_explicit(wizard, demo, kafka_json(*(("orders", n, [1, 2, 6]) for n in range(5, 455))))
    html = wizard.sees("plan")
    assert "450 things keep this from being planned." in text(html)
    assert html.count("<li>Line ") == 200
    last = wizard.client.get(f"{wizard.url('plan')}?page=3").content.decode()
    assert "401 to 450 of 450" in text(last)
    assert last.count("<li>Line ") == 50
    assert 'start="401"' in last
