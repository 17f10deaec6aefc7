"""What the settings pages say about clusters, roles, secrets, and which Kafka cluster answers."""

from __future__ import annotations

import io
from typing import Any
from unittest import mock

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from kafkadash.accounts.models import User
from kafkadash.clusters.addresses import BadAddresses, read_addresses
from kafkadash.clusters.allowed_lag import MOST_RULES, allow_lag
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.secrets import SecretError
from kafkadash.clusters.services import (
    IdentityChanged,
    Refused,
    RegisteredTwice,
    check_identity,
    register_cluster,
    update_connection,
)
from kafkadash.kafka.errors import KafkaErrorCode
from tests.refusals.desk import Desk
from tests.refusals.driving import Case, case, each, refused

pytestmark = pytest.mark.django_db


def gives(desk: Desk, **typed: str) -> str:
    return desk.sent("adam", "/settings/clusters/demo/roles/", {"user": "vera", "role": "operator", **typed})


def gives_to_a_closed_account(desk: Desk) -> str:
    User.objects.filter(username="vera").update(is_active=False)
    return gives(desk)


def answers_as_another(desk: Desk) -> str:
    Cluster.objects.filter(pk=desk.cluster.pk).update(kafka_id="MkU3OEVBNTcwNTJENDM2Qg")
    desk.cluster.refresh_from_db()
    return refused(IdentityChanged, lambda: check_identity(desk.cluster, "another"))


def answers_as_one_registered(desk: Desk) -> str:
    Cluster.objects.create(name="Same", slug="same", bootstrap_servers="a:1", kafka_id="kafka-id-1")
    return refused(RegisteredTwice, lambda: check_identity(Cluster(name="again"), "kafka-id-1"))


@each(
    case(ClusterErrorCode.NOBODY_NAMED, lambda d: gives(d, user=" ")),
    case(ClusterErrorCode.OWN_ROLE, lambda d: gives(d, user="adam")),
    case(ClusterErrorCode.NO_SUCH_ACCOUNT, lambda d: gives(d, user="nobody"), name="nobody"),
    case(ClusterErrorCode.ACCOUNT_CLOSED, gives_to_a_closed_account, name="vera"),
    case(ClusterErrorCode.ROLE_UNKNOWN, lambda d: gives(d, role="")),
    case(ClusterErrorCode.END_PASSED, lambda d: gives(d, expires_at="2020-01-01T00:00")),
    case(
        ClusterErrorCode.NAME_TO_CONFIRM,
        lambda d: d.sent("adam", "/settings/clusters/demo/remove/", {"typed_name": "demmo", "reason": "gone"}),
        cluster="demo",
    ),
    case(
        ClusterErrorCode.LAST_ADMINISTRATOR,
        lambda d: d.sent("adam", "/settings/roles/", {"do": "take", "user": "adam", "role": "admin"}),
        name="adam",
        of="of all clusters",
    ),
    case(ClusterErrorCode.SAME_CLUSTER, answers_as_one_registered, cluster="again", other="Same"),
    case(ClusterErrorCode.IDENTITY_CHANGED, answers_as_another, answered="another", expected="MkU3OEVBNTcwNTJENDM2Qg"),
)
def test_in_the_settings(one: Case, desk: Desk) -> None:
    one.check(desk)


def registers(desk: Desk, **typed: str) -> str:
    form = {"name": "orders", "bootstrap_servers": "a:9092", "security_protocol": "PLAINTEXT", "check_hostname": "on"}
    return desk.sent("adam", "/settings/register/", {**form, **typed})


def connects_elsewhere(desk: Desk) -> str:
    login: dict[str, Any] = {"sasl_mechanism": "PLAIN", "sasl_username": "watcher"}
    update_connection("cli", desk.cluster, security_protocol="SASL_SSL", sasl_password="planted", **login)
    form = {"bootstrap_servers": "evil:9092", "security_protocol": "SASL_PLAINTEXT", "check_hostname": "on", **login}
    return desk.sent("adam", "/settings/clusters/demo/", form)


def just_taken(_: Desk) -> str:
    """Somebody else registers it between the check and the row."""
    with mock.patch("kafkadash.clusters.services._check_name"):
        return refused(Refused, lambda: register_cluster("somebody", "demo", "a:9092"))


def takes(desk: Desk, **typed: str) -> str:
    return desk.sent(
        "adam", "/settings/clusters/demo/roles/", {"do": "take", "user": "vera", "role": "viewer", **typed}
    )


@each(
    case(ClusterErrorCode.CLUSTER_NAME_EMPTY, lambda d: registers(d, name="!!!")),
    case(
        ClusterErrorCode.CLUSTER_NAME_TOO_LONG,
        lambda _: refused(Refused, lambda: register_cluster("a", "x" * 65, "a:1")),
    ),
    case(ClusterErrorCode.CLUSTER_NAME_TAKEN, lambda d: registers(d, name="demo"), name="demo"),
    case(ClusterErrorCode.CLUSTER_NAME_JUST_TAKEN, just_taken, name="demo"),
    case(ClusterErrorCode.CLUSTER_NAME_TOO_ALIKE, lambda d: registers(d, name="Demo!"), other="demo", slug="demo"),
    case(
        KafkaErrorCode.PROTOCOL_UNKNOWN,
        lambda _: refused(Refused, lambda: register_cluster("a", "b", "a:1", security_protocol="KERBEROS")),
        protocol="KERBEROS",
    ),
    case(ClusterErrorCode.MECHANISM_NEEDED, lambda d: registers(d, security_protocol="SASL_SSL")),
    case(ClusterErrorCode.LOGIN_NEEDED, lambda d: registers(d, security_protocol="SASL_SSL", sasl_mechanism="PLAIN")),
    case(ClusterErrorCode.SECRET_ENTERED_FOR_OTHER, connects_elsewhere, changed="addresses and protocol"),
    case(ClusterErrorCode.PAIR_NEEDED, lambda d: registers(d, security_protocol="SSL", certificate_pem="x")),
    case(ClusterErrorCode.ROLE_NOT_LISTED, lambda d: takes(d, user="nobody")),
    case(ClusterErrorCode.ROLE_TAKEN_MEANWHILE, lambda d: takes(d, role="operator"), name="vera", role="operator"),
)
def test_by_the_forms_of_the_settings(one: Case, desk: Desk) -> None:
    one.check(desk)


def allows(desk: Desk, **typed: str) -> str:
    return desk.sent("adam", "/settings/clusters/demo/lag/", {"pattern": "nightly-*", "records": "10,000", **typed})


def allows_one_too_many(desk: Desk) -> str:
    for n in range(MOST_RULES):
        allow_lag("somebody", desk.cluster, f"nightly-{n}", "5")
    return allows(desk)


@each(
    case(ClusterErrorCode.LAG_PATTERN_EMPTY, lambda d: allows(d, pattern="  ")),
    case(ClusterErrorCode.LAG_PATTERN_TOO_LONG, lambda d: allows(d, pattern="x" * 1256), length=1256, most=255),
    case(ClusterErrorCode.LAG_PATTERN_NOT_PRINTABLE, lambda d: allows(d, pattern="night\x00ly"), place=6),
    case(ClusterErrorCode.LAG_PATTERN_NOT_PRINTABLE, lambda d: allows(d, pattern="a\u202eb"), place=2),
    case(ClusterErrorCode.LAG_UNREADABLE, lambda d: allows(d, records="")),
    case(ClusterErrorCode.LAG_UNREADABLE, lambda d: allows(d, records="10.5")),
    case(ClusterErrorCode.LAG_UNREADABLE, lambda d: allows(d, records="1,00")),
    case(ClusterErrorCode.LAG_UNREADABLE, lambda d: allows(d, records="²")),
    case(ClusterErrorCode.LAG_NEGATIVE, lambda d: allows(d, records="-1")),
    case(ClusterErrorCode.LAG_TOO_LARGE, lambda d: allows(d, records="1" + "0" * 12 + "1"), most=10**12),
    case(ClusterErrorCode.LAG_TOO_LARGE, lambda d: allows(d, records="9" * 6000), most=10**12),
    case(ClusterErrorCode.LAG_TOO_MANY_RULES, allows_one_too_many, cluster="demo", most=MOST_RULES),
    case(ClusterErrorCode.LAG_RULE_GONE, lambda d: allows(d, do="take", pattern="weekly-*")),
    case(ClusterErrorCode.LAG_RULE_GONE, lambda d: allows(d, do="take", pattern="\x00")),
)
def test_by_the_form_of_allowed_lag(one: Case, desk: Desk) -> None:
    one.check(desk)


def addresses(text: str) -> str:
    return refused(BadAddresses, lambda: read_addresses(text))


@each(
    case(ClusterErrorCode.PROTOCOL_IN_FRONT, lambda: addresses("http://a:9092"), item="http://a:9092"),
    case(ClusterErrorCode.BRACKETS_WRONG, lambda: addresses("[2001:db8::1"), item="[2001:db8::1"),
    case(ClusterErrorCode.BRACKETS_MISSING, lambda: addresses("2001:db8::1:9092"), item="2001:db8::1:9092"),
    case(ClusterErrorCode.PORT_MISSING, lambda: addresses("a"), item="a"),
    case(ClusterErrorCode.PORT_WRONG, lambda: addresses("a:0"), item="a:0", port="0"),
    case(ClusterErrorCode.IPV6_WRONG, lambda: addresses("[2001:db8::zz]:9092"), item="[2001:db8::zz]:9092"),
    case(ClusterErrorCode.HOST_WRONG, lambda: addresses("a..org:9092"), item="a..org:9092"),
    case(ClusterErrorCode.IPV4_WRONG, lambda: addresses("10.0.0.256:9092"), item="10.0.0.256:9092"),
    case(ClusterErrorCode.ADDRESS_TWICE, lambda: addresses("a:1,a:1"), item="a:1"),
    case(ClusterErrorCode.NO_ADDRESS, lambda: addresses(" ")),
)
def test_of_addresses(one: Case) -> None:
    one.check()


class Keys:
    """A stored secret, and other keys than it was written with."""

    def __init__(self, configured: Settings) -> None:
        self.configured = configured
        register: dict[str, Any] = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "dash"}
        register_cluster("somebody", "secured", "a:9092", sasl_password="pl4nted", **register)

    def read_with(self, *keys: str) -> str:
        self.configured.FIELD_KEYS = list(keys)
        return refused(SecretError, lambda: Cluster.objects.get(slug="secured").connection())

    def read_elsewhere(self) -> str:
        Cluster.objects.update(bootstrap_servers="evil:9092", check_hostname=False)
        return refused(SecretError, lambda: Cluster.objects.get(slug="secured").connection())

    def rotate_with(self, *keys: str) -> str:
        self.configured.FIELD_KEYS = list(keys)
        return refused(CommandError, lambda: call_command("rotate_secrets", stdout=io.StringIO()))


@each(
    case(ClusterErrorCode.SECRET_UNREADABLE, lambda k: k.read_with(Fernet.generate_key().decode())),
    case(ClusterErrorCode.SECRET_MEANT_FOR_OTHER, Keys.read_elsewhere, changed="addresses and check of host names"),
    case(ClusterErrorCode.NO_KEYS, Keys.read_with),
    case(ClusterErrorCode.NO_KEYS, Keys.rotate_with),
    case(ClusterErrorCode.KEY_MALFORMED, lambda k: k.read_with("short")),
    case(ClusterErrorCode.FIT_NO_KEY, lambda k: k.rotate_with(Fernet.generate_key().decode())),
)
def test_of_stored_secrets(one: Case, settings: Settings) -> None:
    one.check(Keys(settings))
