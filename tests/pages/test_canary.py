"""The page of the canary, and the switch with which administrators start and stop it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.models import Cluster, Role
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.canary.rules import TOPIC, CanaryReading, CanaryReason, CanaryState
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import CanaryPoint, CollectorKind, CollectorRun
from kafkadash.short_runs.kinds import short_kind
from kafkadash.short_runs.plans import plan_items
from kafkadash.topics.creation import plan_canary
from tests.factories import NOW, TopicFactory
from tests.pages.conftest import Page

PAGE = "/clusters/demo/canary/"
OK = CanaryReading(CanaryState.MEASURED, 4.0, 5.0)
FAILED = CanaryReading(CanaryState.FAILED, code=CanaryReason.NOT_WRITTEN)


@pytest.fixture
def admin(demo: Cluster, make_user: Callable[..., User], client_of: Callable[[User], Client]) -> Client:
    return client_of(make_user("adam", Role.ADMIN))


def test_switch__is_refused_without_a_topic_and_on_a_cluster_that_is_read_only(demo: Cluster, admin: Client) -> None:
    runs = CollectorRun.objects.filter(cluster=demo, kind=CollectorKind.CANARY)
    admin.post(f"{PAGE}switch/", {"on": "1"})
    assert not runs.exists()
    TopicFactory.create(cluster=demo, name=TOPIC)
    Cluster.objects.update(read_only=True)
    assert KafkaErrorCode.CANARY_OF_READ_ONLY in admin.get(PAGE).content.decode()
    admin.post(f"{PAGE}switch/", {"on": "1"})
    assert not runs.exists()


def test_switch__starts_and_stops_and_is_audited_once(demo: Cluster, admin: Client) -> None:
    TopicFactory.create(cluster=demo, name=TOPIC)
    runs = CollectorRun.objects.filter(cluster=demo, kind=CollectorKind.CANARY)
    assert Page.read(admin.get(PAGE)).title == "Canary is off"
    for on, there in (("1", True), ("1", True), ("", False), ("", False)):
        admin.post(f"{PAGE}switch/", {"on": on})
        assert runs.exists() is there
    events = AuditEvent.objects.filter(action__startswith="canary.").order_by("pk")
    assert list(events.values_list("action", flat=True)) == ["canary.started", "canary.stopped"]


@pytest.mark.parametrize(
    ("readings", "title"),
    [
        ({}, "Canary measures no broker"),
        ({1: OK, 2: OK, 3: OK}, "Canary: 3 of 3 brokers, slowest 5 ms"),
        ({1: OK, 2: FAILED}, "Canary fails on broker 2"),
    ],
)
def test_page__its_title_is_the_answer(
    demo: Cluster,
    admin: Client,
    readings: Mapping[int, CanaryReading],
    title: str,
) -> None:
    run(demo, readings)
    assert Page.read(admin.get(PAGE)).title == title


def test_page__old_data_is_not_the_state_of_now(demo: Cluster, admin: Client) -> None:
    run(demo, {1: FAILED}, age=timedelta(minutes=5))
    assert Page.read(admin.get(PAGE)).title == "Canary data is old"


def test_chart__has_the_stored_latencies_and_gaps_where_nothing_was_measured(demo: Cluster, admin: Client) -> None:
    """Of an hour in minutes: two samples in one, failures in another; of a day in ten minutes each."""
    run(demo, {1: build_reading(7), 2: build_reading(9), 3: build_reading(20)})
    elsewhere = CanaryReading(CanaryState.NOT_MEASURED, code=CanaryReason.LED_ELSEWHERE.value, detail="1")
    probes = {
        20: {1: FAILED, 2: elsewhere},
        30: {1: build_reading(11), 2: FAILED, 3: build_reading(41.5)},
        29.5: {1: build_reading(13), 2: build_reading(17), 3: build_reading(19)},
        59: {1: build_reading(300), 2: elsewhere},
        300: {1: build_reading(4), 2: build_reading(6)},
    }
    store_samples(demo, {timedelta(minutes=ago): readings for ago, readings in probes.items()})

    assert read_chart(admin) == {
        "slowest broker": {0: 20, 30: 41.5, 59: 300},
        "median of brokers": {0: 9, 30: 26.25, 59: 300},
    }
    day = read_chart(admin, "range=day")
    assert day["slowest broker"] == {0: 20, 30: 41.5, 60: 300, 300: 6}
    assert day["median of brokers"] == {0: 9, 30: 26.25, 60: 300, 300: 5}
    page = Page.read(admin.get(PAGE))
    told = {text for text in page.texts("#canary-latency-table td") if text != "unknown"}
    assert told == {"20.0 ms", "9.0 ms", "41.5 ms", "26.2 ms", "300.0 ms"}
    assert page.first("[id=canary-1] [data-label=median]").text == "11 ms"


def test_charts__availability_falls_with_failures__and_has_gaps_where_nobody_probed(
    demo: Cluster, admin: Client
) -> None:
    """Two samples are in one minute. That broker 2 was led elsewhere is neither a success nor a failure."""
    run(demo, {1: OK, 2: OK})
    elsewhere = CanaryReading(CanaryState.NOT_MEASURED, code=CanaryReason.LED_ELSEWHERE.value, detail="1")
    probes = {30: {1: FAILED, 2: OK}, 29.5: {1: OK, 2: elsewhere}, 40: {1: elsewhere, 2: elsewhere}}
    store_samples(demo, {timedelta(minutes=ago): readings for ago, readings in probes.items()})
    assert read_chart(admin, key="canary-availability") == {
        "lowest broker": {0: 100, 30: 50},
        "all brokers": {0: 100, 30: 66.6},
    }
    assert read_chart(admin, "broker=2", "canary-availability") == {"broker 2": {0: 100, 30: 100}}
    assert read_chart(admin, "broker=1", "canary-latency") == {
        "end to end": {0: 5, 30: 5},
        "written": {0: 4, 30: 4},
    }
    assert read_chart(admin, "broker=77").keys() == {"slowest broker", "median of brokers"}, "no such broker"
    told = {text for text in Page.read(admin.get(PAGE)).texts("#canary-availability-table td") if text != "unknown"}
    assert told == {"100.0 %", "50.0 %", "66.6 %"}


def test_availability__of_fewer_probes_than_are_due__says_of_how_many(demo: Cluster, admin: Client) -> None:
    """Broker 1 failed for a third of an hour, broker 2 was not probed meanwhile, and broker 3 never."""
    run(demo, {1: OK, 2: OK})
    gone = CanaryReading(CanaryState.FAILED, code=CanaryReason.NO_ANSWER.value, detail="_TRANSPORT")
    turns = {turn: {1: gone} if turn <= 40 else {1: OK, 2: OK} for turn in range(1, 119)}
    store_samples(demo, {timedelta(seconds=30 * turn): readings for turn, readings in turns.items()})
    page = Page.read(admin.get(PAGE))
    assert page.context["turns"] == 120
    lines = {line.sums.broker: line for line in page.context["lines"]}
    assert {broker: (line.sums.measured, line.sums.probes, line.in_part) for broker, line in lines.items()} == {
        1: (79, 119, False),
        2: (79, 79, True),
        3: (0, 0, False),
    }
    assert [lines[broker].percent for broker in (2, 3)] == [100, None]
    assert page.first("[id=canary-2] [data-in-part]").text.count("79") == 1
    assert not page.find("[id=canary-1] [data-in-part]")


def build_reading(consumed_ms: float) -> CanaryReading:
    return CanaryReading(CanaryState.MEASURED, consumed_ms / 2, consumed_ms)


def read_chart(client: Client, query: str = "", key: str = "canary-latency") -> dict[str, dict[int, float]]:
    """Line → minutes before now of the interval → value, of what a chart is drawn from."""
    canvas = Page.read(client.get(f"{PAGE}?{query}")).first(f"#{key}-canvas")
    chart = json.loads(canvas.get("data-chart"))
    ages = [round((chart["x"][-1] - at) / 60) for at in chart["x"]]
    return {
        line["label"]: {ago: value for ago, value in zip(ages, line["y"], strict=True) if value is not None}
        for line in chart["series"]
    }


def store_samples(cluster: Cluster, samples: Mapping[timedelta, Mapping[int, CanaryReading]]) -> None:
    CanaryPoint.objects.bulk_create(
        CanaryPoint(
            cluster=cluster, taken_at=NOW - ago, readings={str(n): each.as_json() for n, each in readings.items()}
        )
        for ago, readings in samples.items()
    )


def run(cluster: Cluster, readings: Mapping[int, CanaryReading], age: timedelta = timedelta(seconds=3)) -> None:
    CollectorRun.objects.create(cluster=cluster, kind=CollectorKind.CANARY, succeeded_at=NOW - age, interval_s=30)
    store_samples(cluster, {age: readings})


def test_topic__each_broker_leads_a_partition_and_records_expire_in_an_hour(demo: Cluster) -> None:
    [item] = plan_items(short_kind("topic-create"), demo, plan_canary(demo)).items
    assert sorted(row[0] for row in item.content["replicas"]) == [1, 2, 3]
    assert int(item.content["configs"]["retention.ms"]) + int(item.content["configs"]["segment.ms"]) < 3_600_000


def test_command__kind_that_was_not_started__is_refused(demo: Cluster) -> None:
    with pytest.raises(CommandError, match=CollectionErrorCode.KIND_NOT_STARTED):
        call_command("collect", "demo", kind=["canary"])
