"""Writing the audit. Call ``record`` inside the transaction of what it speaks of: both happen or neither does."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from django.db import models
from django.http import HttpRequest

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.logs import hide_values, without_secrets

# One event must stay readable; what is longer belongs elsewhere, with a digest here.
LONGEST_REASON = 2_000


def record(
    actor: User | str,
    action: str,
    obj: models.Model | tuple[str, str],
    *,
    cluster: str = "",
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    request: HttpRequest | None = None,
) -> AuditEvent:
    """One event.

    ``actor`` is a user, or the name of the part of kafkadash that acted ("jobs", "command line"). ``action`` is
    "entity.verb". ``obj`` is a saved row, or (type, id). ``cluster`` is a slug. ``before`` and ``after`` hold only what
    changed; values under keys that look secret are replaced by a mark, so that no caller can store a password here.
    """
    object_type, object_id = obj if isinstance(obj, tuple) else (obj._meta.model_name or "", str(obj.pk))
    return AuditEvent.objects.create(
        actor=f"user:{actor.pk}" if isinstance(actor, User) else str(actor),
        actor_name=actor.get_username() if isinstance(actor, User) else str(actor),
        action=action,
        object_type=object_type,
        object_id=object_id,
        cluster=cluster,
        reason=without_secrets(reason)[:LONGEST_REASON],
        before=hide_values(before) if before is not None else None,
        after=hide_values(after) if after is not None else None,
        address=_address(request) if request is not None else None,
    )


def _address(request: HttpRequest) -> str | None:
    """Return the address that the server or a trusted proxy saw; None where that is no address."""
    try:
        return str(ip_address(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        return None
