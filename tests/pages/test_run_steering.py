"""What people ask of a run on its page: done by whoever may, else said on the page with what was typed.

A row that does not get on is planned anew: which brokers would take it, and the draft that proposes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

import pytest
from django.http import HttpResponse
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import message_text
from kafkadash.execution.engine.reasons import DestinationAway
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution, Move, Order, OrderType
from kafkadash.monitoring.models import BrokerState
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.models import Upload
from kafkadash.planning.proposal import EXPLICIT, content_of, options_of
from tests.execution.stored_runs import MB, OPTIONS, figures, progressed, requested, running, stuck
from tests.factories import NOW, watched
from tests.pages.conftest import Page
from tests.planning.stored import stored

Send = Callable[..., HttpResponse]
KEY = "leader.replication.throttled.rate"


@pytest.fixture
def run(operator: User) -> Execution:
    other = {"resource": "broker", "name": "4", "key": KEY, "value": "10", "ours": "60000000", "at": None}
    return running(requested(watched("demo"), operator), {RowState.MOVING: 1, RowState.PENDING: 3}, foreign=[other])


@pytest.fixture
def change(run: Execution) -> ChangeRequest:
    return run.request


@pytest.fixture
def send(change: ChangeRequest, client_of: Callable[[User], Client]) -> Send:
    def post(user: User, what: str, **fields: str) -> HttpResponse:
        return client_of(user).post(f"/changes/{change.pk}/run/{what}/", fields)  # type: ignore[return-value]

    return post


def page_of(answer: HttpResponse, status: int = 409) -> Page:
    assert answer.status_code == status
    return Page(answer.content.decode())


def test_another_throttle_is_in_force_and_in_the_audit(run: Execution, operator: User, send: Send) -> None:
    answer = send(operator, "throttle", rate="70", reason="Quiet night.", seen=str(60 * MB))
    assert (answer.status_code, answer["location"]) == (302, f"/changes/{run.request_id}/run/")
    run.refresh_from_db()
    assert run.throttle == 70 * MB
    assert AuditEvent.objects.get(action="change.throttle_changed").reason == "Quiet night."


@pytest.mark.parametrize(
    ("rate", "says"),
    [("0", "A throttle of 0"), ("-5", "above 0"), ("fast", "is not a number"), ("500", "needs a new approval")],
)
def test_a_bad_rate_is_refused_and_stays_in_its_field(
    rate: str, says: str, run: Execution, operator: User, send: Send
) -> None:
    page = page_of(send(operator, "throttle", rate=rate, reason="Because."))
    assert says in page.words("refused")
    assert says in page.words("rate-error")
    assert not page.has("throttle-reason-error")  # the reason is a good one
    assert f'value="{rate}"' in page.part("rate-kept")
    assert 'value="Because."' in page.part("throttle-reason-kept")
    assert f"key=run:{run.request_id}" in page.html  # the page is as live as before
    assert f'data-address="/changes/{run.request_id}/run/"' in page.html
    run.refresh_from_db()
    assert run.throttle == 60 * MB


def test_a_reason_that_is_missing_is_said_at_its_field(operator: User, send: Send) -> None:
    page = page_of(send(operator, "throttle", rate="70", reason=" "))
    assert page.tells(ReassignmentErrorCode.ORDER_REASON, "#throttle-reason-error")
    assert " autofocus" in page.part("throttle-reason-kept")
    assert not page.has("rate-error")


def test_a_lower_throttle_needs_no_reason(run: Execution, operator: User, send: Send) -> None:
    assert send(operator, "throttle", rate="50", reason=" ", force="yes").status_code == 302
    run.refresh_from_db()
    assert run.throttle == 50 * MB
    assert AuditEvent.objects.get(action="change.throttle_changed").reason == ""


def test_a_question_is_asked_and_answered_in_the_form(run: Execution, operator: User, send: Send) -> None:
    page = page_of(send(operator, "throttle", rate="20", reason="Slower."))
    form = page.part("throttle-form")
    assert 'type="checkbox" name="force" value="yes"' in form
    assert 'value="20"' in form
    assert "rate-error" not in form
    assert send(operator, "throttle", rate="20", reason="Slower.", force="yes").status_code == 302
    run.refresh_from_db()
    assert run.throttle == 20 * MB


def test_somebody_who_was_faster_is_named(run: Execution, operator: User, send: Send) -> None:
    assert send(operator, "throttle", rate="70", reason="First.", seen=str(60 * MB)).status_code == 302
    page = page_of(send(operator, "throttle", rate="65", reason="Second.", seen=str(60 * MB)))
    assert page.tells(ReassignmentErrorCode.RATE_CHANGED_BY, "#refused")
    assert "olga" in page.words("refused")
    assert page.figures("#refused")[0] == "70 MB/s"


def test_moves_at_once(run: Execution, operator: User, send: Send) -> None:
    assert send(operator, "parallel", per_broker="2", per_cluster="10", reason="Gently.").status_code == 302
    run.refresh_from_db()
    assert (run.per_broker, run.per_cluster) == (2, 10)
    page = page_of(send(operator, "parallel", per_broker="many", per_cluster="10", reason="More."))
    assert page.tells(ReassignmentErrorCode.MOVES_NO_NUMBER, "#per-broker-error")
    assert 'value="many"' in page.part("parallel")
    assert " open" in page.start_tag("parallel")


@pytest.mark.parametrize("deed", ["set_throttle", "leave_throttle"])
def test_a_throttle_of_others_is_answered(deed: str, run: Execution, operator: User, send: Send) -> None:
    entity = f"broker 4 {KEY}"
    assert send(operator, "foreign", entity=entity, order_type=deed, reason="Asked them.").status_code == 302
    assert Order.objects.get(execution=run).order_type == deed
    page = page_of(send(operator, "foreign", entity="broker 9 x", order_type=deed, reason="Asked them."))
    assert page.refusal == ReassignmentErrorCode.NO_FOREIGN_THROTTLE
    assert "broker 9 x" in page.words("refused")


class TestRow:
    @pytest.fixture
    def move(self, run: Execution) -> Move:
        return Move.objects.get(execution=run, state=RowState.MOVING)

    def fields(self, move: Move, **more: str) -> Mapping[str, str]:
        return {"topic": move.topic, "partition": str(move.partition), **more}

    def test_it_is_cancelled_once_however_often_it_is_asked(
        self, run: Execution, move: Move, operator: User, send: Send, client_of: Callable[[User], Client]
    ) -> None:
        page = Page(client_of(operator).get(f"/changes/{run.request_id}/run/row/?move={move.pk}").content.decode())
        assert page.title == "events-0: copying"
        assert "Cancel move" in page.words("deeds")
        for _ in range(2):
            assert (
                send(operator, "row", **self.fields(move, order_type="cancel_row", reason="Wrong.")).status_code == 302
            )
        order = Order.objects.get(execution=run)
        assert (order.order_type, order.topic, order.partition, order.reason) == (
            OrderType.CANCEL_ROW,
            "events",
            0,
            "Wrong.",
        )
        said = Page(client_of(operator).get(f"/changes/{run.request_id}/run/").content.decode())
        [asked] = [notice for notice in said.texts(".run-notices .notice") if "olga" in notice]
        assert "events-0" in asked

    def test_without_a_reason_it_is_refused_on_its_page(self, move: Move, operator: User, send: Send) -> None:
        page = page_of(send(operator, "row", **self.fields(move, order_type="cancel_row", reason="")))
        assert page.tells(ReassignmentErrorCode.ORDER_REASON, "#refused")
        assert not Order.objects.exists()

    def test_what_does_not_ask_is_not_answered(self, move: Move, operator: User, send: Send) -> None:
        page = page_of(send(operator, "row", **self.fields(move, order_type="again", reason="Go.")))
        assert page.refusal == ReassignmentErrorCode.ROW_DOES_NOT_ASK

    @pytest.mark.parametrize(
        "named", ["topic=nothing&partition=0", "topic=events&partition=x", "move=x", "move=99999999999999", ""]
    )
    def test_what_is_no_row_is_not_found(
        self, named: str, run: Execution, viewer: User, client_of: Callable[[User], Client]
    ) -> None:
        assert client_of(viewer).get(f"/changes/{run.request_id}/run/row/?{named}").status_code == 404


def test_nobody_else_may(run: Execution, viewer: User, approver: User, send: Send) -> None:
    for user in (viewer, approver):
        for what in ("throttle", "parallel", "foreign"):
            page = page_of(send(user, what, rate="70", reason="Why not."), 403)
            assert page.refusal == ClusterErrorCode.NEEDS_ROLE
            assert "operator" in page.words("refused")
        row = {"topic": "events", "partition": "0", "order_type": "cancel_row", "reason": "Why not."}
        assert send(user, "row", **row).status_code == 403
    assert not Order.objects.exists()


def test_on_a_read_only_cluster_a_row_may_only_be_ended(run: Execution, operator: User, send: Send) -> None:
    Cluster.objects.update(read_only=True)
    assert send(operator, "throttle", rate="70", reason="More.").status_code == 403
    row = {"topic": "events", "partition": "0", "reason": "Stop."}
    assert send(operator, "row", **row, order_type="elect").status_code == 403
    assert send(operator, "row", **row, order_type="cancel_row").status_code == 302


Sent = Callable[[User, Move], tuple[int, str, Page]]


@pytest.fixture
def demo(db: None) -> Cluster:
    return stored()


@pytest.fixture
def half_done_run(demo: Cluster, operator: User) -> Execution:
    return running(requested(demo, operator), {RowState.MOVING: 1, RowState.DONE: 1})


@pytest.fixture
def moving(half_done_run: Execution) -> Move:
    """From 3, 2, 1 to 6, 2, 1."""
    return Move.objects.get(execution=half_done_run, state=RowState.MOVING)


@pytest.fixture
def page(client_of: Callable[[User], Client]) -> Callable[[User, Move], Page]:
    def get(user: User, move: Move) -> Page:
        address = f"/changes/{move.execution.request_id}/run/row/?move={move.pk}"
        return Page(client_of(user).get(address).content.decode())

    return get


@pytest.fixture
def replan_row(client_of: Callable[[User], Client]) -> Sent:
    def post(user: User, move: Move) -> tuple[int, str, Page]:
        named = {"topic": move.topic, "partition": str(move.partition)}
        answer = client_of(user).post(f"/changes/{move.execution.request_id}/run/replan/", named)
        return answer.status_code, answer.get("Location", ""), Page(answer.content.decode())

    return post


def away(cluster: Cluster, *brokers: int) -> None:
    BrokerState.objects.filter(cluster=cluster, broker_id__in=brokers).update(gone_at=NOW)


def test_a_stuck_row_leads_to_another_plan(
    half_done_run: Execution, moving: Move, operator: User, client_of: Callable[[User], Client]
) -> None:
    progressed(half_done_run, figures([stuck(moving, DestinationAway(4))]))
    html = client_of(operator).get(f"/changes/{half_done_run.request_id}/run/").content.decode()
    assert re.search(rf'href="row/\?move={moving.pk}#replan"[^>]*>Re-plan move…<', html)


def test_it_proposes_another_broker_in_the_place_of_the_one_that_is_away(
    demo: Cluster, moving: Move, operator: User, page: Callable[[User, Move], Page], replan_row: Sent
) -> None:
    away(demo, 6)
    shown = page(operator, moving)
    assert shown.figures("#replan-how") == ["6", "4"]
    assert list(shown.facts("#replan").values()) == ["4, 2, 1"]

    status, address, _ = replan_row(operator, moving)
    draft = ChangeRequest.objects.get(origin=moving.execution.request_id)
    assert (status, address) == (302, f"/changes/{draft.pk}/draft/what/")
    assert (draft.state, draft.origin_word, draft.author_name) == (ChangeState.DRAFT, "re-plan", operator.username)
    assert str(moving) in draft.title
    assert f"#{moving.execution.request_id}" in draft.title
    assert (draft.input["mode"], options_of(draft.options)) == (EXPLICIT, OPTIONS)
    asked = {"topic": moving.topic, "partition": moving.partition, "replicas": [4, 2, 1]}
    assert json.loads(content_of(Upload.objects.get(request=draft))) == {"version": 1, "partitions": [asked]}
    moving.refresh_from_db()
    assert moving.state == RowState.MOVING  # nothing of the run is cancelled by it
    (event,) = AuditEvent.objects.filter(action="change.row_replanned")
    assert event.after == {"row": str(moving), "draft": draft.pk}

    assert replan_row(operator, moving)[1] == address  # the one that was begun
    assert ChangeRequest.objects.filter(origin_word="re-plan").count() == 1


def test_where_no_broker_is_left_it_says_so_and_begins_nothing(
    demo: Cluster, moving: Move, operator: User, page: Callable[[User, Move], Page], replan_row: Sent
) -> None:
    away(demo, 4, 5, 6)
    none = message_text(ReassignmentErrorCode.NO_OTHER_BROKER, lost="broker 6")
    shown = page(operator, moving)
    assert none in shown.words("replan")
    assert "<button" not in shown.part("replan")
    status, _, answer = replan_row(operator, moving)
    assert (status, answer.refusal) == (409, ReassignmentErrorCode.NO_OTHER_BROKER)
    assert not ChangeRequest.objects.filter(origin_word="re-plan").exists()


def test_what_is_done_is_not_planned_anew(
    half_done_run: Execution, operator: User, page: Callable[[User, Move], Page], replan_row: Sent
) -> None:
    done = Move.objects.get(execution=half_done_run, state=RowState.DONE)
    assert not page(operator, done).has("replan")
    status, _, answer = replan_row(operator, done)
    assert status == 409
    told = message_text(ReassignmentErrorCode.NOTHING_TO_REPLAN, row=done, state=done.get_state_display())
    assert answer.words("refused") == f"{told} nothing-to-replan"


def test_a_viewer_reads_who_may(
    moving: Move, viewer: User, page: Callable[[User, Move], Page], replan_row: Sent
) -> None:
    shown = page(viewer, moving)
    assert "role operator" in shown.words("replan")
    assert "<button" not in shown.part("replan")
    assert replan_row(viewer, moving)[0] == 403


def test_a_row_that_is_not_in_the_run__is_refused(half_done_run: Execution, operator: User, replan_row: Sent) -> None:
    status, _, page = replan_row(operator, Move(execution=half_done_run, topic="events", partition=99))
    assert status == 409
    assert message_text(ReassignmentErrorCode.NO_SUCH_ROW_TO_REPLAN, number=half_done_run.request_id) in page.text
