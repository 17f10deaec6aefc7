"""Calls whose answers are broken, some of each kind; thousands are in ``make proof``, also on ZooKeeper's wire."""

from __future__ import annotations

import pytest

from tests.contract.broken_calls import break_kafka

FAULTS = 60


@pytest.mark.contract
def test_a_call_whose_answers_are_broken__is_right_or_fails_in_time() -> None:
    tally = break_kafka(1, FAULTS)
    assert not tally.wrong
    assert len(tally.answered) + len(tally.failed) > 10
