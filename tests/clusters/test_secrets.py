"""Secrets are ciphertext in the database, and a lost key is a sentence, never ciphertext in somebody's hands."""

from __future__ import annotations

import io
import json

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import FieldError
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django.fixtures import Settings

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.secrets import SealedSecret, SecretError, SecretUse
from tests.raised_codes import raises_code

PASSWORD = "pl4nted-p4ssword"
KEY_PEM = "-----BEGIN PRIVATE KEY-----\nMIIplanted\n-----END PRIVATE KEY-----\n"


@pytest.fixture
def secured(db: None) -> Cluster:
    return Cluster.objects.create(
        name="Secured",
        slug="secured",
        bootstrap_servers="k:9093,l:9093",
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_password=PASSWORD,
        key_pem=KEY_PEM,
    )


def stored() -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sasl_password, key_pem FROM clusters_cluster WHERE slug = 'secured'")
        row = cursor.fetchone()
    assert row is not None
    return str(row[0]), str(row[1])


def new_key() -> str:
    return Fernet.generate_key().decode()


def test_it_is_read_back(secured: Cluster) -> None:
    loaded = Cluster.objects.get(slug="secured")
    assert loaded.sasl_password == PASSWORD
    assert loaded.connection().security.key_pem == KEY_PEM


def test_no_column_of_the_row_holds_it(secured: Cluster) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clusters_cluster::text FROM clusters_cluster WHERE slug = 'secured'")
        row = cursor.fetchone()
    assert row is not None
    assert "secured" in row[0]
    assert PASSWORD not in row[0]
    assert "MIIplanted" not in row[0]


def test_empty_stays_empty_and_needs_no_key(db: None, settings: Settings) -> None:
    settings.FIELD_KEYS = []
    Cluster.objects.create(name="Plain", slug="plain", bootstrap_servers="k:9092")
    assert Cluster.objects.get(slug="plain").sasl_password == ""


def test_without_keys_it_cannot_be_stored(db: None, settings: Settings) -> None:
    settings.FIELD_KEYS = []
    with raises_code(ClusterErrorCode.NO_KEYS, SecretError):
        Cluster.objects.create(name="x", slug="x", bootstrap_servers="k:1", sasl_password=PASSWORD)


def test_without_keys_pages_work_and_only_the_secret_does_not(secured: Cluster, settings: Settings) -> None:
    settings.FIELD_KEYS = []
    loaded = Cluster.objects.get(slug="secured")
    assert loaded.bootstrap_servers == "k:9093,l:9093"
    with raises_code(ClusterErrorCode.NO_KEYS, SecretError):
        loaded.connection()


def test_a_wrong_key_gives_a_sentence_and_no_ciphertext(secured: Cluster, settings: Settings) -> None:
    settings.FIELD_KEYS = [new_key()]
    ciphertext, _ = stored()
    with raises_code(ClusterErrorCode.SECRET_UNREADABLE, SecretError) as caught:
        _ = Cluster.objects.get(slug="secured").sasl_password
    assert ciphertext not in str(caught.value)


def test_content_of_another_shape__is_unreadable(secured: Cluster, settings: Settings) -> None:
    content = {"field": "sasl_password", "use": {"addresses": ["k:9093"]}, "text": PASSWORD}
    sealed = SealedSecret(Fernet(settings.FIELD_KEYS[0]).encrypt(json.dumps(content).encode()).decode())
    with raises_code(ClusterErrorCode.SECRET_UNREADABLE, SecretError):
        sealed.open("sasl_password", SecretUse((), "", "", "", check_hostname=True))


def test_a_malformed_key_gives_a_sentence(secured: Cluster, settings: Settings) -> None:
    settings.FIELD_KEYS = ["not a key"]
    with pytest.raises(SecretError, match="malformed"):
        _ = Cluster.objects.get(slug="secured").sasl_password


def test_saving_other_columns_leaves_the_ciphertext_alone(secured: Cluster, settings: Settings) -> None:
    before = stored()
    settings.FIELD_KEYS = []
    loaded = Cluster.objects.get(slug="secured")
    loaded.bootstrap_servers = "k:9094"
    loaded.save()
    assert stored() == before
    assert Cluster.objects.get(slug="secured").bootstrap_servers == "k:9094"


def test_values_are_sealed(secured: Cluster) -> None:
    (value,) = Cluster.objects.filter(slug="secured").values_list("sasl_password", flat=True)
    assert repr(value) == str(value) == "<sealed>"


def test_two_equal_secrets_do_not_look_alike(secured: Cluster) -> None:
    before, _ = stored()
    secured.sasl_password = PASSWORD
    secured.save(update_fields=["sasl_password"])
    assert stored()[0] != before
    assert Cluster.objects.get(slug="secured").sasl_password == PASSWORD


def test_nothing_can_be_searched_for(secured: Cluster) -> None:
    with pytest.raises(FieldError, match="cannot be searched"):
        Cluster.objects.filter(sasl_password=PASSWORD).exists()


def test_a_deferred_secret_is_read_when_asked_for(secured: Cluster) -> None:
    assert Cluster.objects.only("slug").get(slug="secured").sasl_password == PASSWORD


def test_rotation_writes_all_with_the_first_key(secured: Cluster, settings: Settings) -> None:
    old, new = settings.FIELD_KEYS[0], new_key()
    Cluster.objects.create(name="Plain", slug="plain", bootstrap_servers="k:9092")
    settings.FIELD_KEYS = [new, old]
    assert Cluster.objects.get(slug="secured").sasl_password == PASSWORD
    out = io.StringIO()
    call_command("rotate_secrets", stdout=out)
    assert "2 secrets" in out.getvalue()
    settings.FIELD_KEYS = [new]
    assert Cluster.objects.get(slug="secured").connection().security.sasl_password == PASSWORD
    settings.FIELD_KEYS = [old]
    with pytest.raises(SecretError):
        _ = Cluster.objects.get(slug="secured").sasl_password


def test_rotation_names_what_fits_no_key(secured: Cluster, settings: Settings) -> None:
    before = stored()
    settings.FIELD_KEYS = [new_key()]
    with pytest.raises(CommandError, match=f"sasl_password of cluster {secured.pk}"):
        call_command("rotate_secrets", stdout=io.StringIO())
    assert stored() == before


@pytest.mark.parametrize(
    "altered",
    [
        {"bootstrap_servers": "k:9093,evil:9093"},
        {"controller_servers": "evil:9093"},
        {"security_protocol": "SASL_PLAINTEXT"},
        {"sasl_mechanism": "SCRAM-SHA-256"},
        {"ca_pem": "another CA"},
        {"check_hostname": False},
    ],
)
def test_a_row_that_was_altered_in_the_database__gives_no_secret(secured: Cluster, altered: dict[str, object]) -> None:
    Cluster.objects.filter(pk=secured.pk).update(**altered)

    with pytest.raises(SecretError):
        Cluster.objects.get(pk=secured.pk).connection()


def test_a_row_with_fewer_addresses__gives_the_secret(secured: Cluster) -> None:
    Cluster.objects.filter(pk=secured.pk).update(bootstrap_servers="l:9093")

    assert Cluster.objects.get(pk=secured.pk).connection().security.sasl_password == PASSWORD


def test_secret_copied_into_another_row__is_not_read_there(secured: Cluster) -> None:
    Cluster.objects.create(name="Evil", slug="evil", bootstrap_servers="evil:1", security_protocol="SASL_PLAINTEXT")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE clusters_cluster SET sasl_password = %s WHERE slug = 'evil'", [stored()[0]])

    with pytest.raises(SecretError):
        Cluster.objects.get(slug="evil").connection()


def test_secret_copied_into_another_field__is_not_read_there(secured: Cluster) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE clusters_cluster SET sasl_password = key_pem WHERE slug = 'secured'")

    with pytest.raises(SecretError):
        Cluster.objects.get(pk=secured.pk).connection()


def test_a_protocol_without_secrets__opens_none(secured: Cluster) -> None:
    Cluster.objects.filter(pk=secured.pk).update(security_protocol="PLAINTEXT")

    security = Cluster.objects.get(pk=secured.pk).connection().security
    assert (security.sasl_password, security.key_pem) == ("", "")


def test_secret_set_past_its_row__is_refused(secured: Cluster) -> None:
    with pytest.raises(FieldError):
        Cluster.objects.filter(pk=secured.pk).update(sasl_password="another")


def test_secret_of_another_format__is_a_sentence(secured: Cluster, settings: Settings) -> None:
    written = Fernet(settings.FIELD_KEYS[0]).encrypt(b"the text alone").decode()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE clusters_cluster SET sasl_password = %s", [written])

    with pytest.raises(SecretError):
        Cluster.objects.get(pk=secured.pk).connection()
