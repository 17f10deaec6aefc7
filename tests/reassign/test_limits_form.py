"""The limits of a draft: each thing that is wrong has its sentence at its field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from kafkadash.reassign.asked import DRAIN, Asked
from kafkadash.reassign.forms import LimitsForm
from tests.factories import NOW

GOOD = {
    "version": "3",
    "throttle": "60",
    "throttle_min": "20",
    "throttle_max": "80",
    "per_broker": "5",
    "per_cluster": "50",
    "not_before": "2026-11-21T22:00",
    "not_after": "2026-11-22T04:00",
    "disk_limit": "80",
    "elect_leaders": "on",
}

SLOW = {"throttle": "0.01", "throttle_min": "0.01"}


def form_of(changed: Mapping[str, str] | None = None, inbound: float | None = None) -> LimitsForm:
    with time_machine.travel(NOW, tick=False):
        form = LimitsForm({**GOOD, **(changed or {})}, now=timezone.now(), inbound=inbound)
        form.is_valid()
    return form


def sentences(form: LimitsForm) -> dict[str, Any]:
    return {name: " ".join(map(str, errors)) for name, errors in form.errors.items()}


def test_good_limits_are_options_in_bytes_per_second_and_utc() -> None:
    form = form_of()
    assert sentences(form) == {}
    options = form.options(Asked(DRAIN))
    assert (options.throttle, options.throttle_min, options.throttle_max) == (60_000_000, 20_000_000, 80_000_000)
    assert (options.not_before, options.not_after) == ("2026-11-21T22:00:00Z", "2026-11-22T04:00:00Z")
    assert (options.per_broker, options.per_cluster, options.elect_leaders) == (5, 50, True)
    assert form.cleaned_data["disk_limit"] == 0.8


@pytest.mark.parametrize(
    ("changed", "field", "sentence"),
    [
        ({"throttle": "0"}, "throttle", "With a throttle of 0 nothing would ever arrive."),
        ({"throttle_max": "fast"}, "throttle_max", "“fast” is not a number."),
        ({"throttle_min": "-1"}, "throttle_min", "A throttle is above 0"),
        ({"throttle_min": "90"}, "throttle_min", "The lowest, 90 MB/s, is above the highest, 80 MB/s."),
        ({"throttle": "10"}, "throttle", "It starts below the lowest, 20 MB/s. Raise it, or lower that."),
        ({"throttle": "81"}, "throttle", "It starts above the highest, 80 MB/s. Lower it, or raise that."),
        ({"per_broker": "0"}, "per_broker", "Give a whole number from 1 on, for example 5."),
        ({"per_cluster": "many"}, "per_cluster", "Give a whole number from 1 on, for example 50."),
        ({"per_cluster": "1001"}, "per_cluster", "1,001 at once is more than the 1,000 that are allowed."),
        ({"per_broker": "6", "per_cluster": "5"}, "per_broker", "More than the 5 of the whole cluster."),
        ({"not_before": "tonight"}, "not_before", "This is no time: give day and time in UTC"),
        ({"not_before": "0001-01-01T00:00+14:00"}, "not_before", "This is no time: give day and time in UTC"),
        ({"not_before": "0001-01-01T00:00"}, "not_before", "This is no time: give day and time in UTC"),
        ({"not_after": "9999-12-31T23:59-14:00"}, "not_after", "This is no time: give day and time in UTC"),
        ({"not_after": "2026-11-21T22:00"}, "not_after", "The window ends before it begins."),
        (
            {"not_before": "", "not_after": "2026-11-20T00:00"},
            "not_after",
            "This has passed: it is 21 Nov 02:03 UTC now.",
        ),
        ({"disk_limit": "0"}, "disk_limit", "The disk limit is from 1 to 100 percent of each disk."),
        ({"disk_limit": "101"}, "disk_limit", "The disk limit is from 1 to 100 percent of each disk."),
        ({"disk_limit": "most"}, "disk_limit", "Give percent of each disk, from 1 to 100, for example 80."),
    ],
)
def test_what_is_wrong_is_said_at_its_field(changed: dict[str, str], field: str, sentence: str) -> None:
    found = sentences(form_of(changed))
    assert list(found) == [field]
    assert sentence in found[field]


def test_less_than_a_megabyte_a_second_is_asked_for_twice() -> None:
    asked = form_of(SLOW)
    assert sentences(asked) == {
        "confirmed": "0.01 MB/s (10,000 bytes/s) is very slow: a partition of 1 GB takes 27.8 h. "
        "Say so again if it is meant."
    }
    assert sentences(form_of({**SLOW, "confirmed": "on"})) == {}


def test_a_lowest_rate_below_what_producers_write_is_asked_for_twice_because_it_can_never_finish() -> None:
    asked = form_of(inbound=25e6)
    assert "20 MB/s (20,000,000 bytes/s) is below the 25.0 MB/s that producers write" in sentences(asked)["confirmed"]
    assert sentences(form_of({"confirmed": "on"}, inbound=25e6)) == {}
    assert sentences(form_of(inbound=15e6)) == {}
