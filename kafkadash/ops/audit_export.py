"""The audit as a file: CSV for a spreadsheet, JSON lines for a program; made while it is sent."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import QuerySet

from kafkadash.accounts.models import AuditEvent
from kafkadash.ops.audit_words import action_words

PORTION = 1_000
"""Events that are held at once."""

COLUMNS = (
    "id",
    "at",
    "actor",
    "actor_name",
    "action",
    "words",
    "object_type",
    "object_id",
    "cluster",
    "reason",
    "before",
    "after",
    "address",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")

Portions = Iterator[list[AuditEvent]]


def portions(events: QuerySet[AuditEvent]) -> Portions:
    """All events, newest first, some at a time and each time by place: no cursor, no transaction is held open."""
    rest = events.order_by("-at", "-id")
    while found := list(rest[:PORTION]):
        yield found
        if len(found) < PORTION:
            return
        last = found[-1]
        rest = events.filter(at__lte=last.at).exclude(at=last.at, id__gte=last.pk).order_by("-at", "-id")


def as_csv(found: Sequence[AuditEvent]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    for event in found:
        fields = _fields(event)
        writer.writerow([cell(fields[name]) for name in COLUMNS])
    return out.getvalue()


def as_json_lines(found: Sequence[AuditEvent]) -> str:
    return "".join(json.dumps(_fields(event), ensure_ascii=False, separators=(",", ":")) + "\n" for event in found)


def cell(value: object) -> str:
    """A cell that no spreadsheet takes for a formula: one that begins like it gets an apostrophe in front (OWASP)."""
    if value is None:
        return ""
    content = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{content}" if content.startswith(_FORMULA) else content


FORMATS: dict[str, tuple[str, str, str, Callable[[Sequence[AuditEvent]], str]]] = {
    "csv": ("text/csv; charset=utf-8", "csv", ",".join(COLUMNS) + "\r\n", as_csv),
    "jsonl": ("application/x-ndjson; charset=utf-8", "jsonl", "", as_json_lines),
}
"""Format → content type, ending of the file's name, its first line, and how events are written."""


def lines(events: QuerySet[AuditEvent], name: str) -> Iterator[str]:
    """The file in portions."""
    _, _, head, write = FORMATS[name]
    if head:
        yield head
    for found in portions(events):
        yield write(found)


async def lines_async(events: QuerySet[AuditEvent], name: str) -> AsyncIterator[str]:
    """The same for an event loop: each portion is read in the thread of the request."""
    source = lines(events, name)
    while (text := await sync_to_async(lambda: next(source, None))()) is not None:
        yield text


def _fields(event: AuditEvent) -> dict[str, Any]:
    return {
        "id": event.pk,
        "at": event.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "actor": event.actor,
        "actor_name": event.actor_name,
        "action": event.action,
        "words": action_words(event.action),
        "object_type": event.object_type,
        "object_id": event.object_id,
        "cluster": event.cluster,
        "reason": event.reason,
        "before": event.before,
        "after": event.after,
        "address": event.address,
    }
