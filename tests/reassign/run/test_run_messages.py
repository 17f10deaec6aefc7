"""Texts of reasons of runs and rows and of answers to orders: each code has one, and any parameters can be shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from string import Formatter
from typing import Any, get_type_hints

import pytest

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.messages import CLUSTER_MESSAGES
from kafkadash.domain import row_reasons
from kafkadash.domain.messages import MessageTemplate, reason_cause, reason_text
from kafkadash.domain.reasons import CodedReason, UnknownReason, joined, known_codes, stored_reason
from kafkadash.domain.row_reasons import (
    DisksFull,
    EndedByOperatorWithNote,
    MovedByOthers,
    NotElected,
    NoTraceOfIt,
    NotReread,
    RowReasonCode,
    UnderMinIsr,
)
from kafkadash.domain.run_progress import Direction
from kafkadash.domain.run_reasons import RunReasonCode
from kafkadash.domain.stuck_reasons import StuckReasonCode
from kafkadash.reassign.models import MoveState
from kafkadash.reassign.run.order_answers import ORDER_MESSAGES, OrderAnswerCode
from kafkadash.reassign.run.row_messages import ROW_MESSAGES
from kafkadash.reassign.run.run_messages import RUN_MESSAGES
from kafkadash.reassign.run.stuck_messages import STUCK_MESSAGES

MESSAGES: Mapping[str, MessageTemplate] = {
    str(code): m for each in (RUN_MESSAGES, ROW_MESSAGES, STUCK_MESSAGES, ORDER_MESSAGES) for code, m in each.items()
} | {  # of another app, whose code it is as well
    RunReasonCode.CLUSTER_READ_ONLY.value: CLUSTER_MESSAGES[ClusterErrorCode.READ_ONLY]
}
KINDS = [known_codes()[code.value] for code in (*RunReasonCode, *RowReasonCode, *StuckReasonCode, *OrderAnswerCode)]
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


def sample(kind: type[CodedReason], text: str = "60000000") -> CodedReason:
    types = get_type_hints(kind)
    own = [each.name for each in fields(kind) if each.name != "also"]
    values: dict[str, Any] = {name: text if types[name] is str else SAMPLES[types[name]] for name in own}
    if "state" in values:
        values["state"] = MoveState.MOVING.value
    if "direction" in values:
        values["direction"] = Direction.OUT.value
    return kind(**values)


def test_each_code__has_a_kind_and_a_message() -> None:
    assert MESSAGES.keys() == {kind.code.value for kind in KINDS}


def test_messages__name_parameters_of_their_kinds_only() -> None:
    for kind in KINDS:
        message = MESSAGES[kind.code.value]
        own = {each.name for each in fields(kind)} - {"also"}
        for template in (message.text, message.many, message.advice):
            assert {name for _, name, _, _ in Formatter().parse(template) if name} <= own, kind


def test_reasons__are_stored_and_read_back() -> None:
    for reason in map(sample, KINDS):
        assert stored_reason(reason.stored_code, reason.params()) == reason
        assert reason_text(reason).startswith(reason_cause(reason))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_parameter__is_shown_as_it_is(text: str) -> None:
    for reason in (sample(kind, text) for kind in KINDS):
        given = {getattr(reason, each.name) for each in fields(reason)}
        assert (text in reason_text(reason)) == (text in given), reason.stored_code
        assert "\\u0000" not in json.dumps(reason.params()), "PostgreSQL stores none"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (MovedByOthers((4, 6, 3)), "to 4, 6, 3."),
        (NoTraceOfIt(1), "1 time and"),
        (NoTraceOfIt(3), "3 times and"),
        (UnderMinIsr((1,)), "broker 1 has"),
        (UnderMinIsr((1, 2)), "brokers 1, 2 have"),
        (DisksFull(6, 10**9, 2 * 10**9), "1.0 GB"),
        (EndedByOperatorWithNote("olga", "Not this one."), "olga ended it: Not this one."),
        (joined(NotElected("Not in sync."), NotReread("clicks")), "clicks is not described"),
    ],
)
def test_parameters__are_written_as_people_write_them(reason: CodedReason, words: str) -> None:
    assert words in reason_text(reason)


@pytest.mark.parametrize(
    ("code", "params"),
    [
        ("of-a-later-version", {"broker": 3}),
        (RowReasonCode.MOVED_BY_OTHERS.value, {}),
        (RowReasonCode.MOVED_BY_OTHERS.value, {"target": [1], "unheard_of": 1}),
    ],
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
    once = joined(NotElected("Not in sync."), NotReread("clicks"))

    assert joined(once, NotReread("clicks")) == once
    assert joined(once, NotElected("Not in sync.")) == once
