"""Text of metrics: byte for byte as ``prometheus_client`` writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from kafkadash.metrics.exposition import write_openmetrics, write_plain
from kafkadash.metrics.series import SERIES

pytestmark = pytest.mark.domain

HOSTILE = ('a"b\\c\nd{x="y"} 1 # EOF', "\u2028é", "", "\\", '"', "\n", "\\n", "\\\\n")
VALUES = (
    0,
    1,
    -1,
    0.1,
    1e-9,
    999_999,
    1_234_567,
    12_345_678_901,
    1e22,
    1.79e9,
    float("inf"),
    float("-inf"),
    float("nan"),
)


class GivenFamilies(Collector):
    def collect(self) -> Iterator[Metric]:
        lag = GaugeMetricFamily("lag_records", 'How "far" \\ behind,\nin records', labels=["cluster", "a_group"])
        for value in HOSTILE:
            lag.add_metric([value, "x"], 1)
        for number in VALUES:
            lag.add_metric(["demo", "g"], number)
        yield lag
        alone = GaugeMetricFamily("age_seconds", "Age", unit="seconds")
        alone.add_metric([], 2.5)
        yield alone
        yield InfoMetricFamily("build", "Build", {"version": "1.2", "b": "c"})
        yield GaugeMetricFamily("without_samples", "None")


@pytest.mark.parametrize("own", [write_plain, write_openmetrics])
def test_families__of_hostile_labels_and_all_numbers__are_written_as_by_the_library(own: Callable[..., bytes]) -> None:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(GivenFamilies())
    theirs: Any = generate_latest if own is write_plain else openmetrics.generate_latest
    assert own(GivenFamilies().collect()) == theirs(registry)


@pytest.mark.parametrize("own", [write_plain, write_openmetrics])
def test_family__of_another_type__is_refused(own: Callable[..., bytes]) -> None:
    with pytest.raises(ValueError, match="counter"):
        own([CounterMetricFamily("requests", "Requests", value=1)])


def test_names__of_the_catalogue__need_no_quotes() -> None:
    names = {name for series in SERIES.values() for name in (series.name, *series.labels)}
    assert [name for name in names if not re.fullmatch("[a-z][a-z0-9_]*", name)] == []
