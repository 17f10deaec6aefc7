"""What people are told at the door, by ``manage.py user``, and of pages that cannot be shown.

What pages, files and commands answer where there is no such thing.

What the form of a reassignment says at its fields, and why a plan was not made, as the page of the plan says it.

What the checks of a reassignment find, as the page of the change shows it: what is wrong, and below what to do.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import BadRequest
from django.core.management import CommandError, call_command
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from kafkadash.accounts import error_pages
from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.accounts.models import User
from kafkadash.changes import services as drafting
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import PartitionMove
from kafkadash.changes.recheck import stored_checks
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import CodedMessage, reason_columns
from kafkadash.core.middleware import USUAL, BodyLimit, Message
from kafkadash.execution.engine.reasons import ClusterUnreadable
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.worker.finish import SILENT_LOOKS
from kafkadash.history.errors import HistoryErrorCode
from kafkadash.history.models import SeriesKind
from kafkadash.jobs.connection_test import KIND as CONNECTION_TEST
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import attempt_job, enqueue
from kafkadash.planning import job as plan_process
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.impact import impact_of
from kafkadash.planning.models import Upload
from kafkadash.planning.preconditions import ClusterSeen
from kafkadash.planning.problem_codes import CheckErrorCode
from kafkadash.planning.proposal import ROLLBACK, PlanInput, start_planning
from tests.conftest import PASSWORD
from tests.execution.stored_runs import requested, running
from tests.factories import NOW, ClusterFactory
from tests.history_rows import rolled_up
from tests.pages.conftest import text_of
from tests.planning.plans import drained, planned, world
from tests.planning.stored import Wizard, kafka_json, stored
from tests.planning.test_checks import (
    CLUSTER,
    OPTIONS,
    ROWS,
    SEEN,
    checked,
    with_partition,
    with_topic,
)
from tests.planning.topologies import row
from tests.refusals.desk import Desk
from tests.refusals.driving import Case, case, each, refusal, refused

pytestmark = pytest.mark.django_db

GOOD = "mauve-otter-under-the-bridge"


class Door:
    """``vera``, a viewer, signed in and not."""

    def __init__(self, vera: User, client_of: Callable[[User], Client], folder: Path) -> None:
        self.vera, self.client_of, self.folder = vera, client_of, folder

    def signs_in_when_closed(self) -> str:
        User.objects.update(is_active=False)
        return read_shown(Client().post("/login/", {"login": "vera", "password": PASSWORD}, follow=True))

    def asks_too_much(self) -> str:
        client = Client()
        for number in range(40):
            answer = client.post("/login/", {"login": f"nobody-{number}", "password": "wrong"})
            if answer.status_code == 429:
                return read_shown(answer)
        raise AssertionError("nobody is asked to be patient")

    def types_another_password(self) -> str:
        typed = {"oldpassword": "wrong", "password1": GOOD, "password2": GOOD}
        return read_shown(self.client_of(self.vera).post("/account/password/", typed))

    def gives_an_empty_file(self) -> str:
        path = self.folder / "password"
        path.write_text("\n")
        typed = ("user", "create", "ann", "--password-file", str(path))
        return refused(CommandError, lambda: call_command(*typed, stdout=io.StringIO()))


def read_shown(response: object) -> str:
    assert isinstance(response, HttpResponse)
    return text_of(response.content.decode())


@pytest.fixture
def door(viewer: User, client_of: Callable[[User], Client], tmp_path: Path) -> Door:
    return Door(viewer, client_of, tmp_path)


@each(
    case(AccountErrorCode.ACCOUNT_IS_CLOSED, Door.signs_in_when_closed),
    case(AccountErrorCode.TOO_MANY_REQUESTS, Door.asks_too_much),
    case(AccountErrorCode.PASSWORD_WRONG, Door.types_another_password),
    case(ClusterErrorCode.NO_SECRET_GIVEN, Door.gives_an_empty_file, what="password"),
)
def test_at_the_door(one: Case, door: Door) -> None:
    one.check(door)


def sends_too_much() -> str:
    said: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        said.append(message)

    async def app(*_: object) -> None:
        raise AssertionError("it is not asked")

    async def nobody(_: object) -> bool:
        raise AssertionError("only larger pages ask that")

    length = str(USUAL + 1).encode()
    scope = {"type": "http", "path": "/", "headers": [(b"content-length", length)]}
    async_to_sync(BodyLimit(app, [], nobody))(scope, receive, send)
    return str(said[-1]["body"].decode())


@each(
    case(RequestErrorCode.BODY_TOO_LARGE, sends_too_much),
    case(
        AccountErrorCode.REQUEST_MALFORMED,
        lambda: read_shown(error_pages.bad_request(RequestFactory().get("/"), BadRequest("a secret detail"))),
    ),
    case(AccountErrorCode.PAGE_CRASHED, lambda: read_shown(error_pages.server_error(RequestFactory().get("/")))),
)
def test_by_a_page_that_cannot_be_shown(one: Case) -> None:
    one.check()


WORLD = world({"orders": [[3, 1, 2], [1, 2, 3]]})


class Looking:
    def __init__(self, user: User, client: Client) -> None:
        self.user, self.client, self.cluster = user, client, stored()

    def get(self, address: str) -> str:
        return text_of(self.client.get(address).content.decode())

    def planned(self) -> ChangeRequest:
        rows = drained(WORLD, 3, instead=6)
        return planned(self.cluster, WORLD, rows, impact=impact_of(rows, WORLD))

    def draft(self, kind: str = "reassignment", **fields: Any) -> ChangeRequest:
        return ChangeRequest.objects.create(cluster=self.cluster, kind=kind, author_name="alice", **fields)

    def incomplete(self) -> str:
        wizard = Wizard(self.client)
        wizard.begins(self.cluster, "drain")
        return text_of(self.client.post(wizard.url("what"), {"brokers": "3"}).content.decode())

    def run(self, what: str, state: ChangeState = ChangeState.EXECUTING, **fields: Any) -> str:
        """A page of a run whose cluster has not answered for a while."""
        no_answer = reason_columns(ClusterUnreadable("No broker answered within 8 s."), "error")
        since = datetime.now(UTC) - timedelta(minutes=11)
        fields = {"failures": SILENT_LOOKS, "looked_at": since, **no_answer, **fields}
        run = running(requested(self.cluster, self.user, state), {RowState.DONE: 1}, **fields)
        return self.get(f"/changes/{run.request_id}/{what}")

    def given_up(self) -> str:
        self.user.cluster_roles.create(role=Role.ADMIN)
        return self.run("run/give-up/", ChangeState.CANCELLING)

    def stopped(self) -> str:
        change = self.planned()
        job = enqueue("reassign.plan", cluster=self.cluster)
        Job.objects.update(state=JobState.CANCELLED)
        since = timezone.now() - timedelta(hours=1)
        ChangeRequest.objects.update(state=RequestState.STALE, state_since=since, job=job)
        return self.get(f"/changes/{change.pk}/")


@pytest.fixture
def looking(people: dict[str, User], client_of: Callable[[User], Client]) -> Looking:
    return Looking(people["alice"], client_of(people["alice"]))


@each(
    case(ReassignmentErrorCode.NO_REASSIGNMENT, lambda one: one.get(f"/changes/{one.draft('parcels').pk}/draft/what/")),
    case(ChangeErrorCode.PLANNING_STOPPED, Looking.stopped),
    case(ReassignmentErrorCode.PAGE_INCOMPLETE, Looking.incomplete),
    case(
        ReassignmentErrorCode.NOT_READ_YET,
        lambda one: one.run("run/", failures=1, progress=b"", progress_at=None, looked_at=None),
    ),
    case(
        ReassignmentErrorCode.END_NOT_KNOWN,
        lambda one: one.run("", ChangeState.DONE, ended_at=datetime.now(UTC), outcome="", active=False),
    ),
    case(ReassignmentErrorCode.NOTHING_STAYS, Looking.given_up),
)
def test_where_it_is_looked_for(one: Case, looking: Looking) -> None:
    one.check(looking)


def other_node(desk: Desk) -> str:
    rolled_up(desk.cluster, NOW, kind=SeriesKind.QUORUM, node=1)
    return desk.get("vera", "/clusters/demo/quorum/history/?node=9")


@each(
    case(HistoryErrorCode.NO_HISTORY_OF_NODE, other_node, typed="9"),
    case(ChangeErrorCode.DECIDED, lambda d: d.see("bob", d.change(ChangeState.EXECUTING))),
    case(
        ChangeErrorCode.TOO_FEW_APPROVERS,
        lambda d: d.see("vera", d.change(author="ann", approvals_needed=3)),
        needed=3,
        who="only bob can approve it",
        cluster="demo",
    ),
    case(
        ChangeErrorCode.CHECKS_NOT_MADE,
        lambda d: d.post("bob", d.change(checked_at=None), "approve"),
        doing="Approving",
    ),
)
def test_at_a_desk(one: Case, desk: Desk) -> None:
    one.check(desk)


class Proposing:
    """Somebody in the wizard, before a cluster whose facts are fresh."""

    def __init__(self, user: User, client: Client) -> None:
        self.user, self.client = user, client
        self.wizard, self.cluster = Wizard(client), stored()

    def why(self, **fields: str) -> str:
        self.ready()
        self.wizard.plans()
        answer = self.wizard.sends("why", {"title": "Drain broker 3", "why": "Its disk fails.", **fields})
        return text_of(answer.content.decode())

    def ready(self) -> ChangeRequest:
        self.wizard.begins(self.cluster, "drain", brokers="3")
        self.wizard.limits()
        return self.wizard.change

    def start(self, meanwhile: Callable[[ChangeRequest], object], offset: int = 0) -> CodedMessage:
        change = self.ready()
        meanwhile(change)
        return refusal(ChangeRefused, lambda: start_planning(change, self.user, self.wizard.change.version + offset))

    def planned(self, meanwhile: Callable[[ChangeRequest], object] = lambda _: None) -> str:
        """What the page of the plan says, or the job where the page is gone; this happens before a worker takes it."""
        if not self.wizard.number:
            self.ready()
        self.wizard.sends("plan")
        change = self.wizard.change
        assert change.job is not None
        meanwhile(change)
        attempt_job(change.job.pk)
        error = Job.objects.get(pk=change.job.pk).error
        answer = self.client.get(self.wizard.url("plan"))
        return f"{error} {text_of(answer.content.decode())}"

    def edited(self, change: ChangeRequest) -> None:
        drafting.edit_draft(change, self.user, change.version, title="Another title")

    def without_json(self) -> str:
        self.wizard.begins(self.cluster, "explicit").sends("what", {"text": kafka_json(("orders", 0, [1, 2, 6]))})
        self.wizard.limits()
        return self.planned(lambda _: Upload.objects.all().delete())

    def back(self) -> str:
        def turned(change: ChangeRequest) -> None:
            asked = PlanInput(ROLLBACK, of=change.pk)
            ChangeRequest.objects.filter(pk=change.pk).update(input=pack_dataclass(asked))

        return self.planned(turned)

    def without_account(self) -> str:
        def forgotten(change: ChangeRequest) -> None:
            assert change.job is not None
            job = Job.objects.get(pk=change.job.pk)
            Job.objects.filter(pk=job.pk).update(input={**job.input, "purpose": "refresh"}, requested_by=None)

        return self.planned(forgotten)

    def planner_is_killed(self) -> str:
        def ends(folder: Path, _: object) -> int:
            (folder / "errors").touch()
            return -9

        with mock.patch.object(plan_process, "_run", ends):
            return self.planned()

    def test_without_cluster(self) -> str:
        job = Job.objects.create(kind=CONNECTION_TEST, cluster=self.cluster)
        Cluster.objects.update(removed_at=datetime.now(UTC))
        attempt_job(job.pk)
        return str(Job.objects.get(pk=job.pk).error)

    def test_that_is_none(self) -> str:
        """As an administrator of another cluster sees it."""
        self.user.cluster_roles.create(role=Role.ADMIN, cluster=ClusterFactory.create(name="other"))
        return text_of(self.client.get(f"/settings/tests/{uuid4()}/").content.decode())


@pytest.fixture
def proposing(people: dict[str, User], client_of: Callable[[User], Client]) -> Proposing:
    return Proposing(people["alice"], client_of(people["alice"]))


@each(
    case(ReassignmentErrorCode.TITLE_MISSING, lambda p: p.why(title=" ")),
    case(ReassignmentErrorCode.TITLE_DOES_NOT_FIT, lambda p: p.why(title="x" * 300), length=300),
    case(ReassignmentErrorCode.REASON_DOES_NOT_FIT, lambda p: p.why(why="x" * 20_000), length=20_000),
    case(ReassignmentErrorCode.EDITED_BEFORE_PLANNED, lambda p: p.start(lambda _: None, offset=1)),
    case(
        ReassignmentErrorCode.ONLY_A_DRAFT_IS_PLANNED,
        lambda p: p.start(
            lambda c: ChangeRequest.objects.filter(pk=c.pk).update(state=RequestState.PROPOSED, job=None)
        ),
    ),
    case(
        ReassignmentErrorCode.DELETED_BEFORE,
        lambda p: p.planned(lambda c: ChangeRequest.objects.filter(pk=c.pk).delete()),
    ),
    case(ReassignmentErrorCode.EDITED_BEFORE, lambda p: p.planned(p.edited), who="alice"),
    case(
        ReassignmentErrorCode.CLUSTER_NOT_REGISTERED,
        lambda p: p.planned(lambda _: Cluster.objects.update(removed_at=datetime.now(UTC))),
    ),
    case(ReassignmentErrorCode.JSON_NOT_STORED, Proposing.without_json),
    case(ReassignmentErrorCode.BACK_NO_ROWS, Proposing.back),
    case(ReassignmentErrorCode.NO_ACCOUNT, Proposing.without_account),
    case(ReassignmentErrorCode.PLANNER_KILLED, Proposing.planner_is_killed, signal="SIGKILL"),
    case(JobErrorCode.WITHOUT_CLUSTER, Proposing.test_without_cluster),
    case(JobErrorCode.NO_SUCH_TEST, Proposing.test_that_is_none),
)
def test_in_the_wizard(one: Case, proposing: Proposing) -> None:
    one.check(proposing)


class Shown:
    """The page of a change whose checks these are."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._change = desk, desk.change()

    def page(self, seen: ClusterSeen = SEEN, rows: Sequence[PartitionMove] = ROWS, **options: Any) -> str:
        found = checked(seen, rows, replace(OPTIONS, **options))
        ChangeRequest.objects.update(checks=stored_checks(found), checked_at=self._change.checked_at)
        return self._desk.see("vera", self._change)

    def target(self, *target: int) -> str:
        return self.page(rows=[row(CLUSTER, "orders", 0, target)])


@pytest.fixture
def shown(desk: Desk) -> Shown:
    return Shown(desk)


@each(
    case(
        CheckErrorCode.LENGTH_NOT_KNOWN,
        lambda s: s.page(with_partition(0, size_bytes=None), not_after="2026-11-22T04:00:00Z"),
    ),
)
def test_on_the_page_of_the_change(one: Case, shown: Shown) -> None:
    one.check(shown)


def test_what_to_do_is_said_once_for_all_rows(shown: Shown) -> None:
    page = shown.page(with_topic(id="another", partitions=()), rows=ROWS)
    assert page.count("Plan again.") == 1
