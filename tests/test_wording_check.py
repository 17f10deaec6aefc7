"""Decisions that depend on wording are found, and what only looks like one is not."""

from __future__ import annotations

import ast

import pytest

from tests.wording_check import wording_lines


@pytest.mark.parametrize(
    "source",
    [
        'job.error == "x"',
        'why == "no broker is known"',
        '"still going" in words',
        "job.error in said",
        'answer.startswith("It ")',
        'why.startswith("Nobody can tell")',
        'rows.exclude(reason="")',
        'Q(state="gave up")',
        'Q(reason__startswith="x")',
        'why in ("one", "two words")',
    ],
)
def test_wording__decides__is_found(source: str) -> None:
    assert wording_lines(ast.parse(source)) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "job.error is None",
        'run.error_code == ""',
        'state == "done"',
        'Q(reason__icontains=values["q"])',
        'path.startswith("/clusters/")',
        'shown = "It is done." if done else "It goes on."',
    ],
)
def test_wording__is_only_told_or_searched__is_not_found(source: str) -> None:
    assert wording_lines(ast.parse(source)) == []
