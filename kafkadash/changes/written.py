"""What people write into a change request, as it is stored, or a sentence about what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.refusals import Refused
from kafkadash.domain.messages import message_text

LONGEST_TITLE = 200
LONGEST_TEXT = 10_000
"""Characters of a comment, a reason, a note or the why."""
_LONGEST_SHOWN = 2_000


def text_of(written: str, what: str) -> str:
    """Without blanks around it. Raises Refused when it is too long; ``what`` begins the sentence ("The reason")."""
    written = written.replace("\x00", "").strip()
    if len(written) > LONGEST_TEXT:
        raise Refused(ChangeErrorCode.TEXT_TOO_LONG, what=what, length=len(written), most=LONGEST_TEXT)
    return written


def wrong_reason(reason: str, missing: str) -> str:
    """Return what is wrong with a reason, "" where nothing is. ``missing`` is said where there is none."""
    if not reason.strip():
        return missing
    if len(reason) > LONGEST_TEXT:
        return message_text(ChangeErrorCode.TYPED_TOO_LONG, length=len(reason), most=LONGEST_TEXT)
    return ""


def title_of(title: str) -> str:
    """On one line. Raises Refused when it is too long."""
    title = " ".join(title.replace("\x00", "").split())
    if len(title) > LONGEST_TITLE:
        raise Refused(ChangeErrorCode.TITLE_TOO_LONG, length=len(title), most=LONGEST_TITLE)
    return title


def window_of(options: Mapping[str, Any]) -> dict[str, datetime | None]:
    """The columns of the window that ``options`` name, as ``domain.plan.Options`` does. Raises Refused."""
    window = {name: _instant(options.get(name)) for name in ("not_before", "not_after")}
    begin, end = window["not_before"], window["not_after"]
    if begin is not None and end is not None and begin >= end:
        raise Refused(ChangeErrorCode.WINDOW_TURNED_ROUND)
    return window


def _instant(written: object) -> datetime | None:
    if not written:
        return None
    try:
        instant = datetime.fromisoformat(str(written))
    except ValueError as error:
        raise Refused(ChangeErrorCode.NO_TIME, written=repr(written)) from error
    return instant.replace(tzinfo=instant.tzinfo or UTC)


def short(value: Any) -> Any:
    """For the audit: what is too long to be read there is named by its length."""
    written = json.dumps(value, default=str)
    return value if len(written) <= _LONGEST_SHOWN else f"{len(written):,} characters"
