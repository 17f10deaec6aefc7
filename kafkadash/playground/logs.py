"""The log of a node, which outlives its starts and does not grow for ever."""

from __future__ import annotations

from pathlib import Path

BYTES_KEPT = 20_000_000


def rotated_size(log: Path) -> int:
    """Where this start's lines begin; a log that has grown large is put aside first, one generation is kept."""
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return 0
    if size <= BYTES_KEPT:
        return size
    log.replace(log.with_suffix(".old.log"))
    return 0
