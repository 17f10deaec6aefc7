"""A playground for the length of a block: for session fixtures and scripts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kafkadash.playground.cluster import Playground


@contextmanager
def running_playground(
    folder: Path,
    *,
    brokers: int = 3,
    racks: Sequence[str] = ("a", "b", "c"),
    controllers: int = 1,
    dirs: int = 1,
) -> Iterator[Playground]:
    """Brokers that serve; stopped when the block ends, however it ends. Data go then, logs stay in the folder.

    Raises ServerError when the cluster does not start.
    """
    playground = Playground(folder)
    try:
        playground.up(brokers=brokers, racks=racks, controllers=controllers, dirs=dirs)
        yield playground
    finally:
        playground.down()
        shutil.rmtree(playground.folder / "data", ignore_errors=True)
