"""History as the pipeline made it: of one group, topic or broker, and of the quorum's nodes.

All of them take ``?range=hour``, ``day``, ``week`` or ``year``.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.group_names import key_of_slug
from kafkadash.observe.history.turns import PIPELINE
from kafkadash.observe.models import BrokerState, GroupState, Kind, TopicState
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.queries.histories import (
    broker_history_context,
    group_history_context,
    quorum_history_context,
    topic_history_context,
)
from kafkadash.observe.queries.rollups import range_named
from kafkadash.observe.revalidate import revalidated


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def group_history(request: HttpRequest, slug: str, group: str) -> HttpResponse:
    """``?topic=`` one of those that the group reads."""
    cluster = cluster_for(request, slug, VIEW)
    known = GroupState.objects.filter(cluster=cluster, key=key_of_slug(group)).values_list("name", flat=True).first()
    if known is None:
        raise MissingObject(CollectionErrorCode.GROUP_NOT_SEEN, cluster=cluster.name, group=group)
    bar = cluster_bar(request, cluster, Kind.GROUPS)
    chosen, topic = range_named(request.GET.get("range")), request.GET.get("topic")
    context = {"address": group, **group_history_context(cluster, known, topic, chosen, bar["now"])}
    return _page(request, "group", {**bar, "tab": "groups", **context})


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def topic_history(request: HttpRequest, slug: str, topic: str) -> HttpResponse:
    cluster = cluster_for(request, slug, VIEW)
    if "\x00" in topic or not TopicState.objects.filter(cluster=cluster, name=topic).exists():
        raise MissingObject(CollectionErrorCode.TOPIC_NOT_SEEN, cluster=cluster.name, topic=topic)
    bar = cluster_bar(request, cluster, Kind.METADATA)
    context = topic_history_context(cluster, topic, range_named(request.GET.get("range")), bar["now"])
    return _page(request, "topic", {**bar, "tab": "topics", **context})


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def broker_history(request: HttpRequest, slug: str, broker_id: int) -> HttpResponse:
    cluster = cluster_for(request, slug, VIEW)
    if not BrokerState.objects.filter(cluster=cluster, broker_id=broker_id).exists():
        raise MissingObject(CollectionErrorCode.BROKER_NOT_SEEN, broker=broker_id, cluster=cluster.name)
    bar = cluster_bar(request, cluster, Kind.METADATA)
    context = broker_history_context(cluster, broker_id, range_named(request.GET.get("range")), bar["now"])
    return _page(request, "broker", {**bar, "tab": "brokers", **context})


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def quorum_history(request: HttpRequest, slug: str) -> HttpResponse:
    """``?node=`` one of the quorum's."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(request, cluster, Kind.QUORUM)
    chosen = range_named(request.GET.get("range"))
    context = quorum_history_context(cluster, request.GET.get("node"), chosen, bar["now"])
    return _page(request, "quorum", {**bar, "tab": "quorum", **context})


def _page(request: HttpRequest, of: str, context: dict[str, Any]) -> HttpResponse:
    return render(request, f"observe/{of}_history.html", {**context, "live_keys": [PIPELINE]})
