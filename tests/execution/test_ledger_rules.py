"""Reasons of entries of the throttle ledger: what is stored of each thing that may become of one.

A rate that was cleared through the controllers while its broker is away.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafkadash.core.messages import CodedReason, PlainReason, as_message, join_reasons, message_reason
from kafkadash.execution.engine.reasons import (
    LedgerReasonCode,
    PairsOfOthersStay,
    PairsRemovedByOthers,
    RateNotPutBack,
    RateOfOthersLeft,
    RateRestored,
    ThrottleAnswerLost,
    ThrottleCallRefused,
    ThrottleNotRead,
)
from kafkadash.execution.engine.state import CallReply
from kafkadash.execution.engine.throttle_ledger import (
    SHOWS_LATE,
    LedgerEntry,
    LedgerState,
    PlaceReading,
    ThrottlePlace,
    answered,
    appended,
    clearing,
    deleted,
    emptied,
    intend_list,
    intend_rate,
    settle_list,
    settle_rate,
    subtracted,
)
from kafkadash.kafka.throttles import LEADER_LIST, LEADER_RATE

pytestmark = pytest.mark.domain

NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)
EARLIER = NOW - timedelta(minutes=5)
RATE, LIST = ThrottlePlace("broker", "3", LEADER_RATE), ThrottlePlace("topic", "orders", LEADER_LIST)
PAIR = (0, 3)
AWAY = ThrottleNotRead(message_reason(as_message("Broker 3 is away.")))
REFUSED = ThrottleCallRefused(message_reason(as_message("Not now.")))
LOST = ThrottleAnswerLost(message_reason(as_message("No answer.")))


def rate(state: LedgerState = LedgerState.SET, **fields: Any) -> LedgerEntry:
    return LedgerEntry(RATE, state, **{"value": "200", "changed_at": EARLIER, **fields})


def over_5(state: LedgerState = LedgerState.SET, **fields: Any) -> LedgerEntry:
    """A rate that was set over another one."""
    return rate(state, previous="5", previous_source="broker", **fields)


def new_rate() -> LedgerEntry:
    return rate(LedgerState.INTENT, value="", requested="200")


def listed(state: LedgerState, **fields: Any) -> LedgerEntry:
    return LedgerEntry(LIST, state, **{"pairs": {PAIR: state}, "changed_at": EARLIER, **fields})


def gone_rate() -> LedgerEntry:
    return settle_rate(rate(missing_at=EARLIER), PlaceReading(), NOW).entry


EMPTY = LedgerEntry(LIST, LedgerState.CLEARING, changed_at=EARLIER)
CLEARING = LedgerState.CLEARING
CASES: list[tuple[LedgerEntry, CodedReason]] = [
    (clearing(rate(), PlaceReading(unreadable=AWAY), NOW).entry, AWAY),
    (settle_list(listed(CLEARING), PlaceReading(unreadable=AWAY), NOW).entry, AWAY),
    (answered(rate(CLEARING), CallReply.REFUSED, REFUSED, NOW), REFUSED),
    (
        answered(new_rate(), CallReply.REFUSED, REFUSED, NOW),
        join_reasons(PlainReason(LedgerReasonCode.RATE_NOT_SET), REFUSED),
    ),
    (answered(new_rate(), CallReply.REFUSED, None, NOW), PlainReason(LedgerReasonCode.RATE_NOT_SET)),
    (answered(new_rate(), CallReply.LOST, LOST, NOW), LOST),
    (settle_rate(new_rate(), PlaceReading(), NOW).entry, PlainReason(LedgerReasonCode.RATE_NOT_SET)),
    (answered(rate(CLEARING), CallReply.ACCEPTED, None, NOW), PlainReason(LedgerReasonCode.THROTTLE_CLEARED)),
    (answered(over_5(CLEARING), CallReply.ACCEPTED, None, NOW), RateRestored("5")),
    (
        answered(over_5(CLEARING, again_at=EARLIER), CallReply.ACCEPTED, None, NOW),
        join_reasons(RateRestored("5"), PlainReason(LedgerReasonCode.RATE_BEFORE_UNCERTAIN)),
    ),
    (
        clearing(rate(previous="200", previous_source="broker"), PlaceReading("200", "broker"), NOW).entry,
        PlainReason(LedgerReasonCode.RATE_STOOD_BEFORE),
    ),
    (gone_rate(), PlainReason(LedgerReasonCode.RATE_REMOVED_BY_OTHERS)),
    (intend_rate(gone_rate(), RATE, 200, PlaceReading(), NOW), PlainReason(LedgerReasonCode.RATE_SET_AGAIN)),
    (clearing(rate(), PlaceReading(), NOW).entry, PlainReason(LedgerReasonCode.RATE_REMOVED_BY_OTHERS)),
    (clearing(over_5(), PlaceReading("5", "broker"), NOW).entry, PlainReason(LedgerReasonCode.RATE_RESTORED_BY_OTHERS)),
    (clearing(over_5(), PlaceReading(), NOW).entry, RateNotPutBack("5")),
    (clearing(over_5(), PlaceReading("7", "broker"), NOW).entry, RateOfOthersLeft("7")),
    (
        settle_list(listed(LedgerState.SET), PlaceReading(gone=True), NOW).entry,
        PlainReason(LedgerReasonCode.LIST_DELETED_WITH_TOPIC),
    ),
    (settle_list(listed(LedgerState.SET), PlaceReading(), NOW).entry, PairsRemovedByOthers(1)),
    (
        intend_list(None, LIST, {PAIR}, (), PlaceReading("*", "topic"), NOW),
        PlainReason(LedgerReasonCode.LIST_NAMES_EVERY_REPLICA),
    ),
    (appended(listed(LedgerState.INTENT), CallReply.LOST, LOST, NOW), LOST),
    (
        subtracted(listed(CLEARING, previous="", previous_source="topic"), CallReply.ACCEPTED, None, NOW),
        PlainReason(LedgerReasonCode.LIST_AS_BEFORE),
    ),
    (emptied(EMPTY, PlaceReading(unreadable=AWAY), NOW), AWAY),
    (emptied(EMPTY, PlaceReading("7:7", "topic"), NOW), PairsOfOthersStay(1)),
    (emptied(EMPTY, PlaceReading("*", "topic"), NOW), PlainReason(LedgerReasonCode.LIST_NAMES_EVERY_REPLICA)),
    (emptied(EMPTY, PlaceReading(), NOW), PlainReason(LedgerReasonCode.THROTTLE_CLEARED)),
    (deleted(EMPTY, CallReply.ACCEPTED, None, NOW), PlainReason(LedgerReasonCode.THROTTLE_CLEARED)),
]


@pytest.mark.parametrize(("entry", "reason"), CASES)
def test_entry__has_the_reason_of_what_became_of_it(entry: LedgerEntry, reason: CodedReason) -> None:
    assert entry.reason == reason


def test_each_code__is_that_of_an_entry() -> None:
    found = {each.stored_code for entry, _ in CASES for each in entry.reason or ()}
    assert found == set(LedgerReasonCode)


def test_obliged_for_the_same_reason__is_not_changed() -> None:
    entry = clearing(rate(), PlaceReading(unreadable=AWAY), NOW).entry
    later = NOW + timedelta(minutes=1)
    assert clearing(entry, PlaceReading(unreadable=AWAY), later).entry is entry
    other = ThrottleNotRead(message_reason(as_message("Broker 3 does not answer.")))
    assert clearing(entry, PlaceReading(unreadable=other), later).entry.changed_at == later


PLACE = ThrottlePlace("broker", "3", "leader.replication.throttled.rate")
READ_WHILE_AWAY = PlaceReading(unreadable=ThrottleNotRead(message_reason(as_message("Broker 3 is away."))))


def test_it_is_watched_for_a_while_and_not_until_the_broker_comes_back() -> None:
    entry = LedgerEntry(PLACE, LedgerState.SET, value="200000", changed_at=NOW - timedelta(minutes=5))
    asked = clearing(entry, READ_WHILE_AWAY, NOW, offline=True).entry
    assert asked.state is LedgerState.CLEARING
    cleared = answered(asked, CallReply.ACCEPTED, None, NOW)
    assert cleared.state is LedgerState.CLEARED

    soon = settle_rate(cleared, READ_WHILE_AWAY, NOW + SHOWS_LATE / 2).entry
    assert soon.lost_at is not None
    later = settle_rate(soon, READ_WHILE_AWAY, NOW + SHOWS_LATE).entry
    assert (later.state, later.lost_at) == (LedgerState.CLEARED, None)
