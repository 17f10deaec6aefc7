"""Fixtures that tests of several packages share."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from unittest import mock

import hypothesis
import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test import Client, override_settings
from django.utils import timezone
from django.utils.crypto import get_random_string

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from tests.waiting import wait_until

OWN_TEMPLATES = Path(__file__).parent / "templates"
PASSWORD = "correct horse battery staple"  # of all users that make_user makes
BACKEND = settings.AUTHENTICATION_BACKENDS[0]

# How long an example takes says more about what else the machine does than about the code; benches measure.
hypothesis.settings.register_profile(
    "kafkadash", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("kafkadash")


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
    """What was imported and collected stays to the end: the collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def own_templates() -> Iterator[None]:
    """Those below tests/templates, behind the product's: for all tests at once, as a change compiles all anew."""
    engines = [{**engine, "DIRS": [*engine["DIRS"], OWN_TEMPLATES]} for engine in settings.TEMPLATES]
    with override_settings(TEMPLATES=engines):
        yield


@pytest.fixture(scope="session", autouse=True)
def flush_may_empty_the_audit() -> Iterator[None]:
    """Between tests with real transactions Django empties all tables, which the audit's trigger refuses as it should.

    The cache table is emptied too: it is no model's, so Django does not know it.
    """
    original = DatabaseOperations.sql_flush
    trigger = "ALTER TABLE accounts_auditevent {} TRIGGER audit_append_only_table;"

    def sql_flush(*args: object, **kwargs: object) -> list[str]:
        truncate = original(*args, **kwargs)  # type: ignore[arg-type]
        if not any("accounts_auditevent" in statement for statement in truncate):
            return truncate
        return [trigger.format("DISABLE"), *truncate, "TRUNCATE cache;", trigger.format("ENABLE ALWAYS")]

    with mock.patch.object(DatabaseOperations, "sql_flush", sql_flush):
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
    """``with undone():`` what is written in the block is taken back at its end, so that others find the same rows."""

    @contextmanager
    def block() -> Iterator[None]:
        with transaction.atomic():
            yield
            transaction.set_rollback(True)

    return block
