"""The audit trail of one change request as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafkadash.accounts.models import AuditEvent
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.transitions import OBJECT
from kafkadash.core.messages import CodedMessage

_PERSON = "user:"
_SAID = {
    "change.created": "created the draft",
    "change.copied": "copied it to a new draft",
    "change.edited": "edited the draft",
    "change.planned": "created the plan",
    "change.submitted": "submitted it for approval",
    "change.reopened": "reopened it as a draft",
    "change.withdrawn": "withdrew it",
    "change.approved": "approved it",
    "change.declined": "declined it",
    "change.commented": "commented",
    "change.turned_stale": "marked it stale: the plan no longer fits the cluster",
    "change.refresh_started": "requested a new plan",
    "change.refreshed": "created a new plan; earlier approvals are void",
    "change.expired": "marked it expired",
    "change.broke_glass": "queued it without approvals (break-glass)",
    "change.started": "started it: queued",
    "change.scheduled": "queued it at the start of its window",
    "change.turn_came": "began the run",
    "change.paused": "paused the run",
    "change.resumed": "resumed the run",
    "change.cancelled": "cancelled the run",
    "change.rows_ended": "started the verification",
    "change.cancel_ended": "ended the cancelled run",
    "change.verified": "verified the run",
    "change.failed": "marked it failed",
    "change.throttle_vanished": "found its throttle removed by others",
    "change.throttle_foreign": "found a rate set by others in place of its own",
    "change.throttle_left": "left a throttle that others had changed",
    "change.throttle_late": "found a throttle set by a late call",
    "change.throttle_obliged": "postponed the removal of a throttle",
    "change.throttle_settled": "removed the postponed throttles",
    "change.rollback_proposed": "created a rollback draft",
    "change.row_replanned": "created a draft with other brokers for one move",
}
_TROUBLE = {"change.turned_stale": "warning", "change.failed": "critical", "change.broke_glass": "critical"}
_SHOWN_DIGITS = 8
_OF_CONTENT = frozenset(
    {
        "change.planned",
        "change.submitted",
        "change.approved",
        "change.declined",
        "change.refreshed",
        "change.broke_glass",
        "change.started",
        "change.turn_came",
    }
)
"""Actions on one content, which the digest names. On other events the digest would only repeat itself."""
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class TrailEntry:
    """Event of the trail. ``trouble`` is a state of the status tokens; ``detail`` is shown below."""

    id: int
    at: datetime
    who: str
    person: bool
    trouble: str
    words: str
    detail: Sequence[CodedMessage | str]
    action: str = ""


def build_entries(events: Iterable[AuditEvent]) -> list[TrailEntry]:
    """In the order given."""
    return [
        TrailEntry(
            id=event.pk,
            at=event.at,
            who=event.actor_name,
            person=event.actor.startswith(_PERSON),
            trouble="critical" if _is_self_approval(event) else _TROUBLE.get(event.action, ""),
            words=_describe_event(event),
            detail=_event_details(event),
            action=event.action,
        )
        for event in events
    ]


def _is_self_approval(event: AuditEvent) -> bool:
    return event.action == "change.approved" and bool(_recorded_fields(event.after).get("self_approval"))


def _describe_event(event: AuditEvent) -> str:
    if _is_self_approval(event):
        return "approved it despite having written, edited or refreshed it"
    if words := _SAID.get(event.action):
        return words
    before, after = _recorded_fields(event.before), _recorded_fields(event.after)
    match event.action:
        case "change.throttle_changed":
            return _throttle_words(before.get("throttle"), after.get("throttle"))
        case "change.parallel_changed":
            return _parallel_words(before, after)
        case "change.ordered":
            return _order_words(after)
        case other:
            return other.partition(".")[2].replace("_", " ")


def _throttle_words(before: object, after: object) -> str:
    """Return a text such as "raised the throttle 40 → 60 MB/s"."""
    if not isinstance(before, int) or not isinstance(after, int):
        return "changed the throttle"
    verb = "raised" if after > before else "lowered"
    return f"{verb} the throttle {before / _MB:g} → {after / _MB:g} MB/s"


def _parallel_words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    words = {"per_broker": "per broker", "per_cluster": "in the cluster"}
    changes = [
        f"{before.get(name)} → {after.get(name)} {text}"
        for name, text in words.items()
        if before.get(name) != after.get(name)
    ]
    return f"changed the concurrent moves: {', '.join(changes)}"


def _order_words(after: Mapping[str, Any]) -> str:
    of = after.get("entity") or f"{after.get('topic')}-{after.get('partition')}"
    words = {
        "cancel_row": f"cancelled {of}",
        "again": f"resubmitted {of}",
        "give_up": f"gave up {of}",
        "elect": f"requested preferred leader election for {of}",
        "set_throttle": f"requested the kafkadash throttle on {of} again",
        "leave_throttle": f"kept the throttle set by others on {of}",
    }
    return words.get(str(after.get("order_type")), f"requested an action on {of}")


def _recorded_fields(fields: object) -> Mapping[str, Any]:
    return fields if isinstance(fields, dict) else {}


def newest_entries(change: ChangeRequest, most: int) -> tuple[list[TrailEntry], int]:
    """The last events of a request, the newest first, and how many there are. Two queries."""
    events = AuditEvent.objects.filter(object_type=OBJECT, object_id=str(change.pk))
    return build_entries(events.order_by("-at", "-id")[:most]), events.count()


def _event_details(event: AuditEvent) -> list[CodedMessage | str]:
    digest = _recorded_fields(event.after).get("digest") if event.action in _OF_CONTENT else None
    shown: list[CodedMessage | str] = (
        [f"digest {digest[:_SHOWN_DIGITS]}…"] if isinstance(digest, str) and digest else []
    )
    return [*([event.why] if event.why else []), *shown]
