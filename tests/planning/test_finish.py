"""The rest of a reassignment that ended early, and of a file that was verified, becomes a draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import pytest
from django.db.models import Model
from django.utils import timezone

from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import PlanErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import BrokerState, MoveOutcome, ReassignmentSnapshot, TopicState
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.stored_checks import plan_rows
from tests.factories import ReassignmentFactory, ended
from tests.pages.conftest import Page
from tests.pages.test_verify import finished
from tests.planning.stored import Wizard, stored

pytestmark = pytest.mark.django_db


def cancelled(cluster: Cluster, **columns: Any) -> ReassignmentSnapshot:
    """A reassignment of orders-0 (on 1, 2, 3) to brokers 1, 2 and 6, which others cancelled."""
    place = {"topic": "orders", "topic_id": "id-of-orders", "partition": 0, "adding": [6], "removing": [3]}
    return ended(cluster, MoveOutcome.CANCELLED, timezone.now(), **place | {"target": [1, 2, 6]} | columns)


def propose(wizard: Wizard, address: str) -> ChangeRequest:
    answer = wizard.client.post(address)
    draft = ChangeRequest.objects.latest("pk")
    assert (answer.status_code, answer["location"]) == (302, f"/changes/{draft.pk}/draft/limits/")
    wizard.number = draft.pk
    return draft


def test_rest__of_a_cancelled_reassignment__is_planned_as_its_target_alone(wizard: Wizard, demo: Cluster) -> None:
    address = f"/clusters/demo/reassignments/{cancelled(demo).public_id}/"
    page = Page.read(wizard.client.get(address))
    assert [form.get("action") for form in page.find(".page-actions form")] == [f"{address}finish/"]
    assert "1, 2, 3" in page.facts("dl.facts")["Replicas now"]
    draft = propose(wizard, f"{address}finish/")
    assert propose(wizard, f"{address}finish/") == draft
    wizard.limits()
    assert [(row.name, row.current, row.target) for row in plan_rows(str(wizard.plans().artifact_id))] == [
        ("orders-0", (1, 2, 3), (1, 2, 6))
    ]


def forget(model: type[Model], **columns: Any) -> Callable[[ReassignmentSnapshot], object]:
    return lambda row: model._default_manager.filter(cluster=row.cluster, **columns).delete()


def update(model: type[Model], named: Mapping[str, Any], **columns: Any) -> Callable[[ReassignmentSnapshot], object]:
    return lambda row: model._default_manager.filter(cluster=row.cluster, **named).update(**columns)


def move_again(row: ReassignmentSnapshot) -> None:
    ReassignmentFactory.create(cluster=row.cluster, topic="orders", topic_id="id-of-orders", partition=0)


@pytest.mark.parametrize(
    ("happens", "code", "offered"),
    [
        (forget(TopicState, name="orders"), CollectionErrorCode.UNFINISHED_TOPIC_GONE, False),
        (
            update(TopicState, {"name": "orders"}, topic_id="id-of-another"),
            CollectionErrorCode.UNFINISHED_OTHER_TOPIC,
            False,
        ),
        (
            update(TopicState, {"name": "orders"}, partitions=[[0, 1, 5, [1, 2, 6], [1, 2, 6], []]]),
            ReassignmentErrorCode.NOTHING_TO_FINISH,
            False,
        ),
        (move_again, ReassignmentErrorCode.NOTHING_TO_FINISH, False),
        (update(BrokerState, {"broker_id": 6}, fenced=True), PlanErrorCode.BROKER_UNFIT, True),
        (forget(BrokerState, broker_id=6), PlanErrorCode.BROKER_UNKNOWN, True),
    ],
)
def test_rest__that_no_longer_fits__is_refused_on_its_page(
    wizard: Wizard, demo: Cluster, happens: Callable[[ReassignmentSnapshot], object], code: StrEnum, *, offered: bool
) -> None:
    row = cancelled(demo)
    happens(row)
    address = f"/clusters/demo/reassignments/{row.public_id}/"
    page = Page.read(wizard.client.get(address))
    assert bool(page.find(".page-actions form")) == offered
    assert page.texts("#unfinished .error-code") == ([str(code)] if isinstance(code, CollectionErrorCode) else [])
    answer = wizard.client.post(f"{address}finish/")
    assert (answer.status_code, Page.read(answer).refusal) == (409, code)
    assert not ChangeRequest.objects.exists()


def verified(cluster: Cluster, failed: int) -> str:
    return f"/clusters/{cluster.slug}/verify/{finished(cluster, completed=1, failed=failed).pk}/"


def test_rest__of_a_verified_file__is_what_the_cluster_lacks_of_it(wizard: Wizard) -> None:
    cluster = stored("files", topics={"foo": [[1, 2], [3, 4]]})
    address = verified(cluster, failed=1)
    page = Page.read(wizard.client.get(address))
    assert f"{address}rest/" in [form.get("action") for form in page.find(".page-actions form")]
    propose(wizard, f"{address}rest/")
    wizard.limits()
    assert [(row.name, row.target) for row in plan_rows(str(wizard.plans().artifact_id))] == [("foo-0", (3, 4))]


def test_rest__of_a_verified_file_whose_broker_is_gone__is_refused(wizard: Wizard) -> None:
    cluster = stored("files", topics={"foo": [[1, 2]]})
    BrokerState.objects.filter(cluster=cluster, broker_id=4).delete()
    address = verified(cluster, failed=1)
    answer = wizard.client.post(f"{address}rest/")
    assert (answer.status_code, Page.read(answer).refusal) == (409, PlanErrorCode.BROKER_UNKNOWN)
    assert not ChangeRequest.objects.exists()


def test_rest__of_a_file_that_is_done__is_not_offered(wizard: Wizard) -> None:
    cluster = stored("files", topics={"foo": [[3, 4]]})
    address = verified(cluster, failed=0)
    page = Page.read(wizard.client.get(address))
    assert f"{address}rest/" not in [form.get("action") for form in page.find(".page-actions form")]
