"""The steps of an alteration: their order, that none begins early, and that all are approved or none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.recheck import recheck
from kafkadash.changes.state_machine import ChangeState
from kafkadash.changes.step_checks import run_checks
from kafkadash.changes.steps import SeenContent, approve_steps
from kafkadash.core.messages import coded
from kafkadash.execution.models import Execution
from kafkadash.execution.queue import in_front_of
from kafkadash.execution.worker import lease
from kafkadash.monitoring.models import TopicState
from kafkadash.short_runs import worker
from kafkadash.short_runs.models import ShortRun
from kafkadash.topics.errors import TopicErrorCode
from kafkadash.topics.growth import KIND as GROWTH
from kafkadash.topics.growth import plan_growth
from kafkadash.topics.reasons import TopicReasonCode
from tests.pages.conftest import Page
from tests.topic_alter.conftest import AlterWorld

pytestmark = pytest.mark.django_db
REASSIGN, CONFIGS = "reassignment", "config-edit"
TWO_STEPS = {"topics": "orders", "partitions": "7", "added": "retention.ms=60000"}


def seen(changes: list[ChangeRequest]) -> dict[int, SeenContent]:
    return {change.pk: SeenContent(change.digest, change.round) for change in changes}


def test_order__factor_grows__replicas_come_before_partitions_and_configs(world: AlterWorld) -> None:
    made = world.alter(topics="clicks", partitions="3", factor="3", added="min.insync.replicas=3")
    assert [(change.step, change.kind) for change in made] == [(1, REASSIGN), (2, GROWTH), (3, CONFIGS)]
    assert {change.first_step_id for change in made} == {made[0].pk}
    assert all(change.artifact_id for change in made)


def test_order__factor_shrinks__configs_come_first_and_partitions_last(world: AlterWorld) -> None:
    made = world.alter(topics="orders", partitions="6", factor="2", added="min.insync.replicas=1")
    assert [change.kind for change in made] == [CONFIGS, REASSIGN, GROWTH]


def test_factor_below_min_isr__is_taken_where_a_step_before_lowers_that(world: AlterWorld) -> None:
    made = world.propose(topics="orders", factor="1", added="min.insync.replicas=1")
    assert {change.state for change in made} == {ChangeState.PROPOSED}


def test_order__one_topic_shrinks_and_one_grows__each_has_its_configs_in_time(world: AlterWorld) -> None:
    TopicState.objects.filter(name="clicks").update(
        partitions=[[0, 3, 5, [3], [3], []], [1, 1, 5, [1], [1], []]], replication_factor=1
    )
    made = world.alter(topics="orders\nclicks", factor="2", added="retention.ms=60000")
    assert [(change.kind, change.input.get("edits", [{}])[0].get("ids")) for change in made] == [
        (CONFIGS, ["id-of-orders"]),
        (REASSIGN, None),
        (CONFIGS, ["id-of-clicks"]),
    ]


def test_one_aspect__is_a_change_that_stands_alone(world: AlterWorld) -> None:
    [change] = world.alter(topics="orders\nclicks", partitions="5")
    assert (change.first_step_id, change.step, change.input["topics"]) == (None, 0, ["clicks"])


def test_assignment__is_split_between_moves_and_new_partitions(world: AlterWorld) -> None:
    made = world.alter(topics="clicks", partitions="3", assignment="3:5:1,1:2:3,4:5:6")
    assert [change.kind for change in made] == [REASSIGN, GROWTH]
    assert made[0].options["change_rf"]
    assert made[1].input == {"topics": ["clicks"], "count": 3, "factor": 3, "replicas": [[4, 5, 6]]}


def test_later_step__before_the_first_is_done__waits_and_is_not_stale(world: AlterWorld) -> None:
    """Its factor is not there yet, and it is judged when the facts are from after the step before."""
    made = world.propose(topics="clicks", partitions="3", factor="3")
    recheck(world.cluster.pk, world.clock)
    growth = world.reread(made)[1]
    assert growth.state == "proposed"
    assert [check["result"] for check in growth.checks if check["code"] == "steps_before"] == ["failed"]
    ChangeRequest.objects.filter(pk=made[0].pk).update(state="done", state_since=world.clock.replace(year=2020))
    outcome = run_checks(growth, world.clock)
    assert [check.code for check in outcome.checks if check.result == "failed"] == ["items_fit"]


# ---- run


def test_start__queues_all_steps__and_each_begins_when_the_one_before_is_done(
    world: AlterWorld, approver: User
) -> None:
    made = world.propose(**TWO_STEPS)
    approve_steps(made[0], approver, seen(made))
    services.start(world.reread(made)[0], world.operator)
    first, second = world.reread(made)
    assert (first.state, second.state) == ("queued", "queued")
    runs = {run.request_id: run.pk for run in ShortRun.objects.all()}
    assert worker.claim_due() == [runs[first.pk]]
    assert world.step(second).state == "queued", "a message that comes anyway begins nothing"
    assert world.until(first, "done").state == "done"
    ShortRun.objects.filter(request=second).update(next_at=Now())
    assert worker.claim_due() == [runs[second.pk]]
    assert world.until(second, "done").state == "done"
    assert [call for call, _ in world.kafka.sent if call in ("create_partitions", "alter_configs")] == [
        "create_partitions",
        "alter_configs",
    ]


def test_reassignment_that_waits_for_configs__is_not_claimed_and_keeps_no_other_waiting(
    world: AlterWorld, approver: User
) -> None:
    made = world.propose(topics="orders", factor="2", added="retention.ms=60000")
    [other] = world.propose(topics="clicks", factor="3")
    assert [change.kind for change in made] == [CONFIGS, REASSIGN]
    ChangeRequest.objects.filter(pk__in=[*(one.pk for one in made), other.pk]).update(
        state="approved", approvals_needed=0, expires_at=world.clock + timedelta(days=1)
    )
    services.start(world.reread(made)[0], world.operator)
    services.start(world.reread([other])[0], world.operator)
    waiting, free = (Execution.objects.get(request=change) for change in (made[1], other))
    assert lease.claim_due() == [free.pk]
    assert in_front_of(free, world.clock + timedelta(minutes=1)) is None
    ChangeRequest.objects.filter(pk=made[0].pk).update(state="done")
    assert lease.claim_due() == [waiting.pk]
    assert in_front_of(free, world.clock + timedelta(minutes=1)) == waiting


@pytest.mark.parametrize("ends", ["stale", "withdrawn", "exceptions"])
def test_first_step_ends_otherwise__later_one_leaves_the_queue(world: AlterWorld, approver: User, ends: str) -> None:
    made = world.propose(**TWO_STEPS)
    approve_steps(made[0], approver, seen(made))
    services.start(world.reread(made)[0], world.operator)
    first, second = world.reread(made)
    if ends == "stale":
        world.kafka.model.topics["orders"] = "another-id"
        world.until_stale(first)
    elif ends == "withdrawn":
        services.withdraw(first, world.operator, "Not today.")
    else:
        world.step(first)
        world.kafka.model.topics["orders"] = "another-id"
        assert world.until(first, "done").short_run.outcome == "exceptions"
    second = world.reread(made)[1]
    assert second.state == "stale"
    assert second.stale_reasons[0]["code"] == ChangeErrorCode.STEP_NOT_DONE
    assert not ShortRun.objects.filter(request=second).exists()
    assert "alter_configs" not in [call for call, _ in world.kafka.sent]


def test_first_step_is_withdrawn__later_one_is_not_approved_any_more(world: AlterWorld, approver: User) -> None:
    """It was approved beside a first step that may come back with another plan."""
    made = world.propose(**TWO_STEPS)
    approve_steps(made[0], approver, seen(made))
    services.withdraw(world.reread(made)[0], world.operator, "Not so many.")
    assert [change.state for change in world.reread(made)] == ["draft", "stale"]


def test_approve_all__who_edited_a_step__approves_the_others(world: AlterWorld, approver: User) -> None:
    made = world.propose(topics="clicks", partitions="3", factor="3", added="min.insync.replicas=3")
    ChangeRequest.objects.filter(pk=made[1].pk).update(contributor_ids=[approver.pk])
    others = [made[0], made[2]]
    assert approve_steps(made[0], approver, seen(others)) == 2
    assert [change.state for change in world.reread(made)] == ["approved", "proposed", "approved"]


def test_typed_partitions__topic_has_grown_since__only_the_others_are_planned(world: AlterWorld) -> None:
    wanted = {"topics": ["orders"], "count": 8, "replicas": [[1, 2, 3], [2, 3, 1], [3, 1, 2]]}
    topic = TopicState.objects.get(name="orders")
    rows = [*topic.partitions, *([number, 1, 0, [1, 2, 3], [1, 2, 3], []] for number in (5, 6))]
    TopicState.objects.filter(name="orders").update(partitions=rows, partition_count=7)
    [item] = plan_growth(world.cluster, wanted).items
    assert (item.content["first"], item.content["replicas"]) == (7, [[3, 1, 2]])
    TopicState.objects.filter(name="orders").update(partitions=rows[:4], partition_count=4)
    planned = plan_growth(world.cluster, wanted)
    assert (planned.items, [message.code for message in planned.left_out]) == ([], [TopicErrorCode.COUNT_WRONG])


def test_refreshed_step__after_the_first_ended_otherwise__stands_for_itself(world: AlterWorld, approver: User) -> None:
    made = world.propose(topics="clicks", partitions="3", factor="3")
    services.decline(made[0], approver, made[0].digest, "Too many replicas.")
    growth = world.reread(made)[1]
    assert growth.state == "stale"
    ChangeRequest.objects.filter(pk=made[0].pk).update(state_since=world.clock.replace(year=2020))
    outcome = run_checks(growth, world.clock)
    assert {check.code: check.result for check in outcome.checks}["steps_before"] == "passed"
    [problem] = outcome.checks[0].problems
    assert problem.params["why"].code == TopicReasonCode.FACTOR_DIFFERS


def test_delete__of_a_draft__takes_all_steps_or_none(world: AlterWorld) -> None:
    made = world.alter(**TWO_STEPS)
    services.submit(made[1], world.operator, why="More.", version=made[1].version)
    with pytest.raises(ChangeRefused) as refused:
        services.delete(made[0], world.operator)
    assert refused.value.code == ChangeErrorCode.STEPS_WERE_PROPOSED
    ChangeRequest.objects.filter(pk=made[1].pk).update(state="draft", round=0)
    services.delete(made[0], world.operator)
    assert not world.cluster.changes.exists()


# ---- approval


def test_approve_all__one_digest_changed__approves_none(world: AlterWorld, approver: User) -> None:
    made = world.propose(**TWO_STEPS)
    other = {**seen(made), made[1].pk: SeenContent("0" * 64, 1)}
    for wrong in (other, {made[0].pk: SeenContent(made[0].digest, 1)}):
        with pytest.raises(ChangedMeanwhile):
            approve_steps(made[0], approver, wrong)
        assert [change.state for change in world.reread(made)] == ["proposed", "proposed"]
    assert approve_steps(made[0], approver, seen(made)) == 2
    assert [change.state for change in world.reread(made)] == ["approved", "approved"]


def test_pages__from_the_form_to_the_approval_of_all(
    world: AlterWorld, approver: User, client_of: Callable[[User], Client]
) -> None:
    author, other = client_of(world.operator), client_of(approver)
    sent = author.post("/clusters/demo/alter-topics/", {**TWO_STEPS, "factor": "-1"})
    first, second = ChangeRequest.objects.order_by("step")
    assert sent["Location"] == f"/changes/{first.pk}/steps/"
    page = author.get(sent["Location"]).text
    assert "2 partitions are added" in page
    assert author.post(sent["Location"], {"why": ""}).status_code == 400
    unseen = author.post(sent["Location"], {"why": "More consumers.", f"digest:{first.pk}": first.digest})
    assert unseen.status_code == 409
    digests = {f"digest:{change.pk}": change.digest for change in (first, second)}
    author.post(sent["Location"], {"why": "More consumers.", **digests})
    ChangeRequest.objects.filter(pk=second.pk).update(
        left_out=[coded(TopicErrorCode.COUNT_WRONG, least=1, most=2, partitions=0).as_json()]
    )
    review = other.get(f"/changes/{second.pk}/").text
    assert "Approve all 2 steps" in review
    shown = Page.read(other.get(f"/changes/{first.pk}/"))
    growth, config = shown.find("[data-approvable]")
    assert (growth.attributes["data-approvable"], config.attributes["data-approvable"]) == (
        str(first.pk),
        str(second.pk),
    )
    assert "2 partitions are added" in growth.text
    assert TopicErrorCode.COUNT_WRONG in config.text
    assert Page.read(other.get(f"/changes/{second.pk}/")).find("#left-out")
    assert "Approve all" not in author.get(f"/changes/{second.pk}/").text
    fields = [f"{change.pk}:{change.digest}:1" for change in (first, second)]
    address = f"/changes/{second.pk}/steps/approve/"
    assert author.post(address, {"step": fields}).status_code == 403
    assert other.post(address, {"step": [fields[0], "x", f"{second.pk}:{second.digest}:2"]}).status_code == 409
    assert other.post(address, {"step": fields}).status_code == 302
    assert [change.state for change in world.reread([first, second])] == ["approved", "approved"]
