"""Elections from the plan to their end: which partitions, what is sent, and what is told of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from kafkadash.accounts.models import AuditEvent
from kafkadash.changes import services
from kafkadash.changes.checks import CheckResult
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.removal import stays_in_kafka
from kafkadash.core.messages import as_message
from kafkadash.elections.errors import ElectionErrorCode
from kafkadash.elections.kind import plan_elections
from kafkadash.elections.reasons import ElectionReasonCode
from kafkadash.kafka.api import ItemError, KafkaUnreachable, TopicPartition
from kafkadash.monitoring.models import TopicState
from kafkadash.short_runs import fail_points, plans, removal, worker
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import items_of
from kafkadash.short_runs.models import ShortItem, ShortRun
from kafkadash.short_runs.plans import check_items
from kafkadash.short_runs.reasons import ItemReasonCode, ShortRunReasonCode
from tests.elections.conftest import ElectionWorld

pytestmark = pytest.mark.django_db

BOTH = {"orders-0": "done", "orders-1": "done"}


class Killed(BaseException):
    """The worker is gone at this instant."""


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[None]:
    def reach(reached: str) -> None:
        if reached == point:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(fail_points, "_reach", reach)
        with pytest.raises(Killed):
            yield


def subjects(world: ElectionWorld, **wanted: object) -> list[str]:
    return [item.subject for item in plan_elections(world.cluster, wanted).items]


# ---- plan


def test_plan__has_partitions_that_another_broker_leads(two_misled: ElectionWorld) -> None:
    assert subjects(two_misled) == ["orders-0", "orders-1"]
    assert subjects(two_misled, topic="clicks") == []
    assert subjects(two_misled, broker=1) == ["orders-0"], "broker 1 is the preferred leader of it"
    assert subjects(two_misled, broker=3) == ["orders-0", "orders-1"], "broker 3 leads both"
    assert subjects(two_misled, broker=6) == []


def test_plan__leaves_out_partitions_whose_preferred_leader_is_out_of_sync(two_misled: ElectionWorld) -> None:
    two_misled.lead("orders", 1, 3, isr=[3, 4])
    planned = plan_elections(two_misled.cluster, {})
    assert [item.subject for item in planned.items] == ["orders-0"]
    assert [(m.code, m.params) for m in planned.left_out] == [
        (ElectionErrorCode.OUT_OF_SYNC_LEFT_OUT, {"partitions": 1})
    ]


def test_plan__of_a_healthy_cluster_is_empty(world: ElectionWorld) -> None:
    assert subjects(world) == []
    draft = world.draft()
    assert draft.artifact_id is None
    with pytest.raises(ChangeRefused):
        services.submit(draft, world.operator, why="Why not.", version=draft.version)


# ---- run


def test_run__elects_all_with_one_request_and_verifies(two_misled: ElectionWorld) -> None:
    change = two_misled.until(two_misled.queue(), "done")
    run = two_misled.run(change)
    assert two_misled.states(change) == BOTH
    assert two_misled.elections == ["orders-0,orders-1"]
    assert (run.outcome, run.counts, run.items) == ("clean", {"done": 2}, 2)
    assert run.ended_at is not None
    assert [two_misled.kafka.model.partitions["orders", n].leader for n in (0, 1)] == [1, 2]
    actions = AuditEvent.objects.filter(object_id=str(change.pk)).order_by("id").values_list("action", flat=True)
    assert list(actions)[-3:] == ["change.turn_came", "change.rows_ended", "change.verified"]


def test_run__partition_that_has_its_leader_by_now_is_not_sent(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    two_misled.kafka.model.partitions["orders", 0].leader = 1
    change = two_misled.until(change, "done")
    assert two_misled.states(change) == {"orders-0": "unchanged", "orders-1": "done"}
    assert two_misled.reasons(change)["orders-0"] == ItemReasonCode.ALREADY_SO
    assert two_misled.elections == ["orders-1"]


@pytest.mark.parametrize("point", [fail_points.BEFORE_CALL, fail_points.AFTER_CALL, fail_points.AFTER_ROW])
def test_run__worker_killed_at_a_point__next_one_settles_what_was_sent(
    two_misled: ElectionWorld, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    change = two_misled.queue()
    two_misled.step(change)
    with killed_at(monkeypatch, point):
        two_misled.step(change)
    if point != fail_points.AFTER_ROW:
        assert set(two_misled.states(change).values()) == {"sending"}
    change = two_misled.until(change, "done")
    assert two_misled.states(change) == BOTH
    assert two_misled.elections == ["orders-0,orders-1"], "nothing is sent twice"
    assert two_misled.run(change).outcome == "clean"


@pytest.mark.parametrize("arrives", [True, False])
def test_run__answer_is_lost__a_reading_tells(two_misled: ElectionWorld, arrives: bool) -> None:
    change = two_misled.queue()
    two_misled.step(change)
    two_misled.kafka.lose = arrives
    two_misled.step(change)
    assert set(two_misled.states(change).values()) == {"lost"}
    two_misled.kafka.lose = None
    change = two_misled.until(change, "done")
    assert two_misled.states(change) == BOTH
    assert len(two_misled.elections) == (1 if arrives else 2)


def test_run__answers_are_always_lost__gives_up_after_three_requests(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    two_misled.kafka.lose = False
    change = two_misled.until(change, "done")
    assert set(two_misled.reasons(change).values()) == {ItemReasonCode.LOST_TOO_OFTEN}
    assert len(two_misled.elections) == 3
    assert two_misled.run(change).outcome == "exceptions", "partial or failed work is never a success"


def test_run__kafka_refuses_one__the_other_is_done(two_misled: ElectionWorld) -> None:
    error = ItemError(as_message("not available"), 80, "PREFERRED_LEADER_NOT_AVAILABLE")
    two_misled.kafka.refuse[TopicPartition("orders", 0)] = error
    change = two_misled.until(two_misled.queue(), "done")
    assert two_misled.states(change) == {"orders-0": "refused", "orders-1": "done"}
    assert two_misled.reasons(change)["orders-0"] == ItemReasonCode.REFUSED_BY_KAFKA
    assert two_misled.run(change).outcome == "exceptions"


def test_run__one_could_not_be_sent__is_told_and_sent_again(two_misled: ElectionWorld) -> None:
    place = TopicPartition("orders", 0)
    two_misled.kafka.refuse[place] = ItemError(as_message("broker 1 is not connected"))
    change = two_misled.step(two_misled.step(two_misled.queue()))
    assert two_misled.states(change) == {"orders-0": "pending", "orders-1": "done"}
    assert two_misled.run(change).error_code == ShortRunReasonCode.NOT_SENT
    del two_misled.kafka.refuse[place]
    change = two_misled.until(change, "done")
    assert two_misled.states(change) == BOTH


def test_run__preferred_leader_falls_out_of_sync_after_the_start__is_skipped(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    two_misled.step(change)
    two_misled.kafka.model.partitions["orders", 0].isr = {2, 3}
    change = two_misled.until(change, "done")
    assert two_misled.states(change) == {"orders-0": "skipped", "orders-1": "done"}
    assert two_misled.reasons(change)["orders-0"] == ElectionReasonCode.PREFERRED_OUT_OF_SYNC


def test_run__kafka_does_not_answer__waits_and_goes_on(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    two_misled.step(change)
    two_misled.kafka.fail["elect_leaders"] = KafkaUnreachable(as_message("No broker answers."))
    two_misled.step(change)
    assert set(two_misled.states(change).values()) == {"pending"}
    assert two_misled.run(change).error_code == ShortRunReasonCode.NOT_SENT
    del two_misled.kafka.fail["elect_leaders"]
    change = two_misled.until(change, "done")
    assert two_misled.states(change) == BOTH
    assert two_misled.run(change).error is None


def test_run__leader_changes_again_before_verification__is_told(two_misled: ElectionWorld) -> None:
    change = two_misled.until(two_misled.queue(), "verifying")
    two_misled.kafka.model.partitions["orders", 1].leader = 3
    assert two_misled.step(change).state == "verifying", "a broker may not know yet"
    change = two_misled.step(change, seconds=worker.SETTLES_S)
    assert change.state == "done"
    assert two_misled.states(change) == {"orders-0": "done", "orders-1": "reverted"}
    assert two_misled.run(change).outcome == "exceptions"


def test_run__paused__sends_nothing_until_it_is_resumed(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    change = two_misled.step(change)
    change = services.pause(change, two_misled.operator)
    change = two_misled.step(change)
    assert (change.state, two_misled.elections) == ("paused", [])
    change = services.resume(change, two_misled.operator, "All clear.")
    assert two_misled.until(change, "done").state == "done"


def test_run__cancelled__sends_nothing_more(two_misled: ElectionWorld) -> None:
    change = two_misled.step(two_misled.queue())
    change = services.cancel(change, two_misled.operator, "Not now.")
    change = two_misled.until(change, "cancelled")
    assert set(two_misled.states(change).values()) == {"cancelled"}
    assert two_misled.elections == []


def test_run__cancelled_with_a_lost_answer__is_settled_first(two_misled: ElectionWorld) -> None:
    change = two_misled.step(two_misled.queue())
    two_misled.kafka.lose = True
    change = two_misled.step(change)
    two_misled.kafka.lose = None
    change = services.cancel(change, two_misled.operator, "Not now.")
    change = two_misled.until(change, "cancelled")
    assert two_misled.states(change) == BOTH, "what Kafka has done is not told as cancelled"


# ---- before the start


def test_queued__topic_was_created_again__turns_stale_at_the_second_reading_and_sends_nothing(
    two_misled: ElectionWorld,
) -> None:
    change = two_misled.queue()
    two_misled.kafka.model.topics["orders"] = "another-id"
    change = two_misled.step(change)
    assert change.state == "queued", "a broker may tell it late"
    assert two_misled.run(change).blocked_code == ShortRunReasonCode.LOOKS_ONCE_MORE
    change = two_misled.step(change)
    assert change.state == "stale"
    assert change.stale_reasons[0]["params"]["why"]["code"] == ElectionReasonCode.TOPIC_RECREATED
    assert not ShortRun.objects.filter(request=change).exists()
    assert two_misled.elections == []


def test_queued__broker_tells_the_replicas_late__begins_once_it_knows(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    partition = two_misled.kafka.model.partitions["orders", 0]
    known, partition.replicas = partition.replicas, partition.replicas[::-1]
    assert two_misled.step(change).state == "queued"
    partition.replicas = known
    assert two_misled.until(change, "done").state == "done"


def test_queued__another_cluster_answers__waits(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    two_misled.kafka.cluster_id = "another"
    change = two_misled.step(change)
    assert change.state == "queued"
    assert two_misled.run(change).blocked_code == ShortRunReasonCode.ANOTHER_CLUSTER


def test_running__another_cluster_answers__sends_nothing(two_misled: ElectionWorld) -> None:
    change = two_misled.step(two_misled.queue())
    two_misled.kafka.cluster_id = "another"
    change = two_misled.step(change)
    assert two_misled.run(change).error_code == ShortRunReasonCode.ANOTHER_CLUSTER
    assert two_misled.elections == []


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [("read_only", True, ShortRunReasonCode.READ_ONLY), ("enabled", False, ShortRunReasonCode.NOT_WATCHED)],
)
def test_queued__cluster_allows_no_changes__waits(
    two_misled: ElectionWorld, column: str, value: bool, code: ShortRunReasonCode
) -> None:
    change = two_misled.queue()
    ShortRun.objects.update(failures=3, error_code=ShortRunReasonCode.STEP_FAILED)
    type(two_misled.cluster).objects.filter(pk=two_misled.cluster.pk).update(**{column: value})
    change = two_misled.step(change)
    assert change.state == "queued"
    run = two_misled.run(change)
    assert (run.blocked_code, run.error_code, run.failures) == (code, "", 0)
    assert (run.blocked_at is not None, run.looked_at) == (True, two_misled.clock)


def test_queued__partition_cannot_be_read__waits(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    two_misled.kafka.hidden.add("orders")
    change = two_misled.step(change)
    assert change.state == "queued"
    assert two_misled.run(change).blocked_code == ShortRunReasonCode.ITEMS_UNREAD


def test_running__partition_cannot_be_read__is_told_and_not_sent(two_misled: ElectionWorld) -> None:
    change = two_misled.step(two_misled.queue())
    two_misled.kafka.hidden.add("orders")
    change = two_misled.step(change)
    assert two_misled.run(change).error_code == ShortRunReasonCode.ITEMS_UNREAD
    assert two_misled.elections == []


def test_running__cluster_becomes_read_only__sends_nothing_and_says_why(two_misled: ElectionWorld) -> None:
    change = two_misled.step(two_misled.queue())
    type(two_misled.cluster).objects.filter(pk=two_misled.cluster.pk).update(read_only=True)
    change = two_misled.step(change)
    assert two_misled.run(change).error_code == ShortRunReasonCode.READ_ONLY
    assert two_misled.elections == []
    type(two_misled.cluster).objects.filter(pk=two_misled.cluster.pk).update(read_only=False)
    assert two_misled.until(change, "done").state == "done"


# ---- plans again


def test_stale__a_new_plan_has_the_items_of_now(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    two_misled.kafka.model.topics["orders"] = "another-id"
    change = two_misled.until_stale(change)
    two_misled.lead("orders", 0, 1)
    services.start_refresh(change, two_misled.operator)
    change = ChangeRequest.objects.get(pk=change.pk)
    assert (change.state, change.artifact.rows if change.artifact else 0) == ("stale", 2), "after the transaction"


@pytest.mark.django_db(transaction=True)
def test_stale__new_plan_is_proposed_after_the_transaction(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    two_misled.kafka.model.topics["orders"] = "another-id"
    change = two_misled.until_stale(change)
    two_misled.lead("orders", 0, 1)
    services.start_refresh(change, two_misled.operator)
    change = ChangeRequest.objects.get(pk=change.pk)
    assert change.state == "proposed"
    assert change.artifact is not None
    assert change.artifact.rows == 1


def test_stale__nothing_is_left_to_do__is_refused(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    two_misled.kafka.model.topics["orders"] = "another-id"
    change = two_misled.until_stale(change)
    two_misled.lead("orders", 0, 1)
    two_misled.lead("orders", 1, 2)
    with pytest.raises(ChangeRefused) as refused:
        services.start_refresh(change, two_misled.operator)
    assert refused.value.code == ChangeErrorCode.NOTHING_LEFT


def test_plan__of_more_items_than_a_change_may_have__is_refused(
    two_misled: ElectionWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "MOST_ITEMS", 1)
    with pytest.raises(ChangeRefused) as refused:
        two_misled.draft()
    assert refused.value.code == ShortRunErrorCode.TOO_MANY_ITEMS


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda row: row["partitions"][0][3].reverse(), ElectionReasonCode.REPLICAS_CHANGED),
        (lambda row: row["partitions"][0].__setitem__(4, [2, 3]), ElectionReasonCode.PREFERRED_OUT_OF_SYNC),
        (lambda row: row["partitions"].pop(0), ElectionReasonCode.PARTITION_GONE),
        (lambda row: row.update(topic_id="another"), ElectionReasonCode.TOPIC_RECREATED),
    ],
)
def test_submit__stored_partition_is_another_one__is_refused(
    two_misled: ElectionWorld, spoil: Callable[[dict[str, Any]], Any], code: ElectionReasonCode
) -> None:
    draft = two_misled.draft({"topic": "orders"})
    stored = TopicState.objects.get(name="orders")
    row: dict[str, Any] = {"partitions": stored.partitions, "topic_id": stored.topic_id}
    spoil(row)
    TopicState.objects.filter(pk=stored.pk).update(**row)
    with pytest.raises(ChangeRefused) as refused:
        services.submit(draft, two_misled.operator, why="Skew.", version=draft.version)
    assert refused.value.code == ChangeErrorCode.PLAN_NO_LONGER_FITS
    first = refused.value.message.params["first"]
    assert (first.code, first.params["why"].code) == (ShortRunErrorCode.ITEM_DOES_NOT_FIT, code)


def test_submit__metadata_is_old__is_refused(two_misled: ElectionWorld) -> None:
    draft = two_misled.draft()
    outcome = check_items(draft, two_misled.clock + timedelta(hours=1))
    assert [check.result for check in outcome.checks] == [CheckResult.UNKNOWN]
    assert [problem.code for problem in outcome.checks[0].problems] == [ShortRunErrorCode.FACTS_OLD]


def test_cluster__with_a_run_under_way__is_removed_only_when_it_is_silent(two_misled: ElectionWorld) -> None:
    change = two_misled.step(two_misled.queue())
    assert stays_in_kafka(two_misled.cluster).refused, "the run has to end first"
    two_misled.kafka.lose = True
    two_misled.step(change)
    ShortRun.objects.update(failures=removal.SILENT_READINGS)
    stays = stays_in_kafka(two_misled.cluster)
    assert (stays.refused, len(stays.left)) == ("", 1)
    epoch = two_misled.run(change).epoch
    removal.stop_runs(two_misled.cluster)
    assert two_misled.run(change).epoch == epoch + 1
    two_misled.kafka.lose = None
    two_misled.until(change, "done")
    assert stays_in_kafka(two_misled.cluster).left == ()


def test_items__are_forgotten_some_days_after_the_end(two_misled: ElectionWorld) -> None:
    change = two_misled.until(two_misled.queue(), "done")
    assert removal.forget_old_items() == 0
    ShortRun.objects.filter(request=change).update(ended_at=two_misled.clock - timedelta(days=400))
    assert removal.forget_old_items() == 2


def test_tick__hands_out_due_runs_once(two_misled: ElectionWorld) -> None:
    change = two_misled.queue()
    run = two_misled.run(change)
    assert worker.claim_due() == [run.pk]
    assert worker.claim_due() == [], "it is handed out"
    worker.hand_back([run.pk])
    assert worker.claim_due() == [run.pk]


def test_step__of_a_newer_version__leaves_the_run_alone(two_misled: ElectionWorld) -> None:
    change = two_misled.step(two_misled.queue())
    ShortRun.objects.update(format=99)
    two_misled.step(change)
    assert two_misled.run(change).error_code == ShortRunReasonCode.NEWER_FORMAT
    assert two_misled.elections == []


def test_step__fails_inside__is_told_and_tried_again(
    two_misled: ElectionWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = two_misled.step(two_misled.queue())
    with monkeypatch.context() as patch:
        patch.setattr(worker, "open_item", lambda *_: 1 / 0)
        two_misled.step(change)
    assert two_misled.run(change).error_code == ShortRunReasonCode.STEP_FAILED
    assert two_misled.until(change, "done").state == "done"


def test_copy__is_planned_for_the_cluster_of_now(
    two_misled: ElectionWorld, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    original = two_misled.draft()
    two_misled.lead("orders", 0, 1)
    with django_capture_on_commit_callbacks(execute=True):
        copy = services.copy(original, two_misled.operator)
    copy.refresh_from_db()
    assert [item.subject for item in items_of(copy)] == ["orders-1"]


def test_digest__covers_the_items(two_misled: ElectionWorld) -> None:
    one, other = two_misled.draft({"broker": 1}), two_misled.draft()
    assert one.digest
    assert one.digest != other.digest
    assert ShortItem.objects.count() == 0, "rows come into being with the run"
