"""Celery's way in to what spans apps."""

from __future__ import annotations

from celery import shared_task
from django.db import close_old_connections

from kafkadash.ops import tick as ticking


@shared_task(name="tick")
def tick() -> None:
    try:
        ticking.tick()
    finally:
        close_old_connections()
