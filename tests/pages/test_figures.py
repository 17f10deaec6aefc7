"""Figures: decimal units, nothing rounded up, unknown instead of zero."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.observe.templatetags import figures
from tests.factories import NOW


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.0 %"),
        (57.3, "57.3 %"),
        (43.219, "43.2 %"),
        (99.96, "99.9 %"),
        (99.9999, "99.9 %"),
        (100.0, "100.0 %"),
        (100.4, "100.0 %"),
        (-1.0, "0.0 %"),
    ],
)
def test_percent(value: float, shown: str) -> None:
    assert figures.percent(value) == shown


@given(st.floats(min_value=0, max_value=100, allow_nan=False))
def test_percent_is_never_more_than_it_is(value: float) -> None:
    shown = float(str(figures.percent(value)).split()[0])
    assert value - 0.1 <= shown <= value + 1e-6


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (4_500_000_000, "4.5 GB"), (1_500_000_000_000_000, "1.5 PB")],
)
def test_size_is_decimal(number: int, shown: str) -> None:
    assert figures.size(number) == shown


@pytest.mark.parametrize(
    ("number", "shown"), [(0.0, "0.0 MB/s"), (10.0, "0.0 kB/s"), (9_900.0, "9.9 kB/s"), (1.93e7, "19.3 MB/s")]
)
def test_a_slow_rate_is_not_shown_as_nothing(number: float, shown: str) -> None:
    assert figures.rate(number) == shown


@pytest.mark.parametrize(("value", "shown"), [(42, "42 ms"), (210, "0.2 s"), (9_999, "10.0 s"), (62_000, "1 min 2 s")])
def test_milliseconds(value: int, shown: str) -> None:
    assert figures.milliseconds(value) == shown


@pytest.mark.parametrize(
    "filter_", [figures.figure, figures.size, figures.rate, figures.percent, figures.age, figures.milliseconds]
)
def test_a_missing_figure_is_unknown(filter_: object) -> None:
    assert callable(filter_)
    assert "unknown" in filter_(None)


def test_times_are_utc_and_get_their_day_when_it_is_not_today() -> None:
    assert figures.moment(datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC), NOW) == (
        '<time datetime="2026-11-21T01:02:03.000Z">01:02:03</time>'
    )
    assert ">19 Nov 01:02:03<" in figures.moment(datetime(2026, 11, 19, 1, 2, 3, tzinfo=UTC), NOW)
    assert "unknown" in figures.moment(None, NOW)


def test_ids_and_releases() -> None:
    assert figures.ids([3, 1]) == "3, 1"
    assert figures.ids([]) == "none"
    assert figures.version("4.3 or newer") == "4.3+"
