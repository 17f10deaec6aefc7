"""From a draft to a plan and a proposal: the job for real, with its real child process, on stored rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any
from unittest import mock

import pytest
from django.test import Client
from django.utils import timezone

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.kinds import kind_of
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.recheck import recheck
from kafkadash.clusters.models import Cluster, Role
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.run import attempt
from kafkadash.observe.models import BrokerState, TopicState
from kafkadash.reassign import plan_process, plan_work
from kafkadash.reassign.checks import plan_rows
from kafkadash.reassign.models import PlanReport, PlanTopic
from tests.factories import GB, ReassignmentFactory, silent
from tests.pages.conftest import Page
from tests.reassign.stored import RACKS, Wizard, kafka_json, stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def demo() -> Cluster:
    return stored()


@pytest.fixture
def wizard(operator: User, client_of: Callable[[User], Client]) -> Wizard:
    return Wizard(client_of(operator))


def text(html: str) -> str:
    return Page(html).text


def problems_of(wizard: Wizard) -> list[str]:
    """As the page lists them, and the job's row."""
    html = wizard.sees("plan")
    listed = re.search(r'<ol class="panel-body problem-list".*?</ol>', html, re.DOTALL)
    found = re.findall(r"<li>(.*?)</li>", listed[0]) if listed else []
    assert wizard.change.artifact is None
    return [unescape(one) for one in found]


# -- a drain --------------------------------------------------------------------------------------------------------


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
    assert "5 moves, 15.0 GB. Broker 3 holds this much: no plan that drains it moves less." in page.text
    assert "Checked against what was asked for" in page.text
    assert PlanReport.objects.get(request=change).topics.count() == 2
    wizard.sends("why", {"title": "Drain broker 3", "why": "Its disk is failing."})
    change = wizard.change
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
        ({"orders": [[1, 2]]}, {1: "a", 2: "b", 3: "a"}, [3], "Broker 3 holds no replicas; there is nothing to move."),
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


def test_a_broker_that_went_while_the_draft_lay_there_gets_a_sentence(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain", brokers="77")
    wizard.limits()
    wizard.plans()
    assert problems_of(wizard) == ["There is no broker 77 in this cluster; there are 1, 2, 3, 4, 5 and 6."]


def test_disks_that_would_overflow_keep_a_drain_from_being_planned(wizard: Wizard) -> None:
    cluster = stored(topics={"orders": [[1, 2, 3]]}, racks={1: "a", 2: "b", 3: "c", 6: "c"}, usable=401 * GB)
    wizard.begins(cluster, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    [problem] = problems_of(wizard)
    assert problem.startswith("Broker 6 would come to 80.1 % of its disk: 1.6 TB in use and 3.0 GB more, of 2.0 TB.")
    assert problem.endswith("The limit is 80 %, which leaves room for 1.0 GB.")


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


# -- an explicit assignment -----------------------------------------------------------------------------------------


def plan_explicit(wizard: Wizard, cluster: Cluster, json_text: str, **flags: str) -> ChangeRequest:
    wizard.begins(cluster, "explicit").sends("what", {"text": json_text, **flags})
    wizard.limits()
    return wizard.plans()


def test_an_explicit_assignment_is_planned_exactly_as_given(wizard: Wizard, demo: Cluster) -> None:
    change = plan_explicit(wizard, demo, kafka_json(("orders", 0, [6, 1, 2]), ("clicks", 1, [1, 2])))
    assert [(row.name, row.current, row.target) for row in plan_rows(str(change.artifact_id))] == [
        ("orders-0", (1, 2, 3), (6, 1, 2))
    ]
    words = text(wizard.sees("plan"))
    assert "1 move, 3.0 GB. Exactly as given." in words
    assert "1 partition of the file is as asked already and is left out." in words


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("not json", "Line 1, column 1: This is not JSON: a value is missing here."),
        ('{"version":1,"partitions":[', "This is not JSON"),
        (kafka_json(("orders", 0, [1, 2, 6]), version=2), 'Line 1: "version" is 2; Kafka knows version 1 only.'),
        (
            kafka_json(("orders", 0, [1, 2, 6]), ("orders", 0, [1, 2, 5])),
            "Line 3: orders-0 stands here again; it is on line 2 already.",
        ),
        (kafka_json(("orders", 0, [1, 2, 2])), "Line 2: orders-0 names broker 2 twice in its replicas."),
        (kafka_json(("nowhere", 0, [1, 2])), "Line 2: There is no topic nowhere in this cluster."),
        (kafka_json(("orders", 99, [1, 2, 6])), "Line 2: There is no partition orders-99: orders has 5 partitions"),
        (kafka_json(("orders", 0, [1, 2, 9])), "Line 2: There is no broker 9 in this cluster."),
        (
            kafka_json(("orders", 0, [1, 2])),
            "Line 2: orders-0 has 3 replicas and would have 2. If that is meant, allow",
        ),
        (kafka_json(("<script>", 0, [1, 2])), 'Line 2: "topic" is "<script>", which no topic can be called.'),
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


# -- the job --------------------------------------------------------------------------------------------------------


def test_a_plan_is_not_made_from_facts_that_are_old_or_were_never_read(
    wizard: Wizard, demo: Cluster, settings: Any
) -> None:
    settings.PLAN_WAIT = 0
    silent(demo, timezone.now() - timedelta(minutes=12))
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    job = wizard.plans().job
    assert job is not None
    assert job.state == JobState.FAILED
    assert re.search(r"What is known about topics and brokers of demo is 12 min( \d+ s)? old", job.error)
    assert "It could not be planned." in text(wizard.sees("plan"))
    demo.collector_runs.update(succeeded_at=None)
    job = wizard.plans().job
    assert job is not None
    assert "The topics and brokers of demo have not been read yet" in job.error


def test_a_refresh_that_is_a_little_late_is_waited_for(wizard: Wizard, demo: Cluster) -> None:
    before = list(demo.collector_runs.values_list("pk", "succeeded_at"))
    silent(demo, timezone.now() - timedelta(minutes=12))

    def refreshed(seconds: float) -> None:
        for pk, succeeded_at in before:
            demo.collector_runs.filter(pk=pk).update(succeeded_at=succeeded_at)

    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    with mock.patch("kafkadash.reassign.plan_work.time.sleep", side_effect=refreshed) as slept:
        job = wizard.plans().job
    assert job is not None
    assert job.state == JobState.DONE
    assert slept.mock_calls.count(mock.call(plan_work._LOOK_S)) == 1


def test_an_edit_while_it_is_planned_wins_and_the_plan_is_dropped(
    wizard: Wizard, operator: User, demo: Cluster
) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.sends("plan")
    planning = wizard.change.job
    assert planning is not None
    original = plan_process.make_plan

    def edited_meanwhile(*args: object) -> plan_process.Outcome:
        outcome = original(*args)  # type: ignore[arg-type]
        change = wizard.change
        services.edit_draft(change, operator, change.version, title="Another title")
        return outcome

    with mock.patch.object(plan_work, "make_plan", edited_meanwhile):
        attempt(planning.pk)
    planning.refresh_from_db()
    assert planning.state == JobState.FAILED
    assert planning.error == f"#{wizard.number} was edited by olga while it was planned, so the plan was dropped."
    assert wizard.change.artifact_id is None
    assert not PlanReport.objects.exists()


def test_editing_what_is_asked_for_stops_the_planning_of_what_was(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.sends("plan")
    planning = wizard.change.job
    assert planning is not None
    wizard.drains(4)
    planning.refresh_from_db()
    assert planning.state == JobState.CANCELLED


def test_two_clicks_plan_once(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.sends("plan")
    wizard.sends("plan")
    assert Job.objects.count() == 1


def test_the_page_says_how_far_planning_is_and_is_sent_on_when_it_has_ended(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.sends("plan")
    html = wizard.sees("plan")
    assert "Waiting for a worker" in text(html)
    assert "hx-trigger" in html
    Job.objects.update(state=JobState.RUNNING, progress=0.42, progress_note="placing replicas")
    part = wizard.client.get(wizard.url("plan"), headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith("<section")
    assert f"Planning #{wizard.number}: placing replicas" in part
    assert 'aria-valuenow="42"' in part
    Job.objects.update(state=JobState.QUEUED, progress=None)
    job = wizard.change.job
    assert job is not None
    attempt(job.pk)
    ended = wizard.client.get(wizard.url("plan"), headers={"HX-Request": "true"})
    assert ended["HX-Redirect"] == wizard.url("plan")


def test_planning_can_be_stopped_and_what_was_asked_for_stays(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.sends("plan")
    assert wizard.sends("plan/stop").status_code == 302
    assert "Planning was stopped." in text(wizard.sees("plan"))
    assert wizard.change.input["brokers"] == [3]


def test_a_plan_that_the_checker_refutes_is_not_stored(wizard: Wizard, demo: Cluster) -> None:
    original = plan_process.make_plan

    def refuted(*args: object) -> plan_process.Outcome:
        outcome = original(*args)  # type: ignore[arg-type]
        rules = [["distinct brokers", False, "4 of 5", ["orders-0 is twice on broker 1."]]]
        return plan_process.Outcome({**outcome.result, "rules": rules}, outcome.artifact)

    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    with mock.patch.object(plan_work, "make_plan", refuted):
        wizard.plans()
    assert problems_of(wizard) == ["The plan does not keep the rule “distinct brokers”: orders-0 is twice on broker 1."]


# -- a stale request ------------------------------------------------------------------------------------------------


@pytest.fixture
def stale(wizard: Wizard, demo: Cluster) -> ChangeRequest:
    """Proposed, and then one of its partitions was changed by somebody else."""
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    wizard.sends("why", {"title": "Drain broker 3", "why": "Its disk is failing."})
    topic = TopicState.objects.get(cluster=demo, name="clicks")
    topic.partitions[0][3] = [3, 6]
    topic.partitions[0][4] = [3, 6]
    topic.shape = "1" * 32
    topic.save()
    recheck(demo.pk, timezone.now())
    change = wizard.change
    assert change.state == RequestState.STALE
    return change


def test_a_refresh_plans_a_drain_anew_from_its_input_and_proposes_it_again(
    stale: ChangeRequest, wizard: Wizard, make_user: Callable[..., User]
) -> None:
    before = stale.digest
    otto = make_user("otto", Role.OPERATOR)
    services.start_refresh(stale, otto)
    job = wizard.change.job
    assert job is not None
    assert job.input["purpose"] == "refresh"
    attempt(job.pk)
    change = wizard.change
    assert (change.state, change.round) == (RequestState.PROPOSED, 2)
    assert change.digest != before
    assert otto.pk in change.hands
    rows = {row.name: row.current for row in plan_rows(str(change.artifact_id))}
    assert rows["clicks-0"] == (3, 6)
    assert PlanTopic.objects.get(report__request=change, topic="clicks").summary["moved"] == 1


def test_a_refresh_that_is_under_way_is_no_plan_of_the_draft_it_is_taken_back_to(
    stale: ChangeRequest, wizard: Wizard, operator: User
) -> None:
    services.start_refresh(stale, operator)
    refresh = wizard.change.job
    services.edit(stale, operator)
    planned = wizard.plans()
    assert planned.job is not None
    assert refresh is not None
    assert planned.job.pk != refresh.pk
    assert (planned.job.state, planned.job.input["purpose"]) == (JobState.DONE, "plan")
    assert Job.objects.get(pk=refresh.pk).state == JobState.CANCELLED


def test_a_refresh_that_cannot_be_planned_leaves_the_request_stale_with_the_sentence(
    stale: ChangeRequest, wizard: Wizard, operator: User
) -> None:
    BrokerState.objects.exclude(broker_id__in=[3, 4]).update(fenced=True)
    services.start_refresh(stale, operator)
    review = f"/changes/{stale.pk}/"
    assert "A new plan is being made." in text(wizard.client.get(review).content.decode())
    job = wizard.change.job
    assert job is not None
    attempt(job.pk)
    change = wizard.change
    assert change.state == RequestState.STALE
    assert change.job is not None
    assert change.job.result is not None
    sentences = [problem["sentence"] for problem in change.job.result["problems"]]
    assert any("orders has 3 replicas, and only" in sentence for sentence in sentences)
    words = text(wizard.client.get(review).content.decode())
    assert f"No new plan could be made: {' '.join(sentences)}" in words


def test_a_refresh_of_an_explicit_assignment_keeps_its_targets_and_reads_the_replicas_anew(
    wizard: Wizard, operator: User, demo: Cluster
) -> None:
    plan_explicit(wizard, demo, kafka_json(("orders", 0, [6, 1, 2])))
    wizard.sends("why", {"title": "By hand", "why": "As agreed."})
    topic = TopicState.objects.get(cluster=demo, name="orders")
    topic.partitions[0][3:5] = [[1, 2, 5], [1, 2, 5]]
    topic.shape = "1" * 32
    topic.save()
    recheck(demo.pk, timezone.now())
    services.start_refresh(wizard.change, operator)
    job = wizard.change.job
    assert job is not None
    attempt(job.pk)
    change = wizard.change
    assert change.state == RequestState.PROPOSED
    assert [(row.current, row.target) for row in plan_rows(str(change.artifact_id))] == [((1, 2, 5), (6, 1, 2))]


def test_a_copy_of_an_explicit_assignment_has_its_json(wizard: Wizard, operator: User, demo: Cluster) -> None:
    given = kafka_json(("orders", 0, [6, 1, 2]))
    change = plan_explicit(wizard, demo, given)
    wizard.number = services.copy(change, operator).pk
    assert given in unescape(wizard.sees("what"))
    assert wizard.plans().artifact_id == change.artifact_id, "the same rows have the same name"
