"""Where something is missing: the folder tells it, and so do the pages."""

from __future__ import annotations

import errno
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest
from django.conf import settings

from kafkadash.domain.messages import message_text
from kafkadash.pipeline import __main__ as program
from kafkadash.pipeline import session
from kafkadash.pipeline.application import _end_said_to
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.flushes import take_in, unreadable
from kafkadash.pipeline.heartbeat import Heartbeat
from kafkadash.pipeline.standing import standing
from kafkadash.pipeline.store import Store, open_store
from tests.pipeline.making import Maker

NO_JAVA = str(message_text(PipelineErrorCode.NO_JAVA_FOR_SPARK, version=17))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path.as_uri())


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "require", mock.Mock(side_effect=PipelineFault(NO_JAVA)))


@pytest.mark.usefixtures("without_java")
def test_no_java__is_left_as_the_last_word(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["run", "--uri", store.uri]) == program.REFUSED
    assert capsys.readouterr().err == f"{NO_JAVA}\n"
    found = standing(store, datetime.now(UTC))
    assert (("state", "failed") in found.lines, found.wrong) == (True, NO_JAVA)


@pytest.mark.usefixtures("without_java")
@pytest.mark.parametrize("action", ["run", "once"])
def test_no_java__while_another_one_runs__is_said_here_only(store: Store, action: str) -> None:
    Heartbeat(store, 5, state="waiting").beat()
    assert program.main([action, "--uri", store.uri]) == program.REFUSED
    assert standing(store, datetime.now(UTC)).wrong is None


def test_no_pyspark__is_said_as_well(store: Store) -> None:
    without = "import sys; sys.modules['pyspark'] = None; from kafkadash.pipeline.__main__ import main; "
    words = [sys.executable, "-c", f"{without}sys.exit(main(sys.argv[1:]))", "run", "--uri", store.uri]
    ended = subprocess.run(words, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (program.REFUSED, f"{message_text(PipelineErrorCode.NO_PYSPARK)}\n")
    assert standing(store, datetime.now(UTC)).wrong == str(message_text(PipelineErrorCode.NO_PYSPARK))


def test_a_store_that_does_not_answer__says_nothing_of_its_files(store: Store, tmp_path: Path) -> None:
    (manifest,) = Maker(tmp_path / "segments").flushes(1)
    name = manifest.relative_to(tmp_path / "segments").as_posix()
    assert take_in(store, [name]).set_aside == []
    with mock.patch.object(Store, "open", side_effect=OSError("When reading: AWS Error SLOW_DOWN")):
        for ask in (lambda: take_in(store, [name]), lambda: unreadable(store, [name])):
            with pytest.raises(OSError, match="SLOW_DOWN"):
                ask()
    assert unreadable(store, [name, "manifest/2026-03-02/09/none.parquet"])[0].gone


def test_a_disk_that_is_full_hides_no_fault(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    beats = Heartbeat(store, 5)
    beats.start()
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        mock.patch.object(Store, "write", side_effect=full),
        pytest.raises(PipelineFault, match="No space for the marker"),
        _end_said_to(beats),
    ):
        raise PipelineFault("No space for the marker.")
    assert "heartbeat: [Errno 28] No space left on device" in capsys.readouterr().err
