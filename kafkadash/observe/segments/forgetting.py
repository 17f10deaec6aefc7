"""Segments past their keep go, with the folders that are empty then; and what killed writers left half written.

A round lists the days of each kind, the hours of days that are over, and the last hours for what is half written: so
its cost does not grow with what is kept. Whatever it does not reach, the next one does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import structlog
from django.conf import settings

from kafkadash.domain.segments import SegmentKind
from kafkadash.observe.segments.flusher import segments_uri
from kafkadash.observe.segments.places import Place, PlaceUnknown, place

log = structlog.get_logger(__name__)

EVERY_S = 600.0
MOST = 20_000
"""Files that one round deletes."""
HALF_WRITTEN = timedelta(hours=1)
"""How long a file may take to be written: a writer's lease is over after a fraction of it."""
_LOOK_BACK = (1, 2, 3)
_KINDS = (SegmentKind.MANIFEST, *(kind for kind in SegmentKind if kind is not SegmentKind.MANIFEST))
_last = 0.0


def forget_now_and_then(now: datetime) -> None:
    """Every ten minutes; several workers at it only share the work."""
    global _last  # noqa: PLW0603  one number per process, and losing it costs one extra round
    if _last and time.monotonic() - _last < EVERY_S:
        return
    _last = time.monotonic()
    try:
        gone = forget(place(segments_uri()), now)
    except (OSError, PlaceUnknown) as error:  # the writer says the same to people
        log.warning("segments.not_forgotten", error=str(error))
        return
    if gone:
        log.info("segments.forgotten", files=gone)


def forget(where: Place, now: datetime) -> int:
    """Returns how many files went. Manifests first: what none names does not exist. Raises OSError."""
    keep = now - timedelta(hours=settings.KEEP_SEGMENTS_HOURS)
    gone = 0
    for folder in _over(where, keep):
        for entry in where.files(folder):
            if gone == MOST:
                return gone
            where.delete(entry.address)
            gone += 1
        where.delete_empty(folder)
    for kind in _KINDS:
        for day in where.folders(kind):
            if day < f"{keep:%Y-%m-%d}":
                where.delete_empty(f"{kind}/{day}")
    return gone + _half_written(where, now)


def _over(where: Place, keep: datetime) -> Iterator[str]:
    """Folders of hours that ended before ``keep``."""
    for kind in _KINDS:
        for day in where.folders(kind):
            if not _is(day, "%Y-%m-%d") or day > f"{keep:%Y-%m-%d}":
                continue
            for hour in where.folders(f"{kind}/{day}"):
                if _is(hour, "%H") and f"{day}/{hour}" < f"{keep:%Y-%m-%d/%H}":
                    yield f"{kind}/{day}/{hour}"


def _half_written(where: Place, now: datetime) -> int:
    gone = 0
    for kind in _KINDS:
        for hours in _LOOK_BACK:
            folder = f"{kind}/{now - timedelta(hours=hours):%Y-%m-%d/%H}"
            for entry in where.files(folder):
                if entry.address.rsplit("/", 1)[1].startswith("_") and entry.modified_at < now - HALF_WRITTEN:
                    where.delete(entry.address)
                    gone += 1
    return gone


def _is(name: str, form: str) -> bool:
    """What has another name is nobody's business here."""
    try:
        return datetime.strptime(name, form).replace(tzinfo=UTC).strftime(form) == name
    except ValueError:
        return False
