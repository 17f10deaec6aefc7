"""From a committed segment to a committed row: the collectors' writer, the pipeline, the ingest, all as they run.

One cluster with 100,000 pairs of group and partition, refreshed every 30 seconds of event time, then one with a
million. Each refresh goes into the outbox as a collector puts it there and is flushed; beat, workers and the pipeline
are the product's own processes. The next follows when the rows of the last are there, so that nothing queues, at
moments that have nothing to do with anybody's clock. The first batches after a start, while Java compiles, are told
apart. A million pairs are judged by whole windows too: what is measured comes after twelve refreshes.

Half an hour of refreshes passes in four minutes. All of it is of the hour in which it begins: what comes of one that is
over has that hour rolled up again, each minute here, where in life it is rolled up beside one or two of its batches.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.bench.bars import Bar, at_most, percentile
from tests.bench.server import empty_database

if TYPE_CHECKING:
    from tests.pipeline.made_segments import Shape

PAIRS, SEGMENTS, WARM = 100_000, 60, 15
MANY_PAIRS, MANY_SEGMENTS, MANY_BEFORE = 1_000_000, 5, 12
P95_S, MANY_S, JVM_MB = 5.0, 15.0, 2048
PARTITIONS = 20
INTERVAL_S = 30
LOOK_S = 0.02
WAIT_S = 300.0

_CELERY = ("-m", "celery", "-A", "kafkadash.celery")
_WORKER = ("worker", "-P", "threads", "--without-gossip", "--without-mingle", "--loglevel", "error")


def measure() -> list[Bar]:
    with empty_database() as folder, ExitStack() as stack:
        for arguments in (
            (*_CELERY, *_WORKER, "-c", "1", "-Q", "tick", "-n", "tick@bench"),
            (*_CELERY, *_WORKER, "-c", "6", "-Q", "collect", "-n", "collect@bench"),
            (*_CELERY, "beat", "--loglevel", "error", f"--pidfile={folder / 'beat.pid'}"),
        ):
            stack.enter_context(_process(*arguments))
        from django.conf import settings

        pipeline = stack.enter_context(
            _process("-m", "kafkadash.pipeline", "run", "--uri", settings.PIPELINE_URI, told=folder / "pipeline.log")
        )
        memory = stack.enter_context(Memory(pipeline))
        try:
            return _measured(memory)
        except BaseException:
            sys.stderr.write((folder / "pipeline.log").read_text(encoding="utf-8")[-4000:])
            raise


def _measured(memory: Memory) -> list[Bar]:
    from tests.pipeline.made_segments import (
        Shape,
    )  # which knows the settings: there are none before there is a database

    shape = Shape(groups=PAIRS // PARTITIONS, partitions=PARTITIONS, interval_s=INTERVAL_S)
    took = _taken("large", shape, WARM + SEGMENTS)
    counted = took[WARM:]
    of = f"{len(counted)} segments of {PAIRS:,} pairs: committed → rows committed"
    bars = [
        at_most(f"{of}, p95", percentile(counted, 95), P95_S, "s"),
        Bar(f"{of}, median", round(percentile(counted, 50), 3), "s"),
        Bar(f"{of}, longest", round(max(counted), 3), "s"),
        Bar("the first segment after the start", round(took[0], 3), "s"),
        at_most("memory of the pipeline's Java while it did", memory.peak_mb, JVM_MB, "MB"),
    ]
    many = replace(shape, groups=MANY_PAIRS // PARTITIONS)
    late = _taken("huge", many, MANY_BEFORE + MANY_SEGMENTS)[MANY_BEFORE:]
    of = f"{len(late)} segments of {MANY_PAIRS:,} pairs: committed → rows committed"
    return [
        *bars,
        at_most(f"{of}, longest", max(late), MANY_S, "s"),
        Bar("memory of the pipeline's Java with a million pairs", round(memory.peak_mb, 1), "MB"),
        Bar("memory of its largest Python worker", round(memory.python_mb, 1), "MB"),
    ]


def _taken(slug: str, shape: Shape, segments: int) -> list[float]:
    """Seconds of each segment from when it was committed until its rows were."""
    from django.db import connection, transaction

    from kafkadash.clusters.models import Cluster
    from kafkadash.export import flusher, outbox
    from kafkadash.export.schema import SegmentKind
    from kafkadash.history.models import PipelineLedger
    from tests.pipeline.made_segments import group_offsets

    Cluster.objects.create(name=slug, slug=slug, bootstrap_servers="127.0.0.1:1", enabled=False)
    chance = random.Random(3)
    now = datetime.now(UTC)
    begin = max(now - timedelta(seconds=INTERVAL_S * segments), now.replace(minute=0, second=0, microsecond=0))
    took = []
    for step in range(segments):
        packs = outbox.pack_facts([outbox.OutboxFacts(SegmentKind.GROUP_OFFSET, [group_offsets(shape, step)])])
        time.sleep(chance.uniform(0, 1))
        known = set(PipelineLedger.objects.values_list("pk", flat=True))
        with transaction.atomic():
            outbox.store_facts(outbox.OutboxReport(slug, begin + timedelta(seconds=INTERVAL_S * step), 100), packs)
        flusher.flush(flusher.ensure_writer(), only_if_due=False)
        flushed = time.time()
        while not (new := PipelineLedger.objects.exclude(pk__in=known).exclude(flushes=[]).first()):
            if time.time() - flushed > WAIT_S:
                raise AssertionError(f"{slug}: no rows of segment {step} after {WAIT_S:.0f} s")
            time.sleep(LOOK_S)
        assert new.newest_at is not None
        took.append(time.time() - new.newest_at.timestamp())
        assert not new.set_aside
        assert new.rows["lag_rollup"] > 0
    connection.close()
    return took


@contextmanager
def _process(*arguments: str, told: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    with ExitStack() as stack:
        out = stack.enter_context(told.open("wb")) if told is not None else subprocess.DEVNULL
        process = subprocess.Popen([sys.executable, *arguments], stdout=out, stderr=out)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Memory:
    """What Java and each Python below a process have resident, at most, looked at twice a second."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.peak_mb = self.python_mb = 0.0
        self._process = psutil.Process(process.pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            try:
                below = self._process.children(recursive=True)
                java = sum(child.memory_info().rss for child in below if "java" in child.name()) / 1e6
                python = [child.memory_info().rss / 1e6 for child in below if "python" in child.name()]
            except psutil.Error:
                continue
            self.peak_mb = max(self.peak_mb, java)
            self.python_mb = max([self.python_mb, *python])
