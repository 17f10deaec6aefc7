"""Settings: which clusters are registered, how each is reached, and taking one out again."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from kafkadash.accounts.models import User
from kafkadash.clusters.access import MANAGE, allowed, cluster_for, clusters_allowing, needs
from kafkadash.clusters.contact import contact
from kafkadash.clusters.forms import ConnectionForm, RegisterForm, RemoveForm
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.removal import belongings, remove_cluster, stays_in_kafka
from kafkadash.clusters.secrets import SecretError
from kafkadash.clusters.services import (
    Refused,
    register_cluster,
    set_enabled,
    set_read_only,
    update_connection,
)
from kafkadash.domain.wording import count
from kafkadash.post_only import post_only


@require_safe
@needs(MANAGE, anywhere=True)
def overview(request: HttpRequest) -> HttpResponse:
    """The clusters that this person administers, by name."""
    now = timezone.now()
    clusters = list(clusters_allowing(request.user, MANAGE).prefetch_related("collector_runs"))
    rows = [{"cluster": c, "contact": contact(c, c.collector_runs.all(), now)} for c in clusters]
    silent = sum(row["contact"].state not in ("ok", "maintenance") for row in rows)  # type: ignore[attr-defined]
    context = {
        "section": "settings",
        "now": now,
        "rows": rows,
        "title": _title(len(rows), silent),
        "everywhere": allowed(request.user, MANAGE, None),
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
        except Refused as refused:
            form.refuse(refused)
        except SecretError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"{cluster.name} is registered. A worker looks at it within seconds.")
            return redirect("clusters:cluster", cluster.slug)
    return render(request, "clusters/register.html", {"section": "settings", "form": form})


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def cluster(request: HttpRequest, slug: str) -> HttpResponse:
    """How one cluster is reached, and how that goes."""
    own = cluster_for(request, slug, MANAGE)
    form = ConnectionForm(request.POST, cluster=own) if request.method == "POST" else ConnectionForm(cluster=own)
    if request.method == "POST" and form.is_valid() and _saved(request, own, form):
        return redirect("clusters:cluster", slug)
    return render(request, "clusters/cluster.html", {**_about(own), "tab": "connection", "form": form})


@post_only("clusters:cluster")
@needs(MANAGE)
def enabled(request: HttpRequest, slug: str) -> HttpResponse:
    """Switches collection off (``enabled=no``) or on (``enabled=yes``)."""
    own = cluster_for(request, slug, MANAGE)
    wanted = {"yes": True, "no": False}.get(request.POST.get("enabled", ""))
    if wanted is not None and set_enabled(_actor(request), own, wanted, request=request):
        said = "is looked at again" if wanted else "is disabled: nothing is collected, what was collected stays"
        messages.success(request, f"{own.name} {said}.")
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
        except Refused as refused:
            form.refuse(refused)
        else:
            messages.success(request, f"{own.name} is removed. What was collected from it is being deleted.")
            return redirect("clusters:settings" if allowed(request.user, MANAGE, None) else "oncall:board")
    context = {
        **_about(own),
        "tab": "remove",
        "form": form,
        "belongings": belongings(own),
        "in_kafka": stays_in_kafka(own),
    }
    return render(request, "clusters/remove.html", context)


def _saved(request: HttpRequest, own: Cluster, form: ConnectionForm) -> bool:
    try:
        changed = update_connection(_actor(request), own, request=request, **form.connection())
        flagged = set_read_only(_actor(request), own, form.cleaned_data["read_only"], request=request)
    except Refused as refused:
        form.refuse(refused)
        return False
    except SecretError as error:
        form.add_error(None, str(error))
        return False
    if changed.connection_version != own.connection_version:
        messages.success(request, "Saved. The collectors use the new settings from their next turn on, within seconds.")
    else:
        messages.success(request, "Saved." if flagged else "Nothing was changed, so nothing was saved.")
    return True


def _about(own: Cluster) -> dict[str, Any]:
    now = timezone.now()
    return {
        "section": "settings",
        "now": now,
        "cluster": own,
        "contact": contact(own, own.collector_runs.all(), now),
    }


def _title(clusters: int, silent: int) -> str:
    if not clusters:
        return "No cluster is registered yet."
    registered = f"{count(clusters, 'cluster')} {'is' if clusters == 1 else 'are'} registered"
    if not silent:
        return f"{registered}."
    return f"{registered}, {'it' if clusters == 1 else f'{silent} of them'} need{'s' * (silent == 1)} a look."


def _actor(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # ``needs`` let nobody else in
    return request.user
