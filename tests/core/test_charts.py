"""Charts as the browser draws them: what is shown of the time, the axis, and the table with the same values."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from kafkadash.core.charts import ChartBand, ChartLimit, ChartLine, ChartMark, ChartSpec, largest_rows

pytestmark = pytest.mark.domain


def spec(*values: Sequence[float | None], **more: object) -> ChartSpec:
    lines = [ChartLine(f"line {n}", 1, each) for n, each in enumerate(values)]
    times = [60.0 * n for n in range(len(values[0]))] if values else []
    return ChartSpec(times, 0.0, 60.0 * len(times), lines, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "begin"),
    [
        ([1.0] * 20, 0),
        ([None] * 20, 0),
        ([None] * 10 + [1.0] * 10, 0),
        ([None] * 16 + [1.0] * 4, 12 * 60),
        ([None] * 19 + [1.0], 15 * 60),
    ],
    ids=["all known", "nothing known", "half known", "end known", "one known"],
)
def test_range__of_a_history_that_has_begun_late__fits_its_data(values: list[float | None], begin: float) -> None:
    assert spec(values).shown_from == begin
    assert json.loads(spec(values).data)["range"] == [begin, 1200]


def test_chart__without_lines__is_not_known() -> None:
    assert spec().known is False
    assert ChartSpec([0.0, 60.0], 0.0, 120.0, []).shown_from == 0


def test_axis__is_above_values_and_limits() -> None:
    assert spec([1.0, 10.0]).highest == pytest.approx(11.2)
    assert spec([1.0, 10.0], limits=[ChartLimit(100.0, "limit")]).highest == pytest.approx(112.0)
    assert spec([None, None], top=5.0).highest == 5.0


def test_table__has_the_largest_of_each_part_and_what_happened_in_it() -> None:
    values = [float(n) for n in range(48)]
    made = spec(values, marks=[ChartMark(65.0, "1 → 2")], bands=[ChartBand(100.0, 200.0, "warning", "Stalled")])
    rows = largest_rows(made, lambda value: f"{value:g}")
    assert len(rows) == 24
    assert [row.values[0] for row in rows[-3:]] == ["5", "3", "1"]
    assert [row.events for row in rows[-3:]] == ["", "Stalled", "1 → 2, Stalled"]


def test_table__unknown_values__are_no_zero() -> None:
    assert largest_rows(spec([None, 0.0]), lambda value: f"{value:g}")[1].values == [""]
