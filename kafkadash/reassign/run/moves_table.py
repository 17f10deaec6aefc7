"""The table of the rows of a run: the 50 that matter most, which are pushed, and lists of all of them by state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.paginator import Page
from django.db.models import QuerySet
from django.http import QueryDict

from kafkadash.domain.executor_state import BEFORE, ENDED, State
from kafkadash.domain.run_progress import RunNow
from kafkadash.observe.listing import PAGE_SIZE, Choice, Listing
from kafkadash.reassign.models import Execution, Move
from kafkadash.reassign.run.counts import Counts, counts_of
from kafkadash.reassign.run.row_order import ENDED_ORDER, WAITING_ORDER, InFlight
from kafkadash.reassign.run.row_shown import RowShown
from kafkadash.reassign.run.stored import brokers_seen_away, execution_of, figures_of, freshness_of_figures

MOST_ROWS = 50
"""So many are on the page and pushed; the filters list all."""
MOST_WAITING, MOST_ENDED, LEAST_OF_EACH = 8, 5, 3
MOST_CAUSES = 5
"""So many rows have their cause and what can be done below them; those after them have it on their own page."""

SHOW = Choice(
    "s",
    "selection",
    {
        "": "All",
        "all": "All",
        "stuck": "Stuck",
        "flight": "In flight",
        "waiting": "Waiting",
        "done": "Done",
        "ended": "Ended otherwise",
    },
)


@dataclass(frozen=True, slots=True)
class Group:
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
class Segment:
    """A filter as a link, with how many rows it has. ``state`` of the status tokens where it needs somebody."""

    show: str
    words: str
    number: int
    state: str = ""


def moves_listing(query: QueryDict) -> Listing:
    """``?s=`` and ``?page=``; "all" and nothing are the rows that matter most."""
    listing = Listing(query, choices=[SHOW], sorts={"place": ["pk"]})
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
    counts: Counts | None = None,
    listing: Listing | None = None,
) -> dict[str, Any]:
    """The rows that ``listing`` asks for, 100 a page, or those that matter most; three to five queries."""
    counts = counts or counts_of(execution, figures)
    show = listing.values["s"] if listing else ""
    table = _Table(execution, figures, now)
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
    return {**context, "page": page, "groups": [Group(show, "", rows, len(rows), show)] if rows else []}


class _Table:
    def __init__(self, execution: Execution, figures: RunNow | None, now: datetime) -> None:
        self._execution, self._now = execution, now
        self._away = brokers_seen_away(execution, now)
        self._flight = InFlight(execution, figures)
        self._moves = Move.objects.filter(execution=execution)

    def segments(self, counts: Counts, show: str) -> list[Segment]:
        """Filters that have rows, and the one that is chosen."""
        others = counts.ended - counts.done
        words = "Stuck or asking" if counts.asks else "Stuck"
        found = [
            Segment("", "All", counts.total),
            Segment("stuck", words, len(self._flight.needing()), "warning"),
            Segment("flight", "In flight", len(self._flight.others())),
            Segment("waiting", "Waiting", counts.waiting),
            Segment("done", "Done", counts.done),
            Segment("ended", "Ended otherwise", others, "warning"),
        ]
        return [each for each in found if each.number or each.show in (show, *_ALWAYS)]

    def most_interesting(self, counts: Counts) -> list[Group]:
        """In flight, those first that need somebody; then what comes next and what ended last."""
        needing, others = self._flight.needing(), self._flight.others()
        kept = min(LEAST_OF_EACH, counts.waiting) + min(LEAST_OF_EACH, counts.ended)
        flight = self._shown(self._by_key([*needing, *others][: MOST_ROWS - kept]), explained=MOST_CAUSES)
        rest = MOST_ROWS - len(flight)
        next_ones = self._shown(self._waiting()[: min(MOST_WAITING, rest - min(LEAST_OF_EACH, counts.ended))])
        most_ended = MOST_ENDED if flight or next_ones else rest
        last_ones = self._shown(self._ended()[: min(most_ended, rest - len(next_ones))])
        held = f"of which {counts.held_back:,} held back" if counts.held_back else ""
        troubled = set(needing)
        groups = [
            Group("stuck", "", [row for row in flight if row.move.pk in troubled], len(needing), "stuck"),
            Group(
                "flight",
                f"In flight, {len(others):,}",
                [row for row in flight if row.move.pk not in troubled],
                len(others),
                "flight",
            ),
            Group("waiting", f"Waiting, {counts.waiting:,}", next_ones, counts.waiting, "waiting", held),
            Group(
                "ended",
                _ended_title(counts),
                last_ones,
                counts.done or counts.ended,
                "done" if counts.done else "ended",
            ),
        ]
        return [group for group in groups if group.rows]

    def page_of(self, listing: Listing, show: str) -> tuple[Page[Any], list[RowShown]]:
        if show in ("stuck", "flight"):
            keys = self._flight.needing() if show == "stuck" else self._flight.others()
            page = listing.page_of(keys)
            return page, self._shown(self._by_key(list(page.object_list)))
        if show == "waiting":
            rows = self._waiting()
        else:
            rows = self._ended().filter(state=State.DONE) if show == "done" else self._ended().exclude(state=State.DONE)
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


def _ended_title(counts: Counts) -> str:
    others = counts.ended - counts.done
    if not others:
        return f"Done, {counts.done:,}"
    ways = ", ".join(f"{number:,} {words}" for number, words in [(counts.done, "done"), *counts.exceptions])
    return f"Ended, {counts.ended:,}: {ways}"
