"""The authorization policy: permissions by role, and the decorators with which views declare and enforce them.

Every view carries ``@needs(action)``, ``@signed_in`` or ``@public``; a test walks all URLs and fails for a view without
one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, Literal

from django.contrib.auth.models import AnonymousUser
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponseBase

from kafkadash.accounts.errors import ActionForbidden, MissingObject
from kafkadash.accounts.models import User
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.core.messages import message_text

VIEW = "cluster.view"
MANAGE = "cluster.manage"
VIEW_AUDIT = "audit.view"
ACKNOWLEDGE = "finding.acknowledge"
PROPOSE = "change.propose"  # draft, edit, submit, withdraw, refresh
APPROVE = "change.approve"
DECLINE = "change.decline"
COMMENT = "change.comment"
START = "change.start"  # start, pause, resume, throttle, parallel moves, single rows
CANCEL = "change.cancel"  # a run
GIVE_UP = "change.give_up"  # a run that is being cancelled on a cluster that does not answer
LOOSEN = "policy.loosen"  # confirm what another administrator asked for

# The whole policy. A role that is given on all clusters holds on every cluster, also on those added later.
ALLOWS: Mapping[Role, frozenset[str]] = {
    Role.VIEWER: frozenset({VIEW}),
    Role.OPERATOR: frozenset({VIEW, ACKNOWLEDGE, PROPOSE, COMMENT, START, CANCEL}),
    Role.APPROVER: frozenset({VIEW, ACKNOWLEDGE, APPROVE, DECLINE, COMMENT, CANCEL}),
    Role.AUDITOR: frozenset({VIEW, VIEW_AUDIT}),
    Role.ADMIN: frozenset({VIEW, ACKNOWLEDGE, MANAGE, VIEW_AUDIT, COMMENT, GIVE_UP, LOOSEN}),
}
ACTIONS = frozenset[str]().union(*ALLOWS.values())

# Refused on a cluster that is registered read-only, whoever asks. What only ends, pauses or explains one is not.
LEADS_TO_CHANGES = frozenset({PROPOSE, APPROVE, START})

# Done only by a role that counts already (``ClusterRole.counts_from``).
_AFTER_WAITING = frozenset({APPROVE, START, LOOSEN})

View = Callable[..., HttpResponseBase]


@dataclass(frozen=True, slots=True)
class ActionPermission:
    """Permission that a view declared. ``cluster_kwarg`` is the URL's argument with the slug, or that names something
    of one cluster (the number of a change); empty: the whole installation.

    ``anywhere``: to be allowed on one cluster is enough, and the view shows only those clusters.
    """

    level: Literal["public", "signed_in", "needs"]
    action: str = ""
    cluster_kwarg: str = ""
    anywhere: bool = False


def is_allowed(user: User | AnonymousUser, action: str, cluster: Cluster | None) -> bool:
    """May this user do this on this cluster, or on the whole installation where ``cluster`` is None.

    Asks the database each time, so a long-lived holder of ``user`` learns of a role taken away or a closed account.
    Raises ValueError for an action that no role has: that is a typing mistake, not a refusal.
    """
    able = users_allowed(action, cluster)
    return user.is_authenticated and able.filter(pk=user.pk).exists()


def users_allowed(action: str, cluster: Cluster | None, *, not_given_by: Collection[int] = ()) -> QuerySet[User]:
    """Users that may do this on this cluster now, or on the whole installation where ``cluster`` is None.

    Roles that these users gave do not count. Raises ValueError for an action that no role has.
    """
    roles = _roles_that_allow(action)
    where = Q(cluster__isnull=True)
    if cluster is not None:
        where |= Q(cluster=cluster)
    grants = _filter_current(ClusterRole.objects.filter(where, user=OuterRef("pk"), role__in=roles), action)
    if not_given_by:
        grants = grants.filter(Q(given_by=None) | ~Q(given_by__in=not_given_by))
    return User.objects.filter(Q(is_superuser=True) | Exists(grants), is_active=True)


def allowed_anywhere(user: User | AnonymousUser, action: str) -> bool:
    """May this user do this on some cluster, or on the whole installation."""
    roles = _roles_that_allow(action)
    if not user.is_authenticated:
        return False
    grants = _filter_current(ClusterRole.objects.filter(user=OuterRef("pk"), role__in=roles), action)
    return User.objects.filter(Q(is_superuser=True) | Exists(grants), pk=user.pk, is_active=True).exists()


def actions_allowed(user: User | AnonymousUser, cluster: Cluster) -> frozenset[str]:
    """Everything that this user may do on this cluster, for a page that offers several things; one query.

    What a read-only cluster refuses is in it: pages say why it is refused.
    """
    if not user.is_authenticated:
        return frozenset()
    grants = _filter_current(
        ClusterRole.objects.filter(Q(cluster__isnull=True) | Q(cluster=cluster), user=OuterRef("pk"))
    )
    held = User.objects.filter(pk=user.pk, is_active=True).values_list(
        "is_superuser", ArraySubquery(grants.values("role")), ArraySubquery(_filter_counting(grants).values("role"))
    )
    superuser, roles, counting = held.first() or (False, [], [])
    if superuser:
        return ACTIONS
    at_once = frozenset[str]().union(*(ALLOWS[Role(role)] for role in roles)) - _AFTER_WAITING
    return at_once.union(*(ALLOWS[Role(role)] for role in counting))


def counts_from(user: User, action: str, cluster: Cluster) -> datetime | None:
    """When a role that this user has begins to count for this action; None where no role is waited for."""
    roles = _roles_that_allow(action)
    if action not in _AFTER_WAITING:
        return None
    own = ClusterRole.objects.filter(Q(cluster__isnull=True) | Q(cluster=cluster), user=user.pk, role__in=roles)
    waited_for = _filter_current(own).filter(counts_from__gt=Now())
    return waited_for.order_by("counts_from").values_list("counts_from", flat=True).first()


def visible_clusters(user: User | AnonymousUser) -> QuerySet[Cluster]:
    """The clusters on which this user may view, by name, those that are switched off included."""
    return clusters_allowing(user, VIEW)


def clusters_allowing(user: User | AnonymousUser, action: str) -> QuerySet[Cluster]:
    """The clusters on which this user may do this, by name."""
    if not user.is_authenticated:
        return Cluster.objects.none()
    roles = _roles_that_allow(action)
    grants = _filter_current(ClusterRole.objects.filter(user=user.pk, user__is_active=True, role__in=roles), action)
    everywhere = Exists(grants.filter(cluster__isnull=True))
    root = Exists(User.objects.filter(pk=user.pk, is_active=True, is_superuser=True))
    return Cluster.objects.filter(Exists(grants.filter(cluster=OuterRef("pk"))) | everywhere | root)


def cluster_for(request: HttpRequest, slug: str, action: str = VIEW) -> Cluster:
    """The cluster and the right to do ``action`` on it, together.

    Raises MissingObject when there is no such cluster or this user may not know of it, and PermissionDenied with a
    sentence when he may view it but not do this.
    """
    held: dict[tuple[str, str], Cluster] = request.__dict__.setdefault("_clusters_allowed", {})
    if (slug, action) in held:
        return held[slug, action]
    cluster = visible_clusters(request.user).filter(slug=slug).first()
    if cluster is None:
        raise MissingObject(ClusterErrorCode.NO_SUCH_CLUSTER, slug=repr(slug))
    if action != VIEW and not is_allowed(request.user, action, cluster):
        raise ActionForbidden(ClusterErrorCode.NEEDS_ROLE, cluster=cluster.name, roles=roles_text(action))
    if cluster.read_only and action in LEADS_TO_CHANGES:
        raise ActionForbidden(ClusterErrorCode.READ_ONLY, cluster=cluster.name)
    held[slug, action] = cluster
    return cluster


def needs(action: str, *, cluster: str = "slug", anywhere: bool = False) -> Callable[[View], View]:
    """Declare and enforce: the view needs this action on the cluster whose slug is in its URL argument ``cluster``.

    A URL without that argument needs the action on the whole installation, or with ``anywhere`` on some cluster at
    least: then the view itself keeps to the clusters that it is allowed on. Inside, ``cluster_for`` with the same
    action costs no further query.
    """
    _roles_that_allow(action)

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if cluster in kwargs:
                cluster_for(request, kwargs[cluster], action)
            elif anywhere:
                if not allowed_anywhere(request.user, action):
                    raise ActionForbidden(ClusterErrorCode.NEEDS_ROLE_SOMEWHERE, roles=roles_text(action))
            elif not is_allowed(request.user, action, None):
                raise ActionForbidden(ClusterErrorCode.NEEDS_ROLE_EVERYWHERE, roles=roles_text(action))
            return view(request, *args, **kwargs)

        return set_permission(guarded, ActionPermission("needs", action, cluster, anywhere))

    return decorate


def signed_in(view: View) -> View:
    """Declare: everybody who is signed in, with or without a role. LoginRequiredMiddleware enforces it."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return view(request, *args, **kwargs)

    return set_permission(guarded, ActionPermission("signed_in"))


def public(view: View) -> View:
    """Declare: anybody, also without signing in."""

    @wraps(view)
    def opened(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return view(request, *args, **kwargs)

    opened.login_required = False  # type: ignore[attr-defined]  # read by LoginRequiredMiddleware
    return set_permission(opened, ActionPermission("public"))


def get_permission(view: object) -> ActionPermission | None:
    """Return the permission that the view declared, or None."""
    permission = getattr(view, "permission", None)
    return permission if isinstance(permission, ActionPermission) else None


def set_permission(view: View, permission: ActionPermission) -> View:
    """For a decorator that enforces by itself what it declares, as ``needs`` does."""
    view.permission = permission  # type: ignore[attr-defined]
    return view


def _roles_that_allow(action: str) -> list[Role]:
    if action not in ACTIONS:
        raise ValueError(f"No role allows {action!r}; the actions are {', '.join(sorted(ACTIONS))}.")
    return [role for role, actions in ALLOWS.items() if action in actions]


def read_only_text(cluster: Cluster) -> str:
    """Why nothing is changed on a cluster that is registered read-only."""
    return message_text(ClusterErrorCode.READ_ONLY, cluster=cluster.name)


def roles_text(action: str) -> str:
    """The roles that allow the action, for a sentence: "operator, approver or admin"."""
    labels = [role.label for role in _roles_that_allow(action)]
    return " or ".join([", ".join(labels[:-1]), labels[-1]]) if len(labels) > 1 else labels[0]


def _filter_current(roles: QuerySet[ClusterRole], action: str = "") -> QuerySet[ClusterRole]:
    """Without those that have run out, or do not count yet for this action, by the database's clock."""
    current = roles.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))
    return _filter_counting(current) if action in _AFTER_WAITING else current


def _filter_counting(roles: QuerySet[ClusterRole]) -> QuerySet[ClusterRole]:
    return roles.filter(counts_from__lte=Now())
