"""Changes to clusters and roles: each writes its audit event, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import DatabaseError
from django.db.models.functions import Now
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
    allowed,
    clusters_allowing,
    counts_from,
    users_allowed,
)
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterRole, Mode, Role
from kafkadash.clusters.services import (
    IdentityChanged,
    Refused,
    RegisteredTwice,
    give_role,
    learn_identity,
    register_cluster,
    remember_double,
    remove_role,
    set_enabled,
    set_read_only,
    tried_connection,
    update_connection,
)
from kafkadash.domain.messages import message_text
from tests.contract.certificates import new_authority

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
    with pytest.raises(Refused) as caught:
        register_cluster(admin, "—", "a,b:0", security_protocol="SASL_SSL")
    assert set(caught.value.sentences) == {"name", "bootstrap_servers", "sasl_mechanism", "sasl_username"}
    assert len(caught.value.sentences["bootstrap_servers"]) == 2
    assert not Cluster.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("name", ["Demo", "demo", "DEMO!"])
def test_register_refuses_a_name_or_address_that_is_taken(name: str, admin: User, cluster: Cluster) -> None:
    with pytest.raises(Refused, match=r"registered already|too much like Demo"):
        register_cluster(admin, name, "a:9092")


def test_register_refuses_half_a_client_certificate(admin: User) -> None:
    with pytest.raises(Refused, match="belong together"):
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
]


@pytest.mark.parametrize("other", ELSEWHERE, ids=lambda other: "-".join(map(str, other.values()))[:20])
def test_a_stored_password_is_not_used_in_another_way(other: dict[str, Any], admin: User) -> None:
    cluster = register_cluster(admin, "x", "a:9092,b:9092", **SASL)
    with pytest.raises(Refused) as caught:
        update_connection(admin, cluster, **other)
    assert set(caught.value.sentences) == {"sasl_password"}
    with pytest.raises(Refused):
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
    with pytest.raises(Refused):
        update_connection(admin, cluster, security_protocol="SASL_PLAINTEXT")


def test_a_client_key_is_not_used_at_another_address(admin: User) -> None:
    client: dict[str, Any] = {"certificate_pem": AUTHORITY.client.pem, "key_pem": AUTHORITY.client.key_pem}
    cluster = register_cluster(admin, "x", "a:9092", security_protocol="SSL", **client)
    with pytest.raises(Refused) as caught:
        update_connection(admin, cluster, bootstrap_servers="evil:9092")
    assert set(caught.value.sentences) == {"key_pem"}


def test_a_bad_change_changes_nothing(admin: User, cluster: Cluster) -> None:
    with pytest.raises(Refused):
        update_connection(admin, cluster, bootstrap_servers="nowhere")
    cluster.refresh_from_db()
    assert cluster.bootstrap_servers == "127.0.0.1:1"


def test_switching_off_twice_is_one_event(admin: User, cluster: Cluster) -> None:
    assert set_enabled(admin, cluster, enabled=False)
    assert not set_enabled(admin, cluster, enabled=False)
    assert list(AuditEvent.objects.values_list("action", flat=True)) == ["cluster.disabled"]


def test_a_role_given_and_taken_holds_in_between(admin: User, stranger: User, cluster: Cluster) -> None:
    give_role(admin, stranger, Role.VIEWER, cluster=cluster)
    assert allowed(stranger, VIEW, cluster)
    assert remove_role(admin, stranger, Role.VIEWER, cluster=cluster)
    assert not allowed(stranger, VIEW, cluster)
    assert not remove_role(admin, stranger, Role.VIEWER, cluster=cluster)
    events = list(AuditEvent.objects.order_by("id").values_list("action", "object_id", "cluster"))
    assert events == [("role.given", str(stranger.pk), "demo"), ("role.removed", str(stranger.pk), "demo")]


def test_nobody_gives_a_role_to_himself(admin: User, cluster: Cluster) -> None:
    for where in (cluster, None):
        with pytest.raises(Refused) as caught:
            give_role(admin, admin, Role.APPROVER, cluster=where)
        assert caught.value.sentences == {"user": [message_text(ClusterErrorCode.OWN_ROLE)]}
    give_role("cli", admin, Role.APPROVER, cluster=cluster)
    assert allowed(admin, APPROVE, cluster)


LATER = datetime(2999, 1, 1, tzinfo=UTC)


class TestRoleOfLately:
    def test_lets_look_at_once_and_approve_or_start_a_day_later(
        self, admin: User, stranger: User, cluster: Cluster
    ) -> None:
        for role, action in ((Role.APPROVER, APPROVE), (Role.OPERATOR, START)):
            given = give_role(admin, stranger, role, cluster=cluster)
            assert timedelta(hours=23) < given.counts_from - timezone.now() <= timedelta(hours=24)
            assert allowed(stranger, VIEW, cluster)
            assert not allowed(stranger, action, cluster)
            assert not clusters_allowing(stranger, action).exists()
            assert action not in actions_allowed(stranger, cluster)
            assert counts_from(stranger, action, cluster) == given.counts_from
        assert {PROPOSE, DECLINE} <= actions_allowed(stranger, cluster)
        ClusterRole.objects.filter(user=stranger).update(counts_from=Now())
        assert {APPROVE, START} <= actions_allowed(stranger, cluster)
        assert allowed(stranger, APPROVE, cluster)

    def test_counts_at_once_where_it_is_given_on_the_server(self, stranger: User, cluster: Cluster) -> None:
        give_role("command line", stranger, Role.APPROVER, cluster=cluster)
        assert allowed(stranger, APPROVE, cluster)

    def test_does_not_begin_to_wait_again_where_it_is_prolonged(
        self, admin: User, stranger: User, cluster: Cluster
    ) -> None:
        give_role("command line", stranger, Role.APPROVER, cluster=cluster, expires_at=LATER)
        give_role(admin, stranger, Role.APPROVER, cluster=cluster)
        assert allowed(stranger, APPROVE, cluster)
        assert not users_allowed(APPROVE, cluster, not_given_by=[admin.pk]).filter(pk=stranger.pk).exists()

    def test_keeps_its_giver_where_it_is_not_prolonged(self, admin: User, stranger: User, cluster: Cluster) -> None:
        give_role("command line", stranger, Role.APPROVER, cluster=cluster)
        give_role(admin, stranger, Role.APPROVER, cluster=cluster, expires_at=LATER)
        assert users_allowed(APPROVE, cluster, not_given_by=[admin.pk]).filter(pk=stranger.pk).exists()

    def test_waits_where_it_had_ended_before(self, admin: User, stranger: User, cluster: Cluster) -> None:
        give_role("command line", stranger, Role.APPROVER, cluster=cluster, expires_at=datetime(2020, 1, 1, tzinfo=UTC))
        give_role(admin, stranger, Role.APPROVER, cluster=cluster)
        assert not allowed(stranger, APPROVE, cluster)


def test_a_role_given_again_gets_the_new_end(admin: User, stranger: User) -> None:
    give_role(admin, stranger, Role.VIEWER)
    end = datetime(2999, 1, 1, tzinfo=UTC)
    give_role(admin, stranger, Role.VIEWER, expires_at=end)
    give_role(admin, stranger, Role.VIEWER, expires_at=end)
    assert ClusterRole.objects.get(user=stranger).expires_at == end
    assert AuditEvent.objects.count() == 2


def test_the_identity_is_kept_at_the_first_contact(cluster: Cluster) -> None:
    learn_identity("jobs", cluster.pk, kafka_id="abc", mode=Mode.KRAFT)
    learn_identity("jobs", cluster.pk, kafka_id="abc")
    cluster.refresh_from_db()
    assert (cluster.kafka_id, cluster.mode) == ("abc", Mode.KRAFT)
    assert AuditEvent.objects.get().action == "cluster.identified"


def test_a_kafka_cluster_is_registered_once(admin: User, cluster: Cluster) -> None:
    learn_identity("jobs", cluster.pk, kafka_id="abc")
    double = register_cluster(admin, "again", "b:9092")
    with pytest.raises(RegisteredTwice) as caught:
        learn_identity("jobs", double.pk, kafka_id="abc")
    assert str(caught.value) == message_text(ClusterErrorCode.SAME_CLUSTER, cluster="again", other="Demo")
    double.refresh_from_db()
    assert double.kafka_id == ""
    learn_identity("jobs", cluster.pk, kafka_id="abc", mode=Mode.KRAFT)


def test_a_double_stays_read_only(admin: User, cluster: Cluster) -> None:
    double = register_cluster(admin, "again", "b:9092")
    remember_double("collector", double, cluster)
    assert AuditEvent.objects.filter(action="cluster.read_only_changed", cluster="again").count() == 1
    with pytest.raises(Refused) as caught:
        set_read_only(admin, double, read_only=False)
    assert caught.value.sentences == {
        "read_only": [message_text(ClusterErrorCode.SAME_CLUSTER, cluster="again", other="Demo")]
    }
    remember_double("collector", double, None)
    assert set_read_only(admin, double, read_only=False)


def test_another_kafka_cluster_is_refused(cluster: Cluster) -> None:
    learn_identity("jobs", cluster.pk, kafka_id="abc")
    with pytest.raises(IdentityChanged, match="answers the Kafka cluster xyz, and not abc"):
        learn_identity("jobs", cluster.pk, kafka_id="xyz", mode=Mode.KRAFT)
    cluster.refresh_from_db()
    assert (cluster.kafka_id, cluster.mode) == ("abc", Mode.UNKNOWN)


def test_history_outlives_whom_and_what_it_names(make_user: Callable[..., User], cluster: Cluster) -> None:
    ann = make_user("ann")
    set_enabled(ann, cluster, enabled=False)
    ann.delete()
    cluster.delete()
    event = AuditEvent.objects.get()
    assert (event.actor_name, event.object_type, event.cluster) == ("ann", "cluster", "demo")
