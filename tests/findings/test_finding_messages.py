"""Texts of findings: each code has one, and any parameters that are stored can be shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter
from typing import Any

import pytest

from kafkadash.core.messages import CodedMessage, as_message, coded
from kafkadash.core.status import HealthState
from kafkadash.findings.kinds import FactSource, FindingCode, FindingKind, FindingNoteCode, stored_kind
from kafkadash.findings.messages import FINDING_MESSAGES, FINDING_NOTE_MESSAGES, finding_detail, finding_title
from kafkadash.findings.models import Finding
from tests.page_words import LONGEST_TITLE, count_words
from tests.refusals.write_page import places_of_codes

# By how a parameter is written; all others are numbers.
SAMPLES: Mapping[str, Any] = {
    "brokers": (1, 2),
    "names": ("orders-0", "orders-1", 7),
    "notes": (coded(FindingNoteCode.MEMBERS, members=2), coded(FindingNoteCode.PRODUCERS_SEE)),
    "reason": as_message("It timed out."),
    "sources": (FactSource.QUORUM.value, FactSource.VERSIONS.value),
    "few_sources": (FactSource.QUORUM.value, FactSource.VERSIONS.value),
    "group": "invoice-writer",
}
HOSTILE = ("{0}{broker!r}{", "<script>alert(1)</script>", "\u202e\u0000\u2028", "x" * 10_000, "%s%n")
WRONG = (None, *HOSTILE, -1, 1.5, True, (), (None, 1), {"code": 3}, coded(FindingNoteCode.RELEASE))


def parameters(code: FindingCode) -> dict[str, Any]:
    """Return samples of all parameters that the parts of a message name."""
    template = FINDING_MESSAGES[code]
    found: dict[str, Any] = {}
    for part in (template.text, template.title, template.detail):
        for _, name, how, _ in Formatter().parse(part):
            if name and found.get(name, 3) == 3:
                found[name] = SAMPLES.get(how or "", 3)
    return found


def parts(message: CodedMessage) -> tuple[str, str, str]:
    return message.cause, finding_title(message), finding_detail(message)


def test_each_code__has_a_message_and_is_used() -> None:
    places = places_of_codes()
    assert FINDING_MESSAGES.keys() == set(FindingCode)
    assert FINDING_NOTE_MESSAGES.keys() == set(FindingNoteCode)
    used = [code for code in (*FindingCode, *FindingNoteCode) if not places[f"{type(code).__name__}.{code.name}"]]
    assert used == []


@pytest.mark.parametrize("code", FindingCode)
def test_each_message__has_a_sentence_and_a_short_title(code: FindingCode) -> None:
    message = coded(code, **parameters(code))
    sentence, title, detail = parts(message)
    assert code.value not in sentence + title + detail
    assert re.fullmatch(r"[A-Z\d].*\.", sentence)
    assert re.fullmatch(r"[A-Z\d].*[^.]", title)
    assert count_words(f"{title} on Demo") <= LONGEST_TITLE
    assert parts(CodedMessage.from_json(message.as_json())) == (sentence, title, detail)


@pytest.mark.parametrize("value", WRONG, ids=range(len(WRONG)))
def test_parameters_of_any_kind__are_shown(value: Any) -> None:
    for code in FindingCode:
        stored = coded(code, **dict.fromkeys(parameters(code), value)).as_json()
        assert all(isinstance(part, str) for part in parts(CodedMessage.from_json(stored))), code


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names__are_shown_as_they_are(text: str) -> None:
    failed = coded(FindingCode.DIRECTORY_FAILED, broker=1, path=text, fault=text)
    sentence, _, detail = parts(failed)
    assert text in sentence
    assert text in detail
    named = coded(FindingCode.MOVES_NEVER_END, moves=2, names=(text, text))
    assert finding_detail(named) == f"{text} and {text}"


def test_missing_parameters__show_the_code() -> None:
    for code in FindingCode:
        if re.search(r"{", FINDING_MESSAGES[code].text):
            sentence, title, _ = parts(coded(code, stray=1))
            assert sentence == f'{code.value} {{"stray": 1}}'
            assert title in (sentence, FINDING_MESSAGES[code].title)


def test_codes_of_another_version__are_shown_with_their_parameters() -> None:
    row = Finding(message_code="broker-dreams", message_params={"broker": 3, "of": "<sheep>"})
    shown = 'broker-dreams {"broker": 3, "of": "<sheep>"}'
    assert (row.sentence, row.title, row.detail) == (shown, shown, "")


def test_kind_of_another_version__is_unknown() -> None:
    kind = stored_kind("broker-dreams")
    assert (kind.value, kind.about.state, kind in FindingKind) == ("broker-dreams", HealthState.UNKNOWN, False)
    assert kind.rank > FindingKind.DISABLED.rank
    assert stored_kind("broker-down") is FindingKind.BROKER_DOWN
