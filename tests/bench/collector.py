"""One worker's refreshes of a large cluster: ``python -m tests.bench.collector TOPICS``, prints ``Figures`` as JSON.

The brokers are fake and run in a process of their own, so the memory measured is that of the collecting process; what
they take to encode an answer the first time is not measured.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tests.bench.big_kafka import BigKafka, big_kafka, topic_name
from tests.bench.server import empty_database

if TYPE_CHECKING:
    from kafkadash.clusters.models import Cluster

REPEATS = 5
QUEUED_FOR_S = 120.0  # how long the fakes may take to encode their answers, once


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds by kind: the first refresh, and the quickest of five that find nothing new.

    ``processor_s`` is the least time on a processor, of the collecting process alone. Rows are counted as often as they
    are written, the collector's own book-keeping included.
    """

    first_s: dict[str, float]
    unchanged_s: dict[str, float]
    processor_s: dict[str, float]
    unchanged_rows: dict[str, int]
    topics_rewritten: int
    peak_mb: float


def collect(topics: int) -> Figures:
    """In a process of its own, so that nothing else is in its memory."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.collector", str(topics)], stdout=subprocess.PIPE, text=True, check=True
    )
    return Figures(**json.loads(done.stdout.splitlines()[-1]))


def _measure(kafka: BigKafka) -> Figures:
    from kafkadash.clusters.models import Cluster
    from kafkadash.kafka.connect import close_all
    from kafkadash.monitoring.collection import ensure_runs
    from tests.monitoring.written_rows import written_rows

    cluster = Cluster.objects.create(name="Big", slug="big", bootstrap_servers=kafka.bootstrap)
    ensure_runs()
    _let_brokers_encode(cluster)
    first: dict[str, float] = {}
    unchanged: dict[str, float] = {}
    processor: dict[str, float] = {}
    rows: dict[str, int] = {}
    for kind in ("metadata", "configs", "log_dirs", "traffic", "transactions"):
        first[kind], _ = _refresh(cluster, kind)
    _refresh(cluster, "configs")  # the second look at throttles decides whether they are orphans
    _refresh(cluster, "metadata")
    for kind in first:
        took = [_refresh(cluster, kind) for _ in range(REPEATS)]
        unchanged[kind], processor[kind] = min(wall for wall, _ in took), min(used for _, used in took)
        with written_rows() as written:
            _refresh(cluster, kind)
        rows[kind] = written.total()
    kafka.shrink_isr(topic_name(7))
    _let_brokers_encode(cluster)
    with written_rows() as written:
        _refresh(cluster, "metadata")
    close_all()
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Figures(first, unchanged, processor, rows, written["monitoring_topicstate"], peak_kb / 1024)


def _refresh(cluster: Cluster, kind: str) -> tuple[float, float]:
    """Seconds by the clock, and on a processor."""
    from kafkadash.monitoring.collection import refresh
    from kafkadash.monitoring.models import CollectorRun

    run = CollectorRun.objects.get(cluster=cluster, kind=kind)
    began, used = time.perf_counter(), time.process_time()
    result = refresh(run.pk, only_if_due=False)
    took = time.perf_counter() - began, time.process_time() - used
    assert result is not None
    assert not result.error, result.error
    return took


def _let_brokers_encode(cluster: Cluster) -> None:
    from kafkadash.kafka.api import ConfigResource
    from kafkadash.kafka.connect import admin_for

    admin = admin_for(cluster.connection())
    topics = admin.metadata(deadline=QUEUED_FOR_S).topics
    names = [topic.name for topic in topics]
    brokers = [broker.id for broker in admin.describe_cluster(deadline=QUEUED_FOR_S).brokers]
    assert not admin.log_dirs(brokers, deadline=QUEUED_FOR_S).errors
    spans = {topic.name: [each.partition for each in topic.partitions] for topic in topics}
    assert not admin.log_spans(spans, deadline=QUEUED_FOR_S).errors
    assert not admin.unstable_spans(spans, deadline=QUEUED_FOR_S).errors
    assert not admin.describe_configs([ConfigResource.topic(n) for n in names], deadline=QUEUED_FOR_S).errors


if __name__ == "__main__":
    os.environ.setdefault("LOG_LEVEL", "ERROR")
    with empty_database(), big_kafka(int(sys.argv[1])) as kafka:
        print(json.dumps(asdict(_measure(kafka))))  # noqa: T201
