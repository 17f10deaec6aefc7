from __future__ import annotations

import pytest

from kafkadash.domain.skew import mean_of, skew_percent


@pytest.mark.parametrize(
    ("value", "mean", "percent"), [(110, 100.0, 10.0), (80, 100.0, -20.0), (100, 100.0, 0.0), (0, 100.0, -100.0)]
)
def test_it_is_the_distance_from_the_mean(value: int, mean: float, percent: float) -> None:
    assert skew_percent(value, mean, 50) == pytest.approx(percent)


@pytest.mark.parametrize(("mean", "partitions"), [(100.0, 49), (100.0, None), (0.0, 500), (None, 500)])
def test_it_is_not_known_where_it_would_say_nothing(mean: float | None, partitions: int | None) -> None:
    assert skew_percent(10, mean, partitions) is None


def test_no_broker_has_no_mean() -> None:
    assert mean_of([]) is None
    assert mean_of([1, 2]) == 1.5
