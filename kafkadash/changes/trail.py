"""The audit trail of one change request in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from kafkadash.accounts.models import AuditEvent

_PERSON = "user:"
_SAID = {
    "change.created": "created the draft",
    "change.copied": "copied it to a new draft",
    "change.edited": "edited the draft",
    "change.planned": "made the plan",
    "change.submitted": "submitted it for approval",
    "change.reopened": "took it back to a draft to edit it",
    "change.withdrawn": "withdrew it",
    "change.approved": "approved it",
    "change.declined": "declined it",
    "change.commented": "commented",
    "change.turned_stale": "found that the plan no longer fits the cluster",
    "change.refresh_started": "asked for a new plan",
    "change.refreshed": "made a new plan; approvals of the old one are void",
    "change.expired": "let it expire: its time was over",
    "change.broke_glass": "broke the glass: queued it without the approvals",
}
_TROUBLE = {"change.turned_stale": "warning", "change.failed": "critical", "change.broke_glass": "critical"}
_SHOWN_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Entry:
    """One event. ``trouble`` is a state of the status tokens; ``detail`` is said below."""

    id: int
    at: datetime
    who: str
    person: bool
    trouble: str
    words: str
    detail: Sequence[str]


def entries(events: Iterable[AuditEvent]) -> list[Entry]:
    """In the order given."""
    return [
        Entry(
            id=event.pk,
            at=event.at,
            who=event.actor_name,
            person=event.actor.startswith(_PERSON),
            trouble=_TROUBLE.get(event.action, ""),
            words=_SAID.get(event.action) or event.action.partition(".")[2].replace("_", " "),
            detail=_detail(event),
        )
        for event in events
    ]


def _detail(event: AuditEvent) -> list[str]:
    after = event.after if isinstance(event.after, dict) else {}
    digest = after.get("digest")
    shown = [f"digest {digest[:_SHOWN_DIGITS]}…"] if isinstance(digest, str) and digest else []
    return [*([event.reason] if event.reason else []), *shown]
