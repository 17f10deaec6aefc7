"""What every page shows besides its own content: who is signed in, with which role, and the server's clock."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from kafkadash.accounts.models import User

# Most powerful first: a person with several roles is called by the first of them.
_ROLE_ORDER = ("admin", "operator", "approver", "auditor", "viewer")


def page(request: HttpRequest) -> dict[str, Any]:
    """``role_text`` is asked for only when a page shows it."""
    return {"server_time": timezone.now(), "role_text": SimpleLazyObject(lambda: role_text(request))}


def role_text(request: HttpRequest) -> str:
    """The role of whoever is signed in: on the cluster of this page, else the highest on any cluster."""
    user = request.user
    if not isinstance(user, User):
        return ""
    if user.is_superuser:
        return "administrator"
    roles = user.cluster_roles.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))
    match = request.resolver_match
    slug = match.kwargs.get("slug") if match else None
    if slug:
        roles = roles.filter(Q(cluster__isnull=True) | Q(cluster__slug=slug))
    held = set(roles.values_list("role", flat=True))
    return next((role for role in _ROLE_ORDER if role in held), "no role")
