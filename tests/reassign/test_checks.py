"""The checks of a request, from what is stored about its cluster."""

from __future__ import annotations

import json
import time
import zlib
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.clusters.models import Cluster
from kafkadash.domain.checks import About, Result
from kafkadash.domain.plan import Row, canonical, sha256
from kafkadash.observe.models import BrokerState, BrokerWeights, TopicState
from kafkadash.reassign.checks import checks
from tests.factories import GB, NOW, BrokerFactory, BrokerWeightsFactory, ReassignmentFactory, TopicFactory, watched

pytestmark = pytest.mark.django_db
OPTIONS = {"throttle": 60_000_000, "throttle_min": 20_000_000, "throttle_max": 80_000_000, "change_rf": False}


def asked(cluster: Cluster, rows: list[Row]) -> ChangeRequest:
    data = canonical(rows)
    artifact = PlanArtifact.objects.create(sha256=sha256(data), data=zlib.compress(data), rows=len(rows))
    return ChangeRequest.objects.create(
        cluster=cluster,
        kind="reassignment",
        artifact=artifact,
        options=OPTIONS,
        input={"mode": "drain", "brokers": [3], "disk_limit": 0.8},
        author_name="alice",
    )


@pytest.fixture
def cluster() -> Cluster:
    own = watched("prod")
    for broker in (4, 5, 6):
        BrokerFactory.create(cluster=own, broker_id=broker)
        BrokerWeightsFactory.create(cluster=own, broker_id=broker, taken_at=NOW - timedelta(seconds=3))
    TopicFactory.create(cluster=own, name="orders", topic_id="id-1", partitions=[[0, 1, 5, [1, 2, 3], [1, 2, 3], []]])
    return own


def test_a_plan_that_fits__passes_everything_and_is_not_asked_what_nobody_measures(cluster: Cluster) -> None:
    change = asked(cluster, [Row("orders", "id-1", 0, (1, 2, 3), (1, 2, 6))])
    result = checks(change, NOW)
    assert not result.unknown
    assert "throttle" not in {check.code for check in result.checks}
    assert not result.failed(About.CONTENT)
    assert not result.failed(About.HEALTH)
    assert result.facts_at == NOW - timedelta(seconds=3)
    disk = next(check for check in result.checks if check.code == "disk")
    assert (disk.title, disk.figure) == ("Disk below 80 % during the move", "33.6 %, broker 6")


def test_a_partition_that_changed_and_one_that_moves__are_named(cluster: Cluster) -> None:
    change = asked(cluster, [Row("orders", "id-1", 0, (1, 2, 3), (1, 2, 6))])
    TopicState.objects.filter(cluster=cluster, name="orders").update(
        partitions=[[0, 1, 5, [2, 1, 3], [1, 2, 3], []]], shape="2" * 32
    )
    ReassignmentFactory.create(cluster=cluster, topic="orders", topic_id="id-1", partition=0, adding=[5], removing=[])
    assert [check.problems for check in checks(change, NOW).failed(About.CONTENT)] == [
        ("orders-0: replicas are 2, 1, 3; the plan expects 1, 2, 3.",),
        ("orders-0 is being reassigned by somebody else (adding 5).",),
    ]


def test_old_facts__make_content_unknown(cluster: Cluster) -> None:
    change = asked(cluster, [Row("orders", "id-1", 0, (1, 2, 3), (1, 2, 6))])
    result = checks(change, NOW + timedelta(hours=1))
    assert [c.code for c in result.of(About.CONTENT) if c.result is Result.UNKNOWN] == ["as_planned", "not_moving"]


def test_a_request_without_a_plan__has_nothing_to_check(cluster: Cluster) -> None:
    change = ChangeRequest(cluster=cluster, kind="reassignment")
    with pytest.raises(ValueError, match="no plan to check"):
        checks(change, NOW)


def test_fifty_thousand_rows__are_checked_in_a_second_once_they_are_known(cluster: Cluster) -> None:
    packed = [[n, 1, 5, [1, 2, 3], [1, 2, 3], []] for n in range(100)]
    TopicFactory.create_batch(500, cluster=cluster, partitions=packed, name="x")
    topics = list(TopicState.objects.filter(cluster=cluster, name="x"))
    for number, topic in enumerate(topics):
        topic.name = f"many-{number}"
    TopicState.objects.bulk_update(topics, ["name"], batch_size=100)
    sizes = {topic.name: {str(n): GB for n in range(100)} for topic in topics}
    BrokerWeights.objects.filter(cluster=cluster, broker_id=1).update(data=zlib.compress(json.dumps(sizes).encode()))
    rows = [Row(t.name, t.topic_id, n, (1, 2, 3), (1, 2, 6)) for t in topics for n in range(100)]
    change = asked(cluster, rows)
    assert checks(change, NOW).checks[0].figure == "50,000 of 50,000"
    began = time.process_time()
    with CaptureQueriesContext(connection) as queries:
        result = checks(change, NOW)
    took = time.process_time() - began
    assert took < 2
    assert len(queries) <= 6
    assert result.checks[0].figure == "50,000 of 50,000"


def test_worse_spread_over_racks__is_accepted_by_what_the_digest_covers_alone(cluster: Cluster) -> None:
    """Whoever can write into the database slips it into what was asked, not into what was approved."""
    for broker, rack in {1: "a", 2: "b", 3: "c", 4: "a"}.items():
        BrokerState.objects.filter(cluster=cluster, broker_id=broker).update(rack=rack)
    change = asked(cluster, [Row("orders", "id-1", 0, (1, 2, 3), (1, 2, 4))])
    digest = change.options

    def spread() -> Result:
        return next(check.result for check in checks(change, NOW).checks if check.code == "rack_spread")

    for slipped_in in ({}, {"accept_fewer_racks": True}, {"ignore_racks": True}, {"mode": "rollback", "of": 7}):
        change.input = {"mode": "explicit", "disk_limit": 0.8, **slipped_in}
        assert spread() is Result.FAILED, slipped_in
    change.options = {**digest, "may_lose_racks": True}
    assert spread() is Result.PASSED
