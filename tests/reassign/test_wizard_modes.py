"""Every mode from its form to its plan, with the real child process; what is wrong is said and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster, Role
from kafkadash.observe.models import BrokerState
from kafkadash.reassign.asked import MODES, OF_BROKERS, options_of
from kafkadash.reassign.checks import plan_rows
from kafkadash.reassign.models import PlanReport
from tests.pages.conftest import Page, text_of
from tests.reassign.stored import RACKS, Wizard, kafka_json, problems_of, stored, text

pytestmark = pytest.mark.django_db

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
    assert wizard.change.title == "Set replication factor 3 of topics like “cl.*”"
    assert "the replication factor may change" in text(wizard.sees("why"))
    assert 'name="rebalance"' in wizard.sees("what")
    wizard.submits("Three of each", "Two are too few.")
    assert wizard.change.state == RequestState.PROPOSED


def test_fewer_replicas_are_said_to_be_dropped_and_nothing_to_be_copied(wizard: Wizard) -> None:
    cluster = stored(topics={"orders": [[1, 2, 3]] * 6})
    rows = planned(wizard.begins(cluster, "set-rf"), {"factor": "2"})
    assert {len(target) for target in rows.values()} == {2}
    words = Page(wizard.sees("plan"))
    assert "6 changes, of which 6 drop replicas; nothing is copied." in words.words("plan")
    assert "Nothing is copied: replicas are dropped, or stand in another order" in words.words("duration")


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
    assert "eps" not in wizard.change.input
    assert wizard.change.title == "Balance replicas and leaders"


def test_leaders_are_evened_out_without_data(wizard: Wizard) -> None:
    cluster = stored(topics={"orders": [[1, 2, 3]] * 6})
    rows = planned(wizard.begins(cluster, "leaders"), {})
    assert all(set(target) == {1, 2, 3} for target in rows.values())
    words = Page(wizard.sees("plan")).words("plan")
    assert "of order only, no data moves." in words
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
    assert "targets" not in wizard.change.input
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
    assert "Move every replica off broker 3. Others may move too" in review


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("add", {}, "No broker that is to be given replicas is named. Name those that were added."),
    ("add", {"brokers": ["3"]}, "Broker 3 is fenced and can be given no replicas now."),
    ("replace", {}, "No broker to replace is named. Name at least one."),
    ("replace", {"role-1": "out"}, "No broker is named that takes over from broker 1."),
    ("replace", {"role-1": "out", "role-3": "in"}, "Broker 3 is fenced and can be given no replicas now."),
    ("replace", {"role-77": "out"}, "demo has no broker 77. It has brokers 1, 2, 3, 4, 5 and 6."),
    ("replace", {"role-x": "out"}, "“x” is no broker id: ids are whole numbers from 0 on."),
    ("set-rf", {"factor": ""}, "No replication factor is given."),
    ("set-rf", {"factor": "0"}, "A replication factor of 0 leaves partitions without replicas. Ask for 1 at least."),
    ("set-rf", {"factor": "6"}, "A replication factor of 6 needs as many brokers, and there are only 5 that can hold"),
    ("set-rf", {"factor": "many"}, "Give a whole number from 1 on, for example 3."),
    ("balance", {"disks": "on", "eps": "101"}, "Give percent of the mean of the rack, from 1 to 100, for example 5."),
    ("balance", {"pattern": "order["}, "“order[” is no regular expression: unterminated character set"),
    ("leaders", {"topics": "orders, orderz"}, "There is no topic orderz in this cluster."),
    ("repair-racks", {"excluded": ".*"}, "Of 2 topics not one is chosen: “.*” excludes them."),
    ("finish", {}, "Paste the JSON of the assignment, or choose a file."),
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
        ({"targets": ["99"]}, "A broker that was chosen is not in this cluster any more."),
        ({"targets": ["6"]}, "No broker is left that may be given replicas"),
        ({"most_replicas": "0"}, "Give a whole number from 1 on, for example 4000."),
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
    assert "Broker 2 names no rack and the others do, so nobody can tell which partitions" in text(
        answer.content.decode()
    )


@pytest.mark.parametrize(
    ("mode", "mine", "theirs", "rows"),
    [
        ("set-rf", {"factor": "3"}, {"factor": "2"}, ["Replication factor 3 2"]),
        (
            "balance",
            {"disks": "on", "eps": "7", "leaders": "on"},
            {"eps": "5", "pattern": "orders"},
            [
                "Even out the disks yes no",
                "Disks within 7 % 5 %",
                "Even out who leads yes no",
                "Topics by regular expression none orders",
            ],
        ),
        (
            "replace",
            {"role-1": "out", "role-4": "in"},
            {"role-2": "out", "role-5": "in", "rebalance": "on"},
            ["Brokers to replace 1 2", "Brokers that take over 4 5", "Let others move too no yes"],
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
