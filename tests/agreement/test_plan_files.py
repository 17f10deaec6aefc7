"""The files of a plan, given to ``kafka-reassign-partitions`` as they are downloaded."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology_json import read_topology
from kafkadash.observe.models import Kind
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.reassign.plans import planned, world
from tests.reassign.test_planning_commands import Desk
from tests.waiting import wait_until


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
    rows = (Row(topic, "", 0, (1, 2), (3, 2)), Row(topic, "", 1, (2, 1), (3, 1)))
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
    for kind in (Kind.METADATA, Kind.REASSIGNMENTS, Kind.LOG_DIRS):
        refresh(kind)
    code, _, said = desk.types("export-topology", cluster.slug, "--out", str(desk.path("topology.json")))
    assert code == 0, said


def verify(tools: Tools, file: str) -> str:
    return tools.run("reassign", "--reassignment-json-file", file, "--verify")
