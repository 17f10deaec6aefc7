"""The consumer groups of a cluster: all of them, one by its name."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import Kind
from kafkadash.observe.not_read import not_read
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.queries.group import find_group, find_other_group, group_context, group_partition_listing
from kafkadash.observe.queries.group_list import group_list_context, group_listing
from kafkadash.observe.read_hints import read_hint
from kafkadash.observe.revalidate import revalidated


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def groups(request: HttpRequest, slug: str) -> HttpResponse:
    """All groups that Kafka lists; filtered, sorted and paged by the address."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(request, cluster, Kind.GROUPS)
    runs = bar["standing"].runs
    context = {
        **bar,
        "tab": "groups",
        "mirrors": f"group-list-{slug}",
        "live_keys": [read_hint(Kind.GROUPS, slug)],
        "not_read": not_read(cluster, runs, [Kind.GROUPS]),
        **group_list_context(cluster, group_listing(request.GET), runs, bar["now"]),
    }
    return render(request, "observe/groups.html", context)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def group(request: HttpRequest, slug: str, group: str) -> HttpResponse:
    """One group by its name (``group_names``); ``?range=day`` chooses how far back the charts go."""
    cluster = cluster_for(request, slug, VIEW)
    row = find_group(cluster, group)
    other = find_other_group(cluster, group) if row is None or row.gone_at else None
    if other is not None:
        bar = cluster_bar(request, cluster, Kind.GROUPS)
        freshness = bar["standing"].freshness_of(Kind.GROUPS)
        context = {**bar, "tab": "groups", "live_keys": [read_hint(Kind.GROUPS, slug)], "group": other}
        return render(request, "observe/other_group.html", {**context, "freshness": freshness})
    if row is None:
        raise MissingObject(CollectionErrorCode.GROUP_NOT_SEEN, cluster=cluster.name, group=group)
    bar = cluster_bar(request, cluster, Kind.GROUPS)
    runs, listing = bar["standing"].runs, group_partition_listing(request.GET)
    context = {
        **bar,
        "tab": "groups",
        "slug": group,
        "mirrors": f"group-partitions-{slug}",
        "live_keys": [read_hint(Kind.GROUPS, slug)],
        "not_read": not_read(cluster, runs, [Kind.GROUPS]),
        **group_context(row, listing, runs.get(Kind.GROUPS), bar["now"], request.GET.get("range")),
    }
    return render(request, "observe/group.html", context)
