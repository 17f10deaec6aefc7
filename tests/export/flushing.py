"""Flushers as processes that are killed, and what must be true of the files whatever became of them.

``Flushing`` puts snapshots into the outbox and remembers every row of them; ``problems`` compares these with the rows
of the files that manifests name, and has the segments checked.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
from django.conf import settings
from django.db import connection, transaction

from kafkadash.export import flusher
from kafkadash.export.encoding import Columns, pack_rows
from kafkadash.export.files import CheckedFiles, check_files
from kafkadash.export.models import SegmentOutbox, SegmentWriter
from kafkadash.export.outbox import OutboxReport, store_facts
from kafkadash.export.places import LocalFolder
from kafkadash.export.schema import IDENTITY, SegmentKind
from tests.pipeline.made_segments import Shape, group_offsets
from tests.waiting import wait_until

AT = datetime(2026, 11, 21, 2, 3, 4, tzinfo=UTC)
LEASE_S = 1.0
_Row = tuple[object, ...]
_IDENTITY = {column.name for column in IDENTITY}


def facts(step: int) -> dict[SegmentKind, Columns]:
    """A few rows of every kind, other ones at each step."""
    return {
        SegmentKind.REPLICA: {
            "topic": "orders", "partition": list(range(9)), "broker": 1, "directory": "/data",
            "bytes_on_disk": [1000 * step + n for n in range(9)], "is_future": False, "method": "size",
        },
        SegmentKind.GROUP_OFFSET: group_offsets(Shape(groups=3), step),
        SegmentKind.QUORUM: {
            "replica": [1, 2, 3], "directory_id": "", "leader": 1, "leader_epoch": step, "role": "follower",
        },
        SegmentKind.REASSIGNMENT: {
            "topic": "orders", "partition": [step], "replicas": [[1, 2]], "adding": [[2]], "removing": [[]],
            "first_seen": AT,
        },
        SegmentKind.BROKER: {"broker": [1, 2], "directory": "/data", "replica_bytes": [step, None]},
        SegmentKind.TRAFFIC: {
            "subject": ["cluster", "topic", "broker"], "topic": [None, "orders", None], "broker": [None, None, 1],
            "records_rate": [step / 8, step / 8, None], "bytes_rate": [step * 9.5, None, None],
            "unknown": [0, 0, 4], "without_bytes": [0, 9, 0],
        },
    }  # fmt: skip


class Flushing:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.segments = folder / "the pipeline" / "segments"
        self.points = folder / "points"
        self._steps = 0
        self._queued: Counter[_Row] = Counter()
        database = connection.settings_dict
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "SEGMENT_FAIL_POINTS"},
            "DATABASE_URL": f"postgres://{database['USER']}@/{quote(str(database['HOST']))}/{database['NAME']}",
            "PIPELINE_URI": (folder / "the pipeline").as_uri(),
            "LEASE_TTL": str(LEASE_S),
            "LOG_LEVEL": "ERROR",
        }

    def queue(self, snapshots: int = 1, clusters: Iterable[str] = ("a", "b")) -> None:
        """Every kind of each cluster, as many snapshots."""
        for _ in range(snapshots):
            self._steps += 1
            at = AT + timedelta(seconds=self._steps)
            for cluster in clusters:
                packs = [pack_rows(kind, [columns]) for kind, columns in facts(self._steps).items()]
                with transaction.atomic():
                    store_facts(OutboxReport(cluster, at, 5), packs)
                for each in packs:
                    for row in pq.read_table(io.BytesIO(each.data)).to_pylist():
                        self._queued[_row(each.kind, cluster, at, row)] += 1

    def start(self, *points: str) -> subprocess.Popen[str]:
        """A flusher that dies at each of these that it reaches; points that others left are taken out."""
        environment = dict(self._environment)
        if points:
            self.points.write_text("".join(f"{point}\n" for point in points), encoding="utf-8")
            environment["SEGMENT_FAIL_POINTS"] = str(self.points)
        return subprocess.Popen(
            [sys.executable, "manage.py", "segments", "flush"],
            cwd=settings.BASE_DIR, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *points: str) -> int:
        """Its exit code, after the lease of whoever was killed before it is over."""
        self.wait_for_the_lease()
        process = self.start(*points)
        _, told = process.communicate(timeout=120)
        assert process.returncode in (0, -9), told
        return process.returncode

    def wait_for_the_lease(self) -> None:
        wait_until(lambda: not self.leased(), "the lease of the last flusher is over", 60)

    def leased(self) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {flusher.WRITERS.table} WHERE lease_until > clock_timestamp()")
            return bool(cursor.fetchone()[0])

    def problems(self) -> list[str]:
        """What is wrong with the files, after everything was flushed."""
        wrong = check_files(LocalFolder("", self.segments), datetime.now(UTC) + timedelta(days=1), CheckedFiles())
        found = [str(each) for each in wrong]
        rows = self.rows()
        found += [f"lost: {row}" for row in (self._queued - rows)]
        found += [f"doubled or made up: {row}" for row in (rows - self._queued)]
        found += [f"waits still: {row}" for row in SegmentOutbox.objects.all()]
        found += [f"left behind: {path.name}" for path in self.segments.rglob("_*")]
        if SegmentWriter.objects.exclude(flush_epoch=None).exists():
            found.append("a flush is under way still")
        return found

    def rows(self) -> Counter[_Row]:
        """Of every file that a manifest names, once for each time that one does."""
        found: Counter[_Row] = Counter()
        for manifest in sorted((self.segments / "manifest").rglob("[0-9]*.parquet")):
            told = pq.read_table(manifest).to_pylist()
            for name in {row["file"] for row in told} - {""}:
                kind = SegmentKind(name.split("/", maxsplit=1)[0])
                for row in pq.read_table(self.segments / name).to_pylist():
                    own = {
                        key: row[key] for key in row if key not in ("schema", "cluster", "epoch", "seq", "observed_at")
                    }
                    found[_row(kind, row["cluster"], row["observed_at"], own)] += 1
        return found


def _row(kind: SegmentKind, cluster: str, at: datetime, row: dict[str, Any]) -> _Row:
    return (kind, cluster, at, *(tuple(value) if isinstance(value, list) else value for value in row.values()))
