"""Pages on which changes of configs are proposed: of one topic, one broker, and the default of all brokers."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.errors import MissingObject
from kafkadash.changes.errors import ChangeRefused
from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.configs.edits import TypedEdits, list_lines, read_edits
from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.configs.kind import KIND
from kafkadash.configs.stored import ConfigKey, ConfigOwner, OwnerKind, load_keys, load_owners
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.monitoring.cluster_bar import render_with_bar
from kafkadash.monitoring.models import CollectorKind
from kafkadash.monitoring.topics import find_topic
from kafkadash.short_runs.pages import ItemProposal, create_item_draft
from kafkadash.topic_rules.models import load_rules

TABS = {OwnerKind.TOPIC: "topics", OwnerKind.BROKER: "brokers", OwnerKind.DEFAULT: "brokers"}


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def topic(request: HttpRequest, slug: str, topic: str) -> HttpResponse:
    """Show the configs of a topic as a form; POST plans what was changed in it as a draft."""
    cluster = cluster_for(request, slug, PROPOSE)
    row = find_topic(cluster, topic)
    owner = ConfigOwner(OwnerKind.TOPIC, row.topic_id, row.name, row.config, row.replication_factor)
    return _edit(request, cluster, owner)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def broker(request: HttpRequest, slug: str, broker_id: int) -> HttpResponse:
    """Show the configs of a broker as a form; POST plans what was changed in it as a draft."""
    cluster = cluster_for(request, slug, PROPOSE)
    owner = load_owners(cluster, OwnerKind.BROKER, [str(broker_id)]).get(str(broker_id))
    if owner is None:
        raise MissingObject(ConfigErrorCode.OWNER_UNKNOWN, cluster=cluster.name)
    return _edit(request, cluster, owner)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def default(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the dynamic default of all brokers as a form; POST plans what was changed in it as a draft."""
    cluster = cluster_for(request, slug, PROPOSE)
    [owner] = load_owners(cluster, OwnerKind.DEFAULT, [""]).values()
    return _edit(request, cluster, owner)


def _edit(request: HttpRequest, cluster: Cluster, owner: ConfigOwner) -> HttpResponse:
    keys = load_keys(cluster, owner.kind)
    if request.method != "POST":
        return _show_form(request, cluster, owner, keys)
    if owner.config is None:
        return _show_form(request, cluster, owner, keys, status=HTTPStatus.CONFLICT)
    read = read_edits(owner, keys, request.POST.dict(), load_rules(cluster))
    if read.wrong:
        return _show_form(request, cluster, owner, keys, read, status=HTTPStatus.BAD_REQUEST)
    if not read.edits:
        refused = coded(ConfigErrorCode.NOTHING_CHANGED)
        return _show_form(request, cluster, owner, keys, read, refused, HTTPStatus.BAD_REQUEST)
    title = f"Configs of {owner.subject}"
    if len(read.edits) == 1:
        title = f"{read.edits[0]['key']} of {owner.subject}"
    try:
        draft = create_item_draft(request, cluster, ItemProposal(KIND, {"edits": read.edits}, title))
    except ChangeRefused as error:
        return _show_form(request, cluster, owner, keys, read, error.message, HTTPStatus.CONFLICT)
    return redirect("short_runs:draft", draft.pk)


def _show_form(
    request: HttpRequest,
    cluster: Cluster,
    owner: ConfigOwner,
    keys: Mapping[str, ConfigKey],
    read: TypedEdits | None = None,
    refused: CodedMessage | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    typed, wrong = (read.typed, read.wrong) if read else ({}, {})
    lines = [] if owner.config is None else list_lines(owner, keys, typed, wrong, load_rules(cluster))
    told = {
        "tab": TABS[owner.kind],
        "owner": owner,
        "back_url": _back_url(cluster, owner),
        "lines": [line for line in lines if line.lock is None],
        "locked": [line for line in lines if line.lock is not None],
        "not_read": None if lines else coded(ConfigErrorCode.NOT_READ, owner=owner.subject),
        "wrong": wrong,
        "refused": refused,
    }
    return render_with_bar(request, cluster, CollectorKind.CONFIGS, "configs/edit.html", told, status)


def _back_url(cluster: Cluster, owner: ConfigOwner) -> str:
    if owner.kind is OwnerKind.TOPIC:
        return reverse("monitoring:topic", args=[cluster.slug, owner.name])
    if owner.kind is OwnerKind.BROKER:
        return reverse("monitoring:broker", args=[cluster.slug, owner.name])
    return reverse("monitoring:brokers", args=[cluster.slug])
