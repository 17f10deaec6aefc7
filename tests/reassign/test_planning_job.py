"""The job that makes plans: what it waits for, what ends it, what it never stores."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.test import Client
from django.utils import timezone

from kafkadash.accounts.models import User
from kafkadash.changes import drafting
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.clusters.models import Cluster, Role
from kafkadash.domain.messages import message_text
from kafkadash.jobs import kinds
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.run import attempt
from kafkadash.reassign import plan_process, plan_work
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import PlanReport
from tests.factories import silent
from tests.reassign.stored import Wizard, problems_of, text

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
    assert re.search(r"What is known about topics and brokers of demo is 12 min( \d+ s)? old", job.error)
    assert "It could not be planned." in text(wizard.sees("plan"))
    demo.collector_runs.update(succeeded_at=None)
    job = wizard.plans().job
    assert job is not None
    assert "The topics and brokers of demo have not been read yet" in job.error


def test_a_plan_that_takes_too_long_is_given_up_and_the_draft_stays(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    before = wizard.change.input, wizard.change.options
    kind = kinds.kind_of("reassign.plan")
    with mock.patch.dict(kinds._kinds, {kind.name: replace(kind, deadline_s=0.0)}):
        wizard.plans()
    page = text(wizard.sees("plan"))
    assert "It could not be planned. Planning this takes longer than 0 s, the limit for one plan. Split it" in page
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
    with mock.patch("kafkadash.reassign.plan_work.sleep", side_effect=refreshed) as slept:
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

    def edited_meanwhile(*args: object) -> plan_process.Outcome:
        outcome = original(*args)  # type: ignore[arg-type]
        change = wizard.change
        drafting.edit_draft(change, operator, change.version, title="Another title")
        return outcome

    with mock.patch.object(plan_work, "make_plan", edited_meanwhile):
        attempt(planning.pk)
    planning.refresh_from_db()
    assert planning.state == JobState.FAILED
    assert planning.error == message_text(ChangeErrorCode.EDITED_WHILE_PLANNED, number=wizard.number, who="olga")
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


def test_planning_is_stopped_by_who_began_it_or_an_administrator(
    wizard: Wizard, demo: Cluster, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    other, chief = make_user("otto", Role.OPERATOR), make_user("carl", Role.OPERATOR)
    chief.cluster_roles.create(role=Role.ADMIN, cluster=demo)
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.sends("plan")
    where = wizard.url("plan/stop")
    assert ">Stop<" not in client_of(other).get(wizard.url("plan")).content.decode()
    assert client_of(other).post(where).status_code == 403
    assert Job.objects.get().state == JobState.QUEUED
    assert ">Stop<" in client_of(chief).get(wizard.url("plan")).content.decode()
    assert client_of(chief).post(where).status_code == 302
    assert Job.objects.get().state == JobState.CANCELLED


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
    assert problems_of(wizard) == [
        message_text(
            ReassignmentErrorCode.CHECKER_DISAGREES, rule="distinct brokers", problem="orders-0 is twice on broker 1."
        )
    ]
