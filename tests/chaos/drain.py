"""A drain and its rollback, as two people have them done: proposed, approved, started, tended while they go on.

Through the product's own services, on the database of the stack. People try again when the database is away, read a
refusal, wait and try again; they answer what the product asks.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection
from psycopg_pool import PoolTimeout

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes import services as running
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest, Policy, RequestState
from kafkadash.changes.plan import RunOptions
from kafkadash.changes.state_machine import OVER, ChangeState
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, reason_text
from kafkadash.core.problems import InputProblem
from kafkadash.execution import commands as orders
from kafkadash.execution.models import Execution, Move, OrderType
from kafkadash.execution.rollback import propose_back
from kafkadash.jobs.models import JobState
from kafkadash.planning import proposal as drafts
from kafkadash.planning import proposal as uploads
from kafkadash.planning.proposal import DRAIN, EXPLICIT, PlanInput
from tests.chaos.referee import Disturbed

T = TypeVar("T")
AWAY = (OperationalError, InterfaceError, PoolTimeout)
AWAY_S = 90.0
READY_S = 150.0
POLL_S = 0.3
THROTTLE = 1_000_000
OPTIONS = RunOptions(throttle=THROTTLE, throttle_min=100_000, throttle_max=50_000_000, per_broker=3)


class Stuck(Exception):
    """Something did not come to its end in time; the text says how it stands."""


@dataclass
class Leg:
    """One request that runs: the drain, or the way back."""

    number: int
    sources: tuple[int, ...]
    destinations: tuple[int, ...]
    disturbed: Disturbed
    over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @contextlib.contextmanager
    def disturbing(self) -> Iterator[Disturbed]:
        """One at a time does something with Kafka's tools, so that it is known what stands afterwards."""
        with self._lock:
            yield self.disturbed


def again(ask: Callable[[], T], deadline_s: float = AWAY_S) -> T:
    """What ``ask`` returns, asked again while the database is away."""
    end = time.monotonic() + deadline_s
    while True:
        try:
            return ask()
        except AWAY:
            with contextlib.suppress(Exception):
                connection.close()
            if time.monotonic() > end:
                raise
            time.sleep(POLL_S)


def state_of(number: int) -> ChangeState:
    return again(lambda: ChangeState(ChangeRequest.objects.values_list("state", flat=True).get(pk=number)))


class People:
    """Alice proposes and runs, bob approves. ``say`` gets what they do."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._cluster = again(lambda: Cluster.objects.get(slug="demo"))
        self._alice = again(lambda: User.objects.get(username="alice"))
        self._bob = again(lambda: User.objects.get(username="bob"))
        again(lambda: Policy.objects.update_or_create(cluster=self._cluster, defaults={"approvals_high": 1}))
        self._asked_at = 0.0

    def drain(self, broker: int) -> int:
        """The number of an approved request."""
        asked = PlanInput(DRAIN, brokers=(broker,), disk_limit=1.0)
        change = again(lambda: drafts.begin_draft(self._cluster, self._alice, DRAIN, (broker,)))
        again(lambda: self._limits(change.pk, asked))
        self._agree(change.pk)
        return change.pk

    def move(self, topic: str, partition: int, target: Sequence[int], rate: int) -> int:
        """Propose to move a partition at ``rate`` bytes per second; the number of the approved request."""
        rows = [{"topic": topic, "partition": partition, "replicas": list(target)}]
        brought = uploads.from_text(json.dumps({"version": 1, "partitions": rows}))
        asked = PlanInput(EXPLICIT, upload=brought.sha256, disk_limit=1.0, ignore_racks=True)
        change = again(lambda: drafts.begin_draft(self._cluster, self._alice, EXPLICIT, ()))
        again(lambda: uploads.store_upload(change, brought))
        again(lambda: self._limits(change.pk, asked, replace(OPTIONS, throttle=rate, may_lose_racks=True)))
        self._agree(change.pk)
        return change.pk

    def roll_back(self, number: int) -> int | None:
        """The number of the approved way back; None where there is none to go."""
        change = again(lambda: ChangeRequest.objects.get(pk=number))
        try:
            back = again(lambda: propose_back(change, self._alice))
        except ChangeRefused as refused:
            self._say(f"no way back: {refused}")
            return None
        self._agree(back.pk)
        return back.pk

    def start(self, number: int) -> None:
        self._until(
            number,
            lambda state: state not in (ChangeState.APPROVED, ChangeState.PROPOSED, ChangeState.STALE),
            "started",
        )

    def cancel(self, number: int) -> None:
        with contextlib.suppress(ChangeRefused):
            change = again(lambda: ChangeRequest.objects.get(pk=number))
            again(lambda: running.cancel(change, self._alice, "Enough of it."))
            self._say(f"#{number} cancelled by alice")

    def throttle(self, number: int, rate: str) -> None:
        """In MB/s; she says yes to whatever is asked."""
        with contextlib.suppress(ChangeRefused):
            change = again(lambda: ChangeRequest.objects.get(pk=number))
            again(lambda: orders.set_throttle(change, self._alice, rate, "It is night.", twice=True, force=True))
            self._say(f"#{number} throttled to {rate} MB/s by alice")

    def tend(self, number: int) -> ChangeState:
        """One look at the run, and what a person would do about it; the state of the request."""
        state = state_of(number)
        if state not in OVER:
            try:
                again(lambda: self._do(number, state))
            except ChangeRefused as refused:
                self._say(f"#{number} {state}: {refused}")
        return state

    def stands(self, number: int) -> str:
        """How it stands, for who looks for what holds it up."""
        change = again(lambda: ChangeRequest.objects.get(pk=number))
        run = again(lambda: Execution.objects.filter(request=number).first())
        said = f"#{number} is {change.state}"
        if change.stale_reasons:
            said += f" ({CodedMessage.from_json(change.stale_reasons[0])})"
        if run is None:
            return said
        rows = again(lambda: list(Move.objects.filter(execution=run).order_by("topic", "partition")))
        left = [f"{row}: {row.state} {row.reason_code}".strip() for row in rows if row.state != "done"]
        why = [reason_text(each) for each in (run.blocked, run.error, *run.held_reasons, run.brake)]
        about = (*why, f"{run.steps} steps", *left)
        return f"{said}; {'; '.join(filter(None, about))}"

    def _limits(self, number: int, asked: PlanInput, options: RunOptions = OPTIONS) -> None:
        draft = drafts.PlanDraft(ChangeRequest.objects.get(pk=number))
        drafts.save_limits(draft, self._alice, draft.change.version, asked, options)

    def _agree(self, number: int) -> None:
        self._until(
            number, lambda state: state not in (ChangeState.DRAFT, ChangeState.PROPOSED, ChangeState.STALE), "approved"
        )

    def _until(self, number: int, enough: Callable[[ChangeState], bool], what: str) -> None:
        end = time.monotonic() + READY_S
        refused = ""
        while not enough(state := state_of(number)):
            if time.monotonic() > end:
                raise Stuck(f"not {what} within {READY_S:g} s: {self.stands(number)}; {refused}")
            try:
                again(lambda: self._do(number, state))
            except ChangeRefused as said:
                refused = str(said)
                time.sleep(1)
            time.sleep(POLL_S)

    def _do(self, number: int, state: ChangeState) -> None:
        """The next thing that a person does about it in this state. Raises Refused."""
        change = ChangeRequest.objects.select_related("job", "cluster").get(pk=number)
        if change.state != state:
            return
        match RequestState(change.state):
            case RequestState.DRAFT:
                self._plan_or_submit(change)
            case RequestState.PROPOSED:
                services.approve(change, self._bob, change.digest, seen_round=change.round)
            case RequestState.APPROVED:
                running.start(change, self._alice, "Now.", running.start_key(change, self._alice))
                self._say(f"#{number} started")
            case RequestState.STALE:
                self._refresh(change)
            case RequestState.PAUSED:
                running.resume(change, self._alice, "It may go on.")
            case RequestState.EXECUTING:
                self._answer(change)

    def _plan_or_submit(self, change: ChangeRequest) -> None:
        job = change.job
        if job is not None and job.state in (JobState.QUEUED, JobState.RUNNING):
            return
        if not change.digest:
            if job is not None:
                problems = (job.result or {}).get("problems")
                why = InputProblem.from_json(problems[0]) if problems else job.error or "no plan"
                self._say(f"#{change.pk} planned again: {why}")
                time.sleep(2)
            drafts.start_planning(change, self._alice, change.version)
            return
        try:
            services.submit(change, self._alice, why="Its disks go.", version=change.version, digest=change.digest)
        except ChangeRefused as refused:  # as on topics of the last run, of which the product had just read
            self._say(f"#{change.pk} planned again: {refused}")
            drafts.start_planning(change, self._alice, change.version)

    def _refresh(self, change: ChangeRequest) -> None:
        job = change.job
        if job is not None and job.state in (JobState.QUEUED, JobState.RUNNING):
            return
        services.start_refresh(change, self._alice)
        why = CodedMessage.from_json((change.stale_reasons or [""])[0])
        self._say(f"#{change.pk} is stale ({why}), a new plan is asked for")

    def _answer(self, change: ChangeRequest) -> None:
        """A row that asks is submitted again; a throttle of others is left to them."""
        run = Execution.objects.get(request=change)
        for row in Move.objects.filter(execution=run, asks=True):
            orders.order_row(change, self._alice, row.topic, row.partition, OrderType.AGAIN, "Try it again.")
            self._say(f"#{change.pk} {row} asked, it is submitted again")
        for each in run.foreign:
            if not each.get("left"):
                entity = f"{each['resource']} {each['name']} {each['key']}"
                orders.throttle_owner(change, self._alice, entity, OrderType.LEAVE_THROTTLE, "It is theirs.")


@dataclass(frozen=True, slots=True)
class Window:
    """From the first intent to the last cleared throttle, by the database's clock; None while there is none."""

    began: datetime | None
    ended: datetime | None

    def holds(self, at: datetime) -> bool:
        return self.began is not None and self.began <= at and (self.ended is None or at <= self.ended)


def window_of(number: int) -> Window:
    """Of a run, by its own rows."""

    def ask() -> Window:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT least((SELECT min(created_at) FROM execution_throttleentry WHERE execution_id = e.id),"
                "             (SELECT min(first_at) FROM execution_move WHERE execution_id = e.id)),"
                "       CASE WHEN EXISTS (SELECT FROM execution_throttleentry WHERE execution_id = e.id"
                "                         AND state <> 'cleared') THEN NULL"
                "       ELSE greatest((SELECT max(changed_at) FROM execution_throttleentry WHERE execution_id = e.id),"
                "                     (SELECT max(since) FROM execution_move WHERE execution_id = e.id)) END"
                " FROM execution_execution e WHERE e.request_id = %s",
                [number],
            )
            row = cursor.fetchone()
        return Window(*row) if row else Window(None, None)

    return again(ask)
