"""The pages that propose new topics, more partitions of a topic, and its deletion."""

from __future__ import annotations

import random
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.errors import MissingObject
from kafkadash.changes.errors import ChangeRefused
from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import read_whole_number
from kafkadash.core.messages import choose_plural, coded
from kafkadash.monitoring.canary.rules import TOPIC
from kafkadash.monitoring.cluster_bar import render_with_bar
from kafkadash.monitoring.models import CollectorKind, TopicState
from kafkadash.monitoring.topics import find_topic
from kafkadash.planning.topic_form import TopicChoiceForm
from kafkadash.short_runs.pages import ItemProposal, create_item_draft, show_proposal
from kafkadash.topics.creation import KIND, PlacementBrokers, describe_brokers, load_brokers, plan_canary
from kafkadash.topics.deletion import KIND as DELETION
from kafkadash.topics.errors import TopicErrorCode
from kafkadash.topics.forms import KIP_36, TYPED, TopicsForm
from kafkadash.topics.growth import KIND as GROWTH
from kafkadash.topics.growth import plan_canary_growth
from kafkadash.topics.placement import MOST_PARTITIONS

USUAL_FACTOR = 3


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def create(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the form; POST plans the topics as a draft, whose page shows the assignment and takes the reason."""
    cluster = cluster_for(request, slug, PROPOSE)
    brokers = load_brokers(cluster)
    if request.method != "POST":
        return _show_form(
            request, cluster, brokers, TopicsForm(initial=_draw(brokers), cluster=cluster, brokers=brokers)
        )
    form = TopicsForm(request.POST, cluster=cluster, brokers=brokers)
    if not form.is_valid():
        return _show_form(request, cluster, brokers, form, status=HTTPStatus.BAD_REQUEST)
    wanted = form.cleaned_data
    names = wanted["names"]
    title = f"Create topic {names[0]}" if len(names) == 1 else f"Create {choose_plural('# topic|# topics', len(names))}"
    try:
        draft = create_item_draft(request, cluster, ItemProposal(KIND, wanted, title))
    except ChangeRefused as refused:
        return _show_form(request, cluster, brokers, form, refused, HTTPStatus.CONFLICT)
    return redirect("short_runs:draft", draft.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def propose_canary(request: HttpRequest, slug: str) -> HttpResponse:
    """Propose the topic of the canary: a partition for each broker, which leads it, rack-aware as KIP-36 places.

    With ``?more=1``, propose partitions for the brokers that have none, such as one that joined since.
    """
    cluster = cluster_for(request, slug, PROPOSE)
    if "more" in request.GET:
        growth = plan_canary_growth(cluster)
        if growth is None:
            return redirect("monitoring:canary", slug)
        return show_proposal(request, cluster, ItemProposal(GROWTH, growth, f"Add partitions to {TOPIC}"))
    return show_proposal(request, cluster, ItemProposal(KIND, plan_canary(cluster), f"Create topic {TOPIC}"))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def grow(request: HttpRequest, slug: str, topic: str) -> HttpResponse:
    """Ask for a number of partitions; with ``?count=12`` show the proposal, which POST submits."""
    cluster = cluster_for(request, slug, PROPOSE)
    row, typed = find_topic(cluster, topic, internal=False), request.GET.get("count", "")
    count, least = read_whole_number(typed), row.partition_count + 1
    most = row.partition_count + MOST_PARTITIONS
    if count is not None and least <= count <= most:
        wanted = {"topic": topic, "count": count}
        return show_proposal(request, cluster, ItemProposal(GROWTH, wanted, f"Add partitions to {topic}"))
    limits = {"least": least, "most": most, "partitions": row.partition_count}
    wrong = coded(TopicErrorCode.COUNT_WRONG, **limits) if "count" in request.GET or request.method == "POST" else None
    told = {"tab": "topics", "topic": row, "count": typed or str(least), "wrong": wrong}
    status = HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK
    return render_with_bar(request, cluster, CollectorKind.METADATA, "topics/grow.html", told, status)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def delete(request: HttpRequest, slug: str, topic: str) -> HttpResponse:
    """Show what a deletion takes away and who reads it; POST submits it once the name was typed."""
    cluster = cluster_for(request, slug, PROPOSE)
    row = TopicState.objects.filter(cluster=cluster, name=topic.replace("\0", "")).order_by("-changed_at").first()
    if row is None or not row.deletable:
        raise MissingObject(TopicErrorCode.NOT_DELETABLE, cluster=cluster.name, topic=topic)
    wanted = {"topic_ids": [row.topic_id]}
    return show_proposal(request, cluster, ItemProposal(DELETION, wanted, f"Delete topic {topic}"))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def delete_several(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the choice of topics; POST plans their deletion as a draft, on which their number is typed."""
    cluster = cluster_for(request, slug, PROPOSE)
    if request.method != "POST":
        initial = {name: request.GET.get(name, "")[:500] for name in ("topics", "pattern")}
        return _show_choice(request, cluster, TopicChoiceForm(initial=initial, cluster=cluster))
    form = TopicChoiceForm(request.POST, cluster=cluster)
    ids = form.choose_ids(internal=False) if form.is_valid() else []
    if not form.is_valid():
        return _show_choice(request, cluster, form, status=HTTPStatus.BAD_REQUEST)
    title = f"Delete {choose_plural('# topic|# topics', len(ids))}"
    try:
        draft = create_item_draft(request, cluster, ItemProposal(DELETION, {"topic_ids": ids}, title))
    except ChangeRefused as refused:
        return _show_choice(request, cluster, form, refused, HTTPStatus.CONFLICT)
    return redirect("short_runs:draft", draft.pk)


def _draw(brokers: PlacementBrokers) -> dict[str, str]:
    """Return the first values of the form. Start and shift are drawn as Kafka does; from then on they stay."""
    many = max(1, len(brokers.racks))
    return {
        "placement": TYPED if brokers.lacking else KIP_36,
        "partitions": "1",
        "factor": str(min(USUAL_FACTOR, many)),
        "start": str(random.randrange(many)),
        "shift": str(random.randrange(many)),
    }


def _show_choice(
    request: HttpRequest,
    cluster: Cluster,
    form: TopicChoiceForm,
    refused: ChangeRefused | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    told = {"tab": "topics", "form": form, "refused": refused}
    return render_with_bar(request, cluster, CollectorKind.METADATA, "topics/delete_several.html", told, status)


def _show_form(
    request: HttpRequest,
    cluster: Cluster,
    brokers: PlacementBrokers,
    form: TopicsForm,
    refused: ChangeRefused | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    told = {"tab": "topics", "form": form, "refused": refused, "brokers": describe_brokers(brokers.racks)}
    return render_with_bar(request, cluster, CollectorKind.METADATA, "topics/create.html", told, status)
