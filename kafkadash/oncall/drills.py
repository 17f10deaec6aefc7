"""The drill of a cluster: what dies as asked for in an address, and what follows, from stored rows alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import QueryDict

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.drill import Drilled, Hit, Load, Loss, Placed, QuorumAfter, drill, quorum_after, single_losses
from kafkadash.domain.messages import message_text
from kafkadash.domain.quorum import Quorum
from kafkadash.domain.status import State
from kafkadash.domain.wording import count, duration, listed
from kafkadash.observe.cycles import without_search_for_cycles
from kafkadash.observe.models import BrokerState, Kind, TopicState
from kafkadash.observe.queries.brokers import broker_word
from kafkadash.observe.standing import Freshness, ReadingDoubts, Standing, doubts_about
from kafkadash.oncall.errors import OnCallErrorCode

MOST_LOSSES, LOSSES_PER_PAGE = 15, 100
HITS_PER_PAGE = 25
MOST_CELLS = 60
MOST_SURVIVORS = 20
MOST_ASKED = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to die. ``words`` name it ("rack b", "brokers 1 and 2"); ``problems`` are sentences about the rest."""

    dying: tuple[int, ...]
    words: str
    query: str
    problems: tuple[str, ...] = ()
    rack: str | None = None


def asked_for(given: QueryDict, cluster: Cluster, brokers: Mapping[int, BrokerState]) -> Asked:
    """Reads ``broker=3``, ``brokers=1,2`` and ``rack=b``; what is named together dies together."""
    ids, problems = _ids(given)
    known = sorted(b.broker_id for b in brokers.values() if b.gone_at is None)
    unknown = sorted(set(ids) - set(known))
    if unknown:
        there = f"there are {listed([str(b) for b in known[:20]])}" if known else "none is known"
        more = f" and {len(known) - 20} more" if len(known) > 20 else ""
        noun = "broker" if len(unknown) == 1 else "brokers"
        missing = f"{noun} {listed([str(b) for b in unknown])}"
        problems.append(
            message_text(
                OnCallErrorCode.DRILL_BROKERS_UNKNOWN, cluster=cluster.name, brokers=missing, there=f"{there}{more}"
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
            there = f"there are {listed(sorted(racks))}" if racks else "no broker names one"
            problems.append(
                message_text(OnCallErrorCode.DRILL_RACK_UNKNOWN, cluster=cluster.name, rack=rack, there=there)
            )
            rack = None
    away = [b for b in (*dying, *of_rack) if brokers[b].fenced]
    if away:
        verb = "is" if len(away) == 1 else "are"
        problems.append(message_text(OnCallErrorCode.DRILL_FENCED, brokers=f"{_brokers(away).capitalize()} {verb}"))
    parts = [f"rack {rack}"] if rack is not None else []
    parts += [_brokers(dying)] if dying else []
    everyone = tuple(sorted({*dying, *of_rack}))
    return Asked(everyone, listed(parts), _query(rack, dying), tuple(problems), None if dying else rack)


@without_search_for_cycles()
def drill_context(runs: Standing, given: QueryDict) -> dict[str, Any]:
    """Everything of the page. ``show`` and ``page`` choose which partitions are listed, ``losses`` how many losses."""
    cluster = runs.cluster
    brokers = {b.broker_id: b for b in BrokerState.objects.filter(cluster=cluster)}
    freshness = runs.freshness_of(Kind.METADATA)
    racks = {b.broker_id: b.rack for b in brokers.values() if broker_word(b) == "up"}
    doubts = doubts_about(cluster)
    partitions = placed_partitions(cluster)
    asked = asked_for(given, cluster, brokers)
    quorum = _quorum_now(runs)
    losses = loss_rows(single_losses(partitions, racks), quorum, brokers)
    known = bool(brokers) and freshness.taken_at is not None
    context: dict[str, Any] = {
        "cluster": cluster,
        "now": runs.now,
        "freshness": freshness,
        "well": State.UNKNOWN if freshness.stale or doubts else State.OK,
        "asked": asked,
        "total": len(partitions),
        "known": known,
        "racks": sorted({rack for rack in racks.values() if rack is not None})[:MOST_CELLS],
        "given_brokers": given.get("brokers", given.get("broker", "")),
        "min_isr_unknown": sum(p.min_isr is None for p in partitions),
        "some_min_isr_known": any(p.min_isr is not None for p in partitions),
        **_losses_context(losses, given),
    }
    if not asked.dying or not known:
        return context | {"title": _title_of_all(cluster, losses, known, freshness, doubts)}
    result = drill(partitions, racks, asked.dying)
    after = quorum_after(quorum, brokers, asked.dying) if quorum else None
    return context | {
        "title": _title(asked, result, after, freshness, doubts),
        "state": _state(result, after, doubts),
        "drilled": result,
        "quorum": after,
        "zookeeper": cluster.mode == Mode.ZOOKEEPER,
        "map": rack_map(brokers, asked.dying, result) if len(brokers) <= MOST_CELLS else [],
        **_hits_context(result, given),
        **_survivors_context(result, brokers),
    }


def _losses_context(losses: Sequence[LossRow], given: QueryDict) -> dict[str, Any]:
    """What each single loss does: the worst few, or with ``losses=all`` a page of all."""
    everything = given.get("losses") == "all"
    pages = Paginator(losses, LOSSES_PER_PAGE if everything else MOST_LOSSES)
    return {"losses": pages.get_page(given.get("page") if everything else 1), "all_losses": everything}


def _hits_context(result: Drilled, given: QueryDict) -> dict[str, Any]:
    """The lists of partitions with their lengths, and a page of the one that is chosen."""
    lists = _lists(result)
    shown = _chosen_list(given.get("show", ""), result)
    hits = {name: hits for name, _, hits in lists}[shown]
    page: Page[Hit] = Paginator(hits, HITS_PER_PAGE).get_page(given.get("page"))
    return {"lists": [(name, words, len(own)) for name, words, own in lists], "shown": shown, "page": page}


def _survivors_context(result: Drilled, brokers: Mapping[int, BrokerState]) -> dict[str, Any]:
    """Who leads what the dead ones led: the busiest first, of whom some are named."""
    loads = sorted(result.load.items(), key=lambda item: (-item[1].leaders_then, item[0]))
    return {
        "survivors": [
            Survivor(b, brokers[b].rack, load, loads[0][1].leaders_then) for b, load in loads[:MOST_SURVIVORS]
        ],
        "survivors_total": len(loads),
        "busiest": next(iter(loads), None),
    }


def placed_partitions(cluster: Cluster) -> list[Placed]:
    """All partitions of a cluster, as last seen."""
    rows = TopicState.objects.filter(cluster=cluster).order_by("name").values_list("name", "min_isr", "partitions")
    return [
        Placed(name, number, leader, replicas, isr, min_isr)
        for name, min_isr, partitions in rows
        for number, leader, _, replicas, isr, _ in partitions
    ]


@dataclass(frozen=True, slots=True)
class LossRow:
    """A row of the report on single losses. ``quorum`` is None where the quorum is not known."""

    loss: Loss
    quorum: QuorumAfter | None

    @property
    def quorum_lost(self) -> bool:
        return self.quorum is not None and self.quorum.lost


def loss_rows(losses: Sequence[Loss], quorum: Quorum | None, brokers: Collection[int]) -> list[LossRow]:
    """The same order, but for those that also cost the quorum: they come first."""
    rows = [LossRow(loss, quorum_after(quorum, brokers, loss.brokers) if quorum else None) for loss in losses]
    return sorted(rows, key=lambda row: not row.quorum_lost)


@dataclass(frozen=True, slots=True)
class Survivor:
    """A broker that lives on; ``scale`` is how many leaders the busiest one has then."""

    broker: int
    rack: str | None
    load: Load
    scale: int

    @property
    def before_percent(self) -> float:
        return 100 * self.load.leaders_now / self.scale if self.scale else 0.0

    @property
    def after_percent(self) -> float:
        return 100 * self.load.leaders_then / self.scale if self.scale else 0.0


@dataclass(frozen=True, slots=True)
class Cell:
    """A broker in the map: how many partitions it leads now if it dies, else its load; both none if it is away."""

    broker: int
    dies: bool
    leaders: int
    load: Load | None


def rack_map(
    brokers: Mapping[int, BrokerState], dying: Collection[int], result: Drilled
) -> list[tuple[str | None, bool, list[Cell]]]:
    """Racks by name (None: brokers that name none, last) → whether all of it dies, its brokers by id."""
    racks: dict[str | None, list[Cell]] = {}
    for id_, broker in sorted(brokers.items()):
        if broker.gone_at is None:
            cell = Cell(id_, id_ in dying, result.leaders_of_dead.get(id_, 0), result.load.get(id_))
            racks.setdefault(broker.rack, []).append(cell)
    named = sorted(racks.items(), key=lambda item: (item[0] is None, item[0] or ""))
    return [(rack, all(cell.dies for cell in cells), cells) for rack, cells in named]


def _ids(given: QueryDict) -> tuple[list[int], list[str]]:
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


def _query(rack: str | None, dying: Sequence[int]) -> str:
    query = QueryDict(mutable=True)
    if rack is not None:
        query["rack"] = rack
    if dying:
        query["broker" if len(dying) == 1 else "brokers"] = ",".join(str(b) for b in dying)
    return query.urlencode(safe=",")


def _brokers(ids: Sequence[int]) -> str:
    return f"{'broker' if len(ids) == 1 else 'brokers'} {listed([str(b) for b in ids])}"


def _lists(result: Drilled) -> list[tuple[str, str, list[Hit]]]:
    """What can be listed, the worst first."""
    return [
        ("offline", "go offline", result.offline),
        ("under", "refuse writes", result.under_min_isr),
        ("at", "get to min-ISR", result.at_min_isr),
        ("moving", "change their leader", result.moving),
    ]


def _chosen_list(name: str, result: Drilled) -> str:
    lists = _lists(result)
    names = [own for own, _, _ in lists]
    return name if name in names else next((own for own, _, hits in lists if hits), names[0])


def _quorum_now(runs: Standing) -> Quorum | None:
    """None where the quorum is not known, or not as of now."""
    cluster = runs.cluster
    if cluster.mode == Mode.ZOOKEEPER or runs.freshness_of(Kind.QUORUM).stale:
        return None
    return runs.quorum.quorum if runs.quorum else None


def _state(result: Drilled, quorum: QuorumAfter | None, doubts: ReadingDoubts) -> State:
    if result.offline or result.under_min_isr or (quorum and quorum.lost):
        return State.CRITICAL
    if doubts or result.unknown_min_isr or quorum is None or quorum.doubtful:
        return State.UNKNOWN
    return State.WARNING if result.at_min_isr else State.OK


def _title(
    asked: Asked, result: Drilled, quorum: QuorumAfter | None, freshness: Freshness, doubts: ReadingDoubts
) -> str:
    singular = len(asked.dying) == 1 or asked.rack is not None
    happens = []
    if quorum and quorum.lost:
        happens.append("the quorum is lost")
    if result.offline:
        happens.append(count(len(result.offline), "partition goes offline", "partitions go offline"))
    if result.under_min_isr:
        more = "more " if result.under_now else ""
        happens.append(
            count(len(result.under_min_isr), f"{more}partition refuses writes", f"{more}partitions refuse writes")
        )
    if not happens:
        nothing = "no partition goes offline"
        if result.unknown_min_isr:
            unknown = count(result.unknown_min_isr, "partition refuses", "partitions refuse")
            nothing += f", but whether {unknown} writes is not known"
        else:
            nothing += " and none refuses writes"
        happens.append(nothing)
    return f"If {asked.words} {'dies' if singular else 'die'} now, {listed(happens)}{_as_of(freshness, doubts)}."


def _title_of_all(
    cluster: Cluster, losses: Sequence[LossRow], known: bool, freshness: Freshness, doubts: ReadingDoubts
) -> str:
    if not known:
        return f"Cannot tell what a loss does to {cluster.name}: nothing was collected yet."
    seen = _as_of(freshness, doubts)
    worst = losses[0] if losses else None
    does = []
    if worst and worst.quorum_lost:
        does.append("loses the quorum")
    if worst and worst.loss.offline:
        does.append(f"takes {count(worst.loss.offline, 'partition')} offline")
    if worst and worst.loss.under_min_isr:
        does.append(f"makes {count(worst.loss.under_min_isr, 'partition')} refuse writes")
    if worst and does:
        return f"The worst single loss now is {worst.loss.kind} {worst.loss.name}: it {listed(does)}{seen}."
    if any(row.loss.unknown_min_isr for row in losses):
        return f"No single loss takes a partition offline; whether all still take writes is not known{seen}."
    return f"No single loss takes a partition offline or makes one refuse writes{seen}."


def _as_of(freshness: Freshness, doubts: ReadingDoubts) -> str:
    """Old data is judged too, and said to be old; so is what cannot be seen."""
    but = f"; but {doubts.words}" if doubts else ""
    if not freshness.stale or freshness.age_s is None:
        return but
    return f", as far as was known {duration(freshness.age_s)} ago{but}"
