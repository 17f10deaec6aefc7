"""A cluster for planning, read from stored rows.

What the pipeline knows of rates reaches the planner, and pages say which it used, how old, and what is missing.

The checks of a request, from what is stored about its cluster.
"""

from __future__ import annotations

import json
import re
import time
import zlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from kafkadash.changes.checks import CheckResult, CheckSubject
from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.changes.plan import PartitionMove, canonical_bytes, hash_artifact
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded, message_text
from kafkadash.history.models import Workload
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    CollectorKind,
    CollectorRun,
    ReassignmentSnapshot,
    TopicState,
)
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.models import PlanReport
from kafkadash.planning.options import format_rate
from kafkadash.planning.preconditions import MovingPartitions
from kafkadash.planning.problem_codes import CheckErrorCode, CheckTitle
from kafkadash.planning.solver.workload import FRESH, WorkloadUsed
from kafkadash.planning.stored_checks import run_stored_checks
from kafkadash.planning.stored_topology import WorkloadModel, load_topology, load_workloads, model_of
from kafkadash.planning.topology import LogDirectory, PlannedBroker
from kafkadash.planning.window import model_words, used_words
from tests.factories import (
    GB,
    NOW,
    BrokerFactory,
    BrokerWeightsFactory,
    ClusterFactory,
    ReassignmentFactory,
    TopicFactory,
    directory,
    watched,
)
from tests.history_rows import modelled
from tests.pages.conftest import Page
from tests.planning.stored import Wizard, stored, text

pytestmark = pytest.mark.django_db


def weigh(cluster: Cluster, broker: int, sizes: dict[str, dict[str, int]], **changes: Any) -> None:
    data = zlib.compress(json.dumps(sizes).encode())
    BrokerWeights.objects.filter(cluster=cluster, broker_id=broker).update(data=data, **changes)


def orders(cluster: Cluster, **changes: Any) -> TopicState:
    packed = [[0, 1, 5, [1, 2, 3], [1, 2, 3], []], [1, None, 5, [3, 1], [2, 3], [1]]]
    return TopicFactory.create(
        cluster=cluster, **{"name": "orders", "topic_id": "id-1", "partitions": packed} | changes
    )


def test_partitions__have_their_leaders_size_and_say_whether_they_move() -> None:
    cluster = watched("prod")
    orders(cluster)
    weigh(cluster, 1, {"orders": {"0": 5 * GB}})
    weigh(cluster, 2, {"orders": {"0": 9 * GB}})
    weigh(cluster, 3, {"orders": {"0": 9 * GB, "1": 2 * GB}})
    ReassignmentFactory.create(cluster=cluster, topic="orders", topic_id="id-1", partition=1, adding=[3], removing=[2])
    loaded = load_topology(cluster)
    topic = loaded.topology.topics["orders"]
    assert (topic.id, topic.min_isr, topic.internal) == ("id-1", 2, False)
    first, second = topic.partitions
    assert (first.replicas, first.isr, first.leader, first.size_bytes, first.moving) == (
        (1, 2, 3),
        (1, 2, 3),
        1,
        5 * GB,
        False,
    )
    assert (second.leader, second.size_bytes, second.moving) == (None, 2 * GB, True)
    assert loaded.seen.moving == {("orders", 1): MovingPartitions(frozenset({3}), frozenset({2}))}
    assert loaded.topology.kafka_id == cluster.kafka_id


def test_what_was_not_read__is_not_known() -> None:
    cluster = watched("prod")
    orders(cluster, min_isr=None, topic_id="orders", under_min_isr=None, at_min_isr=None)
    for broker in (1, 2, 3):
        weigh(cluster, broker, {})
    topic = load_topology(cluster).topology.topics["orders"]
    assert [p.size_bytes for p in topic.partitions] == [None, None]
    assert (topic.id, topic.min_isr, topic.partitions[0].bytes_in_per_s) == ("", None, None)


def test_brokers__gone_ones_are_not_alive_and_failed_directories_take_nothing() -> None:
    cluster = watched("prod")
    BrokerFactory.create(cluster=cluster, broker_id=9, rack=None, gone_at=NOW)
    BrokerFactory.create(cluster=cluster, broker_id=8, rack="", fenced=True)
    dirs = [directory("/a"), directory("/b", None, None, error="failed"), directory("/c", cordoned=None)]
    weigh(cluster, 1, {}, dirs=dirs)
    brokers = load_topology(cluster).topology.brokers
    assert brokers[9] == PlannedBroker(9, None, alive=False)
    assert (brokers[8].rack, brokers[8].fenced, brokers[8].alive, brokers[8].dirs) == ("", True, True, ())
    assert brokers[1].dirs == (
        LogDirectory("/a", 2000 * GB, 667 * GB),
        LogDirectory("/b", None, None, cordoned=True),
        LogDirectory("/c", 2000 * GB, 667 * GB),
    )


def test_some_topics__are_read_alone_and_kept_until_they_change() -> None:
    cluster = watched("prod")
    topic = orders(cluster)
    orders(cluster, name="other", topic_id="id-2")
    assert set(load_topology(cluster, ["orders", "gone"]).topology.topics) == {"orders"}
    with CaptureQueriesContext(
        connection,
    ) as again:
        load_topology(cluster, ["orders"])
    assert len(again) == 6
    topic.partitions, topic.shape = [[0, 2, 6, [2, 3], [2], []]], "1" * 32
    topic.save()
    assert load_topology(cluster, ["orders"]).topology.topics["orders"].partitions[0].replicas == (2, 3)


def test_queries__are_eight_at_most() -> None:
    cluster = watched("prod")
    orders(cluster)
    modelled(cluster, "orders", NOW)
    for wanted in (None, ["orders"]):
        with CaptureQueriesContext(connection) as seen:
            load_topology(cluster, wanted)
        assert len(seen) <= 8


def test_age__is_that_of_the_oldest_facts_and_none_if_some_were_never_read() -> None:
    cluster = watched("prod")
    orders(cluster)
    assert load_topology(cluster).facts_at == NOW - timedelta(seconds=3)
    old = NOW - timedelta(minutes=9)
    BrokerWeights.objects.filter(cluster=cluster, broker_id=2).update(taken_at=old)
    assert load_topology(cluster).facts_at == old
    assert load_topology(cluster).seen.log_dirs.taken_at == old
    CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.REASSIGNMENTS).update(succeeded_at=None)
    assert load_topology(cluster).facts_at is None


def test_a_cluster_that_nobody_looked_at__is_empty_and_says_so() -> None:
    loaded = load_topology(ClusterFactory.create())
    assert (loaded.topology.brokers, loaded.topology.topics, loaded.facts_at) == ({}, {}, None)


def test_ended_reassignments__move_nothing() -> None:
    cluster = watched("prod")
    orders(cluster)
    ReassignmentFactory.create(cluster=cluster, topic="orders", partition=0, outcome="completed", ended_at=NOW)
    assert not ReassignmentSnapshot.objects.filter(outcome="running").exists()
    assert load_topology(cluster).seen.moving == {}


def test_sizes__are_read_again_after_the_next_refresh_only() -> None:
    cluster = watched("prod")
    orders(cluster)
    weigh(cluster, 1, {"orders": {"0": 5}})

    def size() -> int | None:
        return load_topology(cluster, ["orders"]).topology.topics["orders"].partitions[0].size_bytes

    assert size() == 5
    weigh(cluster, 1, {"orders": {"0": 7}})
    assert size() == 5
    CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.LOG_DIRS).update(seq=8)
    assert size() == 7


def test_fenced_brokers__are_not_asked_so_their_age_says_nothing() -> None:
    cluster = watched("prod")
    orders(cluster)
    BrokerWeights.objects.filter(cluster=cluster, broker_id=2).update(taken_at=NOW - timedelta(days=1))
    BrokerState.objects.filter(cluster=cluster, broker_id=2).update(fenced=True)
    assert load_topology(cluster).facts_at == NOW - timedelta(seconds=3)


def test_a_broker_that_does_not_answer__is_given_no_replicas() -> None:
    """The controllers have it alive still."""
    cluster = watched("prod")
    BrokerState.objects.filter(cluster=cluster, broker_id=2).update(silent_since=NOW)
    broker = load_topology(cluster).topology.brokers[2]
    assert (broker.alive, broker.fenced, broker.silent, broker.up, broker.eligible) == (True, False, True, False, False)


MB = 1e6


def rates(cluster: Cluster, *topics: str) -> dict[str, list[float | None]]:
    found = load_topology(cluster, topics or None).topology.topics
    return {name: [p.bytes_in_per_s for p in topic.partitions] for name, topic in found.items()}


def test_a_fresh_model_gives_rates_and_what_it_does_not_know_stays_unknown(demo: Cluster) -> None:
    modelled(demo, "orders", timezone.now() - timedelta(hours=3), rates=[3 * MB, 0.0, None])
    expected = {"orders": [3 * MB, 0.0, None, None, None], "clicks": [None, None]}
    assert rates(demo) == expected
    assert rates(demo, "orders", "clicks") == expected
    sizes = {p.size_bytes for p in load_topology(demo).topology.topics["orders"].partitions}
    assert sizes == {3 * 10**9}, "sizes are those of the log directories, not the model's"


def test_what_is_too_old_or_of_another_form_is_not_used(demo: Cluster) -> None:
    now = timezone.now()
    modelled(demo, "orders", now - FRESH - timedelta(minutes=1), rates=[3 * MB])
    modelled(demo, "clicks", now, rates=[3 * MB])
    Workload.objects.filter(topic="clicks").update(format=1)
    assert rates(demo) == rates(demo, "orders", "clicks") == {"orders": [None] * 5, "clicks": [None] * 2}


def test_of_another_cluster_nothing_is_taken(demo: Cluster) -> None:
    modelled(stored("other"), "orders", timezone.now(), rates=[3 * MB])
    assert rates(demo, "orders") == {"orders": [None] * 5}


def test_checks_read_it_once_until_there_is_another(demo: Cluster) -> None:
    now = timezone.now()
    row = modelled(demo, "orders", now, rates=[1.0], version=1)
    assert load_workloads(demo, ["orders"], now)["orders"].partitions[0].typical == 1.0
    with CaptureQueriesContext(connection) as again:
        load_workloads(demo, ["orders"], now)
    assert len(again) == 1
    row.delete()
    modelled(demo, "orders", now, rates=[2.0], version=2)
    assert load_workloads(demo, ["orders"], now)["orders"].partitions[0].typical == 2.0


def test_the_plan_says_which_rates_it_was_made_with(wizard: Wizard, demo: Cluster) -> None:
    to_at = timezone.now() - timedelta(hours=3)
    modelled(demo, "orders", to_at, rates=[3 * MB] * 4)
    wizard.begins(demo, "drain").drains(3)
    page = text(wizard.sees("limits"))
    for figure in ("1 topic", "3 h ago"):
        assert figure in page
    wizard.limits()
    wizard.plans()
    used = PlanReport.objects.get(request=wizard.number).impact["workload"]
    assert (used["known"], used["unknown"], used["to_at"]) == (3, 2, to_at.isoformat())
    assert (used["typical"], used["peak"], used["grows"]) == (9 * MB, 18 * MB, 3e9)
    review = Page(wizard.client.get(f"/changes/{wizard.number}/").content.decode())
    for figure in ("3 partitions", "3 h ago", "2 partitions", "9.0 MB/s", "unknown"):
        assert figure in review.words("window")


def test_a_throttle_below_what_the_pipeline_saw_is_asked_for_twice(wizard: Wizard, demo: Cluster) -> None:
    for topic, number in (("orders", 5), ("clicks", 2)):
        modelled(demo, topic, timezone.now(), rates=[30 * MB] * number)
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    answer = wizard.limits(throttle="25")
    form = answer.context["form"]
    assert form.errors.keys() == {"confirmed"}
    lowest = format_rate(form.cleaned_data["throttle_min"])
    inbound = f"{form.inbound / MB:.1f}"
    assert message_text(ReassignmentErrorCode.NEVER_FINISHES, rate=lowest, inbound=inbound) in text(
        answer.content.decode()
    )
    assert 'name="confirmed"' in answer.content.decode()


def test_without_a_model_that_is_said(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    none_yet = model_words(WorkloadModel(0, None, None, None), MEASURED_AT)
    assert none_yet in text(wizard.sees("limits"))
    wizard.limits()
    wizard.plans()
    page = text(wizard.client.get(f"/changes/{wizard.number}/").content.decode())
    assert used_words(WorkloadUsed(0, 5), MEASURED_AT) in page


MEASURED_AT = datetime(2026, 3, 10, 13, tzinfo=UTC)
FROM, TO = datetime(2026, 3, 3, 10, tzinfo=UTC), datetime(2026, 3, 10, 10, tzinfo=UTC)


def figures(words: str) -> list[str]:
    """Moments, and numbers with their units."""
    return re.findall(r"\d+ Mar \d\d:\d\d|\d[\d.]* [\w/]+", words)


def test_words_of_what_there_is(demo: Cluster) -> None:
    assert figures(model_words(WorkloadModel(0, None, None, TO), MEASURED_AT)) == ["10 Mar 10:00"]
    modelled(demo, "orders", TO, rates=[1.0])
    modelled(demo, "clicks", TO, rates=[1.0], days=2)
    assert figures(model_words(model_of(demo, MEASURED_AT), MEASURED_AT)) == [
        "2 topics",
        "3 Mar 10:00",
        "10 Mar 10:00",
        "3 h",
    ]
    assert model_of(demo, MEASURED_AT + FRESH) == WorkloadModel(0, None, None, TO)


def test_words_of_what_was_used() -> None:
    used = WorkloadUsed(12, 0, FROM.isoformat(), TO.isoformat(), 4.1 * MB, 9 * MB, -2e9)
    told = figures(used_words(used, MEASURED_AT))
    assert told == ["12 partitions", "3 Mar 10:00", "10 Mar 10:00", "3 h", "4.1 MB/s", "9.0 MB/s", "2.0 GB"]
    grows = replace(used, grows=2e9)
    assert figures(used_words(grows, MEASURED_AT)) == told
    assert used_words(grows, MEASURED_AT) != used_words(used, MEASURED_AT)
    assert used_words(None, MEASURED_AT) == used_words(WorkloadUsed(0, 0), MEASURED_AT) == ""


OPTIONS = {"throttle": 60_000_000, "throttle_min": 20_000_000, "throttle_max": 80_000_000, "change_rf": False}


def asked(cluster: Cluster, rows: list[PartitionMove]) -> ChangeRequest:
    data = canonical_bytes(rows)
    artifact = PlanArtifact.objects.create(sha256=hash_artifact(data), data=zlib.compress(data), rows=len(rows))
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
    change = asked(cluster, [PartitionMove("orders", "id-1", 0, (1, 2, 3), (1, 2, 6))])
    result = run_stored_checks(change, NOW)
    assert not result.unknown
    assert "throttle" not in {check.code for check in result.checks}
    assert not result.failed(CheckSubject.CONTENT)
    assert not result.failed(CheckSubject.HEALTH)
    assert result.facts_at == NOW - timedelta(seconds=3)
    disk = next(check for check in result.checks if check.code == "disk")
    assert (disk.title, disk.figure) == (coded(CheckTitle.DISK_BELOW_LIMIT, limit=80.0), "33.6 %, broker 6")


def test_a_partition_that_changed_and_one_that_moves__are_named(cluster: Cluster) -> None:
    change = asked(cluster, [PartitionMove("orders", "id-1", 0, (1, 2, 3), (1, 2, 6))])
    TopicState.objects.filter(cluster=cluster, name="orders").update(
        partitions=[[0, 1, 5, [2, 1, 3], [1, 2, 3], []]], shape="2" * 32
    )
    ReassignmentFactory.create(cluster=cluster, topic="orders", topic_id="id-1", partition=0, adding=[5], removing=[])
    assert [check.problems for check in run_stored_checks(change, NOW).failed(CheckSubject.CONTENT)] == [
        (coded(CheckErrorCode.OTHER_THAN_PLANNED, row="orders-0", replicas=(2, 1, 3), expected=(1, 2, 3)),),
        (coded(CheckErrorCode.MOVING_BY_OTHERS, row="orders-0", adding=(5,), removing=()),),
    ]


def test_old_facts__make_content_unknown(cluster: Cluster) -> None:
    change = asked(cluster, [PartitionMove("orders", "id-1", 0, (1, 2, 3), (1, 2, 6))])
    result = run_stored_checks(change, NOW + timedelta(hours=1))
    assert [c.code for c in result.of(CheckSubject.CONTENT) if c.result is CheckResult.UNKNOWN] == [
        "as_planned",
        "not_moving",
    ]


def test_a_request_without_a_plan__has_nothing_to_check(cluster: Cluster) -> None:
    change = ChangeRequest(cluster=cluster, kind="reassignment")
    with pytest.raises(ValueError, match="no plan to check"):
        run_stored_checks(change, NOW)


def test_fifty_thousand_rows__are_checked_in_a_second_once_they_are_known(cluster: Cluster) -> None:
    packed = [[n, 1, 5, [1, 2, 3], [1, 2, 3], []] for n in range(100)]
    TopicFactory.create_batch(500, cluster=cluster, partitions=packed, name="x")
    topics = list(TopicState.objects.filter(cluster=cluster, name="x"))
    for number, topic in enumerate(topics):
        topic.name = f"many-{number}"
    TopicState.objects.bulk_update(topics, ["name"], batch_size=100)
    sizes = {topic.name: {str(n): GB for n in range(100)} for topic in topics}
    BrokerWeights.objects.filter(cluster=cluster, broker_id=1).update(data=zlib.compress(json.dumps(sizes).encode()))
    rows = [PartitionMove(t.name, t.topic_id, n, (1, 2, 3), (1, 2, 6)) for t in topics for n in range(100)]
    change = asked(cluster, rows)
    assert run_stored_checks(change, NOW).checks[0].figure == "50,000 of 50,000"
    began = time.process_time()
    with CaptureQueriesContext(connection) as queries:
        result = run_stored_checks(change, NOW)
    took = time.process_time() - began
    assert took < 2
    assert len(queries) <= 8
    assert result.checks[0].figure == "50,000 of 50,000"


def test_worse_spread_over_racks__is_accepted_by_what_the_digest_covers_alone(cluster: Cluster) -> None:
    """Whoever can write into the database slips it into what was asked, not into what was approved."""
    for broker, rack in {1: "a", 2: "b", 3: "c", 4: "a"}.items():
        BrokerState.objects.filter(cluster=cluster, broker_id=broker).update(rack=rack)
    change = asked(cluster, [PartitionMove("orders", "id-1", 0, (1, 2, 3), (1, 2, 4))])
    digest = change.options

    def spread() -> CheckResult:
        return next(check.result for check in run_stored_checks(change, NOW).checks if check.code == "rack_spread")

    for slipped_in in ({}, {"accept_fewer_racks": True}, {"ignore_racks": True}, {"mode": "rollback", "of": 7}):
        change.input = {"mode": "explicit", "disk_limit": 0.8, **slipped_in}
        assert spread() is CheckResult.FAILED, slipped_in
    change.options = {**digest, "may_lose_racks": True}
    assert spread() is CheckResult.PASSED
