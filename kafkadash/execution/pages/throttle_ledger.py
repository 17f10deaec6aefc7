"""The page of a run's throttle ledger: every throttle that the run set, the value from before, and its state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from django.core.paginator import Page
from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from kafkadash.changes.access import needs_on_change, request_for
from kafkadash.changes.transitions import change_key
from kafkadash.clusters.access import VIEW
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import choose_plural, reason_text
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.execution.claims import something_ours
from kafkadash.execution.engine.throttle_ledger import LedgerEntry, LedgerState, open_pairs
from kafkadash.execution.models import Execution, ThrottleEntry
from kafkadash.execution.models import ThrottleEntryState as StateChoice
from kafkadash.execution.worker.throttle_ledger import EVERY, entry_of
from kafkadash.kafka.throttles import LISTS, RATES, WORDS, rate_of
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.freshness import FactFreshness
from kafkadash.monitoring.models import CollectorKind, ConfigSource, ThrottledResource
from kafkadash.monitoring.throttles import list_words

_OPEN = ~Q(state=LedgerState.CLEARED.value)
_SHAPES = {
    LedgerState.INTENT: "unknown",
    LedgerState.SET: "ok",
    LedgerState.CLEARING: "unknown",
    LedgerState.CLEARED: "ok",
    LedgerState.OBLIGED: "warning",
}
_SAID = {
    LedgerState.INTENT: "Recorded; the call to Kafka is in progress.",
    LedgerState.SET: "In force as of the last reading.",
    LedgerState.CLEARING: "The original value is being restored.",
}
SHOWN = FilterChoice(
    "s",
    "choice of entries",
    {"open": "Open", "obliged": "Removal pending", "foreign": "Set by others", "cleared": "Removed"},
)
ON = FilterChoice("on", "kind of throttle", {"broker": "Brokers", "topic": "Topics"})
_RESOURCES = Case(When(resource=ThrottledResource.BROKER, then=Value(0)), default=Value(1))
_NUMBER = Case(When(resource=ThrottledResource.BROKER, then=Cast("name", IntegerField())), default=Value(0))


@dataclass(frozen=True, slots=True)
class LedgerSummary:
    """``rates`` and ``entries`` (pairs in lists) of ours that stand now, ``owed`` those that could not be cleared.

    ``foreign``: places where another value stands than ours; ``all``: entries ever made.
    """

    rates: int
    entries: int
    owed: int
    foreign: int
    all: int

    @property
    def words(self) -> str:
        """For the foot of a panel."""
        entries = choose_plural("# list entry|# list entries", self.entries)
        rates = choose_plural("# rate|# rates", self.rates)
        return f"Set by kafkadash: {rates}, {entries}. Set by others: {self.foreign:,}"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """Entry of the throttle table. ``foreign``: what stands there in the place of ours, as found, or None."""

    row: ThrottleEntry
    entry: LedgerEntry
    foreign: Mapping[str, Any] | None

    @property
    def words(self) -> str:
        return WORDS[self.row.key]

    @property
    def is_rate(self) -> bool:
        return self.row.key in RATES

    @property
    def bytes_per_second(self) -> int | None:
        return rate_of(self.row.value or self.row.requested)

    @property
    def ours_words(self) -> str:
        """Number of replicas that were added to a list, and of their partitions, in words."""
        pairs = open_pairs(self.entry) - self.entry.already
        if not pairs:
            return "none now"
        partitions = choose_plural("# partition|# partitions", len({partition for partition, _ in pairs}))
        return f"{choose_plural('# replica|# replicas', len(pairs))} of {partitions}"

    @property
    def already_words(self) -> str:
        stood = len(self.entry.already)
        texts = "# replica was listed before and stays|# replicas were listed before and stay"
        return choose_plural(texts, stood) if stood else ""

    @property
    def before_rate(self) -> int | None:
        return rate_of(self.row.previous or "")

    @property
    def before_words(self) -> str:
        """Value from before the run: "not set", a list in words, or a rate as stored."""
        if self.row.previous is None:
            return "not set"
        return self.row.previous if self.is_rate else list_words(self.row.previous)

    @property
    def source_words(self) -> str:
        return ConfigSource(self.row.previous_source).label if self.row.previous_source else ""

    @property
    def shape(self) -> str:
        return "warning" if self.foreign else _SHAPES[self.entry.state]

    @property
    def state_words(self) -> str:
        return "set by others" if self.foreign else StateChoice(self.row.state).label

    @property
    def foreign_rate(self) -> int | None:
        return rate_of(self.foreign["value"]) if self.foreign else None

    @property
    def foreign_at(self) -> datetime | None:
        return datetime.fromisoformat(self.foreign["at"]) if self.foreign else None

    @property
    def said(self) -> str:
        """Sentence with what else is known of the entry, or ''."""
        if not self.foreign:
            return reason_text(self.entry.reason) if self.entry.reason else _SAID.get(self.entry.state, "")
        left = self.foreign.get("left")
        return f"{left} decided to keep it." if left else "kafkadash does not adjust it until an operator decides."


def summary_of(execution: Execution) -> LedgerSummary:
    """Return the counts of the run's throttle entries, also for the run's page. One query, two with open entries."""
    rows = list(ThrottleEntry.objects.filter(execution=execution).values_list("state", flat=True))
    if all(state == LedgerState.CLEARED for state in rows):
        return LedgerSummary(0, 0, 0, len(execution.foreign), len(rows))
    return _summary(execution, ThrottleEntry.objects.filter(_OPEN, execution=execution), len(rows))


def _summary(execution: Execution, rows: Iterable[ThrottleEntry], number: int) -> LedgerSummary:
    entries = [entry_of(row) for row in rows]
    foreign = {(each["resource"], each["name"], each["key"]) for each in execution.foreign}
    ours = [e for e in entries if something_ours(e) and (e.place.resource, e.place.name, e.place.key) not in foreign]
    return LedgerSummary(
        rates=sum(entry.place.key in RATES for entry in ours),
        entries=sum(len(open_pairs(entry) - entry.already) for entry in ours if entry.place.key in LISTS),
        owed=sum(entry.state is LedgerState.OBLIGED for entry in entries),
        foreign=len(foreign),
        all=number,
    )


def ledger_listing(query: QueryDict) -> ListQuery:
    return ListQuery(
        query,
        choices=[SHOWN, ON],
        texts=["q"],
        sorts={"on": [_RESOURCES, _NUMBER, "name", "key"], "changed": ["changed_at", "pk"]},
        descending_first={"changed"},
    )


class RunLedgerContext(TypedDict):
    listing: ListQuery
    page: Page[Any]
    rows: list[LedgerRow]
    summary: LedgerSummary
    title: str
    ended: bool
    read: FactFreshness | None


def ledger_context(execution: Execution, number: int, query: QueryDict, now: datetime) -> RunLedgerContext:
    """Three queries."""
    listing = ledger_listing(query)
    rows = ThrottleEntry.objects.filter(execution=execution)
    summary = summary_of(execution)
    foreign = {(each["resource"], each["name"], each["key"]): each for each in execution.foreign}
    page = listing.page_of(_filtered(rows, listing, list(foreign)).order_by(*_order(listing)))
    shown = [LedgerRow(row, entry_of(row), foreign.get((row.resource, row.name, row.key))) for row in page.object_list]
    ended = execution.ended_at is not None
    return {
        "listing": listing,
        "page": page,
        "rows": shown,
        "summary": summary,
        "title": _title(number, summary, ended=ended),
        "ended": ended,
        "read": FactFreshness(execution.throttles_read_at, EVERY.total_seconds(), now)
        if execution.throttles_read_at and not (ended and not summary.owed)
        else None,
    }


def _order(listing: ListQuery) -> Sequence[Any]:
    if listing.sort == "changed":
        return listing.order()
    ascending = [_RESOURCES, _NUMBER, "name", "key"]
    return [_RESOURCES.desc(), _NUMBER.desc(), "-name", "-key"] if listing.descending else ascending


def _filtered(
    rows: QuerySet[ThrottleEntry], listing: ListQuery, foreign: Sequence[tuple[str, str, str]]
) -> QuerySet[ThrottleEntry]:
    match listing.values["s"]:
        case "open":
            rows = rows.filter(_OPEN)
        case "obliged" | "cleared" as state:
            rows = rows.filter(state=state)
        case "foreign":
            places = Q(pk__in=[])
            for resource, name, key in foreign:
                places |= Q(resource=resource, name=name, key=key)
            rows = rows.filter(places)
    if on := listing.values["on"]:
        rows = rows.filter(resource=on)
    if text := listing.values["q"]:
        rows = rows.filter(Q(name__icontains=text) | Q(key__icontains=text))
    return rows


def _title(number: int, summary: LedgerSummary, *, ended: bool) -> str:
    if not summary.all:
        return f"#{number}: no throttles set{'' if ended else ' yet'}"
    if summary.owed:
        return f"#{number}: {choose_plural('# throttle|# throttles', summary.owed)} still to be removed"
    if summary.foreign:
        return f"#{number}: {choose_plural('# throttle|# throttles', summary.foreign)} replaced by others"
    if not summary.rates and not summary.entries:
        return f"#{number}: no throttles in force"
    held = [choose_plural("# rate|# rates", summary.rates)] if summary.rates else []
    held += [choose_plural("# list entry|# list entries", summary.entries)] if summary.entries else []
    return f"#{number}: {' and '.join(held)} in force"


@require_safe
@needs_on_change(VIEW)
@revalidated
@one_moment()
def run_ledger(request: HttpRequest, number: int) -> HttpResponse:
    """Every entry, filtered, sorted and paged by the address."""
    change = request_for(request, number)
    execution = Execution.objects.filter(request=change).defer("progress", "samples", "report").first()
    if execution is None:
        return redirect("changes:request", number)
    bar = cluster_bar(change.cluster, CollectorKind.CONFIGS)
    context = {
        **bar,
        "section": "changes",
        "tab": "reassignments",
        "change": change,
        "live_keys": [change_key(number)],
        **ledger_context(execution, number, request.GET, bar["now"]),
    }
    return render(request, "execution/run_ledger.html", context)
