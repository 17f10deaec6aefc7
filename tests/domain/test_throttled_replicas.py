from __future__ import annotations

import pytest

from kafkadash.domain.throttled_replicas import rate_of, throttled_replicas


@pytest.mark.parametrize("value", ["0:101,1:102", " 0:101 , 1:102 ", "1:102,0:101,"])
def test_a_list_names_its_pairs_and_no_others(value: str) -> None:
    listed = throttled_replicas(value)
    assert listed.names(0, 101)
    assert listed.names(1, 102)
    assert not listed.names(0, 102)
    assert not listed.empty


def test_a_star_names_everything() -> None:
    assert throttled_replicas(" * ").names(7, 3)


def test_an_empty_list_is_set_but_off() -> None:
    assert throttled_replicas("").empty
    assert not throttled_replicas("").names(0, 1)


TOO_LONG = "9" * 5000  # longer than any text that int() takes


@pytest.mark.parametrize(
    "value", ["1", "a:b", "0:1,x", "1:-2", "0:1;1:2", f"0:{TOO_LONG}", f"{TOO_LONG}:1", "0:2147483648", "0:²"]
)
def test_what_is_no_list_names_nothing_and_says_so(value: str) -> None:
    listed = throttled_replicas(value)
    assert listed.unreadable
    assert not listed.names(0, 1)
    assert not listed.empty


def test_a_rate_that_is_no_number_is_not_zero() -> None:
    assert rate_of("10000000") == 10_000_000
    assert rate_of("0") == 0
    assert rate_of("") is None
    assert rate_of("-1") is None
    assert rate_of(TOO_LONG) is None
