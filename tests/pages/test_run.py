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
from kafkadash.clusters.models import Cluster
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import reason_text
from kafkadash.domain.reasons import pack_reasons, reason_columns
from kafkadash.domain.row_reasons import BrokerAway, NoTraceOfIt
from kafkadash.domain.run_reasons import ClusterUnreadable, RunWindowClosed, UnderMinIsrBrake
from kafkadash.domain.stuck_reasons import RowAboveLimit
from kafkadash.domain.workflow_states import State
from kafkadash.observe.models import BrokerState, Capabilities
from kafkadash.reassign.models import Execution, Move, ThrottleEntry
from kafkadash.reassign.run.broker_absences import BrokerAbsence, LooksAtBrokers
from tests.factories import GB, NOW, TopicFactory, judged, silent, watched
from tests.pages.conftest import Page, text_of
from tests.reassign.runs import MB, figures, progressed, requested, row_now, running

Look = Callable[..., Page]


@pytest.fixture
def demo(db: None) -> Cluster:
    return watched("demo")


@pytest.fixture
def change(demo: Cluster, operator: User) -> ChangeRequest:
    return requested(demo, operator)


@pytest.fixture
def look(client_of: Callable[[User], Client]) -> Look:
    def get(user: User, change: ChangeRequest, query: str = "") -> Page:
        response = client_of(user).get(f"/changes/{change.pk}/run/{query}")
        assert response.status_code == 200
        return Page(response.content.decode())

    return get


def test_it_says_how_far_it_is_and_until_when(change: ChangeRequest, viewer: User, look: Look) -> None:
    running(change, stuck_rows=1)
    page = look(viewer, change)
    assert page.title == f"#{change.pk} Drain broker 3"
    assert f"<title>#{change.pk} Drain broker 3: 50.9 %, 1 stuck · kafkadash</title>" in page.html
    assert page.words(f"run-figures-{change.pk}") == "50.9 % done at ≈ 03:35 1 stuck"
    words = page.words(f"run-{change.pk}")
    assert "50.9 % 338.9 of 665.5 GB copied done at ≈ 03:35 , between 03:32 and 03:44" in words
    assert "48 moves done 4 in flight 1 stuck 177 waiting" in words
    assert "into 6 278.5 of 605.1 GB" in words
    assert "Rate 58.6 MB/s" in words
    assert "Bound by broker 6 inbound, 58.6 of 60 MB/s" in words
    assert "Time left ≈ 1 h 32 min 1 h 29 min to 1 h 41 min" in words
    assert "Moves done 48 of 230" in words
    assert "Under min-ISR 0 partitions at min-ISR 0, as of 02:03:01" in words


@pytest.mark.parametrize(
    ("apis", "words"),
    [
        (None, "Whether Kafka guards the number of replicas is not known; kafkadash reads each partition again"),
        ({"45": [0, 0]}, "The number of replicas is guarded by kafkadash, as this Kafka is older than 4.1"),
        ({"45": [0, 1]}, "Kafka itself refuses a move that would change the number of replicas."),
    ],
)
def test_it_says_who_guards_the_number_of_replicas(
    change: ChangeRequest, viewer: User, look: Look, apis: dict[str, list[int]] | None, words: str
) -> None:
    running(change)
    Capabilities.objects.filter(cluster=change.cluster).delete()
    if apis is not None:
        Capabilities.objects.create(cluster=change.cluster, apis=apis, changed_at=datetime.now(UTC))
    assert words in look(viewer, change).words("throttle")


def test_what_is_not_known_is_said_to_be_not_known(change: ChangeRequest, viewer: User, look: Look) -> None:
    TopicFactory.create(cluster=change.cluster, min_isr=None, under_min_isr=None, at_min_isr=None)
    run = running(change)
    nothing: dict[str, Any] = dict.fromkeys(("percent", "moved_bytes", "total_bytes", "rate", "eta_s", "binding"))
    progressed(run, replace(figures(), **nothing, brokers=()))
    page = look(viewer, change)
    words = page.words(f"run-{change.pk}")
    assert words.startswith("Progress measured by log end offsets of each replica data 3 s old Not known how much")
    assert "when it is done is not known yet" in words
    assert "Rate not known" in words
    assert "Time left not known needs three samples" in words
    assert "Under min-ISR not known" in words
    assert "0.0 %" not in words
    assert "progressbar" not in page.part(f"run-{change.pk}")


def test_before_the_first_step_there_are_no_figures(change: ChangeRequest, viewer: User, look: Look) -> None:
    running(change, progress=b"", progress_at=None, looked_at=None, started_at=NOW - timedelta(minutes=4))
    page = look(viewer, change)
    assert "Not known" in page.words(f"run-{change.pk}")
    assert "The cluster was not read for this run yet." in page.words(f"run-notices-{change.pk}")
    assert "no data yet" in page.words(f"run-{change.pk}")
    assert "To be set: 60 MB/s" in page.words("throttle")


def test_no_progress_is_said_instead_of_infinity(change: ChangeRequest, viewer: User, look: Look) -> None:
    run = running(change)
    progressed(run, figures(eta_s=math.inf, eta_low_s=math.inf, eta_high_s=math.inf, rate=0.0))
    page = look(viewer, change)
    assert page.words(f"run-figures-{change.pk}") == "50.9 % no progress"
    assert "Time left no progress at this rate it never ends" in page.words(f"run-{change.pk}")
    assert "inf" not in page.text.replace("information", "")


def test_what_is_old_is_said_loudly_and_nothing_of_it_is_green(change: ChangeRequest, viewer: User, look: Look) -> None:
    then = NOW - timedelta(minutes=4, seconds=12)
    run = running(change, looked_at=then, progress_at=then)
    rate = "leader.replication.throttled.rate"
    ThrottleEntry.objects.create(execution=run, resource="broker", name="3", key=rate, value="60000000", state="set")
    silent(change.cluster, then)
    page = look(viewer, change)
    notices = page.part(f"run-notices-{change.pk}")
    assert "What is shown is 4 min 12 s old. It should be read every 2 s" in page.words(f"run-notices-{change.pk}")
    assert 'data-state="critical"' in notices
    assert "data-stale" in page.start_tag(f"run-{change.pk}")
    assert "data-stale" in page.start_tag(f"moves-{change.pk}")
    assert 'data-state="ok"' not in page.part(f"run-{change.pk}")
    assert "done at" not in page.text
    assert "In force as of 01:58:52 , not read since: 60 MB/s" in page.words("throttle")
    assert f"Cannot tell how far #{change.pk} Drain broker 3 is" in page.html


class TestNotices:
    def test_of_a_cluster_that_cannot_be_read(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        running(change, failures=3, **reason_columns(ClusterUnreadable("No broker answered within 8 s."), "error"))
        words = look(viewer, change).words(f"run-notices-{change.pk}")
        assert words == (
            "The cluster could not be read, 3 times in a row: No broker answered within 8 s. "
            "Nothing is submitted until it answers."
        )

    def test_of_what_holds_it_and_of_min_isr(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        closed, brake = RunWindowClosed(), UnderMinIsrBrake("orders-1", 1)
        running(change, held=pack_reasons([closed]), **reason_columns(brake, "brake"))
        words = look(viewer, change).words(f"run-notices-{change.pk}")
        assert words.startswith(reason_text(brake))
        assert words.endswith(f"{reason_text(closed)} Nothing more is submitted.")

    def test_of_a_broker_that_is_down_and_at_its_rows(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        looks = LooksAtBrokers(NOW, NOW, 2.0, frozenset({1, 6}), (BrokerAbsence(6, NOW - timedelta(seconds=35)),))
        run = running(change, absences=looks.as_json())
        Move.objects.filter(state=RowState.DONE).update(target=[5, 2, 1])
        page = look(viewer, change)
        since = f"{NOW - timedelta(seconds=35):%d %b %H:%M:%S} UTC"
        assert (
            f"Broker 6 is down (since {since}). 182 moves that did not end yet have a replica there. "
            "A copy to a broker that is down goes on when it is back." in page.words(f"run-notices-{change.pk}")
        )
        first = Move.objects.filter(state=RowState.MOVING).order_by("pk")[0]
        assert "Broker 6 is down." in page.words(f"m-{first.pk}")
        done = [f"m-{move.pk}" for move in Move.objects.filter(state=RowState.DONE) if page.has(f"m-{move.pk}")]
        assert done
        assert all("is down" not in page.words(row) for row in done)
        run.looked_at = NOW - timedelta(minutes=5)
        run.save(update_fields=["looked_at"])
        page = look(viewer, change)
        assert f"Broker 6 was down (since {since})." in page.words(f"run-notices-{change.pk}")
        assert "is down" not in page.words(f"moves-{change.pk}")

    def test_of_a_window_that_is_over(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        running(change, held=pack_reasons([RunWindowClosed()]))
        ChangeRequest.objects.filter(pk=change.pk).update(not_after=NOW - timedelta(minutes=1))
        page = look(viewer, change)
        assert "did not begin. They never will. Cancel the run to end it" in page.words(f"run-notices-{change.pk}")

    def test_of_a_paused_run_of_which_all_rows_ended(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        running(change)
        ChangeRequest.objects.filter(pk=change.pk).update(state=State.PAUSED)
        Move.objects.update(state=RowState.DONE)
        page = look(viewer, change)
        assert "every move has ended. Resume it: it is verified and ends." in page.words(f"run-notices-{change.pk}")

    def test_of_rows_that_ask(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        running(change)
        Move.objects.filter(state=RowState.MOVING).update(
            state=RowState.UNKNOWN, asks=True, **reason_columns(NoTraceOfIt(3))
        )
        page = look(viewer, change)
        assert "5 moves ask for an answer." in page.words(f"run-notices-{change.pk}")
        assert "Stuck or asking 5" in page.words(f"moves-{change.pk}")
        assert page.words(f"moves-{change.pk}").count("Needs an answer") == 5


def test_while_one_size_is_not_known__the_percent_is_of_the_others_and_says_so(
    change: ChangeRequest, viewer: User, look: Look, client_of: Callable[..., Client]
) -> None:
    unknown: dict[str, Any] = {"percent": None, "total_bytes": None, "moved_bytes": None, "eta_s": None}
    run = running(change)
    progressed(run, figures(**unknown, unsized=1, known_bytes=40 * GB, known_moved=10 * GB))
    page = look(viewer, change)
    assert "25.0 % 10.0 of 40.0 GB copied, without 1 partition of unknown size" in page.words(f"run-{change.pk}")
    assert f"#{change.pk} Drain broker 3: 25.0 % of what is known" in page.html
    listed = client_of(viewer).get("/changes/?show=running").content.decode()
    assert "25.0 % of what is known" in text_of(listed)
    progressed(run, figures(**unknown, unsized=1, known_bytes=0, known_moved=0))
    assert "progress not known" in look(viewer, change).html, "nothing is known: no percentage of nothing"


class TestQueue:
    @pytest.fixture
    def queued(self, demo: Cluster, operator: User) -> ChangeRequest:
        return requested(demo, operator, State.QUEUED, title="Drain broker 4")

    def test_it_says_behind_which_change_it_waits(
        self, change: ChangeRequest, queued: ChangeRequest, viewer: User, look: Look
    ) -> None:
        running(change)
        Execution.objects.create(request=queued, cluster=queued.cluster, throttle=60 * MB, per_broker=5, per_cluster=50)
        page = look(viewer, queued)
        assert page.words(f"run-notices-{queued.pk}") == (
            f"It waits behind #{change.pk} Drain broker 3. One reassignment runs at a time on demo. See #{change.pk}"
        )
        assert not page.has(f"run-{queued.pk}")
        assert f"#{queued.pk} Drain broker 4 waits for its turn" in page.html

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
        assert f"Blocked since 3 min: {reason_text(BrokerAway(6))}" in page.words(f"run-notices-{queued.pk}")
        assert "Blocked" in page.words("change-bar")


def test_without_a_run_there_is_only_the_review(
    demo: Cluster, operator: User, client_of: Callable[..., Client]
) -> None:
    proposed = requested(demo, operator, State.PROPOSED)
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
    words = page.words("throttle")
    assert "In force: 60 MB/s (60,000,000 B/s) per broker, in and out." in words
    assert "Ours: 1 rate, 2 entries. Not ours: 1." in words, "as its ledger says"
    assert (
        "The leader rate of broker 4 is 10 B/s , and that is not ours: we set 60 MB/s (60,000,000 B/s). "
        "Found 02:00:00 ."
    ) in page.words("foreign")
    assert "<form" not in page.part("throttle") + page.part("foreign")
    steered = look(operator, change)
    acting = steered.part("throttle") + steered.part("foreign")
    assert 'value="set_throttle">Set ours again<' in acting
    assert 'value="leave_throttle">Leave theirs<' in acting
    assert f'name="entity" value="broker 4 {key}"' in acting
    assert 'name="seen" value="60000000"' in acting


class TestRows:
    def test_those_that_need_somebody_come_first_with_their_cause(
        self, change: ChangeRequest, operator: User, look: Look
    ) -> None:
        running(change, stuck_rows=1)
        page = look(operator, change)
        words = page.words(f"moves-{change.pk}")
        told = reason_text(RowAboveLimit(4, "out", 10, "events-0", 200_000))
        assert "All 230 Stuck 1 In flight 4 Waiting 177 Done 48" in words
        assert (
            "events-0 3 copies from 4 6 16.2 % 4.2 GB 680.4 MB 3.5 GB 0.0 MB/s no progress 01:59 Stuck 25 min "
            f"The throttle is below what the partition receives. {told} Raise the throttle Cancel row…"
        ) in words
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
        assert "events-0 3, 2, 1 1, 2, 3 nothing to copy" in look(viewer, change).words(f"moves-{change.pk}")

    def test_a_row_that_nobody_measured_is_unknown(self, change: ChangeRequest, viewer: User, look: Look) -> None:
        run = running(change, {RowState.MOVING: 2}, progress=b"")
        first = Move.objects.earliest("pk")
        progressed(run, figures([row_now(first, None, rate=None, eta_s=None, source=None)]))
        words = look(viewer, change).words(f"moves-{change.pk}")
        assert words.count("unknown 4.2 GB unknown unknown unknown not known") == 2


def test_pushed_parts_are_the_same_for_everybody_and_hold_no_form(
    change: ChangeRequest, operator: User, viewer: User, look: Look
) -> None:
    running(change, stuck_rows=1, **reason_columns(UnderMinIsrBrake("orders-1", 1), "brake"))
    for part in ("run", "run-figures", "run-notices", "run-throttle", "moves"):
        html = look(operator, change).part(f"{part}-{change.pk}")
        assert html == look(viewer, change).part(f"{part}-{change.pk}")
        assert not any(word in html for word in ("csrf", "<form", "<button", "<input", "olga"))


def test_an_ended_run_shows_how_it_ended(demo: Cluster, operator: User, viewer: User, look: Look) -> None:
    change = requested(demo, operator, State.DONE)
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
    assert "Ended, 5: 4 done, 1 skipped" in page.words(f"moves-{change.pk}")
    assert "data-stale" not in page.part(f"moves-{change.pk}"), "what is over does not age"
    assert not page.has(f"run-{change.pk}")
    assert not page.has("throttle")
    assert f"key=run:{change.pk}" not in page.start_tag("live")


def test_figures_too_old_to_tell_give_no_time(change: ChangeRequest, viewer: User, look: Look) -> None:
    then = NOW - timedelta(minutes=10)
    run = running(change, {RowState.MOVING: 1}, looked_at=then, progress_at=then)
    move = Move.objects.get()
    progressed(run, figures([row_now(move, now=then)], then))
    page = look(viewer, change)
    assert "Time left cannot be told its figures are old" in page.words(f"run-{change.pk}")
    assert "19.2 MB/s not known" in page.words(f"moves-{change.pk}")


class TestOnTheBoard:
    def test_a_running_change_is_named_with_how_far_it_is_and_how_long_it_takes(
        self, change: ChangeRequest, viewer: User, client_of: Callable[[User], Client]
    ) -> None:
        running(change)
        BrokerState.objects.filter(broker_id=2).update(fenced=True)
        judged(change.cluster)
        board = Page(client_of(viewer).get("/").content.decode())
        assert f"#{change.pk} Drain broker 3 50.9 % , about 92 min left" in board.words("status-demo")
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
        assert f"#{change.pk} progress not known" in board.words("status-demo")
