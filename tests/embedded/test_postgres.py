"""PostgreSQL from the wheel, really started."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import environ
import psutil
import psycopg
import pytest

from kafkadash.devtools.embedded import postgres as module
from kafkadash.devtools.embedded.folders import SOCKET_PATH_BYTES
from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.devtools.embedded.process import ServerError, recorded
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("embedded-postgres")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """One folder for all tests that need no other; each starts what the one before may have stopped or killed."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("postgres") / "state", fsync=False)
    yield server
    server.remove()


def one(server: EmbeddedPostgres, query: str) -> object:
    with psycopg.connect(server.conninfo()) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def test_it_answers_queries_and_listens_on_a_socket_only(server: EmbeddedPostgres) -> None:
    child = server.start()
    assert str(one(server, "SELECT version()")).startswith("PostgreSQL 18")
    assert one(server, "SELECT current_database()") == "kafkadash"
    assert one(server, "SHOW max_connections") == "100"
    assert one(server, "SHOW server_encoding") == "UTF8"
    assert psutil.Process(child.pid).net_connections("inet") == []


def test_django_environ_reads_its_url(server: EmbeddedPostgres) -> None:
    server.start()
    config = environ.Env.db_url_config(server.url())
    assert config["ENGINE"] == "django.db.backends.postgresql"
    with psycopg.connect(host=config["HOST"], user=config["USER"], dbname=config["NAME"]) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_data_and_url_survive_a_restart(server: EmbeddedPostgres) -> None:
    server.start()
    url = server.url()
    with psycopg.connect(server.conninfo()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    server.stop()
    assert recorded(server.state_dir) == []
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.conninfo())
    server.start()
    assert server.url() == url
    assert one(server, "SELECT answer FROM kept") == 42


def test_it_starts_again_after_it_was_killed(server: EmbeddedPostgres) -> None:
    child = server.start()
    child.kill()
    data = Path(str(server._started().data))
    wait_until(lambda: not any_backend(data), "its other processes have gone too")
    # The lock file that is left names a process id which by now may be anybody's, for example ours.
    lock = data / "postmaster.pid"
    lines = lock.read_text().splitlines()
    lock.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    server.start()
    assert one(server, "SELECT 1") == 1


def test_starting_twice_is_the_same_server(server: EmbeddedPostgres) -> None:
    assert server.start().pid == server.start().pid


def test_stopping_does_not_wait_for_clients(server: EmbeddedPostgres) -> None:
    child = server.start()
    with psycopg.connect(server.conninfo()) as connection:
        server.stop()
        assert not child.alive()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_several_run_side_by_side(server: EmbeddedPostgres, tmp_path: Path) -> None:
    other = EmbeddedPostgres(tmp_path / "other", fsync=False)
    servers = (server, other)
    try:
        assert len({each.start().pid for each in servers}) == 2
        assert {one(each, "SHOW data_directory") for each in servers} == {each._started().data for each in servers}
    finally:
        other.remove()


def test_a_state_folder_with_a_long_path_gets_a_short_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("long-" * 25) / "state, with a comma"
    server = EmbeddedPostgres(folder, fsync=False)
    try:
        server.start()
        url, sockets = server.url(), Path(server._started().sockets)
        assert len(os.fsencode(sockets)) < SOCKET_PATH_BYTES
        assert one(server, "SELECT 1") == 1
        server.stop()
        assert not sockets.exists() or sockets.is_relative_to(Path(server._started().data).parent)
        server.start()
        assert server.url() == url
    finally:
        server.remove()
    assert not sockets.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user for PostgreSQL")
def test_root_runs_it_as_another_user_even_where_that_user_may_not_go(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed / "state", fsync=False)
    try:
        child = server.start()
        assert psutil.Process(child.pid).uids().real != 0
        private = server._started().private
        assert private is not None
        assert Path(private).stat().st_mode & 0o077 == 0
        assert closed.stat().st_mode & 0o777 == 0o700
        assert one(server, "SELECT 1") == 1
    finally:
        server.remove()
    assert not Path(private).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user for PostgreSQL")
def test_root_keeps_the_data_in_a_state_folder_that_others_may_only_pass_through() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o711)
        server = EmbeddedPostgres(Path(name), fsync=False)
        try:
            server.start()
            assert server._started().private is None
            assert Path(server._started().data).is_relative_to(name)
        finally:
            server.remove()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user for PostgreSQL")
def test_root_can_use_programs_that_the_other_user_cannot_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = module.install_folder().parent
    closed = tmp_path / "closed"
    for path in [package / module.INSTALL, package.with_name(f"{module.WHEEL}.libs")]:
        if path.exists():
            shutil.copytree(path, closed / path.relative_to(package.parent))
    closed.chmod(0o700)
    monkeypatch.setattr(module, "install_folder", lambda: closed / module.WHEEL / module.INSTALL)
    server = EmbeddedPostgres(tmp_path / "state", fsync=False)
    try:
        child = server.start()
        assert Path(psutil.Process(child.pid).exe()).is_relative_to(Path(server._started().data).parent)
        assert one(server, "SELECT 1") == 1
    finally:
        server.remove()


def test_a_platform_without_a_wheel_is_one_sentence_naming_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WHEEL", "no_such_wheel")
    with pytest.raises(ServerError, match="Set DATABASE_URL"):
        EmbeddedPostgres(tmp_path).start()
    assert recorded(tmp_path) == []


def test_it_is_asked_to_end_by_fast_shutdown(server: EmbeddedPostgres) -> None:
    assert server.start().entry.stop_signal == signal.SIGINT


def any_backend(data: Path) -> bool:
    for process in psutil.process_iter(["name", "pid"]):
        if process.info["name"] == "postgres":
            try:
                if Path(process.cwd()) == data and process.status() != psutil.STATUS_ZOMBIE:
                    return True
            except psutil.Error:
                continue
    return False
