"""Texts of reasons of runs, rows, ledger entries and orders: each code has one, and any parameters can be shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from string import Formatter
from typing import Any, get_type_hints

import pytest

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.messages import CLUSTER_MESSAGES
from kafkadash.core.messages import (
    CodedReason,
    MessageTemplate,
    PlainReason,
    UnknownReason,
    as_message,
    join_reasons,
    known_codes,
    message_reason,
    reason_cause,
    reason_text,
    stored_reason,
)
from kafkadash.execution.command_answers import ORDER_MESSAGES, OrderAnswerCode
from kafkadash.execution.engine import reasons as row_reasons
from kafkadash.execution.engine.reasons import (
    DisksFull,
    EndedByOperatorWithNote,
    LedgerReasonCode,
    MovedByOthers,
    NotElected,
    NoTraceOfIt,
    NotReread,
    PairsRemovedByOthers,
    RateOfOthersLeft,
    RateRestored,
    RowReasonCode,
    RunReasonCode,
    StuckReasonCode,
    ThrottleCallRefused,
    UnderMinIsr,
)
from kafkadash.execution.messages import LEDGER_MESSAGES, ROW_MESSAGES, RUN_MESSAGES, STUCK_MESSAGES
from kafkadash.execution.models import MoveState
from kafkadash.execution.progress.figures import FlowDirection

MESSAGES: Mapping[str, MessageTemplate] = {
    str(code): m
    for each in (RUN_MESSAGES, ROW_MESSAGES, STUCK_MESSAGES, LEDGER_MESSAGES, ORDER_MESSAGES)
    for code, m in each.items()
} | {  # of another app, whose code it is as well
    RunReasonCode.CLUSTER_READ_ONLY.value: CLUSTER_MESSAGES[ClusterErrorCode.READ_ONLY]
}
CODES = (*RunReasonCode, *RowReasonCode, *StuckReasonCode, *LedgerReasonCode, *OrderAnswerCode)
KINDS = {code.value: known_codes().get(code.value, PlainReason) for code in CODES}
HOSTILE = ("{0}{target!r}{", "<script>alert(1)</script>", "\u202e\u0000\u2028", "x" * 10_000, "%s%n")
SAMPLES: dict[Any, Any] = {
    int: 3,
    float: 90.0,
    str: "60000000",
    row_reasons.BrokerIds: (1, 2),
    tuple[str, ...]: ("orders", "clicks"),
    tuple[tuple[str, str], ...]: (("Alter", ""), ("AlterConfigs", "orders")),
    CodedReason: MovedByOthers((4, 6, 3)),
    CodedReason | None: MovedByOthers((4, 6, 3)),
    str | CodedReason: "Not in sync.",
}


def sample(code: str, text: str = "60000000") -> CodedReason:
    kind = KINDS[code]
    if issubclass(kind, PlainReason):
        return PlainReason(code)
    types = get_type_hints(kind)
    own = [each.name for each in fields(kind) if each.name != "also"]
    values: dict[str, Any] = {name: text if types[name] is str else SAMPLES[types[name]] for name in own}
    if "state" in values:
        values["state"] = MoveState.MOVING.value
    if "direction" in values:
        values["direction"] = FlowDirection.OUT.value
    return kind(**values)


def test_each_code__has_a_kind_and_a_message() -> None:
    assert MESSAGES.keys() == KINDS.keys()


def named_parameters(code: str) -> set[str]:
    message = MESSAGES[code]
    parsed = (Formatter().parse(template) for template in (message.text, message.many, message.advice))
    return {name for parts in parsed for _, name, _, _ in parts if name}


def test_messages__name_parameters_of_their_kinds_only() -> None:
    for code, kind in KINDS.items():
        assert named_parameters(code) <= {each.name for each in fields(kind)} - {"also", "plain"}, code


def test_reasons__are_stored_and_read_back() -> None:
    for reason in map(sample, KINDS):
        assert stored_reason(reason.stored_code, reason.params()) == reason
        assert reason_text(reason).startswith(reason_cause(reason))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_parameter__is_shown_as_it_is(text: str) -> None:
    for reason in (sample(code, text) for code in KINDS):
        given = {getattr(reason, name) for name in named_parameters(reason.stored_code)}
        assert (text in reason_text(reason)) == (text in given), reason.stored_code
        assert "\\u0000" not in json.dumps(reason.params()), "PostgreSQL stores none"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (MovedByOthers((4, 6, 3)), "to 4, 6, 3."),
        (NoTraceOfIt(1), "1 time,"),
        (NoTraceOfIt(3), "3 times,"),
        (UnderMinIsr((1,)), "broker 1 must"),
        (UnderMinIsr((1, 2)), "brokers 1, 2 must"),
        (DisksFull(6, 10**9, 2 * 10**9), "1.0 GB"),
        (EndedByOperatorWithNote("olga", "Not this one."), "Ended by olga: Not this one."),
        (join_reasons(NotElected("Not in sync."), NotReread("clicks")), "topic clicks is no longer visible"),
        (PairsRemovedByOthers(1), "1 entry set"),
        (PairsRemovedByOthers(2), "2 entries set"),
        (RateRestored("60000000"), "60,000,000 bytes/s"),
        (RateOfOthersLeft("much"), "Now “much”"),
        (
            join_reasons(
                PlainReason(LedgerReasonCode.RATE_NOT_SET), ThrottleCallRefused(message_reason(as_message("Not now.")))
            ),
            "set. Not now.",
        ),
    ],
)
def test_parameters__are_written_as_people_write_them(reason: CodedReason, words: str) -> None:
    assert words in reason_text(reason)


@pytest.mark.parametrize(
    ("code", "params"), [("of-a-later-version", {"broker": 3}), (RowReasonCode.MOVED_BY_OTHERS.value, {})]
)
def test_reason_that_this_version_cannot_read__is_shown_as_it_is_stored(code: str, params: dict[str, Any]) -> None:
    reason = stored_reason(code, params)

    assert isinstance(reason, UnknownReason)
    assert (reason.stored_code, reason.params()) == (code, params)
    assert reason_text(reason).startswith(code)


@pytest.mark.parametrize("params", [{"target": 5}, {"target": {"broker": 5}}])
def test_parameter_of_another_type__is_shown_as_it_is_stored(params: dict[str, Any]) -> None:
    reason = stored_reason(RowReasonCode.MOVED_BY_OTHERS.value, params)

    assert reason_text(reason).startswith(RowReasonCode.MOVED_BY_OTHERS.value)


def test_same_reason_twice__is_told_once() -> None:
    once = join_reasons(NotElected("Not in sync."), NotReread("clicks"))

    assert join_reasons(once, NotReread("clicks")) == once
    assert join_reasons(once, NotElected("Not in sync.")) == once
