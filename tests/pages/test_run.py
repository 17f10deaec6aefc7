"""The page of a run, in each state and for everybody who may look at it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import PlainReason, pack_reasons, reason_columns, reason_text
from kafkadash.execution.engine.reasons import (
    BrokerAway,
    ClusterUnreadable,
    NoTraceOfIt,
    RowAboveLimit,
    RunReasonCode,
    UnderMinIsrBrake,
)
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution, Move, ThrottleEntry
from kafkadash.execution.worker.broker_absences import BrokerAbsence, LooksAtBrokers
from kafkadash.monitoring.models import BrokerState, Capabilities
from kafkadash.planning.errors import ReassignmentErrorCode
from tests.execution.stored_runs import MB, figures, progressed, requested, row_now, running
from tests.factories import GB, NOW, TopicFactory, judged, silent
from tests.pages.conftest import Page, figures_of

Look = Callable[..., Page]


@pytest.fixture
def change(demo: Cluster, operator: User) -> ChangeRequest:
    return requested(demo, operator)


@pytest.fixture
def look(client_of: Callable[[User], Client]) -> Look:
    def get(user: User, change: ChangeRequest, query: str = "") -> Page:
        response = client_of(user).get(f"/changes/{change.pk}/run/{query}")
        assert response.status_code == 200
        return Page.read(response)

    return get


def test_it_says_how_far_it_is_and_until_when(change: ChangeRequest, viewer: User, look: Look) -> None:
    running(change, stuck_rows=1)
    page = look(viewer, change)
    assert page.title == f"#{change.pk} Drain broker 3"
    assert page.figures("title")[1:] == ["50.9 %", "1"]
    assert page.figures(f"#run-figures-{change.pk}") == ["50.9 %", "03:35", "1"]
    run = f"#run-{change.pk}"
    assert page.figures(f"{run} .big-figure") == ["50.9 %", "338.9", "665.5 GB", "03:35", "03:32", "03:44"]
    assert page.figures(f"{run} .legend") == ["48", "4", "1", "177"]
    assert page.figures(f"{run} .by-broker dt") == ["6", "278.5", "605.1 GB"]
    facts = page.facts(f"{run} .stat-row")
    assert figures_of(facts["Rate"]) == ["58.6 MB/s"]
    assert figures_of(facts["Limited by"]) == ["6", "58.6", "60 MB/s"]
    assert figures_of(facts["Time left"]) == ["1 h 32 min", "1 h 29 min", "1 h 41 min"]
    assert figures_of(facts["Moves completed"]) == ["48", "230"]
    assert figures_of(facts["Under min-ISR"]) == ["0", "0", "02:03:01"]


@pytest.mark.parametrize(
    ("apis", "guard"), [(None, "unknown"), ({"45": [0, 0]}, "kafkadash"), ({"45": [0, 1]}, "kafka")]
)
def test_it_says_who_guards_the_number_of_replicas(
    change: ChangeRequest, viewer: User, look: Look, apis: dict[str, list[int]] | None, guard: str
) -> None:
    running(change)
    Capabilities.objects.filter(cluster=change.cluster).delete()
    if apis is not None:
        Capabilities.objects.create(cluster=change.cluster, apis=apis, changed_at=datetime.now(UTC))
    assert look(viewer, change).first("#throttle [data-guard]").get("data-guard") == guard


def test_what_is_not_known_is_said_to_be_not_known(change: ChangeRequest, viewer: User, look: Look) -> None:
    TopicFactory.create(cluster=change.cluster, min_isr=None, under_min_isr=None, at_min_isr=None)
    run = running(change)
    nothing: dict[str, Any] = dict.fromkeys(("percent", "moved_bytes", "total_bytes", "rate", "eta_s", "binding"))
    progressed(run, replace(figures(), **nothing, brokers=()))
    page = look(viewer, change)
    run_ = f"#run-{change.pk}"
    assert page.figures(f"{run_} .panel-head") == ["3 s"]
    assert not page.figures(f"{run_} .big-figure")
    shown = page.context["shown"]
    assert (shown.done_at, shown.left_s, shown.between) == (None, None, None)
    facts = page.facts(f"{run_} .stat-row")
    assert not any(figures_of(facts[name]) for name in ("Rate", "Limited by", "Time left"))
    assert len(page.find(f"{run_} .stat-words")) == 4
    assert "0.0 %" not in page.words(f"run-{change.pk}")
    assert not page.find(f"{run_} [role=progressbar]")


def test_before_the_first_step_there_are_no_figures(change: ChangeRequest, viewer: User, look: Look) -> None:
    running(change, progress=b"", progress_at=None, looked_at=None, started_at=NOW - timedelta(minutes=4))
    page = look(viewer, change)
    assert not page.figures(f"#run-{change.pk} .big-figure")
    assert page.tells(ReassignmentErrorCode.NEVER_LOOKED, f"#run-notices-{change.pk}")
    assert not page.figures(f"#run-{change.pk} .panel-head")
    assert page.first("#throttle [data-throttle]").get("data-throttle") == "to-be-set"
    assert page.figures("#throttle [data-throttle]")[0] == "60 MB/s"


def test_no_progress_is_said_instead_of_infinity(change: ChangeRequest, viewer: User, look: Look) -> None:
    run = running(change)
    progressed(run, figures(eta_s=math.inf, eta_low_s=math.inf, eta_high_s=math.inf, rate=0.0))
    page = look(viewer, change)
    assert page.figures(f"#run-figures-{change.pk}") == ["50.9 %"]
    assert not figures_of(page.facts(f"#run-{change.pk} .stat-row")["Time left"])
    assert page.context["shown"].left_s is None
    assert not page.context["shown"].left_unknown
    assert "inf" not in page.text.replace("information", "")


def test_what_is_old_is_said_loudly_and_nothing_of_it_is_green(change: ChangeRequest, viewer: User, look: Look) -> None:
    then = NOW - timedelta(minutes=4, seconds=12)
    run = running(change, looked_at=then, progress_at=then)
    rate = "leader.replication.throttled.rate"
    ThrottleEntry.objects.create(execution=run, resource="broker", name="3", key=rate, value="60000000", state="set")
    silent(change.cluster, then)
    page = look(viewer, change)
    notices = f"#run-notices-{change.pk}"
    assert page.tells(ReassignmentErrorCode.SHOWN_IS_OLD, notices)
    assert page.tells(ReassignmentErrorCode.NOBODY_READS, notices)
    assert page.figures(notices)[:2] == ["4 min 12 s", "2 s"]
    assert page.states(f"{notices} .notice") == ["critical"]
    assert "data-stale" in page.start_tag(f"run-{change.pk}")
    assert "data-stale" in page.start_tag(f"moves-{change.pk}")
    assert 'data-state="ok"' not in page.part(f"run-{change.pk}")
    assert page.context["shown"].done_at is None
    throttle = page.first("#throttle [data-throttle]")
    assert (throttle.get("data-throttle"), throttle.has("data-stale")) == ("set", True)
    assert figures_of(throttle.text)[:2] == ["01:58:52", "60 MB/s"]
    assert f"#{change.pk} Drain broker 3" in page.first("title").text
    assert "%" not in page.first("title").text


class TestNotices:
    def test_of_a_cluster_that_cannot_be_read(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        error = ClusterUnreadable("No broker answered within 8 s.")
        running(change, failures=3, **reason_columns(error, "error"))
        page, notices = look(viewer, change), f"#run-notices-{change.pk}"
        assert page.tells(ReassignmentErrorCode.CLUSTER_UNREAD, notices)
        assert reason_text(error) in page.first(notices).text
        assert page.figures(notices)[0] == "3"

    def test_of_what_holds_it_and_of_min_isr(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        closed, brake = PlainReason(RunReasonCode.WINDOW_CLOSED), UnderMinIsrBrake("orders-1", 1)
        running(change, held=pack_reasons([closed]), **reason_columns(brake, "brake"))
        page, notices = look(viewer, change), f"#run-notices-{change.pk} .notice"
        first, last = page.texts(notices)
        assert first.startswith(reason_text(brake))
        assert reason_text(closed) in last
        assert page.states(notices) == ["critical", "warning"]

    def test_of_a_broker_that_is_down_and_at_its_rows(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        looks = LooksAtBrokers(NOW, NOW, 2.0, frozenset({1, 6}), (BrokerAbsence(6, NOW - timedelta(seconds=35)),))
        run = running(change, absences=pack_dataclass(looks))
        Move.objects.filter(state=RowState.DONE).update(target=[5, 2, 1])
        page = look(viewer, change)
        since = f"{NOW - timedelta(seconds=35):%d %b %H:%M:%S}"
        notices = f"#run-notices-{change.pk}"
        assert page.tells(ReassignmentErrorCode.BROKERS_DOWN, notices)
        assert page.figures(notices) == ["6", since, "182"]
        first = Move.objects.filter(state=RowState.MOVING).order_by("pk")[0]
        assert "Broker 6 is down." in page.words(f"m-{first.pk}")
        done = [f"m-{move.pk}" for move in Move.objects.filter(state=RowState.DONE) if page.has(f"m-{move.pk}")]
        assert done
        assert all("is down" not in page.words(row) for row in done)
        run.looked_at = NOW - timedelta(minutes=5)
        run.save(update_fields=["looked_at"])
        page = look(viewer, change)
        assert page.figures(notices)[2:] == ["6", since, "182"]
        assert "is down" not in page.words(f"moves-{change.pk}")

    def test_of_a_window_that_is_over(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        running(change, held=pack_reasons([PlainReason(RunReasonCode.WINDOW_CLOSED)]))
        ChangeRequest.objects.filter(pk=change.pk).update(not_after=NOW - timedelta(minutes=1))
        page, notices = look(viewer, change), f"#run-notices-{change.pk}"
        assert page.tells(ReassignmentErrorCode.WINDOW_RAN_OUT, notices)
        assert page.figures(notices) == ["177"]
        assert f"/changes/{change.pk}/run/cancel/" in page.links(notices)

    def test_of_a_paused_run_of_which_all_rows_ended(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        running(change)
        ChangeRequest.objects.filter(pk=change.pk).update(state=ChangeState.PAUSED)
        Move.objects.update(state=RowState.DONE)
        page = look(viewer, change)
        assert page.tells(ReassignmentErrorCode.PAUSED_AT_ITS_END, f"#run-notices-{change.pk}")

    def test_of_rows_that_ask(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        running(change)
        Move.objects.filter(state=RowState.MOVING).update(
            state=RowState.UNKNOWN, asks=True, **reason_columns(NoTraceOfIt(3))
        )
        page = look(viewer, change)
        assert page.tells(ReassignmentErrorCode.ROWS_ASK, f"#run-notices-{change.pk}")
        assert page.figures(f"#run-notices-{change.pk}") == ["5"]
        assert "Stuck or awaiting a decision 5" in page.words(f"moves-{change.pk}")
        assert page.words(f"moves-{change.pk}").count("Needs a decision") == 5


def test_while_one_size_is_not_known__the_percent_is_of_the_others_and_says_so(
    change: ChangeRequest, viewer: User, look: Look, client_of: Callable[..., Client]
) -> None:
    unknown: dict[str, Any] = {"percent": None, "total_bytes": None, "moved_bytes": None, "eta_s": None}
    run = running(change)
    progressed(run, figures(**unknown, unsized=1, known_bytes=40 * GB, known_moved=10 * GB))
    page = look(viewer, change)
    assert page.figures(f"#run-{change.pk} .big-figure")[:4] == ["25.0 %", "10.0", "40.0 GB", "1"]
    assert page.figures("title")[1:] == ["25.0 %"]
    assert page.context["shown"].percent is None
    listed = Page(client_of(viewer).get("/changes/?show=running").content.decode())
    assert listed.figures(f"#change-{change.pk} [data-known]") == ["25.0 %"]
    progressed(run, figures(**unknown, unsized=1, known_bytes=0, known_moved=0))
    assert "%" not in look(viewer, change).first("title").text  # nothing is known: no percentage of nothing


class TestQueue:
    @pytest.fixture
    def queued(self, demo: Cluster, operator: User) -> ChangeRequest:
        return requested(demo, operator, ChangeState.QUEUED, title="Drain broker 4")

    def test_it_says_behind_which_change_it_waits(
        self, change: ChangeRequest, queued: ChangeRequest, viewer: User, look: Look
    ) -> None:
        running(change)
        Execution.objects.create(request=queued, cluster=queued.cluster, throttle=60 * MB, per_broker=5, per_cluster=50)
        page = look(viewer, queued)
        notice = f"#run-notices-{queued.pk} .notice"
        assert page.states(notice) == ["maintenance"]
        assert page.links(notice) == [f"/changes/{change.pk}/run/"]
        assert f"#{change.pk} Drain broker 3" in page.first(notice).text
        assert not page.has(f"run-{queued.pk}")
        assert f"#{queued.pk} Drain broker 4" in page.first("title").text

    def test_it_says_why_it_is_blocked(self, queued: ChangeRequest, viewer: User, look: Look) -> None:
        Execution.objects.create(
            request=queued,
            cluster=queued.cluster,
            throttle=60 * MB,
            per_broker=5,
            per_cluster=50,
            **reason_columns(BrokerAway(6), "blocked"),
            blocked_at=NOW - timedelta(minutes=3),
        )
        page = look(viewer, queued)
        notice = f"#run-notices-{queued.pk}"
        assert page.tells(ReassignmentErrorCode.BLOCKED, notice)
        assert reason_text(BrokerAway(6)) in page.first(notice).text
        assert page.figures(notice)[0] == "3 min"
        assert "Blocked" in page.words("change-bar")


def test_without_a_run_there_is_only_the_review(
    demo: Cluster, operator: User, client_of: Callable[..., Client]
) -> None:
    proposed = requested(demo, operator, ChangeState.PROPOSED)
    answer = client_of(operator).get(f"/changes/{proposed.pk}/run/")
    assert (answer.status_code, answer["location"]) == (302, f"/changes/{proposed.pk}/")


def test_its_throttle_is_shown_with_what_is_ours(
    change: ChangeRequest, viewer: User, operator: User, look: Look
) -> None:
    at = "2026-11-21T02:00:00+00:00"
    key = "leader.replication.throttled.rate"
    other = {"resource": "broker", "name": "4", "key": key, "value": "10", "ours": "60000000", "at": at}
    run = running(change, foreign=[other])
    for name in ("3", "4"):
        ThrottleEntry.objects.create(
            execution=run, resource="broker", name=name, key=key, value="60000000", state="set"
        )
    listed = "leader.replication.throttled.replicas"
    pairs = {"0:3": "set", "0:4": "set", "1:3": "cleared", "2:3": "set"}
    ThrottleEntry.objects.create(
        execution=run, resource="topic", name="events", key=listed, pairs=pairs, already=["2:3"], state="set"
    )
    page = look(viewer, change)
    assert page.first("#throttle [data-throttle]").get("data-throttle") == "set"
    assert page.figures("#throttle [data-throttle]") == ["60 MB/s", "60,000,000 B/s"]
    assert page.figures("#throttle .throttle-ours") == ["1", "2", "1"], "as its ledger says"
    assert page.figures("#foreign-1 p") == ["4", "10 B/s", "60 MB/s", "60,000,000 B/s", "02:00:00"]
    assert page.states("#foreign-1 .status-mark") == ["warning"]
    assert "<form" not in page.part("throttle") + page.part("foreign")
    steered = look(operator, change)
    acting = steered.part("throttle") + steered.part("foreign")
    assert 'value="set_throttle">Set kafkadash throttle<' in acting
    assert 'value="leave_throttle">Keep current throttle<' in acting
    assert f'name="entity" value="broker 4 {key}"' in acting
    assert 'name="seen" value="60000000"' in acting


class TestRows:
    def test_those_that_need_somebody_come_first_with_their_cause(
        self, change: ChangeRequest, operator: User, look: Look
    ) -> None:
        running(change, stuck_rows=1)
        page = look(operator, change)
        told = reason_text(RowAboveLimit(4, "out", 10, "events-0", 200_000))
        assert figures_of(" ".join(page.texts(f"#moves-{change.pk} .segments a"))) == ["230", "1", "4", "177", "48"]
        words = page.words(f"moves-{change.pk}")
        first, *_ = page.find(f"#moves-{change.pk} .run-moves tr[data-state=warning]")
        cells = first.texts("td")
        assert (cells[0], cells[1], cells[8], cells[9]) == ("events-0", "3", "no progress", "01:59")
        assert cells[3:8] == ["16.2 %", "4.2 GB", "680.4 MB", "3.5 GB", "0.0 MB/s"]
        assert (figures_of(cells[2]), figures_of(cells[10])) == (["6", "4"], ["25 min"])
        why = page.first(f"#moves-{change.pk} .stuck-cause")
        assert told in why.text
        assert len(why.find("a")) == 2
        assert "In flight, 4" in words
        assert "Show all 177" in words

    def test_there_are_50_of_them_at_most(self, change: ChangeRequest, operator: User, look: Look) -> None:
        running(change, {RowState.MOVING: 120, RowState.PENDING: 40, RowState.DONE: 40}, stuck_rows=70)
        page = look(operator, change)
        table = page.part(f"moves-{change.pk}")
        assert table.count('<tr id="m-') == 50
        assert table.count('class="stuck-cause"') == 5

    @pytest.mark.parametrize(
        ("show", "rows"), [("stuck", 2), ("flight", 3), ("waiting", 100), ("done", 48), ("ended", 1)]
    )
    def test_filters_list_all_of_a_state(
        self, show: str, rows: int, change: ChangeRequest, viewer: User, look: Look
    ) -> None:
        states = {RowState.MOVING: 5, RowState.PENDING: 177, RowState.DONE: 48, RowState.SKIPPED: 1}
        running(change, states, stuck_rows=2)
        page = look(viewer, change, f"?s={show}")
        table = page.part(f"moves-{change.pk}")
        assert table.count('<tr id="m-') == rows
        assert f"/run/moves/?s={show}" in page.start_tag(f"moves-{change.pk}")
        assert f"key=moves:{change.pk}" not in page.start_tag("live")
        if show == "waiting":
            assert look(viewer, change, "?s=waiting&page=2").part(f"moves-{change.pk}").count('<tr id="m-') == 77

    def test_a_reorder_copies_nothing(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        running(change, {RowState.MOVING: 1}, progress=b"")
        Move.objects.update(target=[1, 2, 3])
        cells = look(viewer, change).texts(f"#moves-{change.pk} .run-moves tbody td")
        assert cells[:4] == ["events-0", "3, 2, 1", "1, 2, 3", "nothing to copy"]

    def test_a_row_that_nobody_measured_is_unknown(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        run = running(change, {RowState.MOVING: 2}, progress=b"")
        first = Move.objects.earliest("pk")
        progressed(run, figures([row_now(first, None, rate=None, eta_s=None, source=None)]))
        rows = [row.texts("td") for row in look(viewer, change).find(f"#moves-{change.pk} .run-moves tbody tr")]
        cells = ["unknown", "4.2 GB", "unknown", "unknown", "unknown", "unknown"]
        assert [row[3:9] for row in rows if len(row) > 8] == [cells, cells]


def test_pushed_parts_are_the_same_for_everybody_and_hold_no_form(
    change: ChangeRequest, operator: User, viewer: User, look: Look
) -> None:
    running(change, stuck_rows=1, **reason_columns(UnderMinIsrBrake("orders-1", 1), "brake"))
    for part in ("run", "run-figures", "run-notices", "run-throttle", "moves"):
        html = look(operator, change).part(f"{part}-{change.pk}")
        assert html == look(viewer, change).part(f"{part}-{change.pk}")
        assert not any(word in html for word in ("csrf", "<form", "<button", "<input", "olga"))


def test_an_ended_run_shows_how_it_ended(demo: Cluster, operator: User, viewer: User, look: Look) -> None:
    change = requested(demo, operator, ChangeState.DONE)
    running(
        change,
        {RowState.DONE: 4, RowState.SKIPPED: 1},
        ended_at=NOW - timedelta(hours=1),
        outcome="exceptions",
        progress_at=NOW - timedelta(hours=1),
    )
    page = look(viewer, change)
    assert page.has("report-end")
    assert f"/changes/{change.pk}/report/" in page.html
    assert page.figures(f"#group-{change.pk}-ended") == ["5", "4", "1"]
    assert "data-stale" not in page.part(f"moves-{change.pk}")  # what is over does not age
    assert not page.has(f"run-{change.pk}")
    assert not page.has("throttle")
    assert f"key=run:{change.pk}" not in page.start_tag("live")


def test_figures_too_old_to_tell_give_no_time(change: ChangeRequest, viewer: User, look: Look) -> None:
    then = NOW - timedelta(minutes=10)
    run = running(change, {RowState.MOVING: 1}, looked_at=then, progress_at=then)
    move = Move.objects.get()
    progressed(run, figures([row_now(move, now=then)], then))
    page = look(viewer, change)
    facts = page.facts(f"#run-{change.pk} .stat-row")
    assert not figures_of(facts["Time left"])
    cells = page.texts(f"#m-{move.pk} td")
    assert cells[7:9] == ["19.2 MB/s", "unknown"]


class TestOnTheBoard:
    def test_a_running_change_is_named_with_how_far_it_is_and_how_long_it_takes(
        self, change: ChangeRequest, viewer: User, client_of: Callable[[User], Client]
    ) -> None:
        running(change)
        BrokerState.objects.filter(broker_id=2).update(fenced=True)
        judged(change.cluster)
        board = Page(client_of(viewer).get("/").content.decode())
        running_ = board.first("#status-demo [data-run]")
        assert f"#{change.pk} Drain broker 3" in running_.text
        assert figures_of(running_.text)[-2:] == ["50.9 %", "92 min"]
        assert f'href="/changes/{change.pk}/run/"' in board.html

    def test_of_a_cluster_that_is_well_it_takes_the_place_of_the_moves(
        self, change: ChangeRequest, viewer: User, client_of: Callable[[User], Client]
    ) -> None:
        running(change)
        board = Page(client_of(viewer).get("/").content.decode())
        assert f"#{change.pk} 50.9 %" in board.words("status-demo")

    def test_what_is_old_is_not_told(
        self, change: ChangeRequest, viewer: User, client_of: Callable[[User], Client]
    ) -> None:
        running(change)
        Execution.objects.update(looked_at=NOW - timedelta(minutes=9))
        board = Page(client_of(viewer).get("/").content.decode())
        assert f"#{change.pk} progress unknown" in board.words("status-demo")
