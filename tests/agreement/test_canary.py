"""The canary on real Kafka: its topic by a reviewed change, and brokers that are well, stand still for a known time,
hang, wait for one that hangs, are fenced, are stopped, and refuse its records.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from kafkadash.changes import services
from kafkadash.changes.models import ChangeRequest, Policy, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.findings.services import judge
from kafkadash.kafka import canary_probe
from kafkadash.kafka.api import KafkaUnreachable, PartitionProbe
from kafkadash.kafka.connect import run_canary
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.canary.rules import TOPIC, CanaryReading, CanaryReason, CanaryState
from kafkadash.monitoring.models import CanaryPoint, CollectorKind, CollectorRun
from tests.agreement.conftest import Refresher
from tests.agreement.runs import Requests, broker_hung
from tests.agreement.short_runs import step_until
from tests.agreement.tools import LATEST, Tools
from tests.frozen_nodes import frozen_nodes, thaw_nodes
from tests.kafka_releases import has_quorum
from tests.raised_codes import raises_code
from tests.waiting import wait_until

BROKER, LEADS_IT, WITHOUT_IT = 3, 1, 2
PLACES = [(1, 3), (2, 1), (3, 2)]
"""Replicas during the probes: that of one broker has none on ``BROKER``, which replicas on all three would not show."""
RETENTION_CHECK_MS, HOUR_MS = 300_000, 3_600_000
"""Kafka looks for old records every five minutes (``log.retention.check.interval.ms``)."""
STANDS_STILL_S, MARGIN_S = 1.1, 1.0
"""Above the second from which the first record counts, and below the three after which a broker is fenced."""
HEARTBEAT_S = 0.7
"""In so much time a broker tells the controllers at least once that it is alive."""
SLOW_PROBES, FAILED_PROBES = 4, 3
"""As many as open a finding; slow ones after one that was not."""
MOST_PROBES = 10
"""As many as are judged."""


@dataclass(frozen=True)
class CanaryProbes:
    """Takes samples of a cluster's canary and judges them, as its workers do."""

    cluster: Cluster
    refresh: Refresher

    def take(self) -> dict[int, CanaryReading]:
        assert self.refresh(CollectorKind.CANARY).error is None
        judge(self.cluster.pk, timezone.now())
        stored = CanaryPoint.objects.filter(cluster=self.cluster).latest("taken_at").readings
        return {int(broker): CanaryReading.from_json(reading) for broker, reading in stored.items()}

    def opened(self, kind: FindingKind) -> set[str]:
        """Brokers with an open finding of that kind."""
        found = Finding.objects.filter(cluster=self.cluster, kind=kind, closed_at=None)
        return set(found.values_list("scope", flat=True))

    def take_until_well(self) -> None:
        """Return once no broker has a finding; as many samples end that as are judged."""
        for _ in range(MOST_PROBES):
            read = self.take()
            assert {each.state for each in read.values()} == {CanaryState.MEASURED}, read
            if not self.opened(FindingKind.CANARY_FAILS) | self.opened(FindingKind.CANARY_SLOW):
                return
        raise AssertionError("findings of the canary are open")


@pytest.fixture
def created_topic(requests: Requests, alices_client: Client, tools: Tools) -> Iterator[ChangeRequest]:
    """The canary's topic, proposed on its page by alice, approved by bob, and created by the run."""
    Policy.objects.create(cluster=requests.cluster, approvals_high=1)
    requests.read_all()
    shown = alices_client.post("/clusters/real/canary/topic/", {"why": "Clients complain."})
    change = ChangeRequest.objects.get(pk=shown["location"].strip("/").rpartition("/")[2])
    assert change.state == RequestState.PROPOSED
    approved = services.approve(change, requests.bob, change.digest)
    change = services.start(approved, requests.alice, "Now.")
    run = step_until(change, RequestState.DONE)
    assert run is not None
    assert (run.outcome, run.counts) == ("clean", {"done": 1})
    yield change
    wait_until(tools.in_sync, "every replica is in sync again", 60)
    tools.run("topics", "--delete", "--topic", TOPIC)


@pytest.fixture
def probes(
    cluster: Cluster, created_topic: ChangeRequest, refresh: Refresher, tools: Tools, tmp_path: Path
) -> CanaryProbes:
    """The canary is started. Its topic is as it was created, but for the replicas."""
    topic = tools.topics("--topic", TOPIC)[TOPIC]
    replicas = [each.replicas for _, each in sorted(topic.partitions.items())]
    leaders = [each.leader for _, each in sorted(topic.partitions.items())]
    assert leaders == [row[0] for row in replicas] == [row[0] for row in PLACES], "each broker leads one"
    assert {frozenset(row) for row in replicas} == {frozenset({1, 2, 3})}
    configs = tools.configs(TOPIC)
    assert configs["cleanup.policy"][0] == "delete"
    kept_ms = int(configs["retention.ms"][0] or 0) + int(configs["segment.ms"][0] or 0)
    assert kept_ms + RETENTION_CHECK_MS == HOUR_MS

    plan = tmp_path / "two-replicas.json"
    place_replicas(tools, plan, PLACES)
    CollectorRun.objects.create(cluster=cluster, kind=CollectorKind.CANARY)
    refresh(CollectorKind.METADATA)
    return CanaryProbes(cluster, refresh)


def place_replicas(tools: Tools, plan: Path, places: list[tuple[int, int]]) -> None:
    rows = [{"topic": TOPIC, "partition": n, "replicas": [*row]} for n, row in enumerate(places)]
    plan.write_text(json.dumps({"version": 1, "partitions": rows}), encoding="utf-8")
    tools.run("reassign", "--reassignment-json-file", str(plan), "--execute")
    wait_until(lambda: list_replicas(tools) == places, "each partition has these two replicas")


def list_replicas(tools: Tools) -> list[tuple[int, ...]]:
    return [each.replicas for _, each in sorted(tools.topics("--topic", TOPIC)[TOPIC].partitions.items())]


def lead_again(tools: Tools, places: list[tuple[int, int]] = PLACES) -> None:
    """The preferred leader of each partition leads it."""
    tools.run("leader-election", "--election-type", "preferred", "--all-topic-partitions")
    leaders = [row[0] for row in places]

    def led() -> bool:
        topic = tools.topics("--topic", TOPIC)[TOPIC]
        return [each.leader for _, each in sorted(topic.partitions.items())] == leaders

    wait_until(led, "each broker leads its partition")


def test_canary__measures_who_leads_and_never_another(
    cluster: Cluster,
    probes: CanaryProbes,
    playground: KafkaPlayground,
    tools: Tools,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = probes.take()
    assert {each.state for each in read.values()} == {CanaryState.MEASURED}, read
    assert all(0 < (each.consumed_ms or 0) < 1000 for each in read.values()), read
    assert tools.offset(LEADS_IT, TOPIC, LATEST) == 2
    with raises_code(KafkaErrorCode.CANARY_OF_OTHER_CLUSTER, KafkaUnreachable):
        run_canary(cluster.connection(), "another-cluster", TOPIC, deadline=5)
    assert tools.offset(LEADS_IT, TOPIC, LATEST) == 2, "nothing was written"

    slowed = {str(BROKER), str(LEADS_IT)} if has_quorum() else set()
    # Beside ZooKeeper, which brokers ping once a second, a session of 3 s may end while the broker stands still.
    for number in range(SLOW_PROBES if slowed else 0):
        assert probes.opened(FindingKind.CANARY_SLOW) == set(), f"{number} slow probes are too few"
        check_slowed(probes.take, playground, tools)
    assert probes.opened(FindingKind.CANARY_SLOW) == slowed

    with frozen_nodes(playground, BROKER):
        read = probes.take()
    # The controllers may fence it before the record is sent, which another broker takes then.
    led_by_another = CanaryReading(CanaryState.NOT_MEASURED, code=CanaryReason.LEADER_CHANGED)
    assert read[BROKER].state is CanaryState.FAILED or read[BROKER] == led_by_another, read
    assert read[LEADS_IT].state is not CanaryState.MEASURED or (read[LEADS_IT].consumed_ms or 0) > 1000, (
        f"{read}: its record waits for the follower that hangs, until that is fenced"
    )
    assert 0 < (read[WITHOUT_IT].consumed_ms or 0) < 1000, read
    wait_until(tools.in_sync, "every replica is in sync again", 60)

    with broker_hung(playground, tools, BROKER):
        check_away(probes.take(), tools)
    wait_until(tools.in_sync, "every replica is in sync again", 60)
    playground.stop_broker(BROKER)
    try:
        check_away(probes.take(), tools)
    finally:
        playground.start_broker(BROKER)
    assert (str(BROKER) in probes.opened(FindingKind.CANARY_SLOW)) is bool(slowed), "nothing was measured since"
    wait_until(tools.in_sync, "every replica is in sync again", 60)
    lead_again(tools)
    probes.take_until_well()

    with monkeypatch.context() as patches:
        check_led_by_another(probes, tools, tmp_path / "moved.json", patches)

    tools.set_config(TOPIC, max_message_bytes="1")
    wait_until(lambda: list_refusals(cluster) == {"MSG_SIZE_TOO_LARGE"}, "each broker refuses its record")
    for _ in range(FAILED_PROBES):
        assert probes.opened(FindingKind.CANARY_FAILS) == set()
        read = probes.take()
        assert {(each.code, each.detail) for each in read.values()} == {(CanaryReason.REFUSED, "MSG_SIZE_TOO_LARGE")}
    assert probes.opened(FindingKind.CANARY_FAILS) == {"1", "2", "3"}
    tools.delete_config(TOPIC, "max.message.bytes")
    wait_until(lambda: list_refusals(cluster) == {""}, "each broker takes its record")
    probes.take_until_well()


def check_led_by_another(probes: CanaryProbes, tools: Tools, plan: Path, patches: pytest.MonkeyPatch) -> None:
    """Another broker leads the first partition once the probe has read who leads it."""
    moved = [(BROKER, LEADS_IT), *PLACES[1:]]
    read_leaders = canary_probe._read_leaders

    def move_then(*asked: Any) -> dict[int, PartitionProbe]:
        leaders = read_leaders(*asked)
        place_replicas(tools, plan, moved)
        lead_again(tools, moved)
        return leaders

    before = tools.offset(LEADS_IT, TOPIC, LATEST)
    patches.setattr(canary_probe, "_read_leaders", move_then)
    read = probes.take()
    assert tools.offset(BROKER, TOPIC, LATEST) == before + 2, "the other broker took its records"
    assert read[LEADS_IT] == CanaryReading(CanaryState.NOT_MEASURED, code=CanaryReason.LEADER_CHANGED)
    assert {read[broker].state for broker in (BROKER, WITHOUT_IT)} == {CanaryState.MEASURED}
    place_replicas(tools, plan, PLACES)
    lead_again(tools)


def list_refusals(cluster: Cluster) -> set[str]:
    """Names of the errors with which brokers refuse records, "" of one that does not; no sample is stored."""
    answer = run_canary(cluster.connection(), "", TOPIC, deadline=5)
    return {probe.refused for probe in answer.partitions.values()}


def check_slowed(take: Callable[[], dict[int, CanaryReading]], playground: KafkaPlayground, tools: Tools) -> None:
    """The broker stands still until ``STANDS_STILL_S`` after another one, which waits for it too, had its record.

    So the latencies of both have a least and a most: from then, and from before the probe, until the broker goes on.
    """
    wait_until(tools.in_sync, "the other broker waits for the one that stands still", 60)
    before = tools.offset(LEADS_IT, TOPIC, LATEST)

    def let_go() -> tuple[float, float]:
        wait_until(lambda: tools.offset(LEADS_IT, TOPIC, LATEST) > before, "the other broker has its record")
        seen_at = time.monotonic()
        wait_until(lambda: time.monotonic() > seen_at + STANDS_STILL_S, "the broker stood still for as long")
        thawed_at = time.monotonic()
        thaw_nodes(playground, BROKER)
        return seen_at, thawed_at

    with frozen_nodes(playground, BROKER), ThreadPoolExecutor(1) as pool:
        began_at = time.monotonic()
        letting_go = pool.submit(let_go)
        read = take()
        seen_at, thawed_at = letting_go.result()
    least_ms, most_ms = 1000 * (thawed_at - seen_at), 1000 * (thawed_at - began_at + MARGIN_S)
    for broker in (BROKER, LEADS_IT):
        assert read[broker].state is CanaryState.MEASURED, read
        assert least_ms < (read[broker].consumed_ms or 0) < most_ms, (read, least_ms, most_ms)
    assert 0 < (read[WITHOUT_IT].consumed_ms or 0) < 1000, read
    wait_until(lambda: time.monotonic() > thawed_at + HEARTBEAT_S, "the broker may stand still again")


def check_away(read: dict[int, CanaryReading], tools: Tools) -> None:
    away = read[BROKER]
    leader = tools.topics("--topic", TOPIC)[TOPIC].partitions[2].leader
    assert (away.state, away.code, away.detail) == (
        CanaryState.NOT_MEASURED,
        CanaryReason.LED_ELSEWHERE,
        str(leader),
    )
    assert {read[broker].state for broker in (LEADS_IT, WITHOUT_IT)} == {CanaryState.MEASURED}
