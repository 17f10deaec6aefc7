"""The grid of a week: units, levels, lower bounds, and the one sentence about it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kafkadash.history.week import WeekPanel, build_week_panel
from tests.pages.conftest import figures_of

WEEK = 168
PERIOD = datetime(2026, 11, 14, 2, 3, tzinfo=UTC), datetime(2026, 11, 21, 2, 3, tzinfo=UTC)


def build(rates: dict[int, int], without: dict[int, int] | None = None) -> WeekPanel:
    """``rates`` and ``without``: by hour of the week."""
    left_out = [(without or {}).get(hour, 0) for hour in range(WEEK)] if without else []
    return build_week_panel([rates.get(hour) for hour in range(WEEK)], left_out, *PERIOD)


def texts(panel: WeekPanel) -> dict[int, str]:
    cells = [cell for row in panel.rows for cell in row.cells]
    return {hour: cell.text for hour, cell in enumerate(cells) if cell.text}


def test_week__has_seven_days_of_24_hours__from_monday() -> None:
    panel = build(dict.fromkeys(range(WEEK), 5))
    assert [row.day for row in panel.rows][::6] == ["Monday", "Sunday"]
    assert [len(row.cells) for row in panel.rows] == [24] * 7
    assert (panel.hours[0], panel.hours[-1], len(panel.hours)) == ("00", "23", 24)
    assert figures_of(panel.period) == ["14 Nov", "21 Nov 02:03"]


@pytest.mark.parametrize(
    ("rates", "unit", "shown"),
    [
        ({0: 7, 1: 0}, "B/s", {0: "7", 1: "0"}),
        ({0: 1_500, 1: 40, 2: 50, 3: 0}, "kB/s", {0: "1.5", 1: "<0.1", 2: "0.1", 3: "0.0"}),
        ({0: 12_340_000_000, 1: 1_000_000}, "GB/s", {0: "12.3", 1: "<0.1"}),
    ],
)
def test_cells__are_in_the_unit_of_the_busiest_hour(rates: dict[int, int], unit: str, shown: dict[int, str]) -> None:
    panel = build(rates)
    assert (panel.unit, texts(panel)) == (unit, shown)


def test_levels__divide_the_range_from_zero_to_the_busiest_hour() -> None:
    panel = build({0: 0, 1: 1, 2: 20, 3: 21, 4: 100})
    assert [cell.level for cell in panel.rows[0].cells[:6]] == [0, 1, 1, 2, 5, 0]
    assert {cell.level for row in build({0: 0}).rows for cell in row.cells} == {0}


def test_summary__names_busiest_and_quietest_hour_and_how_many_are_unknown() -> None:
    panel = build({24 + 14: 4_200_000, 3: 12, 4: 12})
    assert figures_of(panel.summary) == ["14:00", "4.2 MB/s", "03:00", "12 B/s", "165"]
    assert panel.summary.index("Tuesday") < panel.summary.index("Monday")


def test_summary__of_one_rate_all_week__names_one_hour() -> None:
    assert figures_of(build(dict.fromkeys(range(WEEK), 9)).summary) == ["00:00", "9 B/s"]


def test_hour_that_leaves_partitions_out__is_a_lower_bound__and_never_the_quietest() -> None:
    panel = build({0: 10, 1: 1, 2: 5}, {1: 4})
    assert texts(panel) == {0: "10", 1: "≥ 1", 2: "5"}
    assert figures_of(panel.summary) == ["00:00", "10 B/s", "02:00", "5 B/s", "165", "4"]


def test_no_hour_is_known__has_no_rows() -> None:
    assert build({}).rows == ()
