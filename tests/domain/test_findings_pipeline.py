"""What the pipeline says: disks that will be full, files that it set aside, and that it stands still."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafkadash.domain.facts import Facts, ForecastFact, PipelineFact, SetAside
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.findings import evaluate
from kafkadash.domain.judges.pipeline import full_in
from kafkadash.domain.status import Refreshed, State
from tests.domain.well_cluster import GB, NOW, WELL, ago, kinds, only, state, title


def forecast(**more: Any) -> ForecastFact:
    """100 GB are left and 240 GB a day come: 10 hours."""
    values: dict[str, Any] = {
        "broker": 3,
        "path": "/data/a",
        "used_bytes": 1900 * GB,
        "total_bytes": 2000 * GB,
        "grows_per_day": 240.0 * GB,
        "made_at": NOW,
        "from_at": ago(days=7),
        **more,
    }
    return ForecastFact(**values)


def found(**more: Any) -> list[Finding]:
    return list(evaluate(replace(WELL, forecasts=(forecast(**more),)), NOW).found)


def test_a_directory_that_is_full_within_a_day_is_a_warning() -> None:
    (finding,) = found()
    assert (finding.kind, finding.scope, finding.state) == (FindingKind.DISK_SOON, "3:/data/a", State.WARNING)
    assert finding.sentence == "A log directory of broker 3 is projected to be full in about 10 h: /data/a."
    assert finding.detail == (
        "It grows by 240.0 GB a day, as seen over 7 days, and had 100.0 GB free of 2.0 TB · an estimate; a full "
        "directory goes offline"
    )
    assert (finding.value, finding.unit, finding.threshold) == (10.0, "hours", 24)


@pytest.mark.parametrize(
    ("more", "soon"),
    [
        ({"grows_per_day": 100.0 * GB}, False),  # 24 h
        ({"grows_per_day": 101.0 * GB}, True),
        ({"grows_per_day": 0.0}, False),
        ({"grows_per_day": -5.0 * GB}, False),
        ({"grows_per_day": 1e-9}, False),
        ({"used_bytes": 2000 * GB}, True),
        ({"used_bytes": 2001 * GB}, True),
        ({"grows_per_day": 98.0 * GB, "made_at": ago(hours=1)}, True),  # an hour of the 24.5 is over
    ],
)
def test_only_what_is_full_within_a_day(more: dict[str, Any], soon: bool) -> None:
    assert bool(found(**more)) == soon


def test_an_old_forecast_says_nothing_and_closes_nothing() -> None:
    judged = evaluate(replace(WELL, forecasts=(forecast(made_at=ago(hours=4)),)), NOW)
    assert judged.found == ()
    assert judged.cannot_tell(FindingKind.DISK_SOON, "3:/data/a")
    assert not judged.cannot_tell(FindingKind.DISK_SOON, "4:/data/a")


def test_time_is_never_below_zero() -> None:
    left = full_in(forecast(used_bytes=2000 * GB, made_at=ago(hours=2)), NOW)
    assert left is not None
    assert left.total_seconds() == 0
    assert found(used_bytes=2000 * GB)[0].measured == "less than 1 min"


def stands(batch_s: float | None, *aside: SetAside) -> Facts:
    at = None if batch_s is None else ago(seconds=batch_s)
    return replace(WELL, pipeline_stands=PipelineFact(at, 10, aside))


def test_it_stands_still_after_three_intervals() -> None:
    assert kinds(stands(30)) == []
    assert kinds(stands(31)) == [FindingKind.PIPELINE_STILL]
    (finding,) = evaluate(stands(720), NOW).found
    assert (finding.measured, finding.limit, finding.since) == ("12 min", "limit 30 s", ago(minutes=12))
    assert title(stands(720)) == "demo gets no history: the pipeline stands still."
    assert state(stands(720)) is State.WARNING


def test_one_that_never_ran_or_is_not_set_up_is_no_finding() -> None:
    assert kinds(stands(None)) == []
    none = replace(WELL, pipeline=None, pipeline_stands=None, forecasts=())
    assert (kinds(none), state(none)) == ([], State.OK)
    assert FindingKind.DISK_SOON in evaluate(none, NOW).blind


def test_one_that_nobody_looks_at_any_more_cannot_be_told() -> None:
    old = replace(stands(720), pipeline=Refreshed(ago(minutes=9), 30))
    assert (kinds(old), state(old)) == ([FindingKind.STALE], State.UNKNOWN)


def test_segments_that_were_set_aside_are_one_finding() -> None:
    files = [SetAside(f"replica/{n}.parquet", f"File {n} ends too early.", ago(minutes=n)) for n in range(5)]
    facts = stands(3, *files)
    assert only(facts)[::2] == (
        FindingKind.SEGMENT_SET_ASIDE,
        "The pipeline could not read 5 segments and set them aside: history has a gap.",
    )
    (finding,) = evaluate(facts, NOW).found
    assert finding.detail.startswith("File 0 ends too early. · replica/0.parquet, ")
    assert (finding.value, finding.since) == (5, ago(minutes=4))
    assert "1 segment and set it aside" in only(stands(3, files[0]))[2]
