"""The wallboard: the facts of the status board in large type, for a screen on a wall that nobody touches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import signed_in, visible_clusters
from kafkadash.clusters.models import Cluster
from kafkadash.core.revalidation import revalidated
from kafkadash.findings.board import (
    ClusterStanding,
    FindingIncident,
    StatusBoard,
    more_words,
    rank_clusters,
    summarize_cluster,
)
from kafkadash.findings.product import load_product_rows

MOST_ON_WALL = 3
"""Findings of one cluster on the wallboard."""


class WallContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    standing: ClusterStanding
    quiet: bool
    incidents: Sequence[FindingIncident]
    more: str


def wall_context(cluster: Cluster, now: datetime, known: ClusterStanding | None = None) -> WallContext:
    """Return a cluster's tile: its state, its most urgent findings, and the age of its data."""
    standing = known or summarize_cluster(cluster, now)
    incidents = [incident for incident in standing.incidents if incident.row is not None]
    rest = len(incidents) - MOST_ON_WALL
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": standing.freshness.taken_at,
        "standing": standing,
        "quiet": standing.quiet,
        "incidents": incidents[:MOST_ON_WALL],
        "more": more_words(rest) if rest > 0 else "",
    }


@require_safe
@signed_in
@revalidated
def wall(request: HttpRequest) -> HttpResponse:
    """All clusters that this person may view, worst first; ``?cluster=a&cluster=b`` shows only these.

    A cluster that was requested and is not shown is named: a screen must not be quiet about it.
    """
    now = timezone.now()
    clusters = visible_clusters(request.user)
    requested = list(dict.fromkeys(request.GET.getlist("cluster")))
    if requested:
        clusters = clusters.filter(slug__in=requested)
    board = StatusBoard(rank_clusters(clusters, now), now, product=load_product_rows(now))
    shown = {standing.cluster.slug for standing in board.all}
    context = {
        "now": now,
        "board": board,
        "title": board.title,
        "missing": [slug for slug in requested if slug not in shown],
        "live_keys": ["board", *(f"wall:{standing.cluster.slug}" for standing in board.all)],
        "tiles": [wall_context(standing.cluster, now, standing) for standing in board.all],
    }
    return render(request, "findings/wall.html", context)
