"""The drill page: the effect of losing the chosen brokers or rack now, and the single losses that hurt most.

The failure is in the query string; the result comes from stored rows only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.formatting import capitalize_first, format_duration, join_items
from kafkadash.core.messages import choose_plural, message_text
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment, without_search_for_cycles
from kafkadash.core.status import HealthState
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.simulation import (
    BrokerLoad,
    BrokerLoss,
    HitPartition,
    QuorumAfter,
    SimulatedPartition,
    SimulationResult,
    quorum_after,
    simulate_failure,
    single_losses,
)
from kafkadash.monitoring.brokers import broker_word
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness, ReadingDoubts, doubts_about
from kafkadash.monitoring.models import BrokerState, CollectorKind, EligibleReplicaState, TopicState
from kafkadash.monitoring.quorum.rules import QuorumHealth

MOST_LOSSES, LOSSES_PER_PAGE = 15, 100
HITS_PER_PAGE = 25
MOST_CELLS = 60
MOST_SURVIVORS = 20
MOST_ASKED = 1000


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """Brokers that fail. ``words`` name them ("rack b", "brokers 1 and 2"); ``problems`` describe invalid input.

    ``unlisted``: brokers of the rack that Kafka does not list; they fail as voters only.
    """

    dying: tuple[int, ...]
    words: str
    query: str
    problems: tuple[str, ...] = ()
    rack: str | None = None
    unlisted: tuple[int, ...] = ()


def asked_for(given: QueryDict, cluster: Cluster, brokers: Mapping[int, BrokerState]) -> SimulationRequest:
    """Reads ``broker=3``, ``brokers=1,2`` and ``rack=b``; what is named together dies together."""
    ids, problems = _parse_ids(given)
    known = sorted(b.broker_id for b in brokers.values() if b.gone_at is None)
    unknown = sorted(set(ids) - set(known))
    if unknown:
        there = f"Choose from {join_items([str(b) for b in known[:20]])}" if known else "No broker is known yet"
        more = f" and {len(known) - 20} more" if len(known) > 20 else ""
        problems.append(
            message_text(
                OnCallErrorCode.DRILL_BROKERS_UNKNOWN,
                cluster=cluster.name,
                brokers=_describe_brokers(unknown),
                there=f"{there}{more}",
            )
        )
    dying = [b for b in dict.fromkeys(ids) if b in known]
    rack: str | None = None
    of_rack: list[int] = []
    racks = {b.rack for b in brokers.values() if b.gone_at is None and b.rack is not None}
    if "rack" in given and (given["rack"] or "" in racks):
        rack = given.get("rack", "")
        of_rack = [b for b in known if brokers[b].rack == rack]
        if not of_rack:
            there = f"Choose from {join_items(sorted(racks))}" if racks else "No broker has broker.rack set"
            problems.append(
                message_text(OnCallErrorCode.DRILL_RACK_UNKNOWN, cluster=cluster.name, rack=rack, there=there)
            )
            rack = None
    fenced = [b for b in (*dying, *of_rack) if brokers[b].fenced]
    if fenced:
        are = choose_plural("is|are", len(fenced))
        problems.append(
            message_text(OnCallErrorCode.DRILL_FENCED, brokers=f"{_describe_brokers(fenced).capitalize()} {are}")
        )
    parts = [f"rack {rack}"] if rack is not None else []
    parts += [_describe_brokers(dying)] if dying else []
    everyone = tuple(sorted({*dying, *of_rack}))
    unlisted = () if rack is None else tuple(b for b in brokers if b not in known and brokers[b].rack == rack)
    return SimulationRequest(
        everyone, join_items(parts), _encode_query(rack, dying), tuple(problems), None if dying else rack, unlisted
    )


@without_search_for_cycles()
def drill_context(runs: CollectionFreshness, given: QueryDict) -> dict[str, Any]:
    """Everything of the page. ``show`` and ``page`` choose which partitions are listed, ``losses`` how many losses."""
    cluster = runs.cluster
    brokers = {b.broker_id: b for b in BrokerState.objects.filter(cluster=cluster)}
    freshness = runs.freshness_of(CollectorKind.METADATA)
    racks = {b.broker_id: b.rack for b in brokers.values() if broker_word(b) == "up"}
    doubts = doubts_about(cluster)
    partitions = placed_partitions(cluster, freshness.taken_at)
    simulation = asked_for(given, cluster, brokers)
    quorum = _quorum_now(runs)
    losses = loss_rows(single_losses(partitions, racks), quorum, {b.broker_id: b.rack for b in brokers.values()})
    known = bool(brokers) and freshness.taken_at is not None
    context: dict[str, Any] = {
        "cluster": cluster,
        "now": runs.now,
        "freshness": freshness,
        "well": HealthState.UNKNOWN if freshness.stale or doubts else HealthState.OK,
        "simulation": simulation,
        "total": len(partitions),
        "known": known,
        "racks": sorted({rack for rack in racks.values() if rack is not None})[:MOST_CELLS],
        "given_brokers": given.get("brokers", given.get("broker", "")),
        "min_isr_unknown": sum(p.min_isr is None for p in partitions),
        "some_min_isr_known": any(p.min_isr is not None for p in partitions),
        **_losses_context(losses, given),
    }
    if not simulation.dying or not known:
        return context | {"title": _title_of_all(cluster, losses, known, freshness, doubts)}
    result = simulate_failure(partitions, racks, simulation.dying)
    after = quorum_after(quorum, brokers, {*simulation.dying, *simulation.unlisted}) if quorum else None
    return context | {
        "title": _describe_result(simulation, result, after, freshness, doubts),
        "state": _overall_state(result, after, doubts),
        "drilled": result,
        "single": f"{simulation.dying[0]}" if len(simulation.dying) == 1 else "",
        "quorum": after,
        "zookeeper": cluster.mode == ClusterMode.ZOOKEEPER,
        "map": rack_map(brokers, simulation.dying, result) if len(brokers) <= MOST_CELLS else [],
        **_hits_context(result, given),
        **_survivors_context(result, brokers),
    }


class LossesContext(TypedDict):
    losses: Page[LossRow]
    all_losses: bool


def _losses_context(losses: Sequence[LossRow], given: QueryDict) -> LossesContext:
    """Return the context of the single losses: the worst few, or with ``losses=all`` a page of all."""
    everything = given.get("losses") == "all"
    pages = Paginator(losses, LOSSES_PER_PAGE if everything else MOST_LOSSES)
    return {"losses": pages.get_page(given.get("page") if everything else 1), "all_losses": everything}


class HitPartitionsContext(TypedDict):
    lists: Any
    shown: str
    page: Any


def _hits_context(result: SimulationResult, given: QueryDict) -> HitPartitionsContext:
    """The lists of partitions with their lengths, and a page of the one that is chosen."""
    lists = _list_hits(result)
    shown = _chosen_list(given.get("show", ""), result)
    hits = {name: hits for name, _, hits in lists}[shown]
    page: Page[HitPartition] = Paginator(hits, HITS_PER_PAGE).get_page(given.get("page"))
    return {"lists": [(name, words, len(own)) for name, words, own in lists], "shown": shown, "page": page}


class SurvivorsContext(TypedDict):
    survivors: list[SurvivingBroker]
    survivors_total: int
    busiest: tuple[int, BrokerLoad] | None


def _survivors_context(result: SimulationResult, brokers: Mapping[int, BrokerState]) -> SurvivorsContext:
    """Return the context of the surviving brokers by leaders after the loss, the busiest first; some are named."""
    loads = sorted(result.load.items(), key=lambda item: (-item[1].leaders_then, item[0]))
    return {
        "survivors": [
            SurvivingBroker(b, brokers[b].rack, load, loads[0][1].leaders_then) for b, load in loads[:MOST_SURVIVORS]
        ],
        "survivors_total": len(loads),
        "busiest": next(iter(loads), None),
    }


def placed_partitions(cluster: Cluster, metadata_at: datetime | None = None) -> list[SimulatedPartition]:
    """All partitions of a cluster, as last seen; an ELR that was read before ``metadata_at`` is unknown."""
    stored = EligibleReplicaState.objects.filter(cluster=cluster, format=1)
    if metadata_at is not None:
        stored = stored.filter(taken_at__gte=metadata_at)
    eligible = {
        (topic_id, int(number)): elr
        for topic_id, partitions in stored.values_list("topic_id", "partitions")
        for number, (elr, _, _) in partitions.items()
        if elr
    }
    rows = TopicState.objects.filter(cluster=cluster).order_by("name")
    return [
        SimulatedPartition(name, number, leader, replicas, isr, min_isr, eligible.get((topic_id, number), ()))
        for name, topic_id, min_isr, partitions in rows.values_list("name", "topic_id", "min_isr", "partitions")
        for number, leader, _, replicas, isr, _ in partitions
    ]


@dataclass(frozen=True, slots=True)
class LossRow:
    """A row of the report on single losses. ``quorum`` is None where the quorum is not known."""

    loss: BrokerLoss
    quorum: QuorumAfter | None

    @property
    def quorum_lost(self) -> bool:
        return self.quorum is not None and self.quorum.lost


def loss_rows(
    losses: Sequence[BrokerLoss], quorum: QuorumHealth | None, racks: Mapping[int, str | None]
) -> list[LossRow]:
    """The same order, but for those that also cost the quorum: they come first. ``racks`` has all known brokers.

    With a rack fail its brokers that are not up, too: such a one may still be a voter.
    """
    members: defaultdict[str | None, list[int]] = defaultdict(list)
    for broker, rack in racks.items():
        members[rack].append(broker)
    rows = []
    for loss in losses:
        dying = loss.brokers if loss.kind == "broker" else members[loss.name]
        rows.append(LossRow(loss, quorum_after(quorum, racks, dying) if quorum else None))
    return sorted(rows, key=lambda row: not row.quorum_lost)


@dataclass(frozen=True, slots=True)
class SurvivingBroker:
    """A broker that lives on; ``scale`` is how many leaders the busiest one has then."""

    broker: int
    rack: str | None
    load: BrokerLoad
    scale: int

    @property
    def before_percent(self) -> float:
        return 100 * self.load.leaders_now / self.scale if self.scale else 0.0

    @property
    def after_percent(self) -> float:
        return 100 * self.load.leaders_then / self.scale if self.scale else 0.0


@dataclass(frozen=True, slots=True)
class SimulationCell:
    """A broker in the map: how many partitions it leads now if it dies, else its load; both none if it is away."""

    broker: int
    dies: bool
    leaders: int
    load: BrokerLoad | None


def rack_map(
    brokers: Mapping[int, BrokerState], dying: Collection[int], result: SimulationResult
) -> list[tuple[str | None, bool, list[SimulationCell]]]:
    """Racks by name (None: brokers that name none, last) → whether all of it dies, its brokers by id."""
    racks: dict[str | None, list[SimulationCell]] = {}
    for id_, broker in sorted(brokers.items()):
        if broker.gone_at is None:
            cell = SimulationCell(id_, id_ in dying, result.leaders_of_dead.get(id_, 0), result.load.get(id_))
            racks.setdefault(broker.rack, []).append(cell)
    named = sorted(racks.items(), key=lambda item: (item[0] is None, item[0] or ""))
    return [(rack, all(cell.dies for cell in cells), cells) for rack, cells in named]


def _parse_ids(given: QueryDict) -> tuple[list[int], list[str]]:
    text = ",".join([*given.getlist("broker"), *given.getlist("brokers")])
    ids, odd = [], []
    parts = [part for part in text.replace(" ", ",").split(",") if part]
    for part in parts[:MOST_ASKED]:
        if part.isascii() and part.isdigit() and len(part) < 10:
            ids.append(int(part))
        else:
            odd.append(part[:60])
    problems = [message_text(OnCallErrorCode.DRILL_NO_BROKER, typed=", ".join(odd[:5]))] if odd else []
    if len(parts) > MOST_ASKED:
        problems.append(message_text(OnCallErrorCode.DRILL_TOO_MANY, most=MOST_ASKED, many=len(parts)))
    return ids, problems


def _encode_query(rack: str | None, dying: Sequence[int]) -> str:
    query = QueryDict(mutable=True)
    if rack is not None:
        query["rack"] = rack
    if dying:
        query["broker" if len(dying) == 1 else "brokers"] = ",".join(str(b) for b in dying)
    return query.urlencode(safe=",")


def _describe_brokers(ids: Sequence[int]) -> str:
    return f"{choose_plural('broker|brokers', len(ids))} {join_items([str(b) for b in ids])}"


def _list_hits(result: SimulationResult) -> list[tuple[str, str, list[HitPartition]]]:
    """Return the lists of affected partitions, the worst first."""
    return [
        ("offline", "go offline", result.offline),
        ("under", "refuse writes", result.under_min_isr),
        ("at", "drop to min-ISR", result.at_min_isr),
        ("moving", "change leader", result.moving),
    ]


def _chosen_list(name: str, result: SimulationResult) -> str:
    lists = _list_hits(result)
    names = [own for own, _, _ in lists]
    return name if name in names else next((own for own, _, hits in lists if hits), names[0])


def _quorum_now(runs: CollectionFreshness) -> QuorumHealth | None:
    """None where the quorum is not known, or not as of now."""
    cluster = runs.cluster
    if cluster.mode == ClusterMode.ZOOKEEPER or runs.freshness_of(CollectorKind.QUORUM).stale:
        return None
    return runs.quorum.quorum if runs.quorum else None


def _overall_state(result: SimulationResult, quorum: QuorumAfter | None, doubts: ReadingDoubts) -> HealthState:
    if result.offline or result.under_min_isr or (quorum and quorum.lost):
        return HealthState.CRITICAL
    if doubts or result.unknown_min_isr or quorum is None or quorum.doubtful:
        return HealthState.UNKNOWN
    return HealthState.WARNING if result.at_min_isr else HealthState.OK


def _describe_result(
    simulation: SimulationRequest,
    result: SimulationResult,
    quorum: QuorumAfter | None,
    freshness: FactFreshness,
    doubts: ReadingDoubts,
) -> str:
    """Return the title: the worst that happens; the page has all of it."""
    happens = "no new outage"
    if quorum and quorum.lost:
        happens = "quorum lost"
    elif result.offline:
        happens = choose_plural("# partition offline|# partitions offline", len(result.offline))
    elif result.under_min_isr:
        happens = f"{len(result.under_min_isr):,} under min-ISR"
    elif result.unknown_min_isr:
        happens = f"{result.unknown_min_isr:,} with unknown min-ISR"
    fail = choose_plural("fails|fail", len(simulation.dying) if simulation.rack is None else 1)
    return f"{capitalize_first(simulation.words)} {fail}: {happens}{_as_of(freshness, doubts)}"


def _title_of_all(
    cluster: Cluster, losses: Sequence[LossRow], known: bool, freshness: FactFreshness, doubts: ReadingDoubts
) -> str:
    if not known:
        return f"{cluster.name}: no data to simulate failures yet"
    seen = _as_of(freshness, doubts)
    worst = losses[0] if losses else None
    does = ""
    if worst and worst.quorum_lost:
        does = "quorum lost"
    elif worst and worst.loss.offline:
        does = choose_plural("# partition offline|# partitions offline", worst.loss.offline)
    elif worst and worst.loss.under_min_isr:
        does = f"{worst.loss.under_min_isr:,} under min-ISR"
    if worst and does:
        name = f"{worst.loss.kind} {worst.loss.name}" if worst.loss.name else f"{worst.loss.kind} without a name"
        return f"Worst failure: {name}, {does}{seen}"
    if any(row.loss.unknown_min_isr for row in losses):
        return f"No single failure takes partitions offline; writes unknown{seen}"
    return f"No single failure stops reads or writes{seen}"


def _as_of(freshness: FactFreshness, doubts: ReadingDoubts) -> str:
    """Old data is judged too, and said to be old; so is what cannot be seen."""
    but = f"; {doubts.words}" if doubts else ""
    if not freshness.stale or freshness.age_s is None:
        return but
    return f" (data {format_duration(freshness.age_s)} old){but}"


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def drill(request: HttpRequest, slug: str) -> HttpResponse:
    """``?broker=3``, ``?brokers=1,2`` or ``?rack=b``: what dies. Nothing is asked of the cluster."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    context = {**bar, "tab": "drill", **drill_context(bar["standing"], request.GET)}
    return render(request, "findings/drill.html", context)
