"""Brokers before a run, as planned, and as found: what was read before the end, or not at all, is unknown."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.execution.pages.found_brokers import FoundBrokers, load_found_brokers
from kafkadash.monitoring.models import BrokerState, BrokerWeights, CollectorKind, CollectorRun
from kafkadash.planning.models import PlanReport
from kafkadash.planning.report import BrokerLine
from tests.execution.worlds import World
from tests.factories import GB, directory
from tests.pages.conftest import figures_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def ended(world: World, operator: User) -> ChangeRequest:
    """Broker 3 was drained, and since then the collectors read the brokers as they were planned."""
    world.queue(operator)
    change = world.until(RequestState.DONE)
    world.passes(3)
    for broker in PlanReport.objects.get(request=change).impact["brokers"]:
        BrokerState.objects.filter(cluster=world.cluster, broker_id=broker["id"]).update(
            replicas=broker["replicas_after"], leaders=broker["leaders_after"]
        )
    return change


def load(world: World) -> FoundBrokers:
    runs = {run.kind: run for run in CollectorRun.objects.filter(cluster=world.cluster)}
    found = load_found_brokers(world.change(), runs, world.run().ended_at, world.clock, everything=False)
    assert found is not None
    return found


def line(found: FoundBrokers, broker: int) -> BrokerLine:
    return next(each for each in found.bars.lines if each.impact.id == broker)


def test_found__as_planned__replicas_leaders_and_bytes_of_each_broker(world: World, ended: ChangeRequest) -> None:
    BrokerWeights.objects.filter(cluster=world.cluster, broker_id=6).update(replica_bytes=7 * GB)
    found = load(world)
    assert [each.impact.id for each in found.bars.lines] == [1, 2, 3, 4, 5, 6]
    for each in found.bars.lines:
        assert each.replicas.found == each.impact.replicas_after
        assert each.leaders.found == each.impact.leaders_after
    assert (line(found, 3).replicas.before, line(found, 3).replicas.found) == (5, 0)
    assert line(found, 6).disk.found == 7 * GB
    assert figures_of(found.summary) == ["6", "6"]
    assert found.read_since
    assert found.sized_at == found.counted.taken_at == world.clock
    assert found.planned_at == ended.topology_at


def test_found__other_than_planned__is_named_with_the_difference(world: World, ended: ChangeRequest) -> None:
    planned = line(load(world), 6).impact.replicas_after
    BrokerState.objects.filter(cluster=world.cluster, broker_id=6).update(replicas=planned + 2)
    BrokerState.objects.filter(cluster=world.cluster, broker_id=3).update(replicas=1)
    found = load(world)
    assert line(found, 6).replicas.found == planned + 2
    assert figures_of(found.summary) == ["4", "6", "6", "2", "3", "1"]
    assert "broker 6 has 2 more" in found.summary


def test_found__far_more_than_planned__stays_on_the_scale(world: World, ended: ChangeRequest) -> None:
    BrokerState.objects.filter(cluster=world.cluster, broker_id=6).update(replicas=400)
    bar = line(load(world), 6).replicas
    assert bar.scale is not None
    assert bar.scale >= 400
    assert bar.found_width != bar.after_width


def test_found__metadata_from_before_the_end__is_unknown(world: World, ended: ChangeRequest) -> None:
    before = (world.run().ended_at or world.clock) - timedelta(seconds=1)
    CollectorRun.objects.filter(cluster=world.cluster, kind=CollectorKind.METADATA).update(succeeded_at=before)
    BrokerWeights.objects.filter(cluster=world.cluster).update(taken_at=before)
    found = load(world)
    assert not found.read_since
    assert found.sized_at is None
    assert not figures_of(found.summary)
    for each in found.bars.lines:
        assert (each.replicas.found, each.leaders.found, each.disk.found) == (None, None, None)
        assert each.replicas.found_text == "unknown"
        assert each.replicas.with_found


def test_found__a_broker_without_a_row__is_unknown_and_counted(world: World, ended: ChangeRequest) -> None:
    BrokerState.objects.filter(cluster=world.cluster, broker_id=2).delete()
    BrokerWeights.objects.filter(cluster=world.cluster, broker_id=2).delete()
    found = load(world)
    assert (line(found, 2).replicas.found, line(found, 2).disk.found) == (None, None)
    assert line(found, 1).replicas.found is not None
    assert figures_of(found.summary) == ["5", "5", "1"]


def test_found__a_directory_with_an_error__leaves_its_brokers_bytes_unknown(world: World, ended: ChangeRequest) -> None:
    BrokerWeights.objects.filter(cluster=world.cluster, broker_id=4).update(
        dirs=[directory("/data/a"), {**directory("/data/b"), "error": "offline"}]
    )
    found = load(world)
    assert line(found, 4).disk.found is None
    assert line(found, 4).replicas.found is not None
    assert line(found, 5).disk.found == BrokerWeights.objects.get(cluster=world.cluster, broker_id=5).replica_bytes


def test_found__without_a_stored_plan__there_are_no_bars(world: World, ended: ChangeRequest) -> None:
    PlanReport.objects.all().delete()
    runs = {run.kind: run for run in CollectorRun.objects.filter(cluster=world.cluster)}
    assert load_found_brokers(world.change(), runs, world.clock, world.clock, everything=False) is None


def test_found__takes_three_queries(world: World, ended: ChangeRequest) -> None:
    change, run = world.change(), world.run()
    runs = {each.kind: each for each in CollectorRun.objects.filter(cluster=world.cluster)}
    with CaptureQueriesContext(connection) as queries:
        load_found_brokers(change, runs, run.ended_at, world.clock, everything=False)
    assert len(queries) == 3
