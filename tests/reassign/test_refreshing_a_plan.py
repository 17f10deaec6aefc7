"""A stale request gets a new plan."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape

import pytest
from django.utils import timezone

from kafkadash.accounts.models import User
from kafkadash.changes import drafting, services
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.recheck import recheck
from kafkadash.clusters.models import Cluster, Role
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.run import attempt
from kafkadash.observe.models import BrokerState, TopicState
from kafkadash.reassign.checks import plan_rows
from kafkadash.reassign.models import PlanTopic
from tests.reassign.stored import Wizard, kafka_json, plan_explicit, text

pytestmark = pytest.mark.django_db


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
    wizard.submits("By hand", "As agreed.")
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
    wizard.number = drafting.copy(change, operator).pk
    assert given in unescape(wizard.sees("what"))
    assert wizard.plans().artifact_id == change.artifact_id, "the same rows have the same name"
