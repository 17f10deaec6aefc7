"""A change request and the right to do something with it, together: by its number, for views."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase

from kafkadash.accounts.errors import ActionForbidden, MissingObject
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.access import (
    ACTIONS,
    LEADS_TO_CHANGES,
    VIEW,
    ActionPermission,
    View,
    is_allowed,
    roles_text,
    set_permission,
    visible_clusters,
)
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.core.errors import UserError
from kafkadash.core.messages import CodedMessage, coded

# Shows a refusal where the person was, with what he had typed: request, change, error.
Refusal = Callable[[HttpRequest, ChangeRequest, UserError], HttpResponseBase]


def request_for(request: HttpRequest, number: int, action: str = VIEW, *, read_only_too: bool = False) -> ChangeRequest:
    """The change request #``number`` with its cluster and policy, and the right to do ``action`` on that cluster.

    ``read_only_too``: also where the cluster is read-only, for what only ends a request. Raises MissingObject when
    there is none or this user may not view its cluster, and ActionForbidden when he may view it but not do this. Asked
    again for the same request and action it costs no query.
    """
    held: dict[tuple[int, str, bool], ChangeRequest] = request.__dict__.setdefault("_changes_allowed", {})
    key = number, action, read_only_too
    if key in held:
        return held[key]
    change = seen_change(request, number)
    if action != VIEW:
        refused = why_not(request, change, action, read_only_too=read_only_too)
        if refused:
            raise ActionForbidden(refused)
    held[key] = change
    return change


def seen_change(request: HttpRequest, number: int) -> ChangeRequest:
    """Raises MissingObject."""
    change = (
        ChangeRequest.objects.filter(pk=number, cluster__in=visible_clusters(request.user).order_by())
        .select_related("cluster", "cluster__policy", "artifact")
        .defer("artifact__data")
        .first()
    )
    if change is None:
        raise MissingObject(ChangeErrorCode.NO_SUCH_CHANGE, number=number)
    request.__dict__["cluster_slug"] = change.cluster.slug  # the page says which role one has on this cluster
    return change


def why_not(
    request: HttpRequest, change: ChangeRequest, action: str, *, read_only_too: bool = False
) -> CodedMessage | None:
    """Return why this user may not do this on the change's cluster, None where he may. For whoever may view it."""
    may = frozenset({action}) if is_allowed(request.user, action, change.cluster) else frozenset[str]()
    return why_not_with(may, change, action, read_only_too=read_only_too)


def why_not_with(
    may: frozenset[str], change: ChangeRequest, action: str, *, read_only_too: bool = False
) -> CodedMessage | None:
    """Return ``why_not`` of somebody who ``may`` do these (``clusters.access.actions_allowed``); no query."""
    if action not in may:
        return coded(ClusterErrorCode.NEEDS_ROLE, cluster=change.cluster.name, roles=roles_text(action))
    if change.cluster.read_only and action in LEADS_TO_CHANGES and not read_only_too:
        return coded(ClusterErrorCode.READ_ONLY, cluster=change.cluster.name)
    return None


def needs_on_change(
    action: str, *, refused: Refusal | None = None, read_only_too: bool = False
) -> Callable[[View], View]:
    """Declare and enforce: the view needs this action on the cluster of the change whose ``number`` is in its URL.

    ``read_only_too`` as for ``request_for``. With ``refused``, whoever may view the change but not do this gets what
    that returns, instead of an error page.

    Inside, ``request_for`` with the same action costs no further query.
    """
    if action not in ACTIONS:
        raise ValueError(f"No role allows {action!r}.")

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, number: int, **kwargs: Any) -> HttpResponseBase:
            try:
                request_for(request, number, action, read_only_too=read_only_too)
            except ActionForbidden as denied:
                if refused is None:
                    raise
                return refused(request, seen_change(request, number), denied)
            return view(request, *args, number=number, **kwargs)

        return set_permission(guarded, ActionPermission("needs", action, "number"))

    return decorate
