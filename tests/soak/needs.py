"""What a process needs of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Needs:
    """``memory`` in bytes, of this process alone (USS); ``files`` are open descriptors that are no sockets."""

    memory: int
    threads: int
    sockets: int
    files: int


def needs_of(pid: int) -> Needs | None:
    """None when it is gone."""
    try:
        process = psutil.Process(pid)
        opened = [_target(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
        sockets = sum(target.startswith("socket:") for target in opened)
        files = sum(bool(target) for target in opened) - sockets
        return Needs(process.memory_full_info().uss, process.num_threads(), sockets, files)
    except (psutil.Error, OSError):
        return None


def _target(link: Path) -> str:
    """'' for one that was closed meanwhile."""
    try:
        return str(link.readlink())
    except OSError:
        return ""
