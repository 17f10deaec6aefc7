"""manage.py pipeline becomes the pipeline's own process, and hands on what it was asked, no more."""

from __future__ import annotations

import os
import sys
from unittest import mock

import pytest
from django.core.management import call_command

from kafkadash.embedded.process import SECRET_NAMES


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
    with mock.patch("os.execve") as becomes:
        call_command("pipeline", "--uri", "file:///x", *asked)
    action, *more = handed_on
    [(program, arguments, environment)] = [call.args for call in becomes.call_args_list]
    assert program == sys.executable
    assert arguments == [sys.executable, "-m", "kafkadash.pipeline", action, "--uri", "file:///x", *more]
    assert environment["PATH"] == os.environ["PATH"]


def test_secrets_of_the_product_are_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SECRET_NAMES, "FIELD_KEYS_FILE"):
        monkeypatch.setenv(name, "s3cret")
    with mock.patch("os.execve") as becomes:
        call_command("pipeline", "--uri", "file:///x", "run")
    assert "s3cret" not in becomes.call_args.args[2].values()
