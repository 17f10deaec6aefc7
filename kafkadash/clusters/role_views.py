"""Settings: who may do what, on one cluster or on all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.db.models import BooleanField, ExpressionWrapper, Q
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.models import User
from kafkadash.clusters.access import (
    ACKNOWLEDGE,
    ALLOWS,
    APPROVE,
    COMMENT,
    DECLINE,
    MANAGE,
    PROPOSE,
    VIEW,
    VIEW_AUDIT,
    cluster_for,
    needs,
)
from kafkadash.clusters.contact import contact
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.forms import RoleForm
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.clusters.services import Refused, give_role, remove_role
from kafkadash.domain.messages import message_text
from kafkadash.domain.wording import count

# Names offered while somebody types; beyond that many nobody looks through a list.
MOST_NAMES = 200
_ROLES_THAT_WAIT = frozenset({Role.OPERATOR, Role.APPROVER, Role.ADMIN})
# All actions of the policy, in the words of the page.
_MAY = {
    VIEW: "see clusters, their figures, moves and changes",
    ACKNOWLEDGE: "take findings",
    PROPOSE: "draft, submit, refresh and withdraw changes",
    APPROVE: "approve changes of others",
    DECLINE: "decline changes, with a reason",
    COMMENT: "comment on changes",
    MANAGE: "change settings, roles and the policy for changes",
    VIEW_AUDIT: "read and export the audit",
}


@dataclass(frozen=True, slots=True)
class RoleRow:
    """``role`` is None for an administrator of the whole installation, whose right no page takes away."""

    user: User
    role: Role | None
    everywhere: bool
    expires_at: datetime | None
    now: datetime
    counts_from: datetime | None = None
    counts: bool = True

    @property
    def waits(self) -> bool:
        """True while nothing is approved, started or confirmed by it."""
        return not self.counts and self.role in _ROLES_THAT_WAIT

    @property
    def ended(self) -> bool:
        return self.expires_at is not None and self.expires_at <= self.now


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def everywhere(request: HttpRequest) -> HttpResponse:
    """Roles that hold on every cluster, also on those registered later."""
    return _roles(request, None, {"section": "settings", "tab": "roles"}, "clusters/roles_everywhere.html")


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def of_cluster(request: HttpRequest, slug: str) -> HttpResponse:
    own = cluster_for(request, slug, MANAGE)
    about = {
        "section": "settings",
        "tab": "roles",
        "cluster": own,
        "contact": contact(own, own.collector_runs.all(), timezone.now()),
    }
    return _roles(request, own, about, "clusters/roles.html")


def _roles(request: HttpRequest, cluster: Cluster | None, about: dict[str, Any], template: str) -> HttpResponse:
    form, refusal = RoleForm(), ""
    if request.method == "POST" and request.POST.get("do") == "take":
        refusal = _take(request, cluster)
        if not refusal:
            return redirect(request.path)
    elif request.method == "POST":
        form = RoleForm(request.POST)
        if form.is_valid() and _given(request, cluster, form):
            return redirect(request.path)
    now = timezone.now()
    rows = _rows(cluster, now)
    context = {
        **about,
        "now": now,
        "form": form,
        "refusal": refusal,
        "rows": rows,
        "title": _title(cluster, rows),
        "names": _names(cluster, rows),
        "roles": [(role, [words for action, words in _MAY.items() if action in ALLOWS[role]]) for role in Role],
    }
    return render(request, template, context)


def _given(request: HttpRequest, cluster: Cluster | None, form: RoleForm) -> bool:
    user, role, until = (form.cleaned_data[name] for name in ("user", "role", "expires_at"))
    try:
        give_role(_actor(request), user, role, cluster=cluster, expires_at=until, request=request)
    except Refused as refused:
        form.refuse(refused)
        return False
    ends = f" until {until:%Y-%m-%d %H:%M} UTC" if until else ""
    messages.success(request, f"{user.get_username()} is {role.label} on {_where(cluster)}{ends}.")
    return True


def _take(request: HttpRequest, cluster: Cluster | None) -> str:
    """Why the role stays, '' when it is gone."""
    user = User.objects.filter(username=request.POST.get("user", "").replace("\0", "")).first()
    role = request.POST.get("role", "")
    if user is None or role not in Role.values:
        return message_text(ClusterErrorCode.ROLE_NOT_LISTED)
    try:
        taken = remove_role(_actor(request), user, Role(role), cluster=cluster, request=request)
    except Refused as refused:
        return str(refused)
    if not taken:
        return message_text(ClusterErrorCode.ROLE_TAKEN_MEANWHILE, name=user.get_username(), role=Role(role).label)
    messages.success(request, f"{user.get_username()} is no longer {Role(role).label} on {_where(cluster)}.")
    return ""


def _rows(cluster: Cluster | None, now: datetime) -> list[RoleRow]:
    where = Q(cluster=None) if cluster is None else Q(cluster=None) | Q(cluster=cluster)
    held = ClusterRole.objects.filter(where).select_related("user").order_by("user__username", "role")
    rows = [
        RoleRow(r.user, Role(r.role), r.cluster_id is None, r.expires_at, now, r.counts_from, r.counts)
        for r in held.annotate(counts=ExpressionWrapper(Q(counts_from__lte=Now()), BooleanField()))
    ]
    roots = User.objects.filter(is_superuser=True).order_by("username")
    rows += [RoleRow(user, role=None, everywhere=True, expires_at=None, now=now) for user in roots]
    return sorted(rows, key=lambda row: (row.everywhere and cluster is not None, row.user.username))


def _names(cluster: Cluster | None, rows: list[RoleRow]) -> list[str]:
    """Return names to offer while somebody types: an administrator of one cluster learns of nobody else's people."""
    if cluster is not None:
        return sorted({row.user.username for row in rows if row.user.is_active})
    accounts = User.objects.filter(is_active=True).order_by("username")
    return list(accounts.values_list("username", flat=True)[:MOST_NAMES])


def _title(cluster: Cluster | None, rows: list[RoleRow]) -> str:
    people = len({row.user.pk for row in rows if not row.ended and row.user.is_active})
    verb = "has" if people == 1 else "have"
    if cluster is None:
        return f"{count(people, 'person', 'people')} {verb} a role on all clusters."
    return f"{count(people, 'person', 'people')} {verb} a role on {cluster.name}."


def _where(cluster: Cluster | None) -> str:
    return cluster.name if cluster else "all clusters"


def _actor(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # ``needs`` let nobody else in
    return request.user
