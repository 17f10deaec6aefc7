"""Proposing in a browser: a draft is on the server from the first step, nothing that was entered is lost.

Every mode from its form to its plan, with the real child process; what is wrong is said and nothing is lost.

Topics by name and by regular expression: as many as the planner takes, and never for longer than allowed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from html import unescape
from threading import BoundedSemaphore, Thread
from typing import Any
from unittest import mock

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.core.messages import message_text
from kafkadash.monitoring.models import BrokerState, TopicState
from kafkadash.planning import proposal as uploads
from kafkadash.planning import topic_choice as topic_counts
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.models import PlanReport, Upload
from kafkadash.planning.proposal import MODES, OF_BROKERS, options_of
from kafkadash.planning.solver.request import BALANCE, EPS, PlanRequest, choose_topics
from kafkadash.planning.stored_checks import plan_rows
from kafkadash.planning.topic_choice import (
    LONGEST_PATTERN,
    BadChoice,
    CountedTopics,
    TooManyAtOnce,
    count_choice,
    names_in,
)
from kafkadash.planning.topic_match import CPU_S
from tests.factories import GB, ClusterFactory, TopicFactory
from tests.pages.conftest import Page, text_of
from tests.planning.stored import LIMITS, RACKS, Wizard, kafka_json, problems_of, stored, text
from tests.raised_codes import raises_code
from tests.waiting import wait_until

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
    assert message_text(ClusterErrorCode.READ_ONLY, cluster="locked") in text(html)


def test_what_pages_that_link_here_say_is_filled_in(wizard: Wizard, demo: Cluster) -> None:
    html = wizard.client.get("/changes/new/?cluster=demo&mode=drain&brokers=3").content.decode()
    assert 'name="cluster" value="demo" checked' in html
    assert 'name="mode" value="drain" checked' in html
    assert "Preselected for adding, draining and replacing: broker 3." in text(html)
    wizard.begins(demo, "drain", brokers="3")
    assert wizard.change.input["brokers"] == [3]
    assert 'value="3" checked' in wizard.sees("what")
    html = wizard.client.get("/changes/new/?cluster=demo&mode=balance&disks=1").content.decode()
    assert '<input type="hidden" name="disks" value="1">' in html
    assert wizard.begins(demo, "balance", disks="1").change.input["eps"] == EPS
    assert re.search('name="disks"[^>]* checked', wizard.sees("what"))
    assert wizard.begins(demo, "drain", disks="1").change.input.get("eps") is None


def test_a_draft_is_there_from_the_first_step_on_and_audited(wizard: Wizard, operator: User, demo: Cluster) -> None:
    wizard.begins(demo, "drain")
    change = wizard.change
    assert (change.state, change.author, change.title) == (RequestState.DRAFT, operator, "Drain brokers")
    assert AuditEvent.objects.filter(action="change.created", object_id=str(change.pk)).exists()


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"mode": "drain"}, "Choose a cluster."),
        ({"cluster": "demo"}, "Choose a change type."),
        ({"cluster": "demo", "mode": "rebalance"}, "Choose one of the listed change types."),
        ({"cluster": "nowhere", "mode": "drain"}, "Choose a cluster on which you may propose changes."),
        (
            {"cluster": "demo", "mode": "drain", "brokers": "x"},
            "“x” is not a broker ID. IDs are whole numbers, 0 or higher.",
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
    assert "demo is read-only in kafkadash, so changes cannot be proposed." in said(answer)
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
    assert "3 kafka-3.internal eu-1c Unregistered 5 3 15.0 GB 33.3 %" in page.words("choice-3")
    assert "Offline brokers can be drained too" in page.text
    assert wizard.drains(3).status_code == 302
    assert wizard.change.title == "Drain broker 3"


@pytest.mark.parametrize(
    ("brokers", "sentence"),
    [
        ([], "Select at least one broker to drain."),
        ([9], "demo has no broker 9. Its brokers: 1, 2, 3, 4, 5 and 6."),
        ([1, 2, 3, 4, 5, 6], "No available broker of demo would be left to take the replicas. Leave at least one."),
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
        "Broker 2 has no rack but others do, so rack spread is unknown. Set broker.rack there, or plan without rack "
        "awareness."
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
    assert "Paste the reassignment JSON, or choose a file." in said(wizard.sends("what"))
    file = SimpleUploadedFile("plan.json", b"{}")
    answer = wizard.sends("what", {"file": file, "text": '{"version":1}'})
    assert "Both a file and pasted text were given. Remove one" in said(answer)
    assert '{"version":1}' in unescape(answer.content.decode())
    assert "The file is empty." in said(wizard.sends("what", {"file": SimpleUploadedFile("plan.json", b"")}))


def test_more_than_50_mb_is_refused_with_both_sizes_and_what_was_stored_stays(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "explicit").sends("what", {"text": kafka_json(("orders", 0, [1, 2, 6]))})
    before = wizard.change.input
    with mock.patch.object(uploads, "LARGEST_BYTES", 1000):
        answer = wizard.sends("what", {"file": SimpleUploadedFile("plan.json", b"x" * 1001)})
        assert " MB. Split it into several changes" in said(answer)
    assert wizard.change.input == before
    told = wizard.client.get(f"{wizard.url('what')}?too_large=61000000")
    assert "This is 61.0 MB; the limit is 50 MB." in said(told)
    assert "The stored JSON is unchanged." in said(told)


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
    assert "The disk limit must be from 1 to 100 percent of each disk." in said(answer)
    assert all(f'value="{typed}"' in html for typed in ("&lt;b&gt;", "many", "150", "20"))
    assert "<b>”" not in html.split("<main")[1].replace("<b>Not saved", "")
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
    assert "Concurrent moves per broker 3 5" in words
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
    assert "Drain broker" not in client_of(viewer).get(where).content.decode()
    BrokerState.objects.filter(broker_id=3).update(replicas=0)
    empty = wizard.client.get(where).content.decode()
    assert "Drain broker" not in empty
    assert "/changes/new/?cluster=demo&amp;mode=add&amp;brokers=3" in empty
    BrokerState.objects.filter(broker_id=3).update(fenced=True)
    assert "mode=add" not in wizard.client.get(where).content.decode()
    BrokerState.objects.filter(broker_id=3).update(replicas=5)
    Cluster.objects.update(read_only=True)
    assert "Drain broker" not in wizard.client.get(where).content.decode()


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


WITH_EMPTY = {**RACKS, 7: "eu-1a", 8: "eu-1b", 9: "eu-1c"}
CROWDED = {"orders": [[1, 4, 2], [2, 3, 4], [1, 2, 3]]}
"""orders-0 has two replicas in eu-1a and none in eu-1c."""


@pytest.fixture
def grown() -> Cluster:
    """With three brokers that hold nothing."""
    return stored(racks=WITH_EMPTY)


def planned(wizard: Wizard, what: dict[str, Any], **limits: str | list[str]) -> dict[tuple[str, int], tuple[int, ...]]:
    """Partition → replicas as planned."""
    answer = wizard.sends("what", what)
    assert answer.status_code == 302, text(answer.content.decode())
    wizard.limits(**limits)
    change = wizard.plans()
    assert change.artifact_id, problems_of(wizard)
    return {(row.topic, row.partition): row.target for row in plan_rows(change.artifact_id)}


def test_all_modes_are_offered_each_with_what_it_does(wizard: Wizard, demo: Cluster) -> None:
    html = wizard.client.get("/changes/new/?cluster=demo&mode=repair-racks").content.decode()
    assert set(re.findall(r'name="mode" value="([^"]+)"', html)) == set(MODES)
    assert 'name="mode" value="repair-racks" checked' in html
    sentences = re.findall(r'name="mode"[^>]*><b>[^<]+</b><span>([^<]+)</span>', html)
    assert len(sentences) == len(MODES)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in OF_BROKERS])
def test_brokers_that_came_along_are_left_out_where_none_are_asked_for(
    wizard: Wizard, demo: Cluster, mode: str
) -> None:
    assert wizard.begins(demo, mode, brokers="3").change.input["brokers"] == []


def test_brokers_are_added(wizard: Wizard, grown: Cluster) -> None:
    wizard.begins(grown, "add", brokers="7")
    assert re.search(r'id="add-7" value="7" checked', wizard.sees("what"))
    rows = planned(wizard, {"brokers": ["7", "8"]})
    assert wizard.change.title == "Add brokers 7 and 8"
    held = {broker for target in rows.values() for broker in target}
    assert {7, 8} <= held
    assert 9 not in held
    report = PlanReport.objects.get()
    assert report.proof is not None
    page = Page(wizard.sees("plan"))
    assert "No plan that adds brokers 7 and 8 under these limits moves less." in page.words("plan")
    assert "Proven least movement" in page.words("plan")
    wizard.submits("Add brokers 7 and 8", "They were bought.")
    assert wizard.change.state == RequestState.PROPOSED
    assert "Proven least movement" in text(wizard.client.get(f"/changes/{wizard.number}/").content.decode())


def test_a_broker_is_replaced(wizard: Wizard, grown: Cluster) -> None:
    wizard.begins(grown, "replace", brokers="3")
    html = wizard.sees("what")
    assert re.search(r'name="role-3".*?<option value="out" selected', html)
    rows = planned(wizard, {"role-3": "out", "role-9": "in", "role-1": ""})
    assert (wizard.change.title, wizard.change.input["replacements"]) == ("Replace broker 3 with 9", [9])
    assert all(9 in target and 3 not in target for target in rows.values())
    assert re.search(r'name="role-9".*?<option value="in" selected', wizard.sees("what"))
    assert 'name="targets"' not in wizard.sees("limits")


def test_racks_are_repaired(wizard: Wizard) -> None:
    cluster = stored(topics=CROWDED)
    rows = planned(wizard.begins(cluster, "repair-racks"), {})
    assert set(rows) == {("orders", 0)}
    assert {RACKS[broker] for broker in rows["orders", 0]} == {"eu-1a", "eu-1b", "eu-1c"}
    assert wizard.change.title == "Repair racks"


def test_the_replication_factor_of_some_topics_is_changed_and_that_is_approved_with_it(
    wizard: Wizard, demo: Cluster
) -> None:
    rows = planned(wizard.begins(demo, "set-rf"), {"factor": "3", "pattern": "cl.*"})
    assert {name for name, _ in rows} == {"clicks"}
    assert all(len(target) == 3 for target in rows.values())
    options = options_of(wizard.change.options)
    assert options is not None
    assert options.change_rf
    assert wizard.change.title == "Set replication factor 3 of topics matching “cl.*”"
    assert "the replication factor may change" in text(wizard.sees("why"))
    assert 'name="rebalance"' in wizard.sees("what")
    wizard.submits("Three of each", "Two are too few.")
    assert wizard.change.state == RequestState.PROPOSED


def test_fewer_replicas_are_said_to_be_dropped_and_nothing_to_be_copied(wizard: Wizard) -> None:
    cluster = stored(topics={"orders": [[1, 2, 3]] * 6})
    rows = planned(wizard.begins(cluster, "set-rf"), {"factor": "2"})
    assert {len(target) for target in rows.values()} == {2}
    words = Page(wizard.sees("plan"))
    assert "6 changes, 6 of them with fewer replicas; no data is copied." in words.words("plan")
    assert "No data is copied: replicas are only removed or reordered." in words.words("duration")


def test_replicas_are_balanced_and_what_is_chosen_is_kept(wizard: Wizard, grown: Cluster) -> None:
    wizard.begins(grown, "balance")
    rows = planned(wizard, {"disks": "on", "eps": "7.5", "excluded": "clicks"}, most_replicas="4")
    assert {name for name, _ in rows} == {"orders"}
    kept = wizard.change.input
    assert (kept["eps"], kept["leaders"], kept["excluded"], kept["most_replicas"]) == (0.075, False, "clicks", 4)
    html = wizard.sees("what")
    assert 'name="eps" value="7.5"' in html
    assert 'name="disks" checked' in html
    assert 'name="leaders" checked' not in html
    assert 'name="most_replicas" value="4"' in wizard.sees("limits")
    wizard.sends("what", {"leaders": "on", "eps": "7.5"})
    assert wizard.change.artifact_id is None
    assert wizard.change.input["eps"] is None
    assert wizard.change.title == "Balance replicas and leaders"


def test_leaders_are_evened_out_without_data(wizard: Wizard) -> None:
    cluster = stored(topics={"orders": [[1, 2, 3]] * 6})
    rows = planned(wizard.begins(cluster, "leaders"), {})
    assert all(set(target) == {1, 2, 3} for target in rows.values())
    words = Page(wizard.sees("plan")).words("plan")
    assert "of replica order; no data moves." in words
    assert "lower bound" not in words
    assert 'name="disk_limit"' in wizard.sees("limits")
    assert 'name="most_replicas"' not in wizard.sees("limits")


def test_an_earlier_plan_is_finished(wizard: Wizard, demo: Cluster) -> None:
    earlier = kafka_json(("orders", 0, [1, 2, 3]), ("orders", 1, [2, 3, 6]), ("clicks", 0, [3, 5, 1]))
    wizard.begins(demo, "finish")
    assert 'name="change_rf"' not in wizard.sees("what")
    rows = planned(wizard, {"text": earlier})
    assert rows == {("orders", 1): (2, 3, 6), ("clicks", 0): (3, 5, 1)}
    options = options_of(wizard.change.options)
    assert options is not None
    assert options.change_rf
    assert "Exactly as given." in Page(wizard.sees("plan")).words("plan")


def test_only_some_brokers_may_be_given_replicas(wizard: Wizard, grown: Cluster) -> None:
    wizard.begins(grown, "drain", brokers="3")
    wizard.limits(targets=["6", "9"])
    assert wizard.change.input["targets"] == [6, 9]
    html = wizard.sees("limits")
    assert 'id="target-3"' not in html, "it is drained"
    assert set(re.findall(r'name="targets"[^>]*value="(\d)" checked', html)) == {"6", "9"}
    assert "Limits 2 targets, 80 % disk" in text_of(wizard.sees("plan"))
    rows = plan_rows(str(wizard.plans().artifact_id))
    assert {broker for row in rows for broker in row.adding} <= {6, 9}
    wizard.limits()
    assert wizard.change.input["targets"] is None
    assert wizard.change.artifact_id is None


def test_who_is_given_replicas_is_asked_once_only(wizard: Wizard, grown: Cluster) -> None:
    wizard.begins(grown, "add", brokers="7").sends("what", {"brokers": ["7"]})
    assert 'name="targets"' not in wizard.sees("limits")
    wizard.sends("what", {"brokers": ["7"], "rebalance": "on"})
    assert 'name="targets"' in wizard.sees("limits")


def test_others_may_move_too_where_that_is_asked_for(wizard: Wizard, grown: Cluster) -> None:
    planned(wizard.begins(grown, "drain"), {"brokers": ["3"], "rebalance": "on"})
    wizard.submits("Drain broker 3", "Its disk is failing.")
    review = text(wizard.client.get(f"/changes/{wizard.number}/").content.decode())
    assert "Move all replicas off broker 3. Other replicas may move too" in review


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("add", {}, "No new broker is given. Name the brokers that were added."),
    ("add", {"brokers": ["3"]}, "Broker 3 is fenced and cannot take replicas now."),
    ("replace", {}, "No broker to replace is given. Name at least one."),
    ("replace", {"role-1": "out"}, "No replacement is given for broker 1."),
    ("replace", {"role-1": "out", "role-3": "in"}, "Broker 3 is fenced and cannot take replicas now."),
    ("replace", {"role-77": "out"}, "demo has no broker 77. Its brokers: 1, 2, 3, 4, 5 and 6."),
    ("replace", {"role-x": "out"}, "“x” is not a broker ID. IDs are whole numbers, 0 or higher."),
    ("set-rf", {"factor": ""}, "No replication factor is given."),
    ("set-rf", {"factor": "0"}, "Replication factor 0 leaves partitions without replicas. Use 1 or higher."),
    ("set-rf", {"factor": "6"}, "Replication factor 6 needs as many brokers, but only 5 can hold"),
    ("set-rf", {"factor": "many"}, "Enter a whole number, 1 or higher, for example 3."),
    ("balance", {"disks": "on", "eps": "101"}, "Enter a percentage of the rack mean from 1 to 100, for example 5."),
    ("balance", {"pattern": "order["}, "“order[” is not a valid regular expression: unterminated character set"),
    ("leaders", {"topics": "orders, orderz"}, "Topic orderz does not exist in this cluster."),
    ("repair-racks", {"excluded": ".*"}, "“.*” excludes every selected topic; the cluster has 2 topics."),
    ("finish", {}, "Paste the reassignment JSON, or choose a file."),
]


@pytest.mark.parametrize(("mode", "sent", "sentence"), WRONG)
def test_what_is_wrong_is_said_and_stays_on_the_page(
    wizard: Wizard, demo: Cluster, mode: str, sent: dict[str, Any], sentence: str
) -> None:
    BrokerState.objects.filter(broker_id=3).update(fenced=True)
    before = wizard.begins(demo, mode).change.input
    answer = wizard.sends("what", sent)
    html = answer.content.decode()
    assert answer.status_code == 200
    assert sentence in unescape(text(html))
    assert 'aria-invalid="true"' in html or 'class="panel-body field-error"' in html
    assert wizard.change.input == before
    for name in ("factor", "eps", "pattern", "excluded"):
        if sent.get(name):
            assert f'value="{sent[name]}"' in html
    if "topics" in sent:
        assert sent["topics"] in html


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"targets": ["99"]}, "A selected broker is no longer in this cluster."),
        ({"targets": ["6"]}, "No broker can take replicas"),
        ({"most_replicas": "0"}, "Enter a whole number, 1 or higher, for example 4000."),
    ],
)
def test_limits_of_a_plan_that_are_wrong_are_said(
    wizard: Wizard, demo: Cluster, sent: dict[str, Any], sentence: str
) -> None:
    BrokerState.objects.filter(broker_id=6).update(fenced=True)
    answer = wizard.begins(demo, "drain", brokers="3").limits(**sent)
    assert answer.status_code == 200
    assert sentence in text(answer.content.decode())
    assert wizard.change.options == {}


def test_mixed_racks_keep_racks_from_being_repaired(wizard: Wizard) -> None:
    answer = wizard.begins(stored(racks={**RACKS, 2: None}), "repair-racks").sends("what")
    assert "Broker 2 has no rack but others do, so rack violations are unknown." in text(answer.content.decode())


@pytest.mark.parametrize(
    ("mode", "mine", "theirs", "rows"),
    [
        ("set-rf", {"factor": "3"}, {"factor": "2"}, ["Replication factor 3 2"]),
        (
            "balance",
            {"disks": "on", "eps": "7", "leaders": "on"},
            {"eps": "5", "pattern": "orders"},
            [
                "Balance disk usage yes no",
                "Disk usage tolerance 7 % 5 %",
                "Balance leaders yes no",
                "Topics by regular expression none orders",
            ],
        ),
        (
            "replace",
            {"role-1": "out", "role-4": "in"},
            {"role-2": "out", "role-5": "in", "rebalance": "on"},
            ["Brokers to replace 1 2", "Replacement brokers 4 5", "Also rebalance replica counts no yes"],
        ),
    ],
)
def test_of_two_people_the_second_sees_both_versions(
    wizard: Wizard,
    make_user: Callable[..., User],
    client_of: Callable[[User], Client],
    demo: Cluster,
    mode: str,
    mine: dict[str, str],
    theirs: dict[str, str],
    rows: list[str],
) -> None:
    seen = wizard.begins(demo, mode).change.version
    other = Wizard(client_of(make_user("otto", Role.OPERATOR)))
    other.number = wizard.number
    assert other.sends("what", theirs).status_code == 302
    answer = wizard.sends("what", mine, version=seen)
    words = text(answer.content.decode())
    assert f"otto edited #{wizard.number}" in words
    _, _, table = answer.content.decode().partition("conflict-table")
    body = table[table.index("<tbody>") : table.index("</tbody>")]
    assert [text_of(row) for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)] == rows


NAMES = ("orders", "orders-dlq", "orders.audit", "clicks", "__consumer_offsets")
LONG = "a" * 60
ENDLESS = json.dumps({"pattern": "(a+)+b", "excluded": "", "topics": [], "names": [LONG], "skipped": []}).encode()


@pytest.fixture
def named(cluster: Cluster) -> Cluster:
    for number, name in enumerate(NAMES, start=1):
        TopicFactory.create(cluster=cluster, name=name, partition_count=10 * number, size_bytes=number * GB)
    return cluster


@pytest.mark.parametrize(
    ("topics", "pattern", "excluded"),
    [
        ((), "orders.*", ""),
        ((), "orders.*", ".*-dlq"),
        ((), "orders", ""),
        ((), "rders", ".*"),
        (("clicks",), "orders", ""),
        (("clicks", "orders"), "", "cl.*"),
        ((), "", "__.*"),
        ((), r"orders\.audit|clicks", ""),
        ((), "(?i)ORDERS", ""),
    ],
)
def test_they_are_those_that_the_planner_takes(
    named: Cluster, topics: tuple[str, ...], pattern: str, excluded: str
) -> None:
    asked = PlanRequest(BALANCE, topics=topics, pattern=pattern, excluded=excluded)
    wanted = choose_topics(asked, NAMES, ())
    if not wanted:
        with pytest.raises(BadChoice):
            count_choice(named, topics, pattern, excluded)
        return
    found = count_choice(named, topics, pattern, excluded)
    partitions = sum(10 * (NAMES.index(name) + 1) for name in wanted)
    assert (found.topics, found.total, found.partitions) == (len(wanted), len(NAMES), partitions)


def test_it_is_told_with_partitions_and_size(named: Cluster) -> None:
    some, everything = count_choice(named, (), "orders.*", ""), count_choice(named, (), "", "")
    assert some == CountedTopics(topics=3, total=5, partitions=60, size_bytes=6 * 10**9, unsized=0)
    assert everything == CountedTopics(topics=5, total=5, partitions=150, size_bytes=15 * 10**9, unsized=0)
    TopicState.objects.filter(name="orders").update(size_bytes=None)
    partly = count_choice(named, (), "orders.*", "")
    assert partly == CountedTopics(topics=3, total=5, partitions=60, size_bytes=5 * 10**9, unsized=1)
    unknown = count_choice(named, ("orders",), "", "")
    assert unknown == CountedTopics(topics=1, total=5, partitions=10, size_bytes=0, unsized=1)
    assert [re.findall(r"[\d.]+ (?:of|topic|part|GB)", one.words) for one in (some, everything, partly, unknown)] == [
        ["3 of", "5 topic", "60 part", "6.0 GB"],
        ["5 topic", "150 part", "15.0 GB"],
        ["3 of", "5 topic", "60 part", "5.0 GB", "1 topic"],
        ["1 of", "5 topic", "10 part"],
    ]


def test_a_cluster_that_was_never_read_has_none(cluster: Cluster) -> None:
    assert count_choice(cluster, (), "", "").total == 0


def test_topics_of_another_cluster_are_not_counted(named: Cluster) -> None:
    TopicFactory.create(cluster=ClusterFactory.create(name="other"), name="orders-elsewhere")
    assert count_choice(named, (), "orders.*", "").topics == 3


@pytest.mark.parametrize(
    ("topics", "pattern", "excluded", "field", "sentence"),
    [
        (("orderz",), "", "", "topics", "Topic orderz does not exist in this cluster."),
        (
            (),
            "order[",
            "",
            "pattern",
            "“order[” is not a valid regular expression: unterminated character set at character 6.",
        ),
        ((), "orders", "(", "excluded", "“(” is not a valid regular expression"),
        ((), "rders", "", "pattern", "“rders” matches none of 5 topics."),
        ((), "orders", "o.*", "excluded", "“o.*” excludes every selected topic; the cluster has 5 topics."),
        (
            (),
            "x" * (LONGEST_PATTERN + 1),
            "",
            "pattern",
            "The regular expression has 501 characters; the limit is 500.",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    named: Cluster, topics: tuple[str, ...], pattern: str, excluded: str, field: str, sentence: str
) -> None:
    with pytest.raises(BadChoice) as bad:
        count_choice(named, topics, pattern, excluded)
    assert (bad.value.field, str(bad.value)[: len(sentence)]) == (field, sentence)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*a){30}b", "(a|aa)+$b"])
def test_one_that_would_never_end_is_ended(named: Cluster, pattern: str) -> None:
    TopicFactory.create(cluster=named, name=LONG)
    before = time.thread_time()
    with raises_code(ReassignmentErrorCode.PATTERN_TOO_SLOW, BadChoice, seconds=CPU_S) as bad:
        count_choice(named, (), pattern, "")
    assert bad.value.field == "pattern"
    assert time.thread_time() - before < 1, "this process itself does not match"


def test_one_that_would_take_all_memory_is_ended(named: Cluster) -> None:
    with pytest.raises(BadChoice):
        count_choice(named, (), "((((((a{0,999}){0,999}){0,999}){0,999}){0,999}){0,999})b", "")


def test_a_newer_pattern_ends_the_one_that_is_being_tried(named: Cluster) -> None:
    """As somebody types: his first choice would go on for seconds, and nobody waits for it any more."""
    TopicFactory.create(cluster=named, name=LONG)
    given_up: list[BaseException] = []

    def try_one_without_end() -> None:
        try:
            topic_counts._run_match(ENDLESS, "pattern", 7)
        except TooManyAtOnce as error:
            given_up.append(error)

    first = Thread(target=try_one_without_end)
    first.start()
    wait_until(lambda: 7 in topic_counts._children, "the first is being tried")
    assert count_choice(named, (), "orders.*", "", typed_by=7).topics == 3
    first.join(topic_counts._WAIT_S)
    assert len(given_up) == 1
    assert not topic_counts._children


def test_no_more_processes_than_places_match_at_once(named: Cluster) -> None:
    others = [Thread(target=topic_counts._run_match, args=(ENDLESS, "pattern", person)) for person in range(2)]
    for other in others:
        other.start()
    wait_until(lambda: len(topic_counts._children) == len(others), "all places are taken")
    with pytest.raises(TooManyAtOnce, match="are being evaluated"):
        count_choice(named, (), "orders.*", "", typed_by=9)
    for person in range(len(others)):
        topic_counts._children[person].kill()
    for other in others:
        other.join(topic_counts._WAIT_S)
    assert count_choice(named, (), "orders.*", "", typed_by=9).topics == 3


def test_the_page_says_that_others_type_too(wizard: Wizard, demo: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    wizard.begins(demo, "balance")
    monkeypatch.setattr(topic_counts, "_places", BoundedSemaphore(1))
    monkeypatch.setattr(topic_counts, "_PLACE_S", 0.0)
    assert topic_counts._places.acquire()
    answer = wizard.sends("what/topics", {"pattern": "ord.*"})
    assert answer.status_code == 429
    assert message_text(ReassignmentErrorCode.PATTERNS_BUSY) in text_of(answer.content.decode())


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("", ()),
        ("orders", ("orders",)),
        ("orders,clicks", ("clicks", "orders")),
        (" orders\r\nclicks \n orders", ("clicks", "orders")),
    ],
)
def test_names_are_read_one_a_line_or_with_commas(typed: str, names: tuple[str, ...]) -> None:
    assert names_in(typed) == names


def test_the_page_asks_for_the_count_and_changes_nothing(wizard: Wizard, demo: Cluster) -> None:
    before = wizard.begins(demo, "balance").change.version
    answer = wizard.sends("what/topics", {"pattern": "ord.*", "topics": "clicks", "excluded": ""})
    assert "2 topics, 7 partitions" in text_of(answer.content.decode())
    wrong = wizard.sends("what/topics", {"pattern": "<b>["})
    assert "“&lt;b&gt;[”" in wrong.content.decode()
    opened = wizard.client.get(wizard.url("what/topics"))
    assert (opened.status_code, opened["Location"]) == (302, wizard.url("what"))
    assert wizard.change.version == before
