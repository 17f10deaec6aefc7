"""Items of short runs: what becomes of each by a reading and by Kafka's answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkadash.core.messages import PlainReason, as_message
from kafkadash.kafka.api import ItemChanged, ItemError
from kafkadash.short_runs.reasons import ItemReasonCode
from kafkadash.short_runs.state import (
    ENDED,
    IN_FLIGHT,
    MOST_ATTEMPTS,
    ItemProgress,
    ItemReading,
    ItemState,
    PlannedItem,
    ReadingState,
    answer_item,
    cancel_item,
    count_states,
    open_item,
    settle_item,
    verify_item,
)

pytestmark = pytest.mark.domain

ROW = ItemProgress(0, PlannedItem("orders-0", {}))
WHY = PlainReason(ItemReasonCode.REVERTED)
READY = ItemReading(ReadingState.READY, found={"leader": 2})
REACHED = ItemReading(ReadingState.REACHED, found={"leader": 1})
UNFIT = ItemReading(ReadingState.UNFIT, WHY)
ERROR = ItemError(as_message("no"), 80, "PREFERRED_LEADER_NOT_AVAILABLE")
NOT_SENT = ItemError(as_message("not connected"))


def in_state(state: ItemState, attempt: int = 1) -> ItemProgress:
    return replace(ROW, state=state, attempt=attempt)


@pytest.mark.parametrize(
    ("reading", "state", "attempt"),
    [
        (None, ItemState.PENDING, 0),
        (READY, ItemState.SENDING, 1),
        (REACHED, ItemState.UNCHANGED, 0),
        (UNFIT, ItemState.SKIPPED, 0),
    ],
)
def test_waiting_item__is_sent_only_when_a_reading_shows_that_it_fits(
    reading: ItemReading | None, state: ItemState, attempt: int
) -> None:
    opened = open_item(ROW, reading)
    assert (opened.state, opened.attempt) == (state, attempt)


def test_waiting_item__keeps_the_values_that_were_found_before_its_first_request() -> None:
    opened = open_item(ROW, READY)
    again = open_item(replace(opened, state=ItemState.PENDING), replace(READY, found={"leader": 3}))
    assert (opened.before, again.before, again.attempt) == ({"leader": 2}, {"leader": 2}, 2)


def test_item_that_was_sent_before_and_is_reached__is_done_by_us() -> None:
    assert open_item(in_state(ItemState.PENDING), REACHED).state is ItemState.DONE
    assert open_item(in_state(ItemState.PENDING), REACHED).reason is None


@pytest.mark.parametrize("flying", sorted(IN_FLIGHT))
@pytest.mark.parametrize(
    ("reading", "attempt", "state"),
    [
        (None, 1, None),
        (REACHED, 1, ItemState.DONE),
        (UNFIT, 1, ItemState.SKIPPED),
        (READY, 1, ItemState.PENDING),
        (READY, MOST_ATTEMPTS, ItemState.REFUSED),
    ],
)
def test_item_in_flight__is_settled_by_a_reading(
    flying: ItemState, reading: ItemReading | None, attempt: int, state: ItemState | None
) -> None:
    assert settle_item(in_state(flying, attempt), reading).state is (state or flying)


def test_settling__leaves_items_that_are_not_in_flight() -> None:
    for state in frozenset(ItemState) - IN_FLIGHT:
        assert settle_item(in_state(state), REACHED).state is state


@pytest.mark.parametrize(
    ("answers", "state", "attempt"),
    [
        (ItemChanged(done=frozenset({"orders-0"})), ItemState.DONE, 1),
        (ItemChanged(refused={"orders-0": ERROR}), ItemState.REFUSED, 1),
        (ItemChanged(refused={"orders-0": NOT_SENT}), ItemState.PENDING, 0),
        (ItemChanged(lost={"orders-0": ERROR}), ItemState.LOST, 1),
        (ItemChanged(), ItemState.LOST, 1),
    ],
)
def test_answer__decides_what_is_certain_and_nothing_else(
    answers: ItemChanged[str], state: ItemState, attempt: int
) -> None:
    answered = answer_item(in_state(ItemState.SENDING), answers)
    assert (answered.state, answered.attempt) == (state, attempt)


def test_cancel__ends_only_what_was_not_sent() -> None:
    for state in ItemState:
        cancelled = cancel_item(in_state(state)).state
        assert cancelled is (ItemState.CANCELLED if state is ItemState.PENDING else state)


@pytest.mark.parametrize("state", [ItemState.DONE, ItemState.UNCHANGED])
def test_verification__finds_what_somebody_changed_since(state: ItemState) -> None:
    row = in_state(state)
    assert verify_item(row, REACHED) is row
    assert verify_item(row, None) is row
    assert verify_item(row, READY).state is ItemState.REVERTED
    assert verify_item(row, UNFIT).reason == WHY


def test_each_state__is_waiting_or_in_flight_or_ended() -> None:
    assert frozenset({ItemState.PENDING}) | IN_FLIGHT | ENDED == frozenset(ItemState)
    assert count_states([ROW, in_state(ItemState.DONE)])[ItemState.DONE] == 1
