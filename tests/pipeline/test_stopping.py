"""The pipeline asked to end while Spark is still starting: nothing of it stays, and its last word is "stopped"."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from django.conf import settings

from kafkadash.pipeline.standing import standing
from kafkadash.pipeline.store import open_store
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("spark")

SECONDS = 60
SPARK = "org.apache.spark.deploy.SparkSubmit"


def _java_of(process: psutil.Popen) -> list[psutil.Process]:
    """Once it is Java's own process, no longer the script that becomes it."""
    assert process.poll() is None, process.stderr.read()
    found = []
    for child in process.children():
        with contextlib.suppress(psutil.Error):  # another one that has just ended
            if "java" in child.name() and SPARK in child.cmdline():
                found.append(child)
    return found


def test_asked_to_end_while_it_starts__leaves_no_java_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kafkadash.pipeline", "run", "--uri", tmp_path.as_uri()]
    java: list[psutil.Process] = []

    def started() -> bool:
        java.extend(_java_of(process))
        return bool(java)

    with psutil.Popen(command, cwd=settings.BASE_DIR, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(started, "Java was started", SECONDS)
            process.terminate()
            process.terminate()
            assert process.wait(SECONDS) == 0, process.stderr.read()
            assert not java[0].is_running()
        finally:
            for each in (*java, process):
                if each.is_running():
                    each.kill()
    assert ("state", "stopped") in standing(open_store(tmp_path.as_uri()), datetime.now(UTC)).lines
