"""What a plan does, in sections: the review page of a reassignment and the wizard's third step show the same ones.

All of it is read from the stored report; nothing here looks at the cluster as it is now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, QueryDict

from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.impact import Impact, busiest_bytes, rates_around, run_seconds
from kafkadash.domain.plan import Options
from kafkadash.domain.reassignment_checks import WINDOW
from kafkadash.domain.wording import count, run_time
from kafkadash.domain.wording import size as size_text
from kafkadash.reassign.asked import ROLLBACK, Asked
from kafkadash.reassign.before_after import BrokerBars, RackPair, broker_bars, rack_pair
from kafkadash.reassign.models import PlanReport
from kafkadash.reassign.proof_words import ProofWords, proof_words
from kafkadash.reassign.rates import megabytes
from kafkadash.reassign.report_rows import RowWords, diff_context, plan_listing
from kafkadash.reassign.run.rollback import left_words
from kafkadash.reassign.window_facts import WindowFacts, run_options, window_facts


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
class Rollback:
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
    impact: Impact
    options: Options
    topology_at: datetime | None
    times: Sequence[TimeAt]
    racks: RackPair
    brokers: BrokerBars
    diff: Mapping[str, Any]
    window: WindowFacts
    rollback: Rollback
    proof: ProofWords | None
    busiest: int | None
    sizes_at: datetime | None

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
        """ "1 empties, 5 receive"; who receives is told by bytes, so it is left out where sizes are missing."""
        emptied = len(self.impact.emptied)
        parts = [f"{emptied:,} {'empties' if emptied == 1 else 'empty'}"] if emptied else []
        receive = sum(broker.bytes_in > 0 for broker in self.impact.brokers)
        if not self.impact.unsized and receive:
            parts.append(f"{receive:,} {'receives' if receive == 1 else 'receive'}")
        return ", ".join(parts) or "none empties"

    @property
    def leaders_words(self) -> str:
        losing = [broker.id for broker in self.impact.brokers if broker.leaders_after < broker.leaders_before]
        if not losing:
            return "no broker leads fewer" if self.impact.leaders_moved else "every leader stays"
        return f"off broker {losing[0]} only" if len(losing) == 1 else f"off {count(len(losing), 'broker')}"

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
        return f"bound by broker {impact.binding_broker}, {way}: {planned}{grown}"


def plan_page(change: ChangeRequest, query: QueryDict, now: datetime) -> PlanPage | None:
    """None where the request has no plan. Costs three queries, or four where exceptions are paged; one less where the
    request has its report already.
    """
    report: PlanReport | None = getattr(change, "report", None)
    if report is None:
        return None
    impact, options = Impact.from_json(report.impact), run_options(change)
    listing = plan_listing(query)
    words = row_words(impact, options)
    back = report.way_back
    busiest, sizes_at = _busiest(change, impact)
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
        rollback=Rollback(
            back["partitions"],
            back["copied_bytes"],
            run_seconds(back["longest_bytes"], options.throttle),
        ),
        proof=_proof(change, report, impact),
        busiest=busiest,
        sizes_at=sizes_at,
    )


def row_words(impact: Impact, options: Options) -> RowWords:
    return RowWords(impact, options.throttle, elect_leaders=options.elect_leaders)


def review_context(change: ChangeRequest, request: HttpRequest, now: datetime) -> Mapping[str, Any]:
    """Of the kind "reassignment": ``what`` it does in a sentence, ``plan`` for the template, ``sections`` for the index
    of the page.
    """
    plan = plan_page(change, request.GET, now)
    if plan is None:
        return {}
    return {
        "what": _what(change),
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


def _what(change: ChangeRequest) -> str:
    if not change.input:
        return ""
    asked = Asked.from_json(change.input)
    return " ".join(filter(None, (asked.sentence, left_words(asked.of) if asked.mode == ROLLBACK else "")))


def short_facts(change: ChangeRequest) -> Sequence[tuple[str, str]]:
    """For the list of changes and the bar above the review: moves, bytes, time at the proposed throttle."""
    report = getattr(change, "report", None)
    if report is None:
        return ()
    # Of what may be hundreds of brokers, a line in a list says nothing.
    impact, options = Impact.from_json({**report.impact, "brokers": ()}), run_options(change)
    moves = impact.partitions_moved
    facts = [(f"{moves:,}", "move" if moves == 1 else "moves")]
    if impact.copied_bytes is None:
        return [*facts, ("unknown", "size")]
    if impact.copied_bytes == 0:
        return [*facts, ("no", "copying")]
    figure, unit = size_text(impact.copied_bytes).split(" ", 1)
    facts.append((figure, unit))
    took = run_seconds(_busiest(change, impact)[0], options.throttle)
    if took:
        facts.append((run_time(took), f"at {megabytes(options.throttle)} MB/s"))
    return facts


def _proof(change: ChangeRequest, report: PlanReport, impact: Impact) -> ProofWords | None:
    """Where no data moves there is nothing to prove."""
    if not change.input or impact.copied_bytes == 0:
        return None
    return proof_words(report, Asked.from_json(change.input).aim)


def _busiest(change: ChangeRequest, impact: Impact) -> tuple[int | None, datetime | None]:
    """Bytes through the busiest broker and when their sizes were read: by the last checks where they could tell, which
    are made again while a request waits, else as planned.
    """
    counted = next((check.get("amount") for check in change.checks if check["code"] == WINDOW), None)
    if counted is None:
        return busiest_bytes(impact), change.topology_at
    return counted, change.checked_at


def _time_at(rate: int, busiest: int | None, options: Options) -> TimeAt:
    beyond = ""
    if rate > options.throttle_max:
        beyond = "above what is asked for"
    elif rate < options.throttle_min:
        beyond = "below what is asked for"
    return TimeAt(rate, run_seconds(busiest, rate), rate == options.throttle, beyond)


def _percent(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else 100 * part / whole
