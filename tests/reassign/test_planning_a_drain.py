"""A drain from a draft to a plan and a proposal: the job for real, with its real child process, on stored rows."""

from __future__ import annotations

import re

import pytest

from kafkadash.changes.kinds import kind_of
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.jobs.models import Job, JobState
from kafkadash.reassign.checks import plan_rows
from kafkadash.reassign.models import PlanReport
from tests.factories import GB, ReassignmentFactory
from tests.pages.conftest import Page
from tests.reassign.stored import RACKS, Wizard, problems_of, stored, text

pytestmark = pytest.mark.django_db


def test_a_drain_is_planned_shown_and_submitted(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    assert "Not planned yet." in text(wizard.sees("plan"))
    change = wizard.plans()
    assert change.job is not None
    assert (change.job.state, change.job.error) == (JobState.DONE, "")
    rows = plan_rows(str(change.artifact_id))
    assert {row.name for row in rows} == {"orders-0", "orders-1", "orders-2", "orders-4", "clicks-0"}
    assert all(3 not in row.target for row in rows)
    page = Page(wizard.sees("plan"))
    assert "5 moves, 15.0 GB. No plan that drains broker 3 under these limits moves less." in page.text
    assert "Checked against what was asked for" in page.text
    assert PlanReport.objects.get(request=change).topics.count() == 2
    change = wizard.submits("Drain broker 3", "Its disk is failing.")
    assert (change.state, change.why) == (RequestState.PROPOSED, "Its disk is failing.")
    assert wizard.client.get(wizard.url("what"))["location"] == f"/changes/{change.pk}/"


def test_leaving_in_the_middle_and_coming_back_loses_nothing(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits(throttle="33")
    wizard.plans()
    wizard.sends("why", {"title": "Empty 3", "why": "half a sentence", "then": "save"})
    assert wizard.change.state == RequestState.DRAFT
    kind = kind_of("reassignment")
    assert kind.edit_url(wizard.change) == wizard.url("why")
    html = wizard.sees("why")
    assert 'value="Empty 3"' in html
    assert "half a sentence</textarea>" in html
    assert 'value="33"' in wizard.sees("limits")
    assert 'value="3" checked' in wizard.sees("what")


def test_submitting_needs_a_reason_and_keeps_the_title_that_was_typed(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    answer = wizard.sends("why", {"title": "Another title", "why": "  "})
    assert "Say why this is needed: the approver decides by it" in text(answer.content.decode())
    assert 'value="Another title"' in answer.content.decode()
    assert wizard.change.state == RequestState.DRAFT


def test_another_throttle_needs_no_new_plan_and_another_broker_does(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    planned = wizard.plans()
    wizard.limits(throttle="70", not_after="2099-01-01T00:00")
    change = wizard.change
    assert change.artifact_id == planned.artifact_id
    assert change.digest != planned.digest
    assert Job.objects.count() == 1
    assert "70 MB/s" in text(wizard.sees("plan"))
    wizard.drains(4)
    change = wizard.change
    assert (change.artifact_id, change.digest, change.title) == (None, "", "Drain broker 4")
    assert "Not planned yet." in text(wizard.sees("plan"))


def test_another_disk_limit_makes_the_plan_void(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    wizard.limits(disk_limit="70")
    assert wizard.change.artifact_id is None


def test_another_choice_of_elections_makes_the_plan_void_as_its_report_tells_who_leads(
    wizard: Wizard, demo: Cluster
) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits(elect_leaders="on")
    wizard.plans()
    wizard.limits(elect_leaders="on", throttle="70")
    assert wizard.change.artifact_id is not None
    wizard.limits(elect_leaders="")
    assert wizard.change.artifact_id is None


def test_a_throttle_is_chosen_among_three_durations_and_may_widen_the_bounds(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    html = wizard.sees("plan")
    assert re.findall(r'name="rate" value="([\d.]+)"( checked)?', html) == [("30", ""), ("60", " checked"), ("90", "")]
    answer = wizard.sends("plan/throttle", {"rate": "90"})
    assert answer["location"] == f"{wizard.url('plan')}#duration"
    options = wizard.change.options
    assert (options["throttle"], options["throttle_min"], options["throttle_max"]) == (
        90_000_000,
        20_000_000,
        90_000_000,
    )
    assert wizard.change.artifact_id is not None


@pytest.mark.parametrize(
    ("topics", "racks", "brokers", "sentence"),
    [
        (
            {"orders": [[1, 2, 3]]},
            {1: "a", 2: "b", 3: "b"},
            [3],
            "orders has 3 replicas, and only 2 brokers would be left for them.",
        ),
        (
            {"orders": [[1, 2, 3]]},
            {1: "a", 2: "b", 3: "c", 4: "a"},
            [3],
            "Broker 3 is the last in rack c that may hold replicas: without it 1 partition would be in 2 racks instead",
        ),
    ],
)
def test_a_drain_that_cannot_be_met_says_why(
    wizard: Wizard, topics: dict[str, list[list[int]]], racks: dict[int, str], brokers: list[int], sentence: str
) -> None:
    wizard.begins(stored(topics=topics, racks=racks), "drain").drains(*brokers)
    wizard.limits()
    wizard.plans()
    [problem] = problems_of(wizard)
    assert problem.startswith(sentence)
    assert "One thing keeps this from being planned." in text(wizard.sees("plan"))


def test_the_last_broker_of_a_rack_is_drained_where_fewer_racks_are_accepted(wizard: Wizard) -> None:
    cluster = stored(topics={"orders": [[1, 2, 3]]}, racks={1: "a", 2: "b", 3: "c", 4: "a"})
    wizard.begins(cluster, "drain").drains(3, accept_fewer_racks="on")
    wizard.limits()
    assert wizard.plans().artifact_id is not None


def test_a_broker_that_holds_nothing_gives_an_empty_plan_that_says_so(wizard: Wizard) -> None:
    cluster = stored(topics={"orders": [[1, 2]]}, racks={1: "a", 2: "b", 3: "a"})
    wizard.begins(cluster, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    page = text(wizard.sees("plan"))
    assert "Empty plan" in page
    assert "Broker 3 holds no replicas; there is nothing to move." in page


def test_a_broker_that_went_while_the_draft_lay_there_gets_a_sentence(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain", brokers="77")
    wizard.limits()
    wizard.plans()
    assert problems_of(wizard) == [
        "There is no broker 77 in this cluster; there are 1, 2, 3, 4, 5 and 6. Name brokers of the cluster only."
    ]


def test_disks_that_would_overflow_keep_a_drain_from_being_planned(wizard: Wizard) -> None:
    cluster = stored(topics={"orders": [[1, 2, 3]]}, racks={1: "a", 2: "b", 3: "c", 6: "c"}, usable=401 * GB)
    wizard.begins(cluster, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    [problem] = problems_of(wizard)
    assert problem.startswith("Broker 6 would come to 80.1 % of its disk: 1.6 TB in use and 3.0 GB more, of 2.0 TB.")
    assert "The limit is 80 %, which leaves room for 1.0 GB. Make room on it" in problem


def test_partitions_that_somebody_else_moves_keep_a_drain_from_being_planned(wizard: Wizard, demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo, topic="orders", topic_id="id-of-orders", partition=0)
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    assert problems_of(wizard) == ["orders-0 is being reassigned already. Wait until that is done, or cancel it."]


def test_mixed_racks_are_planned_with_the_override_only(wizard: Wizard) -> None:
    cluster = stored(racks={**RACKS, 2: None})
    wizard.begins(cluster, "drain", brokers="3")
    wizard.limits()
    wizard.plans()
    assert "Broker 2 names no rack while others do" in problems_of(wizard)[0]
    wizard.drains(3, ignore_racks="on")
    assert wizard.plans().artifact_id is not None
