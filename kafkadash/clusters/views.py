"""Settings pages of clusters: registration, connection, removal, and roles on one cluster or on all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from django.contrib import messages
from django.db.models import BooleanField, ExpressionWrapper, Q
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from kafkadash.accounts.errors import form_error
from kafkadash.accounts.models import User
from kafkadash.clusters.access import (
    ACKNOWLEDGE,
    ALLOWS,
    APPROVE,
    CANCEL,
    COMMENT,
    DECLINE,
    GIVE_UP,
    LOOSEN,
    MANAGE,
    PROPOSE,
    START,
    VIEW,
    VIEW_AUDIT,
    cluster_for,
    clusters_allowing,
    is_allowed,
    needs,
)
from kafkadash.clusters.contact import ClusterContact, judge_contact
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.forms import ConnectionForm, RegisterForm, RemoveForm, RoleForm
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.clusters.removal import list_belongings, remove_cluster, stays_in_kafka
from kafkadash.clusters.secrets import SecretError
from kafkadash.clusters.services import (
    ClusterRefused,
    give_role,
    register_cluster,
    remove_role,
    set_enabled,
    set_read_only,
    update_connection,
)
from kafkadash.core.messages import choose_plural, message_text
from kafkadash.core.middleware import post_only


@require_safe
@needs(MANAGE, anywhere=True)
def overview(request: HttpRequest) -> HttpResponse:
    """The clusters that this person administers, by name."""
    now = timezone.now()
    clusters = list(clusters_allowing(request.user, MANAGE).prefetch_related("collector_runs"))
    rows = [{"cluster": c, "contact": judge_contact(c, c.collector_runs.all(), now)} for c in clusters]
    silent = sum(row["contact"].state not in ("ok", "maintenance") for row in rows)  # type: ignore[attr-defined]
    context = {
        "section": "settings",
        "now": now,
        "rows": rows,
        "title": _title(len(rows), silent),
        "everywhere": is_allowed(request.user, MANAGE, None),
    }
    return render(request, "clusters/settings.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def register(request: HttpRequest) -> HttpResponse:
    form = RegisterForm(request.POST or None) if request.method == "POST" else RegisterForm()
    if request.method == "POST" and form.is_valid():
        given = form.connection()
        try:
            cluster = register_cluster(
                _actor(request),
                form.cleaned_data["name"],
                given.pop("bootstrap_servers"),
                request=request,
                read_only=form.cleaned_data["read_only"],
                **given,
            )
        except ClusterRefused as refused:
            form.refuse(refused)
        except SecretError as error:
            form.add_error(None, form_error(error.message))
        else:
            messages.success(request, f"{cluster.name} registered. A worker connects within seconds.")
            return redirect("clusters:cluster", cluster.slug)
    return render(request, "clusters/register.html", {"section": "settings", "form": form})


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def cluster(request: HttpRequest, slug: str) -> HttpResponse:
    """How one cluster is reached, and how that goes."""
    own = cluster_for(request, slug, MANAGE)
    form = ConnectionForm(request.POST, cluster=own) if request.method == "POST" else ConnectionForm(cluster=own)
    if request.method == "POST" and form.is_valid() and _save_connection(request, own, form):
        return redirect("clusters:cluster", slug)
    return render(request, "clusters/cluster.html", {**_build_context(own), "tab": "connection", "form": form})


@post_only("clusters:cluster")
@needs(MANAGE)
def enabled(request: HttpRequest, slug: str) -> HttpResponse:
    """Switches collection off (``enabled=no``) or on (``enabled=yes``)."""
    own = cluster_for(request, slug, MANAGE)
    wanted = {"yes": True, "no": False}.get(request.POST.get("enabled", ""))
    if wanted is not None and set_enabled(_actor(request), own, wanted, request=request):
        done_text = "enabled. Collection starts within seconds." if wanted else "disabled. Collected data stays."
        messages.success(request, f"{own.name} {done_text}")
    return redirect("clusters:cluster", slug)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def remove(request: HttpRequest, slug: str) -> HttpResponse:
    own = cluster_for(request, slug, MANAGE)
    form = RemoveForm(request.POST) if request.method == "POST" else RemoveForm()
    if request.method == "POST" and form.is_valid():
        typed, reason = form.cleaned_data["typed_name"], form.cleaned_data["reason"]
        try:
            remove_cluster(_actor(request), own, typed_name=typed, reason=reason, request=request)
        except ClusterRefused as refused:
            form.refuse(refused)
        else:
            messages.success(request, f"{own.name} removed. Its data is being deleted.")
            return redirect("clusters:settings" if is_allowed(request.user, MANAGE, None) else "findings:board")
    context = {
        **_build_context(own),
        "tab": "remove",
        "form": form,
        "belongings": list_belongings(own),
        "in_kafka": stays_in_kafka(own),
    }
    return render(request, "clusters/remove.html", context)


def _save_connection(request: HttpRequest, own: Cluster, form: ConnectionForm) -> bool:
    try:
        changed = update_connection(_actor(request), own, request=request, **form.connection())
        flagged = set_read_only(_actor(request), own, form.cleaned_data["read_only"], request=request)
    except ClusterRefused as refused:
        form.refuse(refused)
        return False
    except SecretError as error:
        form.add_error(None, form_error(error.message))
        return False
    if changed.connection_version != own.connection_version:
        messages.success(request, "Saved. Collectors use the new settings within seconds.")
    else:
        messages.success(request, "Saved." if flagged else "No changes to save.")
    return True


class ConnectionContext(TypedDict):
    section: str
    now: datetime
    cluster: Cluster
    contact: ClusterContact


def _build_context(own: Cluster) -> ConnectionContext:
    now = timezone.now()
    return {
        "section": "settings",
        "now": now,
        "cluster": own,
        "contact": judge_contact(own, own.collector_runs.all(), now),
    }


def _title(clusters: int, silent: int) -> str:
    if not clusters:
        return "No clusters registered"
    registered = choose_plural("# cluster registered|# clusters registered", clusters)
    attention = choose_plural("# needs attention|# need attention", silent)
    return f"{registered}, {attention}" if silent else registered


def _actor(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # ``needs`` let nobody else in
    return request.user


# Names offered while somebody types; beyond that many nobody looks through a list.
MOST_NAMES = 200
_ROLES_THAT_WAIT = frozenset({Role.OPERATOR, Role.APPROVER, Role.ADMIN})
# All actions of the policy, as the page names them.
_MAY = {
    VIEW: "view clusters, reassignments and changes",
    ACKNOWLEDGE: "acknowledge findings",
    PROPOSE: "draft, submit, refresh and withdraw changes",
    START: "start, pause, resume and throttle runs",
    APPROVE: "approve changes by others",
    DECLINE: "decline changes",
    COMMENT: "comment on changes",
    CANCEL: "cancel runs",
    GIVE_UP: "give up cancelled runs on unreachable clusters",
    LOOSEN: "confirm less strict policies",
    MANAGE: "change settings, roles and the approval policy",
    VIEW_AUDIT: "read and export the audit log",
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
    return _render_roles(request, None, {"section": "settings", "tab": "roles"}, "clusters/roles_everywhere.html")


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def of_cluster(request: HttpRequest, slug: str) -> HttpResponse:
    own = cluster_for(request, slug, MANAGE)
    about = {
        "section": "settings",
        "tab": "roles",
        "cluster": own,
        "contact": judge_contact(own, own.collector_runs.all(), timezone.now()),
    }
    return _render_roles(request, own, about, "clusters/roles.html")


def _render_roles(request: HttpRequest, cluster: Cluster | None, about: dict[str, Any], template: str) -> HttpResponse:
    form, refusal = RoleForm(), ""
    if request.method == "POST" and request.POST.get("do") == "take":
        refusal = _take_role(request, cluster)
        if not refusal:
            return redirect(request.path)
    elif request.method == "POST":
        form = RoleForm(request.POST)
        if form.is_valid() and _give_role(request, cluster, form):
            return redirect(request.path)
    now = timezone.now()
    rows = _list_roles(cluster, now)
    context = {
        **about,
        "now": now,
        "form": form,
        "refusal": refusal,
        "rows": rows,
        "title": _roles_title(cluster, rows),
        "names": _names(cluster, rows),
        "roles": [(role, [words for action, words in _MAY.items() if action in ALLOWS[role]]) for role in Role],
    }
    return render(request, template, context)


def _give_role(request: HttpRequest, cluster: Cluster | None, form: RoleForm) -> bool:
    user, role, until = (form.cleaned_data[name] for name in ("user", "role", "expires_at"))
    try:
        give_role(_actor(request), user, role, cluster=cluster, expires_at=until, request=request)
    except ClusterRefused as refused:
        form.refuse(refused)
        return False
    ends = f" until {until:%Y-%m-%d %H:%M} UTC" if until else ""
    messages.success(request, f"{user.get_username()} has the role {role.label} on {_describe_scope(cluster)}{ends}.")
    return True


def _take_role(request: HttpRequest, cluster: Cluster | None) -> str:
    """Why the role stays, '' when it is gone."""
    user = User.objects.filter(username=request.POST.get("user", "").replace("\0", "")).first()
    role = request.POST.get("role", "")
    if user is None or role not in Role.values:
        return message_text(ClusterErrorCode.ROLE_NOT_LISTED)
    try:
        taken = remove_role(_actor(request), user, Role(role), cluster=cluster, request=request)
    except ClusterRefused as refused:
        return str(refused)
    if not taken:
        return message_text(ClusterErrorCode.ROLE_TAKEN_MEANWHILE, name=user.get_username(), role=Role(role).label)
    messages.success(request, f"Revoked {Role(role).label} on {_describe_scope(cluster)} from {user.get_username()}.")
    return ""


def _list_roles(cluster: Cluster | None, now: datetime) -> list[RoleRow]:
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


def _roles_title(cluster: Cluster | None, rows: list[RoleRow]) -> str:
    people = len({row.user.pk for row in rows if not row.ended and row.user.is_active})
    where = cluster.name if cluster else "All clusters"
    return f"{where}: {choose_plural('# user with a role|# users with a role', people)}"


def _describe_scope(cluster: Cluster | None) -> str:
    return cluster.name if cluster else "all clusters"
