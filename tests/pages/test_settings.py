"""Settings pages: what they say, what they do, and that no secret ever comes back."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.models import Cluster, ClusterRole, Mode, Role
from kafkadash.clusters.services import register_cluster
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.jobs.models import Job, JobState
from kafkadash.observe.models import CollectorRun
from tests.contract.certificates import Authority, new_authority
from tests.factories import NOW, silent, watched
from tests.pages.conftest import Page

SECRET = "pl4nted-p4ssword"
SASL: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "dash",
    "sasl_password": SECRET,
}
FORM = {
    "name": "orders-eu",
    "bootstrap_servers": "a:9092, b:9092",
    "security_protocol": "PLAINTEXT",
    "check_hostname": "on",
}


@pytest.fixture
def adams(admin: User, client_of: Callable[[User], Client]) -> Client:
    return client_of(admin)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return new_authority()


def page(client: Client, address: str, data: dict[str, Any] | None = None) -> Page:
    response = client.get(address) if data is None else client.post(address, data, follow=True)
    assert response.status_code == 200, (address, response.status_code)
    return Page(response.content.decode())


# ---- the list


def test_without_a_cluster_it_says_what_to_do(adams: Client) -> None:
    settings = page(adams, "/settings/")
    assert settings.title == "No cluster is registered yet."
    assert 'href="/settings/register/"' in settings.html
    board = page(adams, "/")
    assert 'href="/settings/register/"' in board.html


def test_each_cluster_has_its_state_mode_and_last_contact(adams: Client) -> None:
    watched("well")
    silent(watched("silent"), NOW - timedelta(minutes=12), error="No broker accepted a connection.")
    silent(
        watched("locked"),
        NOW - timedelta(minutes=2),
        error="It refused the credentials.",
        failure=FailureKind.CREDENTIALS_REFUSED,
    )
    Cluster.objects.filter(pk=watched("old").pk).update(mode=Mode.ZOOKEEPER, read_only=True)
    Cluster.objects.filter(pk=watched("off").pk).update(enabled=False)
    Cluster.objects.create(name="new", slug="new", bootstrap_servers="a:9092")
    settings = page(adams, "/settings/")
    assert settings.title == "6 clusters are registered, 4 of them need a look."
    assert settings.words("cluster-well").startswith("well Answers data 3 s old KRaft PLAINTEXT kafka-1.internal:9092")
    assert "Not reached No broker accepted a connection. data 12 min old" in settings.words("cluster-silent")
    assert "Refused It refused the credentials." in settings.words("cluster-locked")
    assert "read-only Not supported yet" in settings.words("cluster-old")
    assert "ZooKeeper, not supported yet" in settings.words("cluster-old")
    assert "Disabled Nothing is collected" in settings.words("cluster-off")
    assert "Not tried yet" in settings.words("cluster-new")
    assert "no data yet not known yet" in settings.words("cluster-new")
    assert 'data-state="ok"' not in settings.part("cluster-silent")


def test_nothing_is_called_fine_that_no_worker_looks_at(adams: Client) -> None:
    silent(watched("demo"), NOW - timedelta(minutes=12))
    assert "Not looked at The last answer is 12 min old: no worker looks" in page(adams, "/settings/").words(
        "cluster-demo"
    )


def test_who_administers_one_cluster_sees_that_one(
    make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    mine = watched("mine")
    watched("other")
    client = client_of(make_user("ann", Role.ADMIN, mine))
    settings = page(client, "/settings/")
    assert settings.has("cluster-mine")
    assert not settings.has("cluster-other")
    assert "/settings/register/" not in settings.html
    assert client.get("/settings/register/").status_code == 403
    assert client.get("/settings/roles/").status_code == 403
    assert client.get("/settings/clusters/other/").status_code == 404


def test_only_who_may_is_offered_the_settings(adams: Client, viewer: User, client_of: Callable[[User], Client]) -> None:
    link = 'href="/settings/"'
    assert link in page(adams, "/").html
    assert link not in page(client_of(viewer), "/").html
    assert client_of(viewer).get("/settings/").status_code == 403


# ---- registering and editing


def test_a_cluster_is_registered_and_shown(adams: Client) -> None:
    shown = page(adams, "/settings/register/", {**FORM, "read_only": "on"})
    assert "orders-eu is registered." in shown.text
    assert shown.title == "orders-eu: not tried yet."
    cluster = Cluster.objects.get()
    assert (cluster.bootstrap_servers, cluster.read_only, cluster.check_hostname) == ("a:9092,b:9092", True, True)
    assert AuditEvent.objects.get(action="cluster.registered").actor_name == "adam"


def test_faults_are_said_at_their_fields_and_what_was_typed_is_kept(adams: Client) -> None:
    typed = {**FORM, "name": "—", "bootstrap_servers": "kafka-1", **SASL, "sasl_mechanism": ""}
    form = page(adams, "/settings/register/", typed)
    assert not Cluster.objects.exists()
    for field, sentence in (
        ("name", "A name needs at least one letter or digit"),
        ("bootstrap_servers", "kafka-1 has no port: write it as host:port, for example kafka-1:9092."),
        ("sasl_mechanism", "SASL needs a mechanism"),
    ):
        control = re.search(rf'<(?:input|select)[^>]*id="id_{field}"[^>]*>', form.html)
        assert control is not None
        assert 'aria-invalid="true"' in control[0]
        assert f'aria-describedby="id_{field}-error' in control[0]
        assert sentence in unescape(form.words(f"id_{field}-error"))
        assert f'<a href="#id_{field}">' in form.part("wrong")
    assert 'role="alert"' in form.start_tag("wrong")
    assert 'value="kafka-1"' in form.html
    assert 'value="dash"' in form.html
    assert '<option value="SASL_SSL" selected>' in form.html
    assert SECRET not in form.html
    assert "type them again" in form.words("wrong")


def test_unusable_certificates_are_said_at_their_fields(adams: Client, authority: Authority) -> None:
    typed = {**FORM, "security_protocol": "SSL", "ca_pem": "nonsense", "certificate_pem": authority.client.pem}
    form = page(adams, "/settings/register/", {**typed, "key_pem": "no key"})
    assert "not a usable PEM text" in form.words("id_ca_pem-error")
    assert "private key is not an unencrypted PEM" in form.words("id_key_pem-error")
    form = page(adams, "/settings/register/", typed)
    assert "belong together" in form.words("id_certificate_pem-error")


def test_no_secret_comes_back_and_an_empty_field_keeps_it(admin: User, adams: Client, authority: Authority) -> None:
    client_certificate: dict[str, Any] = {"certificate_pem": authority.client.pem, "key_pem": authority.client.key_pem}
    cluster = register_cluster(admin, "secure", "a:9093,b:9093", ca_pem=authority.pem, **client_certificate, **SASL)
    shown = page(adams, "/settings/clusters/secure/")
    assert SECRET not in shown.html
    assert "PRIVATE KEY" not in shown.html
    assert shown.text.count("Set. It is not shown; leave this empty to keep it.") == 2
    typed = {**SASL, "bootstrap_servers": "b:9093", "ca_pem": authority.pem, "check_hostname": "on"}
    typed |= {"certificate_pem": authority.client.pem, "sasl_password": "", "key_pem": ""}
    saved = page(adams, "/settings/clusters/secure/", typed)
    assert "Saved. The collectors use the new settings" in saved.text
    cluster.refresh_from_db()
    assert cluster.bootstrap_servers == "b:9093"
    assert cluster.sasl_password == SECRET
    assert cluster.key_pem == authority.client.key_pem.strip()
    page(adams, "/settings/clusters/secure/", {**typed, "sasl_password": "n3w-Pa55"})
    cluster.refresh_from_db()
    assert cluster.sasl_password == "n3w-Pa55"
    page(adams, "/settings/clusters/secure/", {**typed, "certificate_pem": ""})
    cluster.refresh_from_db()
    assert cluster.__dict__["key_pem"] == "", "a key goes with its certificate"


def test_new_settings_are_tried_at_once(adams: Client) -> None:
    cluster = watched("demo")
    cluster.collector_runs.update(next_at=Now() + timedelta(minutes=10))
    page(adams, "/settings/clusters/demo/", {"bootstrap_servers": "b:9092", "security_protocol": "PLAINTEXT"})
    assert not CollectorRun.objects.filter(next_at__gt=Now()).exists()


def test_saving_nothing_new_says_so(adams: Client) -> None:
    cluster = watched("demo")
    typed = {"bootstrap_servers": cluster.bootstrap_servers, "security_protocol": "PLAINTEXT", "check_hostname": "on"}
    assert "Nothing was changed" in page(adams, "/settings/clusters/demo/", typed).text
    assert "Saved." in page(adams, "/settings/clusters/demo/", {**typed, "read_only": "on"}).text
    assert AuditEvent.objects.get().action == "cluster.read_only_changed"


def test_a_lost_key_is_a_sentence(admin: User, adams: Client, settings: Any) -> None:
    register_cluster(admin, "plain", "a:9092")
    settings.FIELD_KEYS = []
    typed = {**SASL, "bootstrap_servers": "a:9092"}
    assert "FIELD_KEYS is not set" in page(adams, "/settings/clusters/plain/", typed).words("wrong")


def test_disabling_and_enabling(adams: Client) -> None:
    watched("demo")
    off = page(adams, "/settings/clusters/demo/enabled/", {"enabled": "no"})
    assert "demo is disabled: nothing is collected, what was collected stays." in off.text
    assert not Cluster.objects.get().enabled
    assert "demo is looked at again." in page(adams, "/settings/clusters/demo/enabled/", {"enabled": "yes"}).text
    assert Cluster.objects.get().enabled


def test_another_cluster_behind_the_address_is_explained_here_and_on_its_pages(adams: Client) -> None:
    cluster = watched("demo")
    Cluster.objects.filter(pk=cluster.pk).update(other_kafka_id="OTHER-kafka-id")
    for address in ("/settings/clusters/demo/", "/clusters/demo/", "/clusters/demo/reassignments/"):
        words = page(adams, address).words("other-cluster")
        assert words.startswith("Another Kafka cluster answers at the address of demo: OTHER-kafka-id , and not")
        assert cluster.kafka_id in words
        assert "register it under a name of its own" in words
        assert "remove it and register it again" in words
    assert page(adams, "/settings/").title == "1 cluster is registered, it needs a look."


def test_a_cluster_that_is_registered_twice_is_explained_here_and_on_its_pages(adams: Client) -> None:
    cluster = watched("demo")
    first = Cluster.objects.create(name="first", slug="first", bootstrap_servers="a:1")
    Cluster.objects.filter(pk=cluster.pk).update(same_as=first, read_only=True)
    for address in ("/settings/clusters/demo/", "/clusters/demo/", "/clusters/demo/reassignments/"):
        shown = page(adams, address)
        assert "registered-twice" in shown.html
        assert shown.words("registered-twice").startswith("demo is the same Kafka cluster as first")
    typed = {"bootstrap_servers": cluster.bootstrap_servers, "security_protocol": "PLAINTEXT", "check_hostname": "on"}
    kept = page(adams, "/settings/clusters/demo/", typed)
    assert "which was registered first" in kept.words("wrong")
    assert Cluster.objects.get(slug="demo").read_only


# ---- removing


def test_removing_lists_what_goes_and_what_stays(adams: Client) -> None:
    watched("demo")
    ask = page(adams, "/settings/clusters/demo/remove/")
    assert ask.title == "Remove demo from kafkadash?"
    assert "3 brokers" in ask.text
    assert "the audit: who did what here" in ask.text
    refused = page(adams, "/settings/clusters/demo/remove/", {"typed_name": "demmo", "reason": "gone"})
    assert "Type the name as it is written here, demo" in refused.words("id_typed_name-error")
    assert 'value="gone"' in refused.html
    done = page(adams, "/settings/clusters/demo/remove/", {"typed_name": "demo", "reason": "gone"})
    assert "demo is removed." in done.text
    assert done.title == "No cluster is registered yet."


# ---- roles


def test_a_role_is_given_with_an_end_and_taken_away(adams: Client, stranger: User) -> None:
    watched("demo")
    where = "/settings/clusters/demo/roles/"
    given = page(adams, where, {"user": "stan", "role": "operator", "expires_at": "2027-01-31 18:00"})
    assert "stan is operator on demo until 2027-01-31 18:00 UTC." in given.text
    assert given.title == "2 people have a role on demo."
    assert "adam admin all clusters without an end given on all clusters" in given.text
    assert "stan operator counts from" in given.text
    assert "operator see clusters, their figures, moves and changes; take findings; draft, submit" in given.text
    taken = page(adams, where, {"do": "take", "user": "stan", "role": "operator"})
    assert "stan is no longer operator on demo." in taken.text
    assert not ClusterRole.objects.filter(user=stranger).exists()
    again = page(adams, where, {"do": "take", "user": "stan", "role": "operator"})
    assert "somebody took that role away meanwhile" in again.words("refusal")
    unwritable = page(adams, where, {"do": "take", "user": "nobody\0", "role": "operator"})
    assert unwritable.has("refusal")


def test_names_are_offered_of_people_of_the_cluster_only(
    make_user: Callable[..., User], client_of: Callable[[User], Client], stranger: User
) -> None:
    demo = watched("demo")
    ada = make_user("ada", Role.ADMIN, demo)
    make_user("vic", Role.VIEWER, demo)
    offered = page(client_of(ada), "/settings/clusters/demo/roles/").part("people")
    assert [name for name in ("ada", "vic", "stan") if f'value="{name}"' in offered] == ["ada", "vic"]
    everybody = page(client_of(make_user("root", Role.ADMIN)), "/settings/roles/").part("people")
    assert 'value="stan"' in everybody


@pytest.mark.parametrize(
    ("typed", "field", "sentence"),
    [
        ({"user": ""}, "user", "Nobody was named"),
        ({"user": "nobody"}, "user", "There is no account called nobody."),
        ({"user": "stan", "role": "king"}, "role", "Select a valid choice"),
        ({"user": "stan", "role": "viewer", "expires_at": "2020-01-01"}, "expires_at", "This has passed already"),
        ({"user": "stan", "role": "viewer", "expires_at": "soon"}, "expires_at", "Enter a valid date/time"),
    ],
)
def test_what_cannot_be_given_is_said(
    adams: Client, stranger: User, typed: dict[str, str], field: str, sentence: str
) -> None:
    shown = page(adams, "/settings/roles/", typed)
    assert sentence in unescape(shown.words(f"id_{field}-error"))
    assert not ClusterRole.objects.filter(user=stranger).exists()


def test_the_last_administrator_cannot_be_taken_away(adams: Client) -> None:
    shown = page(adams, "/settings/roles/", {"do": "take", "user": "adam", "role": "admin"})
    assert "adam is the last administrator of all clusters" in shown.words("refusal")
    assert ClusterRole.objects.filter(role=Role.ADMIN).exists()


# ---- testing the connection


def test_a_test_is_a_row_and_its_page_shows_each_step(adams: Client) -> None:
    watched("demo")
    typed = {"bootstrap_servers": "b:9092", "security_protocol": "PLAINTEXT"}
    waiting = page(adams, "/settings/clusters/demo/test/", typed)
    job = Job.objects.get()
    assert (job.state, job.input["connection"]["bootstrap_servers"]) == (JobState.QUEUED, "b:9092")
    assert "Waiting for a worker" in waiting.words("test")
    assert waiting.title == "Waiting for a worker"
    assert f'hx-get="/settings/tests/{job.pk}/?page=own"' in waiting.start_tag("test")
    steps = [
        {"key": "resolve", "title": "Host names", "state": "ok", "sentence": "b is 10.0.0.1.", "items": []},
        {"key": "connect", "title": "TCP connection", "state": "running", "sentence": "", "items": []},
    ]
    Job.objects.update(state=JobState.RUNNING, result={"steps": steps}, progress=0.1)
    running = page(adams, f"/settings/tests/{job.pk}/")
    assert "Testing" in running.words("test")
    assert running.words("step-resolve") == "ok Host names b is 10.0.0.1."
    assert "Stop the test" in running.text
    Job.objects.update(state=JobState.FAILED, error="Nothing at b:9092 answers.", progress=None)
    failed = page(adams, f"/settings/tests/{job.pk}/")
    assert "The connection does not work" in failed.words("test")
    assert "Nothing at b:9092 answers." in failed.words("step-connect")
    assert "hx-get" not in failed.start_tag("test")


def test_the_part_alone_is_what_htmx_gets(adams: Client) -> None:
    response = adams.post("/settings/test/", {**FORM}, headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert response.content.decode().strip().startswith('<section class="panel" id="test"')
    job = Job.objects.get()
    part = adams.get(f"/settings/tests/{job.pk}/", headers={"HX-Request": "true"}).content.decode()
    assert part.strip().startswith('<section class="panel" id="test"')
    stopped = adams.post(f"/settings/tests/{job.pk}/cancel/", headers={"HX-Request": "true"}, follow=True)
    assert "Cancelled" in stopped.content.decode()
    assert Job.objects.get().state == JobState.CANCELLED


def test_what_makes_no_sense_is_not_tested(adams: Client) -> None:
    for headers in ({}, {"HX-Request": "true"}):
        response = adams.post("/settings/test/", {**FORM, "bootstrap_servers": "kafka"}, headers=headers)
        assert "kafka has no port: write it as host:port" in response.content.decode()
    assert not Job.objects.exists()


def test_a_test_of_an_unregistered_cluster_is_not_for_who_has_one_cluster(
    adams: Client, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    adams.post("/settings/test/", FORM)
    ann = client_of(make_user("ann", Role.ADMIN, watched("mine")))
    assert ann.get(f"/settings/tests/{Job.objects.get().pk}/").status_code == 403
