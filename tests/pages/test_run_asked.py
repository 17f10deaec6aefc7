"""What people ask of a run on its page: done by whoever may, else said on the page with what was typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from django.http import HttpResponse
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.domain.executor_state import State as RowState
from kafkadash.reassign.models import Deed, Execution, Move, Order
from tests.factories import watched
from tests.pages.conftest import Page
from tests.reassign.runs import MB, requested, running

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
    [("0", "With a throttle of 0"), ("-5", "above 0"), ("fast", "is not a number"), ("500", "needs a new approval")],
)
def test_a_bad_rate_is_refused_and_stays_in_its_field(
    rate: str, says: str, run: Execution, operator: User, send: Send
) -> None:
    page = page_of(send(operator, "throttle", rate=rate, reason="Because."))
    assert says in page.words("refused")
    assert says in page.words("rate-error")
    assert not page.has("throttle-reason-error"), "the reason is a good one"
    assert f'value="{rate}"' in page.part("rate-kept")
    assert 'value="Because."' in page.part("throttle-reason-kept")
    assert f"key=run:{run.request_id}" in page.html, "the page is as live as before"
    assert f'data-address="/changes/{run.request_id}/run/"' in page.html
    run.refresh_from_db()
    assert run.throttle == 60 * MB


def test_a_reason_that_is_missing_is_said_at_its_field(operator: User, send: Send) -> None:
    page = page_of(send(operator, "throttle", rate="70", reason=" "))
    assert "Say why" in page.words("throttle-reason-error")
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
    assert "olga set the throttle to 70 MB/s" in page.words("refused")


def test_moves_at_once(run: Execution, operator: User, send: Send) -> None:
    assert send(operator, "parallel", per_broker="2", per_cluster="10", reason="Gently.").status_code == 302
    run.refresh_from_db()
    assert (run.per_broker, run.per_cluster) == (2, 10)
    page = page_of(send(operator, "parallel", per_broker="many", per_cluster="10", reason="More."))
    assert "Give a whole number of moves per broker" in page.words("per-broker-error")
    assert 'value="many"' in page.part("parallel")
    assert " open" in page.start_tag("parallel")


@pytest.mark.parametrize("deed", ["set_throttle", "leave_throttle"])
def test_a_throttle_of_others_is_answered(deed: str, run: Execution, operator: User, send: Send) -> None:
    entity = f"broker 4 {KEY}"
    assert send(operator, "foreign", entity=entity, deed=deed, reason="Asked them.").status_code == 302
    assert Order.objects.get(execution=run).deed == deed
    page = page_of(send(operator, "foreign", entity="broker 9 x", deed=deed, reason="Asked them."))
    assert "no throttle of others on broker 9 x" in page.words("refused")


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
        assert "Cancel this row" in page.words("deeds")
        for _ in range(2):
            assert send(operator, "row", **self.fields(move, deed="cancel_row", reason="Wrong.")).status_code == 302
        order = Order.objects.get(execution=run)
        assert (order.deed, order.topic, order.partition, order.reason) == (Deed.CANCEL_ROW, "events", 0, "Wrong.")
        said = Page(client_of(operator).get(f"/changes/{run.request_id}/run/").content.decode())
        assert "olga asked: cancel this row, events-0. The next step does it." in said.text

    def test_without_a_reason_it_is_refused_on_its_page(self, move: Move, operator: User, send: Send) -> None:
        page = page_of(send(operator, "row", **self.fields(move, deed="cancel_row", reason="")))
        assert "Say why" in page.words("refused")
        assert not Order.objects.exists()

    def test_what_does_not_ask_is_not_answered(self, move: Move, operator: User, send: Send) -> None:
        page = page_of(send(operator, "row", **self.fields(move, deed="again", reason="Go.")))
        assert "does not ask for anything now" in page.words("refused")

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
            assert "this needs the role operator" in page.words("refused")
        row = {"topic": "events", "partition": "0", "deed": "cancel_row", "reason": "Why not."}
        assert send(user, "row", **row).status_code == 403
    assert not Order.objects.exists()


def test_on_a_read_only_cluster_a_row_may_only_be_ended(run: Execution, operator: User, send: Send) -> None:
    Cluster.objects.update(read_only=True)
    assert send(operator, "throttle", rate="70", reason="More.").status_code == 403
    row = {"topic": "events", "partition": "0", "reason": "Stop."}
    assert send(operator, "row", **row, deed="elect").status_code == 403
    assert send(operator, "row", **row, deed="cancel_row").status_code == 302
