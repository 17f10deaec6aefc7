"""Where something is missing: the folder tells it, and so do the pages.

The session's ports on this machine take only what knows its secret.
"""

from __future__ import annotations

import errno
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from django.conf import settings

from kafkadash.core.messages import as_message, coded, message_text
from kafkadash.pipeline import __main__ as program
from kafkadash.pipeline import session
from kafkadash.pipeline.application import _end_said_to
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.flushes import find_unreadable, take_in
from kafkadash.pipeline.heartbeat import PipelineHeartbeat, read_status
from kafkadash.pipeline.session import build_settings
from kafkadash.pipeline.store import PipelineStore, open_store
from tests.pipeline.making import Maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_JAVA = coded(PipelineErrorCode.NO_JAVA_FOR_SPARK, version=17)


@pytest.fixture
def store(tmp_path: Path) -> PipelineStore:
    return open_store(tmp_path.as_uri())


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "require", mock.Mock(side_effect=PipelineFault(NO_JAVA)))


@pytest.mark.usefixtures("without_java")
def test_no_java__is_left_as_the_last_word(store: PipelineStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["run", "--uri", store.uri]) == program.REFUSED
    assert capsys.readouterr().err == f"{NO_JAVA}\n"
    found = read_status(store, datetime.now(UTC))
    assert (("state", "failed") in found.lines, found.wrong) == (True, NO_JAVA)


@pytest.mark.usefixtures("without_java")
@pytest.mark.parametrize("action", ["run", "once"])
def test_no_java__while_another_one_runs__is_said_here_only(store: PipelineStore, action: str) -> None:
    PipelineHeartbeat(store, 5, state="waiting").beat()
    assert program.main([action, "--uri", store.uri]) == program.REFUSED
    assert read_status(store, datetime.now(UTC)).wrong is None


def test_no_pyspark__is_said_as_well(store: PipelineStore) -> None:
    without = "import sys; sys.modules['pyspark'] = None; from kafkadash.pipeline.__main__ import main; "
    words = [sys.executable, "-c", f"{without}sys.exit(main(sys.argv[1:]))", "run", "--uri", store.uri]
    ended = subprocess.run(words, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (program.REFUSED, f"{message_text(PipelineErrorCode.NO_PYSPARK)}\n")
    assert read_status(store, datetime.now(UTC)).wrong == coded(PipelineErrorCode.NO_PYSPARK)


def test_a_store_that_does_not_answer__says_nothing_of_its_files(store: PipelineStore, tmp_path: Path) -> None:
    (manifest,) = Maker(tmp_path / "segments").flushes(1)
    name = manifest.relative_to(tmp_path / "segments").as_posix()
    assert take_in(store, [name]).set_aside == []
    with mock.patch.object(PipelineStore, "open", side_effect=OSError("When reading: AWS Error SLOW_DOWN")):
        for ask in (lambda: take_in(store, [name]), lambda: find_unreadable(store, [name])):
            with pytest.raises(OSError, match="SLOW_DOWN"):
                ask()
    assert find_unreadable(store, [name, "manifest/2026-03-02/09/none.parquet"])[0].gone


def test_a_disk_that_is_full_hides_no_fault(store: PipelineStore, capsys: pytest.CaptureFixture[str]) -> None:
    beats = PipelineHeartbeat(store, 5)
    beats.start()
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        mock.patch.object(PipelineStore, "write", side_effect=full),
        pytest.raises(PipelineFault, match="No space for the marker"),
        _end_said_to(beats),
    ):
        raise PipelineFault(as_message("No space for the marker."))
    assert f"heartbeat: {full}" in capsys.readouterr().err


def test_spark_of_this_machine__has_a_random_secret(spark: SparkSession) -> None:
    """Spark keeps it under this name of org.apache.spark.SecurityManager."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    held = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getCredentials()
    assert len(held.getSecretKey(jvm.org.apache.hadoop.io.Text("sparkCookie"))) >= 32


def test_spark_elsewhere__has_the_secret_that_is_set_there() -> None:
    environment = {"PYSPARK_SUBMIT_ARGS": "--master spark://host:7077 pyspark-shell"}
    assert "spark.authenticate" not in build_settings(environment)
