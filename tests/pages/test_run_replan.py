"""A row that does not get on is planned anew: which brokers would take it, and the draft that proposes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import message_text
from kafkadash.domain.stuck_reasons import DestinationAway
from kafkadash.domain.workflow_states import State
from kafkadash.observe.models import BrokerState
from kafkadash.reassign.asked import EXPLICIT, options_of
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Execution, Move, Upload
from kafkadash.reassign.uploads import content_of
from tests.factories import NOW
from tests.pages.conftest import Page
from tests.reassign.runs import OPTIONS, figures, progressed, requested, running, stuck
from tests.reassign.stored import stored

Sent = Callable[[User, Move], tuple[int, str, Page]]


@pytest.fixture
def demo(db: None) -> Cluster:
    return stored()


@pytest.fixture
def run(demo: Cluster, operator: User) -> Execution:
    return running(requested(demo, operator), {RowState.MOVING: 1, RowState.DONE: 1})


@pytest.fixture
def moving(run: Execution) -> Move:
    """From 3, 2, 1 to 6, 2, 1."""
    return Move.objects.get(execution=run, state=RowState.MOVING)


@pytest.fixture
def page(client_of: Callable[[User], Client]) -> Callable[[User, Move], Page]:
    def get(user: User, move: Move) -> Page:
        address = f"/changes/{move.execution.request_id}/run/row/?move={move.pk}"
        return Page(client_of(user).get(address).content.decode())

    return get


@pytest.fixture
def send(client_of: Callable[[User], Client]) -> Sent:
    def post(user: User, move: Move) -> tuple[int, str, Page]:
        named = {"topic": move.topic, "partition": str(move.partition)}
        answer = client_of(user).post(f"/changes/{move.execution.request_id}/run/replan/", named)
        return answer.status_code, answer.get("Location", ""), Page(answer.content.decode())

    return post


def away(cluster: Cluster, *brokers: int) -> None:
    BrokerState.objects.filter(cluster=cluster, broker_id__in=brokers).update(gone_at=NOW)


def test_a_stuck_row_leads_to_another_plan(
    run: Execution, moving: Move, operator: User, client_of: Callable[[User], Client]
) -> None:
    progressed(run, figures([stuck(moving, DestinationAway(4))]))
    html = client_of(operator).get(f"/changes/{run.request_id}/run/").content.decode()
    assert re.search(rf'href="row/\?move={moving.pk}#replan"[^>]*>Re-plan row…<', html)


def test_it_proposes_another_broker_in_the_place_of_the_one_that_is_away(
    demo: Cluster, moving: Move, operator: User, page: Callable[[User, Move], Page], send: Sent
) -> None:
    away(demo, 6)
    words = page(operator, moving).words("replan")
    assert "Broker 4 in the place of broker 6, in a draft of its own that is reviewed." in words
    assert "cancel the row first" in words
    assert "Proposed replicas 4, 2, 1" in words

    status, address, _ = send(operator, moving)
    draft = ChangeRequest.objects.get(origin=moving.execution.request_id)
    assert (status, address) == (302, f"/changes/{draft.pk}/draft/what/")
    assert (draft.state, draft.origin_word, draft.author_name) == (State.DRAFT, "re-plan", operator.username)
    assert draft.title == f"Re-plan {moving} of #{moving.execution.request_id}"
    assert (draft.input["mode"], options_of(draft.options)) == (EXPLICIT, OPTIONS)
    asked = {"topic": moving.topic, "partition": moving.partition, "replicas": [4, 2, 1]}
    assert json.loads(content_of(Upload.objects.get(request=draft))) == {"version": 1, "partitions": [asked]}
    moving.refresh_from_db()
    assert moving.state == RowState.MOVING, "nothing of the run is cancelled by it"
    (event,) = AuditEvent.objects.filter(action="change.row_replanned")
    assert event.after == {"row": str(moving), "draft": draft.pk}

    assert send(operator, moving)[1] == address, "the one that was begun"
    assert ChangeRequest.objects.filter(origin_word="re-plan").count() == 1


def test_where_no_broker_is_left_it_says_so_and_begins_nothing(
    demo: Cluster, moving: Move, operator: User, page: Callable[[User, Move], Page], send: Sent
) -> None:
    away(demo, 4, 5, 6)
    none = message_text(ReassignmentErrorCode.NO_OTHER_BROKER, lost="broker 6")
    shown = page(operator, moving)
    assert none in shown.words("replan")
    assert "<button" not in shown.part("replan")
    status, _, answer = send(operator, moving)
    assert (status, answer.words("refused")) == (409, none)
    assert not ChangeRequest.objects.filter(origin_word="re-plan").exists()


def test_what_is_done_is_not_planned_anew(
    run: Execution, operator: User, page: Callable[[User, Move], Page], send: Sent
) -> None:
    done = Move.objects.get(execution=run, state=RowState.DONE)
    assert not page(operator, done).has("replan")
    status, _, answer = send(operator, done)
    assert status == 409
    told = message_text(ReassignmentErrorCode.NOTHING_TO_REPLAN, row=done, state="done")
    assert answer.words("refused") == f"{told} nothing-to-replan"


def test_a_viewer_reads_who_may(moving: Move, viewer: User, page: Callable[[User, Move], Page], send: Sent) -> None:
    shown = page(viewer, moving)
    assert "role operator" in shown.words("replan")
    assert "<button" not in shown.part("replan")
    assert send(viewer, moving)[0] == 403
