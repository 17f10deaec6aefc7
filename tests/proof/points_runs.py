"""The runs of a round, asked for as people do it, and carried out by the stack's own processes."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes import services as running
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from kafkadash.execution import commands as orders
from kafkadash.execution.models import OrderType
from kafkadash.execution.rollback import propose_back
from kafkadash.execution.worker.fail_points import POINTS
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from tests.agreement.runs import Requests, Run
from tests.agreement.tools import Tools
from tests.chaos.referee import Before, judge
from tests.kafka_configs import alter
from tests.proof.points import Points
from tests.waiting import wait_until

ROWS = 6
ROW_BYTES = 12 * 1024 * 1024  # so slow as a cancel needs it: brokers fetch 1 MiB at once, whatever the rate
RATE, SLOW = 4_000_000, "0.05"
RUN_S, READ_S, PLAN_S = 900.0, 60.0, 120.0

# No row may lose three requests, or it asks the operator: so not all points of what is before a submission in a row.
IN_A_DRAIN = (
    *("throttle-set.before-call", "submit.before-call", "submit.after-row"),
    *("throttle-clear.before-call", "throttle-clear.after-call", "throttle-clear.after-row"),
    *("place.before-call", "place.after-call", "place.after-row"),
    *("throttle-set.after-call", "submit.after-call", "throttle-set.after-row"),
    *("election.before-call", "election.after-row"),
)
IN_A_CANCEL = (
    *("cancel.before-call", "cancel.after-call", "reorder.before-call", "reorder.after-call"),
    *("cancel.after-row", "reorder.after-row"),
)
BACK = ("election.after-call",)
assert sorted(IN_A_DRAIN + IN_A_CANCEL + BACK) == sorted(POINTS)


class Rounds:
    """On the stack's cluster; throttles of somebody else stand there all the time."""

    def __init__(self, points: Points) -> None:
        self._points = points
        self._playground = points.stack.playground
        self._tools = Tools(self._playground)
        self._alice, bob = User.objects.get(username="alice"), User.objects.get(username="bob")
        self._bob = bob
        self._requests = Requests(Cluster.objects.get(), self._refresh, self._alice, bob)
        alter(self._playground, 1, leader_replication_throttled_rate="300000000")
        self._numbers: list[int] = []

    def round(self, number: int) -> None:
        topic = f"proof-{number}"
        load_topics(
            self._playground.bootstrap, [LoadTopic(topic, placement=[[1, 2, 3]] * ROWS, fill_bytes=ROWS * ROW_BYTES)]
        )
        wait_until(self._tools.in_sync, "every replica is in sync", 60)
        alter(self._playground, topic, leader_replication_throttled_replicas="9:1,0:2")
        self._before = Before.of(self._tools)
        drain = self._run(f"round {number}, drain", IN_A_DRAIN, self._drain(topic), self._until_done)
        self._run(f"round {number}, cancelled", IN_A_CANCEL, self._back(drain), self._cancelled)
        self._run(f"round {number}, rollback", BACK, self._back(drain), self._until_done)

    def _run(self, words: str, armed: tuple[str, ...], run: Run, until_end: Callable[[Run], None]) -> Run:
        points, began = self._points, time.monotonic()
        since = len(points.hits())
        points.arm(armed)
        try:
            run.start()
            until_end(run)
            problems = []
        except AssertionError as late:
            problems = [f"{late}; {run.execution.error} {run.execution.held} {run.execution.blocked}"]
        self._numbers.append(run.change.pk)
        problems += judge(self._tools, self._numbers, self._before)
        hits = len(points.hits()) - since
        took = time.monotonic() - began
        print(f"  {words:<22} #{run.change.pk} {run.state:<10} {hits:>2} deaths {took:>5.0f} s", flush=True)  # noqa: T201
        points.ended(words, since, problems)
        if RequestState(run.state) not in (RequestState.DONE, RequestState.CANCELLED):
            raise AssertionError(f"{words}: #{run.change.pk} is {run.state}, so no other run can follow")
        return run

    def _drain(self, topic: str) -> Run:
        """Broker 3 gives what it has to broker 4; the leader stays, and is not the preferred one any more."""
        rows = [(topic, number) for number in range(ROWS)]
        directory = max(self._tools.all_sizes([4])[4])
        return self._requests.approved(
            {row: [2, 1, 4] for row in rows},
            throttle=RATE,
            per_broker=1,
            directories={row: ["any", "any", directory] for row in rows},
        )

    def _back(self, drain: Run) -> Run:
        """Proposed by alice, planned by a worker, approved by bob."""
        draft = propose_back(ChangeRequest.objects.get(pk=drain.change.pk), self._alice)
        refused = ""

        def proposed() -> bool:
            """It waits for its plan, and for facts that are young enough."""
            nonlocal draft, refused
            draft.refresh_from_db()
            try:
                draft = services.submit(draft, self._alice, why="Broker 3 is well.", version=draft.version)
            except ChangeRefused as why:
                refused = str(why)
                return False
            return True

        try:
            wait_until(proposed, f"#{draft.pk} is proposed", PLAN_S)
        except AssertionError as late:
            raise AssertionError(f"{late}; {refused}") from late
        return Run(services.approve(draft, self._bob, draft.digest), self._alice)

    def _until_done(self, run: Run) -> None:
        self._reaches(run, RequestState.DONE)

    def _cancelled(self, run: Run) -> None:
        """One row by itself first, then all of it, so slow that nothing is done before."""
        orders.set_throttle(run.change, run.alice, SLOW, "Slowly.", twice=True, force=True)
        first = self._moving(run)
        orders.order_row(run.change, run.alice, *first, OrderType.CANCEL_ROW, "Its consumers complain.")
        wait_until(lambda: run.row(*first).state == "cancelled", f"{first} is given back", RUN_S)
        self._moving(run)
        running.cancel(run.change, run.alice, "All complain.")
        self._reaches(run, RequestState.CANCELLED)

    def _moving(self, run: Run) -> tuple[str, int]:
        """A row that moves, as soon as there is one."""
        moving = run.execution.moves.filter(state="moving")
        wait_until(moving.exists, "a row moves", RUN_S)
        row = moving.earliest("pk")
        return row.topic, row.partition

    def _reaches(self, run: Run, state: RequestState) -> None:
        wait_until(lambda: run.state == state, f"#{run.change.pk} is {state.label}", RUN_S)

    def _refresh(self, kind: CollectorKind) -> None:
        """By the stack's own collector, soon."""
        own = CollectorRun.objects.filter(cluster__slug="demo", kind=kind)
        before = own.get().succeeded_at
        own.update(next_at=Now())
        wait_until(lambda: own.get().succeeded_at != before, f"{kind} is read", READ_S)
