"""Celery task of the executor: one message is one step of one run.

A worker that is told to stop (SIGTERM) finishes the steps in progress and drops the messages that wait in the worker.
It still receives new messages for up to a second, and refuses them.
"""

from __future__ import annotations

from celery import shared_task
from celery.signals import worker_shutting_down
from django.db import close_old_connections

from kafkadash.execution.worker.lease import hand_back
from kafkadash.execution.worker.step import step_once

_stopping = False


@worker_shutting_down.connect
def told_to_stop(**_: object) -> None:
    """In the handler of the signal, which interrupts whatever the main thread does: nothing may wait here."""
    global _stopping  # noqa: PLW0603  of the process, as the signal is
    _stopping = True


@shared_task(name="execute")
def execute(execution_id: int) -> None:
    """A message that comes twice, or late, finds the run taken or not due. Who is told to stop ends its step first."""
    try:
        if _stopping:
            hand_back([execution_id])
        else:
            step_once(execution_id)
    finally:
        close_old_connections()
