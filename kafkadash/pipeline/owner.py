"""Lock of the pipeline's folder: a single pipeline per folder, because two would write the same batches.

A killed driver leaves its JVM running until the JVM notices, and its late writes would disturb the next one. So the
next one ends that JVM first; processes are identified by id and creation time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil

from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.store import PipelineStore

LOCK = "checkpoints/owner.json"
ENDS_SECONDS = 15.0
_SAME_START = 2.0


class FolderOwner:
    def __init__(self, path: Path) -> None:
        self._path = path

    def note_processes(self) -> None:
        """To be called once Spark has started: who has to be gone before another pipeline may begin here."""
        mine = psutil.Process()
        found = [[each.pid, each.create_time()] for each in [mine, *mine.children(recursive=True)]]
        self._path.write_text(json.dumps(found), encoding="utf-8")


@contextlib.contextmanager
def own_folder(store: PipelineStore) -> Iterator[FolderOwner | None]:
    """Be the only pipeline of this folder. None for folders of other machines: there it is up to who starts it.

    Raises PipelineFault while another one runs.
    """
    if not store.local:
        yield None
        return
    path = Path(unquote(urlsplit(store.address(LOCK)).path))
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineFault(PipelineErrorCode.ANOTHER_PIPELINE, address=store.uri, pid=_first(path)) from None
        _end_leftovers(path)
        path.write_text(json.dumps([[os.getpid(), psutil.Process().create_time()]]), encoding="utf-8")
        yield FolderOwner(path)


def _read_processes(path: Path) -> list[tuple[int, float]]:
    try:
        return [(int(pid), float(began)) for pid, began in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError):
        return []  # nobody yet, or one that was killed while it wrote this, before it had begun anything


def _first(path: Path) -> str:
    return next((str(pid) for pid, _ in _read_processes(path)), "unknown")


def _end_leftovers(path: Path) -> None:
    left = []
    for pid, began in _read_processes(path):
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if pid != os.getpid() and abs(process.create_time() - began) < _SAME_START:
                left.append(process)
    _, alive = psutil.wait_procs(left, timeout=ENDS_SECONDS)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=ENDS_SECONDS)
