"""Messages of codes: how they are stored, and how singular and plural are chosen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from unittest import mock

import pytest

from kafkadash.core import messages
from kafkadash.core.errors import UserError
from kafkadash.core.messages import (
    LONGEST_PARAMETER,
    CodedMessage,
    MessageTemplate,
    as_message,
    choose_plural,
    coded,
    join_messages,
    message_columns,
    message_json,
    message_reason,
    read_message,
    reason_text,
    register_messages,
    stored_message,
)
from kafkadash.execution.engine.reasons import ClusterReadOnly

pytestmark = pytest.mark.domain


class TrialCode(StrEnum):
    PLACED = "trial-placed"
    CLOSED = "trial-closed"
    NESTED = "trial-nested"
    ADVICE = "trial-advice"
    SIZED = "trial-sized"


TRIAL_MESSAGES = {
    TrialCode.PLACED: MessageTemplate("{rows:names} {rows:is|are} on {brokers:# broker|# brokers}.", "Wait."),
    TrialCode.CLOSED: MessageTemplate("Closed at {closed:moment}."),
    TrialCode.SIZED: MessageTemplate("{free:bytes} free"),
    TrialCode.ADVICE: MessageTemplate("", "{why:advice}"),
    TrialCode.NESTED: MessageTemplate("{why:reason} {inner}"),
}


@pytest.fixture(autouse=True)
def trial() -> Iterator[None]:
    with mock.patch.dict(messages._MESSAGES), mock.patch.dict(messages._CODES):
        register_messages(TRIAL_MESSAGES)
        yield


@pytest.mark.parametrize(
    ("rows", "brokers", "text"),
    [
        (("a-0",), 1, "a-0 is on 1 broker. Wait."),
        (("a-0", "a-1"), 1200, "a-0 and a-1 are on 1,200 brokers. Wait."),
        ((), 0, " are on 0 brokers. Wait."),
    ],
)
def test_singular_and_plural(rows: tuple[str, ...], brokers: int, text: str) -> None:
    assert str(coded(TrialCode.PLACED, rows=rows, brokers=brokers)) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 rows are"), (1, "1 row is"), (2310, "2,310 rows are")])
def test_a_number_chooses_singular_or_plural(number: int, text: str) -> None:
    assert choose_plural("# row is|# rows are", number) == text
    assert choose_plural("is|are", number) == text.rsplit(maxsplit=1)[-1]


def test_a_stored_message_is_the_same() -> None:
    message = coded(TrialCode.PLACED, rows=("a-0", "{b}"), brokers=3)
    columns = message_columns(message)
    assert columns == {"error_code": "trial-placed", "error_params": {"rows": ["a-0", "{b}"], "brokers": 3}}
    assert stored_message(columns["error_code"], columns["error_params"]) == message
    assert message_columns(None) == {"error_code": "", "error_params": {}}
    assert stored_message("", {}) is None


def test_a_text_without_a_code_is_stored_as_one() -> None:
    failure = UserError(as_message("connection refused"))
    assert (failure.code, str(failure)) == ("", "connection refused")
    assert CodedMessage.from_json(failure.message.as_json()) == failure.message


def test_advice_without_its_parameters_shows_the_code_where_it_is_all_that_there_is() -> None:
    assert str(coded(TrialCode.ADVICE)) == "trial-advice"


def test_times_exceptions_and_nested_messages_are_stored() -> None:
    closed = coded(TrialCode.CLOSED, closed=datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
    assert str(CodedMessage.from_json(closed.as_json())) == str(closed)
    nested = coded(TrialCode.NESTED, why=ClusterReadOnly("demo"), inner=closed)
    assert CodedMessage.from_json(nested.as_json()).params["why"] == ClusterReadOnly("demo")
    assert str(CodedMessage.from_json(nested.as_json())) == str(nested)
    assert coded(TrialCode.NESTED, why=ValueError("x\0y"), inner="").as_json()["params"]["why"] == "x\ufffdy"


def test_a_message_as_a_reason_has_the_same_text() -> None:
    nested = coded(TrialCode.NESTED, why="Not now.", inner=coded(TrialCode.PLACED, rows=("a-0",), brokers=1))
    for message in (nested, join_messages([nested, coded(TrialCode.PLACED, rows=("a-1",), brokers=1)])):
        assert reason_text(message_reason(message)) == str(message)


def test_an_unknown_code_or_parameter_is_shown_as_stored() -> None:
    assert (
        str(CodedMessage.from_json({"code": "of-a-later-version", "params": {"n": 1}})) == 'of-a-later-version {"n": 1}'
    )
    assert str(CodedMessage.from_json({"code": "trial-placed", "params": {"rows": "x"}})).startswith("trial-placed {")
    assert str(CodedMessage.from_json({"code": "trial-closed", "params": {"closed": "soon"}})).startswith(
        "trial-closed"
    )


def test_a_parameter_is_stored_up_to_its_bound() -> None:
    stored = coded(TrialCode.NESTED, why="x" * 100_000, inner="").as_json()
    assert len(stored["params"]["why"]) == LONGEST_PARAMETER


def test_a_message_that_only_advises_has_its_advice_as_cause() -> None:
    message = coded(TrialCode.ADVICE, why=coded(TrialCode.PLACED, rows=("a-0",), brokers=1))
    assert message.cause == message.advice == "Wait."


@pytest.mark.parametrize(
    "params",
    [[1], "x", 7, json.loads('{"why": {"code": "trial-nested", "params": ' * 400 + "{}" + "}}" * 400)],
    ids=["list", "text", "number", "nested"],
)
def test_what_is_no_message_is_refused(params: object) -> None:
    with pytest.raises(ValueError, match="message"):
        read_message({"code": "trial-nested", "params": params})


def test_a_size_that_is_not_finite_shows_the_code() -> None:
    told = read_message({"code": "trial-sized", "params": {"free": float("inf")}})
    assert str(told).startswith("trial-sized {")


def test_json_of_a_command_has_code_parameters_and_both_parts() -> None:
    assert message_json(coded(TrialCode.PLACED, rows=("a-0",), brokers=2)) == {
        "code": "trial-placed",
        "params": {"rows": ["a-0"], "brokers": 2},
        "message": "a-0 is on 2 brokers.",
        "advice": "Wait.",
    }
