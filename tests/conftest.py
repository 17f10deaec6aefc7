"""Fixtures that tests of several packages share."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import hypothesis
import pytest
from _pytest import runner
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.models import Session
from django.core.management.commands import flush
from django.db import connection, transaction
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test import Client, override_settings
from django.utils import timezone
from django.utils.crypto import get_random_string
from servestatic.middleware import ServeStaticMiddleware

from kafkadash.accounts import sessions
from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.core.child_process import Step
from kafkadash.core.messages import register_messages
from kafkadash.core.thread_stacks import widen_stack, widen_thread_stacks
from kafkadash.pipeline.messages import PIPELINE_MESSAGES
from kafkadash.planning import job as plan_process
from tests.waiting import wait_until

OWN_TEMPLATES = Path(__file__).parent / "templates"
PASSWORD = "correct horse battery staple"  # of all users that make_user makes
BACKEND = settings.AUTHENTICATION_BACKENDS[0]
# Tables of what Django knows of models: each database has it from its migrations on, and nothing else is in them.
OF_MODELS = ("django_content_type", "auth_permission")

# Groups that keep one worker for long, in the order in which they are begun: groups that compute run beside those that
# wait for brokers. By itself xdist begins with the groups of the most tests. The product, Spark and the brokers of the
# contract at once are too much for two cores: the later ones begin after a share of the tests without a group.
FIRST_GROUPS = ("e2e",)
SHARE_BETWEEN = 0.5
LATER_GROUPS = (
    "spark",
    "kraft",
    "zookeeper",
    "away",
    "chaos",
    "own-playground",
    "demo",
    "stack",
    "secured-kafka",
    "embedded-postgres",
)
GARBAGE_AFTER = 100_000  # objects; Python's own figure is 700

# How long an example takes says more about what else the machine does than about the code; benches measure.
hypothesis.settings.register_profile(
    "kafkadash", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("kafkadash")


@pytest.hookimpl(trylast=True)  # after all that puts items in an order of their own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin the groups that take longest first, so that none runs alone at the end; the rest keeps its order."""
    places = {group: place for place, group in enumerate((*FIRST_GROUPS, *LATER_GROUPS))}
    grouped = sorted((item for item in items if group_of(item) in places), key=lambda item: places[group_of(item)])
    first = sum(group_of(item) in FIRST_GROUPS for item in grouped)
    alone = [item for item in items if group_of(item) not in places]
    begun = round(len(alone) * SHARE_BETWEEN)
    items[:] = [*grouped[:first], *alone[:begun], *grouped[first:], *alone[begun:]]


def group_of(item: pytest.Item) -> str:
    """The name of its xdist group, "" without one."""
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark is not None and mark.args else ""


@pytest.fixture(scope="session", autouse=True)
def texts_of_the_pipeline() -> None:
    """Its own process registers them when it begins; here its functions are called in the process of the tests."""
    register_messages(PIPELINE_MESSAGES)


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """One round of hashing instead of a second of it: who signs in by password in a test does not test the hash."""
    with mock.patch("django.contrib.auth.hashers.PBKDF2PasswordHasher.iterations", 1):
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_files() -> Iterator[None]:
    """Nothing waits for the disk: tests kill processes, which the system's cache outlives, and no machine."""
    with mock.patch.object(os, "fsync", return_value=None):
        yield


def pytest_collection_finish() -> None:
    """Take imported modules and collected tests out of garbage collection: they stay to the end.

    Tests leave little garbage: collecting it less often takes a twentieth off their processor seconds.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER, 50, 100)


def pytest_sessionstart() -> None:
    """Tests run in the main thread of their process, and start threads of the product."""
    widen_stack(runner.runtestprotocol)
    widen_thread_stacks()


@pytest.fixture(scope="session", autouse=True)
def own_templates() -> Iterator[None]:
    """Those below tests/templates, behind the product's: for all tests at once, as a change compiles all anew."""
    engines = [{**engine, "DIRS": [*engine["DIRS"], OWN_TEMPLATES]} for engine in settings.TEMPLATES]
    with override_settings(TEMPLATES=engines):
        yield


@pytest.fixture(scope="session", autouse=True)
def static_files_are_listed_once() -> Iterator[None]:
    """Each test client sets up the middleware anew, and nearly all of that is to look for static files on the disk."""
    found = ServeStaticMiddleware.add_files_from_finders
    listed: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {}

    def add_files(own: ServeStaticMiddleware) -> None:
        if own.static_prefix not in listed:
            found(own)
            listed[own.static_prefix] = dict(own.files), list(own.directories)
        files, directories = listed[own.static_prefix]
        own.files.update(files)
        for root, prefix in reversed(directories):
            own.insert_directory(root, prefix)

    with mock.patch.object(ServeStaticMiddleware, "add_files_from_finders", add_files):
        yield


@pytest.fixture(scope="session", autouse=True)
def flush_deletes_rows() -> Iterator[None]:
    """Between tests with real transactions Django empties all tables; there are few rows, which DELETE is cheaper for.

    TRUNCATE makes the files of all tables and indexes anew, and what Django knows of models would be written again
    after it. As with TRUNCATE, who still writes is waited for. The audit's trigger refuses both as it should. The cache
    table is emptied too: it is no model's, so Django does not know it.
    """
    original = DatabaseOperations.sql_flush
    trigger = "ALTER TABLE accounts_auditevent {} TRIGGER audit_append_only_rows;"

    def sql_flush(own: DatabaseOperations, style: Any, tables: Sequence[str], **options: Any) -> list[str]:
        if "accounts_auditevent" not in tables:
            return list(original(own, style, tables, **options))
        assert not any(options.values()), options
        emptied = [own.quote_name(table) for table in (*tables, "cache") if table not in OF_MODELS]
        return [
            f"LOCK TABLE {', '.join(emptied)} IN EXCLUSIVE MODE;",
            "SET LOCAL session_replication_role = replica;",  # no foreign keys, as all that refers to a row goes too
            trigger.format("DISABLE"),
            " ".join(f"DELETE FROM {table};" for table in emptied),
            trigger.format("ENABLE ALWAYS"),
        ]

    with (
        mock.patch.object(DatabaseOperations, "sql_flush", sql_flush),
        mock.patch.object(flush, "emit_post_migrate_signal"),
    ):
        yield


@pytest.fixture(autouse=True)
def plans_are_made_here(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make plans in this process, which loads NumPy and the solver once: the child takes a second for that each time.

    Tests marked ``plan_process`` have the real child; so has the product in every e2e test.
    """
    if request.node.get_closest_marker("plan_process"):
        yield
        return

    def run_here(folder: Path, step: Step) -> int:
        from kafkadash.planning import plan_process as plan_job

        asked = json.loads((folder / "request.json").read_bytes())
        # The limit would be that of the whole run.
        (folder / "request.json").write_text(json.dumps({**asked, "memory_bytes": None}), encoding="utf-8")
        step(0.0, "starting")
        return plan_job.run(folder, lambda stage, fraction: step(fraction, stage))

    with mock.patch.object(plan_process, "_run", run_here):
        yield


@pytest.fixture(autouse=True)
def connections_come_back(request: pytest.FixtureRequest) -> Iterator[None]:
    """A thread that keeps one fails the test that began it, not those that need them all later, nor the run's end."""
    yield
    if {"db", "transactional_db"} & set(request.fixturenames) or request.node.get_closest_marker("django_db"):
        wait_until(_all_are_back, "other threads gave their database connections back", 10)


def _all_are_back() -> bool:
    """But for the one of this thread, which the next test goes on with."""
    pool = connection._connection_pools.get(connection.alias)  # type: ignore[attr-defined]
    if pool is None:
        return True
    stats = pool.get_stats()
    mine = connection.connection is not None
    return bool(stats["pool_size"] - stats["pool_available"] <= mine)


def new_user(name: str, role: Role | None = None, cluster: Cluster | None = None, **fields: object) -> User:
    """``new_user("ann", Role.ADMIN, cluster)``: a role on that cluster, or on all where none is given."""
    user = User.objects.create(username=name, password=_hashed(PASSWORD), **fields)
    if role is not None:
        ClusterRole.objects.create(user=user, role=role, cluster=cluster)
    return user


@cache
def _hashed(password: str) -> str:
    return make_password(password)


def signed_in(user: User) -> Client:
    """A browser in which this user is signed in: one row, and not the dozen statements of a sign-in."""
    client = Client()
    key = get_random_string(32)
    kept = {SESSION_KEY: str(user.pk), BACKEND_SESSION_KEY: BACKEND, HASH_SESSION_KEY: user.get_session_auth_hash()}
    Session.objects.bulk_create(
        [
            Session(
                session_key=key,
                session_data=Session.objects.encode(kept),
                expire_date=timezone.now() + timedelta(seconds=settings.SESSION_COOKIE_AGE),
            )
        ]
    )
    sessions.note_use(key)
    client.cookies[settings.SESSION_COOKIE_NAME] = key
    return client


@pytest.fixture
def make_user(db: None) -> Callable[..., User]:
    return new_user


@pytest.fixture
def cluster(db: None) -> Cluster:
    """A registered cluster that nothing listens behind."""
    return Cluster.objects.create(name="Demo", slug="demo", bootstrap_servers="127.0.0.1:1")


@pytest.fixture
def viewer(make_user: Callable[..., User]) -> User:
    return make_user("vera", Role.VIEWER)


@pytest.fixture
def operator(make_user: Callable[..., User]) -> User:
    return make_user("olga", Role.OPERATOR)


@pytest.fixture
def approver(make_user: Callable[..., User]) -> User:
    return make_user("abel", Role.APPROVER)


@pytest.fixture
def auditor(make_user: Callable[..., User]) -> User:
    return make_user("aude", Role.AUDITOR)


@pytest.fixture
def admin(make_user: Callable[..., User]) -> User:
    """An administrator of all clusters, by role."""
    return make_user("adam", Role.ADMIN)


@pytest.fixture
def stranger(make_user: Callable[..., User]) -> User:
    """Signed in and without any role."""
    return make_user("stan")


@pytest.fixture
def client_of() -> Callable[[User], Client]:
    return signed_in


@pytest.fixture
def undone(db: None) -> Callable[[], AbstractContextManager[None]]:
    """Roll back at its end what is written in a ``with`` block, so that other tests find the same rows."""

    @contextmanager
    def block() -> Iterator[None]:
        with transaction.atomic():
            yield
            transaction.set_rollback(True)

    return block
