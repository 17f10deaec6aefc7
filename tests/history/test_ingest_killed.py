"""The ingest as processes that are killed at every named point, and two of them at once: nothing doubled, nothing lost.

What is counted up (compared verdicts) would show a result that is taken in twice; what is upserted, one that is lost.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from kafkadash.clusters.models import Cluster
from kafkadash.export.results import ResultKind
from kafkadash.history import schedule as turns
from kafkadash.history.ingest import POINTS
from kafkadash.history.models import PipelineLedger, PipelineState, Rollup, VerdictCount, VerdictDifference
from tests.history.handed_back import Folder, lag_rollup, verdict

pytestmark = pytest.mark.django_db(transaction=True)

FEW, MANY = 20, 4100
"""Groups: one transaction holds the few, and not the many, so that there is a point between two."""
NOW = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=30)
_TURN = """
import django, sys
django.setup()
from kafkadash.history import ingest, schedule
for _ in range(int(sys.argv[1])):
    ingest.take_turn(schedule.STATE_ID, only_if_due=False)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    Cluster.objects.create(name="memory", slug="memory", bootstrap_servers="127.0.0.1:1")
    turns.ensure_state()
    return Folder(tmp_path)


def start(folder: Folder, *, point: str = "", times: int = 1, **more: str) -> subprocess.Popen[str]:
    database = connection.settings_dict
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "kafkadash.settings",
        "DATABASE_URL": f"postgres://{database['USER']}@/{quote(str(database['HOST']))}/{database['NAME']}",
        "PIPELINE_URI": folder.uri,
        "INGEST_FAIL_POINT": point,
        **more,
    }
    command = [sys.executable, "-c", _TURN, str(times)]
    return subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, text=True, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[str]) -> int:
    _, told = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGKILL), told
    return process.returncode


def written(folder: Folder, batch: int, groups: int) -> None:
    """Each group has a bucket for each batch, with as many samples as the batch's number; a tenth differs."""
    at = NOW + timedelta(minutes=batch)
    rollups = [lag_rollup("memory", f"g{n}", "t", at, *range(batch)) for n in range(groups)]
    verdicts = [verdict("memory", n, at, "stall" if n % 10 == 0 else "ok", "ok") for n in range(100)]
    folder.result(batch, {ResultKind.LAG_ROLLUP: rollups, ResultKind.LAG_VERDICT: verdicts}, flushes=[(1, batch, at)])


def check(*groups: int) -> None:
    """The tables are those of every batch taken in once; ``groups``: how many each batch had, from the first."""
    batches = len(groups)
    assert sorted(PipelineLedger.objects.values_list("batch", flat=True)) == list(range(1, batches + 1))
    found = sorted(Rollup.objects.values_list("series__group", "bucket", "samples", "most"))
    minutes = {batch: (NOW + timedelta(minutes=batch), batch, batch - 1) for batch in range(1, batches + 1)}
    assert found == sorted((f"g{n}", *minutes[batch]) for batch, many in enumerate(groups, 1) for n in range(many))
    counts = VerdictCount.objects.values_list("judged", "differed")
    assert (sum(j for j, _ in counts), sum(d for _, d in counts)) == (100 * batches, 10 * batches)
    assert VerdictDifference.objects.count() == 10


def test_ingest__killed_at_every_point__nothing_is_doubled_or_lost(folder: Folder) -> None:
    # Files go at once, so that the point between the deletion of rows and marker is reached.
    groups = [MANY if point == "portion-stored" else FEW for point in POINTS]
    for batch, (point, many) in enumerate(zip(POINTS, groups, strict=True), 1):
        written(folder, batch, many)
        assert ended(start(folder, point=point, KEEP_RESULTS_HOURS="-1")) == -signal.SIGKILL, point
        PipelineState.objects.update(lease_until=None)  # as if the lease of the one that died had run out
    assert ended(start(folder, times=2, KEEP_RESULTS_HOURS="-1")) == 0
    check(*groups)
    assert not [path for path in (folder.root / "results").rglob("*") if path.is_file()]


def test_ingest__two_at_once__each_result_is_taken_in_once(folder: Folder) -> None:
    for batch in range(1, 9):
        written(folder, batch, 200)
    both = [start(folder, times=3) for _ in range(2)]
    assert [ended(process) for process in both] == [0, 0]
    check(*[200] * 8)
