"""The brokers of a cluster: all of them, one by its id."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import PROPOSE, VIEW, allowed, cluster_for, needs
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import BrokerState, Kind
from kafkadash.observe.not_read import not_read
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.queries import broker as one
from kafkadash.observe.queries.broker_list import broker_list_context, broker_listing
from kafkadash.observe.read_hints import read_hint
from kafkadash.observe.revalidate import revalidated

_KINDS = (Kind.METADATA, Kind.LOG_DIRS, Kind.CONFIGS)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def brokers(request: HttpRequest, slug: str) -> HttpResponse:
    """All brokers, also those that are gone; filtered, sorted and paged by the address."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(request, cluster, Kind.METADATA)
    runs = bar["standing"].runs
    context = {
        **bar,
        "tab": "brokers",
        "mirrors": f"broker-list-{slug}",
        "live_keys": [read_hint(kind, slug) for kind in _KINDS],
        "not_read": not_read(cluster, runs, _KINDS),
        **broker_list_context(cluster, broker_listing(request.GET), runs, bar["now"]),
    }
    return render(request, "observe/brokers.html", context)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def broker(request: HttpRequest, slug: str, broker_id: int) -> HttpResponse:
    """One broker. It keeps its page when it is gone."""
    cluster = cluster_for(request, slug, VIEW)
    row = BrokerState.objects.filter(cluster=cluster, broker_id=broker_id).first()
    if row is None:
        raise MissingObject(CollectionErrorCode.BROKER_NOT_SEEN, broker=broker_id, cluster=cluster.name)
    bar = cluster_bar(request, cluster, Kind.METADATA)
    runs = bar["standing"].runs
    kinds = (*_KINDS, Kind.REASSIGNMENTS)
    context = {
        **bar,
        "tab": "brokers",
        "mirrors": f"broker-facts-{slug}",
        "live_keys": [read_hint(kind, slug) for kind in kinds],
        "not_read": not_read(cluster, runs, kinds),
        **one.broker_context(cluster, row, one.broker_listing(request.GET), runs, bar["now"]),
        "may_propose": not cluster.read_only and allowed(request.user, PROPOSE, cluster),
    }
    return render(request, "observe/broker.html", context)
