"""Orphan throttles are removed by an approved change: which ones, what is sent, and what is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import cast

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.checks import CheckResult
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster, ClusterMode, Role
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution, ThrottleEntry
from kafkadash.kafka import znodes
from kafkadash.kafka.api import CLUSTER_DEFAULT, ConfigChange, ConfigOperation, ConfigResource, WholeClient
from kafkadash.kafka.throttles import DISK_RATE, FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from kafkadash.monitoring import znode_rates
from kafkadash.monitoring.models import ConfigSource, ThrottleState
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.plans import check_items
from kafkadash.short_runs.reasons import ItemReasonCode
from kafkadash.short_runs.state import ReadingState
from kafkadash.throttle_removal.errors import RemovalNoteCode
from kafkadash.throttle_removal.kind import KIND, plan_removals, read_removals
from kafkadash.throttle_removal.reasons import RemovalReasonCode, RunActive
from tests.execution.stored_runs import requested, running
from tests.execution.worlds import model_of
from tests.factories import ThrottleFactory
from tests.memory_zookeeper import MemoryZooKeeper
from tests.pages.conftest import Element, Page
from tests.planning.stored import stored
from tests.short_runs.worlds import ShortWorld, stepped

pytestmark = pytest.mark.django_db
RATE_OF_1 = f"broker 1: {LEADER_RATE}"
LIST_OF_ORDERS = f"topic orders: {LEADER_LIST}"
NEW = "/clusters/demo/throttles/remove/"


class ThrottledWorld(ShortWorld):
    def throttle(
        self, resource: ConfigResource, key: str, value: str, *, orphan: bool = True, source: str = ""
    ) -> ThrottleState:
        """A throttle that is set in Kafka, and stored."""
        self.kafka.configs.setdefault(resource, {})[key] = value
        topic = resource == ConfigResource.topic(resource.name)
        kind = "topic" if topic else "broker" if resource.name else "cluster"
        own = {"source": source} if source else {}
        return ThrottleFactory.create(
            cluster=self.cluster, resource=kind, name=resource.name, key=key, value=value, orphan=orphan, **own
        )

    def value(self, resource: ConfigResource, key: str) -> str | None:
        return self.kafka.configs.get(resource, {}).get(key)

    @property
    def alterations(self) -> list[ConfigChange]:
        return [change for call, changes in self.kafka.sent if call == "alter_configs" for change in changes]  # type: ignore[attr-defined]


BROKER, TOPIC = ConfigResource.broker(1), ConfigResource.topic("orders")


@pytest.fixture
def world(db: None, operator: User) -> Iterator[ThrottledWorld]:
    """A rate of broker 1 and a list of a topic are orphans."""
    cluster = stored()
    made = ThrottledWorld(cluster, model_of(cluster), operator, KIND)
    made.throttle(BROKER, LEADER_RATE, "10000000")
    made.throttle(TOPIC, LEADER_LIST, "0:1,1:2")
    with stepped(made):
        yield made


def subjects(world: ThrottledWorld, **wanted: str) -> list[str]:
    return [item.subject for item in plan_removals(world.cluster, wanted).items]


# ---- plan


def test_plan__has_orphans_only(world: ThrottledWorld) -> None:
    world.throttle(ConfigResource.broker(2), FOLLOWER_RATE, "1", orphan=False)
    assert subjects(world) == [RATE_OF_1, LIST_OF_ORDERS]
    assert subjects(world, resource="broker", name="1") == [RATE_OF_1]
    assert subjects(world, resource="topic", name="clicks") == []


def test_plan__leaves_out_what_stands_in_a_file_of_the_broker(world: ThrottledWorld) -> None:
    world.throttle(ConfigResource.broker(2), FOLLOWER_RATE, "5", source=ConfigSource.STATIC)
    planned = plan_removals(world.cluster, {})
    assert len(planned.items) == 2
    assert [message.code for message in planned.left_out] == [RemovalNoteCode.STATIC_LEFT_OUT]


# ---- run


def test_run__removes_rates_and_the_planned_pairs_and_nothing_else(world: ThrottledWorld) -> None:
    world.kafka.configs[BROKER]["log.retention.ms"] = "1"
    change = world.until(world.queue(), "done")
    assert set(world.states(change).values()) == {"done"}
    assert world.run(change).outcome == "clean"
    assert world.kafka.configs[BROKER] == {"log.retention.ms": "1"}
    assert world.value(TOPIC, LEADER_LIST) == ""
    assert world.alterations == [
        ConfigChange(BROKER, LEADER_RATE, ConfigOperation.DELETE),
        ConfigChange(TOPIC, LEADER_LIST, ConfigOperation.SUBTRACT, "0:1,1:2"),
    ]


def test_run__cluster_default_and_disk_rate__are_removed(world: ThrottledWorld) -> None:
    world.throttle(CLUSTER_DEFAULT, FOLLOWER_RATE, "7")
    world.throttle(CLUSTER_DEFAULT, DISK_RATE, "8")
    world.throttle(ConfigResource.broker(2), DISK_RATE, "9")
    change = world.until(world.queue(), "done")
    assert set(world.states(change).values()) == {"done"}
    assert world.value(CLUSTER_DEFAULT, FOLLOWER_RATE) is None
    assert world.value(CLUSTER_DEFAULT, DISK_RATE) is None
    assert world.value(ConfigResource.broker(2), DISK_RATE) is None


def test_run__pairs_that_others_add_meanwhile__stay(world: ThrottledWorld) -> None:
    change = world.queue()
    world.kafka.configs[TOPIC][LEADER_LIST] = "0:1,1:2,4:3"
    change = world.until(change, "done")
    assert world.value(TOPIC, LEADER_LIST) == "4:3"
    assert world.states(change)[LIST_OF_ORDERS] == "done"


def test_run__throttle_is_gone_already__is_not_sent(world: ThrottledWorld) -> None:
    change = world.queue()
    del world.kafka.configs[BROKER][LEADER_RATE]
    change = world.until(change, "done")
    assert world.states(change)[RATE_OF_1] == "unchanged"
    assert world.reasons(change)[RATE_OF_1] == ItemReasonCode.ALREADY_SO


def test_run__a_move_begins_after_the_start__its_throttles_stay(world: ThrottledWorld) -> None:
    change = world.step(world.queue())
    world.kafka.model.submit(("orders", 0), (1, 2, 6))
    change = world.until(change, "done")
    assert set(world.reasons(change).values()) == {RemovalReasonCode.NEEDED}
    assert world.alterations == []
    assert world.run(change).outcome == "exceptions"


@pytest.mark.parametrize("arrives", [True, False])
def test_run__broker_does_not_answer__a_reading_tells(world: ThrottledWorld, arrives: bool) -> None:
    change = world.step(world.queue({"resource": "broker", "name": "1"}))
    calls: list[str] = []

    def lose(call: str) -> None:
        if call == "alter_configs" and not calls:
            calls.append(call)
            world.kafka.model.brokers[1] = False
            if arrives:
                del world.kafka.configs[BROKER][LEADER_RATE]

    world.kafka.before = lose
    change = world.step(change)
    assert world.states(change) == {RATE_OF_1: "lost"}
    world.kafka.model.brokers[1] = True
    change = world.until(change, "done")
    assert world.states(change) == {RATE_OF_1: "done"}
    assert len(world.alterations) == (1 if arrives else 2)


def test_reading__broker_is_down_in_zookeeper_mode__is_that_of_its_znode(
    world: ThrottledWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensemble = MemoryZooKeeper()
    ensemble.write(znodes.CONTROLLER, {"version": 1, "brokerid": 2})
    config = f"{znodes.BROKER_CONFIGS}/1"
    ensemble.write(config, {"version": 1, "config": {LEADER_RATE: "10000000"}})
    monkeypatch.setattr(znode_rates, "open_zookeeper", ensemble.open)
    Cluster.objects.update(mode=ClusterMode.ZOOKEEPER, zookeeper="z:2181")
    cluster, items = Cluster.objects.get(), plan_removals(world.cluster, {}).items
    ensemble.identify(cluster.kafka_id)
    world.kafka.model.brokers[1] = False
    client = cast("WholeClient", world.kafka)

    def state() -> ReadingState:
        return read_removals(cluster, client, items, 5)[RATE_OF_1].state

    assert state() is ReadingState.READY
    ensemble.write(config, {"version": 1, "config": {}})
    assert state() is ReadingState.REACHED


# ---- before the start


def test_queued__rate_is_another_one_by_now__turns_stale(world: ThrottledWorld) -> None:
    change = world.queue()
    world.kafka.configs[BROKER][LEADER_RATE] = "20000000"
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == RemovalReasonCode.VALUE_CHANGED
    assert world.alterations == []


def test_queued__a_move_needs_the_throttle__turns_stale(world: ThrottledWorld) -> None:
    change = world.queue()
    world.kafka.model.submit(("orders", 0), (1, 2, 6))
    world.until_stale(change)


def test_submit__throttle_is_no_orphan_any_more__is_refused(world: ThrottledWorld) -> None:
    draft = world.draft()
    ThrottleState.objects.update(orphan=False)
    with pytest.raises(ChangeRefused) as refused:
        services.submit(draft, world.operator, why="Found.", version=draft.version)
    assert refused.value.code == ChangeErrorCode.PLAN_NO_LONGER_FITS
    assert refused.value.message.params["first"].code == ShortRunErrorCode.ITEM_DOES_NOT_FIT


def test_checks__facts_are_old__are_unknown(world: ThrottledWorld) -> None:
    outcome = check_items(world.draft(), world.clock + timedelta(hours=1))
    assert [check.result for check in outcome.checks] == [CheckResult.UNKNOWN]
    assert [problem.code for problem in outcome.checks[0].problems] == [ShortRunErrorCode.FACTS_OLD]


def test_queued__a_run_of_kafkadash_is_active__waits_for_its_end(world: ThrottledWorld) -> None:
    change = world.queue()
    other = running(requested(world.cluster, world.operator, ChangeState.EXECUTING), {RowState.MOVING: 1})
    change = world.step(change)
    assert change.state == "queued"
    assert world.run(change).blocked == RunActive(other.request_id)
    assert world.run(change).blocked_at is None, "that ends by itself"
    Execution.objects.update(active=False)
    assert world.until(change, "done").state == "done"


def test_running__a_run_of_kafkadash_sets_the_throttle__it_stays(world: ThrottledWorld) -> None:
    change = world.step(world.queue({"resource": "broker", "name": "1"}))
    other = running(requested(world.cluster, world.operator, ChangeState.EXECUTING), {RowState.MOVING: 1})
    ThrottleEntry.objects.create(
        execution=other, resource="broker", name="1", key=LEADER_RATE, value="10000000", state="intent"
    )
    change = world.until(change, "done")
    assert world.reasons(change) == {RATE_OF_1: RemovalReasonCode.OURS}
    assert world.alterations == []


# ---- pages


def test_pages__offer_the_removal__and_submit_it(
    world: ThrottledWorld, client_of: Callable[[User], Client], make_user: Callable[..., User]
) -> None:
    client = client_of(world.operator)
    assert NEW in Page.read(client.get("/clusters/demo/throttles/")).links("#throttle-list-demo header")
    viewer = client_of(make_user("vic", Role.VIEWER))
    assert NEW not in Page.read(viewer.get("/clusters/demo/throttles/")).links("#throttle-list-demo header")
    page = Page.read(client.get(NEW))
    cells = [[c.text for c in row.children if isinstance(c, Element)] for row in page.find("#items tbody tr")]
    assert cells == [[RATE_OF_1, "10.0 MB/s", "not set"], [LIST_OF_ORDERS, "2 replicas", "not set"]]
    answer = client.post(f"{NEW}?topic=orders", {"why": "Left by a tool."})
    change = ChangeRequest.objects.get()
    assert (answer["Location"], change.state, change.kind) == (f"/changes/{change.pk}/", "proposed", KIND)
    assert change.input == {"resource": "topic", "name": "orders"}


def test_proposal__data_is_stale__does_not_say_that_nothing_is_to_be_done(
    world: ThrottledWorld, client_of: Callable[[User], Client]
) -> None:
    ThrottleState.objects.all().delete()
    client = client_of(world.operator)
    fresh = Page.read(client.get(NEW))
    world.cluster.collector_runs.filter(kind="configs").update(succeeded_at=None)
    stale = Page.read(client.get(NEW))
    assert not fresh.find(".page-head [data-fresh=stale]")
    assert stale.find(".page-head [data-fresh=stale]")
    assert stale.first("#items [data-empty]").get("data-empty") == "unknown"
    assert fresh.first("#items [data-empty]").get("data-empty") == "none"


def test_proposal__unknown_broker__has_nothing_to_do(
    world: ThrottledWorld, client_of: Callable[[User], Client]
) -> None:
    client = client_of(world.operator)
    for scope in ("?broker=99", "?broker=x", "?topic=none"):
        assert not Page.read(client.get(NEW + scope)).has("proposal")


def test_queued__value_that_is_set_as_unlimited_list__is_removed_whole(world: ThrottledWorld) -> None:
    world.throttle(ConfigResource.topic("clicks"), FOLLOWER_LIST, "*")
    change = world.until(world.queue({"resource": "topic", "name": "clicks"}), "done")
    assert set(world.states(change).values()) == {"done"}
    assert world.value(ConfigResource.topic("clicks"), FOLLOWER_LIST) == ""
