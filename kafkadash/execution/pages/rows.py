"""Rows of a run as its pages show them: the figures, texts and actions of one row, and the table of rows.

The table has the 50 rows that need the most attention, which are pushed, and lists of all rows by state.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page
from django.db.models import F, QuerySet
from django.http import QueryDict
from django.urls import reverse

from kafkadash.core.formatting import long_duration
from kafkadash.core.listing import PAGE_SIZE, FilterChoice, ListQuery
from kafkadash.core.messages import reason_text
from kafkadash.execution.engine.reasons import StuckReason
from kafkadash.execution.engine.state import BEFORE, ENDED, IN_FLIGHT, RowState
from kafkadash.execution.messages import SENTENCES, SHORTLY
from kafkadash.execution.models import Execution, Move, MoveState, OrderType
from kafkadash.execution.pages.counts import (
    RowCounts,
    brokers_seen_away,
    counts_of,
    execution_of,
    figures_of,
    freshness_of_figures,
)
from kafkadash.execution.progress.figures import RowMark, RowNow, RunNow, StuckCause
from kafkadash.execution.progress.stuck import StuckFix, suggest_fixes

_ENDED_STATES = {
    RowState.DONE: "ok",
    RowState.FAILED: "critical",
    RowState.SKIPPED: "warning",
    RowState.SUPERSEDED: "warning",
    RowState.TOPIC_DELETED: "warning",
}
_LATE = timedelta(seconds=30)
"""A time of completion that is over for so long was wrong, or its figures are old."""


@dataclass(frozen=True, slots=True)
class RowAction:
    """Action offered for a row: a link from the page of the run to where the action is asked for."""

    words: str
    href: str


@dataclass(frozen=True, slots=True)
class RowShown:
    """A row at ``now`` of the run of #``number``; ``seen`` are its figures of the last step while it is in flight, None
    where there are none. ``explained``: its cause and what can be done stand below it, if there is something. ``away``:
    brokers that the last look of the run did not see alive.
    """

    move: Move
    seen: RowNow | None
    now: datetime
    number: int
    explained: bool = False
    away: frozenset[int] = frozenset()

    @property
    def state(self) -> RowState:
        return RowState(self.move.state)

    @property
    def in_flight(self) -> bool:
        return self.state in IN_FLIGHT

    @property
    def waits(self) -> bool:
        return self.state in BEFORE

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def name(self) -> str:
        return f"{self.move.topic}-{self.move.partition}"

    @property
    def adding(self) -> list[int]:
        return [broker for broker in self.move.target if broker not in self.move.current]

    @property
    def removing(self) -> list[int]:
        return [broker for broker in self.move.current if broker not in self.move.target]

    @property
    def copies(self) -> bool:
        return bool(self.adding)

    @property
    def from_words(self) -> str:
        if self.removing:
            return _format_brokers(self.removing)
        return "none removed" if self.copies else _format_brokers(self.move.current)

    @property
    def to_words(self) -> str:
        if self.copies:
            return _format_brokers(self.adding)
        return "none added" if self.removing else _format_brokers(self.move.target)

    @property
    def source(self) -> int | None:
        return self.seen.source if self.in_flight and self.seen else None

    @property
    def percent(self) -> float | None:
        """Percent of the row's records that were copied; 100 for a row that is done."""
        if self.state is RowState.DONE and self.copies:
            return 100.0
        return self.seen.percent if self.in_flight and self.seen else None

    @property
    def sampled_at(self) -> datetime | None:
        """When the replicas behind its percent were asked, while it is in flight."""
        return self.seen.sampled_at if self.in_flight and self.seen and self.seen.percent is not None else None

    @property
    def estimate(self) -> str:
        return self.seen.estimate if self.in_flight and self.seen else ""

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all copies that the row makes; None where not known."""
        if self.in_flight and self.seen and self.seen.size_bytes is not None:
            return self.seen.size_bytes
        return None if self.move.size_bytes is None else self.move.size_bytes * len(self.adding)

    @property
    def moved_bytes(self) -> int | None:
        if self.ended:
            return self.move.moved_bytes
        return self.seen.moved_bytes if self.in_flight and self.seen else None

    @property
    def remaining_bytes(self) -> int | None:
        if self.state is RowState.DONE:
            return 0
        return self.seen.remaining_bytes if self.in_flight and self.seen else None

    @property
    def began_at(self) -> datetime | None:
        return self.move.first_at or self.move.submitted_at

    @property
    def took_s(self) -> float | None:
        if not self.ended or self.move.since is None or self.began_at is None:
            return None
        return max(0.0, (self.move.since - self.began_at).total_seconds())

    @property
    def rate(self) -> float | None:
        """Bytes per second; of what has ended, the mean."""
        if self.in_flight:
            return self.seen.rate if self.seen else None
        return self.moved_bytes / self.took_s if self.moved_bytes and self.took_s else None

    @property
    def eta(self) -> datetime | None:
        seen = self.seen
        if not self.in_flight or seen is None or seen.eta_s is None or not math.isfinite(seen.eta_s) or self.caught_up:
            return None
        at = (seen.sampled_at or self.now) + timedelta(seconds=seen.eta_s)
        return at if at > self.now - _LATE else None

    @property
    def caught_up(self) -> bool:
        return self.state is RowState.CATCHING_UP

    @property
    def eta_words(self) -> str:
        """Why there is no time of completion."""
        seen = self.seen
        if self.caught_up:
            return "finishing" if seen and seen.in_isr else "not in ISR yet"
        if seen is None or seen.eta_s is None or (math.isfinite(seen.eta_s) and self.eta is None):
            return "unknown"
        return "" if math.isfinite(seen.eta_s) else "no progress"

    @property
    def stuck(self) -> bool:
        return self.in_flight and self.seen is not None and self.seen.mark is RowMark.STUCK

    @property
    def slow(self) -> bool:
        return self.in_flight and self.seen is not None and self.seen.mark is RowMark.SLOW

    @property
    def tone(self) -> str:
        """A state of the status tokens for the whole row, '' for none."""
        return "warning" if self.stuck or self.move.asks else ""

    @property
    def pill(self) -> str:
        """Label of the row's problem, in two words; '' without one."""
        if self.move.asks:
            return "Needs a decision"
        if self.stuck:
            return f"Stuck{self._still_for}"
        return f"Slow{self._still_for}" if self.slow else ""

    @property
    def _still_for(self) -> str:
        grew = self.seen.grew_at if self.seen else None
        return f" {long_duration((self.now - grew).total_seconds())}" if grew else ""

    @property
    def mark(self) -> str:
        """The state of its mark, where it has one besides its words."""
        if self.state is RowState.UNKNOWN:
            return "unknown"
        return _ENDED_STATES.get(self.state, "")

    @property
    def words(self) -> str:
        return MoveState(self.move.state).label

    @property
    def classes(self) -> str:
        """CSS classes of the row in the table."""
        own = "waits" if self.waits else "ended" if self.ended else ""
        return "has-cause" if self.tone and self.explained else own

    @property
    def said(self) -> str:
        """Below its state: which of its brokers is down, and why it is in it, unless that is said below the row."""
        return " ".join(filter(None, (self.down, self._why)))

    @property
    def down(self) -> str:
        """Return a text such as "Broker 4 is down." of a row that has not ended."""
        replicas = {*self.move.current, *self.move.target}
        return "" if self.ended else " ".join(f"Broker {id_} is down." for id_ in sorted(self.away & replicas))

    @property
    def _why(self) -> str:
        if self.tone and self.explained:
            return ""
        if (self.stuck or self.slow) and self.seen is not None:
            return SHORTLY[self._stuck_cause]
        return self.reason or (f"estimate ({self.estimate})" if self.estimate else "")

    @property
    def reason(self) -> str:
        return reason_text(self.move.reason)

    @property
    def cause(self) -> str:
        """In a sentence, '' where it gets on."""
        if self.move.asks:
            return "Kafka shows no effect of the submission."
        if not (self.stuck or self.slow) or self.seen is None:
            return ""
        return SENTENCES[self._stuck_cause]

    @property
    def _stuck_cause(self) -> StuckCause:
        why = self.seen.why if self.seen else None
        return why.cause if isinstance(why, StuckReason) else StuckCause.UNKNOWN

    @property
    def cause_words(self) -> str:
        if self.move.asks:
            return self.reason
        return reason_text(self.seen.why) if self.seen else ""

    @property
    def link(self) -> str:
        """To its own page, from that of the run: short, because it is pushed."""
        return f"row/?move={self.move.pk}"

    @property
    def address(self) -> str:
        named = urlencode({"topic": self.move.topic, "partition": self.move.partition})
        return f"{reverse('execution:run_row', args=[self.number])}?{named}"

    @property
    def actions(self) -> Sequence[RowAction]:
        """Actions for the row, the most helpful first."""
        if self.move.asks:
            texts = {OrderType.AGAIN: "Submit again…", OrderType.GIVE_UP: "Give up move…"}
            return [self._order_action(order_type, text) for order_type, text in texts.items()]
        offered = {
            StuckFix.RAISE_THROTTLE: RowAction("Raise throttle", "#throttle"),
            StuckFix.SETTLE_THROTTLE: RowAction("Resolve throttle conflict", "#foreign"),
            StuckFix.ELECT_LEADER: self._order_action(OrderType.ELECT, "Elect preferred leader…"),
            StuckFix.REPLAN_ROW: RowAction("Re-plan move…", f"{self.link}#replan"),
            StuckFix.CANCEL_ROW: self._order_action(OrderType.CANCEL_ROW, "Cancel move…"),
        }
        return [offered[fix] for fix in suggest_fixes(self._stuck_cause) if fix in offered]

    def _order_action(self, order_type: OrderType, words: str) -> RowAction:
        return RowAction(words, f"{self.link}#{order_type.value}")

    @property
    def order_types(self) -> Sequence[tuple[OrderType, str]]:
        """Order types that may be given for the row now, each with a sentence on its effect."""
        if self.ended or self.state is RowState.CANCELLING:
            return ()
        if self.move.asks:
            return (
                (OrderType.AGAIN, "The move waits for its turn as if never submitted."),
                (OrderType.GIVE_UP, "The move ends as cancelled. Nothing more is sent for it."),
            )
        found = [
            (
                OrderType.CANCEL_ROW,
                "Copied data is discarded and the replicas return to the original ones. Other moves continue."
                if self.in_flight
                else "The move does not start. Other moves continue.",
            )
        ]
        if self.in_flight:
            found.append((OrderType.ELECT, "The first replica becomes the leader if it is in sync."))
        return tuple(found)

    @property
    def title(self) -> str:
        if self.pill:
            return f"{self.name}: {self.pill[:1].lower()}{self.pill[1:]}"
        return f"{self.name}: {self.words}"


def _format_brokers(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))


WAITING_ORDER = (F("size_bytes").desc(nulls_last=True), "topic", "partition")
ENDED_ORDER = (F("since").desc(nulls_last=True), "topic", "partition")

_STUCK, _SLOW, _ASKS, _UNKNOWN, _CANCELLING, _CATCHES_UP, _COPIES = range(7)
_RANKS = {RowState.UNKNOWN: _UNKNOWN, RowState.CANCELLING: _CANCELLING, RowState.CATCHING_UP: _CATCHES_UP}
_NEVER = datetime.max.replace(tzinfo=UTC)


class RowsInFlight:
    """The keys of all rows in flight, those first that look worst."""

    def __init__(self, execution: Execution, figures: RunNow | None) -> None:
        self._seen = {(row.topic, row.partition): row for row in figures.rows} if figures else {}
        found = Move.objects.filter(execution=execution, state__in=IN_FLIGHT).values_list(
            "pk", "topic", "partition", "state", "asks", "since"
        )
        self._ranked = sorted(
            (self._rank(topic, partition, state, asks), since or _NEVER, topic, partition, pk)
            for pk, topic, partition, state, asks, since in found
        )

    def seen(self, move: Move) -> RowNow | None:
        return self._seen.get((move.topic, move.partition))

    def needing(self) -> list[int]:
        """Return the keys of the rows that are stuck or ask."""
        return [row[-1] for row in self._ranked if row[0] in (_STUCK, _ASKS)]

    def others(self) -> list[int]:
        return [row[-1] for row in self._ranked if row[0] not in (_STUCK, _ASKS)]

    def _rank(self, topic: str, partition: int, state: str, asks: bool) -> int:
        seen = self._seen.get((topic, partition))
        if asks:
            return _ASKS
        if seen is not None and seen.mark is RowMark.STUCK:
            return _STUCK
        if seen is not None and seen.mark is RowMark.SLOW:
            return _SLOW
        return _RANKS.get(RowState(state), _COPIES)


MOST_ROWS = 50
"""So many are on the page and pushed; the filters list all."""
MOST_WAITING, MOST_ENDED, LEAST_OF_EACH = 8, 5, 3
MOST_CAUSES = 5
"""So many rows have their cause and what can be done below them; those after them have it on their own page."""

SHOW = FilterChoice(
    "s",
    "selection",
    {
        "": "All",
        "all": "All",
        "stuck": "Stuck",
        "flight": "In flight",
        "waiting": "Waiting",
        "done": "Completed",
        "ended": "Not completed",
    },
)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows under one heading; ``total`` of them there are, ``show`` is the filter that lists all."""

    name: str
    title: str
    rows: Sequence[RowShown]
    total: int
    show: str
    note: str = ""

    @property
    def more(self) -> bool:
        return self.total > len(self.rows)


@dataclass(frozen=True, slots=True)
class RowSegment:
    """A filter as a link, with how many rows it has. ``state`` of the status tokens where it needs somebody."""

    show: str
    words: str
    number: int
    state: str = ""


def moves_listing(query: QueryDict) -> ListQuery:
    """``?s=`` and ``?page=``; "all" and nothing are the rows that matter most."""
    listing = ListQuery(query, choices=[SHOW], sorts={"place": ["pk"]})
    if listing.values["s"] == "all":
        listing.values["s"] = ""
    return listing


def moves_part(number: int, now: datetime) -> Mapping[str, Any] | None:
    """The panel as it is pushed."""
    execution = execution_of(number)
    return None if execution is None else moves_context(execution, figures_of(execution), now)


def moves_context(
    execution: Execution,
    figures: RunNow | None,
    now: datetime,
    counts: RowCounts | None = None,
    listing: ListQuery | None = None,
) -> dict[str, Any]:
    """The rows that ``listing`` asks for, 100 a page, or those that matter most; three to five queries."""
    counts = counts or counts_of(execution, figures)
    show = listing.values["s"] if listing else ""
    table = _RowTable(execution, figures, now)
    context = {
        "number": execution.request_id,
        "anchor": f"#moves-{execution.request_id}",
        "now": now,
        "sampled_at": execution.progress_at,
        "freshness": freshness_of_figures(execution, now),
        "ended": execution.ended_at is not None,
        "counts": counts,
        "show": show,
        "segments": table.segments(counts, show),
        "page": None,
        "listing": listing,
    }
    if listing is None or not show:
        return {**context, "groups": table.most_interesting(counts)}
    page, rows = table.page_of(listing, show)
    return {**context, "page": page, "groups": [RowGroup(show, "", rows, len(rows), show)] if rows else []}


class _RowTable:
    def __init__(self, execution: Execution, figures: RunNow | None, now: datetime) -> None:
        self._execution, self._now = execution, now
        self._away = brokers_seen_away(execution, now)
        self._flight = RowsInFlight(execution, figures)
        self._moves = Move.objects.filter(execution=execution)

    def segments(self, counts: RowCounts, show: str) -> list[RowSegment]:
        """Filters that have rows, and the one that is chosen."""
        others = counts.ended - counts.done
        words = "Stuck or awaiting a decision" if counts.asks else "Stuck"
        found = [
            RowSegment("", "All", counts.total),
            RowSegment("stuck", words, len(self._flight.needing()), "warning"),
            RowSegment("flight", "In flight", len(self._flight.others())),
            RowSegment("waiting", "Waiting", counts.waiting),
            RowSegment("done", "Completed", counts.done),
            RowSegment("ended", "Not completed", others, "warning"),
        ]
        return [each for each in found if each.number or each.show in (show, *_ALWAYS)]

    def most_interesting(self, counts: RowCounts) -> list[RowGroup]:
        """In flight, those first that need somebody; then what comes next and what ended last."""
        needing, others = self._flight.needing(), self._flight.others()
        kept = min(LEAST_OF_EACH, counts.waiting) + min(LEAST_OF_EACH, counts.ended)
        flight = self._shown(self._by_key([*needing, *others][: MOST_ROWS - kept]), explained=MOST_CAUSES)
        rest = MOST_ROWS - len(flight)
        next_ones = self._shown(self._waiting()[: min(MOST_WAITING, rest - min(LEAST_OF_EACH, counts.ended))])
        most_ended = MOST_ENDED if flight or next_ones else rest
        last_ones = self._shown(self._ended()[: min(most_ended, rest - len(next_ones))])
        held = f"{counts.held_back:,} held" if counts.held_back else ""
        troubled = set(needing)
        groups = [
            RowGroup("stuck", "", [row for row in flight if row.move.pk in troubled], len(needing), "stuck"),
            RowGroup(
                "flight",
                f"In flight, {len(others):,}",
                [row for row in flight if row.move.pk not in troubled],
                len(others),
                "flight",
            ),
            RowGroup("waiting", f"Waiting, {counts.waiting:,}", next_ones, counts.waiting, "waiting", held),
            RowGroup(
                "ended",
                _ended_title(counts),
                last_ones,
                counts.done or counts.ended,
                "done" if counts.done else "ended",
            ),
        ]
        return [group for group in groups if group.rows]

    def page_of(self, listing: ListQuery, show: str) -> tuple[Page[Any], list[RowShown]]:
        if show in ("stuck", "flight"):
            keys = self._flight.needing() if show == "stuck" else self._flight.others()
            page = listing.page_of(keys)
            return page, self._shown(self._by_key(list(page.object_list)))
        if show == "waiting":
            rows = self._waiting()
        else:
            rows = (
                self._ended().filter(state=RowState.DONE)
                if show == "done"
                else self._ended().exclude(state=RowState.DONE)
            )
        page = listing.page_of(rows)
        return page, self._shown(page.object_list)

    def _waiting(self) -> QuerySet[Move]:
        return self._moves.filter(state__in=BEFORE).order_by(*WAITING_ORDER)

    def _ended(self) -> QuerySet[Move]:
        return self._moves.filter(state__in=ENDED).order_by(*ENDED_ORDER)

    def _by_key(self, keys: Sequence[int]) -> list[Move]:
        found = Move.objects.in_bulk(list(keys))
        return [found[key] for key in keys if key in found]

    def _shown(self, moves: Iterable[Move], explained: int = PAGE_SIZE) -> list[RowShown]:
        number = self._execution.request_id
        return [
            RowShown(move, self._flight.seen(move), self._now, number, explained=place < explained, away=self._away)
            for place, move in enumerate(moves)
        ]


_ALWAYS = ("", "flight", "waiting", "done")


def _ended_title(counts: RowCounts) -> str:
    others = counts.ended - counts.done
    if not others:
        return f"Completed, {counts.done:,}"
    ways = ", ".join(f"{number:,} {words}" for number, words in [(counts.done, "completed"), *counts.exceptions])
    return f"Ended, {counts.ended:,}: {ways}"
