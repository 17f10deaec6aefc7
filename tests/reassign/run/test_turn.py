"""How a queued run begins, or why it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from kafkadash.accounts.models import User
from kafkadash.changes import running, services
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.refusals import Refused
from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_text, reason_cause
from kafkadash.domain.plan import Row
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.row_reasons import (
    BrokerAway,
    BrokerNotRegistered,
    NotAsPlanned,
    TopicCreatedAgain,
    TopicDeleted,
)
from kafkadash.domain.run_reasons import (
    CheckFailed,
    ClusterReadOnly,
    ClusterUnreadable,
    LacksPermission,
    LookedOnceMore,
    NotReadLately,
    NotWatched,
    QuorumSilent,
    TopicsUnread,
    WindowNotOpen,
)
from kafkadash.kafka.port import DeadlineExceeded, QuorumUnavailable
from kafkadash.observe.models import BrokerWeights, CollectorRun
from kafkadash.reassign.models import Execution, Move
from kafkadash.reassign.run import summaries
from kafkadash.reassign.run.queue import in_front_of
from tests.factories import GB, directory
from tests.reassign.run.runs import OPTIONS, ROWS, World

pytestmark = pytest.mark.django_db

OTHER_ROWS = (Row("clicks", "id-of-clicks", 1, (1, 2), (1, 5)),)


def blocked(world: World) -> CodedReason | None:
    world.step()
    assert world.change().state == RequestState.QUEUED
    assert world.kafka.sent == []
    assert not Move.objects.exists()
    return world.run().blocked


def test_queued__has_its_run_and_nothing_of_it_was_sent(world: World, operator: User) -> None:
    world.queue(operator)
    run = world.run()
    assert (run.active, run.throttle, run.per_broker, run.per_cluster) == (
        False,
        OPTIONS.throttle,
        OPTIONS.per_broker,
        OPTIONS.per_cluster,
    )


def test_turn__rows_are_there_with_their_sizes_when_it_begins(world: World, operator: User) -> None:
    world.queue(operator)
    world.step()
    run = world.run()
    assert world.change().state == RequestState.EXECUTING
    assert (run.active, run.rows, run.blocked) == (True, len(ROWS), None)
    assert run.started_at is not None
    moves = {(m.topic, m.partition): m for m in Move.objects.filter(execution=run)}
    assert {key: (tuple(m.current), tuple(m.target), m.topic_id) for key, m in moves.items()} == {
        (row.topic, row.partition): (row.current, row.target, row.topic_id) for row in ROWS
    }
    assert {m.size_bytes for m in moves.values()} == {3 * GB}
    assert world.kafka.sent == [], "nothing is sent before the rows are stored"


def test_withdrawn__its_run_is_gone_and_it_can_be_queued_again(world: World, operator: User) -> None:
    change = world.queue(operator)
    services.withdraw(change, operator)
    assert not Execution.objects.exists()


@pytest.mark.parametrize(
    ("stop", "why"),
    [
        (lambda world: world.model.stop(6), BrokerAway(6)),
        (lambda world: world.model.brokers.pop(6), BrokerNotRegistered(6)),
        (
            lambda world: world.kafka.fail.update(list_reassignments=QuorumUnavailable("No majority.")),
            QuorumSilent(),
        ),
        (lambda world: world.kafka.hidden.add("clicks"), TopicsUnread(1, ("clicks",))),
    ],
)
def test_unwell__stays_queued_with_the_reason_and_begins_when_it_is_well(
    world: World, operator: User, stop: Callable[[World], object], why: CodedReason
) -> None:
    world.queue(operator)
    stop(world)
    assert blocked(world) == why
    at = world.run().blocked_at
    assert at is not None
    world.step()
    assert world.run().blocked_at == at, "since when"
    world.model.brokers[6] = True
    world.kafka.fail.clear()
    world.kafka.hidden.clear()
    world.until(RequestState.EXECUTING, 3)
    assert (world.run().blocked, world.run().blocked_at) == (None, None)


def test_unwell__the_next_try_is_ten_seconds_later(world: World, operator: User) -> None:
    world.queue(operator)
    world.model.stop(6)
    blocked(world)
    wait = world.run().next_at - datetime.now(UTC)
    assert timedelta(seconds=8) < wait <= timedelta(seconds=10)


def test_read_only__is_blocked(world: World, operator: User) -> None:
    world.queue(operator)
    Cluster.objects.update(read_only=True)
    assert blocked(world) == ClusterReadOnly(world.cluster.name)


def test_disabled__is_blocked(world: World, operator: User) -> None:
    world.queue(operator)
    Cluster.objects.update(enabled=False)
    assert blocked(world) == NotWatched(world.cluster.name)


def test_old_facts__are_blocked(world: World, operator: User) -> None:
    world.queue(operator)
    CollectorRun.objects.filter(kind="log_dirs").update(succeeded_at=world.clock - timedelta(minutes=10))
    assert blocked(world) == NotReadLately(("log_dirs",))


def test_disk_too_full__is_blocked(world: World, operator: User) -> None:
    world.queue(operator)
    full = [directory("/data/a", usable=250 * GB)]
    BrokerWeights.objects.filter(broker_id=6).update(dirs=full)
    ChangeRequest.objects.update(input={"disk_limit": 0.8, "mode": "drain", "brokers": [3]})
    why = blocked(world)
    assert isinstance(why, CheckFailed)
    assert why.check == "disk"


def test_permission_missing__is_blocked(world: World, operator: User) -> None:
    world.queue(operator)
    world.kafka.lacks = frozenset({"Alter"})
    assert blocked(world) == LacksPermission((("Alter", ""),))


def test_not_reached__is_no_reason_to_give_up(world: World, operator: User) -> None:
    world.queue(operator)
    world.kafka.fail["metadata"] = DeadlineExceeded("No answer within 8 s.")
    world.step()
    assert (world.run().error, world.run().failures) == (ClusterUnreadable("No answer within 8 s."), 1)
    world.kafka.fail.clear()
    world.until(RequestState.EXECUTING, 2)
    assert (world.run().error, world.run().failures) == (None, 0)


def test_foreign_move_on_a_row__turns_stale_with_a_sentence(world: World, operator: User) -> None:
    world.queue(operator)
    world.model.submit(("orders", 1), (2, 3, 5))
    world.step()
    change = world.change()
    assert change.state == RequestState.STALE
    assert change.stale_reasons == ["orders-1: Somebody else reassigns it, to 2, 3, 5."]
    assert not Execution.objects.exists()
    assert not Move.objects.exists()
    assert world.kafka.sent == []


def test_altered_options__turn_it_stale_before_anything_is_sent(world: World, operator: User) -> None:
    world.queue(operator)
    ChangeRequest.objects.update(options={**world.change().options, "throttle_max": 5_000_000_000})
    world.step()
    change = world.change()
    assert change.state == RequestState.STALE
    assert change.stale_reasons == [message_text(ChangeErrorCode.CONTENT_ALTERED, name=f"#{change.pk}")]
    assert not Move.objects.exists()
    assert world.kafka.sent == []


@pytest.mark.parametrize("what", ["replicas", "deleted", "recreated"])
def test_other_content__turns_stale_after_a_second_look(world: World, operator: User, what: str) -> None:
    """A broker's metadata may be late: one answer does not make approvals void."""
    world.queue(operator)
    if what == "replicas":
        world.model.partitions["clicks", 0].replicas = (5, 3)
        why: CodedReason = NotAsPlanned((5, 3), (3, 5))
    else:
        world.model.delete("clicks")
        why = TopicDeleted("clicks")
    if what == "recreated":
        world.model.create("clicks", "another-id", 2, (1, 2))
        why = TopicCreatedAgain("clicks")
    assert blocked(world) == LookedOnceMore("clicks-0", why)
    world.passes(2)
    world.step()
    assert world.change().state == RequestState.STALE
    assert world.change().stale_reasons == [f"clicks-0: {reason_cause(why)}"]
    assert world.audit()[-1] == "change.turned_stale"


def test_other_content_at_one_look_only__begins(world: World, operator: User) -> None:
    world.queue(operator)
    world.model.partitions["clicks", 0].replicas = (5, 3)
    blocked(world)
    world.model.partitions["clicks", 0].replicas = (3, 5)
    world.until(RequestState.EXECUTING, 2)


def test_window_not_open__waits_and_keeps_nobody_behind_it(world: World, operator: User) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    world.queue(operator, options=replace(OPTIONS, not_before=f"{tomorrow:%Y-%m-%dT%H:%M:%SZ}"))
    ChangeRequest.objects.update(not_before=tomorrow)
    assert blocked(world) == WindowNotOpen()
    second = world.queue(operator, OTHER_ROWS)
    assert in_front_of(world.run(second.pk), world.clock) is None
    world.step(second.pk)
    assert world.change(second.pk).state == RequestState.EXECUTING


def test_two_queued__the_second_waits_for_the_first(world: World, operator: User) -> None:
    first = world.queue(operator)
    second = world.queue(operator, OTHER_ROWS)
    world.step(second.pk)
    assert world.change(second.pk).state == RequestState.QUEUED
    assert world.run(second.pk).blocked is None
    front = in_front_of(world.run(second.pk), world.clock)
    assert front is not None
    assert front.request_id == first.pk
    begun = None
    for _ in range(60):
        world.tick()
        if begun is None and world.change(second.pk).state != RequestState.QUEUED:
            begun = world.change(first.pk).state
        if world.change(second.pk).state == RequestState.DONE:
            break
    assert begun == RequestState.DONE
    assert world.change(second.pk).state == RequestState.DONE


def test_first_blocked__one_of_other_partitions_passes_and_the_first_begins_after_it(
    world: World, operator: User
) -> None:
    first = world.queue(operator)
    second = world.queue(operator, OTHER_ROWS)
    world.model.stop(6)
    world.step(second.pk)
    assert world.change(second.pk).state == RequestState.QUEUED, "nobody knows yet that the first one is blocked"
    Execution.objects.filter(request=second).update(next_at=datetime.now(UTC) + timedelta(hours=1))
    world.step(first.pk)
    assert world.run(first.pk).blocked == BrokerAway(6)
    assert world.run(second.pk).next_at <= datetime.now(UTC), "it is woken, and need not find out by itself"
    assert summaries.runs([world.change(second.pk)])[second.pk].behind == ()
    world.step(second.pk)
    assert world.change(second.pk).state == RequestState.EXECUTING
    world.step(first.pk)
    assert (world.change(first.pk).state, world.run(first.pk).blocked) == (RequestState.QUEUED, None)
    assert summaries.runs([world.change(first.pk)])[first.pk].behind == (second.pk,)
    world.model.brokers[6] = True
    world.until(RequestState.DONE, number=second.pk)
    world.until(RequestState.DONE, number=first.pk)


def test_first_blocked__one_that_moves_one_of_its_partitions_waits(world: World, operator: User) -> None:
    first = world.queue(operator)
    world.model.stop(6)
    world.step(first.pk)
    second = world.queue(operator, (*OTHER_ROWS, replace(ROWS[5], target=(3, 1))))
    front = in_front_of(world.run(second.pk), world.clock)
    assert front is not None
    assert front.request_id == first.pk
    assert summaries.runs([world.change(second.pk)])[second.pk].behind == (first.pk,)
    world.step(second.pk)
    assert (world.change(second.pk).state, world.run(second.pk).blocked) == (RequestState.QUEUED, None)


def test_first_blocked__a_start_says_that_nobody_waits_for_it(world: World, operator: User) -> None:
    first = world.queue(operator)
    second = world.queue(operator, OTHER_ROWS)
    services.withdraw(second, operator)
    behind = f"It waits behind #{first.pk}"
    assert any(behind in words for words in summaries.start_words(world.change(second.pk), world.clock))
    world.model.stop(6)
    world.step(first.pk)
    assert not any(behind in words for words in summaries.start_words(world.change(second.pk), world.clock))


def test_first_ends__the_second_is_woken(world: World, operator: User) -> None:
    world.queue(operator)
    second = world.queue(operator, OTHER_ROWS)
    world.step(second.pk)
    Execution.objects.filter(request=second).update(next_at=datetime.now(UTC) + timedelta(hours=1))
    world.runs.remove(second.pk)
    world.until(RequestState.DONE)
    assert world.run(second.pk).next_at <= datetime.now(UTC)


def test_two_active_at_once__the_database_refuses(world: World, operator: User) -> None:
    world.queue(operator)
    second = world.queue(operator, OTHER_ROWS)
    Execution.objects.filter(request=world.runs[0]).update(active=True)
    with pytest.raises(IntegrityError), transaction.atomic():
        Execution.objects.filter(request=second).update(active=True)


def test_start_pressed_twice__runs_once(world: World, operator: User) -> None:
    change = world.queue(operator)
    with pytest.raises(Refused):
        running.start(change, operator, "Again.")
    assert Execution.objects.count() == 1
