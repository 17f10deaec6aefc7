"""The child process that makes a plan (``kafkadash.plan_job``): its private folder, its progress, its end.

A plan of a large cluster takes seconds of pure computing and hundreds of megabytes. In a process of its own it keeps
no other job of the worker waiting, can be ended at once, and has limits that the system keeps.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings

from kafkadash.domain.refusals import planning

log = structlog.get_logger(__name__)

PREFIX = "kafkadash-plan-"
LEFT_BEHIND_S = 6 * 3600.0
"""A folder this old belongs to a worker that was killed: no plan takes that long."""
_LOOK_S = 0.5
_END_S = 5.0

Step = Callable[[float, str], None]
"""Is told the fraction and what is being done; what it raises ends the child."""


class PlanFault(Exception):
    """The child ended in a way that is nobody's request; ``str()`` says how."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``result`` as ``kafkadash.plan_job`` describes it; ``artifact`` is None where there are problems."""

    result: Mapping[str, Any]
    artifact: bytes | None


def make_plan(request: Mapping[str, Any], files: Mapping[str, bytes], step: Step) -> Outcome:
    """Runs the child on ``request`` with these files beside it. Raises PlanFault, and whatever ``step`` raises."""
    with _private_folder() as folder:
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        for name, content in files.items():
            (folder / name).write_bytes(content)
        code = _run(folder, step)
        result_file, plan_file = folder / "result.json", folder / "plan.json"
        if code not in (0, 2) or not result_file.is_file():
            errors = (folder / "errors").read_text(encoding="utf-8", errors="replace")
            log.error("plan.child_failed", code=code, errors=errors[-4000:])
            raise PlanFault(_how_it_ended(code, errors, request.get("memory_bytes")))
        result = json.loads(result_file.read_bytes())
        return Outcome(result, plan_file.read_bytes() if code == 0 else None)


@contextmanager
def _private_folder() -> Iterator[Path]:
    """Only this user may look into it (0700), and it is gone afterwards, whatever happens."""
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep() -> None:
    """Folders that killed workers left behind."""
    before = time.time() - LEFT_BEHIND_S
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            found = folder.lstat()
        except OSError:
            continue  # somebody else swept it
        if found.st_uid == os.geteuid() and found.st_mtime < before and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)


def _run(folder: Path, step: Step) -> int:
    """The exit code; the child has ended in any case."""
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    with (folder / "errors").open("wb") as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", "kafkadash.plan_job", str(folder)],
            cwd=settings.BASE_DIR,
            env={**environment, "PYTHONPATH": str(settings.BASE_DIR)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    try:
        _follow(child, step)
        return child.wait(_END_S)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _follow(child: subprocess.Popen[bytes], step: Step) -> None:
    """Until the child closes its output; ``step`` is called at least every half second."""
    assert child.stdout is not None
    fraction, stage, unread = 0.0, "starting", b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            step(fraction, stage)
            if not selector.select(_LOOK_S):
                continue
            chunk = os.read(child.stdout.fileno(), 65_536)
            if not chunk:
                return
            *lines, unread = (unread + chunk).split(b"\n")
            if lines:
                said = json.loads(lines[-1])
                fraction, stage = said["fraction"], said["stage"]


def _how_it_ended(code: int, errors: str, memory_bytes: int | None) -> str:
    if code == -signal.SIGABRT and "bad_alloc" in errors and memory_bytes:
        # The solver is not Python: where it gets no memory it can do nothing but abort.
        return planning.PLANNER_OUT_OF_MEMORY(most=memory_bytes / 1e9)
    if code < 0:
        return planning.PLANNER_KILLED(signal=signal.Signals(-code).name)
    return planning.PLANNER_FAILED(code=code)
