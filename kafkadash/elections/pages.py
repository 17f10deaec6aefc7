"""The pages that propose elections: of preferred leaders of a scope or of chosen partitions, and unclean ones."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.errors import MissingObject
from kafkadash.changes.errors import ChangeRefused
from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.elections.errors import ElectionErrorCode
from kafkadash.elections.kind import KIND
from kafkadash.elections.selection import Selection, entitle_selection, read_selection
from kafkadash.elections.unclean import KIND as UNCLEAN
from kafkadash.monitoring.cluster_bar import render_with_bar
from kafkadash.monitoring.models import BrokerState, CollectorKind, TopicState
from kafkadash.short_runs.pages import ItemProposal, create_item_draft, show_proposal


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def propose(request: HttpRequest, slug: str) -> HttpResponse:
    """``?broker=3`` or ``?topic=orders&partition=0`` narrows it; without either it is about the whole cluster.

    ``chosen`` says that partitions were to be ticked: where none is, they are asked for.
    """
    cluster = cluster_for(request, slug, PROPOSE)
    if "chosen" in request.GET and not request.GET.getlist("partition"):
        return _show_choice(request, cluster, coded(ElectionErrorCode.PARTITIONS_MISSING), HTTPStatus.BAD_REQUEST)
    return show_proposal(request, cluster, _read_scope(request, cluster))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def choose(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for partitions; POST plans their elections as a draft, whose page takes the reason."""
    cluster = cluster_for(request, slug, PROPOSE)
    if request.method != "POST":
        return _show_choice(request, cluster)
    chosen = read_selection(cluster, request.POST.get("partitions", ""))
    if isinstance(chosen, CodedMessage):
        return _show_choice(request, cluster, chosen, HTTPStatus.BAD_REQUEST)
    try:
        draft = create_item_draft(request, cluster, _propose_selection(chosen))
    except ChangeRefused as refused:
        return _show_choice(request, cluster, refused.message, HTTPStatus.CONFLICT)
    return redirect("short_runs:draft", draft.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def propose_unclean(request: HttpRequest, slug: str) -> HttpResponse:
    """Elections of partitions without a leader; ``?topic=orders`` narrows them to one topic."""
    cluster = cluster_for(request, slug, PROPOSE)
    topic = _read_topic(request, cluster)
    wanted = {"topic": topic} if topic else {}
    title = f"Unclean election of {topic}" if topic else "Unclean election of offline partitions"
    return show_proposal(request, cluster, ItemProposal(UNCLEAN, wanted, title))


def _read_scope(request: HttpRequest, cluster: Cluster) -> ItemProposal:
    """Raises MissingObject for a broker, topic or partition that the cluster does not have."""
    broker = request.GET.get("broker", "").replace("\0", "")
    if broker:
        number = int(broker) if broker.isascii() and broker.isdigit() and len(broker) < 10 else -1
        if not BrokerState.objects.filter(cluster=cluster, broker_id=number).exists():
            raise MissingObject(ElectionErrorCode.SCOPE_UNKNOWN, cluster=cluster.name)
        return ItemProposal(KIND, {"broker": number}, f"Elect preferred leaders on broker {number}")
    topic = _read_topic(request, cluster)
    if not topic:
        return ItemProposal(KIND, {}, "Elect preferred leaders")
    numbers = request.GET.getlist("partition")
    if not numbers:
        return ItemProposal(KIND, {"topic": topic}, f"Elect preferred leaders of {topic}")
    chosen = read_selection(cluster, " ".join(f"{topic}-{number}" for number in numbers))
    if isinstance(chosen, CodedMessage):
        raise MissingObject(chosen)
    return _propose_selection(chosen)


def _read_topic(request: HttpRequest, cluster: Cluster) -> str:
    """Return the topic of the address, '' where it names none. Raises MissingObject for an unknown one."""
    topic = request.GET.get("topic", "").replace("\0", "")
    if topic and not TopicState.objects.filter(cluster=cluster, name=topic).exists():
        raise MissingObject(ElectionErrorCode.SCOPE_UNKNOWN, cluster=cluster.name)
    return topic


def _propose_selection(chosen: Selection) -> ItemProposal:
    wanted: Mapping[str, Any] = {"selection": chosen}
    return ItemProposal(KIND, wanted, entitle_selection(chosen))


def _show_choice(
    request: HttpRequest, cluster: Cluster, wrong: CodedMessage | None = None, status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    partitions = request.POST.get("partitions", "").replace("\0", "")
    told = {"tab": "brokers", "partitions": partitions, "wrong": wrong}
    return render_with_bar(request, cluster, CollectorKind.METADATA, "elections/choose.html", told, status)
