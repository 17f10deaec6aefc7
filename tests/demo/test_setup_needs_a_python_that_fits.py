"""`make setup` with a Python that will not do: one sentence with the way out, nothing half-made."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.smoke.demo_process import CHECKOUT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `make setup` reads, in a folder of its own."""
    if shutil.which("make") is None:
        pytest.skip("there is no make here")
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(CHECKOUT / name, tmp_path / name)
    return tmp_path


def refusal(checkout: Path, python: str) -> str:
    done = subprocess.run(
        ["make", "setup", f"PYTHON={python}"], cwd=checkout, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert not (checkout / ".venv").exists()
    assert "Traceback" not in done.stderr
    return done.stderr


def test_python_older_than_3_11__is_named_with_its_version(checkout: Path) -> None:
    old = checkout / "python3.9"
    old.write_text('#!/bin/sh\ncase "$2" in *version_info*) exit 1;; *) echo 3.9.2;; esac\n', encoding="utf-8")
    old.chmod(0o755)
    assert f"kafkadash needs Python 3.11 or newer and {old} is 3.9.2: name another one" in refusal(checkout, str(old))


def test_no_python_of_that_name__is_said(checkout: Path) -> None:
    assert "There is no no-such-python here: install Python 3.11" in refusal(checkout, "no-such-python")
