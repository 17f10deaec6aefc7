"""The pages that propose new committed offsets of a consumer group, and the deletion of groups and of offsets."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.errors import MissingObject
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded
from kafkadash.group_changes import group_deletion, offset_deletion
from kafkadash.group_changes.errors import GroupErrorCode
from kafkadash.group_changes.forms import ResetForm
from kafkadash.group_changes.reset import KIND, ResetTarget
from kafkadash.group_changes.stored_groups import EMPTY, StoredGroup, load_groups, refuse_type
from kafkadash.monitoring.cluster_bar import render_with_bar
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.groups.names import key_of_slug, label_group
from kafkadash.monitoring.groups.pages import present_groups
from kafkadash.monitoring.models import CollectorKind
from kafkadash.short_runs.kinds import short_kind
from kafkadash.short_runs.pages import ItemProposal, create_item_draft, show_proposal
from kafkadash.short_runs.plans import plan_items

_SHOWN = 60
_LONGEST_PART = 255
_NAMES_SHOWN = 20


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def reset(request: HttpRequest, slug: str, group: str) -> HttpResponse:
    """Ask for scope and rule; with these in the address (``?to=latest``) show the proposal, which POST submits."""
    cluster = cluster_for(request, slug, PROPOSE)
    row = _find_group(cluster, group)
    bound = "to" in request.GET
    first = {"to": ResetTarget.EARLIEST.value, "topic": request.GET.get("topic", "")}
    form = ResetForm(request.GET if bound else None, initial=first, cluster=cluster, group=row)
    if bound and form.is_valid():
        return show_proposal(request, cluster, ItemProposal(KIND, form.cleaned_data, f"Reset offsets of {_name(row)}"))
    told = {"form": form, "partitions": len(row.commits), "state": row.state, "empty": row.state == EMPTY}
    told["streams"] = row.type == "Streams"
    status = HTTPStatus.BAD_REQUEST if bound or request.method == "POST" else HTTPStatus.OK
    return _show(request, cluster, "group_changes/reset.html", {**_about(row, group), **told}, status)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def delete(request: HttpRequest, slug: str, group: str) -> HttpResponse:
    """Show what the deletion of a group takes away; POST submits it once the name was typed."""
    cluster = cluster_for(request, slug, PROPOSE)
    row = _find_group(cluster, group)
    wanted = {"groups": [row.name]}
    return show_proposal(request, cluster, ItemProposal(group_deletion.KIND, wanted, f"Delete group {_name(row)}"))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def delete_several(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for a part of names; ``?q=test`` lists the empty groups that have it, and POST plans a draft of those.

    The draft keeps the names: groups that come later are not in it.
    """
    cluster = cluster_for(request, slug, PROPOSE)
    posted = request.method == "POST"
    typed = request.POST if posted else request.GET
    text = typed.get("q", "").replace("\0", "").strip()[:_LONGEST_PART]
    empty = present_groups(cluster).filter(state=EMPTY)
    named = empty.filter(name__icontains=text).order_by("name") if text else empty.none()
    names = list(named.values_list("name", flat=True)[: group_deletion.MOST_GROUPS + 1])
    wrong = refused = None
    if not text and (posted or "q" in typed):
        wrong = coded(GroupErrorCode.PATTERN_MISSING)
    elif len(names) > group_deletion.MOST_GROUPS:
        wrong = coded(GroupErrorCode.TOO_MANY, most=group_deletion.MOST_GROUPS)
    elif posted:
        try:
            return redirect("short_runs:draft", _draft_deletion(request, cluster, names).pk)
        except ChangeRefused as error:
            refused = error
    told = {
        "text": text,
        "wrong": wrong,
        "refused": refused,
        "empty_groups": empty.count(),
        "names": [label_group(name) for name in names[:_NAMES_SHOWN]],
        "total": len(names),
        "more": max(0, len(names) - _NAMES_SHOWN),
    }
    status = HTTPStatus.CONFLICT if refused else HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK
    return _show(request, cluster, "group_changes/delete_several.html", told, status)


def _draft_deletion(request: HttpRequest, cluster: Cluster, names: list[str]) -> ChangeRequest:
    """Raises ChangeRefused."""
    wanted = {"groups": names}
    made = plan_items(short_kind(group_deletion.KIND), cluster, wanted)
    proposal = ItemProposal(group_deletion.KIND, wanted, group_deletion.entitle_deletion(made.items))
    return create_item_draft(request, cluster, proposal, made=made)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def delete_offsets(request: HttpRequest, slug: str, group: str) -> HttpResponse:
    """Ask for a topic; with ``?topic=orders`` show the committed offsets that go, which POST submits."""
    cluster = cluster_for(request, slug, PROPOSE)
    row = _find_group(cluster, group)
    topics = sorted({partition.topic for partition in row.commits})
    topic = request.GET.get("topic", "")
    if topic in topics:
        wanted, title = {"group": row.name, "topic": topic}, f"Delete offsets of {topic} in {_name(row)}"
        return show_proposal(request, cluster, ItemProposal(offset_deletion.KIND, wanted, title))
    refused = bool(topic) or request.method == "POST"
    told = {"topics": topics, "wrong": coded(GroupErrorCode.TOPIC_UNKNOWN) if refused else None}
    status = HTTPStatus.BAD_REQUEST if refused else HTTPStatus.OK
    return _show(request, cluster, "group_changes/delete_offsets.html", {**_about(row, group), **told}, status)


def _find_group(cluster: Cluster, slug: str) -> StoredGroup:
    """Raises MissingObject for a group that Kafka does not list, as far as is known, or without committed offsets."""
    name = present_groups(cluster).filter(key=key_of_slug(slug)).values_list("name", flat=True).first()
    group = None if name is None else load_groups(cluster, [name]).get(name)
    if group is None:
        if refused := refuse_type(cluster, slug):
            raise MissingObject(refused)
        raise MissingObject(CollectionErrorCode.GROUP_NOT_SEEN, cluster=cluster.name, group=slug)
    return group


def _name(group: StoredGroup) -> str:
    """Return the name as titles have room for it."""
    name = label_group(group.name)
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"


def _about(group: StoredGroup, slug: str) -> dict[str, Any]:
    return {"name": _name(group), "group_slug": slug, "freshness": group.freshness}


def _show(
    request: HttpRequest, cluster: Cluster, template: str, told: dict[str, Any], status: HTTPStatus
) -> HttpResponse:
    return render_with_bar(request, cluster, CollectorKind.GROUPS, template, {"tab": "groups", **told}, status)
