"""The list of change requests: what its address asks for, and its rows in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, When
from django.http import HttpRequest, QueryDict

from kafkadash.changes.decision import approvals_needed
from kafkadash.changes.kinds import ChangeKind, Run, UnknownKind, kind_of, kinds
from kafkadash.changes.models import ChangeRequest, RequestState, Verdict
from kafkadash.changes.phases import ENDED, OPEN
from kafkadash.changes.queries import waiting_for
from kafkadash.clusters.access import visible_clusters
from kafkadash.clusters.models import Cluster
from kafkadash.domain.wording import count, listed
from kafkadash.domain.workflow_states import State
from kafkadash.observe.listing import Choice, Listing

SHOW = Choice(
    "show",
    "selection",
    {
        "": "Waiting for you",
        "running": "Running",
        "open": "Open",
        "mine": "Mine",
        "ended": "Ended",
        "all": "All",
    },
)
_MOST_DIGITS = 18
RUNNING = (State.EXECUTING, State.PAUSED, State.CANCELLING, State.VERIFYING)
_HAS_RUN = (State.QUEUED, *RUNNING, State.DONE, State.CANCELLED, State.FAILED)


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One request. ``approvals`` are those that hold for what is proposed now."""

    change: ChangeRequest
    approvals: int
    run: Run | None = None

    @property
    def kind(self) -> ChangeKind | None:
        return known_kind(self.change)

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        kind = self.kind
        return kind.facts(self.change) if kind and self.change.artifact_id else ()

    @property
    def approvals_words(self) -> str:
        """Of those it needs; '' before it was proposed."""
        if self.change.approvals_needed is None or self.change.state == State.DRAFT:
            return ""
        return f"{self.approvals} of {approvals_needed(self.change)}"

    @property
    def running(self) -> bool:
        return self.run is not None and self.change.state in RUNNING

    @property
    def blocked(self) -> bool:
        return self.run is not None and bool(self.run.blocked) and not self.run.behind

    @property
    def waits_for(self) -> str:
        return waits_for(self.change, self.approvals, self.run)


def known_kind(change: ChangeRequest) -> ChangeKind | None:
    """None for a kind that this version does not know."""
    try:
        return kind_of(change.kind)
    except UnknownKind:
        return None


def run_of(change: ChangeRequest) -> Run | None:
    """None where it was never queued. One or two queries."""
    return runs_of([change]).get(change.pk) if change.state in _HAS_RUN else None


def runs_of(changes: Iterable[ChangeRequest]) -> Mapping[int, Run]:
    """By number, of those that have one; the number of queries is the same for any number of requests of one kind."""
    by_kind: dict[str, list[ChangeRequest]] = {}
    for change in changes:
        if change.state in _HAS_RUN:
            by_kind.setdefault(change.kind, []).append(change)
    found: dict[int, Run] = {}
    for own in by_kind.values():
        kind = known_kind(own[0])
        if kind is not None and kind.runs is not None:
            found |= kind.runs(own)
    return found


def waits_for(change: ChangeRequest, approvals: int, run: Run | None = None) -> str:
    """What has to happen next, '' when nothing has to."""
    match State(change.state):
        case State.DRAFT:
            return f"{change.author_name}, to propose it"
        case State.PROPOSED:
            return count(max(1, approvals_needed(change) - approvals), "approval")
        case State.STALE:
            return "a new plan"
        case State.APPROVED:
            return "an operator, to start it" if _starts(change) else ""
        case State.QUEUED if run and run.behind:
            return listed([f"#{number}" for number in run.behind])
        case State.QUEUED if run and run.blocked:
            return run.blocked
        case State.QUEUED:
            return "its turn"
        case State.PAUSED:
            return "an operator, to go on"
        case State.EXECUTING | State.CANCELLING:
            return "its rows to end"
        case State.VERIFYING:
            return "its rows to be read again"
        case _:
            return ""


def _starts(change: ChangeRequest) -> bool:
    kind = known_kind(change)
    return kind is not None and kind.starts


def change_listing(query: QueryDict, clusters: Iterable[Cluster]) -> Listing:
    return Listing(
        query,
        choices=[
            SHOW,
            Choice("cluster", "cluster", {cluster.slug: cluster.name for cluster in clusters}),
            Choice("state", "state", dict(RequestState.choices)),
        ],
        texts=["q", "author"],
        sorts={"number": [F("pk")], "since": [F("state_since"), F("pk")]},
        descending_first={"number", "since"},
    )


def list_context(request: HttpRequest, now: datetime) -> dict[str, Any]:
    """One page of the requests on clusters that this user may view; the number of queries is the same for any."""
    clusters = list(visible_clusters(request.user).only("name", "slug"))
    listing = change_listing(request.GET, clusters)
    seen = ChangeRequest.objects.filter(cluster__in=clusters)
    waiting = waiting_for(request.user)
    shown = _filtered(_selected(seen, waiting, listing, request.user.pk), listing)
    page = listing.page_of(_with_facts(shown).order_by(*_running_first(listing), *listing.order()))
    runs = runs_of(page.object_list)
    counts = seen.aggregate(
        all=Count("pk"),
        open=Count("pk", filter=Q(state__in=OPEN)),
        running=Count("pk", filter=Q(state__in=(State.QUEUED, *RUNNING))),
        ended=Count("pk", filter=Q(state__in=ENDED)),
        mine=Count("pk", filter=_mine(request.user.pk)),
    )
    return {
        "now": now,
        "clusters": clusters,
        "listing": listing,
        "page": page,
        "rows": [ChangeRow(change, change.valid_approvals, runs.get(change.pk)) for change in page.object_list],
        "counts": counts,
        "states": RequestState.choices,
        "narrowed": any(listing.values[name] for name in ("cluster", "state", "author", "q")),
    }


def segments(counts: Mapping[str, int], waiting: int) -> list[tuple[str, str, int]]:
    """Value of ``show``, its word and how many requests it has on all clusters."""
    return [(value, word, counts[value] if value else waiting) for value, word in SHOW.words.items()]


def _selected(
    seen: QuerySet[ChangeRequest], waiting: QuerySet[ChangeRequest], listing: Listing, user_id: int | None
) -> QuerySet[ChangeRequest]:
    show = listing.values["show"]
    if show == "open":
        return seen.filter(state__in=OPEN)
    if show == "running":
        return seen.filter(state__in=(State.QUEUED, *RUNNING))
    if show == "ended":
        return seen.filter(state__in=ENDED)
    if show == "mine":
        return seen.filter(_mine(user_id))
    return seen if show == "all" else seen.filter(pk__in=waiting.order_by().values("pk"))


def _mine(user_id: int | None) -> Q:
    return Q(author=user_id) | Q(hands__contains=[user_id])


def _filtered(rows: QuerySet[ChangeRequest], listing: Listing) -> QuerySet[ChangeRequest]:
    values: Mapping[str, str] = listing.values
    if slug := values["cluster"]:
        rows = rows.filter(cluster__slug=slug)
    if state := values["state"]:
        rows = rows.filter(state=state)
    if author := values["author"]:
        rows = rows.filter(author_name__icontains=author)
    if typed := values["q"]:
        about = Q(title__icontains=typed) | Q(why__icontains=typed)
        number = typed.removeprefix("#")
        if number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS:
            about |= Q(pk=int(number))
        rows = rows.filter(about)
    return rows


def _running_first(listing: Listing) -> list[Any]:
    """What runs, and then what is queued, stands above the rest until somebody sorts the list himself."""
    if listing.sort_parameter:
        return []
    return [Case(When(state__in=RUNNING, then=0), When(state=State.QUEUED, then=1), default=2)]


def _with_facts(rows: QuerySet[ChangeRequest]) -> QuerySet[ChangeRequest]:
    """With everything that a row shows, so that rows ask nothing by themselves."""
    related = {"cluster", "cluster__policy", *(name for kind in kinds() for name in kind.related)}
    valid = Q(reviews__verdict=Verdict.APPROVED, reviews__void_at=None, reviews__round=F("round"))
    return rows.select_related(*sorted(related)).annotate(valid_approvals=Count("reviews", filter=valid))
