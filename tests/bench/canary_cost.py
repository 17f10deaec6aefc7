"""Processor time that the canary of a real cluster of three brokers takes, as a share of one core."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from django.conf import settings

from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from kafkadash.kafka.api import ClusterConnection
from kafkadash.kafka.connect import run_canary
from kafkadash.monitoring.canary.rules import TOPIC
from tests.bench.bars import Bar, at_most, percentile
from tests.bench.server import empty_database

PROBES = 60
WARM_UP = 3
DEADLINE_S = 5.0
MOST_PERCENT = 1.0


def measure() -> list[Bar]:
    root = Path(tempfile.mkdtemp(prefix="kafkadash-bench-"))
    playground = KafkaPlayground(root / "playground")
    playground.up(brokers=3, racks=("a", "b", "c"))
    try:
        load_topics(playground.bootstrap, [LoadTopic(TOPIC, placement=[(1, 2, 3), (2, 3, 1), (3, 1, 2)])])
        with empty_database():  # for the interval that the settings have
            return list(_measure_probes(playground))
    finally:
        playground.down()
        shutil.rmtree(root, ignore_errors=True)


def _measure_probes(playground: KafkaPlayground) -> list[Bar]:
    connection = ClusterConnection("bench", 1, tuple(playground.bootstrap.split(",")))
    kafka_id = playground.cluster.cluster_id
    spent, consumed_ms = 0.0, []
    for number in range(WARM_UP + PROBES):
        began = time.process_time()
        answer = run_canary(connection, kafka_id, TOPIC, deadline=DEADLINE_S)
        missing = [index for index, probe in answer.partitions.items() if probe.consumed_s is None]
        if missing or answer.silence:
            raise RuntimeError(f"partitions {missing} were not measured {answer.silence}")
        if number >= WARM_UP:
            spent += time.process_time() - began
            consumed_ms += [1000 * (probe.consumed_s or 0) for probe in answer.partitions.values()]
    interval = settings.COLLECT_INTERVALS["canary"]
    share = 100 * spent / PROBES / interval
    return [
        at_most(f"canary of 3 brokers every {interval:g} s: processor time", share, MOST_PERCENT, "% of a core"),
        Bar("canary of 3 brokers: produce to consume, median", round(percentile(consumed_ms, 50), 3), "ms"),
    ]
