"""``manage.py cluster``: clusters without a browser, secrets never on the command line.

manage.py pipeline becomes the pipeline's own process, and hands on what it was asked, no more.
"""

from __future__ import annotations

import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from kafkadash.accounts.errors import CodedCommandError
from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.environment import SECRET_NAMES
from kafkadash.core.messages import as_message
from kafkadash.jobs import runner as kinds
from kafkadash.jobs.connection_test import KIND
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import JobFailed, JobKind, JobRun, attempt_job
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.ops.errors import OperationErrorCode
from tests.contract.certificates import new_authority
from tests.waiting import wait_until

SECRET = "pl4nted-p4ssword"


def cluster(*arguments: str) -> str:
    out = io.StringIO()
    call_command("cluster", *arguments, stdout=out, stderr=out)
    return out.getvalue()


@pytest.mark.django_db
def test_a_secured_cluster_is_registered_with_secrets_from_files(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(SECRET + "\n")
    authority = new_authority().pem.strip()
    (tmp_path / "ca").write_text(authority)
    said = cluster(
        "register", "Prod EU", "--bootstrap", "a:9093,b:9093", "--security", "SASL_SSL",
        "--sasl-mechanism", "SCRAM-SHA-512", "--sasl-username", "watcher",
        "--sasl-password-file", str(tmp_path / "password"), "--ca-file", str(tmp_path / "ca"), "--any-hostname",
    )  # fmt: skip
    assert "cluster test prod-eu" in said
    security = Cluster.objects.get(slug="prod-eu").connection().security
    assert (security.protocol, security.sasl_username, security.sasl_password, security.ca_pem) == (
        "SASL_SSL",
        "watcher",
        SECRET,
        authority,
    )
    assert not security.check_hostname
    assert SECRET not in repr(list(AuditEvent.objects.values()))


@pytest.mark.django_db
def test_oauth_with_the_client_secret_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    login = ["--security", "SASL_SSL", "--sasl-username", "watcher", "--sasl-password-file", "env:CLIENT_SECRET"]
    with pytest.raises(CommandError, match=KafkaErrorCode.KERBEROS_UNSUPPORTED):
        cluster("register", "x", "--bootstrap", "a:1", *login, "--sasl-mechanism", "GSSAPI")
    endpoint = "https://idp.example/token"
    oauth = ["--sasl-mechanism", "OAUTHBEARER", "--oauth-endpoint", endpoint, "--oauth-scope", "kafka"]
    cluster("register", "x", "--bootstrap", "a:1", *login, *oauth)
    security = Cluster.objects.get(slug="x").connection().security
    assert (security.sasl_password, security.oauth_endpoint, security.oauth_scope) == (SECRET, endpoint, "kafka")
    event = AuditEvent.objects.get(action="cluster.registered")
    assert event.after is not None
    assert event.after["oauth_endpoint"] == endpoint
    assert SECRET not in str(event.after)


@pytest.mark.django_db
def test_there_is_no_option_for_a_secret_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError):
        cluster("register", "x", "--bootstrap", "a:1", "--sasl-password", SECRET)
    assert not Cluster.objects.exists()


@pytest.mark.django_db
def test_each_bad_address_has_its_line() -> None:
    with pytest.raises(CommandError) as caught:
        cluster("register", "x", "--bootstrap", "a,b:0")
    assert [line.split()[0] for line in str(caught.value).splitlines()] == ["a", "b:0"]


@pytest.mark.django_db
def test_a_connection_is_changed(cluster_row: Cluster) -> None:
    assert "version 2" in cluster("connect", "demo", "--bootstrap", "c:9092")
    (listed,) = cluster("list").splitlines()
    assert listed.startswith("demo: c:9092 ")
    assert "PLAINTEXT" in listed
    with pytest.raises(CommandError, match="No setting to change"):
        cluster("connect", "demo")


@pytest.mark.django_db
def test_a_cluster_is_disabled_and_enabled(cluster_row: Cluster) -> None:
    assert cluster("disable", "demo") == "demo is now disabled.\n"
    assert "disabled" in cluster("list")
    assert cluster("disable", "demo") == "demo is already disabled.\n"
    assert cluster("enable", "demo") == "demo is now enabled.\n"


@pytest.mark.django_db
def test_the_list_says_what_to_do_when_it_is_empty() -> None:
    assert "cluster register NAME" in cluster("list")


@pytest.mark.django_db
def test_roles_are_listed(cluster_row: Cluster, viewer: User, make_user: Callable[..., User]) -> None:
    make_user("ann", Role.ADMIN, cluster_row)
    make_user("root", is_superuser=True)
    ann, vera, root = cluster("roles", "demo").splitlines()
    assert (ann, root) == ("ann: admin", "root: superuser")
    assert vera.startswith("vera: viewer ")


@pytest.fixture
def cluster_row(db: None) -> Cluster:
    return Cluster.objects.create(name="Demo", slug="demo", bootstrap_servers="127.0.0.1:1")


@pytest.fixture
def handled_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[JobRun], dict[str, Any]]], None]:
    """Another handler for the connection test: what Kafka answers is the job's tests' business."""

    def handle(handler: Callable[[JobRun], dict[str, Any]]) -> None:
        monkeypatch.setitem(kinds._kinds, KIND, JobKind(KIND, handler, deadline_s=10))

    return handle


@contextmanager
def a_worker() -> Iterator[None]:
    """Takes the next connection test that is queued, as a worker would."""

    def work() -> None:
        try:
            wait_until(lambda: Job.objects.filter(state=JobState.QUEUED).exists(), "a job is queued")
            attempt_job(Job.objects.get(state=JobState.QUEUED).pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join(timeout=30)


RESULT = {
    "kafka_id": "abc",
    "mode": "kraft",
    "brokers": [
        {"id": 1, "host": "k1", "port": 9092, "rack": "a", "fenced": False},
        {"id": 2, "host": "k2", "port": 9092, "rack": None, "fenced": True},
    ],
    "racks": ["a"],
    "brokers_without_rack": 1,
    "controller": 101,
    "voters": [101, 102],
    "problems": [],
}


@pytest.mark.django_db(transaction=True)
def test_the_test_waits_for_the_worker_and_prints_what_it_says(
    cluster_row: Cluster, handled_by: Callable[[Callable[[JobRun], dict[str, Any]]], None]
) -> None:
    handled_by(lambda _run: RESULT)
    with a_worker():
        said = cluster("test", "demo", "--wait", "30")
    head, *brokers, quorum = said.splitlines()
    assert [word in head for word in ("abc", "kraft")] == [True, True]
    assert [(re.findall(r"\d+|k\d:\d+", line)[:2], "rack a" in line, "fenced" in line) for line in brokers] == [
        (["1", "k1:9092"], True, False),
        (["2", "k2:9092"], False, True),
    ]
    assert re.findall(r"\d+", quorum) == ["101", "101", "102"]


@pytest.mark.django_db(transaction=True)
def test_problems_are_printed_and_the_exit_code_says_so(
    cluster_row: Cluster, handled_by: Callable[[Callable[[JobRun], dict[str, Any]]], None]
) -> None:
    problem = "Broker 2: no answer within 8 s"
    handled_by(lambda _run: {**RESULT, "problems": [problem]})
    out = io.StringIO()
    with a_worker(), pytest.raises(SystemExit) as exited:
        call_command("cluster", "test", "demo", "--wait", "30", stdout=out)
    assert exited.value.code == 2
    assert f"! {problem}" in out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_a_failure_is_the_jobs_sentence(
    cluster_row: Cluster, handled_by: Callable[[Callable[[JobRun], dict[str, Any]]], None]
) -> None:
    def fail(run: JobRun) -> dict[str, Any]:
        run.step(0.5, "knocking")
        raise JobFailed(as_message("Nobody is at home."))

    handled_by(fail)
    with a_worker(), pytest.raises(CommandError, match=r"^Nobody is at home\.$"):
        cluster("test", "demo", "--wait", "30")


@pytest.mark.django_db
def test_without_a_worker_it_gives_up_and_leaves_no_job_behind(cluster_row: Cluster) -> None:
    with pytest.raises(CommandError, match=r"No worker started the test within 0\.1 s\. Check that beat is running"):
        cluster("test", "demo", "--wait", "0.1")
    assert Job.objects.get().state == JobState.CANCELLED


@pytest.mark.django_db
def test_an_unknown_cluster_is_a_sentence(cluster_row: Cluster) -> None:
    with pytest.raises(CommandError, match=r"There is no cluster nowhere\. Registered clusters: demo\."):
        cluster("test", "nowhere")


@pytest.mark.parametrize(
    ("asked", "handed_on"),
    [
        (["run"], ["run"]),
        (["run", "--every", "5"], ["run", "--every", "5.0"]),
        (["once"], ["once"]),
        (
            ["backfill", "--from", "2026-11-20", "--to", "2026-11-21"],
            ["backfill", "--from=2026-11-20", "--to=2026-11-21"],
        ),
    ],
)
def test_what_is_asked_is_handed_on(asked: list[str], handed_on: list[str]) -> None:
    with mock.patch("os.execve") as becomes:
        call_command("pipeline", "--uri", "file:///x", *asked)
    action, *more = handed_on
    [(program, arguments, environment)] = [call.args for call in becomes.call_args_list]
    assert program == sys.executable
    assert arguments == [sys.executable, "-m", "kafkadash.pipeline", action, "--uri", "file:///x", *more]
    assert environment["PATH"] == os.environ["PATH"]


def test_secrets_of_the_product_are_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SECRET_NAMES, "FIELD_KEYS_FILE"):
        monkeypatch.setenv(name, "s3cret")
    with mock.patch("os.execve") as becomes:
        call_command("pipeline", "--uri", "file:///x", "run")
    assert "s3cret" not in becomes.call_args.args[2].values()


@pytest.mark.django_db
def test_migrate__database_of_before_0_1_0__is_refused_before_anything_is_changed() -> None:
    MigrationRecorder(connection).record_applied("observe", "0001_initial")
    with pytest.raises(CodedCommandError) as refused:
        call_command("migrate", verbosity=0)
    assert refused.value.message.code is OperationErrorCode.DATABASE_TOO_OLD
