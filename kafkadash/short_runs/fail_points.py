"""Fail points of a short run's step (``core.fail_points``), named by the setting SHORT_RUN_FAIL_POINTS in tests.

``item.before-call``: the intents are stored and nothing was sent. ``item.after-call``: Kafka answered and nothing of
that is stored. ``item.after-row``: the answers are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from kafkadash.core.fail_points import FailFile

BEFORE_CALL, AFTER_CALL, AFTER_ROW = "item.before-call", "item.after-call", "item.after-row"
POINTS = (BEFORE_CALL, AFTER_CALL, AFTER_ROW)

_armed = FailFile.named_by("SHORT_RUN_FAIL_POINTS", settings.SHORT_RUN_FAIL_POINTS, POINTS)


@contextmanager
def around_call() -> Iterator[None]:
    """To be entered around one request to Kafka; a request that raises was not answered."""
    _reach(BEFORE_CALL)
    yield
    _reach(AFTER_CALL)


def answers_stored() -> None:
    _reach(AFTER_ROW)


def _reach(point: str) -> None:
    if _armed is not None:
        _armed.reached(point)
