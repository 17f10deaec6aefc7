"""Changes to clusters and roles: each writes its audit event, or nothing at all.

Addresses as people enter them: one sentence for each that cannot be used.

A removed cluster is gone for everybody at once, its rows soon after, and the audit keeps what was done.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from unittest import mock

import pytest
from django.apps import apps
from django.db import DatabaseError
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters import services
from kafkadash.clusters.access import (
    APPROVE,
    DECLINE,
    PROPOSE,
    START,
    VIEW,
    actions_allowed,
    clusters_allowing,
    counts_from,
    is_allowed,
    users_allowed,
    visible_clusters,
)
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterMode, ClusterRole, Role, SecurityProtocol
from kafkadash.clusters.removal import list_belongings, purge_removed, remove_cluster
from kafkadash.clusters.services import (
    BadAddresses,
    ClusterRefused,
    IdentityChanged,
    RegisteredTwice,
    give_role,
    learn_identity,
    read_addresses,
    read_zookeeper,
    register_cluster,
    remember_double,
    remove_role,
    set_enabled,
    set_read_only,
    tried_connection,
    update_connection,
)
from kafkadash.core.messages import as_message, coded, message_text
from kafkadash.jobs.connection_test import KIND
from kafkadash.jobs.runner import enqueue
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring import schedule
from kafkadash.monitoring.collection import ensure_runs
from kafkadash.monitoring.models import Collection, CollectorRun, TopicState
from tests.contract.certificates import new_authority
from tests.factories import ReassignmentFactory, TopicFactory, watched
from tests.raised_codes import raises_code

SECRET = "pl4nted-p4ssword"
SASL: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_username": "watcher",
    "sasl_password": SECRET,
}


def audit_text() -> str:
    return repr([(e.before, e.after, e.reason, e.actor, e.object_id) for e in AuditEvent.objects.all()])


def test_register_keeps_the_addresses_and_says_so_in_the_audit(admin: User) -> None:
    cluster = register_cluster(admin, "  Prod  EU ", "a:9092, b:9092")
    assert (cluster.name, cluster.slug, cluster.bootstrap_servers) == ("Prod EU", "prod-eu", "a:9092,b:9092")
    event = AuditEvent.objects.get(action="cluster.registered")
    assert (event.actor, event.actor_name, event.cluster) == (f"user:{admin.pk}", "adam", "prod-eu")
    assert event.after is not None
    assert event.after["bootstrap_servers"] == "a:9092,b:9092"


def test_register_has_a_sentence_per_fault_and_writes_nothing(admin: User) -> None:
    with pytest.raises(ClusterRefused) as caught:
        register_cluster(admin, "—", "a,b:0", security_protocol="SASL_SSL")
    assert set(caught.value.messages) == {"name", "bootstrap_servers", "sasl_mechanism", "sasl_username"}
    assert len(caught.value.messages["bootstrap_servers"]) == 2
    assert not Cluster.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("name", ["Demo", "demo", "DEMO!"])
def test_register_refuses_a_name_or_address_that_is_taken(name: str, admin: User, cluster: Cluster) -> None:
    with pytest.raises(ClusterRefused, match=r"already registered|too similar to Demo"):
        register_cluster(admin, name, "a:9092")


def test_register__name_that_does_not_fit__is_refused(db: None) -> None:
    with pytest.raises(ClusterRefused) as refused:
        register_cluster("somebody", "x" * 65, "a:9092")
    assert str(refused.value) == message_text(ClusterErrorCode.CLUSTER_NAME_TOO_LONG, length=65)


def test_register__protocol_that_is_none__is_refused(db: None) -> None:
    with pytest.raises(ClusterRefused) as refused:
        register_cluster("somebody", "x", "a:9092", security_protocol="KERBEROS")
    known = ", ".join(SecurityProtocol.values)
    assert str(refused.value) == message_text(KafkaErrorCode.PROTOCOL_UNKNOWN, protocol="KERBEROS", known=known)


def test_register__kerberos__is_refused_by_name(db: None) -> None:
    with pytest.raises(ClusterRefused) as refused:
        register_cluster("somebody", "x", "a:9092", **{**SASL, "sasl_mechanism": "GSSAPI"})
    [message] = refused.value.messages["sasl_mechanism"]
    assert as_message(message).code == KafkaErrorCode.KERBEROS_UNSUPPORTED


@pytest.mark.parametrize(
    ("oauth", "field", "code"),
    [
        ({}, "oauth_endpoint", ClusterErrorCode.TOKEN_ENDPOINT_NEEDED),
        ({"oauth_endpoint": "ftp://x"}, "oauth_endpoint", KafkaErrorCode.TOKEN_ENDPOINT_MALFORMED),
        ({"oauth_endpoint": "http://x/"}, "oauth_endpoint", KafkaErrorCode.TOKEN_ENDPOINT_UNENCRYPTED),
        (
            {"oauth_endpoint": "https://x/", "oauth_extensions": "auth=1"},
            "oauth_extensions",
            KafkaErrorCode.EXTENSIONS_MALFORMED,
        ),
    ],
)
def test_register__oauth_that_cannot_work__is_refused(
    db: None, oauth: dict[str, str], field: str, code: StrEnum
) -> None:
    with pytest.raises(ClusterRefused) as refused:
        register_cluster("somebody", "x", "a:9092", **{**SASL, "sasl_mechanism": "OAUTHBEARER", **oauth})
    assert {name: as_message(told).code for name, [told] in refused.value.messages.items()} == {field: code}


def test_register__somebody_else_was_quicker__is_refused(cluster: Cluster) -> None:
    with mock.patch.object(services, "_check_name"), pytest.raises(ClusterRefused) as refused:
        register_cluster("somebody", cluster.name, "a:9092")
    assert str(refused.value) == message_text(ClusterErrorCode.CLUSTER_NAME_JUST_TAKEN, name=cluster.name)


def test_register_refuses_half_a_client_certificate(admin: User) -> None:
    with pytest.raises(ClusterRefused, match="needs its private key"):
        register_cluster(admin, "x", "a:9092", security_protocol="SSL", certificate_pem="PEM")


def test_no_cluster_without_its_audit_event(admin: User) -> None:
    with mock.patch.object(services, "record", side_effect=DatabaseError("no room")), pytest.raises(DatabaseError):
        register_cluster(admin, "x", "a:9092")
    assert not Cluster.objects.exists()


def test_secrets_are_in_no_audit_row(admin: User) -> None:
    cluster = register_cluster(admin, "x", "a:9092", **SASL)
    update_connection(admin, cluster, sasl_password=SECRET + "-2")
    assert AuditEvent.objects.count() == 2
    assert SECRET not in audit_text()


def test_a_changed_connection_counts_up(admin: User, cluster: Cluster) -> None:
    changed = update_connection(admin, cluster, bootstrap_servers="a:9092")
    assert changed.connection_version == cluster.connection_version + 1
    assert changed.connection().bootstrap_servers == ("a:9092",)
    event = AuditEvent.objects.get(action="cluster.connection_changed")
    assert (event.before, event.after) == (
        {"bootstrap_servers": "127.0.0.1:1"},
        {"bootstrap_servers": "a:9092"},
    )


def test_an_unchanged_connection_does_not(admin: User, cluster: Cluster) -> None:
    same = update_connection(admin, cluster, bootstrap_servers=" 127.0.0.1:1 ")
    assert same.connection_version == cluster.connection_version
    assert not AuditEvent.objects.exists()


def test_a_new_password_alone_counts_up(admin: User) -> None:
    cluster = register_cluster(admin, "x", "a:9092", **SASL)
    changed = update_connection(admin, cluster, sasl_password="another one")
    assert changed.connection_version == 2
    assert changed.connection().security.sasl_password == "another one"


def test_a_changed_login_is_in_the_audit_and_its_password_is_not(admin: User) -> None:
    cluster = register_cluster(admin, "x", "a:9092", **SASL)
    update_connection(admin, cluster, sasl_username="reader-2", sasl_password="one-more-secret")
    event = AuditEvent.objects.get(action="cluster.connection_changed")
    assert event.before is not None
    assert event.after is not None
    assert (event.before["sasl_username"], event.after["sasl_username"]) == ("watcher", "reader-2")
    assert "one-more-secret" not in audit_text()


AUTHORITY = new_authority()
ELSEWHERE: list[dict[str, Any]] = [
    {"bootstrap_servers": "evil:9092"},
    {"bootstrap_servers": "a:9092,evil:9092", "check_hostname": True},
    {"controller_servers": "evil:9093"},
    {"security_protocol": "SASL_PLAINTEXT"},
    {"sasl_mechanism": "PLAIN"},
    {"ca_pem": AUTHORITY.pem},
    {"check_hostname": False},
    {"oauth_endpoint": "https://evil.example/token"},
]


@pytest.mark.parametrize("other", ELSEWHERE, ids=lambda other: "-".join(map(str, other.values()))[:20])
def test_a_stored_password_is_not_used_in_another_way(other: dict[str, Any], admin: User) -> None:
    cluster = register_cluster(admin, "x", "a:9092,b:9092", **SASL)
    with pytest.raises(ClusterRefused) as caught:
        update_connection(admin, cluster, **other)
    assert set(caught.value.messages) == {"sasl_password"}
    with pytest.raises(ClusterRefused):
        tried_connection(cluster, other)
    cluster.refresh_from_db()
    assert cluster.connection_version == 1
    assert update_connection(admin, cluster, **other, sasl_password=SECRET).connection_version == 2


@pytest.mark.parametrize(
    "other", [{"bootstrap_servers": "b:9092"}, {"sasl_username": "another"}, {"controller_servers": "a:9092"}]
)
def test_a_stored_password_stays_with_the_addresses_it_was_entered_for(other: dict[str, Any], admin: User) -> None:
    cluster = register_cluster(admin, "x", "a:9092,b:9092", **SASL)
    assert tried_connection(cluster, other).connection().security.sasl_password == SECRET
    assert update_connection(admin, cluster, **other).connection().security.sasl_password == SECRET


def test_a_stored_password_does_not_come_along_by_a_detour(admin: User) -> None:
    """First an address without a login, then the login at that address."""
    cluster = register_cluster(admin, "x", "a:9092", **SASL)
    update_connection(admin, cluster, bootstrap_servers="evil:9092", security_protocol="PLAINTEXT")
    with pytest.raises(ClusterRefused):
        update_connection(admin, cluster, security_protocol="SASL_PLAINTEXT")


def test_a_client_key_is_not_used_at_another_address(admin: User) -> None:
    client: dict[str, Any] = {"certificate_pem": AUTHORITY.client.pem, "key_pem": AUTHORITY.client.key_pem}
    cluster = register_cluster(admin, "x", "a:9092", security_protocol="SSL", **client)
    with pytest.raises(ClusterRefused) as caught:
        update_connection(admin, cluster, bootstrap_servers="evil:9092")
    assert set(caught.value.messages) == {"key_pem"}


def test_the_password_of_zookeeper__goes_to_its_servers_alone(admin: User) -> None:
    login: dict[str, Any] = {"zookeeper": "z:2181/kafka", "zookeeper_username": "reader", "zookeeper_password": SECRET}
    cluster = register_cluster(admin, "x", "a:9092", **login, zookeeper_tls=True)
    moved = update_connection(admin, cluster, bootstrap_servers="b:9092", zookeeper="z:2181")
    connection = moved.zookeeper_connection()
    assert connection is not None
    assert (connection.addresses, connection.chroot, connection.password) == (("z:2181",), "", SECRET)
    assert moved.connection().security.sasl_password == ""
    for other in ({"zookeeper": "z:2181,evil:2181"}, {"zookeeper_tls": False}, {"check_hostname": False}):
        with pytest.raises(ClusterRefused) as caught:
            update_connection(admin, cluster, **other)
        assert set(caught.value.messages) == {"zookeeper_password"}
    assert SECRET not in audit_text()


def test_a_bad_change_changes_nothing(admin: User, cluster: Cluster) -> None:
    with pytest.raises(ClusterRefused):
        update_connection(admin, cluster, bootstrap_servers="nowhere")
    cluster.refresh_from_db()
    assert cluster.bootstrap_servers == "127.0.0.1:1"


def test_switching_off_twice_is_one_event(admin: User, cluster: Cluster) -> None:
    assert set_enabled(admin, cluster, enabled=False)
    assert not set_enabled(admin, cluster, enabled=False)
    assert list(AuditEvent.objects.values_list("action", flat=True)) == ["cluster.disabled"]


def test_a_role_given_and_taken_holds_in_between(admin: User, stranger: User, cluster: Cluster) -> None:
    give_role(admin, stranger, Role.VIEWER, cluster=cluster)
    assert is_allowed(stranger, VIEW, cluster)
    assert remove_role(admin, stranger, Role.VIEWER, cluster=cluster)
    assert not is_allowed(stranger, VIEW, cluster)
    assert not remove_role(admin, stranger, Role.VIEWER, cluster=cluster)
    events = list(AuditEvent.objects.order_by("id").values_list("action", "object_id", "cluster"))
    assert events == [("role.given", str(stranger.pk), "demo"), ("role.removed", str(stranger.pk), "demo")]


def test_nobody_gives_a_role_to_himself(admin: User, cluster: Cluster) -> None:
    for where in (cluster, None):
        with pytest.raises(ClusterRefused) as caught:
            give_role(admin, admin, Role.APPROVER, cluster=where)
        assert caught.value.messages == {"user": [coded(ClusterErrorCode.OWN_ROLE)]}
    give_role("cli", admin, Role.APPROVER, cluster=cluster)
    assert is_allowed(admin, APPROVE, cluster)


LATER = datetime(2999, 1, 1, tzinfo=UTC)


class TestRoleOfLately:
    def test_lets_look_at_once_and_approve_or_start_a_day_later(
        self, admin: User, stranger: User, cluster: Cluster
    ) -> None:
        for role, action in ((Role.APPROVER, APPROVE), (Role.OPERATOR, START)):
            given = give_role(admin, stranger, role, cluster=cluster)
            assert timedelta(hours=23) < given.counts_from - timezone.now() <= timedelta(hours=24)
            assert is_allowed(stranger, VIEW, cluster)
            assert not is_allowed(stranger, action, cluster)
            assert not clusters_allowing(stranger, action).exists()
            assert action not in actions_allowed(stranger, cluster)
            assert counts_from(stranger, action, cluster) == given.counts_from
        assert {PROPOSE, DECLINE} <= actions_allowed(stranger, cluster)
        ClusterRole.objects.filter(user=stranger).update(counts_from=Now())
        assert {APPROVE, START} <= actions_allowed(stranger, cluster)
        assert is_allowed(stranger, APPROVE, cluster)

    def test_counts_at_once_where_it_is_given_on_the_server(self, stranger: User, cluster: Cluster) -> None:
        give_role("command line", stranger, Role.APPROVER, cluster=cluster)
        assert is_allowed(stranger, APPROVE, cluster)

    def test_does_not_begin_to_wait_again_where_it_is_prolonged(
        self, admin: User, stranger: User, cluster: Cluster
    ) -> None:
        give_role("command line", stranger, Role.APPROVER, cluster=cluster, expires_at=LATER)
        give_role(admin, stranger, Role.APPROVER, cluster=cluster)
        assert is_allowed(stranger, APPROVE, cluster)
        assert not users_allowed(APPROVE, cluster, not_given_by=[admin.pk]).filter(pk=stranger.pk).exists()

    def test_keeps_its_giver_where_it_is_not_prolonged(self, admin: User, stranger: User, cluster: Cluster) -> None:
        give_role("command line", stranger, Role.APPROVER, cluster=cluster)
        give_role(admin, stranger, Role.APPROVER, cluster=cluster, expires_at=LATER)
        assert users_allowed(APPROVE, cluster, not_given_by=[admin.pk]).filter(pk=stranger.pk).exists()

    def test_waits_where_it_had_ended_before(self, admin: User, stranger: User, cluster: Cluster) -> None:
        give_role("command line", stranger, Role.APPROVER, cluster=cluster, expires_at=datetime(2020, 1, 1, tzinfo=UTC))
        give_role(admin, stranger, Role.APPROVER, cluster=cluster)
        assert not is_allowed(stranger, APPROVE, cluster)


def test_a_role_given_again_gets_the_new_end(admin: User, stranger: User) -> None:
    give_role(admin, stranger, Role.VIEWER)
    end = datetime(2999, 1, 1, tzinfo=UTC)
    give_role(admin, stranger, Role.VIEWER, expires_at=end)
    give_role(admin, stranger, Role.VIEWER, expires_at=end)
    assert ClusterRole.objects.get(user=stranger).expires_at == end
    assert AuditEvent.objects.count() == 2


def test_the_identity_is_kept_at_the_first_contact(cluster: Cluster) -> None:
    learn_identity("jobs", cluster.pk, kafka_id="abc", mode=ClusterMode.KRAFT)
    learn_identity("jobs", cluster.pk, kafka_id="abc")
    cluster.refresh_from_db()
    assert (cluster.kafka_id, cluster.mode) == ("abc", ClusterMode.KRAFT)
    assert AuditEvent.objects.get().action == "cluster.identified"


def test_a_kafka_cluster_is_registered_once(admin: User, cluster: Cluster) -> None:
    learn_identity("jobs", cluster.pk, kafka_id="abc")
    double = register_cluster(admin, "again", "b:9092")
    with pytest.raises(RegisteredTwice) as caught:
        learn_identity("jobs", double.pk, kafka_id="abc")
    assert str(caught.value) == message_text(ClusterErrorCode.SAME_CLUSTER, cluster="again", other="Demo")
    double.refresh_from_db()
    assert double.kafka_id == ""
    learn_identity("jobs", cluster.pk, kafka_id="abc", mode=ClusterMode.KRAFT)


def test_a_double_stays_read_only(admin: User, cluster: Cluster) -> None:
    double = register_cluster(admin, "again", "b:9092")
    remember_double("collector", double, cluster)
    assert AuditEvent.objects.filter(action="cluster.read_only_changed", cluster="again").count() == 1
    with pytest.raises(ClusterRefused) as caught:
        set_read_only(admin, double, read_only=False)
    assert caught.value.messages == {"read_only": [coded(ClusterErrorCode.SAME_CLUSTER, cluster="again", other="Demo")]}
    remember_double("collector", double, None)
    assert set_read_only(admin, double, read_only=False)


def test_another_kafka_cluster_is_refused(cluster: Cluster) -> None:
    learn_identity("jobs", cluster.pk, kafka_id="abc")
    with raises_code(ClusterErrorCode.IDENTITY_CHANGED, IdentityChanged, answered="xyz", expected="abc"):
        learn_identity("jobs", cluster.pk, kafka_id="xyz", mode=ClusterMode.KRAFT)
    cluster.refresh_from_db()
    assert (cluster.kafka_id, cluster.mode) == ("abc", ClusterMode.UNKNOWN)


def test_history_outlives_whom_and_what_it_names(make_user: Callable[..., User], cluster: Cluster) -> None:
    ann = make_user("ann")
    set_enabled(ann, cluster, enabled=False)
    ann.delete()
    cluster.delete()
    event = AuditEvent.objects.get()
    assert (event.actor_name, event.object_type, event.cluster) == ("ann", "cluster", "demo")


def test_it_reads_commas_blanks_and_lines() -> None:
    text = " kafka-1.example.org:9092,kafka_2:9093\n10.0.0.1:1  [2001:db8::1]:65535,, "
    assert read_addresses(text) == ["kafka-1.example.org:9092", "kafka_2:9093", "10.0.0.1:1", "[2001:db8::1]:65535"]


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ("kafka-1", "has no port"),
        ("[2001:db8::1]", "has no port"),
        (":9092", "has no port"),
        ("kafka-1:", r"has the invalid port \(empty\)"),
        ("kafka-1:0", "from 1 to 65535"),
        ("kafka-1:65536", "from 1 to 65535"),
        ("kafka-1:９０９２", "from 1 to 65535"),
        ("kafka-1:http", "from 1 to 65535"),
        ("http://kafka-1:9092", "starts with a protocol"),
        ("2001:db8::1:9092", "IPv6"),
        ("[2001:db8::1", "IPv6"),
        ("[2001:db8::zz]:9092", "invalid IPv6"),
        ("10.0.0.256:9092", "invalid IPv4"),
        ("-kafka:9092", "invalid host name"),
        ("kafka..org:9092", "invalid host name"),
        ("user@kafka:9092", "invalid host name"),
    ],
)
def test_it_says_what_is_wrong(item: str, says: str) -> None:
    with pytest.raises(BadAddresses, match=says) as caught:
        read_addresses(f"good:9092,{item}")
    [message] = caught.value.messages
    assert message.params["item"] == item


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        (" z-1:2181, z-2:2181 ", "z-1:2181,z-2:2181"),
        ("z-1:2181,z-2:2181/kafka/eu/", "z-1:2181,z-2:2181/kafka/eu"),
        ("[::1]:2181/", "[::1]:2181"),
    ],
)
def test_it_reads_zookeeper_connect(text: str, normalized: str) -> None:
    assert read_zookeeper(text) == normalized


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("z-1", ClusterErrorCode.PORT_MISSING),
        ("/kafka", ClusterErrorCode.NO_ADDRESS),
        ("zk://z-1:2181", ClusterErrorCode.PROTOCOL_IN_FRONT),
        *(
            (f"z-1:2181{path}", ClusterErrorCode.CHROOT_WRONG)
            for path in ("/a,z-2:2181/a", "//a", "/a/../b", "/.", "/a b", "/a\x00", f"/{'x' * 300}")
        ),
    ],
)
def test_what_is_no_zookeeper_connect__is_refused(text: str, code: ClusterErrorCode, admin: User) -> None:
    with pytest.raises(ClusterRefused) as caught:
        register_cluster(admin, "x", "a:9092", zookeeper=text)
    assert code in [as_message(each).code for each in caught.value.messages["zookeeper"]]


@pytest.mark.parametrize(
    ("login", "code"),
    [
        ({"zookeeper_username": "reader"}, ClusterErrorCode.ZOOKEEPER_LOGIN_HALF),
        ({"zookeeper_password": SECRET}, ClusterErrorCode.ZOOKEEPER_LOGIN_HALF),
        ({"zookeeper_username": "a:b", "zookeeper_password": SECRET}, ClusterErrorCode.ZOOKEEPER_USER_WRONG),
    ],
)
def test_half_a_login_to_zookeeper__is_refused(login: dict[str, Any], code: ClusterErrorCode, admin: User) -> None:
    with pytest.raises(ClusterRefused) as caught:
        register_cluster(admin, "x", "a:9092", zookeeper="z:2181", **login)
    assert caught.value.messages == {"zookeeper_username": [coded(code)]}


def test_it_has_a_message_for_each() -> None:
    with pytest.raises(BadAddresses) as caught:
        read_addresses("a,b:0,c:9092,c:9092")
    assert [message.code for message in caught.value.messages] == [
        ClusterErrorCode.PORT_MISSING,
        ClusterErrorCode.PORT_WRONG,
        ClusterErrorCode.ADDRESS_TWICE,
    ]


@pytest.mark.parametrize("text", ["", " , \n"])
def test_nothing_is_not_enough(text: str) -> None:
    with pytest.raises(BadAddresses, match="Address missing"):
        read_addresses(text)


SASL_PLAIN: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "dash",
    "sasl_password": "s3cret-x",
}


def full(admin: User, name: str = "demo") -> Cluster:
    cluster = watched(name)
    TopicFactory.create_batch(5, cluster=cluster)
    ReassignmentFactory.create(cluster=cluster)
    give_role("cli", admin, Role.VIEWER, cluster=cluster)
    enqueue(KIND, cluster=cluster)
    return cluster


def rows_of(pk: int) -> int:
    """Rows of any model, of any app, that belong to this cluster."""
    found = 0
    for model in apps.get_models():
        for field in model._meta.fields:
            if field.related_model is Cluster:
                found += model._base_manager.filter(**{f"{field.name}_id": pk}).count()
    return found


def test_what_would_be_forgotten_is_counted_and_named(admin: User) -> None:
    words = {each.words: each.rows for each in list_belongings(full(admin))}
    assert words["topics"] == 5
    assert words["brokers"] == 3
    assert words["role on this cluster"] == 1
    assert sum(words.values()) == rows_of(Cluster.objects.get().pk)


def test_it_is_gone_at_once_and_its_name_is_free(admin: User) -> None:
    cluster = full(admin)
    remove_cluster(admin, cluster, typed_name="demo", reason="moved away")
    assert not Cluster.objects.exists()
    assert not visible_clusters(admin).exists()
    assert not CollectorRun.objects.exists(), "a collector at work finds its lease gone"
    ensure_runs()
    assert schedule.claim_due() == []
    event = AuditEvent.objects.get(action="cluster.removed")
    assert (event.cluster, event.reason, event.actor_name) == ("demo", "moved away", "adam")
    assert register_cluster(admin, "demo", "a:9092").slug == "demo"


def test_rows_go_in_batches_until_nothing_is_left(admin: User) -> None:
    cluster = full(admin)
    kept = full(admin, "kept")
    before = rows_of(kept.pk)
    remove_cluster(admin, cluster, typed_name="demo")
    rounds = 0
    while deleted := purge_removed(batch=2):
        rounds += 1
        assert deleted <= 4, "a batch is small, whatever hangs on its rows"
    assert rounds > 5
    assert rows_of(cluster.pk) == 0
    assert not Cluster.with_removed.filter(pk=cluster.pk).exists()
    assert rows_of(kept.pk) == before
    assert TopicState.objects.filter(cluster=kept).count() == 5
    assert Collection.objects.filter(cluster=kept).exists()


def test_the_secrets_do_not_wait_for_the_rows(admin: User) -> None:
    cluster = register_cluster(admin, "secure", "a:9093", **SASL_PLAIN)
    remove_cluster(admin, cluster, typed_name="secure")
    gone = Cluster.with_removed.get(pk=cluster.pk)
    assert (gone.__dict__["sasl_password"], gone.__dict__["key_pem"], gone.sasl_username) == ("", "", "")


@pytest.mark.parametrize("typed", ["", "Demo", "demo2", "kept"])
def test_another_name_removes_nothing(admin: User, typed: str) -> None:
    cluster = full(admin)
    with pytest.raises(ClusterRefused, match="Type demo to remove"):
        remove_cluster(admin, cluster, typed_name=typed)
    assert Cluster.objects.filter(pk=cluster.pk, enabled=True).exists()


def test_removing_twice_is_one_event(admin: User) -> None:
    cluster = full(admin)
    remove_cluster(admin, cluster, typed_name="demo")
    remove_cluster(admin, cluster, typed_name="demo")
    assert AuditEvent.objects.filter(action="cluster.removed").count() == 1


def test_a_role_on_a_removed_cluster_lets_nobody_in(stranger: User) -> None:
    cluster = watched("demo")
    ClusterRole.objects.create(user=stranger, role=Role.ADMIN, cluster=cluster)
    client = Client()
    client.force_login(stranger)
    assert client.get("/settings/").status_code == 200
    remove_cluster(stranger, cluster, typed_name="demo")
    for address in ("/clusters/demo/", "/settings/clusters/demo/", f"/settings/clusters/removed--{cluster.pk}/"):
        assert client.get(address).status_code == 404
    assert not visible_clusters(stranger).exists()
