"""TLS, logins and permissions of real Kafka, through the connection test and the collectors."""

from __future__ import annotations

import datetime as dt
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.errors import RightsCode
from kafkadash.changes.rights import NeededRight, check_rights
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import register_cluster
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import message_text, unpack_value
from kafkadash.devtools.embedded.ports import LOOPBACK
from kafkadash.devtools.playground.cluster import KafkaListener, KafkaPlayground, SecuredListener, TokenValidation
from kafkadash.devtools.playground.jars import ZOOKEEPER_LOCK
from kafkadash.devtools.playground.load import LoadTopic, create_topics
from kafkadash.jobs.connection_test import KIND
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import attempt_job, enqueue
from kafkadash.kafka.api import KafkaUnreachable, OpenTransaction, hidden_message
from kafkadash.kafka.connect import admin_for, close_all, run_canary
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.collection import RefreshOutcome, ensure_runs, refresh
from kafkadash.monitoring.models import BrokerState, ClusterState, Collection, CollectorKind, CollectorRun, TopicState
from tests.committed import commit_offsets
from tests.contract.certificates import Authority, new_authority
from tests.contract.identity_provider import AUDIENCE, CLIENT, CLIENT_SECRET, ISSUER, IdentityProvider, reply
from tests.embedded_plugin import RUN_FOLDER
from tests.kafka_releases import RELEASES, has_quorum, name_asked
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

    playground: KafkaPlayground
    good: Authority
    expired: Authority
    elsewhere: Authority
    provider: IdentityProvider

    def at(self, listener: str) -> str:
        return self.playground.cluster.secured_bootstrap(listener)


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def secure(
    kafka_runtime: None, provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secure]:
    good, elsewhere = new_authority(LOOPBACK), new_authority("elsewhere.example")
    expired = new_authority(LOOPBACK, broker_ended=dt.timedelta(days=3))

    def tls(protocol: str, authority: Authority) -> KafkaListener:
        return KafkaListener(protocol, authority.broker.pem, authority.broker.key_pem)

    keys = provider.write_keys(tmp_path_factory.mktemp("oauth") / "keys.json")
    listeners = {
        "OAUTH": KafkaListener("SASL_PLAINTEXT", tokens=TokenValidation(keys, AUDIENCE, ISSUER)),
        "SESSIONS": KafkaListener("SASL_PLAINTEXT", tokens=TokenValidation(keys, AUDIENCE, ISSUER, session_ms=2000)),
        "LOGIN": KafkaListener("SASL_PLAINTEXT"),
        "TLS": tls("SSL", good),
        "LOGINTLS": tls("SASL_SSL", good),
        "EXPIRED": tls("SSL", expired),
        "ELSEWHERE": tls("SSL", elsewhere),
        "FAR": KafkaListener("PLAINTEXT", advertised_host=FAR),
    }
    folder = Path(os.environ[RUN_FOLDER]) / f"secured-{os.environ.get('PYTEST_XDIST_WORKER', 'single')}"
    secured = SecuredListener(listeners, {"watcher": PASSWORD}, authorizer=True)
    if has_quorum():
        playground = KafkaPlayground(folder, secured=secured, lock=RELEASES.get(name_asked()))
        playground.up(brokers=1, racks=("a",))
    else:
        own = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
        playground = KafkaPlayground(folder, secured=secured, lock=ZOOKEEPER_LOCK, properties=own)
        playground.up(brokers=1, racks=("a",), zookeepers=1)
    try:
        if not has_quorum():
            _store_users(playground.bootstrap, secured.users)
        create_topics(playground.bootstrap, [LoadTopic("orders", 2, 1), LoadTopic("ledger", 1, 1)])
        yield Secure(playground, good, expired, elsewhere, provider)
    finally:
        playground.down()


def _store_users(bootstrap: str, users: Mapping[str, str]) -> None:
    """Store what KRaft's storage tool writes when it formats: the users of SCRAM."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    mechanisms = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    stored: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 4096), password.encode())
        for name, password in users.items()
        for mechanism in mechanisms
    ]
    for mechanism in range(len(mechanisms)):  # a request has each user once
        for done in admin.alter_user_scram_credentials(stored[mechanism :: len(mechanisms)]).values():
            done.result(10)


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
    attempt_job(job.pk)
    job.refresh_from_db()
    return job


def steps(job: Job) -> Mapping[str, Mapping[str, Any]]:
    assert job.result is not None, job.error
    return {step["key"]: step for step in job.result["steps"]}


def collected(cluster: Cluster, kind: str) -> RefreshOutcome:
    result = refresh(CollectorRun.objects.get(cluster=cluster, kind=kind).pk, only_if_due=False)
    assert result is not None
    return result


def works(job: Job) -> None:
    """Brokers with ZooKeeper were registered without its address, which is told."""
    assert job.state == JobState.DONE, (job.error, job.result)
    bad = {key: step for key, step in steps(job).items() if step["state"] != "ok"}
    if not has_quorum() and bad:
        assert bad.pop("versions")["said"]["code"] == ClusterErrorCode.WITH_ZOOKEEPER
    assert not bad, bad


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login_without_encryption(secure: Secure, admin: User, allow: Allow, mechanism: str) -> None:
    allow(READ_ONLY)
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login(mechanism))
    wait_until(lambda: steps(tried(cluster))["permissions"]["state"] == "ok", "the permissions are known", 15)
    job = tried(cluster)
    works(job)
    for named in ("watcher", mechanism):
        assert named in steps(job)["sasl"]["said"]


def oauth(provider: IdentityProvider, secret: str = CLIENT_SECRET) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_username": CLIENT,
        "sasl_password": secret,
        "oauth_endpoint": provider.url,
    }


def test_a_login_with_an_access_token(secure: Secure, admin: User, allow: Allow) -> None:
    allow(READ_ONLY)
    cluster = registered(admin, secure.at("OAUTH"), **oauth(secure.provider))
    wait_until(lambda: permission_words(cluster) == [], "the permissions are known", 15)
    job = tried(cluster)
    works(job)
    assert f"audience {AUDIENCE}, issuer {ISSUER}" in steps(job)["token"]["said"]
    before = len(secure.provider.issued)
    runs = CollectorRun.objects.filter(cluster=cluster).order_by("pk")
    for run in runs if has_quorum() else runs.exclude(kind=CollectorKind.QUORUM):
        assert collected(cluster, run.kind).error is None, run.kind
    assert len(secure.provider.issued) - before == 1, "one token for all collectors"
    assert secure.provider.issued[-1] not in str(list(Job.objects.values())) + str(list(AuditEvent.objects.values()))


def test_a_token_for_another_audience_is_refused_with_its_claims(
    secure: Secure, admin: User, client_of: Callable[[User], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secure.provider, "audience", "billing")
    cluster = registered(admin, secure.at("OAUTH"), **oauth(secure.provider))
    job = tried(cluster)
    assert (steps(job)["token"]["state"], steps(job)["sasl"]["state"]) == ("ok", "critical")
    assert job.error_code == KafkaErrorCode.TOKEN_REFUSED
    collected(cluster, "metadata")
    assert CollectorRun.objects.get(kind="metadata").last_failure == FailureKind.CREDENTIALS_REFUSED
    assert "audience billing" in client_of(admin).get("/settings/").content.decode()


def test_without_a_token_the_provider_is_to_blame_and_no_broker_is_called_silent(
    secure: Secure, admin: User, client_of: Callable[[User], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = registered(admin, secure.at("OAUTH"), **oauth(secure.provider))
    assert collected(cluster, "metadata").error is None
    close_all()
    monkeypatch.setattr(secure.provider, "misbehave", lambda handler: reply(handler, 503, b""))
    job = tried(cluster)
    assert job.error_code == KafkaErrorCode.TOKEN_ENDPOINT_FAILED
    assert steps(job)["token"]["state"] == "critical"
    for kind in ("metadata", "answers"):
        assert collected(cluster, kind).error is not None
        assert CollectorRun.objects.get(cluster=cluster, kind=kind).last_failure == FailureKind.TOKEN_UNAVAILABLE
    assert BrokerState.objects.get(cluster=cluster).silent_since is None
    page = client_of(admin).get("/settings/").content.decode()
    assert "No access token" in page
    assert secure.provider.url in page


def test_a_session_is_renewed_in_place_and_opened_again_where_it_ended(
    secure: Secure, admin: User, allow: Allow, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(READ_ONLY)
    monkeypatch.setattr(secure.provider, "lifetime_s", 4.0)
    cluster = registered(admin, secure.at("SESSIONS"), **oauth(secure.provider))
    before, until = len(secure.provider.issued), time.monotonic() + 5
    while time.monotonic() < until:
        assert collected(cluster, "metadata").error is None
    assert len(secure.provider.issued) - before == 2, "a token of 4 s is used for 3 s"
    monkeypatch.setattr(secure.provider, "misbehave", lambda handler: reply(handler, 503, b""))
    wait_until(lambda: collected(cluster, "metadata").error is not None, "the session and the token ended", 10)
    assert CollectorRun.objects.get(kind="metadata").last_failure == FailureKind.TOKEN_UNAVAILABLE
    monkeypatch.undo()
    wait_until(lambda: collected(cluster, "metadata").error is None, "it is opened with a new token", 10)


def test_encryption_without_a_login(secure: Secure, admin: User) -> None:
    cluster = registered(admin, secure.at("TLS"), security_protocol="SSL", ca_pem=secure.good.pem)
    job = tried(cluster)
    works(job)
    assert secure.at("TLS") in steps(job)["tls"]["said"]
    assert collected(cluster, "metadata").error is None
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
    assert job.error_code == KafkaErrorCode.CREDENTIALS_REFUSED
    assert "not-the-password" not in str(job.result) + str(job.error)
    collected(cluster, "metadata")
    collected(cluster, "metadata")
    run = CollectorRun.objects.get(kind="metadata")
    assert run.last_failure == FailureKind.CREDENTIALS_REFUSED
    assert run.attempted_at is not None
    assert run.next_at - run.attempted_at >= dt.timedelta(seconds=4 * run.interval_s)
    page = client_of(admin).get("/settings/").content.decode()
    assert "rejected the credentials" in page
    then = f"{run.next_at.astimezone(dt.UTC):%H:%M:%S}"
    assert message_text(ClusterErrorCode.TRIED_LESS_OFTEN, when=then) in page


@pytest.mark.parametrize(
    ("listener", "trusts", "sentences"),
    [
        ("EXPIRED", "expired", ["certificate has expired", r"valid until \d{4}-\d\d-\d\d \d\d:\d\d UTC"]),
        ("ELSEWHERE", "elsewhere", ["IP address mismatch", "The certificate is for elsewhere.example"]),
        ("TLS", "elsewhere", ["certificate was rejected", "issued by an authority"]),
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
        assert re.search(sentence, str(unpack_value(step["said"])))
    assert job.error_code == KafkaErrorCode.TLS_FAILED
    assert collected(cluster, "metadata").error is not None
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
    assert job.error_code in (KafkaErrorCode.CLOSED_INSTEAD, KafkaErrorCode.NOT_KAFKA)


def test_an_advertised_listener_that_cannot_be_reached_is_named(secure: Secure, admin: User) -> None:
    cluster = registered(admin, secure.at("FAR"))
    step = steps(tried(cluster))["listeners"]
    port = secure.at("FAR").rpartition(":")[2]
    assert step["state"] == "critical"
    assert step["items"][0]["code"] == JobErrorCode.LISTENER_UNREACHABLE
    assert step["items"][0]["params"]["address"] == f"{FAR}:{port}"
    assert collected(cluster, "metadata").error is None, "the bootstrap address answers what any broker can answer"
    collected(cluster, "log_dirs")
    told = Collection.objects.get(kind="log_dirs")
    assert not told.ok, "the only broker could not be asked"
    assert f"{FAR}:{port}" in str(told.messages[0])


def permission_words(cluster: Cluster) -> list[str]:
    return [str(unpack_value(item)) for item in steps(tried(cluster))["permissions"]["items"]]


def test_a_principal_that_may_only_read_is_enough_for_every_collector(
    secure: Secure, admin: User, allow: Allow
) -> None:
    allow(READ_ONLY)
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login("SCRAM-SHA-512"))
    wait_until(lambda: permission_words(cluster) == [], "the permissions are known", 15)
    runs = CollectorRun.objects.filter(cluster=cluster).order_by("pk")
    for run in runs if has_quorum() else runs.exclude(kind=CollectorKind.QUORUM):
        assert collected(cluster, run.kind).error is None, run.kind
        told = Collection.objects.filter(cluster=cluster, kind=run.kind).latest("pk")
        assert told.errors == [], run.kind
    assert set(TopicState.objects.values_list("name", flat=True)) >= {"orders", "ledger"}


def test_transactions_that_acls_hide_are_not_taken_for_none(secure: Secure, admin: User, allow: Allow) -> None:
    single = ((ResourceType.TRANSACTIONAL_ID, "orders-tx"), DESCRIBE)
    allow([*READ_ONLY, single])
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login("PLAIN"))
    client = admin_for(cluster.connection())

    def is_told(*, sees_all: bool, producers: Mapping[str, Mapping[int, Sequence[OpenTransaction]]]) -> bool:
        known = client.coordinated_transactions([1], deadline=10)
        opened = client.open_transactions({"orders": [0]}, deadline=10)
        return (known.described, known.sees_all) == ({}, sees_all) and opened == producers

    wait_until(lambda: is_told(sees_all=False, producers={}), "nothing is told", 30)
    allow([*READ_ONLY, (ORDERS, AclOperation.READ), ((ResourceType.TRANSACTIONAL_ID, "*"), DESCRIBE)])
    wait_until(lambda: is_told(sees_all=True, producers={"orders": {0: []}}), "all is told", 30)


def test_without_describe_on_the_cluster_collectors_and_pages_say_so(
    secure: Secure, admin: User, allow: Allow, client_of: Callable[[User], Client]
) -> None:
    allow([grant for grant in READ_ONLY if grant != (CLUSTER, DESCRIBE)])
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login("PLAIN"))
    start = "Describe on the cluster is missing. Not available: reassignments, the controller quorum"
    wait_until(lambda: any(words.startswith(start) for words in permission_words(cluster)), "it is noticed", 15)
    collected(cluster, "metadata")
    for kind in ("reassignments", "quorum") if has_quorum() else ("reassignments",):
        assert "CLUSTER_AUTHORIZATION_FAILED" in str(collected(cluster, kind).error)
        assert CollectorRun.objects.get(cluster=cluster, kind=kind).last_failure == FailureKind.NOT_AUTHORIZED
    collected(cluster, "log_dirs")
    permission = "Describe on the cluster"
    for named in (permission, "CLUSTER_AUTHORIZATION_FAILED"):
        assert named in str(Collection.objects.get(kind="log_dirs").messages[0])
    page = client_of(admin).get(f"/clusters/{cluster.slug}/").content.decode()
    assert permission in page


def test_without_describe_on_a_topic_it_is_not_silently_left_out(
    secure: Secure, admin: User, allow: Allow, client_of: Callable[[User], Client]
) -> None:
    on_cluster = [(CLUSTER, DESCRIBE), (CLUSTER, DESCRIBE_CONFIGS)]
    commits = (ResourceType.TOPIC, "__consumer_offsets")  # where another test has made consumers
    allow([*on_cluster, *((topic, right) for topic in (ORDERS, commits) for right in (DESCRIBE, DESCRIBE_CONFIGS))])
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login("PLAIN"))
    sentence = str(hidden_message(["ledger"]))
    wait_until(lambda: permission_words(cluster) == [sentence], "the connection test says it", 15)
    collected(cluster, "metadata")
    assert set(TopicState.objects.values_list("name", flat=True)) - {commits[1]} == {"orders"}
    collected(cluster, "log_dirs")
    assert [str(each) for each in Collection.objects.get(kind="log_dirs").messages] == [sentence]
    collected(cluster, "metadata")
    assert ClusterState.objects.get(cluster=cluster).hidden_topics == 1
    client = client_of(admin)
    for path in ("", "topics/"):
        page = client.get(f"/clusters/{cluster.slug}/{path}").content.decode()
        title = page[page.index("<h1") : page.index("</h1>")]
        assert "hidden" in title, path
        assert 'data-state="ok"' not in page[page.index("<main") : page.index("</h1>")], path
    assert "“ledger”" in client.get(f"/clusters/{cluster.slug}/").content.decode()


def test_without_describe_configs_the_connection_test_says_what_it_costs(
    secure: Secure, admin: User, allow: Allow
) -> None:
    allow([grant for grant in READ_ONLY if grant != (CLUSTER, DESCRIBE_CONFIGS)])
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login("PLAIN"))
    on_cluster = (
        "DescribeConfigs on the cluster is missing. Not available: broker configuration and throttles. "
        "Grant it in Kafka."
    )
    wait_until(lambda: permission_words(cluster) == [on_cluster], "it is noticed", 15)
    allow([grant for grant in READ_ONLY if grant != (TOPICS, DESCRIBE_CONFIGS)])
    on_topics = (
        "DescribeConfigs on all topics is missing. Not available: their configuration and throttled replicas. "
        "Grant it in Kafka."
    )
    wait_until(lambda: permission_words(cluster) == [on_topics], "it is noticed", 15)


@pytest.fixture
def two_groups(secure: Secure) -> Iterator[list[str]]:
    """Groups with a commit; with them goes the topic of commits, which other tests do not expect."""
    server, names = secure.playground.bootstrap, ["may-go", "must-stay"]
    for name in names:
        consumer = Consumer({"bootstrap.servers": server, "group.id": name, "enable.auto.commit": False})
        commit_offsets(consumer, [TopicPartition("orders", 0, 0)])
        consumer.close()
    yield names
    client, commits = AdminClient({"bootstrap.servers": server}), "__consumer_offsets"
    for group in client.delete_consumer_groups(names).values():
        group.result(10)
    client.delete_topics([commits])[commits].result(10)
    wait_until(lambda: commits not in client.list_topics(timeout=10).topics, "the topic is deleted", 10)


def test_a_right_on_one_group_is_not_taken_for_that_on_another(
    secure: Secure, admin: User, allow: Allow, two_groups: list[str]
) -> None:
    delete = AclOperation.DELETE
    allow([*READ_ONLY, ((ResourceType.GROUP, "*"), DESCRIBE), ((ResourceType.GROUP, "may-go"), delete)])
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login("PLAIN"))

    def is_told() -> bool:
        collected(cluster, "groups")
        collected(cluster, "versions")
        check = check_rights(cluster, [NeededRight("Delete", groups=tuple(two_groups))], dt.datetime.now(dt.UTC))
        return [(each.code, each.params.get("group")) for each in check.problems] == [
            (RightsCode.MISSING_ON_GROUPS, "must-stay")
        ]

    wait_until(is_told, "the check names the one that lacks it", 30)


CANARY_MODES: Mapping[str, Callable[[Secure], tuple[str, dict[str, Any]]]] = {
    "PLAIN": lambda _: ("LOGIN", {"security_protocol": "SASL_PLAINTEXT", **login("PLAIN")}),
    "SCRAM": lambda _: ("LOGIN", {"security_protocol": "SASL_PLAINTEXT", **login("SCRAM-SHA-512")}),
    "token": lambda secure: ("OAUTH", oauth(secure.provider)),
    "TLS": lambda secure: ("TLS", {"security_protocol": "SSL", "ca_pem": secure.good.pem}),
    "PLAIN over TLS": lambda secure: (
        "LOGINTLS",
        {"security_protocol": "SASL_SSL", "ca_pem": secure.good.pem, **login("PLAIN")},
    ),
}


@pytest.mark.parametrize("mode", CANARY_MODES)
def test_the_canary_connects_as_its_cluster_does(secure: Secure, admin: User, allow: Allow, mode: str) -> None:
    listener, connection = CANARY_MODES[mode](secure)
    cluster = registered(admin, secure.at(listener), **connection)

    def is_measured() -> bool:
        answer = run_canary(cluster.connection(), "", "orders", deadline=10)
        return {probe.fault for probe in answer.partitions.values()} == {None}

    allow([*READ_ONLY, (ORDERS, AclOperation.READ), (ORDERS, AclOperation.WRITE)])
    wait_until(is_measured, "it is measured", 30)


@pytest.mark.parametrize(
    "rights", [(), (DESCRIBE, AclOperation.WRITE), (DESCRIBE, AclOperation.READ)], ids=["none", "no Read", "no Write"]
)
def test_a_canary_without_rights_on_its_topic_says_so(
    secure: Secure, admin: User, allow: Allow, rights: Sequence[AclOperation]
) -> None:
    allow([(CLUSTER, DESCRIBE), *((ORDERS, right) for right in rights)])
    cluster = registered(admin, secure.at("LOGIN"), security_protocol="SASL_PLAINTEXT", **login("PLAIN"))

    def is_refused() -> bool:
        try:
            run_canary(cluster.connection(), "", "orders", deadline=10)
        except KafkaUnreachable as failure:
            return failure.message.code == KafkaErrorCode.CANARY_TOPIC_UNREADABLE
        return False

    wait_until(is_refused, "the topic is not read or written", 30)
