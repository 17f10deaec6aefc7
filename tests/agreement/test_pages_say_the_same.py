"""The figures in the pages' HTML, against Kafka's own tools and raw reads of the replicas' log ends."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import Kind
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.tools import EARLIEST, LATEST, Tools
from tests.waiting import wait_until


def test_pages__throttled_move__say_what_kafkas_tools_print(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    mover: Mover,
    tools: Tools,
    viewer: User,
    client_of: Callable[[User], Client],
) -> None:
    topic = make_topic([[2, 3]], mib=4)
    mover.start(topic, [2, 1], throttle=100_000)
    start, end = tools.offset(2, topic, EARLIEST), tools.offset(2, topic, LATEST)
    wait_until(lambda: tools.has_copy(1, topic), "broker 1 has begun its copy", 30)
    before = percent(tools, topic, start, end)
    for kind in (Kind.REASSIGNMENTS, Kind.METADATA, Kind.QUORUM, Kind.VERSIONS, Kind.LOG_DIRS):
        refresh(kind)
    after = percent(tools, topic, start, end)
    browser = client_of(viewer)

    overview = browser.get(f"/clusters/{cluster.slug}/").content.decode()
    listed, topics = tools.moves(), tools.topics()
    assert figure(overview, "Active controller") == str(tools.quorum_status().leader_id)
    assert figure(overview, "Brokers") == str(len(tools.playground.cluster.brokers))
    assert figure(overview, "Topics") == f"{len(topics):,}"
    assert figure(overview, "Partitions") == f"{sum(len(t.partitions) for t in topics.values()):,}"
    assert figure(overview, "In flight") == f"{len(listed):,}"
    assert tools.playground.cluster.cluster_id in overview

    page = browser.get(f"/clusters/{cluster.slug}/reassignments/").content.decode()
    rows = re.findall(
        r'<tr id="(r-[^"]+)" data-outcome="running" data-percent="([\d.]+)"[^>]*>(.*?)</tr>', page, re.DOTALL
    )
    said = {re.sub(r"\s*<.*", "", cells.split('partition">')[1], flags=re.DOTALL): float(at) for _, at, cells in rows}
    assert said.keys() == {f"{move.topic}-{move.partition}" for move in listed}
    # The page cuts after two decimals, so that nothing unfinished reads 100.
    assert before - 0.01 <= said[f"{topic}-0"] <= after


def percent(tools: Tools, topic: str, start: int, end: int) -> float:
    """How much of the leader's records broker 1, which is added, holds."""
    return 100.0 * (tools.offset(1, topic, LATEST) - start) / (end - start)


def figure(page: str, label: str) -> str:
    """What stands below a label in the row of figures."""
    found = re.search(rf"<dt>(?:<a [^>]*>)?{label}(?:</a>)?</dt><dd>([^<]*)</dd>", page)
    assert found, f"the page has no figure {label}"
    return found[1]
