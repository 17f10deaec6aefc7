"""Waits of the canary's probe."""

from __future__ import annotations

import pytest

from kafkadash.kafka.canary_probe import LATE_BY, SHORTEST_WAIT_S, WAIT_S, choose_wait

pytestmark = pytest.mark.domain


@pytest.mark.parametrize("passed_s", [0.0, 0.004, 0.02, 0.1, 0.9, 5.0])
def test_answer__that_comes_during_a_wait__is_taken_little_later(passed_s: float) -> None:
    assert SHORTEST_WAIT_S <= choose_wait(passed_s) <= max(SHORTEST_WAIT_S, LATE_BY * passed_s)


def test_wait__before_anything_is_sent__is_the_longest() -> None:
    assert choose_wait(10_000.0) == WAIT_S
