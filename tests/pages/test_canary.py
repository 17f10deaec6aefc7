"""The page of the canary, and the switch with which administrators start and stop it."""

from __future__ import annotations

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


def run(cluster: Cluster, readings: Mapping[int, CanaryReading], age: timedelta = timedelta(seconds=3)) -> None:
    CollectorRun.objects.create(cluster=cluster, kind=CollectorKind.CANARY, succeeded_at=NOW - age, interval_s=30)
    stored = {str(broker): reading.as_json() for broker, reading in readings.items()}
    CanaryPoint.objects.create(cluster=cluster, taken_at=NOW - age, readings=stored)


def test_topic__each_broker_leads_a_partition_and_records_expire_in_an_hour(demo: Cluster) -> None:
    [item] = plan_items(short_kind("topic-create"), demo, plan_canary(demo)).items
    assert sorted(row[0] for row in item.content["replicas"]) == [1, 2, 3]
    assert int(item.content["configs"]["retention.ms"]) + int(item.content["configs"]["segment.ms"]) < 3_600_000


def test_command__kind_that_was_not_started__is_refused(demo: Cluster) -> None:
    with pytest.raises(CommandError, match=CollectionErrorCode.KIND_NOT_STARTED):
        call_command("collect", "demo", kind=["canary"])
