"""A worker that dies anywhere in a step loses nothing and doubles nothing; one that lost its lease does nothing.

A worker of runs that is told to stop (SIGTERM) ends the step that it is in, and begins no other.

Real processes: Celery's worker as the demo and the compose file start it, and behind the run's cluster an address that
takes connections and never answers.

Fail points: off unless asked for, and then a process dies at the first line of its file, once.

An offset that took long says little about when it was true: it is asked for once more.

What a step costs while very much moves: few statements, whatever the number of rows.

Seconds are of this thread's work, so that others on the machine do not count; the benchmark takes them by the wall.
What pages ask for when they are rendered is theirs.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any, cast
from unittest import mock
from urllib.parse import quote

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.models import F, Model
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from redis import Redis

from kafkadash.accounts.models import User
from kafkadash.celery import app
from kafkadash.changes import services as running
from kafkadash.changes.models import RequestState
from kafkadash.changes.plan import PartitionMove
from kafkadash.clusters.models import Cluster
from kafkadash.core import rows as writing
from kafkadash.core.leases import RowLease
from kafkadash.core.messages import as_message
from kafkadash.devtools.demo import supervisor as services
from kafkadash.execution import commands as orders
from kafkadash.execution import tasks
from kafkadash.execution.command_answers import OrderAnswerCode
from kafkadash.execution.models import Execution, Move, OrderType, ThrottleEntry
from kafkadash.execution.worker import fail_points, lease, moves
from kafkadash.execution.worker import step as stepping
from kafkadash.execution.worker.fail_points import POINTS, ArmedPoint, FailCall, FailMoment, name_point
from kafkadash.execution.worker.running import RunningStep
from kafkadash.execution.worker.snapshot import CERTAIN_S, _asked_again
from kafkadash.kafka.api import (
    DeadlineExceeded,
    ItemError,
    KafkaAdmin,
    OffsetKind,
    OffsetQuery,
    ReplicaOffset,
    ReplicaOffsets,
)
from tests.execution.worlds import OPTIONS, ROWS, World, model_of, patched
from tests.planning.stored import stored
from tests.waiting import wait_until

CALLS = ("alter_configs", "alter_reassignments", "elect_leaders", "describe_configs", "list_reassignments")

PORTION = 2
Write = Callable[[RunningStep], AbstractContextManager[Any]]
Portion = Callable[[RowLease], AbstractContextManager[None]]


class Killed(BaseException):
    """As SIGKILL does it: nobody catches it, and whoever comes next is another process."""


class Killer:
    """Kills the ``first`` times that the point is passed."""

    def __init__(self, point: str, first: int) -> None:
        self._point, self._left = point, first
        self.passed: Counter[str] = Counter()

    def at(self, point: str) -> None:
        self.passed[point] += 1
        if point == self._point and self._left:
            self._left -= 1
            raise Killed

    @contextmanager
    def watching(self, world: World) -> Iterator[None]:
        world.kafka.before = lambda call: self.at(f"before {call}")
        world.kafka.after = lambda call: self.at(f"after {call}")
        with (
            mock.patch.object(RunningStep, "write", self._wrapped(RunningStep.write)),
            mock.patch.object(RunningStep, "write_state", self._wrapped(RunningStep.write_state)),
            mock.patch.object(moves, "AT_ONCE", PORTION),
            mock.patch.object(RowLease, "write_portion", self._portion(RowLease.write_portion)),
        ):
            yield

    def _wrapped(self, write: Write) -> Write:
        @contextmanager
        def wrapped(running: RunningStep) -> Iterator[object]:
            with write(running) as row:
                yield row
                self.at("before commit")
            self.at("after commit")

        return wrapped

    def _portion(self, write: Portion) -> Portion:
        @contextmanager
        def wrapped(lease: RowLease) -> Iterator[None]:
            with write(lease):
                yield
                self.at("before the commit of a portion")
            self.at("after a portion")

        return wrapped


def goes_to_its_end(world: World, operator: User, killer: Killer) -> None:
    world.queue(operator)
    with killer.watching(world):
        for _ in range(200):
            if world.change().state == RequestState.DONE:
                return
            try:
                world.step()
            except Killed:
                moves.kept.forget()
            world.passes(6)
    raise AssertionError(f"{world.change().state} {world.run().error} {world.states()}")


@pytest.mark.django_db
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    "point",
    [
        *(f"{when} {call}" for call in CALLS for when in ("before", "after")),
        "before commit",
        "after commit",
        "before the commit of a portion",
        "after a portion",
    ],
)
def test_killed__nothing_is_lost_or_doubled(world: World, operator: User, point: str, times: int) -> None:
    killer = Killer(point, times)
    goes_to_its_end(world, operator, killer)

    assert killer.passed[point], "it was killed there"
    assert {state for state, _ in world.states().values()} == {"done"}
    assert Move.objects.count() == len(ROWS)
    for row in ROWS:
        partition = world.model.partitions[row.topic, row.partition]
        assert (partition.replicas, partition.leader) == (row.target, row.target[0])
    assert killer.passed["after elect_leaders"], "one had to be elected"
    assert world.arrived == Counter({(row.topic, row.partition): 1 for row in ROWS})
    assert not any(value for own in world.kafka.configs.values() for value in own.values())
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
    assert world.audit() == ["change.started", "change.turn_came", "change.rows_ended", "change.verified"]
    assert world.run().outcome == "clean"


@pytest.mark.django_db
def test_killed_in_an_election_that_somebody_asked_for__it_is_sent_again_and_answered(
    world: World, operator: User
) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    order = orders.order_row(world.change(), operator, "orders", 3, OrderType.ELECT, "Its leader is wanted now.")
    with Killer("after elect_leaders", 1).watching(world), pytest.raises(Killed):
        world.step()
    moves.kept.forget()
    order.refresh_from_db()
    assert (order.taken_at, order.answer) == (None, None)

    world.passes(2)
    world.step()
    order.refresh_from_db()
    assert order.taken_at is not None
    assert order.answer_code == OrderAnswerCode.ELECTED
    assert [call for call, _ in world.kafka.sent].count("elect_leaders") == 2


@pytest.mark.django_db
@pytest.mark.parametrize("point", ["before the commit of a portion", "after a portion"])
def test_cancel_of_many__is_stored_in_portions_and_killed_between_them_goes_on(
    world: World, operator: User, point: str
) -> None:
    world.queue(operator, options=replace(OPTIONS, per_cluster=1))
    world.until(RequestState.EXECUTING)
    world.tick()
    running.cancel(world.change(), operator, "Wrong broker.")
    killer, stored = Killer(point, 3), []

    def update_rows(model: type[Model], rows: Mapping[int, Mapping[str, Any]]) -> int:
        stored.append(len(rows))
        return writing.update_rows(model, rows)

    with killer.watching(world), mock.patch("kafkadash.execution.worker.moves.update_rows", update_rows):
        for _ in range(30):
            try:
                world.step()
            except Killed:
                moves.kept.forget()
            world.passes(2)
            if killer.passed[point] >= 3 and world.change().state == RequestState.CANCELLED:
                break
    assert max(stored) == PORTION, "no transaction has more"
    assert killer.passed[point] >= 3
    assert world.change().state == RequestState.CANCELLED
    ends = Counter(state for state, _ in world.states().values())
    assert ends["cancelled"] >= len(ROWS) - 1, "what moved may have ended before"
    assert sum(world.arrived.values()) == 1, "what waited was never begun"
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()


@pytest.mark.django_db
@pytest.mark.parametrize("call", ["list_reassignments", "metadata", "describe_cluster", "describe_configs"])
def test_lease_lost__before_it_was_decided__writes_and_sends_nothing(world: World, operator: User, call: str) -> None:
    world.queue(operator)
    world.step()
    assert world.change().state == RequestState.EXECUTING
    world.passes(2)
    before = world.states()
    world.kafka.before = lambda asked: _taken_over(world) if asked == call else None
    world.step()

    assert world.kafka.sent == []
    assert world.states() == before
    assert not ThrottleEntry.objects.exists()
    run = world.run()
    assert run.error is None
    assert run.lease_until is not None, "the other one's lease is his"


@pytest.mark.django_db
def test_lease_lost__after_intents_were_stored__sends_nothing_more(world: World, operator: User) -> None:
    world.queue(operator)
    world.step()
    world.passes(2)
    world.kafka.after = lambda call: _taken_over(world) if call == "alter_configs" else None
    # So that the lease has to be renewed before each call.
    with mock.patch("kafkadash.execution.worker.step.CALL_S", 1000.0):
        world.step()

    assert [call for call, _ in world.kafka.sent] == ["alter_configs"]
    assert {state for state, _ in world.states().values()} == {"submitting", "pending"}
    world.kafka.after = lambda _: None
    world.until(RequestState.DONE)
    assert world.arrived == Counter({(row.topic, row.partition): 1 for row in ROWS})


def _taken_over(world: World) -> None:
    Execution.objects.filter(request=world.runs[0]).update(epoch=F("epoch") + 1, lease_until=Now())


@pytest.mark.django_db(transaction=True)
def test_two_at_once__one_steps_and_the_other_does_nothing(world: World, operator: User) -> None:
    world.queue(operator)
    world.step()
    world.passes(2)
    asked, go_on = Event(), Event()

    def hold(call: str) -> None:
        if call == "list_reassignments" and not asked.is_set():
            asked.set()
            assert go_on.wait(20)

    world.kafka.before = hold
    execution = world.run()
    Execution.objects.filter(pk=execution.pk).update(next_at=Now(), lease_until=None)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(_in_thread, execution.pk)
        assert asked.wait(20)
        stepping.step_once(execution.pk)
        assert world.kafka.sent == []
        go_on.set()
        first.result(20)
    assert world.run().epoch == execution.epoch + 1
    assert [call for call, _ in world.kafka.sent].count("alter_reassignments") == 1


def _in_thread(execution_id: int) -> None:
    try:
        stepping.step_once(execution_id)
    finally:
        connection.close()


STARTS_S, ENDS_S = 60.0, 20.0


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        listening.settimeout(STARTS_S)
        yield listening


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """With one thread, so that a second message waits in it."""
    service = next(each for each in services.workers_and_beat() if each.name == "worker-execute")
    arguments = list(service.arguments)
    arguments[arguments.index("-c") + 1] = "1"
    database = connection.settings_dict
    url = f"postgres://{database['USER']}@/{quote(str(database['HOST']))}/{database['NAME']}"
    with (tmp_path / "log").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=settings.BASE_DIR,
            env={**os.environ, "DATABASE_URL": url},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def run_under_way(name: str, operator: User, bootstrap: str) -> Execution:
    """EXECUTING, with rows in flight, and its cluster does not answer any more."""
    world = World(stored(name), model_of(Cluster.objects.get(slug=name)))
    with patched(world):
        world.queue(operator)
        world.until(RequestState.EXECUTING)
        world.tick()
    Cluster.objects.filter(pk=world.cluster.pk).update(bootstrap_servers=bootstrap)
    return world.run()


def due(execution: Execution) -> None:
    """As the tick claims it and hands it out."""
    Execution.objects.filter(pk=execution.pk).update(next_at=Now(), lease_until=None, dispatched_until=None)
    assert lease.claim_due() == [execution.pk]
    app.send_task("execute", (execution.pk,))


def waiting_messages() -> int:
    """In the queue, held by no worker."""
    with closing(Redis.from_url(settings.REDIS_URL)) as redis:
        waiting = redis.llen("execute")
    assert isinstance(waiting, int)
    return waiting


@pytest.mark.django_db(transaction=True)
def test_told_to_stop_in_the_middle_of_a_step__ends_it_gives_the_lease_back_and_begins_no_other(
    silent: socket.socket, worker: subprocess.Popen[bytes], operator: User
) -> None:
    address = f"127.0.0.1:{silent.getsockname()[1]}"
    own, other = run_under_way("own", operator, address), run_under_way("other", operator, address)
    due(own)
    asked, _ = silent.accept()
    with closing(asked):
        due(other)
        wait_until(lambda: waiting_messages() == 0, "the other message waits in the worker", 20)
        during = Execution.objects.get(pk=own.pk)
        assert during.epoch == own.epoch + 1
        assert during.lease_until is not None

        began = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(ENDS_S) == 0
        took = time.monotonic() - began

    after = Execution.objects.get(pk=own.pk)
    assert (after.epoch, after.lease_until, after.dispatched_until) == (own.epoch + 1, None, None)
    assert after.failures == 1
    assert after.error, "the step ended as one whose look failed"
    assert Execution.objects.get(pk=other.pk).epoch == other.epoch, "nothing else was begun"
    assert took < ENDS_S
    assert waiting_messages() == 1, "it is left to another worker"


@pytest.mark.django_db
def test_a_message_that_comes_after_the_signal__is_handed_back(
    world: World, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.queue(operator)
    execution = world.run()
    Execution.objects.filter(pk=execution.pk).update(next_at=Now())
    assert lease.claim_due() == [execution.pk]
    monkeypatch.setattr(tasks, "_stopping", False)
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)  # this test's own
    tasks.told_to_stop()
    tasks.execute(execution.pk)

    after = world.run()
    assert (after.epoch, after.dispatched_until) == (execution.epoch, None)
    assert lease.claim_due() == [execution.pk], "the next tick gives it to another worker"


CHECKOUT = Path(__file__).resolve().parents[2]
# What a step does, in its order; it says how far it came.
STEP = """
from kafkadash.execution.worker import fail_points
from kafkadash.execution.worker.fail_points import FailCall
fail_points.step_begins()
for call in (FailCall.THROTTLE_SET, FailCall.SUBMIT):
    with fail_points.around((call,)):
        print(call, "sent", flush=True)
    print(call, "answered", flush=True)
fail_points.answers_stored()
print("ended", flush=True)
"""


class KilledHere(BaseException):
    pass


def dies() -> None:
    raise KilledHere


def child(file: Path | None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "FAIL_POINTS"}
    named_file = {} if file is None else {"FAIL_POINTS": str(file)}
    return subprocess.run(
        [sys.executable, "-c", STEP],
        cwd=CHECKOUT,
        env={**environment, **named_file, "LOG_LEVEL": "ERROR", "DJANGO_SETTINGS_MODULE": "kafkadash.settings"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def armed(tmp_path: Path, *points: str) -> ArmedPoint:
    file = tmp_path / "points"
    file.write_text("".join(f"{point}\n" for point in points), encoding="utf-8")
    return ArmedPoint(file, dies)


def using(points: ArmedPoint) -> AbstractContextManager[object]:
    return mock.patch.object(fail_points, "_armed", points)


def hits(tmp_path: Path) -> list[str]:
    file = tmp_path / "points.hits"
    return [line.split()[0] for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def test_a_worker__started_again_and_again__dies_once_for_each_line_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "points"
    file.write_text("submit.after-call\n\nthrottle-set.before-call\nsubmit.after-row\n", encoding="utf-8")
    began = datetime.now(UTC)
    runs = [child(file) for _ in range(4)]

    assert [run.returncode for run in runs] == [-signal.SIGKILL] * 3 + [0], runs
    assert [run.stdout.splitlines()[-1:] for run in runs] == [["submit sent"], [], ["submit answered"], ["ended"]]
    assert file.read_text(encoding="utf-8") == ""
    written = [line.split() for line in (tmp_path / "points.hits").read_text(encoding="utf-8").splitlines()]
    assert [point for point, _, _ in written] == ["submit.after-call", "throttle-set.before-call", "submit.after-row"]
    assert all(began <= datetime.fromisoformat(at) <= datetime.now(UTC) for _, at, _ in written)
    assert len({int(pid) for _, _, pid in written}) == 3


def test_without_the_setting__nothing_is_armed() -> None:
    assert fail_points._armed is None, "tests run without it"
    assert child(None).stdout.splitlines()[-1] == "ended"
    with mock.patch.object(ArmedPoint, "_reached", side_effect=AssertionError):
        with fail_points.around((FailCall.SUBMIT,)):
            fail_points.step_begins()
        fail_points.answers_stored()


def test_a_file_that_is_not_there_or_names_no_point__is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"names .*points, which cannot be read: No such file"):
        ArmedPoint(tmp_path / "points")
    with pytest.raises(ImproperlyConfigured, match=r"points names no fail point: 'submit'. There are throttle-set"):
        armed(tmp_path, "submit.after-call", "submit")
    refused = child(tmp_path / "no-file")
    assert refused.returncode == 1
    assert "which cannot be read" in refused.stderr


def test_every_call_has_three_points() -> None:
    assert len(POINTS) == len(set(POINTS)) == 3 * len(FailCall)
    for needed in ("submit", "throttle-set", "throttle-clear", "cancel", "election"):
        assert {f"{needed}.{at}" for at in ("before-call", "after-call", "after-row")} <= set(POINTS)


def test_a_request_that_raises__was_not_answered(tmp_path: Path) -> None:
    with (
        using(armed(tmp_path, "cancel.after-call")),
        pytest.raises(OSError, match="away"),
        fail_points.around((FailCall.CANCEL,)),
    ):
        raise OSError("away")
    with using(armed(tmp_path, "cancel.after-row")):
        fail_points.answers_stored()
    assert hits(tmp_path) == []


def test_answers_that_an_earlier_step_could_not_store__are_not_those_of_this_one(tmp_path: Path) -> None:
    with using(armed(tmp_path, "submit.after-row")):
        with fail_points.around((FailCall.SUBMIT,)):
            pass
        fail_points.step_begins()
        fail_points.answers_stored()
        assert hits(tmp_path) == []
        with fail_points.around((FailCall.SUBMIT,)):
            pass
        with pytest.raises(KilledHere):
            fail_points.answers_stored()
    assert hits(tmp_path) == ["submit.after-row"]


def test_steps_of_two_runs_at_once__know_their_own_answers(tmp_path: Path) -> None:
    with using(armed(tmp_path, "election.after-row")):
        with fail_points.around((FailCall.ELECTION,)):
            pass
        other = Thread(target=fail_points.answers_stored)
        other.start()
        other.join(10)
        assert hits(tmp_path) == []
        with pytest.raises(KilledHere):
            fail_points.answers_stored()


def test_another_process_took_the_line__it_is_not_hit_twice(tmp_path: Path) -> None:
    one = armed(tmp_path, "submit.before-call", "submit.after-call")
    other = ArmedPoint(tmp_path / "points", dies)
    with using(one), pytest.raises(KilledHere):
        one.around((FailCall.SUBMIT,)).__enter__()
    with using(other), pytest.raises(KilledHere), fail_points.around((FailCall.SUBMIT,)):
        assert hits(tmp_path) == ["submit.before-call"]
    assert hits(tmp_path) == ["submit.before-call", name_point(FailCall.SUBMIT, FailMoment.AFTER_CALL)]


SLOW_ONE, QUICK_ONE = (OffsetQuery(broker, "orders", 0, OffsetKind.LATEST) for broker in (1, 2))
FIRST = ReplicaOffsets({SLOW_ONE: ReplicaOffset(10, 100.0, 3.0), QUICK_ONE: ReplicaOffset(20, 100.0, 0.01)}, {})


class Answering:
    """Answers once, with what it was given; a failure is raised."""

    def __init__(self, answer: ReplicaOffsets | Exception) -> None:
        self.answer = answer
        self.asked: list[OffsetQuery] = []

    def replica_offsets(self, queries: Collection[OffsetQuery], *, deadline: float) -> ReplicaOffsets:
        self.asked.extend(queries)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def again(client: Answering, first: ReplicaOffsets = FIRST, left_s: float = 8.0) -> ReplicaOffsets:
    return _asked_again(cast("KafkaAdmin", client), first, time.monotonic() + left_s)


def test_a_slow_answer__is_asked_for_once_more__and_the_quicker_one_counts() -> None:
    quick = ReplicaOffset(11, 102.0, 0.02)
    client = Answering(ReplicaOffsets({SLOW_ONE: quick}, {}))

    found = again(client)

    assert client.asked == [SLOW_ONE]
    assert found.offsets == {SLOW_ONE: quick, QUICK_ONE: FIRST.offsets[QUICK_ONE]}


def test_a_second_answer_that_is_slower_refused_or_missing__leaves_the_first() -> None:
    slower = ReplicaOffsets({SLOW_ONE: ReplicaOffset(11, 102.0, 4.0)}, {})
    refused = ReplicaOffsets({}, {SLOW_ONE: ItemError(as_message("is not there any more"), 6)})
    for second in (slower, refused, DeadlineExceeded(as_message("It did not answer in time."))):
        assert again(Answering(second)) == FIRST


def test_nothing_is_asked_again__where_all_was_quick_or_no_time_is_left() -> None:
    client = Answering(AssertionError("it was asked"))
    just = ReplicaOffsets({SLOW_ONE: ReplicaOffset(10, 100.0, CERTAIN_S)}, {})
    assert again(client, just) is just
    assert again(client, left_s=2.0) is FIRST
    assert client.asked == []


TOPICS, PARTITIONS = 20, 200
MANY_ROWS = tuple(
    PartitionMove(f"t{topic:02}", f"id-of-t{topic:02}", number, (1, 2, 3), (1, 2, 6))
    for topic in range(TOPICS)
    for number in range(PARTITIONS // 2)
)
MOST_STATEMENTS = 10
NOT_COUNTED = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE SAVEPOINT")


@pytest.fixture
def large(db: None) -> Iterator[World]:
    """4,000 partitions of 20 topics, half of which move at once and slowly."""
    topics = {f"t{topic:02}": [[1, 2, 3]] * PARTITIONS for topic in range(TOPICS)}
    cluster = stored(topics=topics, size=100_000_000, usable=1_900_000_000_000)
    world = World(cluster, model_of(cluster, rate=20_000_000))
    with patched(world, known_for_s=0.0):
        yield world


@pytest.mark.django_db
def test_step__of_2000_moving_rows__takes_few_statements_and_less_than_a_second(large: World, operator: User) -> None:
    large.queue(operator, MANY_ROWS, replace(OPTIONS, per_broker=5000, per_cluster=5000))
    for _ in range(6):
        large.tick()
    assert Move.objects.filter(state="moving").count() == len(MANY_ROWS), (large.run().blocked, large.run().error)
    statements, seconds = [], []
    for _ in range(6):
        large.reset()
        with CaptureQueriesContext(connection) as captured, mock.patch("kafkadash.live.signals.publish_keys"):
            began = time.thread_time()
            large.take()
            seconds.append(time.thread_time() - began)
        counted = [q["sql"] for q in captured.captured_queries if not q["sql"].startswith(NOT_COUNTED)]
        statements.append(counted)
        large.passes(2)
    assert Move.objects.filter(state="moving").count() == len(MANY_ROWS)
    most = max(statements, key=len)
    assert len(most) <= MOST_STATEMENTS, [sql[:160] for sql in most]
    assert sorted(seconds)[len(seconds) // 2] < 1.0, seconds
