"""TLS, logins and permissions of real Kafka, through the connection test and the collectors."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import register_cluster
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.embedded.ports import LOOPBACK
from kafkadash.jobs.connection_test import KIND
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.run import attempt
from kafkadash.jobs.services import enqueue
from kafkadash.kafka.connect import close_all
from kafkadash.observe.collection import Refresh, ensure_runs, refresh
from kafkadash.observe.models import ClusterState, Collection, CollectorRun, TopicState
from kafkadash.playground.cluster import Playground
from kafkadash.playground.load import Topic, create_topics
from kafkadash.playground.security import Listener, Secured
from tests.contract.certificates import Authority, new_authority
from tests.embedded_plugin import RUN_FOLDER
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("secured-kafka"), pytest.mark.django_db]

PASSWORD = "w4tch-0nly"
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
FAR = "broker-1.nowhere.invalid"
CLUSTER = (ResourceType.BROKER, "kafka-cluster")
TOPICS, ORDERS = (ResourceType.TOPIC, "*"), (ResourceType.TOPIC, "orders")
DESCRIBE, DESCRIBE_CONFIGS = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS
READ_ONLY = [
    (CLUSTER, DESCRIBE),
    (CLUSTER, DESCRIBE_CONFIGS),
    (TOPICS, DESCRIBE),
    (TOPICS, DESCRIBE_CONFIGS),
]

Grant = tuple[tuple[ResourceType, str], AclOperation]
Allow = Callable[[Sequence[Grant]], None]


@dataclass(frozen=True)
class Secure:
    """One broker with a listener of each kind. ``watcher`` may only read; nobody else has a name."""

    playground: Playground
    good: Authority
    expired: Authority
    elsewhere: Authority

    def at(self, listener: str) -> str:
        return self.playground.cluster.secured_bootstrap(listener)


@pytest.fixture(scope="module")
def secure(kafka_runtime: None) -> Iterator[Secure]:
    good, elsewhere = new_authority(LOOPBACK), new_authority("elsewhere.example")
    expired = new_authority(LOOPBACK, broker_ended=dt.timedelta(days=3))

    def tls(protocol: str, authority: Authority) -> Listener:
        return Listener(protocol, authority.broker.pem, authority.broker.key_pem)

    listeners = {
        "LOGIN": Listener("SASL_PLAINTEXT"),
        "TLS": tls("SSL", good),
        "LOGINTLS": tls("SASL_SSL", good),
        "EXPIRED": tls("SSL", expired),
        "ELSEWHERE": tls("SSL", elsewhere),
        "FAR": Listener("PLAINTEXT", advertised_host=FAR),
    }
    folder = Path(os.environ[RUN_FOLDER]) / f"secured-{os.environ.get('PYTEST_XDIST_WORKER', 'single')}"
    playground = Playground(folder, secured=Secured(listeners, {"watcher": PASSWORD}, authorizer=True))
    playground.up(brokers=1, racks=("a",))
    try:
        create_topics(playground.bootstrap, [Topic("orders", 2, 1), Topic("ledger", 1, 1)])
        yield Secure(playground, good, expired, elsewhere)
    finally:
        playground.down()


@pytest.fixture
def allow(secure: Secure) -> Iterator[Allow]:
    """``allow(grants)``: what the watcher may do from now on, and nothing else."""
    admin = AdminClient({"bootstrap.servers": secure.playground.bootstrap, "log_level": 0})
    every: Any = AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type]
        ResourcePatternType.ANY,
        "User:watcher",
        None,  # type: ignore[arg-type]
        AclOperation.ANY,
        AclPermissionType.ANY,
    )

    def set_to(grants: Sequence[Grant]) -> None:
        for gone in admin.delete_acls([every]).values():
            gone.result(10)
        bindings = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, "User:watcher", "*", operation, AclPermissionType.ALLOW)
            for (kind, name), operation in grants
        ]
        for made in (admin.create_acls(bindings) if bindings else {}).values():
            made.result(10)

    yield set_to
    set_to([])


@pytest.fixture(autouse=True)
def clients_are_closed() -> Iterator[None]:
    yield
    close_all()


def registered(actor: User, addresses: str, **connection: Any) -> Cluster:
    cluster = register_cluster(actor, "secured", addresses, **connection)
    ensure_runs()
    return cluster


def login(mechanism: str, password: str = PASSWORD, **more: Any) -> dict[str, Any]:
    return {"sasl_mechanism": mechanism, "sasl_username": "watcher", "sasl_password": password, **more}


def tried(cluster: Cluster) -> Job:
    job = enqueue(KIND, cluster=cluster)
    attempt(job.pk)
    job.refresh_from_db()
    return job


def steps(job: Job) -> Mapping[str, Mapping[str, Any]]:
    assert job.result is not None, job.error
    return {step["key"]: step for step in job.result["steps"]}


def collected(cluster: Cluster, kind: str) -> Refresh:
    result = refresh(CollectorRun.objects.get(cluster=cluster, kind=kind).pk, only_if_due=False)
    assert result is not None
    return result


def works(job: Job) -> None:
    assert job.state == JobState.DONE, (job.error, job.result)
    bad = {key: step for key, step in steps(job).items() if step["state"] != "ok"}
    assert not bad, bad


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login_without_encryption(secure: Secure, admin: User, allow: Allow, mechanism: str) -> None:
    allow(READ_ONLY)
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login(mechanism))
    wait_until(lambda: steps(tried(cluster))["permissions"]["state"] == "ok", "the permissions are known", 15)
    job = tried(cluster)
    works(job)
    assert steps(job)["sasl"]["sentence"] == f"Logged in as watcher with {mechanism}."


def test_encryption_without_a_login(secure: Secure, admin: User) -> None:
    cluster = registered(admin, secure.at("TLS"), security_protocol="SSL", ca_pem=secure.good.pem)
    job = tried(cluster)
    works(job)
    assert steps(job)["tls"]["sentence"] == f"{secure.at('TLS')} showed a certificate that is trusted."
    assert collected(cluster, "metadata").error == ""
    assert set(TopicState.objects.values_list("name", flat=True)) >= {"orders", "ledger"}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login_over_tls(secure: Secure, admin: User, mechanism: str) -> None:
    security = {"security_protocol": "SASL_SSL", "ca_pem": secure.good.pem}
    cluster = registered(admin, secure.at("LOGINTLS"), **security, **login(mechanism))
    job = tried(cluster)
    assert job.state == JobState.DONE, job.error
    assert [steps(job)[key]["state"] for key in ("tls", "sasl", "kafka", "listeners")] == ["ok"] * 4


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_said_and_tried_less_and_less_often(
    secure: Secure, admin: User, client_of: Callable[[User], Client], mechanism: str
) -> None:
    wrong = login(mechanism, "not-the-password")
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **wrong)
    job = tried(cluster)
    assert job.state == JobState.FAILED
    assert steps(job)["connect"]["state"] == "ok"
    assert steps(job)["sasl"]["state"] == "critical"
    assert "refused the credentials" in job.error
    assert "not-the-password" not in str(job.result) + job.error
    collected(cluster, "metadata")
    collected(cluster, "metadata")
    run = CollectorRun.objects.get(kind="metadata")
    assert run.last_failure == FailureKind.CREDENTIALS_REFUSED
    assert run.attempted_at is not None
    assert run.next_at - run.attempted_at >= dt.timedelta(seconds=4 * run.interval_s)
    page = client_of(admin).get("/settings/").content.decode()
    assert "refused the credentials" in page
    assert "It is tried less and less often, next at " in page


@pytest.mark.parametrize(
    ("listener", "trusts", "sentences"),
    [
        ("EXPIRED", "expired", ["certificate has expired", r"valid until \d{4}-\d\d-\d\d \d\d:\d\d UTC"]),
        ("ELSEWHERE", "elsewhere", ["IP address mismatch", "It is a certificate for elsewhere.example"]),
        ("TLS", "elsewhere", ["certificate was refused", "issued by an authority"]),
    ],
)
def test_a_certificate_that_cannot_be_trusted_is_said(
    secure: Secure, admin: User, listener: str, trusts: str, sentences: list[str]
) -> None:
    ca_pem = getattr(secure, trusts).pem
    cluster = registered(admin, secure.at(listener), security_protocol="SSL", ca_pem=ca_pem)
    job = tried(cluster)
    assert job.state == JobState.FAILED
    step = steps(job)["tls"]
    assert step["state"] == "critical"
    for sentence in sentences:
        assert re.search(sentence, step["sentence"]), step["sentence"]
    assert "certificate was refused" in job.error
    assert collected(cluster, "metadata").error.startswith("The bootstrap server")
    assert CollectorRun.objects.get(kind="metadata").last_failure == FailureKind.CREDENTIALS_REFUSED


@pytest.mark.parametrize(
    ("listener", "security"),
    [("LOGIN", {"security_protocol": "PLAINTEXT"}), ("TLS", {"security_protocol": "PLAINTEXT"})],
)
def test_a_listener_that_expects_something_else(
    secure: Secure, admin: User, listener: str, security: dict[str, Any]
) -> None:
    job = tried(registered(admin, secure.at(listener), **security))
    assert job.state == JobState.FAILED
    assert steps(job)["connect"]["state"] == "ok"
    assert re.search(r"expects another way to connect|is it a TLS listener", job.error), job.error


def test_an_advertised_listener_that_cannot_be_reached_is_named(secure: Secure, admin: User) -> None:
    cluster = registered(admin, secure.at("FAR"))
    step = steps(tried(cluster))["listeners"]
    port = secure.at("FAR").rpartition(":")[2]
    assert step["state"] == "critical"
    assert step["items"][0].startswith(f"Broker 1 advertises {FAR}:{port}, which cannot be reached from here.")
    assert collected(cluster, "metadata").error == "", "the bootstrap address answers what any broker can answer"
    collected(cluster, "log_dirs")
    told = Collection.objects.get(kind="log_dirs")
    assert not told.ok, "the only broker could not be asked"
    assert f"{FAR}:{port}" in told.errors[0]


def permission_words(cluster: Cluster) -> list[str]:
    return list(steps(tried(cluster))["permissions"]["items"])


def test_a_principal_that_may_only_read_is_enough_for_every_collector(
    secure: Secure, admin: User, allow: Allow
) -> None:
    allow(READ_ONLY)
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login("SCRAM-SHA-512"))
    wait_until(lambda: permission_words(cluster) == [], "the permissions are known", 15)
    for run in CollectorRun.objects.filter(cluster=cluster).order_by("pk"):
        assert collected(cluster, run.kind).error == "", run.kind
        told = Collection.objects.filter(cluster=cluster, kind=run.kind).latest("pk")
        assert told.errors == [], run.kind
    assert set(TopicState.objects.values_list("name", flat=True)) >= {"orders", "ledger"}


def test_without_describe_on_the_cluster_collectors_and_pages_say_so(
    secure: Secure, admin: User, allow: Allow, client_of: Callable[[User], Client]
) -> None:
    allow([grant for grant in READ_ONLY if grant != (CLUSTER, DESCRIBE)])
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login("PLAIN"))
    start = "Describe on the cluster is missing: reassignments, the controller quorum"
    wait_until(lambda: any(words.startswith(start) for words in permission_words(cluster)), "it is noticed", 15)
    collected(cluster, "metadata")
    for kind in ("reassignments", "quorum"):
        assert "needs Describe on the cluster (CLUSTER_AUTHORIZATION_FAILED)" in collected(cluster, kind).error
    collected(cluster, "log_dirs")
    assert "the principal needs Describe on the cluster" in Collection.objects.get(kind="log_dirs").errors[0]
    page = client_of(admin).get(f"/clusters/{cluster.slug}/").content.decode()
    assert "needs Describe on the cluster" in page


def test_without_describe_on_a_topic_it_is_not_silently_left_out(
    secure: Secure, admin: User, allow: Allow, client_of: Callable[[User], Client]
) -> None:
    on_cluster = [(CLUSTER, DESCRIBE), (CLUSTER, DESCRIBE_CONFIGS)]
    allow([*on_cluster, (ORDERS, DESCRIBE), (ORDERS, DESCRIBE_CONFIGS)])
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login("PLAIN"))
    sentence = (
        "Describe on “ledger” is missing: Kafka hides what may not be described, so counts are too small. "
        "Grant it in Kafka."
    )
    wait_until(lambda: permission_words(cluster) == [sentence], "the connection test says it", 15)
    collected(cluster, "metadata")
    assert list(TopicState.objects.values_list("name", flat=True)) == ["orders"]
    collected(cluster, "log_dirs")
    assert Collection.objects.get(kind="log_dirs").errors == [sentence]
    collected(cluster, "metadata")
    assert ClusterState.objects.get(cluster=cluster).hidden_topics == 1
    client = client_of(admin)
    for path in ("", "topics/"):
        page = client.get(f"/clusters/{cluster.slug}/{path}").content.decode()
        title = page[page.index("<h1") : page.index("</h1>")]
        assert "hidden" in title, path
        assert 'data-state="ok"' not in page[page.index("<main") : page.index("</h1>")], path
    assert "Describe on “ledger” is missing" in client.get(f"/clusters/{cluster.slug}/").content.decode()


def test_without_describe_configs_the_connection_test_says_what_it_costs(
    secure: Secure, admin: User, allow: Allow
) -> None:
    allow([grant for grant in READ_ONLY if grant != (CLUSTER, DESCRIBE_CONFIGS)])
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login("PLAIN"))
    on_cluster = (
        "DescribeConfigs on the cluster is missing: the brokers' configuration and throttles stay unknown. "
        "Grant it in Kafka."
    )
    wait_until(lambda: permission_words(cluster) == [on_cluster], "it is noticed", 15)
    allow([grant for grant in READ_ONLY if grant != (TOPICS, DESCRIBE_CONFIGS)])
    on_topics = (
        "DescribeConfigs on all topics is missing: their configuration and throttled replicas stay unknown. "
        "Grant it in Kafka."
    )
    wait_until(lambda: permission_words(cluster) == [on_topics], "it is noticed", 15)
