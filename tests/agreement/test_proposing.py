"""A drain and an explicit assignment, proposed in the wizard for a real cluster; Kafka's own tool reads the plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.domain.problem import ProblemCode
from kafkadash.observe.models import Kind, TopicState
from kafkadash.reassign.checks import plan_rows
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.reassign.stored import Wizard, kafka_json

READ = (Kind.METADATA, Kind.REASSIGNMENTS, Kind.QUORUM, Kind.LOG_DIRS, Kind.CONFIGS)
# The disks of the machine that runs this may be fuller than a broker's should be.
LIMITS = {"disk_limit": "100"}


def test_a_drain__drafted_planned_and_submitted__is_what_kafkas_tool_takes(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    operator: User,
    client_of: Callable[[User], Client],
    tools: Tools,
    tmp_path: Path,
) -> None:
    topic = make_topic([[3, 1], [1, 2], [2, 3]], mib=3)
    for kind in READ:
        refresh(kind)
    # The cluster is shared: topics of other tests have replicas on all three brokers, which leaves no room to drain.
    TopicState.objects.filter(cluster=cluster).exclude(name=topic).delete()
    wizard = Wizard(client_of(operator)).begins(cluster, "drain", brokers="3")
    wizard.limits(**LIMITS)
    change = wizard.plans()
    assert change.job is not None
    assert (change.job.error, (change.job.result or {}).get("problems")) == ("", [])
    moved = {row.partition: row.target for row in plan_rows(str(change.artifact_id)) if row.topic == topic}
    assert {partition: set(target) for partition, target in moved.items()} == {0: {1, 2}, 2: {1, 2}}
    refresh(Kind.METADATA)
    refresh(Kind.REASSIGNMENTS)
    wizard.submits("Drain broker 3", "Its disk is failing.")
    assert wizard.change.state == RequestState.PROPOSED
    file = tmp_path / "plan.json"
    file.write_bytes(wizard.client.get(f"/changes/{wizard.number}/kafka.json").content)
    assert {line for line in tools.verify(file) if topic in line and "is still in progress" in line} == set()


def test_an_explicit_assignment__planned__names_partitions_that_are_not_there_with_their_lines(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    operator: User,
    client_of: Callable[[User], Client],
) -> None:
    topic = make_topic([[3, 1], [1, 2]])
    for kind in READ:
        refresh(kind)
    wizard = Wizard(client_of(operator)).begins(cluster, "explicit")
    wizard.sends("what", {"text": kafka_json((topic, 0, [2, 1]), (topic, 7, [1, 2]), ("nowhere", 0, [1, 99]))})
    wizard.limits(**LIMITS)
    change = wizard.plans()
    assert change.artifact_id is None
    assert change.job is not None
    assert change.job.result is not None
    assert [(p["line"], p["code"]) for p in change.job.result["problems"]] == [
        (3, ProblemCode.UNKNOWN_PARTITION),
        (4, ProblemCode.UNKNOWN_TOPIC),
    ]
    wizard.sends("what", {"text": kafka_json((topic, 0, [2, 1]))})
    change = wizard.plans()
    assert [(row.current, row.target) for row in plan_rows(str(change.artifact_id))] == [((3, 1), (2, 1))]
