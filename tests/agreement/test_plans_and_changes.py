"""A drain planned from collected rows, run by Kafka's own tool; and what that tool makes of files that are refused.

The files of a plan, given to ``kafka-reassign-partitions`` as they are downloaded.

A drain and an explicit assignment, proposed in the wizard for a real cluster; Kafka's own tool reads the plan.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.checks import CheckResult, CheckSubject
from kafkadash.changes.models import ChangeRequest, PlanArtifact, RequestState
from kafkadash.changes.plan import PartitionMove, PlanErrorCode, canonical_bytes, hash_artifact
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.monitoring.models import CollectorKind, ReassignmentSnapshot, TopicState
from kafkadash.planning.checker import CheckRequest, check
from kafkadash.planning.impact import impact_of
from kafkadash.planning.kafka_json import plan_json, read_reassignment
from kafkadash.planning.problem_codes import CheckErrorCode
from kafkadash.planning.solver.plan import plan as planned_by
from kafkadash.planning.solver.request import DRAIN, PlanRequest
from kafkadash.planning.stored_checks import plan_rows, run_stored_checks
from kafkadash.planning.stored_topology import load_topology
from kafkadash.planning.topology import read_topology
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.runs import HELD_MIB, SLOW
from tests.agreement.tools import Tools
from tests.pages.conftest import Page, figures_of
from tests.planning.plans import planned, world
from tests.planning.stored import Wizard, kafka_json
from tests.planning.test_planning_commands import Desk
from tests.waiting import wait_until

READ = (
    CollectorKind.METADATA,
    CollectorKind.REASSIGNMENTS,
    CollectorKind.QUORUM,
    CollectorKind.LOG_DIRS,
    CollectorKind.CONFIGS,
    CollectorKind.VERSIONS,
)


def requested(cluster: Cluster, rows: Sequence[PartitionMove]) -> ChangeRequest:
    """The drain of broker 3 as a change request with these rows."""
    data = canonical_bytes(rows)
    artifact = PlanArtifact.objects.create(sha256=hash_artifact(data), data=zlib.compress(data), rows=len(rows))
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
    rules = check(planned.rows, loaded.topology, CheckRequest("drain", frozenset({3}), disk_limit=0.99), impact)
    assert [rule for rule in rules if not rule.passed] == []
    change = requested(cluster, planned.rows)
    result = run_stored_checks(change, datetime.now(UTC))
    assert {c.code for c in result.checks if c.result is not CheckResult.PASSED} == set()

    mover.start(topic, [3, 2], throttle=20_000)
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.REASSIGNMENTS)
    failed = run_stored_checks(change, datetime.now(UTC)).failed(CheckSubject.CONTENT)
    moving = coded(CheckErrorCode.MOVING_BY_OTHERS, row=f"{topic}-0", adding=(2,), removing=(1,))
    assert [c.problems for c in failed] == [(moving,)]
    refused = planned_by(load_topology(cluster, [topic]).topology, PlanRequest(DRAIN, (3,)))
    assert [p.code for p in refused.problems] == [PlanErrorCode.MOVES_ALREADY]
    mover.cancel(topic)

    plan = tmp_path / "plan.json"
    plan.write_bytes(plan_json(planned.rows))
    tools.run("reassign", "--reassignment-json-file", str(plan), "--execute")
    verify = ("--reassignment-json-file", str(plan), "--verify")
    wait_until(lambda: tools.run("reassign", *verify).count("is completed") == 3, "the plan is done", 30)
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.REASSIGNMENTS)
    after = load_topology(cluster, [topic]).topology
    assert all(3 not in p.replicas for p in after.topics[topic].partitions)
    again = planned_by(after, PlanRequest(DRAIN, (3,)))
    assert (again.rows, [p.code for p in again.notices]) == ((), [PlanErrorCode.NOTHING_TO_DRAIN])
    first = run_stored_checks(change, datetime.now(UTC)).failed(CheckSubject.CONTENT)[0].problems[0]
    assert first == coded(CheckErrorCode.AS_PLANNED_ALREADY, row=f"{topic}-0", replicas=(2, 1), expected=(3, 1))


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
    content: str, playground: KafkaPlayground, tmp_path: Path
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


@pytest.fixture
def download(viewer: User, client_of: Callable[[User], Client], tmp_path: Path) -> Callable[[int, str], str]:
    """Saves a file of a change as a browser does; returns its path."""
    client = client_of(viewer)

    def save(number: int, file: str) -> str:
        response = client.get(f"/changes/{number}/{file}")
        assert response.status_code == 200
        name = re.findall('filename="(.*?)"', response["Content-Disposition"])[0]
        (tmp_path / name).write_bytes(response.content)
        return str(tmp_path / name)

    return save


def test_kafkas_tool_reads_both_files_and_the_second_brings_the_original_order_back(
    cluster: Cluster, make_topic: TopicMaker, tools: Tools, download: Callable[[int, str], str]
) -> None:
    placed = [(1, 2), (2, 1)]
    topic = make_topic(placed, mib=1)
    topology = world({topic: placed})
    rows = (PartitionMove(topic, "", 0, (1, 2), (3, 2)), PartitionMove(topic, "", 1, (2, 1), (3, 1)))
    number = planned(cluster, topology, rows).pk
    plan, back = download(number, "kafka.json"), download(number, "rollback.json")

    assert f"{topic}-1, but replica set is 2,1 rather than 3,1" in verify(tools, plan)
    assert "is completed" in verify(tools, back)

    tools.run("reassign", "--reassignment-json-file", plan, "--execute")
    wait_until(lambda: verify(tools, plan).count("is completed") == 2, "the plan is done", 30)

    tools.run("reassign", "--reassignment-json-file", back, "--execute")
    wait_until(lambda: verify(tools, back).count("is completed") == 2, "the way back is done", 30)
    described = tools.topics()[topic].partitions
    assert {n: p.replicas for n, p in described.items()} == {0: (1, 2), 1: (2, 1)}


def test_kafkas_tool_runs_what_the_command_plans_of_the_exported_topology(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, tmp_path: Path
) -> None:
    topic = make_topic([(1, 2), (2, 1), (1, 3), (3, 1), (2, 3)], mib=1)
    desk = Desk(tmp_path)
    for mode, *words in (("drain", "--brokers", "3"), ("set-rf", "--rf", "3"), ("set-rf", "--rf", "1"), ("balance",)):
        exported(desk, cluster, refresh)
        assert desk.plans(mode, *words, "--topics", topic)[0] == 0
        plan, report = (str(desk.path(name)) for name in ("plan.json", "report.json"))
        code, judged, _ = desk.checks(plan, "--report", report)
        assert code == 0, judged
        if not desk.plan:  # Kafka's tool refuses a file that asks for nothing
            continue
        tools.run("reassign", "--reassignment-json-file", plan, "--execute")
        moving = len(desk.plan)
        wait_until(lambda: verify(tools, plan).count("is completed") == moving, f"{mode} is done", 60)  # noqa: B023
        exported(desk, cluster, refresh)
        assert desk.plans(mode, *words, "--topics", topic)[0] == 0
        assert desk.report["moves"] == 0
    placed = read_topology(desk.path("topology.json").read_bytes()).topics[topic]
    described = tools.topics()[topic].partitions
    assert {p.partition: p.replicas for p in placed.partitions} == {n: p.replicas for n, p in described.items()}
    assert {len(p.replicas) for p in placed.partitions} == {1}


def exported(desk: Desk, cluster: Cluster, refresh: Refresher) -> None:
    for kind in (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.LOG_DIRS):
        refresh(kind)
    code, _, said = desk.types("export-topology", cluster.slug, "--out", str(desk.path("topology.json")))
    assert code == 0, said


def verify(tools: Tools, file: str) -> str:
    return tools.run("reassign", "--reassignment-json-file", file, "--verify")


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
    assert (change.job.error, (change.job.result or {}).get("problems")) == (None, [])
    moved = {row.partition: row.target for row in plan_rows(str(change.artifact_id)) if row.topic == topic}
    assert {partition: set(target) for partition, target in moved.items()} == {0: {1, 2}, 2: {1, 2}}
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.REASSIGNMENTS)
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
    wrong = kafka_json((topic, 0, [2, 1]), (topic, 7, [1, 2]), ("nowhere", 0, [1, 99]))
    page = Page(wizard.sends("what", {"text": wrong}).content.decode())
    assert page.texts("#text-error .error-code") == [PlanErrorCode.PARTITION_UNKNOWN, PlanErrorCode.TOPIC_UNKNOWN]
    assert [figures_of(line)[0] for line in page.texts("#text-error .error-line")] == ["3", "4"]
    wizard.sends("what", {"text": kafka_json((topic, 0, [2, 1]))})
    wizard.limits(**LIMITS)
    change = wizard.plans()
    assert [(row.current, row.target) for row in plan_rows(str(change.artifact_id))] == [((3, 1), (2, 1))]


def test_a_reassignment__cancelled_half_way__is_planned_to_its_target(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    mover: Mover,
    tools: Tools,
    operator: User,
    client_of: Callable[[User], Client],
    tmp_path: Path,
) -> None:
    topic = make_topic([[2, 1]], mib=HELD_MIB)
    mover.start(topic, [3, 1], throttle=SLOW)
    refresh(CollectorKind.REASSIGNMENTS)
    mover.cancel(topic)
    for kind in READ:
        refresh(kind)
    row = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
    address = f"/clusters/{cluster.slug}/reassignments/{row.public_id}/"
    wizard = Wizard(client_of(operator))
    offered = [form.get("action") for form in Page.read(wizard.client.get(address)).find(".page-actions form")]
    assert offered == [f"{address}finish/"]
    wizard.number = int(re.findall(r"/changes/(\d+)/", wizard.client.post(offered[0])["location"])[0])
    wizard.limits(**LIMITS)
    [planned_row] = plan_rows(str(wizard.plans().artifact_id))
    assert (planned_row.name, set(planned_row.current), planned_row.target) == (f"{topic}-0", {1, 2}, (3, 1))
    file = tmp_path / "rest.json"
    file.write_bytes(wizard.client.get(f"/changes/{wizard.number}/kafka.json").content)
    tools.run("reassign", "--reassignment-json-file", str(file), "--execute")
    wait_until(lambda: tools.replicas(topic) == (3, 1), "the rest is done", 30)
