"""The point at which a test has the ingest killed (``settings.INGEST_FAIL_POINT``), as ``kill -9`` does it."""

from __future__ import annotations

import os
import signal

from django.conf import settings

POINTS = ("listed", "read", "copied", "portion-stored", "before-commit", "after-commit", "deleting", "before-state")


def reached(point: str) -> None:
    if point == settings.INGEST_FAIL_POINT:
        os.kill(os.getpid(), signal.SIGKILL)
