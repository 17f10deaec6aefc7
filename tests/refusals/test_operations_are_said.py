"""What is said of clusters that do not answer, by the settings, by collectors and by the connection test.

What commands on the server, settings and the checks of /readyz say.

What ``manage.py demo`` says when it cannot start, or ends.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from channels.sessions import CookieMiddleware
from django.core.management import CommandError, call_command

from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import CodedMessage, as_message, coded, unpack_value
from kafkadash.core.setting_errors import SettingErrorCode, SettingKind
from kafkadash.devtools.demo import folder as folders
from kafkadash.devtools.demo import provision, supervisor
from kafkadash.devtools.demo import supervisor as checks
from kafkadash.devtools.demo import supervisor as services
from kafkadash.devtools.demo.people import PEOPLE
from kafkadash.devtools.demo.supervisor import DemoOptions, run_demo
from kafkadash.devtools.embedded.process import ServerError
from kafkadash.devtools.errors import DemoErrorCode
from kafkadash.execution.management.commands import reassignments
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.kafka.api import ApiVersions, BrokerInfo, ClusterDescription, ItemError, KafkaUnreachable
from kafkadash.kafka.probe import ProbeStage
from kafkadash.live.consumer import LiveConsumer
from kafkadash.live.panels import MAX_KEYS
from kafkadash.monitoring.collection import ensure_runs, refresh
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import Collection, CollectorRun
from kafkadash.ops.errors import OperationErrorCode
from kafkadash.ops.management.commands import cluster as cluster_command
from kafkadash.planning.errors import ReassignmentErrorCode
from tests.conftest import PASSWORD
from tests.factories import NOW, failed_with
from tests.jobs.test_connection_test import SASL, Answers, answers, brokers, outcome_of
from tests.monitoring.memory_kafka import MemoryCluster, MemoryGroups
from tests.refusals.desk import Desk
from tests.refusals.driving import Case, case, each, refusal, refused

__all__ = ["answers"]
pytestmark = pytest.mark.django_db


def not_read(desk: Desk, failure: str, *, ever: bool) -> str:
    """What the brokers' page says of the configs."""
    fields = {"failures": 2, "last_failure": failure, **failed_with("Something is in the way.")}
    CollectorRun.objects.filter(kind="configs").update(**fields, **({} if ever else {"succeeded_at": None}))
    return desk.get("vera", "/clusters/demo/brokers/")


def watches(*keys: str) -> str:
    """Why a socket that asks for these keys is closed, as the browser's console shows it."""

    async def closed() -> str:
        scope = {"type": "websocket", "headers": [], "query_string": "&".join(keys).encode()}
        talk_to: Any = ApplicationCommunicator  # it has no types
        socket = talk_to(CookieMiddleware(LiveConsumer.as_asgi()), scope)
        await socket.send_input({"type": "websocket.connect"})
        assert (await socket.receive_output())["type"] == "websocket.accept"
        told = await socket.receive_output()
        assert told["type"] == "websocket.close"
        await socket.send_input({"type": "websocket.disconnect", "code": told["code"]})
        await socket.wait()
        return str(told["reason"])

    return async_to_sync(closed)()


def with_a_fault(desk: Desk) -> str:
    run = desk.cluster.collector_runs.get(kind="metadata")
    with mock.patch("kafkadash.monitoring.collection._ask", side_effect=ZeroDivisionError):
        told = refresh(run.pk, only_if_due=False)
    assert told is not None
    run.refresh_from_db()
    assert (run.failures, run.last_error) == (1, told.error)
    assert run.next_at > NOW
    return str(told.error)


@each(
    case(CollectionErrorCode.COLLECTOR_FAULT, with_a_fault, kind="topics and brokers", fault="ZeroDivisionError"),
    case(
        CollectionErrorCode.NEVER_REFRESHED,
        lambda d: not_read(d, FailureKind.UNREACHABLE, ever=False),
        kinds="configs and throttles",
    ),
    case(
        CollectionErrorCode.READ_DENIED,
        lambda d: not_read(d, FailureKind.NOT_AUTHORIZED, ever=True),
        kinds="configs and throttles",
    ),
    case(AccountErrorCode.WATCHES_TOO_MUCH, lambda _: watches(), most=MAX_KEYS),
    case(
        AccountErrorCode.WATCHES_TOO_MUCH,
        lambda _: watches(*(f"key=status:{n}" for n in range(MAX_KEYS + 1))),
        most=MAX_KEYS,
    ),
)
def test_of_a_cluster(one: Case, desk: Desk) -> None:
    one.check(desk)


class Read:
    """A cluster in memory, of which one kind of facts is read."""

    def __init__(self) -> None:
        self.kafka, self.groups = MemoryCluster(time.time), MemoryGroups(time.time)
        self.kafka.add("orders", 0, 1, 2)
        self.groups.log("t", [100])
        self.cluster = Cluster.objects.create(name="memory", slug="memory", bootstrap_servers="127.0.0.1:1")
        ensure_runs()

    def told(self, kind: str) -> str:
        client = self.groups if kind == "groups" else self.kafka
        with mock.patch("kafkadash.monitoring.collection.admin_for", return_value=client):
            refresh(CollectorRun.objects.get(cluster=self.cluster, kind=kind).pk, only_if_due=False)
        return " ".join(str(each) for each in Collection.objects.latest("pk").messages)

    def directories(self, **of: set[int]) -> str:
        for name, brokers_ in of.items():
            setattr(self.kafka, name, brokers_)
        return self.told("log_dirs")

    def group(self, name: str = "g", committed: int = 0, **of: object) -> str:
        self.groups.add(name, {"t": {committed: 5}}, **of)
        return self.told("groups")

    def unread(self) -> str:
        self.groups.unread = {"g"}
        return self.group()


@pytest.fixture
def reading() -> Read:
    return Read()


@each(
    case(CollectionErrorCode.BROKER_FENCED, lambda r: r.directories(fenced={2}), broker=2),
)
def test_of_a_refresh_that_brought_a_part(one: Case, reading: Read) -> None:
    one.check(reading)


class Tried:
    """A cluster whose connection is tested, with what answers there."""

    def __init__(self, cluster: Cluster, answers: Answers) -> None:
        self.cluster, self.answers = cluster, answers

    def told(self, **fields: object) -> str:
        for name, value in fields.items():
            setattr(self.answers, name, value)
        job = outcome_of(self.cluster)
        assert job.result is not None
        told = [one for step in job.result["steps"] for one in (step["said"], *step["items"])]
        return " ".join(str(unpack_value(one)) for one in [job.error, *told, *job.result.get("problems", ())])

    def described(self, *of: BrokerInfo) -> str:
        return self.told(
            described=ClusterDescription("kafka-id-1", 2, list(of), taken_at=0),
            versions=ApiVersions({}, {1: ItemError(as_message("No answer."))}, taken_at=0),
        )

    def with_login(self) -> str:
        Cluster.objects.filter(pk=self.cluster.pk).update(**{k: v for k, v in SASL.items() if k != "sasl_password"})
        self.cluster.refresh_from_db()
        return self.told(described=KafkaUnreachable(as_message("It is down.")))

    def two_addresses(self) -> str:
        Cluster.objects.filter(pk=self.cluster.pk).update(bootstrap_servers="a:1,b:1")
        return self.told(unreachable=dict.fromkeys(("a:1", "b:1"), (ProbeStage.CONNECT, "It is down.")))


@each(
    case(JobErrorCode.NONE_GOT_THIS_FAR, Tried.two_addresses),
    case(JobErrorCode.NO_VERSIONS, lambda t: t.described(*brokers())),
    case(JobErrorCode.LOGIN_UNANSWERED, Tried.with_login, user="dash", mechanism="PLAIN"),
    case(
        JobErrorCode.RIGHTS_UNKNOWN,
        lambda t: t.told(granted=KafkaUnreachable(as_message("It is down."))),
        why="It is down.",
    ),
)
def test_by_a_connection_test(one: Case, cluster: Cluster, answers: Answers, admin: User) -> None:
    one.check(Tried(cluster, answers))


class Server:
    """Somebody at the command line of the server, with one cluster, demo."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def types(self, *words: str) -> str:
        out = io.StringIO()
        said = refused(CommandError, lambda: call_command(*words, stdout=out, stderr=out))
        return f"{out.getvalue()} {said}"

    def tests(self, state: JobState) -> str:
        """A connection test that is in this state while it is waited for."""
        with mock.patch.object(cluster_command, "enqueue", lambda *_, **of: Job.objects.create(state=state, **of)):
            return self.types("cluster", "test", "demo", "--wait", "0")

    def verifies_much(self) -> str:
        path = self.folder / "move.json"
        path.write_text(" " * 2_000_001)
        with mock.patch.object(reassignments, "LARGEST_BYTES", 2_000_000):
            return self.types("reassignments", "verify", str(path), "--cluster", "demo")


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path) -> Server:
    return Server(tmp_path)


@each(
    case(OperationErrorCode.TEST_CANCELLED, lambda s: s.tests(JobState.CANCELLED)),
    case(OperationErrorCode.TEST_TOO_SLOW, lambda s: s.tests(JobState.RUNNING), seconds=0),
    case(OperationErrorCode.CHECK_UNKNOWN, lambda s: s.types("health", "nonsense"), name="nonsense"),
    case(ReassignmentErrorCode.FILE_TOO_LONG, Server.verifies_much, megabytes=2),
)
def test_on_the_server(one: Case, server: Server) -> None:
    one.check(server)


def starts_with(**environment: str) -> Callable[[], str]:
    """What a process says that is started with these settings."""

    def start() -> str:
        command = [sys.executable, "-c", "import kafkadash.settings"]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        return done.stderr

    return start


@each(
    case(
        SettingErrorCode.SETTING_NOT_USABLE,
        starts_with(WORKER_THREADS="many"),
        name="WORKER_THREADS",
        value="many",
        kind=SettingKind.WHOLE_NUMBER,
    ),
    case(
        SettingErrorCode.SETTING_NOT_USABLE,
        starts_with(LEASE_TTL=""),
        name="LEASE_TTL",
        value="",
        kind=SettingKind.NUMBER,
    ),
    case(
        SettingErrorCode.SETTING_NOT_USABLE,
        starts_with(KAFKA_NETWORKS="10.20.0.0/16,inside"),
        name="KAFKA_NETWORKS",
        value="inside",
        kind=SettingKind.NETWORKS,
    ),
    case(SettingErrorCode.SECRET_KEY_TOO_SHORT, starts_with(SECRET_KEY="short"), least=32),
    case(SettingErrorCode.SECRET_KEY_TOO_SHORT, starts_with(SECRET_KEY_FALLBACKS="x" * 40 + ",short"), least=32),
    case(SettingErrorCode.EMAIL_URL_WRONG, starts_with(EMAIL_URL="mail.example.com:25")),
    case(SettingErrorCode.EMAIL_URL_WRONG, starts_with(EMAIL_URL="smtp+tls://user:password@mail.example.com:abc")),
    case(SettingErrorCode.EMAIL_URL_WRONG, starts_with(EMAIL_URL="smtp://")),
    case(SettingErrorCode.DEAD_MAN_URL_WRONG, starts_with(DEAD_MAN_URL="ping.example.com")),
    case(SettingErrorCode.METRICS_TOKEN_TOO_SHORT, starts_with(METRICS_TOKEN="short"), least=16),
    case(SettingErrorCode.DATABASE_URL_WRONG, starts_with(DATABASE_URL="postgres://a:b@host:port/name")),
    case(SettingErrorCode.LEVEL_UNKNOWN, starts_with(LOG_LEVEL="LOUD"), level="LOUD"),
)
def test_of_settings(one: Case) -> None:
    one.check()


class Machine:
    """Where somebody starts a demo, in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def checks(self, **environment: str) -> CodedMessage:
        return refusal(ServerError, lambda: checks.check_machine(self.folder, environment))

    def on_python(self, *version: int) -> CodedMessage:
        with mock.patch.object(sys, "version_info", version):
            return self.checks()

    def no_free_port(self) -> CodedMessage:
        with mock.patch.object(checks, "port_is_free", return_value=False):
            return refusal(ServerError, lambda: checks.choose_port(None, None))

    def sign_ins(self) -> CodedMessage:
        folder = folders.make_folder(self.folder)
        folder.sign_ins_file.write_text("[]")
        return refusal(ServerError, lambda: folder.sign_ins(("alice",)))

    def crashes(self) -> str:
        complaints: list[str] = []
        options = DemoOptions(self.folder, None, drain=False, reset=False, racks=("a",), given={})
        with mock.patch.object(supervisor.DemoSupervisor, "start", side_effect=KeyError("unthought")):
            run_demo(options, lambda _: None, complaints.append)
        return " ".join(complaints)

    def test_fails(self) -> CodedMessage:
        def enqueue(kind: str, **of: object) -> Job:
            return Job.objects.create(kind=kind, state=JobState.FAILED, error_code=JobErrorCode.LOST_WORKER, **of)

        with mock.patch.object(provision, "enqueue", enqueue):
            return refusal(ServerError, lambda: provision.provision("127.0.0.1:1", "", dict.fromkeys(PEOPLE, PASSWORD)))

    def runs(self, code: str, seconds: float = 60) -> CodedMessage:
        folder = folders.make_folder(self.folder)
        return refusal(ServerError, lambda: services.run_to_end("migrate", ("-c", code), folder, {}, seconds))

    def server_dies(self) -> CodedMessage:
        watched = supervisor.DemoSupervisor.__new__(supervisor.DemoSupervisor)
        watched._folder = folders.make_folder(self.folder)
        watched._dead_since = {7: -1e9}
        dead = mock.Mock(**{"alive.return_value": False, "exit_code.return_value": 1}, pid=7)
        dead.name = "postgres"
        with mock.patch.object(supervisor, "recorded", side_effect=[[dead], []]):
            return refusal(ServerError, watched._look_after_servers)


def never(condition: Callable[[], bool] = lambda: False) -> CodedMessage:
    return refusal(ServerError, lambda: provision.wait_for(condition, 0, "No worker made the plan"))


@each(
    case(DemoErrorCode.PYTHON_TOO_OLD, lambda m: m.on_python(3, 10, 1)),
    case(DemoErrorCode.NO_FREE_PORT, Machine.no_free_port, first=checks.FIRST_PORT, host="127.0.0.1"),
    case(SettingErrorCode.DATABASE_URL_WRONG, lambda m: m.checks(DATABASE_URL="postgres://a:b@host:port/name")),
    case(DemoErrorCode.SIGN_INS_UNREADABLE, Machine.sign_ins),
    case(DemoErrorCode.DEMO_CRASHED, Machine.crashes),
    case(
        DemoErrorCode.DEMO_TEST_FAILED,
        Machine.test_fails,
        ended="failed",
        why=coded(JobErrorCode.LOST_WORKER),
    ),
    case(DemoErrorCode.DEMO_TOO_SLOW, lambda _: never(), otherwise="No worker made the plan", seconds=0),
    case(
        DemoErrorCode.PROCESS_TOO_SLOW,
        lambda m: m.runs("import time; time.sleep(60)", 0.0),
        name="migrate",
        seconds=0,
    ),
    case(DemoErrorCode.PROCESS_FAILED, lambda m: m.runs("raise SystemExit(3)"), name="migrate", how="exit code 3"),
    case(DemoErrorCode.PROCESS_ENDED, Machine.server_dies, name="postgres", how="exit code 1"),
)
def test_by_the_demo(one: Case, tmp_path: Path, admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKADASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KAFKADASH_DEMO_FREE_MIB", "1")
    one.check(Machine(tmp_path))
