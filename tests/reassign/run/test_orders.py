"""What people ask of a run: bad input is refused with a sentence, and what is taken never disturbs the executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import running
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.clusters.models import Cluster, ClusterRole
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import message_text
from kafkadash.reassign.models import Deed, Move, Order
from kafkadash.reassign.run import orders
from kafkadash.reassign.run.orders import AsksAgain
from tests.reassign.run.runs import OPTIONS, World
from tests.reassign.runs import approve_as_stored

pytestmark = pytest.mark.django_db
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
        ("typed", "sentence"),
        [
            ("0", "With a throttle of 0 nothing would ever arrive."),
            ("0.0000001", "With a throttle of 0 nothing would ever arrive."),
            ("-5", "A throttle is above 0"),
            ("−5", "A throttle is above 0"),
            ("", "Give a number of MB/s"),
            ("fast", "“fast” is not a number."),
            ("1e3", "is not a number"),
            ("NaN", "is not a number"),
            ("6O", "is not a number"),
            ("60;DROP", "is not a number"),
            ("60,5", "is not a number"),
            ("٦٠", "is not a number"),
            ("9" * 40, "is not a number"),
            ("60000000", "no broker reaches"),
        ],
    )
    def test_what_is_no_rate_is_refused(
        self, typed: str, sentence: str, world: World, runs: ChangeRequest, operator: User
    ) -> None:
        with pytest.raises(Refused, match=sentence):
            orders.set_throttle(runs, operator, typed, WHY, twice=True, force=True)
        assert rate(world) == IN_FORCE

    @pytest.mark.parametrize("typed", ["49.999999", "1000.000001", "0.01"])
    def test_outside_of_what_was_approved_needs_a_new_approval(
        self, typed: str, world: World, runs: ChangeRequest, operator: User
    ) -> None:
        with pytest.raises(Refused, match=r"between 50 and 1000 MB/s, as it was approved. .* needs a new approval"):
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
        with pytest.raises(AsksAgain, match=r"not known.*Lower it all the same?") as asked:
            orders.set_throttle(runs, operator, "60", WHY)
        assert asked.value.asks.keys() == {"force"}
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
        with pytest.raises(Refused) as caught:
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
        with pytest.raises(Changed, match=f"{operator.username} set the throttle to 600 MB/s on"):
            orders.set_throttle(runs, operator, "700", WHY, seen=IN_FORCE)
        assert rate(world) == 600_000_000

    def test_it_needs_a_reason_the_role_and_a_cluster_that_takes_changes(
        self, world: World, runs: ChangeRequest, operator: User, approver: User
    ) -> None:
        with pytest.raises(Refused, match="Say why"):
            orders.set_throttle(runs, operator, "600", "  ")
        with pytest.raises(Refused, match="you need the role operator"):
            orders.set_throttle(runs, approver, "600", WHY)
        Cluster.objects.update(read_only=True)
        with pytest.raises(Refused, match="is read-only"):
            orders.set_throttle(runs, operator, "600", WHY)
        Cluster.objects.update(read_only=False)
        ClusterRole.objects.filter(user=operator).delete()
        with pytest.raises(Refused, match="which you do not have now"):
            orders.set_throttle(runs, operator, "600", WHY)
        assert rate(world) == IN_FORCE

    def test_while_it_is_queued_it_is_changed_too_and_after_its_end_not(self, world: World, operator: User) -> None:
        queued = world.queue(operator)
        assert orders.set_throttle(queued, operator, "600", WHY) == 600_000_000
        world.until(RequestState.DONE)
        with pytest.raises(Refused, match="is done: its limits matter no more"):
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
        ("per_broker", "per_cluster", "sentence"),
        [
            (0, 50, "At least one move at once per broker"),
            (5, 0, "At least one move at once in the whole run"),
            (-1, 50, "At least one"),
            (6, 50, "up to 5 moves at once per broker and direction, as it was approved"),
            (5, 51, "up to 50 moves at once in the whole run, as it was approved"),
        ],
    )
    def test_what_is_none_or_more_than_approved_is_refused(
        self, per_broker: int, per_cluster: int, sentence: str, world: World, runs: ChangeRequest, operator: User
    ) -> None:
        with pytest.raises(Refused, match=sentence):
            orders.set_parallel(runs, operator, per_broker, per_cluster, WHY)
        assert (world.run().per_broker, world.run().per_cluster) == (5, 50)


class TestRows:
    def test_a_row_is_cancelled_by_the_next_step(self, world: World, runs: ChangeRequest, operator: User) -> None:
        order = orders.row(runs, operator, "orders", 0, "cancel_row", WHY)
        assert orders.row(runs, operator, "orders", 0, "cancel_row", WHY) == order, "the same one again"
        assert event(runs, "ordered").after == {"deed": "cancel_row", "topic": "orders", "partition": 0}
        world.until(RequestState.DONE)
        assert world.states()["orders-0"][0] == RowState.CANCELLED
        order.refresh_from_db()
        assert order.taken_at is not None
        assert order.answer

    @pytest.mark.parametrize(
        ("topic", "partition", "deed", "sentence"),
        [
            ("orders", 99, "cancel_row", "orders-99 is not moved by"),
            ("nope", 0, "cancel_row", "nope-0 is not moved by"),
            ("orders", 0, "drop", "“drop” is nothing that can be done here"),
            ("orders", 0, "leave_throttle", "is nothing that can be done here"),
            ("orders", 0, "again", "orders-0 does not ask for anything now"),
            ("orders", 0, "give_up", "orders-0 does not ask for anything now"),
        ],
    )
    def test_what_cannot_be_asked_is_refused(
        self, topic: str, partition: int, deed: str, sentence: str, runs: ChangeRequest, operator: User
    ) -> None:
        with pytest.raises(Refused, match=sentence):
            orders.row(runs, operator, topic, partition, deed, WHY)
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
        with pytest.raises(Changed, match="ended while you read it: nothing of it is under way"):
            orders.row(runs, operator, "orders", 0, "give_up", WHY)
        assert not Order.objects.exists()
        assert not AuditEvent.objects.filter(action="change.ordered").exists()

    def test_a_row_that_asks_is_answered(self, world: World, runs: ChangeRequest, operator: User) -> None:
        Move.objects.filter(topic="orders", partition=0).update(asks=True, state=RowState.UNKNOWN)
        assert orders.row(runs, operator, "orders", 0, "again", WHY).deed == Deed.AGAIN
        running.pause(runs, operator, "Wait.")
        with pytest.raises(Refused, match="is paused: nothing is submitted"):
            orders.row(runs, operator, "orders", 0, "again", WHY)

    def test_what_has_ended_is_not_cancelled(self, runs: ChangeRequest, operator: User) -> None:
        Move.objects.filter(topic="orders", partition=0).update(state=RowState.DONE)
        Move.objects.filter(topic="orders", partition=1).update(state=RowState.CANCELLING)
        with pytest.raises(Refused, match="orders-0 has ended: done"):
            orders.row(runs, operator, "orders", 0, "cancel_row", WHY)
        with pytest.raises(Refused, match="orders-1 is being cancelled already"):
            orders.row(runs, operator, "orders", 1, "cancel_row", WHY)

    def test_on_a_read_only_cluster_rows_are_ended_and_nothing_else(
        self, runs: ChangeRequest, operator: User, approver: User
    ) -> None:
        Cluster.objects.update(read_only=True)
        with pytest.raises(Refused, match="is read-only"):
            orders.row(runs, operator, "orders", 0, "elect", WHY)
        with pytest.raises(Refused, match="you need the role operator"):
            orders.row(runs, approver, "orders", 0, "cancel_row", WHY)
        assert orders.row(runs, operator, "orders", 0, "cancel_row", WHY).user == operator

    def test_a_run_that_is_cancelled_takes_none(self, runs: ChangeRequest, operator: User) -> None:
        running.cancel(runs, operator, "Wrong broker.")
        with pytest.raises(Refused, match="is being cancelled as a whole"):
            orders.row(runs, operator, "orders", 0, "cancel_row", WHY)

    def test_what_is_queued_or_was_never_started_has_no_rows(
        self, world: World, operator: User, make_user: Callable[..., User]
    ) -> None:
        queued = world.queue(operator)
        with pytest.raises(Refused, match="is queued: nothing of it is under way"):
            orders.row(queued, operator, "orders", 0, "cancel_row", WHY)
        world.run().delete()
        with pytest.raises(Refused, match="has no run: it was not started"):
            orders.row(queued, operator, "orders", 0, "cancel_row", WHY)


class TestForeign:
    ENTITY = "broker 4 leader.replication.throttled.rate"

    def test_what_is_done_about_a_throttle_of_others(self, world: World, runs: ChangeRequest, operator: User) -> None:
        key = "leader.replication.throttled.rate"
        foreign = [{"resource": "broker", "name": "4", "key": key, "value": "10", "ours": "60", "at": ""}]
        type(world.run()).objects.update(foreign=foreign)
        order = orders.throttle_owner(runs, operator, self.ENTITY, "leave_throttle", WHY)
        assert (order.deed, order.entity) == (Deed.LEAVE_THROTTLE, self.ENTITY)
        assert event(runs, "ordered").after == {"deed": "leave_throttle", "entity": self.ENTITY}

    def test_one_that_is_not_there_any_more_is_said(self, runs: ChangeRequest, operator: User) -> None:
        with pytest.raises(Refused, match="no throttle of others on broker 4"):
            orders.throttle_owner(runs, operator, self.ENTITY, "set_throttle", WHY)
        with pytest.raises(Refused, match="nothing that can be done here"):
            orders.throttle_owner(runs, operator, self.ENTITY, "cancel_row", WHY)
