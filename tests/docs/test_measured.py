"""Results of benches become rows of docs/measured.md; rows of a bench without results stay."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests import measured
from tests.bench.bars import Bar
from tests.measured import MeasuredFigure

pytestmark = pytest.mark.domain

DAY_S = 1_795_564_800  # 2026-11-25 00:00 UTC
OLD = MeasuredFigure("pages", "board: p95", "91 ms", "≤ 150 ms", "2026-11-21")


def kept(folder: Path, bench: str, *entries: dict[str, object]) -> None:
    path = folder / f"{bench}.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    os.utime(path, (DAY_S, DAY_S))


@pytest.mark.parametrize(("value", "text"), [(1700, "1,700"), (0.5, "0.5"), (1.013, "1.01"), (10.0, "10"), (0, "0")])
def test_value__number__is_written_without_needless_zeros(value: float, text: str) -> None:
    assert measured.format_value(value) == text


def test_benches__entries_with_and_without_a_limit__become_rows_of_that_day(tmp_path: Path) -> None:
    kept(
        tmp_path,
        "collect",
        {"name": "first refresh", "value": 20.5, "unit": "s", "bar": "≤ 15", "ok": False},
        {"name": "median", "value": 3, "unit": "s", "bar": "", "ok": None},
    )
    assert measured.read_benches(tmp_path)["collect"] == [
        MeasuredFigure("collect", "first refresh", "20.5 s (missed)", "≤ 15 s", "2026-11-25"),
        MeasuredFigure("collect", "median", "3 s", "–", "2026-11-25"),
    ]


def test_page__table_written_and_read__is_the_same() -> None:
    figures = {"collect": [MeasuredFigure.from_bar("collect", Bar("first", 2, "s"), "2026-11-25")], "pages": [OLD]}
    page = f"# Measured\n<!-- measured: begin -->\n{measured.page_table(figures)}<!-- measured: end -->\nmore\n"
    assert measured.read_page(page) == figures


def test_main__bench_with_a_file__takes_the_place_of_its_rows_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, readme = tmp_path / "measured.md", tmp_path / "README.md"
    table = measured.page_table(
        {"pages": [OLD], "collect": [MeasuredFigure("collect", "old", "1 s", "–", "2026-11-20")]}
    )
    page.write_text(f"<!-- measured: begin -->\n{table}<!-- measured: end -->\n", encoding="utf-8")
    readme.write_text("<!-- figures: begin -->\n<!-- figures: end -->\nrest\n", encoding="utf-8")
    kept(tmp_path, "collect", {"name": "new", "value": 2, "unit": "s", "bar": "", "ok": None})
    monkeypatch.setattr(measured, "PAGE", page)
    monkeypatch.setattr(measured, "README", readme)
    monkeypatch.setattr(measured, "KEPT_IN", tmp_path)
    monkeypatch.setattr(measured, "README_FIGURES", {("collect", "new"): "A new figure"})

    assert measured.main() == 0

    written = measured.read_page(page.read_text(encoding="utf-8"))
    assert written["pages"] == [OLD]
    assert [figure.name for figure in written["collect"]] == ["new"]
    assert "| A new figure | 2 s | – |\n<!-- figures: end -->\nrest" in readme.read_text(encoding="utf-8")


def test_main__results_without_a_figure_of_the_readme__changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path, "pages", {"name": "only a part", "value": 2, "unit": "s", "bar": "", "ok": None})
    before = measured.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(measured, "KEPT_IN", tmp_path)
    assert measured.main() == 1
    assert measured.PAGE.read_text(encoding="utf-8") == before
