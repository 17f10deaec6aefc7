"""What ``manage.py demo`` says when it cannot start, or ends."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from kafkadash.accounts.models import User
from kafkadash.domain.refusals import commands
from kafkadash.embedded.process import ServerError
from kafkadash.jobs.models import Job, JobState
from kafkadash.ops.demo import checks, provision, services, supervisor
from kafkadash.ops.demo import folder as folders
from kafkadash.ops.demo.people import PEOPLE
from kafkadash.ops.demo.run import run
from kafkadash.ops.demo.supervisor import Options
from kafkadash.ops.errors import OperationErrorCode
from tests.conftest import PASSWORD
from tests.refusals.driving import Case, case, each, refused

pytestmark = pytest.mark.django_db


class Machine:
    """Where somebody starts a demo, in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def checks(self, **environment: str) -> str:
        return refused(ServerError, lambda: checks.check(self.folder, environment))

    def on_python(self, *version: int) -> str:
        with mock.patch.object(sys, "version_info", version):
            return self.checks()

    def port_taken(self) -> str:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            return refused(ServerError, lambda: checks.choose_port(port, None))

    def no_free_port(self) -> str:
        with mock.patch.object(checks, "port_is_free", return_value=False):
            return refused(ServerError, lambda: checks.choose_port(None, None))

    def second(self) -> str:
        folder = folders.make(self.folder)

        def hold() -> None:
            with folder.held():
                pass

        with folder.held():
            return refused(ServerError, hold)

    def sign_ins(self) -> str:
        folder = folders.make(self.folder)
        folder.sign_ins_file.write_text("[]")
        return refused(ServerError, lambda: folder.sign_ins(("alice",)))

    def below_a_file(self) -> str:
        (self.folder / "file").touch()
        return refused(ServerError, lambda: folders.make(self.folder / "file" / "var"))

    def crashes(self) -> str:
        complaints: list[str] = []
        options = Options(self.folder, None, drain=False, reset=False, racks=("a",), given={})
        with mock.patch.object(supervisor.Demo, "start", side_effect=KeyError("unthought")):
            run(options, lambda _: None, complaints.append)
        return " ".join(complaints)

    def test_fails(self) -> str:
        def enqueue(kind: str, **of: object) -> Job:
            return Job.objects.create(kind=kind, state=JobState.FAILED, error="Nobody is at home.", **of)

        with mock.patch.object(provision, "enqueue", enqueue):
            return refused(ServerError, lambda: provision.provision("127.0.0.1:1", "", dict.fromkeys(PEOPLE, PASSWORD)))

    def runs(self, code: str, seconds: float = 60) -> str:
        folder = folders.make(self.folder)
        return refused(ServerError, lambda: services.run_to_end("migrate", ("-c", code), folder, {}, seconds))

    def server_dies(self) -> str:
        watched = supervisor.Demo.__new__(supervisor.Demo)
        watched._folder = folders.make(self.folder)
        watched._dead_since = {7: -1e9}
        dead = mock.Mock(**{"alive.return_value": False, "exit_code.return_value": 1}, pid=7)
        dead.name = "postgres"
        with mock.patch.object(supervisor, "recorded", side_effect=[[dead], []]):
            return refused(ServerError, watched._look_after_servers)


def never(condition: Callable[[], bool] = lambda: False) -> str:
    return refused(ServerError, lambda: provision.wait_for(condition, 0, "No worker made the plan"))


@each(
    case(OperationErrorCode.PYTHON_TOO_OLD, lambda m: m.on_python(3, 10, 1)),
    case(OperationErrorCode.PORT_TAKEN, Machine.port_taken),
    case(OperationErrorCode.NO_FREE_PORT, Machine.no_free_port, first=checks.FIRST_PORT, host="127.0.0.1"),
    case(OperationErrorCode.DISK_TOO_FULL, lambda m: m.checks(KAFKADASH_DEMO_FREE_MIB="999999999"), needed=999999999),
    case(commands.DATABASE_URL_WRONG, lambda m: m.checks(DATABASE_URL="postgres://a:b@host:port/name")),
    case(OperationErrorCode.NO_POSTGRESQL, lambda m: m.checks(DATABASE_URL="mysql://localhost/kafkadash")),
    case(OperationErrorCode.DATABASE_REFUSES, lambda m: m.checks(DATABASE_URL="postgres://nobody@127.0.0.1:1/none")),
    case(OperationErrorCode.REDIS_REFUSES, lambda m: m.checks(REDIS_URL="redis://127.0.0.1:1/0")),
    case(OperationErrorCode.ANOTHER_DEMO, Machine.second),
    case(OperationErrorCode.SIGN_INS_UNREADABLE, Machine.sign_ins),
    case(OperationErrorCode.FOLDER_NOT_WRITABLE, Machine.below_a_file, reason="Not a directory"),
    case(OperationErrorCode.DEMO_CRASHED, Machine.crashes),
    case(OperationErrorCode.DEMO_TEST_FAILED, Machine.test_fails, ended="failed", why="Nobody is at home."),
    case(OperationErrorCode.DEMO_TOO_SLOW, lambda _: never(), otherwise="No worker made the plan", seconds=0),
    case(
        OperationErrorCode.PROCESS_TOO_SLOW,
        lambda m: m.runs("import time; time.sleep(60)", 0.0),
        name="migrate",
        seconds=0,
    ),
    case(OperationErrorCode.PROCESS_FAILED, lambda m: m.runs("raise SystemExit(3)"), name="migrate", how="exit code 3"),
    case(OperationErrorCode.PROCESS_ENDED, Machine.server_dies, name="postgres", how="exit code 1"),
)
def test_by_the_demo(one: Case, tmp_path: Path, admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKADASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KAFKADASH_DEMO_FREE_MIB", "1")
    one.check(Machine(tmp_path))
