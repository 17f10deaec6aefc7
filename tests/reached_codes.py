"""Codes of errors that a test reaches: loaded with ``-p tests.reached_codes``.

A code is reached where a message with it, or its text, is made while a test runs. Workers hand their codes to the
process that prints the summary; a run of everything that did not reach all codes fails (``report_plugin``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from kafkadash.core import messages
from kafkadash.core.messages import CodedMessage
from kafkadash.findings.kinds import FindingCode, FindingNoteCode
from tests.refusals.write_page import CATALOGUES, catalogue_codes

# Tests that make the text of each code.
OF_ALL_CODES = (
    "tests/refusals/test_messages.py",
    "tests/execution/test_run_messages.py",
    "tests/findings/test_finding_messages.py",
)
KEY = "reached_codes"

_reached: set[str] = set()
_recorded = False  # while a test runs


def unreached_codes() -> list[str]:
    """Return the codes of the catalogue that no test of this run has reached."""
    known = {code.value for title in CATALOGUES for code in catalogue_codes(title)}
    of_findings = {code.value for code in (*FindingCode, *FindingNoteCode)}
    return sorted((known | of_findings) - _reached)


def note_reached(code: str) -> None:
    if _recorded:
        _reached.add(code)


def pytest_configure() -> None:
    makers = ((CodedMessage, "__init__", 1), (messages, "_render_text", 0), (messages, "_render_advice", 0))
    for owner, name, place in makers:
        setattr(owner, name, _noting(getattr(owner, name), place))


def _noting(make: Callable[..., Any], place: int) -> Callable[..., Any]:
    """Return the same function; it notes its argument ``code``, which stands at this place."""

    def made(*args: Any, **kwargs: Any) -> Any:
        note_reached(str(args[place] if len(args) > place else kwargs["code"]))
        return make(*args, **kwargs)

    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    global _recorded  # noqa: PLW0603
    _recorded = not item.nodeid.startswith(OF_ALL_CODES)
    try:
        return (yield)
    finally:
        _recorded = False


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output[KEY] = sorted(_reached)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over the codes of a worker of xdist; one that crashed has none."""
    _reached.update(getattr(node, "workeroutput", {}).get(KEY, ()))
