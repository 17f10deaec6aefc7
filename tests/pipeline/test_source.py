"""New manifests are found in their order, each once, by looking only where something can have come."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkadash.pipeline.source import Manifests, after
from kafkadash.pipeline.store import Store, open_store

HOURS = ("2026-03-01/23", "2026-03-02/00", "2026-03-02/07", "2026-03-04/11")
ADDRESSES = [f"manifest/{hour}/{number:012d}-000000000001.parquet" for number, hour in enumerate(HOURS)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    for address in ADDRESSES:
        _write(tmp_path, address)
    return open_store(tmp_path.as_uri())


def _write(folder: Path, address: str) -> str:
    path = folder / "segments" / address
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return address


def test_what_comes_after_each(store: Store) -> None:
    assert list(after(store, "")) == ADDRESSES
    for place, address in enumerate(ADDRESSES):
        assert list(after(store, address)) == ADDRESSES[place + 1 :]


def test_there_may_be_nothing_at_all(tmp_path: Path) -> None:
    assert list(after(open_store(tmp_path.as_uri()), "")) == []
    assert list(after(open_store(tmp_path.as_uri()), ADDRESSES[0])) == []


def test_what_is_being_written_or_is_no_manifest_is_not_there(store: Store, tmp_path: Path) -> None:
    for name in ("_000000000009-000000000001.parquet", ".hidden.parquet", "000000000009-000000000001.parquet.crc"):
        _write(tmp_path, f"manifest/{HOURS[-1]}/{name}")
    assert list(after(store, ADDRESSES[-2])) == ADDRESSES[-1:]


def test_a_look_lists_the_last_hour_and_what_came_later(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    names = Store.names

    def noted(store: Store, folder: str) -> list[str]:
        listed.append(folder)
        return names(store, folder)

    monkeypatch.setattr(Store, "names", noted)
    assert list(after(store, ADDRESSES[2])) == ADDRESSES[3:]
    root = "segments/manifest"
    assert listed == [root, f"{root}/2026-03-02", f"{root}/{HOURS[2]}", f"{root}/2026-03-04", f"{root}/{HOURS[3]}"]


def test_batches_are_no_longer_than_asked_and_the_same_again(store: Store, tmp_path: Path) -> None:
    source = Manifests({"uri": store.uri, "at_once": "3"})
    reader = source.simpleStreamReader(None)  # type: ignore[arg-type]
    begin = reader.initialOffset()
    rows, middle = reader.read(begin)
    assert [name for (name,) in rows] == ADDRESSES[:3]
    rows, end = reader.read(middle)
    assert [name for (name,) in rows] == ADDRESSES[3:]
    assert reader.read(end)[1] == end
    _write(tmp_path, "manifest/2026-03-04/12/000000000009-000000000001.parquet")
    assert [name for (name,) in reader.readBetweenOffsets(begin, middle)] == ADDRESSES[:3]
    assert [name for (name,) in reader.readBetweenOffsets(middle, end)] == ADDRESSES[3:]


def test_what_comes_while_all_that_is_there_is_taken_waits_for_the_next_time(store: Store, tmp_path: Path) -> None:
    reader = Manifests({"uri": store.uri, "at_once": "30"}).simpleStreamReader(None)  # type: ignore[arg-type]
    reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]
    late = _write(tmp_path, "manifest/2026-03-04/12/000000000009-000000000001.parquet")
    rows, end = reader.read(reader.initialOffset())
    assert [name for (name,) in rows] == ADDRESSES
    rows, same = reader.read(end)
    assert (list(rows), same) == ([], end)
    assert list(after(store, end["last"])) == [late]
