"""Child processes for pure computation: a private folder, progress reports, limits and termination.

A computation that takes seconds of CPU time and hundreds of megabytes runs in its own process, so that it does not
delay other jobs of the worker, can be ended at once, and has resource limits that the operating system enforces.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

PREFIX = "kafkadash-child-"
LEFT_BEHIND_S = 6 * 3600.0
"""A folder this old belongs to a worker that was killed: no child takes that long."""
_LOOK_S = 0.5
_END_S = 5.0

Step = Callable[[float, str], None]
"""Is told the fraction and what is being done; what it raises ends the child."""


@contextmanager
def private_folder() -> Iterator[Path]:
    """Only this user may look into it (0700), and it is gone afterwards, whatever happens."""
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_child(module: str, folder: Path, step: Step, *arguments: str) -> int:
    """Run ``python -m MODULE FOLDER ARGUMENTS`` and return its exit code; the child has ended in any case.

    It prints lines of JSON, ``{"stage":"…","fraction":0.31}``. What it says on its standard error is in the file
    ``errors`` of the folder. Raises what ``step`` raises.
    """
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    with (folder / "errors").open("wb") as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", module, str(folder), *arguments],
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
                line = json.loads(lines[-1])
                fraction, stage = line["fraction"], line["stage"]


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
