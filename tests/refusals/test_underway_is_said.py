"""What fails while a run is under way, where people read it: its page, its preview of a cancel, its ledger, its end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from unittest import mock

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster, Role
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.executor_throttles import Throttles
from kafkadash.domain.ledger import Place
from kafkadash.domain.messages import reason_text
from kafkadash.domain.reasons import reason_columns
from kafkadash.domain.row_reasons import BrokerAway, ThrottleChangedMeanwhile, ThrottleNotSet
from kafkadash.domain.run_reasons import ClusterUnreadable
from kafkadash.domain.throttles import RATES
from kafkadash.domain.workflow_states import State
from kafkadash.kafka.changing import Changed, ConfigChange
from kafkadash.kafka.port import ConfigResource, Configs, ItemError, KafkaAdmin
from kafkadash.observe.models import CollectorRun
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Execution, Move, Outcome, ThrottleEntry
from kafkadash.reassign.run import throttle_reads
from kafkadash.reassign.run.broker_absences import BrokerAbsence, LooksAtBrokers
from kafkadash.reassign.run.ledger import Ledger
from kafkadash.reassign.run.left_behind import SILENT_LOOKS, left_behind
from tests.factories import ReassignmentFactory
from tests.pages.conftest import text_of
from tests.reassign.config_store import Fate
from tests.reassign.ledger_run import LedgerRun, broker
from tests.reassign.run.conftest import world
from tests.reassign.run.runs import World
from tests.reassign.runs import MB, requested, running
from tests.reassign.stored import stored
from tests.refusals.driving import Case, case, each

__all__ = ["world"]
pytestmark = pytest.mark.django_db
STATES = {RowState.MOVING: 1, RowState.PENDING: 1, RowState.DONE: 1}
RATE = min(RATES)
TO_5 = {"replicas": [1, 2, 5, 3], "adding": [5], "removing": [3], "target": [1, 2, 5]}


NO_ANSWER = reason_columns(ClusterUnreadable("No broker answered within 8 s."), "error")


class RunPage:
    def __init__(self, user: User, client: Client) -> None:
        self.user, self.client = user, client
        self.cluster = stored()
        self.now = datetime.now(UTC)

    def run(self, state: State = State.EXECUTING, **fields: Any) -> Execution:
        return running(requested(self.cluster, self.user, state), STATES, **fields)

    def get(self, run: Execution, what: str = "run/") -> str:
        return text_of(self.client.get(f"/changes/{run.request_id}/{what}").content.decode())

    def page(self, state: State = State.EXECUTING, **fields: Any) -> str:
        return self.get(self.run(state, **fields))

    def fails(self) -> str:
        return self.page(**NO_ANSWER, failures=3, looked_at=datetime.now(UTC))

    def unseen(self, **fields: Any) -> str:
        began = self.now - timedelta(minutes=4)
        return self.page(progress=b"", progress_at=None, looked_at=None, started_at=began, **fields)

    def old(self, state: State = State.EXECUTING, **fields: Any) -> str:
        then = self.now - timedelta(hours=2)
        run = self.run(state, looked_at=then, progress_at=then, started_at=then, **fields)
        CollectorRun.objects.update(succeeded_at=then)
        return self.get(run)

    def broker_down(self) -> str:
        looks = LooksAtBrokers(self.now, self.now, 2.0, frozenset({6}), (BrokerAbsence(6, None),))
        return self.get(self.run(absences=looks.as_json()))

    def read_only(self) -> str:
        run = self.run()
        Cluster.objects.update(read_only=True)
        return self.get(run)

    def paused(self) -> str:
        run = self.run(State.PAUSED)
        Move.objects.update(state=RowState.DONE)
        return self.get(run)

    def window(self) -> str:
        run = self.run()
        ChangeRequest.objects.update(not_after=self.now - timedelta(minutes=1))
        return self.get(run)

    def asks(self) -> str:
        run = self.run()
        Move.objects.filter(state=RowState.MOVING).update(state=RowState.UNKNOWN, asks=True)
        return self.get(run)

    def blocked(self) -> str:
        change = requested(self.cluster, self.user, State.QUEUED)
        since = self.now - timedelta(minutes=3)
        limits = {"throttle": 60 * MB, "per_broker": 5, "per_cluster": 50}
        run = Execution.objects.create(
            request=change, cluster=self.cluster, blocked_at=since, **limits, **reason_columns(BrokerAway(6), "blocked")
        )
        return self.get(run)

    def cancel(self, **listed: Any) -> str:
        """What the page before a cancel says of the row that moves, of which Kafka lists this."""
        run = self.run()
        Move.objects.filter(state=RowState.MOVING).update(current=[1, 2, 3], target=[1, 2, 6])
        row = Move.objects.get(state=RowState.MOVING)
        ReassignmentFactory.create(cluster=self.cluster, topic=row.topic, partition=row.partition, **listed)
        return self.get(run, "run/cancel/")

    def ended(self, state: State, outcome: str = "") -> str:
        run = self.run(state, ended_at=self.now - timedelta(minutes=2), outcome=outcome, active=False)
        return self.get(run, "")

    def given_up(self, *waiting: RowState) -> str:
        """What an administrator is told to stay behind, of a run with these rows and a throttle or nothing at all."""
        self.user.cluster_roles.create(role=Role.ADMIN)
        since = self.now - timedelta(minutes=11)
        run = self.run(State.CANCELLING, failures=SILENT_LOOKS, looked_at=since, **NO_ANSWER)
        Move.objects.exclude(state__in=waiting).update(state=RowState.DONE)
        if waiting:
            ThrottleEntry.objects.create(execution=run, resource="broker", name="3", key=RATE, state="set")
        return self.get(run, "run/give-up/")

    def removal(self, **fields: Any) -> str:
        """What is said before the cluster is removed from kafkadash."""
        run = self.run(**fields)
        ThrottleEntry.objects.create(execution=run, resource="broker", name="3", key=RATE, value="1", state="set")
        stays = left_behind(self.cluster)
        return " ".join((stays.refused, *stays.left))


@pytest.fixture
def at_run(people: dict[str, User], client_of: Callable[[User], Client]) -> RunPage:
    return RunPage(people["alice"], client_of(people["alice"]))


@each(
    case(
        ReassignmentErrorCode.CLUSTER_UNREAD,
        RunPage.fails,
        again=", 3 times in a row",
        error="No broker answered within 8 s.",
    ),
    case(ReassignmentErrorCode.NOT_READ_YET, lambda p: p.unseen(**NO_ANSWER, failures=1)),
    case(ReassignmentErrorCode.NEVER_LOOKED, RunPage.unseen),
    case(ReassignmentErrorCode.SHOWN_IS_OLD, RunPage.old, age="2 h"),
    case(ReassignmentErrorCode.NOBODY_READS, RunPage.old, interval=2),
    case(
        ReassignmentErrorCode.CANCEL_CANNOT_END,
        lambda p: p.old(State.CANCELLING, **NO_ANSWER, failures=SILENT_LOOKS),
    ),
    case(
        ReassignmentErrorCode.BROKERS_DOWN,
        RunPage.broker_down,
        brokers="Broker 6",
        down="was down",
        since="since before it began",
        moves="2 moves",
        have="have",
    ),
    case(ReassignmentErrorCode.READ_ONLY_NOW, RunPage.read_only, cluster="demo", going="goes on to its end"),
    case(ReassignmentErrorCode.PAUSED_AT_ITS_END, RunPage.paused),
    case(ReassignmentErrorCode.WINDOW_RAN_OUT, RunPage.window, moves="1 move"),
    case(ReassignmentErrorCode.ROWS_ASK, RunPage.asks, moves="1 move", ask="asks"),
    case(
        ReassignmentErrorCode.BLOCKED, RunPage.blocked, since=" since 3 min", why=reason_text(BrokerAway(6)), until=""
    ),
    case(ReassignmentErrorCode.NOT_OURS_TO_CANCEL, lambda p: p.cancel(**TO_5), target="1, 2, 5"),
    case(
        ReassignmentErrorCode.CANCEL_LEAVES_OTHERS,
        lambda p: p.cancel(replicas=[1, 2, 6, 3, 5], adding=[6], removing=[3, 5], target=[1, 2, 6]),
        there="1, 2, 3, 5",
        original="1, 2, 3",
    ),
    case(ReassignmentErrorCode.RUN_STILL_HERE, RunPage.removal),
    case(ReassignmentErrorCode.RUN_CANNOT_BE_STOPPED, lambda p: p.removal(failures=SILENT_LOOKS)),
    case(ReassignmentErrorCode.THROTTLES_STAY, RunPage.removal, throttles="1 throttle"),
    case(ReassignmentErrorCode.NOT_ALL_AS_PLANNED, lambda p: p.ended(State.DONE, Outcome.EXCEPTIONS)),
    case(ReassignmentErrorCode.THROTTLES_OWED, lambda p: p.ended(State.DONE, Outcome.OBLIGATIONS)),
    case(ReassignmentErrorCode.RUN_FAILED, lambda p: p.ended(State.FAILED)),
    case(ReassignmentErrorCode.END_NOT_KNOWN, lambda p: p.ended(State.DONE)),
    case(ReassignmentErrorCode.FLIGHT_STAYS, lambda p: p.given_up(RowState.MOVING), moves="1 move", them="it"),
    case(ReassignmentErrorCode.WAITING_STAYS, lambda p: p.given_up(RowState.PENDING), moves="1 waiting move"),
    case(ReassignmentErrorCode.OBLIGATIONS_STAY, lambda p: p.given_up(RowState.MOVING), throttles="1 throttle"),
    case(ReassignmentErrorCode.NOTHING_STAYS, RunPage.given_up),
)
def test_on_its_pages(one: Case, at_run: RunPage) -> None:
    one.check(at_run)


def throttled(world: World, user: User, answer: Callable[[Sequence[ConfigChange]], Changed[ConfigResource]]) -> str:
    """The reasons of the rows after Kafka answered so when it was asked to set a throttle."""

    def answers(_: object, changes: Sequence[ConfigChange], *, deadline: float) -> Changed[ConfigResource]:
        return answer(changes)

    world.queue(user)
    world.until(State.EXECUTING)
    with mock.patch.object(type(world.kafka), "alter_configs", answers):
        world.tick()
    return " ".join(reason_text(reason) for _, reason in world.states().values())


def changed_right_before(world: World, user: User) -> str:
    """The reasons of the rows where somebody else sets rates after they were read, and before ours are set."""

    def others_set(name: str) -> None:
        if name == "describe_configs":
            for number in range(1, 7):
                world.kafka.configs.setdefault(ConfigResource.broker(number), {}).update(dict.fromkeys(RATES, "7"))

    world.queue(user)
    world.until(State.EXECUTING)
    with mock.patch.object(world.kafka, "after", others_set):
        world.tick()
    return " ".join(reason_text(reason) for _, reason in world.states().values())


def refused_without_words(changes: Sequence[ConfigChange]) -> Changed[ConfigResource]:
    return Changed(refused={change.resource: ItemError("", 42) for change in changes})


@each(
    case(ReassignmentErrorCode.OUTCOME_NOT_TOLD, lambda world, user: throttled(world, user, lambda _: Changed())),
)
def test_by_a_step(one: Case, world: World, people: dict[str, User]) -> None:
    one.check(world, people["alice"])


def test_throttle_refused_without_words__holds_its_rows_up(world: World, people: dict[str, User]) -> None:
    throttled(world, people["alice"], refused_without_words)

    assert ThrottleNotSet() in [reason for _, reason in world.states().values()]


def test_throttle_changed_right_before__holds_its_rows_up(world: World, people: dict[str, User]) -> None:
    changed_right_before(world, people["alice"])

    assert ThrottleChangedMeanwhile() in [reason for _, reason in world.states().values()]


class Silent:
    """Its answers about configs have an error without words."""

    def describe_configs(self, resources: Collection[ConfigResource], **_: object) -> Configs:
        return Configs({}, {resource: ItemError("", -1) for resource in resources}, 0.0)


def read(alive: set[int]) -> str:
    """Why nobody knows what stands at a throttle; its entry in the ledger keeps it."""
    place = Place("broker", "3", RATE)
    return throttle_reads.read(cast("KafkaAdmin", Silent()), [place], alive, deadline=1)[place].unreadable


@each(
    case(ReassignmentErrorCode.BROKER_OF_THROTTLE_AWAY, lambda: read(set()), broker="3"),
    case(ReassignmentErrorCode.CONFIG_UNREAD, lambda: read({3}), resource="Broker 3"),
)
def test_in_the_ledger(one: Case) -> None:
    one.check()


class Ledgers(LedgerRun):
    """A run on a cluster in memory, which throttles brokers 1 and 3; ``told``: what it records in the audit."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.rate = (broker(3), RATE)

    def _stored(self, ledger: Ledger) -> None:
        with mock.patch.object(Ledger, "_record", lambda _ledger, _verb, said, _after: self.told.append(said)):
            for found, places in ledger.found.items():
                ledger._tell(found, places)
        super()._stored(ledger)

    def throttled(self) -> Ledgers:
        self.wants({}, (1, 3), 60 * MB)
        self.step()
        self.step()
        return self

    def wait(self) -> str:
        for _ in range(20):
            self.step()
        return " ".join(self.told)

    def removed(self) -> str:
        self.throttled().store.values.pop(self.rate)
        return self.wait()

    def other_rate(self) -> str:
        self.throttled().store.values[self.rate] = "7"
        return self.wait()

    def left(self) -> str:
        self.other_rate()
        self.want = Throttles()
        return self.wait()

    def owed(self) -> str:
        self.throttled().store.away = {3}
        self.want = Throttles()
        return self.wait()

    def late(self) -> str:
        self.store.fate = Fate.LATE
        self.wants({}, (3,), 60 * MB)
        self.step()
        self.store.fate, self.want = Fate.DONE, Throttles()
        self.wait()
        self.store.arrive()
        return self.wait()


@each(
    case(ReassignmentErrorCode.OURS_REMOVED, Ledgers.removed),
    case(ReassignmentErrorCode.OTHER_RATE_SET, Ledgers.other_rate),
    case(ReassignmentErrorCode.OTHERS_LEFT, Ledgers.left),
    case(ReassignmentErrorCode.OWED, Ledgers.owed),
    case(ReassignmentErrorCode.CALL_CAME_LATE, Ledgers.late),
)
def test_in_the_audit(one: Case) -> None:
    one.check(Ledgers())
