"""Each broker is taken away in turn: the answer that it may be restarted, against what Kafka's own tools then list.

Brokers stand still until they are fenced, which costs no start. ``make proof ARGS=restarts`` stops and starts each of
five brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pytest
from django.utils import timezone

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.findings.errors import OnCallErrorCode as Code
from kafkadash.findings.restart import RestartFacts, RestartPlace, RestartVerdict, judge_restart, order_restarts
from kafkadash.findings.restart_facts import load_restart_facts
from kafkadash.findings.simulation import HitPartition
from kafkadash.monitoring.freshness import load_standing
from kafkadash.monitoring.models import CollectorKind
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.frozen_nodes import alive_by, fenced_broker
from tests.waiting import wait_until

BROKERS = (1, 2, 3)
FACTS = (
    CollectorKind.METADATA,
    CollectorKind.LOG_DIRS,
    CollectorKind.CONFIGS,
    CollectorKind.METADATA,
    CollectorKind.REASSIGNMENTS,
    CollectorKind.QUORUM,
    CollectorKind.ANSWERS,
)
SLOW = 2_000  # bytes per second
YES, NO = RestartVerdict.YES, RestartVerdict.NO


@pytest.mark.quorum
def test_each_broker_away_in_turn__answers_equal_what_kafkas_tools_list(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    playground: KafkaPlayground,
    tools: Tools,
    mover: Mover,
) -> None:
    whole, lone, strict = make_topic([[1, 2, 3], [2, 3, 1], [3, 1, 2]]), make_topic([[1]]), make_topic([[1, 3]])
    moving = make_topic([[3, 1]], mib=2)
    for topic in (whole, strict, moving):
        tools.set_config(topic, min_insync_replicas="2")
    own = {whole, lone, strict, moving}
    wait_until(tools.in_sync, "every replica is in sync", 60)
    for broker, taken in ((2, set()), (3, {(strict, 0), (moving, 0)}), (1, {(lone, 0), (strict, 0), (moving, 0)})):
        with ExitStack() as turn:
            if broker == 1:  # the added replica on broker 2 is not in sync, so it does not help
                mover.start(moving, [3, 2], throttle=SLOW)
                turn.callback(mover.cancel, moving)
            facts = _read(cluster, refresh)
            check = judge_restart(facts, broker)
            alone = judge_restart(_only(facts, own), broker)
            assert _name([*alone.offline, *alone.under_min_isr]) == taken
            assert (alone.verdict, _codes(alone.reasons) - _HITS) == (NO if taken else YES, set())
            before = {kind: tools.partitions_that_are(kind) for kind in ("unavailable", "under-min-isr")}

            with fenced_broker(playground, broker):
                offline = tools.partitions_that_are("unavailable") - before["unavailable"]
                under = tools.partitions_that_are("under-min-isr") - before["under-min-isr"]
                assert _name(check.offline) == offline
                assert _name([*check.offline, *check.under_min_isr]) == under
                refresh(CollectorKind.METADATA)
                away = load_restart_facts(load_standing(cluster, timezone.now()))
                for other in set(BROKERS) - {broker}:
                    found = judge_restart(_only(away, own), other)
                    assert found.verdict is NO
                    assert [each.id for each in found.behind] == [broker]
                assert order_restarts(_only(away, own), BROKERS).steps[0].place is RestartPlace.START
            wait_until(lambda: _all_alive(playground), f"broker {broker} is back", 60)
        wait_until(tools.in_sync, "every replica is in sync again", 60)
    order = order_restarts(_only(_read(cluster, refresh), own), BROKERS)
    assert {step.broker.id: _codes(step.reasons) for step in order.never} == {
        1: {Code.RESTART_ALWAYS_OFFLINE, Code.RESTART_ALWAYS_STOPS_WRITES},
        3: {Code.RESTART_ALWAYS_STOPS_WRITES},
    }
    assert [(step.broker.id, step.place) for step in order.steps] == [(2, RestartPlace.NEXT)]


_HITS = {Code.RESTART_GOES_OFFLINE, Code.RESTART_STOPS_WRITES}


def _read(cluster: Cluster, refresh: Callable[[CollectorKind], object]) -> RestartFacts:
    for kind in FACTS:
        refresh(kind)
    return load_restart_facts(load_standing(cluster, timezone.now()))


def _all_alive(playground: KafkaPlayground) -> bool:
    return all(alive_by(address) == list(BROKERS) for address in playground.bootstrap.split(","))


def _only(facts: RestartFacts, topics: Collection[str]) -> RestartFacts:
    """Without the topics of other tests, which may be in any state."""
    return replace(facts, partitions=[p for p in facts.partitions if p.topic in topics])


def _name(hits: Collection[HitPartition]) -> set[tuple[str, int]]:
    return {hit.partition[:2] for hit in hits}


def _codes(reasons: Sequence[object]) -> set[object]:
    return {getattr(reason, "code", None) for reason in reasons}
