"""The page with the steps to decommission a broker, and the proposals to cordon, uncordon and unregister it."""

from __future__ import annotations

from collections.abc import Collection

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.broker_life.cordon import ALL, count_left, load_cordons, split_directories
from kafkadash.broker_life.cordon import KIND as CORDON
from kafkadash.broker_life.decommission import find_current, find_open_changes, list_steps, load_facts, name_page
from kafkadash.broker_life.errors import BrokerLifeErrorCode
from kafkadash.broker_life.unregister import KIND as UNREGISTER
from kafkadash.clusters.access import PROPOSE, VIEW, cluster_for, is_allowed, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.rows import one_moment
from kafkadash.monitoring.brokers import broker_state, find_broker
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.models import BrokerState, BrokerWeights, CollectorKind
from kafkadash.short_runs.pages import ItemProposal, show_proposal

_KINDS = (CollectorKind.METADATA, CollectorKind.LOG_DIRS, CollectorKind.REASSIGNMENTS)


@require_safe
@needs(VIEW)
@one_moment()
def decommission(request: HttpRequest, slug: str, broker_id: int) -> HttpResponse:
    """Show the steps with their states, and what to do next."""
    cluster = cluster_for(request, slug, VIEW)
    row = find_broker(cluster, broker_id)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    facts = load_facts(cluster, row, bar["standing"])
    steps = list_steps(facts, find_open_changes(cluster, broker_id))
    state, word = broker_state(row, facts.metadata)
    context = {
        **bar,
        "tab": "brokers",
        "live_keys": [read_hint(kind, slug) for kind in _KINDS],
        "broker": row,
        "state": state,
        "word": word,
        "title": name_page(facts, steps),
        "steps": steps,
        "current": find_current(steps),
        "freshness": facts.metadata,
        "may_propose": not cluster.read_only and is_allowed(request.user, PROPOSE, cluster),
    }
    return render(request, "broker_life/decommission.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def cordon(request: HttpRequest, slug: str, broker_id: int) -> HttpResponse:
    """Propose that all directories of a broker take no new replicas, or with ``?dir=/data1`` one more than now."""
    cluster = cluster_for(request, slug, PROPOSE)
    row, directories = find_broker(cluster, broker_id), _read_directories(cluster, broker_id)
    path = request.GET.get("dir", "").replace("\0", "")
    value = ALL
    if path:
        _check_directory(row, directories, path)
        cordoned = _list_named(cluster, broker_id, directories) | {path}
        value = ALL if cordoned >= directories else ",".join(sorted(cordoned))
    title = f"Cordon a directory of broker {broker_id}" if path else f"Cordon broker {broker_id}"
    wanted = {"values": {str(broker_id): value}}
    notes = _warn_of_few(cluster, broker_id, value)
    return show_proposal(request, cluster, ItemProposal(CORDON, wanted, title, notes))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def uncordon(request: HttpRequest, slug: str, broker_id: int) -> HttpResponse:
    """Propose that all directories of a broker take new replicas again, or with ``?dir=/data1`` one of them."""
    cluster = cluster_for(request, slug, PROPOSE)
    row, directories = find_broker(cluster, broker_id), _read_directories(cluster, broker_id)
    path = request.GET.get("dir", "").replace("\0", "")
    cordoned: set[str] = set()
    if path:
        _check_directory(row, directories, path)
        cordoned = _list_named(cluster, broker_id, directories) - {path}
    title = f"Uncordon a directory of broker {broker_id}" if path else f"Uncordon broker {broker_id}"
    wanted = {"values": {str(broker_id): ",".join(sorted(cordoned)) or None}}
    return show_proposal(request, cluster, ItemProposal(CORDON, wanted, title))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def unregister(request: HttpRequest, slug: str, broker_id: int) -> HttpResponse:
    """Propose to unregister a stopped, empty broker; POST submits it once its id was typed."""
    cluster = cluster_for(request, slug, PROPOSE)
    find_broker(cluster, broker_id)
    proposal = ItemProposal(UNREGISTER, {"broker": broker_id}, f"Unregister broker {broker_id}")
    return show_proposal(request, cluster, proposal)


def _read_directories(cluster: Cluster, broker_id: int) -> set[str]:
    """Return the paths of the log directories, as stored."""
    weights = BrokerWeights.objects.filter(cluster=cluster, broker_id=broker_id).values_list("dirs", flat=True)
    return {directory["path"] for directory in weights.first() or []}


def _list_named(cluster: Cluster, broker_id: int, directories: Collection[str]) -> set[str]:
    """Return the directories that the config in force names: Kafka reports none that is offline as cordoned."""
    stored = load_cordons(cluster, [broker_id]).get(broker_id)
    in_force = "" if stored is None else stored.inherited if stored.value is None else stored.value
    return set(directories) if in_force == ALL else split_directories(in_force)


def _check_directory(row: BrokerState, directories: Collection[str], path: str) -> None:
    """Raises MissingObject for a directory that the broker does not have."""
    if path not in directories:
        raise MissingObject(BrokerLifeErrorCode.DIRECTORY_UNKNOWN, broker=row.broker_id, path=path[:200])


def _warn_of_few(cluster: Cluster, broker_id: int, value: str) -> list[CodedMessage]:
    """Warn where fewer brokers would take new replicas than the largest topics have. Three queries."""
    left, factor = count_left(cluster, {broker_id: value})
    return [coded(BrokerLifeErrorCode.FEW_LEFT, brokers=left, factor=factor)] if left < factor else []
