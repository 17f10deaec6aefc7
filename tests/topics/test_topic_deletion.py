"""Deletion of topics, from the plan to the end, and the page on which the name has to be typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import PlanErrorCode
from kafkadash.changes.risk import RiskLevel, level_of
from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.groups.shares import SharePartition
from kafkadash.monitoring.models import CollectorKind, TopicState, TopicTraffic
from kafkadash.monitoring.traffic.rules import shard_of
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.plans import check_items
from kafkadash.topics.deletion import KIND, plan_deletion
from kafkadash.topics.errors import TopicErrorCode
from kafkadash.topics.reasons import TopicReasonCode
from tests.factories import ReassignmentFactory, TopicFactory
from tests.groups import WELL, group_seen, share_seen
from tests.pages.conftest import Page
from tests.topics.conftest import TopicWorld

pytestmark = pytest.mark.django_db
NEW = "/clusters/demo/topics/orders/delete/"


def planned(world: TopicWorld, *topics: str) -> list[str]:
    return [
        item.subject
        for item in plan_deletion(world.cluster, {"topic_ids": [f"id-of-{topic}" for topic in topics]}).items
    ]


def test_plan__leaves_out_what_is_internal_or_has_no_id(world: TopicWorld) -> None:
    assert planned(world, "orders", "clicks", "nothing") == ["clicks", "orders"]
    TopicState.objects.filter(name="orders").update(internal=True)
    assert planned(world, "orders") == []
    TopicState.objects.filter(name="clicks").update(topic_id="clicks")
    assert plan_deletion(world.cluster, {"topic_ids": ["clicks"]}).items == []


def test_run__deletes_all_and_verifies(world: TopicWorld) -> None:
    change = world.until(world.delete("orders", "clicks"), "done")
    assert world.states(change) == {"orders": "done", "clicks": "done"}
    assert world.run(change).outcome == "clean"
    assert world.kafka.model.topics.keys().isdisjoint({"orders", "clicks"})


@pytest.mark.parametrize("arrives", [True, False])
def test_run__answer_is_lost__a_reading_tells(world: TopicWorld, arrives: bool) -> None:
    change = world.step(world.delete("orders"))
    world.kafka.lose = arrives
    world.step(change)
    assert world.states(change) == {"orders": "lost"}
    world.kafka.lose = None
    change = world.until(change, "done")
    assert world.states(change) == {"orders": "done"}
    assert len([call for call, _ in world.kafka.sent if call == "delete_topics"]) == (1 if arrives else 2)


def test_running__topic_is_created_again__is_not_deleted(world: TopicWorld) -> None:
    change = world.step(world.delete("orders"))
    world.kafka.model.topics["orders"] = "another-id"
    change = world.until(change, "done")
    assert world.states(change) == {"orders": "skipped"}
    assert world.reasons(change) == {"orders": TopicReasonCode.RECREATED}
    assert "orders" in world.kafka.model.topics


def test_running__topic_is_created_again_at_the_instant_of_the_request__stays(world: TopicWorld) -> None:
    change = world.step(world.delete("orders"))

    def recreate(call: str) -> None:
        if call == "delete_topics":
            world.kafka.model.topics["orders"] = "another-id"

    world.kafka.before = recreate
    change = world.until(change, "done")
    assert world.states(change) == {"orders": "skipped"}
    assert world.kafka.model.topics["orders"] == "another-id"


def test_queued__topic_was_created_again__turns_stale(world: TopicWorld) -> None:
    change = world.delete("orders")
    world.kafka.model.topics["orders"] = "another-id"
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == TopicReasonCode.RECREATED


def test_queued__topic_begins_to_move__turns_stale(world: TopicWorld) -> None:
    change = world.delete("orders")
    world.kafka.model.submit(("orders", 0), (1, 2, 6))
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == TopicReasonCode.MOVING
    assert "orders" in world.kafka.model.topics


def test_stale__topic_was_created_again__no_new_plan_names_it(world: TopicWorld) -> None:
    change = world.delete("orders")
    world.kafka.model.topics["orders"] = "another-id"
    change = world.until_stale(change)
    TopicState.objects.filter(name="orders").update(topic_id="another-id")
    with pytest.raises(ChangeRefused) as refused:
        services.start_refresh(change, world.operator)
    assert refused.value.code == ChangeErrorCode.NOTHING_LEFT


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda: TopicState.objects.filter(name="orders").delete(), TopicReasonCode.GONE),
        (lambda: TopicState.objects.filter(name="orders").update(topic_id="other"), TopicReasonCode.RECREATED),
        (lambda: ReassignmentFactory.create(cluster=Cluster.objects.get(), topic="orders"), TopicReasonCode.MOVING),
    ],
)
def test_draft__stored_rows_are_others__does_not_fit(
    world: TopicWorld, spoil: Callable[[], object], code: TopicReasonCode
) -> None:
    world.kind = KIND
    draft = world.draft({"topic_ids": ["id-of-orders"]})
    spoil()
    check = check_items(draft, world.clock).checks[0]
    assert [problem.params["why"].code for problem in check.problems] == [code]


# ---- page


@pytest.fixture
def client(world: TopicWorld, client_of: Callable[[User], Client]) -> Client:
    return client_of(world.operator)


def test_page__shows_what_goes_and_asks_for_the_name(client: Client, world: TopicWorld) -> None:
    group_seen(world.cluster, "billing", {("orders", 0): WELL})
    page = Page.read(client.get(NEW))
    assert "offsets of billing" in page.html
    assert "(type orders)" in page.html
    sent = client.post(NEW, {"title": "", "why": "Nobody reads it.", "confirm": "orders"})
    change = ChangeRequest.objects.get()
    assert (sent["Location"], change.state) == (f"/changes/{change.pk}/", "proposed")
    assert level_of(change.risk) is RiskLevel.HIGH


def test_plan__names_who_reads_and_writes__null_where_nobody_knows(world: TopicWorld) -> None:
    def planned_content() -> dict[str, Any]:
        [item] = plan_deletion(world.cluster, {"topic_ids": ["id-of-orders"]}).items
        return {name: item.content[name] for name in ("groups", "records_per_s", "bytes_per_s")}

    assert planned_content() == {"groups": [], "records_per_s": None, "bytes_per_s": None}
    share_seen(world.cluster, "queue", [SharePartition("orders", 0, 0, 9, 9)])
    share_seen(world.cluster, "other", [SharePartition("clicks", 0, 0, 9, 9)])
    assert planned_content()["groups"] == ["queue"]
    for number in range(10):
        group_seen(world.cluster, f"billing-{number}", {("orders", 0): WELL})
    now = world.cluster.collector_runs.get(kind=CollectorKind.TRAFFIC).succeeded_at
    assert now is not None
    measured = {"orders": [12.0, 900.0, 0, 1], "clicks": [3.0, 300.0, 0, 0]}
    TopicTraffic.objects.create(cluster=world.cluster, shard=shard_of("orders"), taken_at=now, topics=measured)
    content = planned_content()
    assert (content["records_per_s"], content["bytes_per_s"]) == (12.0, None)
    assert content["groups"] == [*(f"billing-{number}" for number in range(8)), 3]
    TopicTraffic.objects.update(topics={"orders": [0.0, 0.0, 11, 0]})
    assert planned_content()["records_per_s"] is None
    old = [CollectorKind.GROUPS, CollectorKind.TRAFFIC]
    world.cluster.collector_runs.filter(kind__in=old).update(succeeded_at=None)
    assert planned_content() == {"groups": None, "records_per_s": None, "bytes_per_s": None}


@pytest.mark.parametrize("typed", ["", "Orders", "order", "orders2", "1"])
def test_page__another_name_is_typed__is_refused_and_kept(client: Client, typed: str) -> None:
    response = client.post(NEW, {"title": "Old topic", "why": "Nobody reads it.", "confirm": typed})
    page = Page.read(response)
    assert response.status_code == 400
    assert page.first("#confirm-error .error-code").text == ShortRunErrorCode.NOT_CONFIRMED
    assert "Nobody reads it." in page.html
    assert not ChangeRequest.objects.exists()


def test_draft__of_several_topics__asks_for_their_number(client: Client, world: TopicWorld) -> None:
    world.kind = KIND
    draft = world.draft({"topic_ids": ["id-of-orders", "id-of-clicks"]})
    address = f"/changes/{draft.pk}/items/"
    assert "(type 2)" in client.get(address).text
    sent = {"title": "", "why": "Nobody reads them.", "version": draft.version}
    assert client.post(address, {**sent, "confirm": "orders"}).status_code == 400
    draft.refresh_from_db()
    again = {**sent, "version": draft.version, "confirm": "2"}
    assert client.post(address, again)["Location"] == f"/changes/{draft.pk}/"


@pytest.mark.parametrize("topic", ["nothing", "a%00b"])
def test_page__of_a_topic_that_cannot_be_deleted__is_not_found(client: Client, topic: str) -> None:
    response = client.get(f"/clusters/demo/topics/{topic}/delete/")
    assert response.status_code == 404
    assert TopicErrorCode.NOT_DELETABLE in response.text


SEVERAL = "/clusters/demo/delete-topics/"
CHOICE = {"topics": "", "pattern": ".*", "excluded": ""}


def test_several__matched_by_a_pattern__lead_to_a_draft_without_internal_topics(
    client: Client, world: TopicWorld
) -> None:
    TopicFactory.create(cluster=world.cluster, name="__offsets", topic_id="id-of-offsets", internal=True)
    response = client.post(SEVERAL, CHOICE | {"topics": "__offsets"})
    change = ChangeRequest.objects.get()
    assert response["Location"] == f"/changes/{change.pk}/items/"
    assert change.input == {"topic_ids": ["id-of-clicks", "id-of-orders"]}
    assert "(type 2)" in client.get(response["Location"]).text


@pytest.mark.parametrize(
    ("choice", "field", "code"),
    [
        ({"pattern": ""}, "topics", ReassignmentErrorCode.NO_TOPICS_CHOSEN),
        ({"pattern": "", "topics": "__offsets"}, "topics", ReassignmentErrorCode.ONLY_INTERNAL_CHOSEN),
        ({"pattern": "("}, "pattern", PlanErrorCode.PATTERN_WRONG),
        ({"pattern": "or"}, "pattern", PlanErrorCode.NO_TOPIC_CHOSEN),
    ],
)
def test_several__choice_that_cannot_be__is_refused_and_kept(
    client: Client, world: TopicWorld, choice: dict[str, str], field: str, code: str
) -> None:
    TopicFactory.create(cluster=world.cluster, name="__offsets", topic_id="id-of-offsets", internal=True)
    response = client.post(SEVERAL, CHOICE | choice)
    page = Page.read(response)
    assert response.status_code == 400
    assert page.first(f"#id_{field}-error .error-code").text == code
    assert not ChangeRequest.objects.exists()
