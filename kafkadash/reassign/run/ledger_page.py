"""The ledger of a run as its page shows it: every throttle it set, what stood there before, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Cast
from django.http import QueryDict

from kafkadash.domain.ledger import Entry, EntryState
from kafkadash.domain.ledger_lists import open_pairs
from kafkadash.domain.throttled_replicas import WORDS, rate_of
from kafkadash.domain.throttles import LISTS, RATES
from kafkadash.domain.wording import count
from kafkadash.observe.listing import Choice, Listing
from kafkadash.observe.models import ConfigSource, ThrottledResource
from kafkadash.observe.standing import Freshness
from kafkadash.observe.throttle_rows import list_words
from kafkadash.reassign.models import EntryState as StateChoice
from kafkadash.reassign.models import Execution, ThrottleEntry
from kafkadash.reassign.run.claims import something_ours
from kafkadash.reassign.run.ledger_rows import entry_of
from kafkadash.reassign.run.throttle_reads import EVERY

_OPEN = ~Q(state=EntryState.CLEARED.value)
_SHAPES = {
    EntryState.INTENT: "unknown",
    EntryState.SET: "ok",
    EntryState.CLEARING: "unknown",
    EntryState.CLEARED: "ok",
    EntryState.OBLIGED: "warning",
}
_SAID = {
    EntryState.INTENT: "Written down; its call is under way.",
    EntryState.SET: "It is in force, as far as was read.",
    EntryState.CLEARING: "What stood there before is being put back.",
}
SHOWN = Choice(
    "s",
    "choice of entries",
    {"open": "Open", "obliged": "To be cleared later", "foreign": "Not ours", "cleared": "Cleared"},
)
ON = Choice("on", "kind of throttle", {"broker": "Brokers", "topic": "Topics"})
_RESOURCES = Case(When(resource=ThrottledResource.BROKER, then=Value(0)), default=Value(1))
_NUMBER = Case(When(resource=ThrottledResource.BROKER, then=Cast("name", IntegerField())), default=Value(0))


@dataclass(frozen=True, slots=True)
class Summary:
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
        entries = count(self.entries, "entry", "entries")
        return f"Ours: {count(self.rates, 'rate')}, {entries}. Not ours: {self.foreign:,}"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One entry. ``foreign``: what stands there in the place of ours, as found, or nothing."""

    row: ThrottleEntry
    entry: Entry
    foreign: Mapping[str, Any] | None

    @property
    def words(self) -> str:
        return WORDS[self.row.key]

    @property
    def is_rate(self) -> bool:
        return self.row.key in RATES

    @property
    def bytes_per_second(self) -> int | None:
        return rate_of(self.row.value or self.row.asked)

    @property
    def ours_words(self) -> str:
        """Of a list: how many replicas were added for how many partitions."""
        pairs = open_pairs(self.entry) - self.entry.already
        if not pairs:
            return "nothing now"
        return f"{count(len(pairs), 'replica')} of {count(len({partition for partition, _ in pairs}), 'partition')}"

    @property
    def already_words(self) -> str:
        stood = len(self.entry.already)
        return f"{count(stood, 'replica')} stood there before, and {'stays' if stood == 1 else 'stay'}" if stood else ""

    @property
    def before_rate(self) -> int | None:
        return rate_of(self.row.previous or "")

    @property
    def before_words(self) -> str:
        """What stood there before us, for a list or where it was nothing."""
        if self.row.previous is None:
            return "nothing"
        return self.row.previous if self.is_rate else list_words(self.row.previous)

    @property
    def source_words(self) -> str:
        return ConfigSource(self.row.previous_source).label if self.row.previous_source else ""

    @property
    def shape(self) -> str:
        return "warning" if self.foreign else _SHAPES[self.entry.state]

    @property
    def state_words(self) -> str:
        return "not ours now" if self.foreign else StateChoice(self.row.state).label

    @property
    def foreign_rate(self) -> int | None:
        return rate_of(self.foreign["value"]) if self.foreign else None

    @property
    def foreign_at(self) -> datetime | None:
        return datetime.fromisoformat(self.foreign["at"]) if self.foreign else None

    @property
    def said(self) -> str:
        """What else is to be known of it."""
        if not self.foreign:
            return self.row.words or _SAID.get(self.entry.state, "")
        left = self.foreign.get("left")
        return f"{left} decided to leave it." if left else "It is not adjusted until somebody decides."


def summary_of(execution: Execution) -> Summary:
    """One query; for the run's page too."""
    rows = list(ThrottleEntry.objects.filter(execution=execution).values_list("state", flat=True))
    if all(state == EntryState.CLEARED for state in rows):
        return Summary(0, 0, 0, len(execution.foreign), len(rows))
    return _summary(execution, ThrottleEntry.objects.filter(_OPEN, execution=execution), len(rows))


def _summary(execution: Execution, rows: Iterable[ThrottleEntry], number: int) -> Summary:
    entries = [entry_of(row) for row in rows]
    foreign = {(each["resource"], each["name"], each["key"]) for each in execution.foreign}
    ours = [e for e in entries if something_ours(e) and (e.place.resource, e.place.name, e.place.key) not in foreign]
    return Summary(
        rates=sum(entry.place.key in RATES for entry in ours),
        entries=sum(len(open_pairs(entry) - entry.already) for entry in ours if entry.place.key in LISTS),
        owed=sum(entry.state is EntryState.OBLIGED for entry in entries),
        foreign=len(foreign),
        all=number,
    )


def ledger_listing(query: QueryDict) -> Listing:
    return Listing(
        query,
        choices=[SHOWN, ON],
        texts=["q"],
        sorts={"on": [_RESOURCES, _NUMBER, "name", "key"], "changed": ["changed_at", "pk"]},
        descending_first={"changed"},
    )


def ledger_context(execution: Execution, number: int, query: QueryDict, now: datetime) -> dict[str, Any]:
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
        "read": Freshness(execution.throttles_read_at, EVERY.total_seconds(), now)
        if execution.throttles_read_at and not (ended and not summary.owed)
        else None,
    }


def _order(listing: Listing) -> Sequence[Any]:
    if listing.sort == "changed":
        return listing.order()
    ascending = [_RESOURCES, _NUMBER, "name", "key"]
    return [_RESOURCES.desc(), _NUMBER.desc(), "-name", "-key"] if listing.descending else ascending


def _filtered(
    rows: QuerySet[ThrottleEntry], listing: Listing, foreign: Sequence[tuple[str, str, str]]
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


def _title(number: int, summary: Summary, *, ended: bool) -> str:
    if not summary.all:
        return f"#{number} has set no throttle{'' if ended else ' yet'}."
    if summary.owed:
        return f"{count(summary.owed, 'throttle')} of #{number} {_are(summary.owed)} still to be cleared."
    if summary.foreign:
        return (
            f"{count(summary.foreign, 'throttle')} in the place of those of #{number} {_are(summary.foreign)} not ours."
        )
    if not summary.rates and not summary.entries:
        return (
            f"Nothing that #{number} set is in force any more." if ended else f"Nothing of #{number} is in force now."
        )
    held = [count(summary.rates, "rate")] if summary.rates else []
    held += [count(summary.entries, "entry", "entries")] if summary.entries else []
    return f"#{number} holds {' and '.join(held)}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
