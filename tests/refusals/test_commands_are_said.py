"""What commands on the server, settings and the checks of /readyz say."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import time_machine
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.db.models.functions import Now

from kafkadash.clusters.models import Cluster
from kafkadash.domain.refusals import commands
from kafkadash.jobs.models import Job, JobState
from kafkadash.observe.collection import ensure_runs
from kafkadash.observe.models import CollectorRun
from kafkadash.ops import health
from kafkadash.ops.errors import OperationErrorCode
from kafkadash.ops.management.commands import cluster as cluster_command
from kafkadash.ops.models import Heartbeat
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.management.commands import reassignments
from tests.ops.conftest import right_again
from tests.refusals.driving import Case, case, each, refused

__all__ = ["right_again"]
pytestmark = pytest.mark.django_db


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

    def verifies(self, text: str) -> str:
        path = self.folder / "move.json"
        path.write_text(text)
        return self.types("reassignments", "verify", str(path), "--cluster", "demo")

    def verifies_much(self) -> str:
        with mock.patch.object(reassignments, "LARGEST_BYTES", 2_000_000):
            return self.verifies(" " * 2_000_001)

    def health(self) -> str:
        out = io.StringIO()
        with pytest.raises(SystemExit):
            call_command("health", stdout=out)
        return out.getvalue()

    def without_database(self) -> str:
        with mock.patch.object(connection, "cursor", side_effect=OperationalError("gone")):
            return self.health()

    def without_redis(self) -> str:
        with mock.patch.object(settings, "REDIS_URL", "redis://127.0.0.1:1/0"):
            return self.health()

    def ticked(self, seconds: float) -> str:
        Heartbeat.objects.create(name="tick", at=Now() - timedelta(seconds=seconds))
        return self.health()

    def sentences(self) -> str:
        return " ".join(check.sentence for check in health.checks().values())

    def collected(self, **fields: Any) -> str:
        health.beat()
        ensure_runs()
        CollectorRun.objects.update(**fields)
        return self.sentences()

    def an_hour_ahead(self) -> str:
        with time_machine.travel(datetime.now(UTC) + timedelta(hours=1, seconds=5), tick=True):
            return self.sentences()

    def late_run(self) -> str:
        with mock.patch.object(connection, "cursor", side_effect=lambda: Row(connection.create_cursor(), (999.0, 1))):
            return health._runs().sentence


class Row:
    """A cursor whose one row is known."""

    def __init__(self, cursor: Any, row: tuple[object, ...]) -> None:
        self.cursor, self.row = cursor, row

    def __enter__(self) -> Row:
        return self

    def __exit__(self, *_: object) -> None:
        self.cursor.close()

    def execute(self, *_: object) -> None:
        pass

    def fetchone(self) -> tuple[object, ...]:
        return self.row


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path) -> Server:
    return Server(tmp_path)


@pytest.mark.usefixtures("right_again")
@each(
    case(OperationErrorCode.NOTHING_TO_CHANGE, lambda s: s.types("cluster", "connect", "demo")),
    case(OperationErrorCode.TEST_CANCELLED, lambda s: s.tests(JobState.CANCELLED)),
    case(OperationErrorCode.TEST_NOT_TAKEN, lambda s: s.tests(JobState.QUEUED), seconds=0),
    case(OperationErrorCode.TEST_TOO_SLOW, lambda s: s.tests(JobState.RUNNING), seconds=0),
    case(OperationErrorCode.CHECK_UNKNOWN, lambda s: s.types("health", "nonsense"), name="nonsense"),
    case(
        ReassignmentErrorCode.FILE_NOT_READ,
        lambda s: s.types("reassignments", "verify", "/nowhere", "--cluster", "demo"),
        file="/nowhere",
    ),
    case(ReassignmentErrorCode.FILE_TOO_LONG, Server.verifies_much, megabytes=2),
    case(ReassignmentErrorCode.FILE_NOT_VERIFIED, lambda s: s.verifies("[]"), problems="1 problem"),
    case(
        ReassignmentErrorCode.NOT_COLLECTED,
        lambda s: s.types("reassignments", "list", "--cluster", "demo"),
        cluster="Demo",
    ),
    case(OperationErrorCode.DATABASE_SILENT, Server.without_database),
    case(OperationErrorCode.NOT_KNOWN_WITHOUT_DATABASE, Server.without_database),
    case(OperationErrorCode.REDIS_SILENT, Server.without_redis),
    case(OperationErrorCode.NEVER_TICKED, Server.health),
    case(OperationErrorCode.TICK_LATE, lambda s: s.ticked(60), age="1 min"),
    case(OperationErrorCode.CLOCK_WRONG, Server.an_hour_ahead, off="1 h", way="ahead of"),
    case(OperationErrorCode.COLLECTION_LATE, lambda s: s.collected(next_at=Now() - timedelta(hours=1)), age="1 h"),
    case(
        OperationErrorCode.COLLECTION_STANDS,
        lambda s: s.collected(next_at=Now() - timedelta(hours=1), attempted_at=Now() - timedelta(minutes=2)),
        age="2 min",
    ),
    case(
        OperationErrorCode.CLUSTERS_SILENT,
        lambda s: s.collected(failures=3),
        silent=1,
        clusters="1 cluster",
        verb="does",
    ),
    case(OperationErrorCode.RUN_LATE, Server.late_run, age="16 min 39 s"),
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
        commands.SETTING_NOT_USABLE,
        starts_with(WORKER_THREADS="many"),
        name="WORKER_THREADS",
        value="many",
        kind="a whole number",
    ),
    case(commands.SETTING_NOT_USABLE, starts_with(LEASE_TTL=""), name="LEASE_TTL", value="", kind="a number"),
    case(
        commands.SETTING_NOT_USABLE,
        starts_with(KAFKA_NETWORKS="10.20.0.0/16,inside"),
        name="KAFKA_NETWORKS",
        value="inside",
        kind="a list of networks such as 10.20.0.0/16",
    ),
    case(commands.SECRET_KEY_TOO_SHORT, starts_with(SECRET_KEY="short"), least=32),
    case(commands.SECRET_KEY_TOO_SHORT, starts_with(SECRET_KEY_FALLBACKS="x" * 40 + ",short"), least=32),
    case(commands.DATABASE_URL_WRONG, starts_with(DATABASE_URL="postgres://a:b@host:port/name")),
    case(commands.LEVEL_UNKNOWN, starts_with(LOG_LEVEL="LOUD"), level="LOUD"),
)
def test_of_settings(one: Case) -> None:
    one.check()
