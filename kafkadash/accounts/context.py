"""Context of every page besides its own content: who is signed in, with which role, and the server's clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from kafkadash.accounts.models import User

# A role, and the slug of the cluster it was given on; None for all clusters.
Held = tuple[str, str | None]

# Most powerful first: a person with several roles is called by the first of them.
_ROLE_ORDER = ("admin", "operator", "approver", "auditor", "viewer")


def page(request: HttpRequest) -> dict[str, Any]:
    """All about roles is asked for only when a page shows it, and then with one query."""
    roles: Any = SimpleLazyObject(lambda: _roles(request))
    return {
        "server_time": timezone.now(),
        "role_text": SimpleLazyObject(lambda: role_text(request, roles)),
        "manages": SimpleLazyObject(lambda: may_manage(request, roles)),
        "audits": SimpleLazyObject(lambda: may_audit(request, roles)),
        "views": SimpleLazyObject(lambda: may_view(request, roles)),
    }


def role_text(request: HttpRequest, roles: Iterable[Held]) -> str:
    """The role of whoever is signed in: on the cluster of this page, else the highest on any cluster."""
    user = request.user
    if not isinstance(user, User):
        return ""
    if user.is_superuser:
        return "administrator"
    match = request.resolver_match
    slug = request.__dict__.get("cluster_slug") or (match.kwargs.get("slug") if match else None)
    held = {role for role, on in roles if not slug or on in (None, slug)}
    return next((role for role in _ROLE_ORDER if role in held), "no role")


def may_manage(request: HttpRequest, roles: Iterable[Held]) -> bool:
    """Return whether there is anything for this person under "Settings"."""
    user = request.user
    return isinstance(user, User) and (user.is_superuser or any(role == "admin" for role, _ in roles))


def may_audit(request: HttpRequest, roles: Iterable[Held]) -> bool:
    """Return whether this person may read the audit of some cluster."""
    user = request.user
    return isinstance(user, User) and (user.is_superuser or any(role in ("admin", "auditor") for role, _ in roles))


def may_view(request: HttpRequest, roles: Iterable[Held]) -> bool:
    """Return whether this person may view some cluster: every role may."""
    user = request.user
    return isinstance(user, User) and (user.is_superuser or any(True for _ in roles))


def _roles(request: HttpRequest) -> list[Held]:
    user = request.user
    if not isinstance(user, User) or user.is_superuser:
        return []
    current = user.cluster_roles.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))
    return list(current.values_list("role", "cluster__slug"))
