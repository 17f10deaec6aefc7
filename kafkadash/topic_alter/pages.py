"""The page that alters several aspects of topics."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.kinds import kind_of
from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.configs.stored import OwnerKind, load_keys
from kafkadash.core.messages import CodedMessage
from kafkadash.monitoring.cluster_bar import render_with_bar
from kafkadash.monitoring.models import CollectorKind
from kafkadash.planning.options import FIRST_RATE, format_megabytes
from kafkadash.topic_alter.alteration import create_steps
from kafkadash.topic_alter.forms import AlterForm
from kafkadash.topics.creation import load_brokers


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def alter(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the form; POST makes a draft of each step, of which the next page shows the plans."""
    cluster = cluster_for(request, slug, PROPOSE)
    brokers, keys = load_brokers(cluster), load_keys(cluster, OwnerKind.TOPIC)
    if request.method != "POST":
        initial = {"topics": request.GET.get("topics", "")[:500], "throttle": format_megabytes(FIRST_RATE)}
        form = AlterForm(initial=initial, cluster=cluster, brokers=brokers, keys=keys)
        return _show_form(request, cluster, form)
    form = AlterForm(request.POST, cluster=cluster, brokers=brokers, keys=keys)
    if not form.is_valid():
        return _show_form(request, cluster, form, status=HTTPStatus.BAD_REQUEST)
    assert isinstance(request.user, User), "a view of PROPOSE lets nobody else in"
    try:
        drafts = create_steps(cluster, request.user, form.alteration, request)
    except ChangeRefused as refused:
        return _show_form(request, cluster, form, refused.message, HTTPStatus.CONFLICT)
    if len(drafts) > 1:
        return redirect("changes:steps", drafts[0].pk)
    drafts[0].refresh_from_db()
    return redirect(kind_of(drafts[0].kind).edit_url(drafts[0]))


def _show_form(
    request: HttpRequest,
    cluster: Cluster,
    form: AlterForm,
    refused: CodedMessage | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    told = {"tab": "topics", "form": form, "refused": refused}
    return render_with_bar(request, cluster, CollectorKind.METADATA, "topic_alter/alter.html", told, status)
