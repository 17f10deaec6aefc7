"""Pages of restarts: whether one broker may be restarted now, and the order for all brokers or those of a rack.

Both come from stored rows only; the list of all partitions that a restart hurts is the failure simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.core.formatting import join_items
from kafkadash.core.messages import CodedMessage, choose_plural, message_text
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment, without_search_for_cycles
from kafkadash.core.status import HealthState
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.restart import (
    RestartBroker,
    RestartCheck,
    RestartFacts,
    RestartOrder,
    RestartPlace,
    RestartStep,
    RestartVerdict,
    judge_restart,
    list_lasting_reasons,
    order_restarts,
)
from kafkadash.findings.restart_facts import load_restart_facts
from kafkadash.findings.simulation import HitPartition
from kafkadash.monitoring.brokers import find_broker
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness
from kafkadash.monitoring.models import BrokerState, CollectorKind

MOST_PARTITIONS = 25
MOST_RACKS = 60

_KINDS = (
    CollectorKind.METADATA,
    CollectorKind.ANSWERS,
    CollectorKind.CONFIGS,
    CollectorKind.REASSIGNMENTS,
    CollectorKind.QUORUM,
    CollectorKind.CATCH_UP,
)
_STATES = {
    RestartVerdict.YES: HealthState.OK,
    RestartVerdict.NO: HealthState.CRITICAL,
    RestartVerdict.UNKNOWN: HealthState.UNKNOWN,
}
_PLACE_WORDS = {
    RestartPlace.START: "start it first",
    RestartPlace.BEHIND: "catching up",
    RestartPlace.NEXT: "next",
    RestartPlace.LATER: "later",
    RestartPlace.AFTER_MOVES: "after reassignments",
    RestartPlace.UNDECIDED: "unknown",
    RestartPlace.NEVER: "never safe",
}


_PLACE_MARKS = {
    RestartPlace.NEVER: HealthState.CRITICAL,
    RestartPlace.UNDECIDED: HealthState.UNKNOWN,
    RestartPlace.NEXT: HealthState.OK,
    RestartPlace.START: HealthState.WARNING,
    RestartPlace.BEHIND: HealthState.WARNING,
    RestartPlace.AFTER_MOVES: HealthState.WARNING,
}


@dataclass(frozen=True, slots=True)
class RestartLine:
    """Broker in the order as a row; ``number`` is None for one that has no place."""

    step: RestartStep
    number: int | None

    @property
    def words(self) -> str:
        return _PLACE_WORDS[self.step.place]

    @property
    def mark(self) -> str:
        """State of the row's mark; '' for none."""
        return _PLACE_MARKS.get(self.step.place, "")


class RestartContext(TypedDict):
    """``more``: partitions that the list leaves out. ``lasting``: reasons that no waiting changes.

    ``lead``: what the sentence of the check says beyond the title, which has the verdict.
    """

    title: str
    lead: str
    broker: BrokerState
    check: RestartCheck
    state: HealthState
    freshness: FactFreshness
    offline: Sequence[HitPartition]
    under: Sequence[HitPartition]
    lasting: Sequence[CodedMessage]
    more: int


@without_search_for_cycles()
def restart_context(standing: CollectionFreshness, row: BrokerState) -> RestartContext:
    """Return the answer for one broker with the partitions behind it, the worst first."""
    facts = load_restart_facts(standing)
    known = facts.brokers.get(row.broker_id)
    if known is None:  # not listed, without a replica: only the quorum may depend on it
        own = RestartBroker(row.broker_id, row.rack, "gone")
        facts = replace(facts, partitions=[], brokers={own.id: own}, hidden_topics=0)
    check = judge_restart(facts, row.broker_id)
    sentence = check.sentence
    offline = check.offline[:MOST_PARTITIONS]
    under = check.under_min_isr[: MOST_PARTITIONS - len(offline)]
    return {
        "title": name_check(check),
        "lead": str(sentence) if sentence.code is OnCallErrorCode.RESTART_OF_DOWN else sentence.advice,
        "broker": row,
        "check": check,
        "state": _STATES[check.verdict],
        "freshness": standing.freshness_of(CollectorKind.METADATA),
        "offline": offline,
        "under": under,
        "lasting": list_lasting_reasons(facts, row.broker_id),
        "more": len(check.offline) + len(check.under_min_isr) - len(offline) - len(under),
    }


def name_check(check: RestartCheck) -> str:
    broker = check.broker.id
    if check.verdict is RestartVerdict.YES:
        return f"Broker {broker} may be restarted now"
    if check.verdict is RestartVerdict.NO:
        return f"Do not restart broker {broker} now"
    return f"Restart of broker {broker}: cannot tell"


class RestartOrderContext(TypedDict):
    title: str
    order: RestartOrder
    lines: Sequence[RestartLine]
    state: HealthState
    freshness: FactFreshness
    racks: Sequence[str]
    rack: str | None
    problem: str
    known: bool


@without_search_for_cycles()
def restart_order_context(standing: CollectionFreshness, rack: str | None) -> RestartOrderContext:
    """Return the order for all brokers, or for those of a rack; of a rack that no broker names, the problem."""
    facts = load_restart_facts(standing)
    racks, problem = list_racks(facts), ""
    if rack is not None and rack not in racks:
        code, there = OnCallErrorCode.DRILL_RACK_UNKNOWN, offer_racks(racks)
        problem, rack = message_text(code, cluster=standing.cluster.name, rack=rack, there=there), None
    order = order_restarts(facts, choose_brokers(facts, rack))
    freshness = standing.freshness_of(CollectorKind.METADATA)
    known = bool(facts.brokers) and freshness.taken_at is not None
    return {
        "title": _name_order(order) if known else "Restart order: no data yet",
        "order": order,
        "lines": [
            *(RestartLine(step, number) for number, step in enumerate(order.steps, 1)),
            *(RestartLine(step, None) for step in order.never),
        ],
        "state": _STATES[order.verdict],
        "freshness": freshness,
        "racks": racks[:MOST_RACKS],
        "rack": rack,
        "problem": problem,
        "known": known,
    }


def choose_brokers(facts: RestartFacts, rack: str | None) -> list[int]:
    """Return the brokers of a rack, of all racks for None."""
    return [broker.id for broker in facts.brokers.values() if rack is None or broker.rack == rack]


def list_racks(facts: RestartFacts) -> list[str]:
    return sorted({broker.rack for broker in facts.brokers.values() if broker.rack is not None})


def offer_racks(racks: Sequence[str]) -> str:
    """Return the part of a message that follows an unknown rack."""
    return f"Choose from {join_items(racks)}" if racks else "No broker has broker.rack set"


def _name_order(order: RestartOrder) -> str:
    if order.never:
        return choose_plural("# broker has no safe restart|# brokers have no safe restart", len(order.never))
    return f"Restart order of {choose_plural('# broker|# brokers', len(order.steps))}"


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def restart(request: HttpRequest, slug: str, broker_id: int) -> HttpResponse:
    """Show whether the broker may be restarted now."""
    cluster = cluster_for(request, slug, VIEW)
    row = find_broker(cluster, broker_id)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    live_keys = [read_hint(kind, slug) for kind in _KINDS]
    context = {**bar, "tab": "brokers", "live_keys": live_keys, **restart_context(bar["standing"], row)}
    return render(request, "findings/restart.html", context)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def restart_order(request: HttpRequest, slug: str) -> HttpResponse:
    """Show an order of restarts; ``?rack=b``: of the brokers of this rack."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    rack = request.GET.get("rack") if "rack" in request.GET else None
    live_keys = [read_hint(kind, slug) for kind in _KINDS]
    context = {**bar, "tab": "brokers", "live_keys": live_keys, **restart_order_context(bar["standing"], rack)}
    return render(request, "findings/restart_order.html", context)
