"""The page that proposes preferred leader elections of a broker, a topic or the whole cluster."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.elections.errors import ElectionErrorCode
from kafkadash.elections.kind import KIND
from kafkadash.monitoring.models import BrokerState, TopicState
from kafkadash.short_runs.pages import ItemProposal, show_proposal


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def propose(request: HttpRequest, slug: str) -> HttpResponse:
    """``?broker=3`` or ``?topic=orders`` narrows it; without either it is about the whole cluster."""
    cluster = cluster_for(request, slug, PROPOSE)
    return show_proposal(request, cluster, _read_scope(request, cluster))


def _read_scope(request: HttpRequest, cluster: Cluster) -> ItemProposal:
    """Raises MissingObject for a broker or topic that the cluster does not have."""
    broker, topic = (request.GET.get(name, "").replace("\0", "") for name in ("broker", "topic"))
    wanted: dict[str, Any] = {}
    title = "Elect preferred leaders"
    if broker:
        number = int(broker) if broker.isascii() and broker.isdigit() and len(broker) < 10 else -1
        if not BrokerState.objects.filter(cluster=cluster, broker_id=number).exists():
            raise MissingObject(ElectionErrorCode.SCOPE_UNKNOWN, cluster=cluster.name)
        wanted["broker"], title = number, f"Elect preferred leaders on broker {number}"
    elif topic:
        if not TopicState.objects.filter(cluster=cluster, name=topic).exists():
            raise MissingObject(ElectionErrorCode.SCOPE_UNKNOWN, cluster=cluster.name)
        wanted["topic"], title = topic, f"Elect preferred leaders of {topic}"
    return ItemProposal(KIND, wanted, title)
