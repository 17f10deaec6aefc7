"""Settings pages: what they say, what they do, and that no secret ever comes back.

The policy of a cluster: what its change requests need; only its administrators set it.
"""

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
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import Policy, PolicyLoosening
from kafkadash.changes.policy import PolicyForm
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterMode, ClusterRole, Role
from kafkadash.clusters.services import register_cluster
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import coded, message_columns
from kafkadash.jobs.connection_test import KIND
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import enqueue
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.models import CollectorRun
from tests.contract.certificates import Authority, new_authority
from tests.factories import NOW, silent, watched
from tests.pages.conftest import Page, element_tree, figures_of, told_in
from tests.stored_messages import each_of_other_versions

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
    return Page.read(response)


# ---- the list


@each_of_other_versions
def test_a_failure_of_another_version_is_shown_as_stored(adams: Client, code: str, params: dict[str, Any]) -> None:
    runs = watched("demo").collector_runs
    runs.update(failures=2, last_failure=FailureKind.OTHER, last_error_code=code, last_error_params=params)
    assert code in page(adams, "/settings/").text
    assert code in page(adams, "/settings/clusters/demo/").text


def test_without_a_cluster_it_says_what_to_do(adams: Client) -> None:
    settings = page(adams, "/settings/")
    assert settings.find("[data-empty=none]")
    assert 'href="/settings/register/"' in settings.html
    board = page(adams, "/")
    assert 'href="/settings/register/"' in board.html


def test_oauth_is_entered_and_kerberos_refused_by_name(adams: Client) -> None:
    login = {**FORM, **SASL, "sasl_mechanism": "GSSAPI"}
    refused = page(adams, "/settings/register/", login)
    assert refused.tells(KafkaErrorCode.KERBEROS_UNSUPPORTED, "#id_sasl_mechanism-error")
    oauth = {"sasl_mechanism": "OAUTHBEARER", "oauth_endpoint": "https://idp.example/token", "oauth_scope": "kafka"}
    missing = page(adams, "/settings/register/", {**login, "sasl_mechanism": "OAUTHBEARER"})
    assert missing.tells(ClusterErrorCode.TOKEN_ENDPOINT_NEEDED, "#id_oauth_endpoint-error")
    page(adams, "/settings/register/", {**login, **oauth})
    stored = page(adams, "/settings/clusters/orders-eu/")
    assert SECRET not in stored.html
    assert 'value="https://idp.example/token"' in stored.html


def test_each_cluster_has_its_state_mode_and_last_contact(adams: Client) -> None:
    watched("well")
    unreached, refused = "No broker accepted a connection.", "It refused the credentials."
    silent(watched("silent"), NOW - timedelta(minutes=12), error=unreached)
    silent(watched("locked"), NOW - timedelta(minutes=2), error=refused, failure=FailureKind.CREDENTIALS_REFUSED)
    Cluster.objects.filter(pk=watched("old").pk).update(mode=ClusterMode.ZOOKEEPER, read_only=True)
    Cluster.objects.filter(pk=watched("off").pk).update(enabled=False)
    Cluster.objects.create(name="new", slug="new", bootstrap_servers="a:9092")
    settings = page(adams, "/settings/")
    assert figures_of(settings.title) == ["6", "4"]
    words = settings.cells("cluster-well")
    assert (words[0], words[1], words[3:5]) == ("well", "Connected", ["KRaft", "PLAINTEXT"])
    assert figures_of(settings.cells("cluster-well")[2]) == ["3 s"]
    states = {"well": "ok", "silent": "unknown", "locked": "warning", "old": "warning", "off": "maintenance"}
    for name, state in {**states, "new": "unknown"}.items():
        assert settings.states(f"#cluster-{name} .status-mark") == [state]
    assert figures_of(settings.cells("cluster-silent")[2]) == ["12 min"]
    reasons = {name: settings.texts(f"#cluster-{name} .refresh-error")[0] for name in states if name != "well"}
    assert reasons["silent"] == unreached
    assert reasons["locked"].startswith(refused)
    assert told_in(reasons["old"], ClusterErrorCode.WITH_ZOOKEEPER)
    assert len(settings.find("#cluster-old .badge")) == 1
    assert not figures_of(settings.cells("cluster-new")[2])
    assert 'data-state="ok"' not in settings.part("cluster-silent")


def test_a_zookeeper_address_of_a_cluster_in_kraft_mode__is_told_to_be_unused(adams: Client) -> None:
    Cluster.objects.filter(pk=watched("well").pk).update(zookeeper="z:2181")
    settings = page(adams, "/settings/")
    assert settings.states("#cluster-well .status-mark") == ["ok"]
    assert settings.tells(ClusterErrorCode.ZOOKEEPER_UNUSED, "#cluster-well .refresh-error")


def test_nothing_is_called_fine_that_no_worker_looks_at(adams: Client) -> None:
    silent(watched("demo"), NOW - timedelta(minutes=12))
    settings = page(adams, "/settings/")
    assert settings.states("#cluster-demo .status-mark") == ["unknown"]
    assert settings.tells(ClusterErrorCode.NOT_LOOKED_AT, "#cluster-demo .refresh-error")
    assert settings.figures("#cluster-demo .refresh-error") == ["12 min"]


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
    assert "orders-eu registered." in shown.text
    assert shown.title == "orders-eu: not contacted yet"
    cluster = Cluster.objects.get()
    assert (cluster.bootstrap_servers, cluster.read_only, cluster.check_hostname) == ("a:9092,b:9092", True, True)
    assert AuditEvent.objects.get(action="cluster.registered").actor_name == "adam"


def test_faults_are_said_at_their_fields_and_what_was_typed_is_kept(adams: Client) -> None:
    typed = {**FORM, "name": "—", "bootstrap_servers": "kafka-1", **SASL, "sasl_mechanism": ""}
    form = page(adams, "/settings/register/", typed)
    assert not Cluster.objects.exists()
    for field, sentence in (
        ("name", "The name has no letter or digit."),
        ("bootstrap_servers", "kafka-1 has no port. Enter host:port, for example kafka-1:9092."),
        ("sasl_mechanism", "SASL mechanism missing."),
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
    assert "Enter these again" in form.words("wrong")


def test_unusable_certificates_are_said_at_their_fields(adams: Client, authority: Authority) -> None:
    typed = {**FORM, "security_protocol": "SSL", "ca_pem": "nonsense", "certificate_pem": authority.client.pem}
    form = page(adams, "/settings/register/", {**typed, "key_pem": "no key"})
    assert form.tells(KafkaErrorCode.CA_UNUSABLE, "#id_ca_pem-error")
    assert form.tells(KafkaErrorCode.KEY_UNUSABLE, "#id_key_pem-error")
    form = page(adams, "/settings/register/", typed)
    assert "needs its private key" in form.words("id_certificate_pem-error")


def test_no_secret_comes_back_and_an_empty_field_keeps_it(admin: User, adams: Client, authority: Authority) -> None:
    client_certificate: dict[str, Any] = {"certificate_pem": authority.client.pem, "key_pem": authority.client.key_pem}
    cluster = register_cluster(admin, "secure", "a:9093,b:9093", ca_pem=authority.pem, **client_certificate, **SASL)
    shown = page(adams, "/settings/clusters/secure/")
    assert SECRET not in shown.html
    assert "PRIVATE KEY" not in shown.html
    assert shown.find("#id_sasl_password-hint")
    assert shown.find("#id_key_pem-hint")
    typed = {**SASL, "bootstrap_servers": "b:9093", "ca_pem": authority.pem, "check_hostname": "on"}
    typed |= {"certificate_pem": authority.client.pem, "sasl_password": "", "key_pem": ""}
    saved = page(adams, "/settings/clusters/secure/", typed)
    assert saved.states("[role=status]") == ["ok"]
    cluster.refresh_from_db()
    assert cluster.bootstrap_servers == "b:9093"
    assert cluster.sasl_password == SECRET
    assert cluster.key_pem == authority.client.key_pem.strip()
    page(adams, "/settings/clusters/secure/", {**typed, "sasl_password": "n3w-Pa55"})
    cluster.refresh_from_db()
    assert cluster.sasl_password == "n3w-Pa55"
    page(adams, "/settings/clusters/secure/", {**typed, "certificate_pem": ""})
    cluster.refresh_from_db()
    assert cluster.__dict__["key_pem"] == ""  # a key goes with its certificate


def test_new_settings_are_tried_at_once(adams: Client) -> None:
    cluster = watched("demo")
    cluster.collector_runs.update(next_at=Now() + timedelta(minutes=10))
    page(adams, "/settings/clusters/demo/", {"bootstrap_servers": "b:9092", "security_protocol": "PLAINTEXT"})
    assert not CollectorRun.objects.filter(next_at__gt=Now()).exists()


def test_saving_nothing_new_says_so(adams: Client) -> None:
    cluster = watched("demo")
    typed = {"bootstrap_servers": cluster.bootstrap_servers, "security_protocol": "PLAINTEXT", "check_hostname": "on"}
    assert "No changes to save" in page(adams, "/settings/clusters/demo/", typed).text
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
    assert off.states(".contact-state") == ["maintenance"]
    assert not Cluster.objects.get().enabled
    assert page(adams, "/settings/clusters/demo/enabled/", {"enabled": "yes"}).states(".contact-state") == ["ok"]
    assert Cluster.objects.get().enabled


def test_another_cluster_behind_the_address_is_explained_here_and_on_its_pages(adams: Client) -> None:
    cluster = watched("demo")
    Cluster.objects.filter(pk=cluster.pk).update(other_kafka_id="OTHER-kafka-id")
    for address in ("/settings/clusters/demo/", "/clusters/demo/", "/clusters/demo/reassignments/"):
        notice = page(adams, address).first("#other-cluster")
        assert notice.get("data-state") == "critical"
        assert notice.texts(".mono") == ["OTHER-kafka-id", cluster.kafka_id]
    assert figures_of(page(adams, "/settings/").title) == ["1", "1"]


def test_a_cluster_that_is_registered_twice_is_explained_here_and_on_its_pages(adams: Client) -> None:
    cluster = watched("demo")
    first = Cluster.objects.create(name="first", slug="first", bootstrap_servers="a:1")
    Cluster.objects.filter(pk=cluster.pk).update(same_as=first, read_only=True)
    for address in ("/settings/clusters/demo/", "/clusters/demo/", "/clusters/demo/reassignments/"):
        shown = page(adams, address)
        assert "registered-twice" in shown.html
        assert shown.texts("#registered-twice b a") == ["first"]
    typed = {"bootstrap_servers": cluster.bootstrap_servers, "security_protocol": "PLAINTEXT", "check_hostname": "on"}
    kept = page(adams, "/settings/clusters/demo/", typed)
    assert kept.tells(ClusterErrorCode.SAME_CLUSTER, "#wrong")
    assert Cluster.objects.get(slug="demo").read_only


# ---- removing


def test_removing_lists_what_goes_and_what_stays(adams: Client) -> None:
    watched("demo")
    ask = page(adams, "/settings/clusters/demo/remove/")
    assert "demo" in ask.title
    assert "3" in ask.texts(".plain-list b")
    refused = page(adams, "/settings/clusters/demo/remove/", {"typed_name": "demmo", "reason": "gone"})
    assert refused.tells(ClusterErrorCode.NAME_TO_CONFIRM, "#id_typed_name-error")
    assert 'value="gone"' in refused.html
    done = page(adams, "/settings/clusters/demo/remove/", {"typed_name": "demo", "reason": "gone"})
    assert "demo" in done.first("[role=status]").text
    assert done.find("[data-empty=none]")


# ---- roles


def test_a_role_is_given_with_an_end_and_taken_away(adams: Client, stranger: User) -> None:
    watched("demo")
    where = "/settings/clusters/demo/roles/"
    given = page(adams, where, {"user": "stan", "role": "operator", "expires_at": "2027-01-31 18:00"})
    assert given.states("[role=status]") == ["ok"]
    assert figures_of(given.title) == ["2"]
    adam, stan = given.first("tr[data-user=adam]"), given.first("tr[data-user=stan]")
    assert (adam.texts("th"), adam.texts("td")[0]) == (["adam"], "admin")
    assert adam.find("[data-given=everywhere]")
    assert stan.find("[data-waits]")
    assert [time.get("datetime") for time in stan.find("time")][-1].startswith("2027-01-31T18:00")
    assert [role.label for role, _ in given.context["roles"]] == list(given.facts("main .facts"))
    taken = page(adams, where, {"do": "take", "user": "stan", "role": "operator"})
    assert not taken.find("tr[data-user=stan]")
    assert not ClusterRole.objects.filter(user=stranger).exists()
    again = page(adams, where, {"do": "take", "user": "stan", "role": "operator"})
    assert again.tells(ClusterErrorCode.ROLE_TAKEN_MEANWHILE, "#refusal")
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
        ({"user": ""}, "user", "User name missing."),
        ({"user": "nobody"}, "user", "There is no user nobody."),
        ({"user": "carl", "role": "viewer"}, "user", "The account of carl is closed"),
        ({"user": "stan", "role": "king"}, "role", "Select a valid choice"),
        ({"user": "stan", "role": "viewer", "expires_at": "2020-01-01"}, "expires_at", "This time is in the past."),
        ({"user": "stan", "role": "viewer", "expires_at": "soon"}, "expires_at", "Enter a valid date/time"),
    ],
)
def test_what_cannot_be_given_is_said(
    adams: Client,
    stranger: User,
    make_user: Callable[..., User],
    typed: dict[str, str],
    field: str,
    sentence: str,
) -> None:
    make_user("carl", is_active=False)
    shown = page(adams, "/settings/roles/", typed)
    assert sentence in unescape(shown.words(f"id_{field}-error"))
    assert not ClusterRole.objects.filter(user=stranger).exists()


def test_a_field_that_is_refused_shows_its_code_there_and_in_the_summary(adams: Client) -> None:
    typed = {"name": "demo", "bootstrap_servers": "nowhere", "security_protocol": "PLAINTEXT"}
    shown = page(adams, "/settings/register/", typed)
    assert ClusterErrorCode.PORT_MISSING in shown.words("id_bootstrap_servers-error")
    assert ClusterErrorCode.PORT_MISSING in shown.words("wrong")
    assert ClusterErrorCode.PORT_MISSING in page(adams, "/settings/test/", typed).words("test")


def test_codes_of_django_are_not_shown_at_a_field(adams: Client, stranger: User) -> None:
    shown = page(adams, "/settings/roles/", {"user": "stan", "role": "king"})
    assert "error-code" not in shown.part("id_role-error")


def test_the_last_administrator_cannot_be_taken_away(adams: Client) -> None:
    shown = page(adams, "/settings/roles/", {"do": "take", "user": "adam", "role": "admin"})
    assert shown.tells(ClusterErrorCode.LAST_ADMINISTRATOR, "#refusal")
    assert ClusterRole.objects.filter(role=Role.ADMIN).exists()


# ---- testing the connection


def test_a_test_is_a_row_and_its_page_shows_each_step(adams: Client) -> None:
    watched("demo")
    typed = {"bootstrap_servers": "b:9092", "security_protocol": "PLAINTEXT"}
    waiting = page(adams, "/settings/clusters/demo/test/", typed)
    job = Job.objects.get()
    assert (job.state, job.input["connection"]["bootstrap_servers"]) == (JobState.QUEUED, "b:9092")
    assert waiting.states("#test") == ["unknown"]
    assert f'hx-get="/settings/tests/{job.pk}/?page=own"' in waiting.start_tag("test")
    steps = [
        {"key": "resolve", "title": "Host names", "state": "ok", "said": "b is 10.0.0.1.", "items": []},
        {"key": "connect", "title": "TCP connection", "state": "running", "said": "", "items": []},
    ]
    Job.objects.update(state=JobState.RUNNING, result={"steps": steps}, progress=0.1)
    running = page(adams, f"/settings/tests/{job.pk}/")
    assert running.states("#test .panel-head .status-mark") == ["unknown"]
    assert running.states("#step-resolve .status-mark") == ["ok"]
    assert running.texts("#step-resolve .soft") == ["b is 10.0.0.1."]
    assert running.find(f"form[action=/settings/tests/{job.pk}/cancel/]")
    why = message_columns(coded(KafkaErrorCode.NOTHING_ACCEPTED, address="b:9092", seconds=8))
    Job.objects.update(state=JobState.FAILED, progress=None, **why)
    failed = page(adams, f"/settings/tests/{job.pk}/")
    assert failed.states("#test") == ["critical"]
    assert KafkaErrorCode.NOTHING_ACCEPTED in failed.first("#step-connect").text
    assert "hx-get" not in failed.start_tag("test")


@each_of_other_versions
def test_a_test_of_another_version_is_shown_as_stored(adams: Client, code: str, params: dict[str, Any]) -> None:
    stored = {"code": code, "params": params}
    step = {"key": "connect", "title": "TCP connection", "state": "warning", "said": stored, "items": [stored]}
    job = enqueue(KIND, cluster=watched("demo"))
    Job.objects.update(state=JobState.FAILED, result={"steps": [step]}, error_code=code, error_params=params)
    shown = page(adams, f"/settings/tests/{job.pk}/").words("test")
    assert shown.count(code) == 2 * 3, "in the text and beside it: of the step, of its item, of the whole"


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
        said = element_tree(response.content.decode()).text
        assert told_in(said, ClusterErrorCode.PORT_MISSING)
    assert not Job.objects.exists()


def test_a_test_of_an_unregistered_cluster_is_not_for_who_has_one_cluster(
    adams: Client, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    adams.post("/settings/test/", FORM)
    ann = client_of(make_user("ann", Role.ADMIN, watched("mine")))
    assert ann.get(f"/settings/tests/{Job.objects.get().pk}/").status_code == 403


WHERE = "/settings/clusters/demo/policy/"
POLICY_FORM = {
    "approvals_low": "1",
    "approvals_medium": "2",
    "approvals_high": "3",
    "valid_hours": "48",
    "reason": "Two more clusters depend on this one.",
}


@pytest.fixture
def adams_at_demo(admin: User, client_of: Callable[[User], Client]) -> Client:
    watched("demo")
    return client_of(admin)


def sent(client: Client, form: dict[str, str] | None = None) -> Page:
    response = client.post(WHERE, form, follow=True) if form is not None else client.get(WHERE)
    assert response.status_code == 200
    return Page.read(response)


def test_it_shows_what_holds_and_stores_what_is_typed(adams_at_demo: Client) -> None:
    page = sent(adams_at_demo)
    assert figures_of(page.title) == ["1", "2"]
    assert 'name="approvals_high" type="text" value="2"' in page.html
    assert f'href="{WHERE}" aria-current="page"' in page.html
    assert f'href="{WHERE}"' in adams_at_demo.get("/settings/clusters/demo/").content.decode()
    page = sent(adams_at_demo, {**POLICY_FORM, "valid_hours": "12"})
    assert page.states("[role=status]") == ["ok"]
    assert figures_of(page.title) == ["1", "3"]
    policy = Policy.objects.get()
    assert (policy.approvals_medium, policy.valid_hours) == (2, 12)
    event = AuditEvent.objects.get(action="policy.changed")
    assert (event.cluster, event.actor_name, event.reason) == ("demo", "adam", POLICY_FORM["reason"])
    assert event.after == {"approvals_medium": 2, "approvals_high": 3, "valid_hours": 12}
    assert "No changes to save" in sent(adams_at_demo, {**POLICY_FORM, "valid_hours": "12"}).text
    assert AuditEvent.objects.filter(action="policy.changed").count() == 1


def test_a_looser_policy_waits_for_a_second_administrator(
    adams_at_demo: Client, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    page = sent(adams_at_demo, {**POLICY_FORM, "self_approval": "on"})
    assert page.states("[role=status]") == ["ok"]
    assert Policy.objects.get().self_approval is False
    assert not page.figures("#h-loosening")
    assert str(PolicyForm.base_fields["self_approval"].label) in page.words("loosening")
    assert POLICY_FORM["reason"] in page.words("loosening")
    assert 'value="confirm"' not in page.part("loosening")
    adas = client_of(make_user("ada", Role.ADMIN))
    page = sent(adas)
    assert 'value="confirm"' in page.part("loosening")
    asked_at = PolicyLoosening.objects.get().asked_at.isoformat()
    refused = sent(adams_at_demo, {"do": "confirm", "asked_at": asked_at})
    assert refused.tells(ChangeErrorCode.LOOSENING_NEEDS_ANOTHER, "#refusal")
    refused = sent(adas, {"do": "confirm", "asked_at": "then"})
    assert refused.tells(ChangeErrorCode.LOOSENING_CHANGED, "#refusal")
    page = sent(adas, {"do": "confirm", "asked_at": asked_at})
    assert "confirmed by ada" in page.words("loosening")
    assert Policy.objects.get().self_approval is False
    assert not sent(adams_at_demo, {"do": "drop", "asked_at": asked_at}).has("loosening")


@pytest.mark.parametrize(
    ("field", "typed", "sentence"),
    [
        ("approvals_low", "", "Enter a whole number."),
        ("approvals_low", "one", "Enter a whole number."),
        ("approvals_low", "²", "Enter a whole number."),
        ("approvals_low", "-1", "Enter a whole number."),
        ("approvals_low", "99999999999999999999", "Enter a whole number."),
        ("approvals_low", "0", "Enter a number from 1 to 5."),
        ("approvals_high", "9", "Enter a number from 1 to 5."),
        ("approvals_high", "1", "A higher risk cannot need fewer approvals than a lower one."),
        ("valid_hours", "0", "Enter a number of hours from 1 to 720"),
        ("valid_hours", "721", "Enter a number of hours from 1 to 720"),
        ("reason", "", "Enter a reason"),
        ("reason", " ", "Enter a reason"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(adams_at_demo: Client, field: str, typed: str, sentence: str) -> None:
    page = sent(adams_at_demo, {**POLICY_FORM, field: typed})
    assert sentence in unescape(page.words(f"id_{field}-error"))
    assert f'value="{typed}"' in page.html
    assert f'<a href="#id_{field}">' in page.part("wrong")
    assert not Policy.objects.exists()
