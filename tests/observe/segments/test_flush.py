"""From the outbox into files: whole, once, with a manifest that says what is there and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.db import transaction

from kafkadash.domain.segments import COLUMNS, IDENTITY, SCHEMA_KEY, SegmentKind
from kafkadash.observe import lease
from kafkadash.observe.models import SegmentOutbox, SegmentWriter
from kafkadash.observe.segments import flusher
from kafkadash.observe.segments.encoding import BadFacts, Packed, pack
from kafkadash.observe.segments.outbox import Told, store
from tests.observe.segments.conftest import Rows
from tests.pipeline.made_segments import Shape, group_offsets

pytestmark = pytest.mark.django_db

Flusher = Callable[[], flusher.Flushed]
AT = datetime(2026, 11, 21, 2, 3, 4, 567_891, tzinfo=UTC)


def queue(*packs: Packed, cluster: str = "a", at: datetime = AT, **told: Any) -> None:
    with transaction.atomic():
        store(Told(cluster, at, 42, **told), packs)


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def offsets(groups: int = 2, step: int = 1) -> Packed:
    return pack(SegmentKind.GROUP_OFFSET, [group_offsets(Shape(groups=groups), step)])


def test_a_hundred_thousand_rows__come_back_as_they_were(folder: Path, flush: Flusher, rows_of: Rows) -> None:
    columns = group_offsets(Shape(groups=5000), 3)
    queue(pack(SegmentKind.GROUP_OFFSET, [columns]))
    assert flush() == flusher.Flushed(1, 1)
    (path,) = (folder / "group_offset").rglob("*.parquet")
    table = pq.read_table(path)
    assert table.num_rows == 100_000
    assert table.column_names == [column.name for column in COLUMNS[SegmentKind.GROUP_OFFSET]]
    for name in ("group", "topic", "partition", "committed", "log_end", "lag", "previous_committed", "previous_lag"):
        assert table[name].to_pylist() == columns[name], name
    assert set(table["observed_at"].to_pylist()) == {AT}
    assert set(table["schema"].to_pylist()) == {1}
    assert pq.read_metadata(path).metadata[SCHEMA_KEY.encode()] == b"1"
    (told,) = rows_of("manifest")
    assert (told["rows"], told["file"]) == (100_000, path.relative_to(folder).as_posix())
    assert not SegmentOutbox.objects.exists()


def test_the_manifest__tells_missing_from_nothing_and_is_the_last(folder: Path, flush: Flusher, rows_of: Rows) -> None:
    queue(offsets(), cluster="a", not_answered=[3], errors=["broker 3: no answer"])
    queue(Packed(SegmentKind.GROUP_OFFSET, 0, b""), cluster="b")
    queue(Packed(SegmentKind.QUORUM, 0, b""), cluster="b", errors=["It is down.", "It stays so."])
    flush()
    told = {(row["cluster"], row["kind"]): row for row in rows_of("manifest")}
    read = {key: (row["rows"], row["not_answered"], row["errors"]) for key, row in told.items()}
    assert read == {
        ("a", "group_offset"): (40, [3], "broker 3: no answer"),
        ("b", "group_offset"): (0, [], None),
        ("b", "quorum"): (0, [], "It is down.\nIt stays so."),
    }
    assert [bool(row["file"]) for row in told.values()] == [True, False, False]
    kinds = {name.split("/")[0]: (folder / name).stat().st_mtime_ns for name in files(folder)}
    assert kinds.keys() == {"group_offset", "manifest"}
    assert kinds["manifest"] > kinds["group_offset"]


def test_numbers__are_consecutive_per_cluster_and_kind_and_per_flush(
    folder: Path, flush: Flusher, rows_of: Rows
) -> None:
    for _ in range(3):
        queue(offsets(), cluster="a")
        queue(offsets(), cluster="b")
        flush()
    told = rows_of("manifest")
    assert [(row["cluster"], row["seq"], row["flush_seq"]) for row in told] == [
        (cluster, number, number) for number in (1, 2, 3) for cluster in "ab"
    ]
    rows = rows_of("group_offset")
    assert len({(row["cluster"], row["epoch"], row["seq"], row["group"], row["partition"]) for row in rows}) == 240
    writer = SegmentWriter.objects.get()
    assert writer.flushed_at is not None
    assert (writer.seq, writer.flush_epoch, writer.flush_rows) == (3, None, [])


def test_the_clock_goes_back__addresses_go_on(folder: Path, flush: Flusher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers keep the last address and look no further back."""
    now = lease.Lease.now
    made: list[str] = []
    for hours in (0, -2, -2, -1):
        monkeypatch.setattr(lease.Lease, "now", lambda self, hours=hours: now(self) + timedelta(hours=hours))
        queue(offsets())
        flush()
        made += [name for name in files(folder) if name.startswith("manifest/") and name not in made]
    assert len(made) == 4
    assert made == sorted(made)


def test_nothing_waits__nothing_is_written(folder: Path, flush: Flusher, rows_of: Rows) -> None:
    assert flush() == flusher.Flushed(0, 0)
    assert not folder.exists()


def test_a_transaction_that_is_taken_back__leaves_no_facts_and_no_gap(
    folder: Path, flush: Flusher, rows_of: Rows
) -> None:
    with transaction.atomic():
        store(Told("a", AT, 1), [offsets()])
        transaction.set_rollback(True)
    queue(offsets())
    flush()
    assert [row["seq"] for row in rows_of("manifest")] == [1]


def test_more_than_one_flush_may_hold__is_written_in_several(
    flush: Flusher, rows_of: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = offsets()
    monkeypatch.setattr(flusher, "MOST_BYTES", 2 * len(one.data))
    for number in range(5):
        queue(one, at=AT + timedelta(seconds=number))
    assert flush() == flusher.Flushed(3, 5)
    assert [(row["flush_seq"], row["seq"]) for row in rows_of("manifest")] == [
        (1, 1), (1, 2), (2, 3), (2, 4), (3, 5),
    ]  # fmt: skip


def broken() -> Iterator[tuple[str, dict[str, Any]]]:
    good = dict(group_offsets(Shape(groups=1), 1))
    yield "no column nonsense", {**good, "nonsense": 1}
    yield "no column seq", {**good, "seq": 1}
    yield "differ in length", {**good, "partition": [1, 2]}
    yield "group_offset.group is not known", {name: values for name, values in good.items() if name != "group"}
    yield "group_offset.partition", {**good, "partition": ["one"] * 20}
    yield "group_offset.partition", {**good, "partition": [2**40] * 20}
    yield "no column says how many", {"verdict": "ok"}


@pytest.mark.parametrize(("why", "columns"), broken())
def test_columns_that_are_not_those_of_the_kind__are_refused(why: str, columns: dict[str, Any]) -> None:
    with pytest.raises(BadFacts, match=why):
        pack(SegmentKind.GROUP_OFFSET, [columns])


def test_every_kind_but_the_manifest_begins_with_the_identity() -> None:
    assert all(columns[: len(IDENTITY)] == IDENTITY for columns in COLUMNS.values())
