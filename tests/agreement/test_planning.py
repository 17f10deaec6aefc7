"""A drain planned from collected rows, run by Kafka's own tool; and what that tool makes of files that are refused."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.clusters.models import Cluster
from kafkadash.domain.checker import Asked, check
from kafkadash.domain.checks import About, Result
from kafkadash.domain.impact_of import impact_of
from kafkadash.domain.kafka_json import plan_json, read_reassignment
from kafkadash.domain.plan import Row, canonical, sha256
from kafkadash.domain.planner.plan import plan as planned_by
from kafkadash.domain.planner.request import DRAIN, PlanRequest
from kafkadash.domain.problem import ProblemCode
from kafkadash.observe.models import Kind
from kafkadash.playground.cluster import Playground
from kafkadash.reassign.checks import checks
from kafkadash.reassign.topology import load_topology
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.waiting import wait_until

READ = (Kind.METADATA, Kind.REASSIGNMENTS, Kind.QUORUM, Kind.LOG_DIRS, Kind.CONFIGS)


def requested(cluster: Cluster, rows: Sequence[Row]) -> ChangeRequest:
    """The drain of broker 3 as a change request with these rows."""
    data = canonical(rows)
    artifact = PlanArtifact.objects.create(sha256=sha256(data), data=zlib.compress(data), rows=len(rows))
    options = {"throttle": 60_000_000, "throttle_min": 1_000_000, "throttle_max": 80_000_000}
    asked = {"mode": "drain", "brokers": [3], "disk_limit": 0.99}
    return ChangeRequest.objects.create(
        cluster=cluster, kind="reassignment", artifact=artifact, options=options, input=asked, author_name="alice"
    )


def test_a_drain__is_what_kafka_makes_of_it_and_the_checks_follow_the_cluster(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools, tmp_path: Path
) -> None:
    topic = make_topic([[3, 1], [1, 3], [2, 3], [1, 2]], mib=24)
    for kind in READ:
        refresh(kind)
    loaded = load_topology(cluster, [topic])
    assert loaded.facts_at is not None
    placed = tools.topics()[topic]
    assert {p.partition: p.replicas for p in loaded.topology.topics[topic].partitions} == {
        number: p.replicas for number, p in placed.partitions.items()
    }
    assert all((p.size_bytes or 0) > 100_000 for p in loaded.topology.topics[topic].partitions)

    planned = planned_by(loaded.topology, PlanRequest(DRAIN, (3,), disk_limit=0.99))
    assert planned.problems == ()
    assert {row.partition: row.target for row in planned.rows} == {0: (2, 1), 1: (1, 2), 2: (2, 1)}
    impact = impact_of(planned.rows, loaded.topology, disk_limit=0.99)
    rules = check(planned.rows, loaded.topology, Asked("drain", frozenset({3}), disk_limit=0.99), impact)
    assert [rule for rule in rules if not rule.passed] == []
    change = requested(cluster, planned.rows)
    result = checks(change, datetime.now(UTC))
    assert {c.code for c in result.checks if c.result is not Result.PASSED} == set()

    mover.start(topic, [3, 2], throttle=100_000)
    refresh(Kind.METADATA)
    refresh(Kind.REASSIGNMENTS)
    failed = checks(change, datetime.now(UTC)).failed(About.CONTENT)
    assert [c.problems for c in failed] == [
        (f"{topic}-0 is being reassigned by somebody else (adding 2, removing 1).",)
    ]
    refused = planned_by(load_topology(cluster, [topic]).topology, PlanRequest(DRAIN, (3,)))
    assert [p.code for p in refused.problems] == [ProblemCode.ALREADY_MOVING]
    mover.cancel(topic)

    plan = tmp_path / "plan.json"
    plan.write_bytes(plan_json(planned.rows))
    tools.run("reassign", "--reassignment-json-file", str(plan), "--execute")
    verify = ("--reassignment-json-file", str(plan), "--verify")
    wait_until(lambda: tools.run("reassign", *verify).count("is completed") == 3, "the plan is done", 30)
    refresh(Kind.METADATA)
    refresh(Kind.REASSIGNMENTS)
    after = load_topology(cluster, [topic]).topology
    assert all(3 not in p.replicas for p in after.topics[topic].partitions)
    again = planned_by(after, PlanRequest(DRAIN, (3,)))
    assert (again.rows, [p.code for p in again.notices]) == ((), [ProblemCode.NOTHING_TO_DO])
    first = checks(change, datetime.now(UTC)).failed(About.CONTENT)[0].problems[0]
    assert first == f"{topic}-0: replicas are 2, 1 already, as the plan asks; it expects 3, 1 before."


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"version":2,"partitions":[{"topic":"TOPIC","partition":0,"replicas":[1]}]}',
        '{"version":1,"partitions":[]}',
        '{"version":1,"partitions":[{"topic":"TOPIC","partition":0,"replicas":[]}]}',
        '{"version":1,"partitions":[{"topic":"TOPIC","partition":0,"replicas":[1,1]}]}',
        '{"version":1,"partitions":[{"topic":"TOPIC","partition":0,"replicas":[1],"log_dirs":["any","any"]}]}',
        '{"version":1,"partitions":[{"topic":"TOPIC","partition":0}]}',
        '{"version":1,"partitions":[{"topic":"TOPIC","partition":0,"replicas":[1.5]}]}',
        (
            '{"version":1,"partitions":[{"topic":"TOPIC","partition":0,"replicas":[1]},'
            '{"topic":"TOPIC","partition":0,"replicas":[2]}]}'
        ),
    ],
)
def test_a_file_that_is_refused__is_refused_by_kafkas_tool_too(
    content: str, playground: Playground, tmp_path: Path
) -> None:
    text = content.replace("TOPIC", "no-such-topic")
    assert read_reassignment(text).problems
    file = tmp_path / "bad.json"
    file.write_text(text, encoding="utf-8")
    done = playground.tool("reassign", ("--reassignment-json-file", str(file), "--execute"))
    assert "no-such-topic does not exist" not in done.stdout + done.stderr
    assert done.returncode != 0


def test_a_file_without_version_and_with_other_fields__is_read_by_kafkas_tool_too(
    make_topic: TopicMaker, tools: Tools, tmp_path: Path
) -> None:
    topic = make_topic([[1, 2]])
    text = f'{{"by":"x","partitions":[{{"topic":"{topic}","partition":0,"replicas":[1,2],"note":1}}]}}'
    parsed = read_reassignment(text)
    assert (parsed.problems, len(parsed.rows), len(parsed.notices)) == ([], 1, 3)
    file = tmp_path / "odd.json"
    file.write_text(text, encoding="utf-8")
    assert "is completed" in tools.run("reassign", "--reassignment-json-file", str(file), "--verify")
