"""Pause, resume, cancel, and what is asked of single rows while a run is under way.

What people ask of a run: bad input is refused with a sentence, and what is taken never disturbs the executor.

What a cancel leads to is said before it is confirmed, also after somebody gave a partition another target.

A cancel on a cluster that does not answer: an administrator gives it up, and what it owes is cleared later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import services as running
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import PartitionMove
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterRole
from kafkadash.core.messages import CodedReason, PlainReason, as_message, coded, message_text
from kafkadash.execution import commands as orders
from kafkadash.execution.command_answers import (
    CameTooLate,
    DoesNotAsk,
    ElectionNotSent,
    ElectionRefused,
    OrderAnswerCode,
)
from kafkadash.execution.commands import AsksAgain
from kafkadash.execution.engine.reasons import (
    ClusterReadOnly,
    EndedByOperatorWithNote,
    GivenUpBy,
    NoTraceOfIt,
    RowReasonCode,
    RunReasonCode,
)
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution, Move, Order, OrderType, RunOutcome, ThrottleEntry
from kafkadash.execution.pages.ending import GoesBack, goes_back, preview
from kafkadash.execution.worker import moves, step
from kafkadash.execution.worker import running as budget
from kafkadash.execution.worker.finish import SILENT_LOOKS, give_up
from kafkadash.kafka.api import DeadlineExceeded, ItemChanged, ItemError, KafkaUnreachable, TopicPartition
from kafkadash.planning.errors import ReassignmentErrorCode
from tests.execution.stored_runs import approve_as_stored
from tests.execution.worlds import OPTIONS, ROWS, World, begun, clean
from tests.factories import ReassignmentFactory
from tests.raised_codes import raises_code

pytestmark = pytest.mark.django_db


def test_pause__submits_nothing_more_and_lets_go_on_what_moves(world: World, operator: User) -> None:
    begun(world, operator)
    sent = world.arrived
    running.pause(world.change(), operator, "Traffic is high.")
    for _ in range(30):
        world.tick()
    assert world.arrived == sent
    assert {state for state, _ in world.states().values()} == {"done", "pending"}
    assert world.change().state == RequestState.PAUSED
    assert world.run().held_reasons == (PlainReason(RunReasonCode.PAUSED),)
    assert clean(world), "what nothing uses is cleared"
    assert world.run().next_at - datetime.now(UTC) > timedelta(seconds=7), "nothing moves, so it rests"

    running.resume(world.change(), operator, "It is quiet again.")
    assert world.run().next_at <= datetime.now(UTC), "it goes on at once"
    world.until(RequestState.DONE)
    assert world.run().outcome == RunOutcome.CLEAN


def test_paused_while_it_was_decided__nothing_of_it_is_sent(world: World, operator: User) -> None:
    world.queue(operator)
    world.step()
    world.passes(2)

    def pause(call: str) -> None:
        if call == "metadata" and world.change().state == RequestState.EXECUTING:
            running.pause(world.change(), operator, "Now.")

    world.kafka.before = pause
    world.step()
    assert world.kafka.sent == []
    assert {state for state, _ in world.states().values()} == {"pending"}
    assert not ThrottleEntry.objects.exists()
    assert world.run().error is None


def test_cancel__takes_back_what_moves_and_says_what_stays_done(world: World, operator: User) -> None:
    begun(world, operator)
    running.cancel(world.change(), operator, "Wrong broker.")
    world.until(RequestState.CANCELLED)
    for row in ROWS:
        state, _ = world.states()[row.name]
        replicas = world.model.partitions[row.topic, row.partition].replicas
        assert (state, replicas) in (("cancelled", row.current), ("done", row.target))
    assert not world.model.moving
    assert clean(world)
    run = world.run()
    assert (run.active, run.outcome) == (False, "")
    assert run.ended_at is not None
    assert world.audit()[-2:] == ["change.cancelled", "change.cancel_ended"]


def test_one_row_cancelled__the_run_goes_on(world: World, operator: User) -> None:
    begun(world, operator)
    moving = Move.objects.filter(state="moving").order_by("topic", "partition")[0]
    waiting = Move.objects.filter(state="pending").order_by("topic", "partition")[0]
    for move in (moving, waiting):
        ask(world, operator, OrderType.CANCEL_ROW, move)
    world.step()
    assert [order.answer for order in Order.objects.order_by("id")] == [
        PlainReason(OrderAnswerCode.CANCEL_BEGAN),
        PlainReason(OrderAnswerCode.LEFT_OUT),
    ]
    world.until(RequestState.DONE)
    assert world.run().outcome == RunOutcome.EXCEPTIONS
    for move in (moving, waiting):
        assert world.states()[str(move)] == ("cancelled", EndedByOperatorWithNote("olga", "Not this one."))
        key = move.topic, move.partition
        assert world.model.partitions[key].replicas == tuple(move.current)
    assert clean(world)


def ask(world: World, user: User, deed: OrderType, move: Move) -> Order:
    return Order.objects.create(
        execution=world.run(),
        order_type=deed,
        topic=move.topic,
        partition=move.partition,
        user=user,
        user_name=user.get_username(),
        reason="Not this one.",
    )


def answer(world: World, user: User, deed: OrderType, move: Move) -> CodedReason | None:
    order = ask(world, user, deed, move)
    world.step()
    order.refresh_from_db()
    assert order.taken_at is not None
    return order.answer


def test_one_row_cancelled_while_nothing_can_be_sent__is_cancelled_when_it_can(world: World, operator: User) -> None:
    begun(world, operator)
    move = Move.objects.filter(state="moving").order_by("topic", "partition")[0]
    ask(world, operator, OrderType.CANCEL_ROW, move)
    world.passes(2)
    world.kafka.fail["alter_reassignments"] = DeadlineExceeded(as_message("Nothing was sent."))
    world.step()
    assert world.states()[str(move)] == ("cancelling", EndedByOperatorWithNote("olga", "Not this one."))
    world.kafka.fail.clear()
    world.until(RequestState.DONE)
    assert world.states()[str(move)] == ("cancelled", EndedByOperatorWithNote("olga", "Not this one."))
    assert world.model.partitions[move.topic, move.partition].replicas == tuple(move.current)


def test_what_is_asked_wakes_a_run_that_rests(world: World, operator: User) -> None:
    begun(world, operator)
    running.pause(world.change(), operator, "Traffic is high.")
    for _ in range(30):
        world.tick()
    later = datetime.now(UTC) + timedelta(hours=1)
    waiting = Move.objects.filter(state="pending")[0]
    asked: list[Callable[[], object]] = [
        lambda: orders.order_row(
            world.change(), operator, waiting.topic, waiting.partition, "cancel_row", "Not this one."
        ),
        lambda: orders.set_throttle(world.change(), operator, "600", "It is quiet."),
        lambda: orders.set_parallel(world.change(), operator, 1, 1, "One by one."),
    ]
    for ask_it in asked:
        Execution.objects.update(next_at=later)
        ask_it()
        assert world.run().next_at <= datetime.now(UTC)


def test_row_without_trace__asks_and_does_as_it_is_told(world: World, operator: User) -> None:
    world.kafka.lose = False
    world.queue(operator)
    for _ in range(60):
        world.tick()
    asking = list(Move.objects.filter(asks=True).order_by("topic", "partition"))
    assert len(asking) >= 2
    assert world.states()[str(asking[0])][1] == NoTraceOfIt(3)
    world.kafka.lose = None
    ask(world, operator, OrderType.AGAIN, asking[0])
    ask(world, operator, OrderType.GIVE_UP, asking[1])
    for other in asking[2:]:
        ask(world, operator, OrderType.AGAIN, other)
    world.step()
    assert [order.answer for order in Order.objects.order_by("id")][:2] == [
        PlainReason(OrderAnswerCode.TAKES_ITS_TURN),
        PlainReason(OrderAnswerCode.GIVEN_UP),
    ]
    world.until(RequestState.DONE)
    assert world.states()[str(asking[0])][0] == "done"
    assert world.states()[str(asking[1])][0] == "cancelled"


def test_election_asked_for__is_answered_by_kafka(world: World, operator: User) -> None:
    begun(world, operator)
    move = Move.objects.filter(state="moving")[0]
    assert answer(world, operator, OrderType.ELECT, move) == PlainReason(OrderAnswerCode.ELECTED)
    world.kafka.refuse[TopicPartition(move.topic, move.partition)] = ItemError(as_message("Not in sync."), 80)
    assert answer(world, operator, OrderType.ELECT, move) == ElectionRefused("Not in sync.")


@pytest.mark.parametrize(
    ("elect", "expected"),
    [
        (lambda _: ItemChanged(), PlainReason(OrderAnswerCode.ELECTION_UNKNOWN)),
        (
            lambda key: ItemChanged(lost={key: ItemError(as_message("Timed out."))}),
            PlainReason(OrderAnswerCode.ELECTION_UNKNOWN),
        ),
        (mock.Mock(side_effect=KafkaUnreachable(as_message("Nobody answers."))), ElectionNotSent("Nobody answers.")),
    ],
    ids=["not named", "lost", "not sent"],
)
def test_election_without_an_answer_of_kafka__is_answered(
    world: World, operator: User, elect: Callable[[TopicPartition], object], expected: CodedReason
) -> None:
    begun(world, operator)
    move = Move.objects.filter(state="moving")[0]
    elect_leaders = mock.Mock(side_effect=lambda *_, **__: elect(TopicPartition(move.topic, move.partition)))
    with mock.patch.object(type(world.kafka), "elect_leaders", elect_leaders):
        assert answer(world, operator, OrderType.ELECT, move) == expected


def test_election_for_which_a_step_has_no_time__is_answered(world: World, operator: User) -> None:
    begun(world, operator)
    with mock.patch.object(budget, "STEP_S", 0.0):
        assert answer(world, operator, OrderType.ELECT, Move.objects.filter(state="moving")[0]) == PlainReason(
            OrderAnswerCode.ELECTION_NO_TIME
        )


def test_order_for_a_row_that_is_not_there__is_answered(world: World, operator: User) -> None:
    begun(world, operator)
    assert answer(world, operator, OrderType.CANCEL_ROW, Move(topic="orders", partition=99)) == PlainReason(
        OrderAnswerCode.NO_ROW
    )


def test_order_for_a_row_that_does_not_ask__is_answered(world: World, operator: User) -> None:
    begun(world, operator)
    moving = Move.objects.filter(state="moving")[0]
    assert answer(world, operator, OrderType.GIVE_UP, moving) == DoesNotAsk("moving")


def test_order_after_all_rows_have_ended__is_answered(world: World, operator: User) -> None:
    begun(world, operator)
    move = Move.objects.filter(state="moving")[0]
    world.until(RequestState.VERIFYING)
    assert answer(world, operator, OrderType.CANCEL_ROW, move) == CameTooLate("done")


def test_order_during_the_last_step__is_answered(world: World, operator: User) -> None:
    """The step has looked for orders by then."""
    begun(world, operator)
    move = Move.objects.filter(state="moving")[0]
    world.until(RequestState.VERIFYING)

    def client(_: object) -> object:
        ask(world, operator, OrderType.CANCEL_ROW, move)
        return world.kafka

    with mock.patch.object(step, "client_of", client):
        world.until(RequestState.DONE)
    assert Order.objects.latest("id").answer == PlainReason(OrderAnswerCode.RUN_ENDED)


def test_asked_for_again_while_all_is_cancelled__is_answered(world: World, operator: User) -> None:
    begun(world, operator)
    running.cancel(world.change(), operator, "Wrong broker.")
    late = ask(world, operator, OrderType.AGAIN, Move.objects.filter(state="moving")[0])
    world.until(RequestState.CANCELLED)
    late.refresh_from_db()
    assert late.taken_at is not None
    assert late.answer == PlainReason(OrderAnswerCode.RUN_IS_CANCELLED)


def test_request_comes_late_after_a_cancel__is_cancelled_again_and_told(world: World, operator: User) -> None:
    begun(world, operator)
    world.kafka.lose = False
    world.tick()
    late = Move.objects.filter(state__in=["unknown", "submitting"]).first()
    if late is None:
        for _ in range(20):
            world.tick()
            late = Move.objects.filter(state__in=["unknown", "submitting"]).first()
            if late is not None:
                break
    assert late is not None
    world.kafka.lose = None
    running.cancel(world.change(), operator, "Wrong broker.")
    world.tick()
    world.model.submit((late.topic, late.partition), tuple(late.target))
    world.until(RequestState.CANCELLED)
    assert world.model.partitions[late.topic, late.partition].replicas == tuple(late.current)
    assert clean(world)


def test_read_only_meanwhile__submits_nothing_more_and_ends_what_moves(world: World, operator: User) -> None:
    begun(world, operator)
    sent = world.arrived
    world.cluster.read_only = True
    world.cluster.save()
    for _ in range(30):
        world.tick()
    assert world.arrived == sent
    assert {state for state, _ in world.states().values()} == {"done", "pending"}
    assert world.run().held_reasons[0] == ClusterReadOnly(world.cluster.name)
    world.cluster.read_only = False
    world.cluster.save()
    world.until(RequestState.DONE)


WHY = "checkout p99 at 900 ms"
IN_FORCE = OPTIONS.throttle


@pytest.fixture
def runs(world: World, operator: User) -> ChangeRequest:
    world.queue(operator)
    return world.until(RequestState.EXECUTING)


def rate(world: World) -> int:
    return world.run().throttle


def event(change: ChangeRequest, action: str) -> AuditEvent:
    return AuditEvent.objects.get(action=f"change.{action}", object_id=str(change.pk))


def after(change: ChangeRequest, action: str) -> Mapping[str, Any]:
    told: Mapping[str, Any] = event(change, action).after or {}
    return told


class TestThrottle:
    @pytest.mark.parametrize(
        ("typed", "code"),
        [
            ("0", ReassignmentErrorCode.RATE_ZERO),
            ("0.0000001", ReassignmentErrorCode.RATE_ZERO),
            ("-5", ReassignmentErrorCode.RATE_NEGATIVE),
            ("−5", ReassignmentErrorCode.RATE_NEGATIVE),
            ("", ReassignmentErrorCode.RATE_MISSING),
            ("fast", ReassignmentErrorCode.RATE_NO_NUMBER),
            ("1e3", ReassignmentErrorCode.RATE_NO_NUMBER),
            ("NaN", ReassignmentErrorCode.RATE_NO_NUMBER),
            ("6O", ReassignmentErrorCode.RATE_NO_NUMBER),
            ("60;DROP", ReassignmentErrorCode.RATE_NO_NUMBER),
            ("60,5", ReassignmentErrorCode.RATE_NO_NUMBER),
            ("٦٠", ReassignmentErrorCode.RATE_NO_NUMBER),
            ("9" * 40, ReassignmentErrorCode.RATE_NO_NUMBER),
            ("60000000", ReassignmentErrorCode.RATE_TOO_LARGE),
        ],
    )
    def test_what_is_no_rate_is_refused(
        self, typed: str, code: ReassignmentErrorCode, world: World, runs: ChangeRequest, operator: User
    ) -> None:
        with raises_code(code, ChangeRefused):
            orders.set_throttle(runs, operator, typed, WHY, twice=True, force=True)
        assert rate(world) == IN_FORCE

    @pytest.mark.parametrize("typed", ["49.999999", "1000.000001", "0.01"])
    def test_outside_of_what_was_approved_needs_a_new_approval(
        self, typed: str, world: World, runs: ChangeRequest, operator: User
    ) -> None:
        with raises_code(ReassignmentErrorCode.RATE_NOT_APPROVED, ChangeRefused, least="50", most="1000"):
            orders.set_throttle(runs, operator, typed, WHY, twice=True, force=True)
        assert rate(world) == IN_FORCE

    def test_a_higher_rate_is_in_force_at_once_with_its_audit(
        self, world: World, runs: ChangeRequest, operator: User
    ) -> None:
        assert orders.set_throttle(runs, operator, "600", WHY) == 600_000_000
        assert rate(world) == 600_000_000
        told = event(runs, "throttle_changed")
        assert (told.before, told.after) == ({"throttle": IN_FORCE}, {"throttle": 600_000_000})
        assert (told.actor_name, told.reason) == (operator.username, WHY)

    def test_the_next_step_takes_it_up(self, world: World, runs: ChangeRequest, operator: User) -> None:
        world.tick()
        orders.set_throttle(runs, operator, "600", WHY)
        world.tick()
        assert rate(world) == 600_000_000, "the executor writes the other columns only"
        rates = {value for own in world.kafka.configs.values() for key, value in own.items() if key.endswith(".rate")}
        assert rates == {"600000000"}

    def test_a_lower_rate_is_asked_for_while_inbound_is_not_known(
        self, world: World, runs: ChangeRequest, operator: User
    ) -> None:
        with pytest.raises(AsksAgain) as asked:
            orders.set_throttle(runs, operator, "60", WHY)
        assert {name: ask.code for name, ask in asked.value.asks.items()} == {
            "force": ReassignmentErrorCode.RATE_INBOUND_UNKNOWN
        }
        assert rate(world) == IN_FORCE
        assert orders.set_throttle(runs, operator, "60", WHY, force=True) == 60_000_000
        assert after(runs, "throttle_changed")["confirmed"] == [str(asked.value)]

    @pytest.mark.parametrize(("least", "asks"), [(59_000_000.0, False), (60_000_000.0, True), (90_000_000.0, True)])
    def test_a_rate_that_is_not_above_inbound_is_refused_unless_forced(
        self,
        least: float,
        asks: bool,
        world: World,
        runs: ChangeRequest,
        operator: User,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(orders, "inbound_of", lambda _run: (least, "Producers write that much."))
        if asks:
            with pytest.raises(AsksAgain, match="the run could never finish"):
                orders.set_throttle(runs, operator, "60", WHY)
            assert rate(world) == IN_FORCE
        assert orders.set_throttle(runs, operator, "60", WHY, force=asks) == 60_000_000

    def test_under_one_megabyte_is_asked_twice(self, world: World, runs: ChangeRequest, operator: User) -> None:
        ChangeRequest.objects.update(options={**world.change().options, "throttle_min": 1})
        approve_as_stored(world.change())
        with pytest.raises(AsksAgain, match=r"0.01 MB/s \(10,000 bytes/s\) is less than 1 MB/s") as asked:
            orders.set_throttle(runs, operator, "0.01", WHY)
        assert asked.value.asks.keys() == {"twice", "force"}
        with pytest.raises(AsksAgain) as still:
            orders.set_throttle(runs, operator, "0.01", WHY, force=True)
        assert still.value.asks.keys() == {"twice"}
        assert orders.set_throttle(runs, operator, "0.01", WHY, twice=True, force=True) == 10_000

    def test_is_refused_where_the_approved_bounds_were_altered(
        self, world: World, runs: ChangeRequest, operator: User
    ) -> None:
        ChangeRequest.objects.update(options={**world.change().options, "throttle_max": 5_000_000_000})
        with pytest.raises(ChangeRefused) as caught:
            orders.set_throttle(runs, operator, "2000", WHY)
        assert str(caught.value) == message_text(ChangeErrorCode.CONTENT_ALTERED, name=f"#{runs.pk}")
        assert rate(world) == IN_FORCE

    def test_the_same_rate_is_nothing_new(self, world: World, runs: ChangeRequest, operator: User) -> None:
        assert orders.set_throttle(runs, operator, "500", WHY) == IN_FORCE
        assert not AuditEvent.objects.filter(action="change.throttle_changed").exists()

    def test_who_saw_another_rate_is_told_who_changed_it(
        self, world: World, runs: ChangeRequest, operator: User
    ) -> None:
        orders.set_throttle(runs, operator, "600", WHY)
        with pytest.raises(ChangedMeanwhile, match=f"{operator.username} set the throttle to 600 MB/s on"):
            orders.set_throttle(runs, operator, "700", WHY, seen=IN_FORCE)
        assert rate(world) == 600_000_000

    def test_who_saw_a_rate_that_nobody_set_is_told_so(self, runs: ChangeRequest, operator: User) -> None:
        with pytest.raises(ChangedMeanwhile) as refused:
            orders.set_throttle(runs, operator, "600", WHY, seen=IN_FORCE - 1)
        assert str(refused.value) == message_text(ReassignmentErrorCode.RATE_CHANGED, now="500")

    def test_somebody_else_is_quicker(self, world: World, runs: ChangeRequest, operator: User) -> None:
        def meanwhile(_run: Execution, _wanted: int) -> dict[str, str]:
            Execution.objects.update(throttle=71_000_000)
            return {}

        with mock.patch.object(orders, "_questions", meanwhile), pytest.raises(ChangedMeanwhile) as refused:
            orders.set_throttle(runs, operator, "400", WHY)
        assert refused.value.code == ReassignmentErrorCode.LIMITS_CHANGED

    def test_it_needs_a_reason_the_role_and_a_cluster_that_takes_changes(
        self, world: World, runs: ChangeRequest, operator: User, approver: User
    ) -> None:
        with raises_code(ReassignmentErrorCode.ORDER_REASON, ChangeRefused):
            orders.set_throttle(runs, operator, "600", "  ")
        with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, roles="operator"):
            orders.set_throttle(runs, approver, "600", WHY)
        Cluster.objects.update(read_only=True)
        with raises_code(ClusterErrorCode.READ_ONLY, ChangeRefused):
            orders.set_throttle(runs, operator, "600", WHY)
        Cluster.objects.update(read_only=False)
        ClusterRole.objects.filter(user=operator).delete()
        with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused):
            orders.set_throttle(runs, operator, "600", WHY)
        assert rate(world) == IN_FORCE

    def test_while_it_is_queued_it_is_changed_too_and_after_its_end_not(self, world: World, operator: User) -> None:
        queued = world.queue(operator)
        assert orders.set_throttle(queued, operator, "600", WHY) == 600_000_000
        world.until(RequestState.DONE)
        with raises_code(ReassignmentErrorCode.LIMITS_MATTER_NO_MORE, ChangeRefused, state="done"):
            orders.set_throttle(queued, operator, "700", WHY)

    def test_no_row_of_a_request_is_locked(self, world: World, runs: ChangeRequest, operator: User) -> None:
        with CaptureQueriesContext(
            connection,
        ) as told:
            orders.set_throttle(runs, operator, "600", WHY)
        assert not [one["sql"] for one in told if "FOR NO KEY UPDATE" in one["sql"] or "FOR UPDATE" in one["sql"]]


class TestParallel:
    def test_fewer_than_approved_and_back(self, world: World, runs: ChangeRequest, operator: User) -> None:
        orders.set_parallel(runs, operator, 1, 2, WHY)
        run = world.run()
        assert (run.per_broker, run.per_cluster) == (1, 2)
        told = event(runs, "parallel_changed")
        assert (told.before, told.after) == (
            {"per_broker": 5, "per_cluster": 50},
            {"per_broker": 1, "per_cluster": 2},
        )
        orders.set_parallel(runs, operator, 5, 50, WHY)

    @pytest.mark.parametrize(
        ("per_broker", "per_cluster", "field", "code"),
        [
            (0, 50, "per_broker", ReassignmentErrorCode.MOVES_TOO_FEW),
            (5, 0, "per_cluster", ReassignmentErrorCode.MOVES_TOO_FEW),
            (-1, 50, "per_broker", ReassignmentErrorCode.MOVES_TOO_FEW),
            (6, 50, "per_broker", ReassignmentErrorCode.MOVES_NOT_APPROVED),
            (5, 51, "per_cluster", ReassignmentErrorCode.MOVES_NOT_APPROVED),
        ],
    )
    def test_what_is_none_or_more_than_approved_is_refused(
        self,
        per_broker: int,
        per_cluster: int,
        field: str,
        code: ReassignmentErrorCode,
        world: World,
        runs: ChangeRequest,
        operator: User,
    ) -> None:
        with raises_code(code, orders.WrongField) as refused:
            orders.set_parallel(runs, operator, per_broker, per_cluster, WHY)
        assert refused.value.field == field
        assert (world.run().per_broker, world.run().per_cluster) == (5, 50)


class TestRows:
    def test_a_row_is_cancelled_by_the_next_step(self, world: World, runs: ChangeRequest, operator: User) -> None:
        order = orders.order_row(runs, operator, "orders", 0, "cancel_row", WHY)
        assert orders.order_row(runs, operator, "orders", 0, "cancel_row", WHY) == order, "the same one again"
        assert event(runs, "ordered").after == {"order_type": "cancel_row", "topic": "orders", "partition": 0}
        world.until(RequestState.DONE)
        assert world.states()["orders-0"][0] == RowState.CANCELLED
        order.refresh_from_db()
        assert order.taken_at is not None
        assert order.answer

    @pytest.mark.parametrize(
        ("topic", "partition", "deed", "code"),
        [
            ("orders", 99, "cancel_row", ReassignmentErrorCode.NO_SUCH_ROW),
            ("nope", 0, "cancel_row", ReassignmentErrorCode.NO_SUCH_ROW),
            ("orders", 0, "drop", ReassignmentErrorCode.NO_SUCH_DEED),
            ("orders", 0, "leave_throttle", ReassignmentErrorCode.NO_SUCH_DEED),
            ("orders", 0, "again", ReassignmentErrorCode.ROW_DOES_NOT_ASK),
            ("orders", 0, "give_up", ReassignmentErrorCode.ROW_DOES_NOT_ASK),
        ],
    )
    def test_what_cannot_be_asked_is_refused(
        self, topic: str, partition: int, deed: str, code: ReassignmentErrorCode, runs: ChangeRequest, operator: User
    ) -> None:
        with raises_code(code, ChangeRefused):
            orders.order_row(runs, operator, topic, partition, deed, WHY)
        assert not Order.objects.exists()

    @pytest.mark.parametrize("end", [RequestState.DONE, RequestState.CANCELLED])
    def test_asked_in_the_instant_in_which_the_run_ends_it_is_refused(
        self, end: RequestState, world: World, runs: ChangeRequest, operator: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its last step is stored after the order was found to be possible, and before it is written."""
        if end == RequestState.CANCELLED:
            Move.objects.filter(topic="orders", partition=0).update(asks=True)

        def ends(*_: Any) -> None:
            if end == RequestState.CANCELLED:
                running.cancel(runs, operator, "Wrong broker.")
            world.until(end)

        monkeypatch.setattr(orders, "_refuse_row", ends)
        with raises_code(ReassignmentErrorCode.ENDED_MEANWHILE, ChangedMeanwhile):
            orders.order_row(runs, operator, "orders", 0, "give_up", WHY)
        assert not Order.objects.exists()
        assert not AuditEvent.objects.filter(action="change.ordered").exists()

    def test_a_row_that_asks_is_answered(self, world: World, runs: ChangeRequest, operator: User) -> None:
        Move.objects.filter(topic="orders", partition=0).update(asks=True, state=RowState.UNKNOWN)
        assert orders.order_row(runs, operator, "orders", 0, "again", WHY).order_type == OrderType.AGAIN
        running.pause(runs, operator, "Wait.")
        with raises_code(ReassignmentErrorCode.NOTHING_IS_SUBMITTED, ChangeRefused, state="paused"):
            orders.order_row(runs, operator, "orders", 0, "again", WHY)

    def test_what_has_ended_is_not_cancelled(self, runs: ChangeRequest, operator: User) -> None:
        Move.objects.filter(topic="orders", partition=0).update(state=RowState.DONE)
        Move.objects.filter(topic="orders", partition=1).update(state=RowState.CANCELLING)
        with raises_code(ReassignmentErrorCode.ROW_HAS_ENDED, ChangeRefused, state="completed", match="orders-0"):
            orders.order_row(runs, operator, "orders", 0, "cancel_row", WHY)
        with raises_code(ReassignmentErrorCode.ROW_BEING_CANCELLED, ChangeRefused, match="orders-1"):
            orders.order_row(runs, operator, "orders", 1, "cancel_row", WHY)

    def test_on_a_read_only_cluster_rows_are_ended_and_nothing_else(
        self, runs: ChangeRequest, operator: User, approver: User
    ) -> None:
        Cluster.objects.update(read_only=True)
        with raises_code(ClusterErrorCode.READ_ONLY, ChangeRefused):
            orders.order_row(runs, operator, "orders", 0, "elect", WHY)
        with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, roles="operator"):
            orders.order_row(runs, approver, "orders", 0, "cancel_row", WHY)
        assert orders.order_row(runs, operator, "orders", 0, "cancel_row", WHY).user == operator

    def test_a_run_that_is_cancelled_takes_none(self, runs: ChangeRequest, operator: User) -> None:
        running.cancel(runs, operator, "Wrong broker.")
        with raises_code(ReassignmentErrorCode.CANCELLED_AS_A_WHOLE, ChangeRefused):
            orders.order_row(runs, operator, "orders", 0, "cancel_row", WHY)

    def test_what_is_queued_or_was_never_started_has_no_rows(
        self, world: World, operator: User, make_user: Callable[..., User]
    ) -> None:
        queued = world.queue(operator)
        with raises_code(ReassignmentErrorCode.NOTHING_UNDER_WAY, ChangeRefused, state="queued"):
            orders.order_row(queued, operator, "orders", 0, "cancel_row", WHY)
        world.run().delete()
        with raises_code(ReassignmentErrorCode.NO_RUN, ChangeRefused):
            orders.order_row(queued, operator, "orders", 0, "cancel_row", WHY)


class TestForeign:
    ENTITY = "broker 4 leader.replication.throttled.rate"

    def test_what_is_done_about_a_throttle_of_others(self, world: World, runs: ChangeRequest, operator: User) -> None:
        key = "leader.replication.throttled.rate"
        foreign = [{"resource": "broker", "name": "4", "key": key, "value": "10", "ours": "60", "at": ""}]
        type(world.run()).objects.update(foreign=foreign)
        order = orders.throttle_owner(runs, operator, self.ENTITY, "leave_throttle", WHY)
        assert (order.order_type, order.entity) == (OrderType.LEAVE_THROTTLE, self.ENTITY)
        assert event(runs, "ordered").after == {"order_type": "leave_throttle", "entity": self.ENTITY}

    def test_one_that_is_not_there_any_more_is_said(self, runs: ChangeRequest, operator: User) -> None:
        with raises_code(ReassignmentErrorCode.NO_FOREIGN_THROTTLE, ChangeRefused, match="broker 4"):
            orders.throttle_owner(runs, operator, self.ENTITY, "set_throttle", WHY)
        with raises_code(ReassignmentErrorCode.NO_SUCH_DEED, ChangeRefused):
            orders.throttle_owner(runs, operator, self.ENTITY, "cancel_row", WHY)


@pytest.fixture
def run(world: World, operator: User) -> Execution:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    return world.run()


def row(run: Execution, listed: dict[str, Any] | None = None) -> GoesBack:
    """Of orders-0, which moves 1, 2, 3 → 1, 2, 6."""
    if listed is not None:
        ReassignmentFactory.create(cluster=run.cluster, topic="orders", partition=0, **listed)
    (found,) = goes_back(run, [Move.objects.get(execution=run, topic="orders", partition=0)])
    return found


def test_a_plain_move_goes_back_to_its_original_replicas_in_order(run: Execution) -> None:
    listed = {"replicas": [1, 2, 6, 3], "adding": [6], "removing": [3], "target": [1, 2, 6]}
    found = row(run, listed)
    assert (found.ours, found.other, list(found.leaves)) == (True, False, [1, 2, 3])
    assert found.seen is not None


def test_one_that_was_not_seen_yet_says_so(run: Execution) -> None:
    found = row(run)
    assert (found.seen, found.ours, list(found.leaves)) == (None, True, [1, 2, 3])
    seen = ReassignmentFactory.build(replicas=[1, 2, 6, 3], adding=[6], removing=[3], target=[1, 2, 6])
    assert found.sentence != replace(found, seen=seen).sentence


def test_after_a_retarget_it_can_be_a_larger_set(run: Execution) -> None:
    """Somebody moved it to 1, 2, 5 and then to our target: 5 is in the replicas, and no longer among the added."""
    listed = {"replicas": [1, 2, 6, 3, 5], "adding": [6], "removing": [3, 5], "target": [1, 2, 6]}
    found = row(run, listed)
    assert (found.ours, found.other, list(found.leaves), found.more) == (True, True, [1, 2, 3, 5], [5])
    code = ReassignmentErrorCode.CANCEL_LEAVES_OTHERS
    assert found.sentence == message_text(code, there="1, 2, 3, 5", original="1, 2, 3")


def test_what_somebody_else_targets_is_not_ours_to_cancel(run: Execution) -> None:
    listed = {"replicas": [1, 2, 5, 3], "adding": [5], "removing": [3], "target": [1, 2, 5]}
    found = row(run, listed)
    assert not found.ours
    assert found.sentence == message_text(ReassignmentErrorCode.NOT_OURS_TO_CANCEL, target="1, 2, 5")


def test_a_change_of_order_is_put_back(run: Execution) -> None:
    Move.objects.filter(topic="orders", partition=0).update(target=[2, 1, 3])
    found = row(run)
    assert (found.ours, found.other, list(found.leaves)) == (True, False, [1, 2, 3])
    assert "1, 2, 3" in found.sentence


def test_it_says_what_stays_and_what_is_not_started(run: Execution) -> None:
    Move.objects.update(state=RowState.PENDING)
    Move.objects.filter(topic="orders", partition__in=(0, 1)).update(state=RowState.MOVING)
    Move.objects.filter(topic="orders", partition=2).update(state=RowState.DONE)
    Move.objects.filter(topic="orders", partition=4).update(state=RowState.SKIPPED)
    found = preview(run, None)
    assert (found.flight, found.done, found.waiting, found.ended) == (2, 1, 2, 1)
    figures = [re.findall(r"\d+ (?:\w+ )?moves?", sentence) for sentence in found.sentences]
    assert figures == [["2 moves"], ["1 completed move"], ["2 waiting moves"], ["1 move"], []]
    assert [each.name for each in found.rows] == ["orders-0", "orders-1"]


def test_cancelled_the_cluster_is_as_the_preview_said(world: World, run: Execution, operator: User) -> None:
    said = {each.name: list(each.leaves) for each in preview(run, None).rows}
    assert said
    running.cancel(world.change(), operator, "Wrong broker.")
    world.until(RequestState.CANCELLED)
    for topic_row in ROWS:
        name = topic_row.name
        if world.states()[name][0] == RowState.CANCELLED and name in said:
            assert list(world.model.partitions[topic_row.topic, topic_row.partition].replicas) == said[name]


WHY_GIVEN_UP = "The cluster burned down."


@pytest.fixture
def silent(world: World, operator: User) -> World:
    """Moves are in flight and being cancelled, and nothing answers for 20 looks and 11 minutes."""
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    assert world.model.moving
    world.kafka.fail["list_reassignments"] = DeadlineExceeded(as_message("No answer within 8 s."))
    running.cancel(world.change(), operator, "Wrong broker.")
    for _ in range(SILENT_LOOKS):
        world.step()
    Execution.objects.update(looked_at=datetime.now(UTC) - timedelta(minutes=11))
    return world


def test_given_up__it_owes_its_throttles_until_the_cluster_answers_again(
    silent: World, admin: User, operator: User
) -> None:
    moving = {f"{topic}-{partition}" for topic, partition in silent.model.moving}
    owed = ThrottleEntry.objects.exclude(state="cleared").count()
    Cluster.objects.update(read_only=True)
    give_up(silent.change(), admin, WHY_GIVEN_UP)
    run = silent.run()
    assert (silent.change().state, run.active, run.error) == ("failed", False, GivenUpBy("adam", WHY_GIVEN_UP))
    assert {name for name, (state, _) in silent.states().items() if state == "unknown"} == moving
    assert {state for name, (state, _) in silent.states().items() if name not in moving} <= {"cancelled", "done"}
    assert len(run.report["obligations"]) == owed
    event = AuditEvent.objects.get(action="change.failed")
    assert (event.actor_name, event.reason) == ("adam", WHY_GIVEN_UP)
    assert event.after is not None
    assert (event.after["unknown_rows"], event.after["obligations"]) == (len(moving), owed)
    with raises_code(ChangeErrorCode.CHANGED_MEANWHILE, ChangedMeanwhile, match="adam"):
        give_up(silent.change(), admin, WHY_GIVEN_UP)

    silent.step()
    assert ThrottleEntry.objects.exclude(state="cleared").count() == owed, "it does not answer yet"
    silent.kafka.fail.clear()
    silent.passes(600)
    silent.step()
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
    assert not any(value for own in silent.kafka.configs.values() for value in own.values())
    settled = AuditEvent.objects.get(action="change.throttle_settled")
    assert settled.why == coded(ReassignmentErrorCode.CLEARED_READ_ONLY, cluster="demo")
    Cluster.objects.update(read_only=False)
    number = silent.queue(operator, [PartitionMove("clicks", "id-of-clicks", 1, (1, 2), (1, 5))]).pk
    silent.until(RequestState.DONE, number=number)


def test_a_cluster_that_may_still_answer__is_waited_for(silent: World, admin: User, operator: User) -> None:
    with raises_code(ReassignmentErrorCode.GIVE_UP_REASON, ChangeRefused):
        give_up(silent.change(), admin, "  ")
    with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, cluster="demo", roles="admin"):
        give_up(silent.change(), operator, WHY_GIVEN_UP)
    for fields in ({"failures": SILENT_LOOKS - 1}, {"looked_at": datetime.now(UTC) - timedelta(minutes=9)}):
        before = Execution.objects.values(*fields).get()
        Execution.objects.update(**fields)
        with pytest.raises(ChangeRefused, match="may still answer; the cancellation then ends automatically"):
            give_up(silent.change(), admin, WHY_GIVEN_UP)
        Execution.objects.update(**before)
    assert silent.change().state == RequestState.CANCELLING
    silent.kafka.fail.clear()
    silent.until(RequestState.CANCELLED)


def test_a_run_that_is_not_cancelled__is_not_given_up(world: World, operator: User, admin: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    Execution.objects.update(looked_at=datetime.now(UTC) - timedelta(hours=1), failures=SILENT_LOOKS)
    with pytest.raises(ChangeRefused, match=r"changed while you had it open|only a run that is being cancelled"):
        give_up(world.change(), admin, WHY_GIVEN_UP)


def test_given_up_while_a_step_looks__the_step_writes_and_sends_nothing(silent: World, admin: User) -> None:
    """It answers in the very step in which it is given up."""
    silent.kafka.fail.clear()
    sent = list(silent.kafka.sent)

    def given_up(call: str) -> None:
        if call == "metadata":
            silent.kafka.before = lambda _: None
            give_up(silent.change(), admin, WHY_GIVEN_UP)

    silent.kafka.before = given_up
    silent.step()
    assert silent.kafka.sent == sent
    assert silent.change().state == RequestState.FAILED
    assert "unknown" in {state for state, _ in silent.states().values()}


def test_rows_that_wait__end_in_portions(silent: World, admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkadash.execution.worker.finish.AT_ONCE", 2)
    assert moves.AT_ONCE > 2
    Move.objects.filter(topic="orders").update(state="pending")
    give_up(silent.change(), admin, WHY_GIVEN_UP)
    ends = {name: end for name, end in silent.states().items() if name.startswith("orders")}
    assert set(ends.values()) == {("cancelled", PlainReason(RowReasonCode.CANCELLED_BEFORE))}
