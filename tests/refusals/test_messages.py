"""Codes of errors: each has a message, each is used, and each use gives the parameters of its message."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import kafkadash
from kafkadash.core.messages import MessageTemplate, message_text
from kafkadash.findings.messages import FINDING_MESSAGES, FINDING_NOTE_MESSAGES, FindingTemplate
from tests.refusals.write_page import CATALOGUES, DOC, catalogue_codes, catalogue_messages, places_of_codes, whole_page

ROOT = Path(kafkadash.__file__).parent
ERROR_MESSAGES = {code: message for title in CATALOGUES for code, message in catalogue_messages(title).items()}
FINDINGS: tuple[Mapping[Any, MessageTemplate], ...] = (FINDING_MESSAGES, FINDING_NOTE_MESSAGES)
MESSAGES = {code: message for each in (ERROR_MESSAGES, *FINDINGS) for code, message in each.items()}
BY_NAME = {f"{type(code).__name__}.{code.name}": code for code in MESSAGES}
HOSTILE = ("{0}{why!r}{", "<script>alert(1)</script>", "\u202e\u2028", "x" * 10_000, "%s%n")
# Arguments of an exception, or of whoever makes one, beside the parameters of its message.
OF_THE_CALL = frozenset({"returncode"})
MAKE_TEXT = frozenset({"message_text", "message_parts", "message_cause", "message_advice", "message_with_news"})


def test_each_code__has_one_message_and_is_used() -> None:
    places = places_of_codes()
    for title in CATALOGUES:
        enum = catalogue_codes(title)
        assert catalogue_messages(title).keys() == set(enum), title
        assert [code for code in enum if not places[f"{enum.__name__}.{code.name}"] | places[code.value]] == [], title


def test_each_message__is_a_sentence_and_says_what_to_do_next() -> None:
    for code, message in ERROR_MESSAGES.items():
        assert re.fullmatch(r"[a-z][a-z-]+[a-z]", code.value), code
        assert message.advice, code
        for part in filter(None, (message.text, message.many, message.advice)):
            assert part[0].isupper() or part[0] in "{#“" or part.startswith("kafkadash"), part
            assert part[-1] in ".?}", part
            assert part == " ".join(part.split()), part


def test_each_use__gives_the_parameters_of_its_message() -> None:
    found = [use for path in ROOT.rglob("*.py") for use in _uses(path)]
    wrong = [f"{place} {code}: {sorted(given)}" for place, code, given, needed in found if given != needed]
    assert wrong == []
    assert len({code for _, code, _, _ in found}) > 0.8 * len(MESSAGES)


def test_what_people_are_told__is_raised_with_a_code() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")}
    told = _told_classes(trees.values())
    assert len(told) > 30
    assert [
        f"{path.relative_to(ROOT)}:{line}" for path, tree in trees.items() for line in _raised_texts(tree, told)
    ] == []


def test_text_that_is_raised__is_found() -> None:
    raised = ('raise Own("No way.")', 'raise Own(f"No {x}.") from e', 'raise Own(Code.NO, why="No way.")')
    tree = ast.parse("\n".join(["class Own(UserError): ...", *raised]))
    assert list(_raised_texts(tree, _told_classes([tree]))) == [2, 3]


def test_page_of_errors__is_that_of_the_catalogue() -> None:
    assert DOC.read_text(encoding="utf-8") == whole_page(), "run: python -m tests.refusals.write_page"


def test_no_text__is_made_while_modules_are_imported() -> None:
    """Messages are registered when the apps are ready."""
    assert [place for path in ROOT.rglob("*.py") for place in _texts_at_import(path)] == []


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_parameter__is_shown_as_it_is(text: str) -> None:
    for code, message in ERROR_MESSAGES.items():
        plain = parameters(message)
        if plain and all(how is None for _, how in _fields(message)):
            assert text in message_text(code, **dict.fromkeys(plain, text)), code


def test_parameter_that_is_missing_or_of_another_type__shows_the_code() -> None:
    for code, message in ERROR_MESSAGES.items():
        if parameters(replace(message, advice="")):
            assert message_text(code).startswith(code.value), code


def parameters(message: MessageTemplate) -> set[str]:
    return {name for name, _ in _fields(message)}


def _fields(message: MessageTemplate) -> Iterator[tuple[str, str | None]]:
    """Names of parameters, with how they are written, None for as they are."""
    parts = [message.text, message.many, message.advice]
    if isinstance(message, FindingTemplate):
        parts += [message.title, message.detail]
    for part in parts:
        yield from ((name, spec or conversion or None) for _, name, spec, conversion in Formatter().parse(part) if name)


def _uses(path: Path) -> Iterator[tuple[str, StrEnum, set[str], set[str]]]:
    """Calls whose first argument is a code, with the names of their other arguments and of those that are needed; not
    where arguments are unpacked.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args or any(keyword.arg is None for keyword in node.keywords):
            continue
        code = BY_NAME.get(ast.unparse(node.args[0]))
        if code is not None:
            given = {keyword.arg for keyword in node.keywords if keyword.arg} - OF_THE_CALL
            parts = {"message_cause": {"advice": ""}, "message_advice": {"text": "", "many": ""}}
            message = replace(MESSAGES[code], **parts.get(ast.unparse(node.func), {}))
            yield f"{path.relative_to(ROOT)}:{node.lineno}", code, given, parameters(message)


def _told_classes(trees: Iterable[ast.Module]) -> set[str]:
    """Names of the exceptions that a person is told about: those of Django, and what derives from UserError."""
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    told, known = {"CommandError", "Http404", "PermissionDenied", "UserError", "ValidationError"}, 0
    while known < len(told):
        known = len(told)
        told |= {each.name for each in classes if told & {ast.unparse(base) for base in each.bases}}
    return told


def _raised_texts(tree: ast.Module, told: set[str]) -> Iterator[int]:
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and ast.unparse(call.func) in told:
            texts = (each.value if isinstance(each, ast.Constant) else None for each in call.args)
            if any(isinstance(text, str) and " " in text for text in texts) or any(
                isinstance(each, ast.JoinedStr) for each in call.args
            ):
                yield call.lineno


def _texts_at_import(path: Path) -> Iterator[str]:
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKE_TEXT:
            yield f"{path.relative_to(ROOT)}:{node.lineno}"
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
