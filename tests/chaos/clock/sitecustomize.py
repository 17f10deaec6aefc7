"""Lets the wall clock of a Python process jump: found by ``PYTHONPATH``, it is run before anything else of a worker.

``KAFKADASH_TEST_CLOCK`` names a file that holds the seconds by which the clock is off; it is read again and again.
``datetime.now``, ``time.time`` and their like jump; ``time.monotonic``, and so every deadline, goes on as it was, as it
does when a machine's clock is set.
"""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

LOOK_S = 0.2


def watch(file: Path) -> None:
    pause, off = threading.Event(), 0
    traveller = None
    while not pause.wait(LOOK_S):
        now = int(file.read_text(encoding="utf-8"))
        if now == off:
            continue
        import time_machine  # only by a clock that jumps: it is no part of the product

        if traveller is not None:
            traveller.stop()
        traveller = time_machine.travel(datetime.now(UTC) + timedelta(seconds=now), tick=True) if now else None
        if traveller is not None:
            traveller.start()
        off = now


if os.environ.get("KAFKADASH_TEST_CLOCK"):
    threading.Thread(target=watch, args=[Path(os.environ["KAFKADASH_TEST_CLOCK"])], daemon=True).start()
