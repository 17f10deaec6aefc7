"""What people ask of a run and is refused, on its page; and what the steps answer to orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes import running as steering
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.refusals import Refused
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.workflow_states import State
from kafkadash.kafka.changing import Changed
from kafkadash.kafka.port import ItemError, TopicPartition, Unreachable
from kafkadash.observe.models import BrokerState
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Deed, Execution, Move, Order
from kafkadash.reassign.run import budget, orders
from kafkadash.reassign.run import step as stepping
from kafkadash.reassign.run.giving_up import give_up
from kafkadash.reassign.run.order_answers import (
    CameTooLate,
    CancelBegan,
    DoesNotAsk,
    ElectionNoTime,
    ElectionNotSent,
    ElectionRefused,
    ElectionUnknown,
    LeaderElected,
    NoSuchRow,
    RunHadEnded,
    RunIsCancelled,
)
from kafkadash.reassign.run.way_back import refuse_facts_before_the_end
from tests.pages.conftest import text_of
from tests.reassign.run.conftest import world
from tests.reassign.run.runs import World
from tests.reassign.runs import MB, OPTIONS, approve_as_stored, requested, running
from tests.reassign.stored import stored
from tests.refusals.driving import Case, case, each, refused

__all__ = ["world"]
pytestmark = pytest.mark.django_db
WHY = "Asked by the team."
STATES = {RowState.MOVING: 1, RowState.PENDING: 1, RowState.DONE: 1, RowState.CANCELLING: 1}


class RunPage:
    """The page of a run: rows 0 to 3 move, wait, are done, are cancelled."""

    def __init__(self, user: User, client: Client) -> None:
        self.user, self.client = user, client
        self.cluster = stored()

    def run(self, state: State = State.EXECUTING, **fields: Any) -> Execution:
        return running(requested(self.cluster, self.user, state), STATES, **fields)

    def ask(self, what: str, state: State = State.EXECUTING, **form: str) -> str:
        return self.post(self.run(state), what, **form)

    def post(self, run: Execution, what: str, **form: str) -> str:
        answer = self.client.post(f"/changes/{run.request_id}/{what}/", {"reason": WHY, **form})
        assert answer.status_code in (403, 404, 409), answer.status_code
        return text_of(answer.content.decode())

    def rate(self, rate: str, state: State = State.EXECUTING, **form: str) -> str:
        return self.ask("run/throttle", state, rate=rate, **form)

    def inbound(self, least: float | None, rate: str) -> str:
        with mock.patch.object(orders, "inbound_of", return_value=(least, "Producers write that much.")):
            return self.rate(rate)

    def slow(self) -> str:
        run = self.run()
        ChangeRequest.objects.update(options={**run.request.options, "throttle_min": 1})
        approve_as_stored(run.request)
        return self.post(run, "run/throttle", rate="0.01")

    def seen_another(self, changed: bool) -> str:
        run = self.run()
        if changed:
            orders.set_throttle(run.request, self.user, "70", WHY)
        return self.post(run, "run/throttle", rate="65", seen=str(50 * MB))

    def moves(self, per_broker: str) -> str:
        return self.ask("run/parallel", per_broker=per_broker, per_cluster="10")

    def row(self, partition: int, deed: Deed | str, state: State = State.EXECUTING, **fields: Any) -> str:
        run = self.run(state)
        Move.objects.filter(partition=partition).update(**fields)
        return self.post(run, "run/row", topic="events", partition=str(partition), deed=str(deed))

    def replan(self, partition: int, *away: int) -> str:
        run = self.run()
        BrokerState.objects.filter(broker_id__in=away).update(gone_at=datetime.now(UTC))
        return self.post(run, "run/replan", topic="events", partition=str(partition))

    def give_up(self, state: State = State.CANCELLING, **form: str) -> str:
        """By an administrator, whose role comes with all others."""
        self.user.is_superuser = True
        self.user.save()
        run = self.run(state)
        answer = self.client.post(f"/changes/{run.request_id}/run/give-up/", {"reason": WHY, **form})
        assert answer.status_code in (400, 409), answer.status_code
        return text_of(answer.content.decode())

    def give_up_without_reason(self) -> str:
        change = self.run(State.CANCELLING).request
        return refused(Refused, lambda: give_up(change, self.user, " "))

    def back(self, state: State, moved: int) -> str:
        run = running(requested(self.cluster, self.user, state), {RowState.DONE: moved, RowState.SKIPPED: 1})
        return self.post(run, "rollback")

    def no_report(self) -> str:
        address = f"/changes/{self.run().request_id}/report/report.md"
        return text_of(self.client.get(address).content.decode())

    def not_read_since(self) -> str:
        since = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
        return refused(Refused, lambda: refuse_facts_before_the_end(self.cluster, since))

    def ended_meanwhile(self) -> str:
        """Its last step is stored after the order was found to be possible, and before it is written."""
        run = self.run()

        def ends(*_: object) -> None:
            ChangeRequest.objects.update(state=State.DONE)
            Execution.objects.update(active=False)

        with mock.patch.object(orders, "_refuse_row", ends):
            return refused(Refused, lambda: orders.row(run.request, self.user, "events", 0, Deed.CANCEL_ROW, WHY))

    def no_run(self) -> str:
        change = requested(self.cluster, self.user)
        return refused(Refused, lambda: orders.set_throttle(change, self.user, "70", WHY))

    def no_such_row(self) -> str:
        change = self.run().request
        return refused(Refused, lambda: orders.row(change, self.user, "events", 99, Deed.ELECT, WHY))

    def changed_at_once(self) -> str:
        """Somebody else's change is stored between the look and the write."""
        run = self.run()

        def meanwhile(_run: Execution, _wanted: int) -> dict[str, str]:
            Execution.objects.update(throttle=71 * MB)
            return {}

        with mock.patch.object(orders, "_questions", meanwhile):
            return self.post(run, "run/throttle", rate="65")


@pytest.fixture
def at_run(people: dict[str, User], client_of: Callable[[User], Client]) -> RunPage:
    return RunPage(people["alice"], client_of(people["alice"]))


APPROVED: Mapping[str, object] = {"least": "20", "most": "80"}


@each(
    case(ReassignmentErrorCode.RATE_MISSING, lambda p: p.rate(" ")),
    case(ReassignmentErrorCode.RATE_NEGATIVE, lambda p: p.rate("-5")),
    case(ReassignmentErrorCode.RATE_NO_NUMBER, lambda p: p.rate("fast"), typed="fast"),
    case(ReassignmentErrorCode.RATE_ZERO, lambda p: p.rate("0")),
    case(ReassignmentErrorCode.RATE_TOO_LARGE, lambda p: p.rate("60000000"), most=100_000),
    case(
        ReassignmentErrorCode.RATE_NOT_APPROVED,
        lambda p: p.rate("500"),
        wanted="500 MB/s (500,000,000 bytes/s)",
        **APPROVED,
    ),
    case(ReassignmentErrorCode.RATE_CHANGED, lambda p: p.seen_another(changed=False), now="60"),
    case(ReassignmentErrorCode.RATE_CHANGED_BY, lambda p: p.seen_another(changed=True), who="alice", now="70"),
    case(ReassignmentErrorCode.RATE_SLOW, RunPage.slow, wanted="0.01 MB/s (10,000 bytes/s)"),
    case(ReassignmentErrorCode.RATE_BELOW_INBOUND, lambda p: p.inbound(60e6, "50"), inbound="60.00 MB/s"),
    case(
        ReassignmentErrorCode.RATE_INBOUND_UNKNOWN,
        lambda p: p.inbound(None, "50"),
        wanted="50 MB/s (50,000,000 bytes/s)",
    ),
    case(ReassignmentErrorCode.ORDER_REASON, lambda p: p.rate("70", reason=" ")),
    case(ReassignmentErrorCode.MOVES_NO_NUMBER, lambda p: p.moves("many"), where="per broker"),
    case(ReassignmentErrorCode.MOVES_TOO_FEW, lambda p: p.moves("0"), where="per broker and direction"),
    case(
        ReassignmentErrorCode.MOVES_NOT_APPROVED,
        lambda p: p.moves("99"),
        most=f"{OPTIONS.per_broker} moves",
        where="per broker and direction",
    ),
    case(ReassignmentErrorCode.LIMITS_CHANGED, RunPage.changed_at_once),
    case(ReassignmentErrorCode.ENDED_MEANWHILE, RunPage.ended_meanwhile),
    case(ReassignmentErrorCode.LIMITS_MATTER_NO_MORE, lambda p: p.rate("70", State.VERIFYING), state="verifying"),
    case(ReassignmentErrorCode.NOTHING_UNDER_WAY, lambda p: p.row(0, Deed.ELECT, State.VERIFYING), state="verifying"),
    case(ReassignmentErrorCode.CANCELLED_AS_A_WHOLE, lambda p: p.row(0, Deed.CANCEL_ROW, State.CANCELLING)),
    case(ReassignmentErrorCode.NO_RUN, RunPage.no_run),
    case(ReassignmentErrorCode.NO_SUCH_DEED, lambda p: p.row(0, "explode"), deed="explode"),
    case(ReassignmentErrorCode.NO_SUCH_ROW, RunPage.no_such_row, row="events-99"),
    case(ReassignmentErrorCode.NO_SUCH_ROW_TO_REPLAN, lambda p: p.replan(99)),
    case(ReassignmentErrorCode.NO_SUCH_PARTITION, lambda p: p.row(99, Deed.ELECT)),
    case(ReassignmentErrorCode.ROW_HAS_ENDED, lambda p: p.row(2, Deed.CANCEL_ROW), row="events-2", state="done"),
    case(ReassignmentErrorCode.ROW_BEING_CANCELLED, lambda p: p.row(3, Deed.CANCEL_ROW), row="events-3"),
    case(ReassignmentErrorCode.ROW_DOES_NOT_ASK, lambda p: p.row(0, Deed.AGAIN), row="events-0"),
    case(
        ReassignmentErrorCode.NOTHING_IS_SUBMITTED,
        lambda p: p.row(0, Deed.AGAIN, State.PAUSED, asks=True),
        state="paused",
    ),
    case(
        ReassignmentErrorCode.NO_FOREIGN_THROTTLE,
        lambda p: p.ask("run/foreign", entity="broker 9 x", deed="set_throttle"),
        entity="broker 9 x",
    ),
    case(ReassignmentErrorCode.GIVE_UP_REASON, RunPage.give_up_without_reason),
    case(ReassignmentErrorCode.GIVE_UP_ONLY_CANCELLED, lambda p: p.give_up(State.PAUSED), state="paused"),
    case(ReassignmentErrorCode.GIVE_UP_TOO_EARLY, RunPage.give_up, wait="10 minutes", times="20 times"),
    case(ReassignmentErrorCode.RUN_NOT_ENDED, lambda p: p.back(State.EXECUTING, 1), state="executing"),
    case(ReassignmentErrorCode.MOVED_NOTHING, lambda p: p.back(State.DONE, 0)),
    case(ReassignmentErrorCode.NOT_READ_SINCE, RunPage.not_read_since, cluster="demo"),
    case(ReassignmentErrorCode.NO_REPORT, RunPage.no_report),
    case(ReassignmentErrorCode.NOTHING_TO_REPLAN, lambda p: p.replan(2), row="events-2", state="done"),
    case(ReassignmentErrorCode.NO_OTHER_BROKER, lambda p: p.replan(0, 4, 5, 6), lost="broker 6"),
)
def test_on_the_page_of_the_run(one: Case, at_run: RunPage) -> None:
    one.check(at_run)


class Asked:
    """A run that has begun, of which something is ordered."""

    def __init__(self, world: World, user: User) -> None:
        self.world, self.user = world, user
        world.queue(user)
        world.until(RequestState.EXECUTING)
        for _ in range(2):
            world.tick()
        self.move = Move.objects.filter(state="moving")[0]

    def order(self, deed: Deed, partition: int | None = None) -> Order:
        return Order.objects.create(
            execution=self.world.run(),
            deed=deed,
            topic=self.move.topic,
            partition=self.move.partition if partition is None else partition,
            user=self.user,
            user_name="alice",
            reason=WHY,
        )

    def answer(self, order: Order) -> CodedReason | None:
        """As the page of the run lists it once the step has answered."""
        self.world.step()
        order.refresh_from_db()
        assert order.taken_at is not None
        return order.answer

    def elected(self, **kafka: Any) -> CodedReason | None:
        for name, value in kafka.items():
            setattr(self.world.kafka, name, value)
        return self.answer(self.order(Deed.ELECT))

    def refused_election(self) -> CodedReason | None:
        self.world.kafka.refuse[TopicPartition(self.move.topic, self.move.partition)] = ItemError("Not in sync.", 80)
        return self.answer(self.order(Deed.ELECT))

    def untold_election(self) -> CodedReason | None:
        """Kafka's answer does not name the partition."""
        with mock.patch.object(type(self.world.kafka), "elect_leaders", return_value=Changed()):
            return self.answer(self.order(Deed.ELECT))

    def hurried_election(self) -> CodedReason | None:
        with mock.patch.object(budget, "STEP_S", 0.0):
            return self.answer(self.order(Deed.ELECT))

    def lost_election(self) -> CodedReason | None:
        lost = Changed(lost={TopicPartition(self.move.topic, self.move.partition): ItemError("Timed out.")})
        with mock.patch.object(type(self.world.kafka), "elect_leaders", return_value=lost):
            return self.answer(self.order(Deed.ELECT))

    def unsent_election(self) -> CodedReason | None:
        with mock.patch.object(type(self.world.kafka), "elect_leaders", side_effect=Unreachable("Nobody answers.")):
            return self.answer(self.order(Deed.ELECT))

    def too_late(self) -> CodedReason | None:
        self.world.until(RequestState.VERIFYING)
        return self.answer(self.order(Deed.CANCEL_ROW))

    def while_cancelling(self) -> CodedReason | None:
        steering.cancel(self.world.change(), self.user, "Wrong broker.")
        return self.answer(self.order(Deed.AGAIN))

    def at_the_end(self) -> CodedReason | None:
        """It is asked for while the last step is under way, which has looked for orders by then."""
        self.world.until(RequestState.VERIFYING)
        asked: list[Order] = []

        def client(_: object) -> object:
            asked.append(self.order(Deed.CANCEL_ROW))
            return self.world.kafka

        with mock.patch.object(stepping, "client_of", client):
            self.world.until(RequestState.DONE)
        asked[-1].refresh_from_db()
        return asked[-1].answer


ANSWERS: Sequence[tuple[Callable[[Asked], CodedReason | None], CodedReason]] = (
    (lambda a: a.answer(a.order(Deed.CANCEL_ROW, 99)), NoSuchRow()),
    (lambda a: a.answer(a.order(Deed.CANCEL_ROW)), CancelBegan()),
    (Asked.too_late, CameTooLate("done")),
    (Asked.while_cancelling, RunIsCancelled()),
    (lambda a: a.answer(a.order(Deed.GIVE_UP)), DoesNotAsk("moving")),
    (lambda a: a.answer(a.order(Deed.ELECT)), LeaderElected()),
    (Asked.refused_election, ElectionRefused("Not in sync.")),
    (Asked.untold_election, ElectionUnknown()),
    (Asked.lost_election, ElectionUnknown()),
    (Asked.unsent_election, ElectionNotSent("Nobody answers.")),
    (Asked.hurried_election, ElectionNoTime()),
    (Asked.at_the_end, RunHadEnded()),
)


@pytest.mark.parametrize(
    ("see", "answer"), ANSWERS, ids=[f"{number}-{answer.stored_code}" for number, (_, answer) in enumerate(ANSWERS)]
)
def test_answer_to_an_order(
    see: Callable[[Asked], CodedReason | None], answer: CodedReason, world: World, people: dict[str, User]
) -> None:
    assert see(Asked(world, people["alice"])) == answer
