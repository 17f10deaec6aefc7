"""Suites of tests that a part runs: pytest in a process of its own, with its counts and failures printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_COUNTED = r"^(?:=+ )?(\d+ passed.*?)(?: =+)?$"


def run_suite(title: str, asked: Sequence[str], log: Path, variables: Mapping[str, str]) -> bool:
    """Run pytest with these arguments; return whether something ran and nothing failed.

    ``variables``: what its environment has besides that of this process.
    """
    command = [sys.executable, "-m", "pytest", *asked, "-n0", "-v", "--tb=short", "--no-header"]
    with log.open("w", encoding="utf-8") as out:
        code = subprocess.run(command, env={**os.environ, **variables}, stdout=out, stderr=out, check=False).returncode
    text = log.read_text(encoding="utf-8")
    counted = re.findall(_COUNTED, text, re.MULTILINE)
    print(f"  {title:<24} {counted[-1] if counted else 'nothing ran'}", flush=True)  # noqa: T201
    for line in re.findall(r"^(?:FAILED|ERROR) .*$", text, re.MULTILINE):
        print(f"    {line[:200]}", flush=True)  # noqa: T201
    for line in re.findall(r"^tests/\S+: needs .*$", text, re.MULTILINE):
        print(f"    left out: {line}", flush=True)  # noqa: T201
    return code == 0 and bool(counted)
