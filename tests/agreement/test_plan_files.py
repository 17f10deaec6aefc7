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
from tests.agreement.conftest import TopicMaker
from tests.agreement.tools import Tools
from tests.reassign.plans import planned, world
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


def verify(tools: Tools, file: str) -> str:
    return tools.run("reassign", "--reassignment-json-file", file, "--verify")
