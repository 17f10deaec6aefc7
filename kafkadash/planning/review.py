"""The page of a plan in sections, shared by the review of a reassignment and the third step of the wizard.

All data is read from the stored report; the current state of the cluster is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.changes.access import needs_on_change, request_for
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import RunOptions
from kafkadash.clusters.access import VIEW
from kafkadash.core.formatting import format_size, run_time
from kafkadash.core.formatting import format_size as size_text
from kafkadash.core.json_columns import unpack_dataclass
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.models import CollectorKind
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.impact import PlanImpact, busiest_bytes, rates_around, run_seconds
from kafkadash.planning.models import PlanReport, PlanTopic
from kafkadash.planning.options import format_megabytes
from kafkadash.planning.preconditions import WINDOW
from kafkadash.planning.problem_codes import RuleCode
from kafkadash.planning.proposal import ROLLBACK, PlanInput, rollback_source
from kafkadash.planning.report import (
    BrokerBars,
    RackPair,
    RowWords,
    broker_bars,
    diff_context,
    plan_listing,
    rack_pair,
    topic_rows_context,
)
from kafkadash.planning.solver.request import PlanProof
from kafkadash.planning.tiered_copies import TieredCopies, load_tiered_copies
from kafkadash.planning.window import WindowFacts, run_options, window_facts


@dataclass(frozen=True, slots=True)
class ProofWords:
    """``badge``: what is proven, '' where it is not quite. ``figures``: (what, bytes in words), to stand in a row.

    ``verified``: by the checker, which knows nothing of how the plan was made.
    """

    badge: str
    sentence: str
    figures: Sequence[tuple[str, str]]
    verified: bool


def proof_words(report: PlanReport, aim: str) -> ProofWords | None:
    """Return the proof of a stored report in words; None if nothing is proven (rows were brought or only reordered).

    ``aim`` goes on after "no plan that": "drains broker 3".
    """
    if report.proof is None:
        return None
    proof = unpack_dataclass(PlanProof, report.proof)
    figures = [
        ("this plan", _format_about(proof, proof.moved)),
        ("lower bound", _format_about(proof, proof.lowest)),
        ("gap", format_size(max(0, proof.moved - proof.lowest))),
    ]
    if report.generate_bytes is not None:
        figures.append(("kafka-reassign-partitions --generate", format_size(report.generate_bytes)))
    return ProofWords(
        badge="Proven least movement" if proof.exact else "",
        sentence=_format_proof(proof, f"no plan that {aim} under these limits moves less"),
        figures=figures,
        verified=any(rule["code"] == RuleCode.LEAST_MOVEMENT and rule["passed"] is True for rule in report.rules),
    )


def _format_proof(proof: PlanProof, none_less: str) -> str:
    ratio = proof.ratio
    if ratio is None:
        return "The distance from the minimum is unknown: the lower bound is 0 B."
    unknown = ""
    if proof.estimated:
        sizes = choose_plural("# partition|# partitions", proof.estimated)
        unknown = f"Assuming typical sizes for {sizes} of unknown size, "
    if ratio <= 1:
        text = f"{unknown}{none_less}."
    else:
        above = 100 * (ratio - 1)
        share = f"at most {above:.1f} %" if above >= 0.05 else "less than 0.1 %"
        text = f"{unknown}{none_less} than {format_size(proof.lowest)}: this plan is {share} above."
    return text[:1].upper() + text[1:]


def _format_about(proof: PlanProof, number: int) -> str:
    return f"about {format_size(number)}" if proof.estimated else format_size(number)


@dataclass(frozen=True, slots=True)
class TimeAt:
    """How long the plan takes at least at one throttle, in bytes per second; None where a size is not known.

    ``beyond`` says that the throttle is outside the bounds that approval is asked for.
    """

    rate: int
    seconds: float | None
    proposed: bool
    beyond: str


@dataclass(frozen=True, slots=True)
class RollbackNote:
    """``copied_bytes`` and ``seconds`` at the sizes of the plan, if all of it was run; None where not known."""

    partitions: int
    copied_bytes: int | None
    seconds: float | None


@dataclass(frozen=True)
class PlanPage:
    """All sections. ``topology_at`` is the age of the facts behind every figure but the times: those go by ``busiest``,
    what the busiest broker receives or sends by the sizes of ``sizes_at``, which are read anew while a request waits.
    """

    change: ChangeRequest
    impact: PlanImpact
    options: RunOptions
    topology_at: datetime | None
    times: Sequence[TimeAt]
    racks: RackPair
    brokers: BrokerBars
    diff: Mapping[str, Any]
    window: WindowFacts
    rollback: RollbackNote
    proof: ProofWords | None
    busiest: int | None
    sizes_at: datetime | None
    tiered: TieredCopies | None

    @property
    def seconds(self) -> float | None:
        """At the proposed throttle."""
        return run_seconds(self.busiest, self.options.throttle)

    @property
    def largest_s(self) -> float | None:
        """The largest copy alone, at the proposed throttle."""
        return None if self.impact.largest_bytes is None else self.impact.largest_bytes / self.options.throttle

    @property
    def moved_share(self) -> float | None:
        """Percent of the cluster's partitions."""
        return _percent(self.impact.partitions_moved, self.impact.partitions_total)

    @property
    def bytes_share(self) -> float | None:
        return _percent(self.impact.copied_bytes, self.impact.total_bytes)

    @property
    def brokers_words(self) -> str:
        """Return a text such as "1 emptied, 5 receiving"; without sizes, the receivers are left out."""
        emptied = len(self.impact.emptied)
        parts = [choose_plural("# emptied|# emptied", emptied)] if emptied else []
        receive = sum(broker.bytes_in > 0 for broker in self.impact.brokers)
        if not self.impact.unsized and receive:
            parts.append(choose_plural("# receiving|# receiving", receive))
        return ", ".join(parts) or "none emptied"

    @property
    def leaders_words(self) -> str:
        losing = [broker.id for broker in self.impact.brokers if broker.leaders_after < broker.leaders_before]
        if not losing:
            return "no broker loses leaders" if self.impact.leaders_moved else "all leaders stay"
        if len(losing) == 1:
            return f"from broker {losing[0]} only"
        return choose_plural("from # broker|from # brokers", len(losing))

    @property
    def min_isr_state(self) -> str:
        under, at = self.impact.under_min_isr, self.impact.at_min_isr
        if under is None or at is None:
            return "unknown"
        return "critical" if under else "warning" if at else "ok"

    @property
    def binding_words(self) -> str:
        """Which broker and direction bounds the time, '' where nothing is copied or a size is not known."""
        impact = self.impact
        if impact.binding_broker is None or not impact.binding_bytes:
            return ""
        way = "inbound" if impact.binding_direction == "in" else "outbound"
        planned = size_text(impact.binding_bytes)
        now = size_text(self.busiest) if self.busiest is not None else planned
        grown = f" when planned, {now} now" if now != planned and self.sizes_at != self.topology_at else ""
        return f"limited by broker {impact.binding_broker}, {way}: {planned}{grown}"


def plan_page(change: ChangeRequest, query: QueryDict, now: datetime) -> PlanPage | None:
    """None where the request has no plan. Costs four queries, or five where exceptions are paged; one less where the
    request has its report already.
    """
    report: PlanReport | None = getattr(change, "report", None)
    if report is None:
        return None
    impact, options = unpack_dataclass(PlanImpact, report.impact), run_options(change)
    listing = plan_listing(query)
    words = row_words(impact, options)
    back = report.way_back
    busiest, sizes_at = _find_busiest_bytes(change, impact)
    return PlanPage(
        change=change,
        impact=impact,
        options=options,
        topology_at=change.topology_at,
        times=[_time_at(rate, busiest, options) for rate in rates_around(options.throttle)],
        racks=rack_pair(impact),
        brokers=broker_bars(impact, everything=listing.values["brokers"] == "all"),
        diff=diff_context(report, impact, words, listing),
        window=window_facts(options, impact, run_seconds(busiest, options.throttle), now),
        rollback=RollbackNote(
            back["partitions"],
            back["copied_bytes"],
            run_seconds(back["longest_bytes"], options.throttle),
        ),
        proof=_present_proof(change, report, impact),
        busiest=busiest,
        sizes_at=sizes_at,
        tiered=load_tiered_copies(change.cluster, report, now),
    )


def row_words(impact: PlanImpact, options: RunOptions) -> RowWords:
    return RowWords(impact, options.throttle, elect_leaders=options.elect_leaders)


def review_context(change: ChangeRequest, request: HttpRequest, now: datetime) -> Mapping[str, Any]:
    """Return the context of kind "reassignment": ``what`` it does in a sentence, ``plan`` for the template,
    ``sections`` for the index of the page.
    """
    plan = plan_page(change, request.GET, now)
    if plan is None:
        return {}
    return {
        "what": _describe_request(change),
        "plan": plan,
        "now": now,
        "sections": (
            ("blast", "Blast radius", ""),
            ("racks", "Racks", ""),
            ("brokers", "Brokers", f"{plan.brokers.total:,}"),
            ("diff", "Partitions", f"{plan.impact.partitions_moved:,}"),
            ("window", "Window, throttle", ""),
            ("rollback", "Rollback", ""),
        ),
    }


def _describe_request(change: ChangeRequest) -> str:
    if not change.input:
        return ""
    plan_input = unpack_dataclass(PlanInput, change.input)
    return " ".join(
        filter(
            None,
            (
                plan_input.sentence,
                rollback_source().describe_left(plan_input.of) if plan_input.mode == ROLLBACK else "",
            ),
        )
    )


def short_facts(change: ChangeRequest) -> Sequence[tuple[str, str]]:
    """For the list of changes and the bar above the review: moves, bytes, time at the proposed throttle."""
    report = getattr(change, "report", None)
    if report is None:
        return ()
    # Of what may be hundreds of brokers, a line in a list says nothing.
    impact, options = unpack_dataclass(PlanImpact, {**report.impact, "brokers": ()}), run_options(change)
    moves = impact.partitions_moved
    facts = [(f"{moves:,}", choose_plural("move|moves", moves))]
    if impact.copied_bytes is None:
        return [*facts, ("unknown", "size")]
    if impact.copied_bytes == 0:
        return [*facts, ("no", "copying")]
    figure, unit = size_text(impact.copied_bytes).split(" ", 1)
    facts.append((figure, unit))
    took = run_seconds(_find_busiest_bytes(change, impact)[0], options.throttle)
    if took:
        facts.append((run_time(took), f"at {format_megabytes(options.throttle)} MB/s"))
    return facts


def _present_proof(change: ChangeRequest, report: PlanReport, impact: PlanImpact) -> ProofWords | None:
    """Return the proof in words; None where no data moves, because nothing is to be proven."""
    if not change.input or impact.copied_bytes == 0:
        return None
    return proof_words(report, unpack_dataclass(PlanInput, change.input).aim)


def _find_busiest_bytes(change: ChangeRequest, impact: PlanImpact) -> tuple[int | None, datetime | None]:
    """Bytes through the busiest broker and when their sizes were read: by the last checks where they could tell, which
    are made again while a request waits, else as planned.
    """
    counted = next((check.get("amount") for check in change.checks if check["code"] == WINDOW), None)
    if counted is None:
        return busiest_bytes(impact), change.topology_at
    return counted, change.checked_at


def _time_at(rate: int, busiest: int | None, options: RunOptions) -> TimeAt:
    beyond = ""
    if rate > options.throttle_max:
        beyond = "above the proposed maximum"
    elif rate < options.throttle_min:
        beyond = "below the proposed minimum"
    return TimeAt(rate, run_seconds(busiest, rate), rate == options.throttle, beyond)


def _percent(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else 100 * part / whole


@require_safe
@needs_on_change(VIEW)
def topic_rows(request: HttpRequest, number: int, topic: str) -> HttpResponse:
    """Filtered and paged by the address. Static: what is approved does not move."""
    change = request_for(request, number)
    # A draft that was edited has no plan until it is planned anew; the report of the old one is no answer.
    of_its_plan = PlanTopic.objects.filter(report__request=change, report__artifact=change.artifact_id)
    found = None
    if "\x00" not in topic:  # which PostgreSQL takes in no text
        found = of_its_plan.filter(topic=topic).select_related("report").first()
    if found is None:
        raise MissingObject(ReassignmentErrorCode.NO_ROWS_OF_TOPIC, number=number, topic=topic)
    options = run_options(change)
    words = row_words(unpack_dataclass(PlanImpact, found.report.impact), options)
    context = {
        **cluster_bar(change.cluster, CollectorKind.METADATA),
        "section": "changes",
        "tab": "reassignments",
        "change": change,
        "plan": {"options": options},
        **topic_rows_context(found, words, plan_listing(request.GET)),
    }
    return render(request, "planning/topic_rows.html", context)
