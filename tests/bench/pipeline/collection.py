"""One collection of 5,000 consumer groups: they, what they have committed, and the log spans of 200,000 partitions.

``python -m tests.bench.pipeline.collection GROUPS`` is the collecting process; it prints ``Figures`` as JSON. The
brokers are fake and run in a process of their own; what they take to encode an answer the first time is not measured.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

from kafkadash.kafka.api import ClusterConnection
from kafkadash.kafka.mutations import WireClient
from tests.bench.bars import Bar, at_most
from tests.bench.big_kafka import PARTITIONS, TOPICS_OF_GROUP, big_kafka

GROUPS = 5_000
COLLECT_S, MEMORY_MB, GROWTH = 15, 1024, 2.3
REPEATS = 3
QUEUED_FOR_S = 300.0  # how long the fakes may take to encode their answers, once
DEADLINE_S = 120.0  # more than the bar: a busy machine misses the bar, and says by how much


@dataclass(frozen=True, slots=True)
class Figures:
    """Of the quickest of three collections; ``processor_s`` is the collecting process's own time on a processor."""

    groups: int
    pairs: int
    groups_s: float
    committed_s: float
    log_spans_s: float
    processor_s: float
    peak_mb: float

    @property
    def seconds(self) -> float:
        return self.groups_s + self.committed_s + self.log_spans_s


def measure() -> list[Bar]:
    half, full = (_in_a_process(groups) for groups in (GROUPS // 2, GROUPS))
    of = f"{full.groups:,} groups, {full.pairs:,} partitions"
    return [
        at_most(f"{of}: one collection", full.seconds, COLLECT_S, "s"),
        at_most(f"{of}: peak memory of the collecting process", full.peak_mb, MEMORY_MB, "MB"),
        at_most(f"{of}: processor time beside half as many", full.processor_s / half.processor_s, GROWTH, "times"),
        Bar(f"{of}: the groups and their members", round(full.groups_s, 3), "s"),
        Bar(f"{of}: what they have committed", round(full.committed_s, 3), "s"),
        Bar(f"{of}: log starts and ends", round(full.log_spans_s, 3), "s"),
        Bar(f"{of}: processor time of one collection", round(full.processor_s, 3), "s"),
    ]


def _in_a_process(groups: int) -> Figures:
    """So that nothing else is in its memory."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.pipeline.collection", str(groups)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Figures(**json.loads(done.stdout.splitlines()[-1]))


def _collect(client: WireClient, expected: int, deadline: float) -> Figures:
    used = time.process_time()
    began = time.perf_counter()
    groups = client.groups(deadline=deadline)
    listed = time.perf_counter()
    committed = client.committed(sorted(groups.groups), deadline=deadline)
    fetched = time.perf_counter()
    wanted: dict[str, set[int]] = {}
    for name in sorted(committed.offsets):
        for topic, offsets in committed.offsets[name].items():
            wanted.setdefault(topic, set()).update(offsets)
    spans = client.log_spans({topic: sorted(indexes) for topic, indexes in wanted.items()}, deadline=deadline)
    ended = time.perf_counter()
    assert not groups.errors
    assert not committed.errors
    assert not spans.errors
    assert len(groups.groups) == expected
    pairs = sum(len(offsets) for topics in committed.offsets.values() for offsets in topics.values())
    assert pairs == expected * TOPICS_OF_GROUP * PARTITIONS
    assert sum(map(len, spans.spans.values())) == pairs
    return Figures(
        expected,
        pairs,
        listed - began,
        fetched - listed,
        ended - fetched,
        time.process_time() - used,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def main(groups: int) -> None:
    with big_kafka(groups * TOPICS_OF_GROUP, groups) as kafka:
        client = WireClient(ClusterConnection("big", 1, tuple(kafka.bootstrap.split(","))))
        _collect(client, groups, QUEUED_FOR_S)
        quickest = min((_collect(client, groups, DEADLINE_S) for _ in range(REPEATS)), key=lambda each: each.seconds)
        client.close()
    print(json.dumps(asdict(quickest)))  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]))
