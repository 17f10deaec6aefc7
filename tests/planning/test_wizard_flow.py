"""Steps of the wizard: the plan made at once, the act that fixes one that failed, the list of topics, the throttle.

Drafts that nobody touched are in no list and are deleted after a day.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import services
from kafkadash.changes.checks import ChangeCheck, CheckResult, CheckSubject
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.expiry import KEEP_UNTOUCHED, delete_untouched
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import PlanErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import coded
from kafkadash.jobs.models import Job
from kafkadash.jobs.runner import attempt_job
from kafkadash.monitoring.models import TopicState
from kafkadash.planning.models import PlanReport
from kafkadash.planning.options import FIRST_RATE, MB, bounds_of, rate_above, suggest_rate
from kafkadash.planning.problem_codes import CheckTitle
from kafkadash.planning.proposal import (
    ADD,
    BALANCE,
    DRAIN,
    EXPLICIT,
    FINISH,
    MODES,
    OF_BROKERS,
    SET_RF,
    options_of,
)
from kafkadash.planning.stored_checks import plan_rows
from kafkadash.planning.topic_choice import PICKER_PAGE, SEARCH, TICK_ALL, TICK_NONE, TopicSize, build_picker
from kafkadash.planning.wizard import find_fix
from tests.pages.conftest import Page
from tests.planning.stored import LIMITS, Wizard, kafka_json, plan_explicit, plan_unchecked, stored

pytestmark = pytest.mark.django_db

PRIMARY = ".action-bar .button-primary"
WITH_INTERNAL = {"orders": [[1, 2, 3]], "clicks": [[3, 5]], "__consumer_offsets": [[1, 2]]}
LAST_IN_RACK: dict[str, Any] = {"topics": {"orders": [[1, 2, 3]]}, "racks": {1: "a", 2: "b", 3: "c", 4: "a"}}


def begin_drain(wizard: Wizard, cluster: Cluster) -> Wizard:
    wizard.begins(cluster, "drain").drains(3)
    return wizard


# -- the plan is computed when the limits are saved -------------------------------------------------------------------


def test_limits__saved__are_planned_at_once_and_reloads_plan_nothing(wizard: Wizard, demo: Cluster) -> None:
    begin_drain(wizard, demo).limits()
    assert [job.input["change"] for job in Job.objects.all()] == [wizard.number]
    for _ in range(2):
        assert Page(wizard.sees("plan")).has("planning")
    assert Job.objects.count() == 1


def test_limits__saved_without_a_change__keep_the_plan(wizard: Wizard, demo: Cluster) -> None:
    begin_drain(wizard, demo).limits()
    planned = wizard.plans()
    wizard.limits()
    assert (wizard.change.artifact_id, Job.objects.count()) == (planned.artifact_id, 1)


def test_plan_step__scope_was_edited__leads_to_limits(wizard: Wizard, demo: Cluster) -> None:
    begin_drain(wizard, demo).limits()
    wizard.plans()
    wizard.drains(4)
    assert wizard.url("plan") not in Page(wizard.sees("what")).links(".stepper")
    assert wizard.client.get(wizard.url("plan"))["location"] == wizard.url("limits")
    wizard.limits()
    assert Page(wizard.sees("plan")).has("planning")


def test_plan_again__cluster_as_planned__is_not_offered(wizard: Wizard, demo: Cluster) -> None:
    begin_drain(wizard, demo).limits()
    wizard.plans()
    assert not Page(wizard.sees("plan")).find(".action-bar [value=save]")


@pytest.mark.parametrize("change", ["content", "age"])
def test_plan_again__cluster_changed_since__is_offered(wizard: Wizard, demo: Cluster, change: str) -> None:
    begin_drain(wizard, demo).limits()
    wizard.plans()
    failed = ChangeCheck(
        "rows", CheckSubject.CONTENT, CheckResult.FAILED, coded(CheckTitle.FITS_WINDOW), problem_count=1
    )
    of: dict[str, dict[str, Any]] = {
        "content": {"checks": [pack_dataclass(failed)]},
        "age": {"topology_at": timezone.now() - timedelta(days=2)},
    }
    ChangeRequest.objects.filter(pk=wizard.number).update(**of[change])
    assert len(Page(wizard.sees("plan")).find(".action-bar [value=save]")) == 1


# -- a plan that failed, and one that is empty ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "mode", "fix"),
    [
        ({PlanErrorCode.LAST_OF_A_RACK}, DRAIN, ("accept_fewer_racks", "")),
        ({PlanErrorCode.LAST_OF_A_RACK}, BALANCE, ("", "what")),
        ({PlanErrorCode.RACKS_MIXED}, ADD, ("ignore_racks", "")),
        ({PlanErrorCode.OTHER_FACTOR}, EXPLICIT, ("change_rf", "")),
        ({PlanErrorCode.OTHER_FACTOR}, FINISH, ("", "what")),
        ({PlanErrorCode.DISK_LIMIT, PlanErrorCode.NO_ROOM_AT_THE_MAXIMUM}, DRAIN, ("", "limits")),
        ({PlanErrorCode.DISK_LIMIT, PlanErrorCode.LAST_OF_A_RACK}, DRAIN, ("", "what")),
        ({PlanErrorCode.MOVES_ALREADY}, DRAIN, ("", "")),
        ({PlanErrorCode.TOO_FEW_BROKERS}, DRAIN, ("", "what")),
        (set(), DRAIN, ("", "")),
    ],
)
def test_fix_of_problems__is_the_one_act_that_fixes_all(
    codes: set[PlanErrorCode], mode: str, fix: tuple[str, str]
) -> None:
    found = find_fix(codes, mode)
    assert (found.option, found.step) == fix


def test_fix_of_a_failed_job__that_fails_again__is_another_scope() -> None:
    assert find_fix(set(), DRAIN, PlanErrorCode.PLANNER_OUT_OF_MEMORY).step == "what"
    assert find_fix(set(), DRAIN, ChangeErrorCode.FACTS_TOO_OLD).step == ""


def test_failed_plan__option_would_fix_it__is_planned_again_with_it(wizard: Wizard) -> None:
    begin_drain(wizard, stored(**LAST_IN_RACK)).limits()
    wizard.plans()
    page = Page(wizard.sees("plan"))
    assert page.first("#fix-form [name=option]").get("value") == "accept_fewer_racks"
    assert [button.get("form") for button in page.find(PRIMARY)] == ["fix-form"]
    answer = wizard.sends("plan/with", {"option": "accept_fewer_racks"})
    assert answer["location"] == wizard.url("plan")
    change = wizard.change
    assert change.input["accept_fewer_racks"] is True
    assert change.job is not None
    attempt_job(change.job.pk)
    assert wizard.change.artifact_id is not None


def test_option__that_fixes_nothing__is_not_turned_on(wizard: Wizard) -> None:
    begin_drain(wizard, stored(**LAST_IN_RACK)).limits()
    wizard.plans()
    before = wizard.change.input
    for option in ("brokers", "rebalance", "change_rf", ""):
        assert wizard.sends("plan/with", {"option": option}).status_code == 302
    assert wizard.change.input == before


def test_failed_explicit_plan__of_other_factors__allows_them_by_a_click(wizard: Wizard, demo: Cluster) -> None:
    plan_unchecked(wizard, demo, kafka_json(("orders", 0, [1, 2])))
    assert Page(wizard.sees("plan")).first("#fix-form [name=option]").get("value") == "change_rf"
    wizard.sends("plan/with", {"option": "change_rf"})
    assert wizard.plans().artifact_id is not None


def test_empty_plan__has_no_review_and_leads_no_further(wizard: Wizard) -> None:
    begin_drain(wizard, stored(topics={"orders": [[1, 2]]}, racks={1: "a", 2: "b", 3: "a"})).limits()
    wizard.plans()
    page = Page(wizard.sees("plan"))
    assert page.has("plan")
    assert not any(page.has(part) for part in ("duration", "watch", "racks", "brokers", "diff"))
    assert wizard.url("why") not in page.links("body")
    assert wizard.client.get(wizard.url("why"))["location"] == wizard.url("plan")


# -- the list of topics -----------------------------------------------------------------------------------------------


def sizes(number: int, *internal: str) -> dict[str, TopicSize]:
    names = [*(f"topic-{n:05}" for n in range(number)), *internal]
    return {name: TopicSize(name, 3, None, internal=name in internal) for name in names}


def test_topic_list__of_ten_thousand__is_one_page_with_the_rest_held() -> None:
    ticked = [f"topic-{n:05}" for n in range(0, 10_000, 2)]
    picker = build_picker(sizes(10_000), ticked, page="3")
    assert (len(picker.rows), picker.page.number, picker.matching) == (PICKER_PAGE, 3, 10_000)
    assert (picker.state, picker.chosen, len(picker.held)) == ("mixed", 5_000, 5_000 - PICKER_PAGE // 2)
    assert picker.elsewhere == len(picker.held)


@pytest.mark.parametrize(
    ("ticked", "act", "search", "state", "after"),
    [
        ([], "", "", "false", 0),
        (["topic-00001"], "", "", "mixed", 1),
        (["topic-00001"], "", "00002", "false", 1),
        ([], TICK_ALL, "0000", "true", 10),
        ([], TICK_ALL, "TOPIC-0001", "true", 10),
        (["topic-00001", "topic-00015"], TICK_NONE, "00015", "false", 1),
        (["gone"], "", "", "false", 1),
    ],
)
def test_topic_list__box_above_it__tells_and_ticks_what_matches(
    ticked: list[str], act: str, search: str, state: str, after: int
) -> None:
    picker = build_picker(sizes(20), ticked, act=act, search=search)
    assert (picker.state, len(picker.ticked)) == (state, after)
    assert set(picker.unknown) == set(ticked) - sizes(20).keys()


def test_topic_list__internal_topics__are_ticked_one_by_one() -> None:
    topics = sizes(2, "__consumer_offsets")
    assert "__consumer_offsets" in build_picker(topics, [], act=TICK_ALL).ticked
    picker = build_picker(topics, [], act=TICK_ALL, internal=False)
    assert (picker.state, picker.tickable, len(picker.ticked)) == ("true", 2, 2)
    assert "__consumer_offsets" in build_picker(topics, ["__consumer_offsets"], internal=False).ticked


def test_topic_list__searched__keeps_what_is_entered_and_saves_nothing(wizard: Wizard, demo: Cluster) -> None:
    before = wizard.begins(demo, "drain").change
    sent = {"topics_act": SEARCH, "topic_q": "ord", "pick": ["clicks"], "brokers": ["3"], "pattern": "x"}
    answer = wizard.sends("what", sent)
    page = Page(answer.content.decode())
    assert answer.status_code == 200
    assert [box.get("value") for box in page.find("#topic-picker [name=pick]")] == ["orders"]
    assert page.first("#topic-picker [name=held]").get("value") == "clicks"
    assert [box.get("value") for box in page.find("#choice-3 [name=brokers]") if box.has("checked")] == ["3"]
    assert page.first("#id_pattern").get("value") == "x"
    assert not page.has("wrong")
    assert wizard.change.version == before.version


def test_topic_list__asked_for_by_htmx__is_the_list_alone(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "balance")
    sent = {"version": "1", "topics_act": TICK_ALL, "topic_q": "cl"}
    html = wizard.client.post(wizard.url("what"), sent, headers={"HX-Request": "true"}).content.decode()
    page = Page(html)
    assert html.lstrip().startswith('<div class="topic-picker"')
    assert [box.get("value") for box in page.find("[name=pick]") if box.has("checked")] == ["clicks"]
    assert page.first("#topics-all").get("aria-checked") == "true"


def test_topics__ticked_here_held_and_typed__are_all_planned(wizard: Wizard) -> None:
    cluster = stored(topics=WITH_INTERNAL)
    wizard.begins(cluster, "balance")
    sent = {"pick": ["orders"], "held": "clicks", "topics": "__consumer_offsets", "leaders": "on", "eps": "5"}
    assert wizard.sends("what", sent).status_code == 302
    assert wizard.change.input["topics"] == ["__consumer_offsets", "clicks", "orders"]
    page = Page(wizard.sees("what"))
    assert {box.get("value") for box in page.find("[name=pick]") if box.has("checked")} == set(WITH_INTERNAL)
    assert page.first("#id_topics").text == ""
    assert "3 topics" in page.words("topic-count")


def test_topic__chosen_and_deleted_since__stands_in_the_field(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "balance").sends("what", {"pick": ["orders"], "leaders": "on", "eps": "5"})
    TopicState.objects.filter(cluster=demo, name="orders").delete()
    assert Page(wizard.sees("what")).first("#id_topics").text.strip() == "orders"


@pytest.mark.parametrize(
    ("sent", "moved"),
    [
        ({}, {"orders", "clicks"}),
        ({"pattern": ".*"}, {"orders", "clicks"}),
        ({"pick": ["__consumer_offsets"]}, {"__consumer_offsets"}),
        ({"internal": "on"}, set(WITH_INTERNAL)),
    ],
)
def test_replication_factor__of_internal_topics__changes_only_on_request(
    wizard: Wizard, sent: dict[str, Any], moved: set[str]
) -> None:
    cluster = stored(topics=WITH_INTERNAL)
    assert wizard.begins(cluster, SET_RF).sends("what", {"factor": "4", **sent}).status_code == 302
    wizard.limits()
    change = wizard.plans()
    assert change.artifact_id is not None
    assert {row.topic for row in plan_rows(change.artifact_id)} == moved


def test_count_of_topics__for_a_factor__leaves_internal_ones_out(wizard: Wizard) -> None:
    wizard.begins(stored(topics=WITH_INTERNAL), SET_RF)
    assert "2 of 3 topics" in Page(wizard.sees("what")).words("topic-count")
    answer = wizard.sends("what/topics", {"pattern": ".*"})
    assert "2 of 3 topics" in Page(answer.content.decode()).words("topic-count")


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in OF_BROKERS])
def test_mode__that_was_chosen__is_named_once_in_the_headings(wizard: Wizard, demo: Cluster, mode: str) -> None:
    page = Page(wizard.begins(demo, mode).sees("what"))
    [title] = page.texts("h1")
    assert title not in page.texts("h2")


# -- the throttle -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "inbound", "bounds"),
    [
        (FIRST_RATE, None, (10 * MB, 100 * MB)),
        (3 * MB, None, (MB, 6 * MB)),
        (MB // 2, None, (MB // 2, MB)),
        (50 * MB, 20_000_000.0, (25 * MB, 100 * MB)),
        (50 * MB, 80_000_000.0, (50 * MB, 100 * MB)),
    ],
)
def test_bounds_of_a_throttle__not_entered__follow_it(
    rate: int, inbound: float | None, bounds: tuple[int, int]
) -> None:
    assert bounds_of(rate, inbound) == bounds


def test_suggested_throttle__is_twice_what_producers_write() -> None:
    assert [suggest_rate(inbound) for inbound in (0.0, 20e6, 31e6)] == [FIRST_RATE, FIRST_RATE, 65 * MB]
    assert [rate_above(inbound) for inbound in (0.0, 10e6)] == [MB, 13 * MB]


def test_throttle__entered_alone__has_bounds_that_stay_empty(wizard: Wizard, demo: Cluster) -> None:
    assert not Page(begin_drain(wizard, demo).sees("limits")).first("#advanced").has("open")
    answer = wizard.limits(throttle="200", throttle_min="", throttle_max="")
    assert answer.status_code == 302
    options = options_of(wizard.change.options)
    assert options is not None
    assert (options.throttle, options.throttle_min, options.throttle_max) == (200 * MB, 40 * MB, 400 * MB)
    page = Page(wizard.sees("limits"))
    assert [page.first(f"#id_throttle{bound}").get("value") for bound in ("_min", "_max")] == ["", ""]
    assert not page.first("#advanced").has("open")


def test_advanced_limits__that_were_set_or_are_wrong__are_open(wizard: Wizard, demo: Cluster) -> None:
    begin_drain(wizard, demo)
    wrong = wizard.limits(throttle_min="", throttle_max="", per_cluster="many")
    assert Page(wrong.content.decode()).first("#advanced").has("open")
    wizard.limits()
    assert Page(wizard.sees("limits")).first("#advanced").has("open")


def test_suggested_throttle__produce_rate_is_known__is_taken_by_a_click(wizard: Wizard, demo: Cluster) -> None:
    begin_drain(wizard, demo).limits()
    assert not Page(wizard.sees("limits")).find("[name=use]")
    wizard.plans()
    report = PlanReport.objects.get(request=wizard.number)
    report.impact["inbound_bytes_per_s"] = 31_000_000.0
    report.save()
    before = wizard.change.options
    assert Page(wizard.sees("limits")).first("[name=use]").get("value") == "65"
    page = Page(wizard.sends("limits", {**LIMITS, "use": "65"}).content.decode())
    assert page.first("#id_throttle").get("value") == "65"
    assert wizard.change.options == before, "nothing is saved before the person continues"
    assert not page.has("wrong")


# -- drafts that nobody touched ---------------------------------------------------------------------------------------


def listed(wizard: Wizard) -> bool:
    return Page(wizard.client.get("/changes/?show=all").content.decode()).has(f"change-{wizard.number}")


def test_draft__only_begun__is_in_no_list_and_shows_no_number(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain")
    assert not listed(wizard)
    assert f"#{wizard.number}" not in Page(wizard.sees("what")).texts("h1")[0]
    wizard.drains(3)
    assert listed(wizard)
    assert f"#{wizard.number}" in Page(wizard.sees("limits")).texts("h1")[0]


def test_draft__copied_from_another__is_listed(wizard: Wizard, operator: User, demo: Cluster) -> None:
    change = plan_explicit(wizard, demo, kafka_json(("orders", 0, [6, 1, 2])))
    wizard.number = services.copy(change, operator).pk
    assert listed(wizard)


def test_untouched_draft__after_a_day__is_deleted_with_an_event(wizard: Wizard, operator: User, demo: Cluster) -> None:
    numbers = [wizard.begins(demo, "drain").number for _ in range(4)]
    fresh, commented, edited, old = numbers
    services.comment(ChangeRequest.objects.get(pk=commented), operator, "Wait.")
    wizard.number = edited
    wizard.drains(3)
    past = timezone.now() - KEEP_UNTOUCHED - timedelta(minutes=1)
    ChangeRequest.objects.exclude(pk=fresh).update(created_at=past)
    assert delete_untouched() == 1
    assert set(ChangeRequest.objects.values_list("pk", flat=True)) == {fresh, commented, edited}
    event = AuditEvent.objects.get(action="change.deleted")
    assert event.object_id == str(old)
