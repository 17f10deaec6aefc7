"""Servers for a test run: loaded with ``-p tests.embedded_plugin``, before Django's settings are.

The process that was started (the xdist controller, if there is one) starts PostgreSQL once; each worker makes its own
database in it and starts a Valkey of its own, because publish/subscribe crosses Redis's numbered databases. All of it
lives in one folder of this run and ends with it; what a killed run left behind, the next run ends.
``DATABASE_URL`` and ``REDIS_URL``, where set, are used instead.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from kafkadash.devtools.embedded.files import lock_file
from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.devtools.embedded.process import ServerError, live_children, stop_all
from kafkadash.devtools.embedded.valkey import EmbeddedValkey

RUN_FOLDER = "KAFKADASH_TEST_RUN"
# Each of up to a few workers may fill its pool, and tests of claims use many threads.
MAX_CONNECTIONS = 200
# Of tests that open no database, in the whole module; a run of nothing else starts no server.
NEEDS_NOTHING = "\npytestmark = pytest.mark.domain\n"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None]:
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    # Asked to end, end like on Ctrl-C: with all clean-up. (A worker is ended by its controller.)
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.ExitStack() as at_end:
        folder = Path(os.environ[RUN_FOLDER]) if worker else _new_run_folder(at_end)
        own = Path(tempfile.mkdtemp(prefix=f"{worker or 'single'}-", dir=folder))
        at_end.callback(_end, own if worker else folder)
        # Never the checkout's own var/: a demo may be running there.
        os.environ["KAFKADASH_VAR"] = str(own)
        os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(32))
        os.environ.setdefault("FIELD_KEYS", Fernet.generate_key().decode())
        try:
            if not _needs_nothing(args):
                _start_servers(folder, own, worker)
        except ServerError as error:
            raise pytest.UsageError(str(error)) from error
        early_config.add_cleanup(at_end.pop_all().close)
    return (yield)


def _new_run_folder(at_end: contextlib.ExitStack) -> Path:
    """A folder whose lock is held for as long as this process lives, so that no other run takes it for a leftover."""
    base = Path(tempfile.gettempdir()) / f"kafkadash-tests-{os.getuid()}"
    base.mkdir(mode=0o711, exist_ok=True)
    with lock_file(base / "lock"):
        _end_leftovers(base)
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=base))
        folder.chmod(0o755)  # as root, PostgreSQL runs as another user and must reach its own folder in here
        lock = at_end.enter_context((folder / "lock").open("wb"))
        fcntl.flock(lock, fcntl.LOCK_EX)
    os.environ[RUN_FOLDER] = str(folder)
    return folder


def _end_leftovers(base: Path) -> None:
    for folder in base.glob("run-*"):
        with (folder / "lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            _end(folder)


def _start_servers(folder: Path, own: Path, worker: str | None) -> None:
    if worker is None and "DATABASE_URL" not in os.environ:
        postgres = EmbeddedPostgres(folder, fsync=False, max_connections=MAX_CONNECTIONS)
        postgres.start()
        os.environ["DATABASE_URL"] = postgres.url()
    if os.environ.get("REDIS_URL", "") in ("", os.environ.get("KAFKADASH_TEST_REDIS")):
        valkey = EmbeddedValkey(own)
        valkey.start()
        # A worker inherits the controller's environment and tells by the second name that the first is not the user's.
        os.environ["REDIS_URL"] = os.environ["KAFKADASH_TEST_REDIS"] = valkey.url()


def _needs_nothing(args: list[str]) -> bool:
    """Whether the command line asks for ``-m domain`` or names only modules whose tests need no server; other options
    are not understood here.
    """
    if ("-m", "domain") in pairwise(args):
        return True
    paths = [Path(arg.split("::")[0]) for arg in args if not arg.startswith("-")]
    found = [path for path in paths if path.exists() and path.resolve().is_relative_to(Path.cwd())]
    return bool(found) and all(path.is_file() and NEEDS_NOTHING in path.read_text("utf-8") for path in found)


def _end(folder: Path) -> None:
    """Stop what runs from this folder and the folders of workers in it, then remove it."""
    owns = [folder, *[path for path in folder.iterdir() if path.is_dir()]] if folder.is_dir() else []
    stop_all([child for own in owns for child in live_children(own)])
    EmbeddedPostgres(folder).remove()  # its files may be elsewhere, where the user it runs as can reach them
    shutil.rmtree(folder, ignore_errors=True)
