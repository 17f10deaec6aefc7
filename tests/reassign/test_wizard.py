"""Proposing in a browser: a draft is on the server from the first step, nothing that was entered is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from unittest import mock

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.observe.models import BrokerState, TopicState
from kafkadash.reassign import uploads
from kafkadash.reassign.models import Upload
from tests.pages.conftest import Page
from tests.reassign.stored import LIMITS, Wizard, kafka_json, stored, text

pytestmark = pytest.mark.django_db


def said(answer: object) -> str:
    return text(answer.content.decode())  # type: ignore[attr-defined]


# -- the first step -------------------------------------------------------------------------------------------------


def test_only_clusters_on_which_one_may_propose_are_offered_and_read_only_ones_with_the_reason(
    make_user: Callable[..., User], client_of: Callable[[User], Client], demo: Cluster
) -> None:
    stored("locked")
    Cluster.objects.filter(slug="locked").update(read_only=True)
    other = stored("foreign")
    person = make_user("olaf", Role.OPERATOR, demo)
    ClusterRole.objects.create(user=person, role=Role.OPERATOR, cluster=Cluster.objects.get(slug="locked"))
    ClusterRole.objects.create(user=person, role=Role.VIEWER, cluster=other)
    html = client_of(person).get("/changes/new/").content.decode()
    assert re.findall(r'name="cluster" value="([^"]+)"( checked)?( disabled)?', html) == [
        ("demo", " checked", ""),
        ("locked", "", " disabled"),
    ]
    said = "locked is read-only in kafkadash: changes are neither proposed nor approved nor started on it."
    assert said in text(html)


def test_what_pages_that_link_here_say_is_filled_in(wizard: Wizard, demo: Cluster) -> None:
    html = wizard.client.get("/changes/new/?cluster=demo&mode=drain&brokers=3").content.decode()
    assert 'name="cluster" value="demo" checked' in html
    assert 'name="mode" value="drain" checked' in html
    assert "You came with broker 3: it is chosen already" in text(html)
    wizard.begins(demo, "drain", brokers="3")
    assert wizard.change.input["brokers"] == [3]
    assert 'value="3" checked' in wizard.sees("what")


def test_a_draft_is_there_from_the_first_step_on_and_audited(wizard: Wizard, operator: User, demo: Cluster) -> None:
    wizard.begins(demo, "drain")
    change = wizard.change
    assert (change.state, change.author, change.title) == (RequestState.DRAFT, operator, "Drain brokers")
    assert AuditEvent.objects.filter(action="change.created", object_id=str(change.pk)).exists()


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"mode": "drain"}, "Choose the cluster that this is about."),
        ({"cluster": "demo"}, "Choose what to do: one of the changes that are listed here."),
        ({"cluster": "demo", "mode": "rebalance"}, "Choose one of the changes that are listed here."),
        ({"cluster": "nowhere", "mode": "drain"}, "Choose one of the clusters that you may propose on."),
        (
            {"cluster": "demo", "mode": "drain", "brokers": "x"},
            "“x” is no broker id: ids are whole numbers from 0 on.",
        ),
    ],
)
def test_a_first_step_that_is_not_complete_is_told_what_is_missing(
    wizard: Wizard, demo: Cluster, sent: dict[str, str], sentence: str
) -> None:
    answer = wizard.client.post("/changes/new/", sent)
    assert answer.status_code == 200
    assert sentence in said(answer)
    assert not ChangeRequest.objects.exists()


def test_on_a_read_only_cluster_nothing_is_proposed(wizard: Wizard, demo: Cluster) -> None:
    Cluster.objects.update(read_only=True)
    answer = wizard.client.post("/changes/new/", {"cluster": "demo", "mode": "drain"})
    assert "demo is read-only in kafkadash: nothing is proposed on it." in said(answer)
    assert not ChangeRequest.objects.exists()


@pytest.mark.parametrize("step", ["what", "limits", "plan", "why"])
def test_a_step_needs_the_right_to_propose(
    wizard: Wizard, viewer: User, client_of: Callable[[User], Client], demo: Cluster, step: str
) -> None:
    wizard.begins(demo, "drain", brokers="3")
    assert client_of(viewer).get(wizard.url(step)).status_code == 403
    assert client_of(viewer).get("/changes/new/").status_code == 403


def test_steps_that_are_not_possible_yet_lead_to_the_one_that_is_missing(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain")
    for step in ("limits", "plan", "why"):
        assert wizard.client.get(wizard.url(step))["location"] == wizard.url("what")
    wizard.drains(3)
    for step in ("plan", "why"):
        assert wizard.client.get(wizard.url(step))["location"] == wizard.url("limits")
    wizard.limits()
    assert wizard.client.get(wizard.url("why"))["location"] == wizard.url("plan")


# -- what: drain ----------------------------------------------------------------------------------------------------


def test_brokers_are_offered_with_rack_replicas_disk_and_state_and_a_dead_one_may_be_drained(
    wizard: Wizard, demo: Cluster
) -> None:
    BrokerState.objects.filter(broker_id=3).update(gone_at="2026-11-20T00:00:00Z")
    page = Page(wizard.begins(demo, "drain").sees("what"))
    assert "3 kafka-3.internal eu-1c Gone 5 3 15.0 GB 33.3 %" in page.words("choice-3")
    assert "A dead broker can be drained too" in page.text
    assert wizard.drains(3).status_code == 302
    assert wizard.change.title == "Drain broker 3"


@pytest.mark.parametrize(
    ("brokers", "sentence"),
    [
        ([], "Choose at least one broker to drain."),
        ([9], "demo has no broker 9. It has brokers 1, 2, 3, 4, 5 and 6."),
        ([1, 2, 3, 4, 5, 6], "That leaves no broker of demo that is up to take the replicas. Leave at least one."),
    ],
)
def test_brokers_that_cannot_be_drained_get_a_sentence_and_stay_chosen(
    wizard: Wizard, demo: Cluster, brokers: list[int], sentence: str
) -> None:
    answer = wizard.begins(demo, "drain").drains(*brokers)
    assert answer.status_code == 200
    assert sentence in said(answer)
    html = answer.content.decode()
    assert {int(b) for b in re.findall(r'name="brokers"[^>]*value="(\d+)" checked', html)} == set(brokers) - {9}
    assert wizard.change.input["brokers"] == []


def test_mixed_rack_information_is_refused_unless_racks_are_ignored(
    wizard: Wizard, operator: User, demo: Cluster
) -> None:
    BrokerState.objects.filter(broker_id=2).update(rack=None)
    answer = wizard.begins(demo, "drain").drains(3)
    assert (
        "Broker 2 names no rack and the others do, so nobody can tell whether replicas are spread. Set broker.rack "
        "there, or plan without regard to racks."
    ) in said(answer)
    assert wizard.drains(3, ignore_racks="on").status_code == 302
    assert wizard.change.input["ignore_racks"] is True


def test_the_override_for_racks_is_not_shown_where_all_brokers_name_theirs(wizard: Wizard, demo: Cluster) -> None:
    assert "ignore_racks" not in wizard.begins(demo, "drain").sees("what")


# -- what: explicit -------------------------------------------------------------------------------------------------


def test_what_is_pasted_is_kept_and_shown_again(wizard: Wizard, demo: Cluster) -> None:
    pasted = kafka_json(("orders", 0, [1, 2, 6]))
    answer = wizard.begins(demo, "explicit").sends("what", {"text": pasted})
    assert answer["location"] == wizard.url("limits")
    upload = Upload.objects.get(request=wizard.number)
    assert uploads.content_of(upload).decode() == pasted
    assert wizard.change.input["upload"] == upload.sha256
    assert pasted in unescape(wizard.sees("what"))


def test_of_a_file_its_name_is_shown_escaped_and_never_its_content(wizard: Wizard, demo: Cluster) -> None:
    file = SimpleUploadedFile("<b>plan</b>.json", kafka_json(("orders", 0, [1, 2, 6])).encode())
    wizard.begins(demo, "explicit").sends("what", {"file": file})
    html = wizard.sees("what")
    assert "Stored: <b>b&gt;.json</b>" in html or "&lt;b&gt;plan&lt;" in html
    assert "<b>plan</b>" not in html
    assert wizard.change.title.startswith("Reassign as in ")


def test_nothing_brought_and_both_brought_are_told_apart(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "explicit")
    assert "Paste the JSON of the assignment, or choose a file." in said(wizard.sends("what"))
    file = SimpleUploadedFile("plan.json", b"{}")
    answer = wizard.sends("what", {"file": file, "text": '{"version":1}'})
    assert "A file was chosen and a text was pasted. Leave one out" in said(answer)
    assert '{"version":1}' in unescape(answer.content.decode())
    assert "The file is empty." in said(wizard.sends("what", {"file": SimpleUploadedFile("plan.json", b"")}))


def test_more_than_50_mb_is_refused_with_both_sizes_and_what_was_stored_stays(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "explicit").sends("what", {"text": kafka_json(("orders", 0, [1, 2, 6]))})
    before = wizard.change.input
    with mock.patch.object(uploads, "LARGEST_BYTES", 1000):
        answer = wizard.sends("what", {"file": SimpleUploadedFile("plan.json", b"x" * 1001)})
        assert "MB are taken at most. Split the assignment into several changes" in said(answer)
    assert wizard.change.input == before
    told = wizard.client.get(f"{wizard.url('what')}?too_large=61000000")
    assert "This is 61.0 MB, and 50 MB are taken at most." in said(told)
    assert "What was stored before is unchanged." in said(told)


def test_limits_alone_keep_what_was_brought(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "explicit").sends("what", {"text": kafka_json(("orders", 0, [1, 2, 6]))})
    stored_before = wizard.change.input["upload"]
    assert wizard.sends("what", {"change_rf": "on"}).status_code == 302
    assert (wizard.change.input["upload"], wizard.change.input["change_rf"]) == (stored_before, True)


# -- limits ---------------------------------------------------------------------------------------------------------


def test_limits_are_kept_in_bytes_per_second_and_shown_as_they_were_typed(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain", brokers="3")
    assert wizard.limits(throttle="62.5")["location"] == wizard.url("plan")
    assert wizard.change.options["throttle"] == 62_500_000
    html = wizard.sees("limits")
    assert 'value="62.5"' in html
    assert "62,500,000 bytes/s." in text(html)


def test_limits_that_are_wrong_are_told_at_their_fields_and_everything_typed_stays(
    wizard: Wizard, demo: Cluster
) -> None:
    answer = wizard.begins(demo, "drain", brokers="3").limits(throttle="<b>", per_cluster="many", disk_limit="150")
    html = answer.content.decode()
    assert "“<b>” is not a number." in said(answer).replace("&lt;", "<")
    assert "The disk limit is from 1 to 100 percent of each disk." in said(answer)
    assert all(f'value="{typed}"' in html for typed in ("&lt;b&gt;", "many", "150", "20"))
    assert "<b>”" not in html.split("<main")[1].replace("<b>Nothing", "")
    assert wizard.change.options == {}


def test_a_very_slow_throttle_is_asked_for_twice_and_the_box_appears_only_then(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain", brokers="3")
    assert 'name="confirmed"' not in wizard.sees("limits")
    answer = wizard.limits(throttle="0.5", throttle_min="0.5")
    assert 'name="confirmed"' in answer.content.decode()
    assert "0.5 MB/s (500,000 bytes/s) is very slow" in said(answer)
    assert wizard.limits(throttle="0.5", throttle_min="0.5", confirmed="on").status_code == 302


# -- two people -----------------------------------------------------------------------------------------------------


def test_of_two_people_editing_one_draft_the_second_sees_who_was_first_and_both_versions(
    wizard: Wizard, make_user: Callable[..., User], client_of: Callable[[User], Client], demo: Cluster
) -> None:
    wizard.begins(demo, "drain", brokers="3").limits()
    seen = wizard.change.version
    other = Wizard(client_of(make_user("otto", Role.OPERATOR)))
    other.number = wizard.number
    other.limits(throttle="70")
    answer = wizard.sends("limits", {**LIMITS, "throttle": "50", "per_broker": "3"}, version=seen)
    assert answer.status_code == 200
    words = said(answer)
    assert f"otto edited #{wizard.number}" in words
    assert "Throttle 50 MB/s (50,000,000 bytes/s) 70 MB/s (70,000,000 bytes/s)" in words
    assert "Moves at once per broker 3 5" in words
    html = answer.content.decode()
    assert re.search(r'name="throttle" value="50"', html)
    assert wizard.change.options["throttle"] == 70_000_000
    version = re.search(r'name="version" value="(\d+)"', html)
    assert version is not None
    wizard.sends("limits", {**LIMITS, "throttle": "50", "per_broker": "3"}, version=int(version[1]))
    assert (wizard.change.options["throttle"], wizard.change.options["per_broker"]) == (50_000_000, 3)


def test_what_was_pasted_stays_in_the_field_when_somebody_else_was_first(
    wizard: Wizard, make_user: Callable[..., User], client_of: Callable[[User], Client], demo: Cluster
) -> None:
    wizard.begins(demo, "explicit").sends("what", {"text": kafka_json(("orders", 0, [1, 2, 6]))})
    seen = wizard.change.version
    other = Wizard(client_of(make_user("otto", Role.OPERATOR)))
    other.number = wizard.number
    other.sends("what", {"text": kafka_json(("orders", 0, [1, 2, 5]))})
    mine = kafka_json(("orders", 1, [2, 3, 1]))
    answer = wizard.sends("what", {"text": mine}, version=seen)
    assert mine in unescape(answer.content.decode())
    assert "Assignment pasted, sha256" in said(answer)
    assert uploads.content_of(Upload.objects.get()).decode() == kafka_json(("orders", 0, [1, 2, 5]))


# -- ways into it ---------------------------------------------------------------------------------------------------


def test_a_brokers_page_leads_here_for_those_who_may_propose_and_not_on_a_read_only_cluster(
    wizard: Wizard, viewer: User, client_of: Callable[[User], Client], demo: Cluster
) -> None:
    where, link = "/clusters/demo/brokers/3/", "/changes/new/?cluster=demo&amp;mode=drain&amp;brokers=3"
    assert link in wizard.client.get(where).content.decode()
    assert "Drain this broker" not in client_of(viewer).get(where).content.decode()
    BrokerState.objects.filter(broker_id=3).update(replicas=0)
    empty = wizard.client.get(where).content.decode()
    assert "Drain this broker" not in empty
    assert "/changes/new/?cluster=demo&amp;mode=add&amp;brokers=3" in empty
    BrokerState.objects.filter(broker_id=3).update(fenced=True)
    assert "mode=add" not in wizard.client.get(where).content.decode()
    BrokerState.objects.filter(broker_id=3).update(replicas=5)
    Cluster.objects.update(read_only=True)
    assert "Drain this broker" not in wizard.client.get(where).content.decode()


def test_the_page_of_the_racks_leads_here_where_something_is_to_be_repaired(
    wizard: Wizard, viewer: User, client_of: Callable[[User], Client], demo: Cluster
) -> None:
    where, link = "/clusters/demo/racks/", "/changes/new/?cluster=demo&amp;mode=repair-racks"
    assert link not in wizard.client.get(where).content.decode()
    TopicState.objects.filter(cluster=demo, name="orders").update(rack_violations=2)
    assert link in wizard.client.get(where).content.decode()
    assert "mode=repair-racks" not in client_of(viewer).get(where).content.decode()
    BrokerState.objects.filter(broker_id=3).update(rack=None)
    assert "mode=repair-racks" not in wizard.client.get(where).content.decode(), "racks are not judged"
    BrokerState.objects.filter(broker_id=3).update(rack="eu-1c")
    Cluster.objects.update(read_only=True)
    assert "mode=repair-racks" not in wizard.client.get(where).content.decode()
