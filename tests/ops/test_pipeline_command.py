"""manage.py pipeline becomes the pipeline's own process, and hands on what it was asked, no more."""

from __future__ import annotations

import sys
from unittest import mock

import pytest
from django.core.management import call_command


@pytest.mark.parametrize(
    ("asked", "handed_on"),
    [
        (["run"], ["run"]),
        (["run", "--every", "5"], ["run", "--every", "5.0"]),
        (["once"], ["once"]),
        (
            ["backfill", "--from", "2026-11-20", "--to", "2026-11-21"],
            ["backfill", "--from=2026-11-20", "--to=2026-11-21"],
        ),
    ],
)
def test_what_is_asked_is_handed_on(asked: list[str], handed_on: list[str]) -> None:
    with mock.patch("os.execv") as becomes:
        call_command("pipeline", "--uri", "file:///x", *asked)
    action, *more = handed_on
    becomes.assert_called_once_with(
        sys.executable, [sys.executable, "-m", "kafkadash.pipeline", action, "--uri", "file:///x", *more]
    )
