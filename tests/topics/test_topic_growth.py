"""More partitions of a topic, from the plan to the end, and the page that proposes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.canary.rules import TOPIC
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import BrokerState, TopicState
from kafkadash.short_runs.plans import check_items
from kafkadash.topics.errors import TopicErrorCode
from kafkadash.topics.growth import plan_canary_growth, plan_growth
from kafkadash.topics.reasons import TopicReasonCode
from tests.factories import ReassignmentFactory
from tests.pages.conftest import Page
from tests.topics.conftest import TopicWorld

pytestmark = pytest.mark.django_db
CLUSTER = "/clusters/demo/"
NEW = f"{CLUSTER}topics/orders/add-partitions/"


def planned(world: TopicWorld, topic: str, count: int) -> list[list[int]]:
    items = plan_growth(world.cluster, {"topic": topic, "count": count}).items
    return [list(row) for item in items for row in item.content["replicas"]]


# ---- plan


def test_plan__continues_the_placement_of_the_topic(world: TopicWorld) -> None:
    """Partition 0 of orders is led by broker 1, the first of the list: 5 partitions later comes broker 6."""
    assert planned(world, "orders", 7) == [[6, 1, 2], [1, 5, 6]]
    assert planned(world, "clicks", 3) == [[5, 1]], "broker 3 is the third of the brokers"
    assert planned(world, "orders", 5) == []
    assert planned(world, "orders", 4) == []
    assert planned(world, "nothing", 4) == []


def test_plan__some_brokers_without_rack_or_too_few__places_nothing(world: TopicWorld) -> None:
    BrokerState.objects.filter(broker_id=2).update(rack=None)
    wanted = {"topic": "orders", "count": 6}
    assert [m.code for m in plan_growth(world.cluster, wanted).left_out] == [TopicErrorCode.RACK_MISSING]
    BrokerState.objects.filter(broker_id__gt=2).update(fenced=True)
    BrokerState.objects.update(rack=None)
    assert [m.code for m in plan_growth(world.cluster, wanted).left_out] == [TopicErrorCode.FACTOR_WRONG]


def test_canary__broker_that_prefers_to_lead_no_partition__gets_one(world: TopicWorld, client: Client) -> None:
    """Brokers 2 and 6 joined since; 5 is down. Replicas of a partition are in different racks, as those of three."""
    rows = [[n, leader, 1, [leader, 1 if leader != 1 else 3], [leader], []] for n, leader in enumerate((1, 3, 4))]
    TopicState.objects.filter(name="clicks").update(name=TOPIC, partitions=rows, partition_count=3)
    BrokerState.objects.filter(broker_id=5).update(fenced=True)
    wanted = plan_canary_growth(world.cluster)
    assert wanted is not None
    [item] = plan_growth(world.cluster, wanted).items
    assert (item.subject, item.content["first"], wanted["count"]) == (TOPIC, 3, 5)
    placed = item.content["replicas"]
    assert [row[0] for row in placed] == [2, 6]
    racks = dict(BrokerState.objects.values_list("broker_id", "rack"))
    assert [len({racks[broker] for broker in row}) for row in placed] == [2, 2]

    canary = f"{CLUSTER}canary/"
    assert f"{canary}topic/?more=1" in client.get(canary).text
    sent = client.post(f"{canary}topic/?more=1", {"title": "", "why": "Two brokers joined."})
    change = ChangeRequest.objects.get()
    assert (sent["Location"], change.state, change.input) == (f"/changes/{change.pk}/", "proposed", wanted)


def test_canary__each_broker_prefers_to_lead_one__there_is_nothing_to_propose(
    world: TopicWorld, client: Client
) -> None:
    rows = [[n, leader, 1, [leader], [leader], []] for n, leader in enumerate((1, 2, 3, 4, 5, 6))]
    TopicState.objects.filter(name="clicks").update(name=TOPIC, partitions=rows, partition_count=6)
    assert "more=1" not in client.get(f"{CLUSTER}canary/").text
    assert client.get(f"{CLUSTER}canary/topic/?more=1")["Location"] == f"{CLUSTER}canary/"
    TopicState.objects.filter(name=TOPIC).delete()
    assert plan_canary_growth(world.cluster) is None


# ---- run


def test_run__adds_them_and_verifies(world: TopicWorld) -> None:
    change = world.until(world.grow("orders", 7), "done")
    assert world.states(change) == {"orders": "done"}
    assert world.run(change).outcome == "clean"
    assert [world.kafka.model.partitions["orders", n].replicas for n in (5, 6)] == [(6, 1, 2), (1, 5, 6)]


@pytest.mark.parametrize("arrives", [True, False])
def test_run__answer_is_lost__a_reading_tells_and_nothing_is_added_twice(world: TopicWorld, arrives: bool) -> None:
    change = world.step(world.grow("orders", 7))
    world.kafka.lose = arrives
    world.step(change)
    assert world.states(change) == {"orders": "lost"}
    world.kafka.lose = None
    change = world.until(change, "done")
    assert world.states(change) == {"orders": "done"}
    assert world.kafka.model.number["orders"] == 7


def test_run__kafka_says_that_there_are_others__a_reading_tells(world: TopicWorld) -> None:
    change = world.step(world.grow("orders", 7))

    def grow_first(call: str) -> None:
        if call == "create_partitions" and world.kafka.model.number["orders"] == 5:
            world.kafka.model.grow_topic("orders", [[1]])

    world.kafka.before = grow_first
    change = world.until(change, "done")
    assert world.states(change) == {"orders": "skipped"}
    assert world.reasons(change) == {"orders": TopicReasonCode.PARTITIONS_CHANGED}


def test_queued__topic_was_created_again__turns_stale(world: TopicWorld) -> None:
    change = world.grow("orders", 7)
    world.kafka.model.topics["orders"] = "another-id"
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == TopicReasonCode.RECREATED


def test_queued__topic_was_deleted__turns_stale(world: TopicWorld) -> None:
    change = world.grow("orders", 7)
    del world.kafka.model.topics["orders"]
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == TopicReasonCode.GONE


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda: TopicState.objects.filter(name="orders").delete(), TopicReasonCode.GONE),
        (lambda: TopicState.objects.filter(name="orders").update(topic_id="other"), TopicReasonCode.RECREATED),
        (
            lambda: TopicState.objects.filter(name="orders").update(partition_count=6),
            TopicReasonCode.PARTITIONS_CHANGED,
        ),
        (lambda: ReassignmentFactory.create(cluster=Cluster.objects.get(), topic="orders"), TopicReasonCode.MOVING),
        (lambda: BrokerState.objects.filter(broker_id=6).update(fenced=True), TopicReasonCode.BROKERS_AWAY),
    ],
)
def test_submit__stored_rows_are_others__is_refused(
    world: TopicWorld, spoil: Callable[[], object], code: TopicReasonCode
) -> None:
    world.kind = "topic-grow"
    draft = world.draft({"topic": "orders", "count": 6})
    spoil()
    check = check_items(draft, world.clock).checks[0]
    assert [problem.params["why"].code for problem in check.problems] == [code]
    with pytest.raises(ChangeRefused):
        services.submit(draft, world.operator, why="More consumers.", version=draft.version)


# ---- page


@pytest.fixture
def client(world: TopicWorld, client_of: Callable[[User], Client]) -> Client:
    return client_of(world.operator)


def test_page__asks_for_a_number_then_shows_the_proposal(client: Client) -> None:
    assert Page.read(client.get(NEW)).first("#count").attributes["value"] == "6"
    page = Page.read(client.get(f"{NEW}?count=7"))
    assert "7 partitions; RF 3; replicas 6:1:2,1:5:6; start 0, shift 0" in page.html
    sent = client.post(f"{NEW}?count=7", {"title": "", "why": "More consumers."})
    change = ChangeRequest.objects.get()
    assert (sent["Location"], change.state) == (f"/changes/{change.pk}/", "proposed")
    assert change.input == {"topic": "orders", "count": 7}


@pytest.mark.parametrize("count", ["", "0", "4", "5", "x", "-1", "6.5", "10006", "9" * 400])
def test_page__number_that_kafka_would_refuse__is_kept_and_explained(client: Client, count: str) -> None:
    response = client.get(f"{NEW}?count={count}")
    page = Page.read(response)
    assert response.status_code == 400
    assert page.first("#count-error .error-code").text == TopicErrorCode.COUNT_WRONG
    assert client.post(f"{NEW}?count={count}", {"why": "More."}).status_code == 400


@pytest.mark.parametrize("topic", ["nothing", "a%00b"])
def test_page__of_an_unknown_topic__is_not_found(client: Client, topic: str) -> None:
    response = client.get(f"/clusters/demo/topics/{topic}/add-partitions/")
    assert response.status_code == 404
    assert CollectionErrorCode.TOPIC_NOT_SEEN in response.text


def test_page__of_an_internal_topic__is_not_found(client: Client) -> None:
    TopicState.objects.filter(name="orders").update(internal=True)
    assert client.get(NEW).status_code == 404
    assert "add-partitions" not in client.get("/clusters/demo/topics/orders/").text
    assert "add-partitions" in client.get("/clusters/demo/topics/clicks/").text


def test_plan__internal_topic_or_too_many__has_no_items(world: TopicWorld) -> None:
    too_many = plan_growth(world.cluster, {"topic": "clicks", "count": 1_000_000_000})
    assert (too_many.items, [note.code for note in too_many.left_out]) == ([], [TopicErrorCode.COUNT_WRONG])
    TopicState.objects.filter(name="clicks").update(internal=True)
    assert plan_growth(world.cluster, {"topic": "clicks", "count": 4}).items == []
