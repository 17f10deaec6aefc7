"""What every page shows of change requests: how many wait for whoever is signed in."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from kafkadash.changes.queries import waiting_count


def page(request: HttpRequest) -> dict[str, Any]:
    """``waiting_for_me`` costs one query, and only on a page that shows it."""
    return {"waiting_for_me": SimpleLazyObject(lambda: waiting_for_me(request))}


def waiting_for_me(request: HttpRequest) -> int:
    """Asked once for a request, however often it is shown."""
    held: dict[str, int] = request.__dict__
    if "_waiting_for_me" not in held:
        held["_waiting_for_me"] = waiting_count(request.user)
    return held["_waiting_for_me"]
