"""Flushers that are killed, that come two at once, and that sleep past their lease: each row is in a file once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from kafkadash.observe.fail_file import FailFile
from kafkadash.observe.models import SegmentWriter
from kafkadash.observe.segments import fail_points, flusher
from tests.observe.segments.killing import Flushing

SAMPLE = ("group_offset.written", "manifest.written", "committed")
Flush = Callable[[], flusher.Flushed]


class Died(BaseException):
    pass


def dies() -> None:
    raise Died


@pytest.fixture
def flushing(db: None, folder: Path) -> Flushing:
    return Flushing(folder.parent.parent)


def take_over(flush: Flush) -> flusher.Flushed:
    """As if the lease were over: another flusher does all there is to do."""
    SegmentWriter.objects.update(lease_until=Now())
    return flush()


@pytest.mark.django_db(transaction=True)
def test_processes_that_are_killed_one_after_the_other__leave_one_whole_flush(flushing: Flushing) -> None:
    flushing.queue(2)
    for number in range(len(SAMPLE)):
        assert flushing.run(*SAMPLE[number:]) == -9, SAMPLE[number]
        if number == 0:
            flushing.queue(1)
    assert flushing.run() == 0
    assert flushing.problems() == []
    assert len(list((flushing.segments / "manifest").rglob("*.parquet"))) == 2, "what came later is in the next flush"


@pytest.mark.django_db(transaction=True)
def test_two_at_once__one_of_them_writes(flushing: Flushing) -> None:
    flushing.queue(3)
    both = [flushing.start() for _ in range(2)]
    ends = [(process.communicate(timeout=120), process.returncode) for process in both]
    assert {code for _, code in ends} <= {0, 3}, ends
    assert [code for _, code in ends].count(0) >= 1
    assert flushing.problems() == []


@pytest.mark.parametrize("point", fail_points.POINTS)
def test_one_that_fails_at_any_point__is_finished_by_the_next(
    point: str, flushing: Flushing, flush: Flush, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing.queue()
    (tmp_path / "points").write_text(point)
    with monkeypatch.context() as armed:
        armed.setattr(fail_points, "_armed", FailFile("X", tmp_path / "points", fail_points.POINTS, dies))
        with pytest.raises(Died):
            flush()
    bound = SegmentWriter.objects.get()
    flushing.queue()
    assert flush().flushes == 2
    assert flushing.problems() == []
    names = sorted(path.stem for path in (flushing.segments / "manifest").rglob("*.parquet"))
    assert names[0] == f"{bound.flush_epoch:012d}-{bound.flush_seq:012d}", "under the numbers that it had"


@pytest.mark.parametrize("kind", ["replica", "manifest"])
def test_one_that_slept_before_its_file_shows__shows_nothing(
    kind: str, flushing: Flushing, flush: Flush, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease is over: it finds that out, and what the other one wrote stays as it is."""
    flushing.queue()
    reached = fail_points.at_point
    slept: list[object] = []

    def sleeps(point: str) -> None:
        if point == f"{kind}.written" and not slept:
            slept.append(point)
            assert take_over(flush) == flusher.Flushed(1, 10)
            slept.extend(_bytes(flushing))
        reached(point)

    monkeypatch.setattr(fail_points, "at_point", sleeps)
    assert flush() == flusher.Flushed(0, 0)
    assert slept[1:] == _bytes(flushing)
    assert flushing.problems() == []


def test_one_that_slept_between_its_last_look_and_the_rename__finds_nothing_to_rename(
    flushing: Flushing, flush: Flush, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing.queue()
    still_ours = flusher._Leased.still_ours
    slept: list[str] = []

    def then_sleeps(steps: Any) -> None:
        still_ours(steps)
        if not slept:
            slept.append("")
            assert take_over(flush) == flusher.Flushed(1, 10)

    monkeypatch.setattr(flusher._Leased, "still_ours", then_sleeps)
    done = flush()
    assert done == flusher.Flushed(0, 0), "and it says nothing about that to anybody"
    assert SegmentWriter.objects.get().last_error == ""
    assert flushing.problems() == []


def _bytes(flushing: Flushing) -> list[tuple[str, bytes, int]]:
    paths = sorted(flushing.segments.rglob("*.parquet"))
    return [(path.name, path.read_bytes(), path.stat().st_ino) for path in paths]
