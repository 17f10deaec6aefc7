"""The job that makes plans: what it waits for, what ends it, what it never stores.

A drain from a draft to a plan and a proposal: the job for real, with its real child process, on stored rows.

Kafka's JSON from a draft to a plan: the job for real, with its real child process, on stored rows.

A stale request gets a new plan.

Errors of a file have the same code on the page of the plan, in the command, in its JSON and in the stored job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from html import unescape
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.test import Client
from django.utils import timezone

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes import services as drafting
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.kinds import kind_of
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import PlanErrorCode
from kafkadash.changes.recheck import recheck
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import CodedMessage, coded, message_json, message_text
from kafkadash.core.problems import InputProblem
from kafkadash.jobs import runner as kinds
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import attempt_job
from kafkadash.monitoring.models import BrokerState, TopicState
from kafkadash.planning import job as plan_process
from kafkadash.planning import job as plan_work
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.forms import SHOWN_PROBLEMS
from kafkadash.planning.models import PlanReport, PlanTopic, Upload
from kafkadash.planning.problem_codes import CheckedRule, CheckErrorCode, CheckTitle, FileErrorCode, RuleCode
from kafkadash.planning.stored_checks import plan_rows
from kafkadash.planning.stored_topology import load_topology
from kafkadash.planning.topology import write_topology
from tests.factories import GB, ReassignmentFactory, silent
from tests.pages.conftest import Page
from tests.planning.stored import RACKS, Wizard, kafka_json, plan_explicit, plan_unchecked, problems_of, stored, text
from tests.planning.test_planning_commands import Desk
from tests.stored_messages import each_of_other_versions

pytestmark = pytest.mark.django_db


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
    assert job.error_code == ChangeErrorCode.FACTS_TOO_OLD
    assert "Planning failed" in text(wizard.sees("plan"))
    demo.collector_runs.update(succeeded_at=None)
    job = wizard.plans().job
    assert job is not None
    assert job.error_code == ChangeErrorCode.FACTS_NOT_READ


def test_a_plan_that_takes_too_long_is_given_up_and_the_draft_stays(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    before = wizard.change.input, wizard.change.options
    kind = kinds.kind_of("reassign.plan")
    with mock.patch.dict(kinds._kinds, {kind.name: replace(kind, deadline_s=0.0)}):
        wizard.plans()
    page = text(wizard.sees("plan"))
    assert "Planning failed Planning takes longer than 0 s, the limit for one plan. Split" in page
    assert (wizard.change.input, wizard.change.options) == before
    assert wizard.plans().artifact_id is not None


def test_a_refresh_that_is_a_little_late_is_waited_for(wizard: Wizard, demo: Cluster) -> None:
    before = list(demo.collector_runs.values_list("pk", "succeeded_at"))
    silent(demo, timezone.now() - timedelta(minutes=12))

    def refreshed(seconds: float) -> None:
        for pk, succeeded_at in before:
            demo.collector_runs.filter(pk=pk).update(succeeded_at=succeeded_at)

    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    # Its own name only: any thread that slept meanwhile would write, by a connection that nobody gives back.
    with mock.patch("kafkadash.planning.job.sleep", side_effect=refreshed) as slept:
        job = wizard.plans().job
    assert job is not None
    assert job.state == JobState.DONE
    slept.assert_called_once_with(plan_work._LOOK_S)


def test_an_edit_while_it_is_planned_wins_and_the_plan_is_dropped(
    wizard: Wizard, operator: User, demo: Cluster
) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.sends("plan")
    planning = wizard.change.job
    assert planning is not None
    original = plan_process.make_plan

    def edited_meanwhile(*args: object) -> plan_process.PlanOutcome:
        outcome = original(*args)  # type: ignore[arg-type]
        change = wizard.change
        drafting.edit_draft(change, operator, change.version, title="Another title")
        return outcome

    with mock.patch.object(plan_work, "make_plan", edited_meanwhile):
        attempt_job(planning.pk)
    planning.refresh_from_db()
    assert planning.state == JobState.FAILED
    assert planning.error == coded(ChangeErrorCode.EDITED_WHILE_PLANNED, number=wizard.number, who="olga")
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


def test_a_version_in_digits_that_are_no_number_means_the_draft_as_it_is(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    answer = wizard.client.post(wizard.url("plan"), {"version": "²"})
    assert (answer.status_code, Job.objects.count()) == (302, 1)


@each_of_other_versions
def test_a_failure_of_another_version_is_shown_as_stored(
    wizard: Wizard, demo: Cluster, code: str, params: dict[str, Any]
) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.sends("plan")
    Job.objects.update(state=JobState.FAILED, error_code=code, error_params=params)
    assert code in text(wizard.sees("plan"))


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
    attempt_job(job.pk)
    ended = wizard.client.get(wizard.url("plan"), headers={"HX-Request": "true"})
    assert ended["HX-Redirect"] == wizard.url("plan")


def test_planning_can_be_stopped_and_what_was_asked_for_stays(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.sends("plan")
    assert wizard.sends("plan/stop").status_code == 302
    assert "Planning stopped" in text(wizard.sees("plan"))
    assert wizard.change.input["brokers"] == [3]


def test_planning_is_stopped_by_who_began_it_or_an_administrator(
    wizard: Wizard, demo: Cluster, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    other, chief = make_user("otto", Role.OPERATOR), make_user("carl", Role.OPERATOR)
    chief.cluster_roles.create(role=Role.ADMIN, cluster=demo)
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.sends("plan")
    where = wizard.url("plan/stop")
    assert ">Stop planning<" not in client_of(other).get(wizard.url("plan")).content.decode()
    assert client_of(other).post(where).status_code == 403
    assert Job.objects.get().state == JobState.QUEUED
    assert ">Stop planning<" in client_of(chief).get(wizard.url("plan")).content.decode()
    assert client_of(chief).post(where).status_code == 302
    assert Job.objects.get().state == JobState.CANCELLED


def test_a_plan_that_the_checker_refutes_is_not_stored(wizard: Wizard, demo: Cluster) -> None:
    original = plan_process.make_plan
    twice = coded(CheckErrorCode.ROW_TWICE_ON_ONE, row="orders-0", brokers=(1, 1))
    broken = CheckedRule(RuleCode.DISTINCT_BROKERS, passed=False, figure="4 of 5", problems=(twice,))

    def refuted(*args: object) -> plan_process.PlanOutcome:
        outcome = original(*args)  # type: ignore[arg-type]
        return plan_process.PlanOutcome({**outcome.result, "rules": [pack_dataclass(broken)]}, outcome.artifact)

    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    with mock.patch.object(plan_work, "make_plan", refuted):
        wizard.plans()
    assert problems_of(wizard) == [
        InputProblem(
            coded(ReassignmentErrorCode.CHECKER_DISAGREES, rule=coded(RuleCode.DISTINCT_BROKERS), problem=twice)
        )
    ]


def test_a_drain_is_planned_shown_and_submitted(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    assert "Waiting for a worker" in text(wizard.sees("plan"))
    change = wizard.plans()
    assert change.job is not None
    assert (change.job.state, change.job.error) == (JobState.DONE, None)
    rows = plan_rows(str(change.artifact_id))
    assert {row.name for row in rows} == {"orders-0", "orders-1", "orders-2", "orders-4", "clicks-0"}
    assert all(3 not in row.target for row in rows)
    page = Page(wizard.sees("plan"))
    assert "5 moves, 15.0 GB. No plan that drains broker 3 under these limits moves less." in page.text
    assert "Independent verification" in page.text
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
    assert "Enter a reason: approvers need it" in text(answer.content.decode())
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
    assert wizard.client.get(wizard.url("plan"))["location"] == wizard.url("limits")


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
    ("topics", "racks", "brokers", "problem"),
    [
        (
            {"orders": [[1, 2, 3]]},
            {1: "a", 2: "b", 3: "b"},
            [3],
            coded(PlanErrorCode.TOO_FEW_BROKERS, topic="orders", replicas=3, brokers=2),
        ),
        (
            {"orders": [[1, 2, 3]]},
            {1: "a", 2: "b", 3: "c", 4: "a"},
            [3],
            coded(PlanErrorCode.LAST_OF_A_RACK, brokers=(3,), racks=("c",), fewer=((1, 2, 3),)),
        ),
    ],
)
def test_a_drain_that_cannot_be_met_says_why(
    wizard: Wizard, topics: dict[str, list[list[int]]], racks: dict[int, str], brokers: list[int], problem: CodedMessage
) -> None:
    wizard.begins(stored(topics=topics, racks=racks), "drain").drains(*brokers)
    wizard.limits()
    wizard.plans()
    assert problems_of(wizard) == [InputProblem(problem)]
    assert "No plan: 1 problem" in text(wizard.sees("plan"))


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
    assert message_text(PlanErrorCode.NOTHING_TO_DRAIN, brokers=(3,)) in page


def test_a_broker_that_went_while_the_draft_lay_there_is_told(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain", brokers="77")
    wizard.limits()
    wizard.plans()
    unknown = coded(PlanErrorCode.BROKERS_UNKNOWN, brokers=(77,), known=(1, 2, 3, 4, 5, 6))
    assert problems_of(wizard) == [InputProblem(unknown)]


def test_disks_that_would_overflow_keep_a_drain_from_being_planned(wizard: Wizard) -> None:
    cluster = stored(topics={"orders": [[1, 2, 3]]}, racks={1: "a", 2: "b", 3: "c", 6: "c"}, usable=401 * GB)
    wizard.begins(cluster, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    [problem] = problems_of(wizard)
    params = problem.message.params
    assert (problem.code, params["broker"], params["room"]) == (PlanErrorCode.DISK_LIMIT, 6, GB)


def test_partitions_that_somebody_else_moves_keep_a_drain_from_being_planned(wizard: Wizard, demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo, topic="orders", topic_id="id-of-orders", partition=0)
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    assert problems_of(wizard) == [InputProblem(coded(PlanErrorCode.MOVES_ALREADY, row="orders-0"))]


def test_mixed_racks_are_planned_with_the_override_only(wizard: Wizard) -> None:
    cluster = stored(racks={**RACKS, 2: None})
    wizard.begins(cluster, "drain", brokers="3")
    wizard.limits()
    wizard.plans()
    assert problems_of(wizard) == [InputProblem(coded(PlanErrorCode.RACKS_MIXED, brokers=(2,)))]
    wizard.drains(3, ignore_racks="on")
    assert wizard.plans().artifact_id is not None


def test_an_explicit_assignment_is_planned_exactly_as_given(wizard: Wizard, demo: Cluster) -> None:
    change = plan_explicit(wizard, demo, kafka_json(("orders", 0, [6, 1, 2]), ("clicks", 1, [1, 2])))
    assert [(row.name, row.current, row.target) for row in plan_rows(str(change.artifact_id))] == [
        ("orders-0", (1, 2, 3), (6, 1, 2))
    ]
    words = text(wizard.sees("plan"))
    assert "1 move, 3.0 GB." in words
    assert message_text(PlanErrorCode.SOME_AS_ASKED, partitions=1) in words


@pytest.mark.parametrize(
    ("given", "code", "line"),
    [
        ("not json", FileErrorCode.NOT_JSON, 1),
        (kafka_json(("orders", 0, [1, 2, 6]), version=2), FileErrorCode.OTHER_VERSION, 1),
        (kafka_json(("orders", 0, [1, 2, 6]), ("orders", 0, [1, 2, 5])), FileErrorCode.STANDS_TWICE, 3),
        (kafka_json(("orders", 0, [1, 2, 2])), FileErrorCode.REPLICA_TWICE, 2),
        (kafka_json(("nowhere", 0, [1, 2])), PlanErrorCode.TOPIC_UNKNOWN, 2),
        (kafka_json(("orders", 99, [1, 2, 6])), PlanErrorCode.PARTITION_UNKNOWN, 2),
        (kafka_json(("orders", 0, [1, 2, 9])), PlanErrorCode.BROKER_UNKNOWN, 2),
        (kafka_json(("orders", 0, [1, 2])), PlanErrorCode.OTHER_FACTOR, 2),
        (kafka_json(("<script>", 0, [1, 2])), FileErrorCode.NO_NAME_OF_A_TOPIC, 2),
    ],
)
def test_explicit_json__with_a_problem__is_refused_in_the_first_step_as_by_planning(
    wizard: Wizard, demo: Cluster, given: str, code: FileErrorCode | PlanErrorCode, line: int
) -> None:
    html = wizard.begins(demo, "explicit").sends("what", {"text": given}).content.decode()
    page = Page(html)
    assert page.texts("#text-error .error-code") == [code]
    assert f"Line {line}" in page.words("text-error")
    assert given in unescape(html)
    assert "<script>&" not in html
    assert '"<script>"' not in html
    assert not Upload.objects.exists()
    plan_unchecked(wizard, demo, given)
    assert [(problem.code, problem.line) for problem in problems_of(wizard)] == [(code, line)]
    assert given in unescape(wizard.sees("what"))


def test_explicit_json__with_many_problems__shows_the_first_and_counts_the_others(
    wizard: Wizard, demo: Cluster
) -> None:
    given = kafka_json(*(("orders", n, [1, 2, 6]) for n in range(5, 45)))
    page = Page(wizard.begins(demo, "explicit").sends("what", {"text": given}).content.decode())
    unknown = [PlanErrorCode.PARTITION_UNKNOWN] * SHOWN_PROBLEMS
    assert page.texts("#text-error .error-code") == [*unknown, ReassignmentErrorCode.MORE_PROBLEMS]


def test_explicit_json__while_facts_are_old__is_checked_for_itself_only(wizard: Wizard, demo: Cluster) -> None:
    silent(demo, timezone.now() - timedelta(minutes=12))
    wizard.begins(demo, "explicit")
    assert wizard.sends("what", {"text": kafka_json(("nowhere", 0, [1, 2]))}).status_code == 302
    assert wizard.sends("what", {"text": "not json"}).status_code == 200


def test_fewer_replicas_are_planned_where_the_flag_allows_it(wizard: Wizard, demo: Cluster) -> None:
    change = plan_explicit(wizard, demo, kafka_json(("orders", 0, [1, 2])), change_rf="on")
    assert change.artifact_id is not None
    assert change.options["change_rf"] is True


def test_fewer_racks_are_proposed_only_where_they_are_accepted(wizard: Wizard, demo: Cluster) -> None:
    worse = kafka_json(("orders", 0, [1, 2, 4]))
    refused = plan_explicit(wizard, demo, worse)
    assert refused.artifact_id is not None
    page = wizard.sends("why", {"title": "Move it", "why": "Broker 3 fails."}).content.decode()
    spread = coded(CheckErrorCode.SPREAD_WORSE, row="orders-0", replicas=(1, 2, 4))
    assert message_text(ChangeErrorCode.PLAN_NEVER_STARTS, first=spread, total=1, others=0) in text(page)
    assert wizard.change.state == RequestState.DRAFT
    accepted = plan_explicit(wizard, demo, worse, accept_fewer_racks="on")
    assert (accepted.input["accept_fewer_racks"], accepted.options["may_lose_racks"]) == (True, True)
    assert accepted.artifact_id == refused.artifact_id
    assert accepted.digest != refused.digest, "the acceptance is part of what is approved"
    proposed = wizard.submits("Move it", "Broker 3 fails.")
    assert proposed.state == RequestState.PROPOSED
    (racks,) = [check for check in proposed.checks if check["code"] == "rack_spread"]
    assert (racks["result"], racks["title"]["code"]) == ("passed", CheckTitle.SPREAD_AS_ACCEPTED)
    page = text(wizard.client.get(f"/changes/{proposed.pk}/").content.decode())
    assert "Accepted: partitions may end in fewer racks." in page


def test_a_foreign_reassignment_on_a_row_keeps_it_from_being_planned(wizard: Wizard, demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo, topic="orders", topic_id="id-of-orders", partition=0)
    plan_unchecked(wizard, demo, kafka_json(("orders", 0, [1, 2, 6])))
    assert problems_of(wizard) == [InputProblem(coded(PlanErrorCode.MOVES_ALREADY, row="orders-0"), 2)]


def test_many_problems_are_counted_and_paged(wizard: Wizard, demo: Cluster) -> None:
    plan_unchecked(wizard, demo, kafka_json(*(("orders", n, [1, 2, 6]) for n in range(5, 455))))
    html = wizard.sees("plan")
    assert "No plan: 450 problems" in text(html)
    assert html.count("<li>Line ") == 200
    last = wizard.client.get(f"{wizard.url('plan')}?page=3").content.decode()
    assert "401 to 450 of 450" in text(last)
    assert last.count("<li>Line ") == 50
    assert 'start="401"' in last


@pytest.fixture
def stale(wizard: Wizard, demo: Cluster) -> ChangeRequest:
    """Proposed, and then one of its partitions was changed by somebody else."""
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    wizard.submits("Drain broker 3", "Its disk is failing.")
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
    attempt_job(job.pk)
    change = wizard.change
    assert (change.state, change.round) == (RequestState.PROPOSED, 2)
    assert change.digest != before
    assert otto.pk in change.contributor_ids
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


def test_a_refresh_that_cannot_be_planned_leaves_the_request_stale_with_the_problems(
    stale: ChangeRequest, wizard: Wizard, operator: User
) -> None:
    BrokerState.objects.exclude(broker_id__in=[3, 4]).update(fenced=True)
    services.start_refresh(stale, operator)
    review = f"/changes/{stale.pk}/"
    assert wizard.client.get(review).context["replanning"].under_way
    job = wizard.change.job
    assert job is not None
    attempt_job(job.pk)
    change = wizard.change
    assert change.state == RequestState.STALE
    assert change.job is not None
    assert change.job.result is not None
    problems = [InputProblem.from_json(problem) for problem in change.job.result["problems"]]
    assert (PlanErrorCode.TOO_FEW_BROKERS, "orders") in [(p.code, p.message.params.get("topic")) for p in problems]
    page = wizard.client.get(review)
    assert not page.context["replanning"].under_way
    assert " ".join(map(str, problems)) in text(page.content.decode())


@each_of_other_versions
def test_a_failed_refresh_of_another_version_is_shown_as_stored(
    stale: ChangeRequest, wizard: Wizard, operator: User, code: str, params: dict[str, Any]
) -> None:
    services.start_refresh(stale, operator)
    Job.objects.update(state=JobState.FAILED, error_code=code, error_params=params)
    assert code in text(wizard.client.get(f"/changes/{stale.pk}/").content.decode())


def test_a_refresh_of_an_explicit_assignment_keeps_its_targets_and_reads_the_replicas_anew(
    wizard: Wizard, operator: User, demo: Cluster
) -> None:
    plan_explicit(wizard, demo, kafka_json(("orders", 0, [6, 1, 2])))
    wizard.submits("By hand", "As agreed.")
    topic = TopicState.objects.get(cluster=demo, name="orders")
    topic.partitions[0][3:5] = [[1, 2, 5], [1, 2, 5]]
    topic.shape = "1" * 32
    topic.save()
    recheck(demo.pk, timezone.now())
    services.start_refresh(wizard.change, operator)
    job = wizard.change.job
    assert job is not None
    attempt_job(job.pk)
    change = wizard.change
    assert change.state == RequestState.PROPOSED
    assert [(row.current, row.target) for row in plan_rows(str(change.artifact_id))] == [((1, 2, 5), (6, 1, 2))]


def test_a_copy_of_an_explicit_assignment_has_its_json(wizard: Wizard, operator: User, demo: Cluster) -> None:
    given = kafka_json(("orders", 0, [6, 1, 2]))
    change = plan_explicit(wizard, demo, given)
    wizard.number = drafting.copy(change, operator).pk
    assert given in unescape(wizard.sees("what"))
    assert wizard.plans().artifact_id == change.artifact_id, "the same rows have the same name"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("not json", FileErrorCode.NOT_JSON),
        ("[]", FileErrorCode.NO_OBJECT),
        ('{"topics":[]}', FileErrorCode.TOPICS_TO_MOVE),
        (kafka_json(("orders", 0, [1, 2, 6]), version=2), FileErrorCode.OTHER_VERSION),
        (kafka_json(("orders", 0, [1, 2, 6]), ("orders", 0, [1, 2, 5])), FileErrorCode.STANDS_TWICE),
        (kafka_json(("orders", 0, [1, 2, 2])), FileErrorCode.REPLICA_TWICE),
        (kafka_json(("orders", 0, [])), FileErrorCode.NO_REPLICAS),
        (kafka_json(("nowhere", 0, [1, 2])), PlanErrorCode.TOPIC_UNKNOWN),
        (kafka_json(("orders", 99, [1, 2, 6])), PlanErrorCode.PARTITION_UNKNOWN),
        (kafka_json(("orders", 0, [1, 2, 9])), PlanErrorCode.BROKER_UNKNOWN),
        (kafka_json(("orders", 0, [1, 2])), PlanErrorCode.OTHER_FACTOR),
    ],
)
def test_page_command_and_json_have_the_same_code(
    wizard: Wizard, demo: Cluster, tmp_path: Path, given: str, code: StrEnum
) -> None:
    plan_unchecked(wizard, demo, given)
    [stored] = problems_of(wizard)
    page = Page(wizard.sees("plan"))
    desk = Desk(tmp_path)
    desk.path("topology.json").write_bytes(write_topology(load_topology(demo).topology))
    desk.path("brought.json").write_text(given)
    brought = ("--plan", str(desk.path("brought.json")))
    exit_code, _, said = desk.plans("explicit", *brought)
    _, printed, _ = desk.plans("explicit", *brought, "--json")

    assert stored.code == code
    assert [each.text for each in page.find(".problem-list .error-code")] == [code]
    assert (exit_code, said) == (2, f"{stored} ({code})\n")
    assert json.loads(printed)["problems"] == [
        message_json(stored.message) | {"line": stored.line, "column": stored.column}
    ]
