"""The way back: from the rows that were moved, in their order, planned and checked like anything else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
import time_machine
from django.utils import timezone

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import running, services
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.refusals import Refused
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import reason_cause
from kafkadash.domain.reasons import reason_columns
from kafkadash.domain.row_reasons import CancelledByOthers, NotAsPlanned
from kafkadash.jobs.run import attempt
from kafkadash.observe.models import BrokerState, CollectorRun, Kind, TopicState
from kafkadash.reassign.checks import plan_rows
from kafkadash.reassign.models import Move
from kafkadash.reassign.run.rollback import left_words, propose_back
from tests.reassign.run.runs import ROWS, World

pytestmark = pytest.mark.django_db
ORIGINAL = {f"{row.topic}-{row.partition}": row.current for row in ROWS}
TARGET = {f"{row.topic}-{row.partition}": row.target for row in ROWS}


def collected(world: World) -> None:
    """The collectors read the cluster as the virtual Kafka has it, after what happened last."""
    world.passes(3)
    for topic in TopicState.objects.filter(cluster=world.cluster):
        topic.partitions = [
            [number, leader, epoch, list(there.replicas), sorted(there.isr), offline]
            for number, leader, epoch, _, _, offline in topic.partitions
            if (there := world.model.partitions.get((topic.name, number)))
        ]
        topic.shape = f"{topic.shape}+"[-32:]
        topic.save()


def plan_of(draft: ChangeRequest) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Partition → current and target replicas, by the plan that its job made."""
    job = ChangeRequest.objects.get(pk=draft.pk).job
    assert job is not None
    attempt(job.pk)
    made = ChangeRequest.objects.get(pk=draft.pk)
    rows = plan_rows(made.artifact_id) if made.artifact_id else ()
    return {row.name: (row.current, row.target) for row in rows}


def notices(draft: ChangeRequest) -> list[str]:
    job = ChangeRequest.objects.get(pk=draft.pk).job
    assert job is not None
    assert job.result is not None, job.error
    return [notice["sentence"] for notice in job.result["notices"]]


@pytest.fixture
def done(world: World, operator: User) -> ChangeRequest:
    world.queue(operator)
    return world.until(RequestState.DONE)


def test_it_gives_every_partition_its_original_replicas_in_order(
    world: World, done: ChangeRequest, operator: User
) -> None:
    collected(world)
    draft = propose_back(done, operator)
    assert (draft.state, draft.title) == (RequestState.DRAFT, f"Rollback of #{done.pk}: Drain broker 3")
    assert (draft.origin_id, draft.origin_word, draft.hands) == (done.pk, "rollback", [operator.pk])
    assert plan_of(draft) == {name: (TARGET[name], original) for name, original in ORIGINAL.items()}
    (event,) = AuditEvent.objects.filter(action="change.rollback_proposed")
    assert (event.object_id, event.after) == (str(done.pk), {"rollback": draft.pk})


def test_its_limits_are_those_of_the_run_without_its_window(world: World, done: ChangeRequest, operator: User) -> None:
    begin = (timezone.now() - timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    ChangeRequest.objects.filter(pk=done.pk).update(options={**done.options, "not_before": begin})
    draft = propose_back(world.change(), operator)
    assert draft.options == {
        **done.options,
        "not_before": "",
        "not_after": "",
        "may_lose_racks": True,
        "disk_limit_percent": 80.0,
    }
    assert draft.not_before is None


def test_pressed_twice_it_is_one_draft(done: ChangeRequest, operator: User, make_user: Callable[..., User]) -> None:
    first = propose_back(done, operator)
    assert propose_back(done, operator) == first
    assert propose_back(done, make_user("olaf", Role.OPERATOR)) != first, "somebody else's draft is his own"


def test_only_what_was_moved_goes_back_and_the_rest_is_named(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    by_now = NotAsPlanned((5, 6), (1, 2))
    Move.objects.filter(topic="clicks").update(state=RowState.SKIPPED, **reason_columns(by_now))
    Move.objects.filter(topic="orders", partition=4).update(
        state=RowState.SUPERSEDED, **reason_columns(CancelledByOthers())
    )
    Move.objects.filter(topic="orders", partition__lt=4).update(state=RowState.DONE)
    ChangeRequest.objects.update(state=RequestState.DONE)
    for name in ("orders-0", "orders-1", "orders-2"):
        world.model.partitions["orders", int(name[-1])].replicas = TARGET[name]
    run = world.run()
    type(run).objects.filter(pk=run.pk).update(ended_at=world.clock, active=False)
    collected(world)
    draft = propose_back(world.change(), operator)
    assert plan_of(draft) == {name: (TARGET[name], ORIGINAL[name]) for name in ("orders-0", "orders-1", "orders-2")}
    said = notices(draft)
    for name, state, why in (("clicks-0", "skipped", by_now), ("orders-4", "superseded", CancelledByOthers())):
        assert f"{name} is left out: it was not moved ({state}): {reason_cause(why)}" in said
    assert left_words(world.change().pk) == (
        f"2 partitions of #{world.change().pk} that were not moved stay as they are: 1 skipped and 1 superseded."
    )


def test_what_the_cluster_changed_since_is_left_out_with_its_reason(
    world: World, done: ChangeRequest, operator: User
) -> None:
    world.model.partitions["orders", 0].replicas = (1, 2, 5)
    world.model.partitions["orders", 1].replicas = ORIGINAL["orders-1"]
    collected(world)
    TopicState.objects.filter(name="clicks").update(topic_id="another-id")
    draft = propose_back(done, operator)
    assert plan_of(draft).keys() == {"orders-2", "orders-3", "orders-4"}
    said = notices(draft)
    assert "orders-0 is left out: its replicas are 1, 2, 5 by now, not the 1, 2, 6 that the run left it with." in said
    assert "orders-1 is left out: it has its original replicas again already." in said
    assert "clicks-0 is left out: its topic was deleted and created again since." in said


def test_where_nothing_is_left_the_plan_says_why(world: World, done: ChangeRequest, operator: User) -> None:
    collected(world)
    TopicState.objects.filter(cluster=world.cluster).delete()
    draft = propose_back(done, operator)
    assert plan_of(draft) == {}
    job = ChangeRequest.objects.get(pk=draft.pk).job
    assert job is not None
    assert "can be taken back" in job.error
    assert "is left out: it is not in the cluster any more" in job.error


def test_facts_from_before_the_end_are_not_planned_with(
    world: World, done: ChangeRequest, operator: User, settings: object
) -> None:
    settings.PLAN_WAIT = 0  # type: ignore[attr-defined]
    before = world.run().ended_at
    draft = propose_back(done, operator)
    CollectorRun.objects.filter(kind=Kind.METADATA).update(succeeded_at=before)
    with time_machine.travel(world.clock, tick=True):
        assert plan_of(draft) == {}
    job = ChangeRequest.objects.get(pk=draft.pk).job
    assert job is not None
    assert "was not read again since that run ended" in job.error


def test_a_cancelled_run_goes_back_as_far_as_it_got(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    while not Move.objects.filter(state=RowState.DONE).exists():
        world.tick()
    running.cancel(world.change(), operator, "Enough.")
    cancelled = world.until(RequestState.CANCELLED)
    moved = {str(move) for move in Move.objects.filter(state=RowState.DONE)}
    collected(world)
    assert plan_of(propose_back(cancelled, operator)).keys() == moved


def test_what_runs_or_moved_nothing_has_no_way_back(world: World, operator: User) -> None:
    queued = world.queue(operator)
    with pytest.raises(Refused, match="there is nothing to take back before its run has ended"):
        propose_back(queued, operator)
    ChangeRequest.objects.update(state=RequestState.FAILED)
    with pytest.raises(Refused, match="moved nothing, or its rows are not kept any more"):
        propose_back(queued, operator)


def test_it_needs_the_right_to_propose(done: ChangeRequest, operator: User, approver: User) -> None:
    for user, change_it in ((approver, lambda: None), (operator, partial(Cluster.objects.update, read_only=True))):
        change_it()
        with pytest.raises(Refused, match=r"you need the role operator|is read-only"):
            propose_back(done, user)
    Cluster.objects.update(read_only=False)
    ClusterRole.objects.filter(user=operator).delete()
    with pytest.raises(Refused, match="which you do not have now"):
        propose_back(done, operator)
    assert not ChangeRequest.objects.filter(origin=done).exists()


def test_racks_that_the_run_mended__go_back_without_an_acceptance(
    world: World, operator: User, approver: User, make_user: Callable[..., User]
) -> None:
    BrokerState.objects.filter(cluster=world.cluster, broker_id=3).update(rack="eu-1b")
    world.queue(operator)
    draft = propose_back(world.until(RequestState.DONE), operator)
    collected(world)
    assert plan_of(draft).keys() == ORIGINAL.keys()
    draft.refresh_from_db()
    assert draft.risk is None
    proposed = services.submit(draft, operator, why="It was wrong.", version=draft.version)
    (racks,) = [check for check in proposed.checks if check["code"] == "rack_spread"]
    assert (racks["result"], racks["title"]) == ("passed", f"Rack spread becomes as it was before #{draft.origin_id}")
    assert racks["figure"].endswith("worse")
    for user in (approver, make_user("ada", Role.APPROVER)):
        services.approve(proposed, user, proposed.digest)
    running.start(proposed, operator, "Now.")
    world.runs = [draft.pk]
    world.executions[draft.pk] = world.run().pk
    world.until(RequestState.DONE)
    replicas = {f"{topic}-{n}": p.replicas for (topic, n), p in world.model.partitions.items()}
    assert {name: replicas[name] for name in ORIGINAL} == ORIGINAL
