"""Points of a flush at which a test has its process killed (``observe.fail_file``).

Off unless the setting ``SEGMENT_FAIL_POINTS`` names a file.
"""

from __future__ import annotations

from enum import StrEnum

from django.conf import settings

from kafkadash.domain.segments import SegmentKind
from kafkadash.observe.fail_file import FailFile


class At(StrEnum):
    """Of a file: opened under a name that begins with ``_``, all of it on the disk there, under its own name."""

    BEGUN = "begun"
    WRITTEN = "written"
    SHOWN = "shown"


BOUND, COMMITTED = "bound", "committed"
"""The flush has its numbers and snapshots; its files are whole and it is not known yet."""
POINTS = (BOUND, *(f"{kind}.{at}" for kind in SegmentKind for at in At), COMMITTED)


def reached(kind: SegmentKind, at: At) -> None:
    at_point(f"{kind}.{at}")


def at_point(point: str) -> None:
    if _armed is not None:
        _armed.reached(point)


_armed = FailFile.named_by("SEGMENT_FAIL_POINTS", settings.SEGMENT_FAIL_POINTS, POINTS)
