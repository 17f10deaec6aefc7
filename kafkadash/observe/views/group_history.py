"""The history of one consumer group, as the pipeline made it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.domain.refusals import filters as said
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.group_names import key_of_slug
from kafkadash.observe.history.turns import PIPELINE
from kafkadash.observe.models import GroupState, Kind
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.queries.group_rollups import group_history_context, range_named
from kafkadash.observe.revalidate import revalidated


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def group_history(request: HttpRequest, slug: str, group: str) -> HttpResponse:
    """``?range=hour``, ``day``, ``week`` or ``year``; ``?topic=`` one of those that the group reads."""
    cluster = cluster_for(request, slug, VIEW)
    known = GroupState.objects.filter(cluster=cluster, key=key_of_slug(group)).values_list("name", flat=True).first()
    if known is None:
        raise Http404(said.GROUP_NOT_SEEN(cluster=cluster.name, group=group))
    bar = cluster_bar(request, cluster, Kind.GROUPS)
    chosen = range_named(request.GET.get("range"))
    context = {
        **bar,
        "tab": "groups",
        "live_keys": [PIPELINE],
        "address": group,
        **group_history_context(cluster, known, request.GET.get("topic"), chosen, bar["now"]),
    }
    return render(request, "observe/group_history.html", context)
