"""The topics of a cluster: all of them, one by its name."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import Kind, TopicState
from kafkadash.observe.not_read import not_read
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.queries.topic import partition_listing, topic_context
from kafkadash.observe.queries.topic_list import topic_list_context, topic_listing
from kafkadash.observe.read_hints import read_hint
from kafkadash.observe.revalidate import revalidated

_KINDS = (Kind.METADATA, Kind.LOG_DIRS, Kind.CONFIGS)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def topics(request: HttpRequest, slug: str) -> HttpResponse:
    """All topics; filtered, sorted and paged by the address."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(request, cluster, Kind.METADATA)
    runs = bar["standing"].runs
    context = {
        **bar,
        "tab": "topics",
        "mirrors": f"topic-list-{slug}",
        "live_keys": [read_hint(kind, slug) for kind in (*_KINDS, Kind.REASSIGNMENTS)],
        "not_read": not_read(cluster, runs, _KINDS),
        **topic_list_context(cluster, topic_listing(request.GET), runs, bar["now"]),
    }
    return render(request, "observe/topics.html", context)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def topic(request: HttpRequest, slug: str, topic: str) -> HttpResponse:
    """One topic by its name. One that was deleted has no page: another may have its name by now."""
    cluster = cluster_for(request, slug, VIEW)
    row = None
    if "\x00" not in topic:  # which PostgreSQL takes in no text
        row = TopicState.objects.filter(cluster=cluster, name=topic).order_by("-changed_at").first()
    if row is None:
        raise MissingObject(CollectionErrorCode.TOPIC_NOT_SEEN, cluster=cluster.name, topic=topic)
    bar = cluster_bar(request, cluster, Kind.METADATA)
    runs = bar["standing"].runs
    kinds = (*_KINDS, Kind.REASSIGNMENTS, Kind.GROUPS)
    context = {
        **bar,
        "tab": "topics",
        "mirrors": f"topic-partitions-{slug}",
        "live_keys": [read_hint(kind, slug) for kind in kinds],
        "not_read": not_read(cluster, runs, kinds),
        **topic_context(cluster, row, partition_listing(request.GET), runs, bar["now"]),
    }
    return render(request, "observe/topic.html", context)
