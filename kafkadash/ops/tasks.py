"""Celery's way in to what spans apps."""

from __future__ import annotations

import time

from celery import shared_task
from django.db import close_old_connections

from kafkadash.ops import tick as ticking

SPARE_S = 0.5
_began = float("-inf")


@shared_task(name="tick")
def tick() -> None:
    """Run one tick; skip a tick right behind another, which waited in the queue for a worker that was away."""
    global _began  # noqa: PLW0603  one number per process, which has one thread for ticks
    if time.monotonic() - _began < SPARE_S:
        return
    _began = time.monotonic()
    try:
        ticking.tick()
    finally:
        close_old_connections()
