"""No cell is empty, whatever is not known: each says something, on a wide screen too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import time_machine
from django.test import Client
from pytest_django import DjangoDbBlocker

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution, ThrottleEntry
from kafkadash.findings.models import Finding
from kafkadash.kafka.throttles import LEADER_LIST, LEADER_RATE
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    ClusterState,
    CollectorRun,
    MoveOutcome,
    TopicState,
    ZooKeeperState,
)
from tests.changes.parcels import propose
from tests.execution.stored_runs import requested, running
from tests.factories import (
    NOW,
    BrokerFactory,
    ClusterFactory,
    QuorumFactory,
    ReassignmentFactory,
    ThrottleFactory,
    TopicFactory,
    directory,
    ended,
    judged,
    node,
    silent,
    watched,
)
from tests.groups import NEW, NONE, STALLED, WELL, group_seen, point
from tests.history_rows import handed_back
from tests.kept_rows import kept
from tests.pages.conftest import Page, text_of
from tests.pages.test_query_counts import PAGES, SETTINGS, open_product_finding

CELL = re.compile(r"<(td|th|dd|dt)\b[^>]*>(.*?)</\1>", re.DOTALL)
SAYS_WITHOUT_TEXT = re.compile(r"aria-label=|role=\"img\"|<(input|select|textarea|button)\b")
NOT_KNOWN = dict.fromkeys(
    (
        "percent",
        "sampled_at",
        "size_bytes",
        "size_taken_at",
        "rate_bytes",
        "leader",
        "leader_epoch",
        "leader_log_end",
        "leader_log_start",
        "started_after",
    )
)


def empty_cells(page: Page) -> list[str]:
    return [
        cell[0][:160]
        for cell in CELL.finditer(page.html[page.html.index("<main") :] if "<main" in page.html else page.html)
        if not text_of(cell[2]) and not SAYS_WITHOUT_TEXT.search(cell[2])
    ]


def _moves(demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo, public_id="r-demo", replicas_progress=[], **NOT_KNOWN)
    ReassignmentFactory.create(cluster=demo, rate_bytes=None)
    ReassignmentFactory.create(cluster=demo, percent=100.0)
    ReassignmentFactory.create(cluster=demo, adding=[], replicas_progress=[], **NOT_KNOWN)
    ReassignmentFactory.create(cluster=demo, adding=[6], removing=[6], replicas=[6, 2], target=[2])
    for outcome in MoveOutcome:
        if outcome != MoveOutcome.RUNNING:
            ended(demo, outcome, NOW - timedelta(minutes=1), **NOT_KNOWN)
            ended(demo, outcome, NOW - timedelta(minutes=2))


def _groups(demo: Cluster) -> None:
    """One with partitions in every state, of which some are not known; others that have nothing."""
    partitions = {("t", 0): STALLED, ("t", 1): NONE, ("t", 2): NEW, ("u", 0): WELL, ("u", 1): [(5, None)] * 10}
    row = group_seen(demo, "reader", partitions, members={"c": {"t": [0]}}, point_at=NOW - timedelta(minutes=4))
    point(row, 30, 100, state="stall")
    point(row, 4, None, state="unknown")
    group_seen(demo, "", {}, described=False, coordinator=None)
    group_seen(demo, "alone", {("t", 1): NONE}, described=False)


@pytest.fixture(scope="module", params=["known", "unknown", "silent", "never", "zookeeper"])
def demo(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Cluster]:
    with kept(django_db_blocker, lambda: _demo(request.param)) as demo:
        yield demo


@time_machine.travel(NOW, tick=False)
def _demo(condition: str) -> Cluster:
    if condition == "never":
        never = ClusterFactory.create(name="demo")
        TopicFactory.create(cluster=never)
        BrokerFactory.create(cluster=never, broker_id=1)
        ReassignmentFactory.create(cluster=never, public_id="r-demo")
        _groups(never)
        return never
    demo = watched("demo", offline_partitions=1, under_replicated=1, rack_violations=1)
    TopicFactory.create(cluster=demo, partitions=[[0, None, 5, [1, 2], [1], [2]]], rack_violations=1)
    BrokerFactory.create(cluster=demo, broker_id=7, fenced=True)
    BrokerFactory.create(cluster=demo, broker_id=8, gone_at=NOW - timedelta(hours=1))
    for key in ("leader.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second"):
        ThrottleFactory.create(cluster=demo, key=key)
        ThrottleFactory.create(cluster=demo, resource="cluster", name="", key=key, value="")
    ThrottleFactory.create(
        cluster=demo, resource="topic", name="t", key="leader.replication.throttled.replicas", value=""
    )
    _moves(demo)
    handed_back(demo, 1, NOW)
    _groups(demo)
    if condition == "unknown":
        _forget(demo)
    if condition == "silent":
        silent(demo, NOW - timedelta(hours=1), error="refused")
    if condition == "zookeeper":
        Cluster.objects.filter(pk=demo.pk).update(mode=ClusterMode.ZOOKEEPER, zookeeper="z:2181")
        queued = [["orders", 0, [1, 2]]]
        ZooKeeperState.objects.create(cluster=demo, taken_at=NOW, batch_id="0x7", batch_at=NOW, queued=queued)
    return demo


def _forget(demo: Cluster) -> None:
    """All that may be missing is."""
    for model in (ClusterState, TopicState, BrokerState):
        rows = model.objects.filter(cluster=demo)
        rows.update(**{f.name: None for f in model._meta.concrete_fields if f.null and f.name != "gone_at"})
    dirs = [directory(total=None, usable=None), directory("/b", error="broken")]
    BrokerWeights.objects.filter(cluster=demo).update(dirs=dirs)
    nodes = [node(n, caught_up_ago=None, log_end=None) for n in (101, 102)]
    QuorumFactory.create(cluster=demo, replicas=nodes, leader_id=101, high_watermark=None, taken_at=NOW)
    CollectorRun.objects.filter(cluster=demo, kind__in=["configs", "log_dirs"]).update(succeeded_at=None)


@pytest.mark.parametrize("name", PAGES)
def test_each_cell_says_something(
    name: str, demo: Cluster, operator: User, get_page: Callable[[str], Page], parcels: object
) -> None:
    address = PAGES[name]
    if name == "product_finding":
        open_product_finding()
    change = propose(demo, operator).pk if "{change}" in address else 0
    run = _run(demo, operator) if "{run}" in address else 0
    if name == "run_give_up":  # a page of what is being cancelled on a cluster that does not answer
        ChangeRequest.objects.filter(pk=run).update(state=RequestState.CANCELLING)
        Execution.objects.filter(request=run).update(failures=20, looked_at=NOW - timedelta(minutes=11))
    assert empty_cells(get_page(address.format(change=change, run=run))) == []


def _run(demo: Cluster, operator: User) -> int:
    """One with rows in every state, of which some have figures, and with throttles of every kind."""
    run = running(requested(demo, operator), dict.fromkeys(RowState, 2))
    for resource, name, key in (("broker", "3", LEADER_RATE), ("topic", "events", LEADER_LIST)):
        ThrottleEntry.objects.create(execution=run, resource=resource, name=name, key=key)
    return run.request_id


def test_each_cell_of_the_settings_says_something(
    demo: Cluster, admin: User, client_of: Callable[[User], Client]
) -> None:
    client = client_of(admin)
    for address in (*SETTINGS.values(), "/settings/register/", "/settings/clusters/demo/remove/"):
        assert empty_cells(Page(client.get(address).content.decode())) == [], address


def test_each_cell_of_findings_and_runbooks_says_something(demo: Cluster, get_page: Callable[[str], Page]) -> None:
    judged(demo)
    rows = Finding.objects.filter(opened_at__isnull=False)
    findings = [f"/clusters/demo/findings/{row.public_id}/" for row in rows]
    runbooks = [f"/runbooks/{row.kind}/" for row in rows]
    for address in ("/?kind=broker-down", "/clusters/demo/drill/", "/runbooks/", *findings, *runbooks):
        assert empty_cells(get_page(address)) == [], address
