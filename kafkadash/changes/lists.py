"""The list of change requests, the count of requests that wait for the signed-in user, and the display of states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, TypedDict

from django.contrib.auth.models import AnonymousUser
from django.core.paginator import Page
from django.db import connection
from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, When
from django.db.models.functions import Now
from django.http import HttpRequest, QueryDict
from django.utils.functional import SimpleLazyObject

from kafkadash.accounts.models import User
from kafkadash.changes.decision import approvals_needed
from kafkadash.changes.kinds import ChangeKind, RunSummary, UnknownChangeKind, kind_of, registered_kinds
from kafkadash.changes.models import ChangeRequest, Policy, RequestState, Review, ReviewVerdict
from kafkadash.changes.state_machine import RAN, RUNNING, STEPPED, ChangeState
from kafkadash.clusters.access import APPROVE, PROPOSE, START, clusters_allowing, visible_clusters
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import join_items
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import choose_plural


def waiting_for(user: User | AnonymousUser) -> QuerySet[ChangeRequest]:
    """Return the requests that this person can bring forward now, as one query.

    Proposed requests that he may approve: by role, on a cluster that is not read-only, with no hand in them unless the
    policy allows it, and not decided by him in this round. And those he has a hand in: stale ones, to refresh or to
    withdraw, and approved ones that may be started, unless they wait for their window.
    """
    if not user.is_authenticated:
        return ChangeRequest.objects.none()
    decided = Review.objects.filter(request=OuterRef("pk"), user=user.pk, round=OuterRef("round"), void_at=None)
    own = Q(contributor_ids__contains=[user.pk])
    may_approve_own = Q(least_approvals=1) & Exists(
        Policy.objects.filter(cluster=OuterRef("cluster"), self_approval=True)
    )
    to_approve = (
        Q(state=ChangeState.PROPOSED, cluster__in=clusters_allowing(user, APPROVE).order_by(), cluster__read_only=False)
        & (~own | may_approve_own)
        & ~Exists(decided)
    )
    to_refresh = own & Q(state=ChangeState.STALE, cluster__in=clusters_allowing(user, PROPOSE).order_by())
    to_start = (
        own
        & Q(state=ChangeState.APPROVED, kind__in=[kind.name for kind in registered_kinds() if kind.starts])
        & Q(cluster__in=clusters_allowing(user, START).order_by(), cluster__read_only=False)
        & (Q(not_before=None) | Q(not_before__lte=Now()))
    )
    return ChangeRequest.objects.filter(to_approve | to_refresh | to_start)


def waiting_count(user: User | AnonymousUser) -> int:
    """For the navigation of every page; one query."""
    if not user.is_authenticated:
        return 0
    statement, parameters = _count_statement(user.pk)
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        (count,) = cursor.fetchone()
    return int(count)


@lru_cache(maxsize=1000)
def _count_statement(user_id: int) -> tuple[str, tuple[Any, ...]]:
    """SQL and its parameters, kept: they depend on nothing else, and building them takes longer than the answer."""
    rows, parameters = waiting_for(User(pk=user_id)).order_by().values("pk").query.sql_with_params()
    return f"SELECT count(*) FROM ({rows}) AS waiting", parameters  # noqa: S608  no text of anybody is in it


ENDED = (ChangeState.DONE, ChangeState.CANCELLED, ChangeState.FAILED, ChangeState.DECLINED, ChangeState.EXPIRED)
OPEN = tuple(state for state in ChangeState if state not in ENDED)


@dataclass(frozen=True, slots=True)
class ChangePhase:
    """``phase`` is one of draft, proposed, approved, executing, done, ended; ``trouble`` a state of the status tokens
    instead, where the request cannot go on by itself.
    """

    word: str
    phase: str = ""
    trouble: str = ""


_PHASES = {
    ChangeState.DRAFT: ChangePhase("Draft", "draft"),
    ChangeState.PROPOSED: ChangePhase("Proposed", "proposed"),
    ChangeState.APPROVED: ChangePhase("Approved", "approved"),
    ChangeState.QUEUED: ChangePhase("Queued", "approved"),
    ChangeState.STALE: ChangePhase("Stale", trouble="warning"),
    ChangeState.EXECUTING: ChangePhase("Executing", "executing"),
    ChangeState.PAUSED: ChangePhase("Paused", "executing"),
    ChangeState.CANCELLING: ChangePhase("Cancelling", "executing"),
    ChangeState.VERIFYING: ChangePhase("Verifying", "executing"),
    ChangeState.DONE: ChangePhase("Done", "done"),
    ChangeState.CANCELLED: ChangePhase("Cancelled", "ended"),
    ChangeState.FAILED: ChangePhase("Failed", trouble="critical"),
    ChangeState.DECLINED: ChangePhase("Declined", "ended"),
    ChangeState.EXPIRED: ChangePhase("Expired", "ended"),
}


def phase_of(state: str) -> ChangePhase:
    return _PHASES[ChangeState(state)]


@dataclass(frozen=True, slots=True)
class PhaseStep:
    """``state``: done, current or '' for one that is to come."""

    word: str
    state: str


def build_steps(state: str, *, submitted: bool, starts: bool) -> Sequence[PhaseStep]:
    """The life of a request for the stepper; with ``starts`` also what follows an approval."""
    now = ChangeState(state)
    words = ["Draft", "Proposed", "Approved", *(("Executing", "Verifying", "Done") if starts else ())]
    place = _PLACES.get(now)
    if place is not None and place < len(words):
        words[place] = phase_of(state).word
        return [
            PhaseStep(word, "done" if at < place else "current" if at == place else "") for at, word in enumerate(words)
        ]
    passed = words[: 2 if submitted else 1]
    return [*(PhaseStep(word, "done") for word in passed), PhaseStep(phase_of(state).word, "current")]


_PLACES = {
    ChangeState.DRAFT: 0,
    ChangeState.PROPOSED: 1,
    ChangeState.STALE: 1,
    ChangeState.APPROVED: 2,
    ChangeState.QUEUED: 2,
    ChangeState.EXECUTING: 3,
    ChangeState.PAUSED: 3,
    ChangeState.CANCELLING: 3,
    ChangeState.VERIFYING: 4,
    ChangeState.DONE: 5,
}


SHOW = FilterChoice(
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
_HAS_RUN = (*STEPPED, *RAN)


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """Row of one request. ``approvals`` are those that hold for what is proposed now."""

    change: ChangeRequest
    approvals: int
    run: RunSummary | None = None

    @property
    def kind(self) -> ChangeKind | None:
        return known_kind(self.change)

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        kind = self.kind
        return kind.facts(self.change) if kind and self.change.artifact_id else ()

    @property
    def approvals_words(self) -> str:
        """Approvals given of those that the request needs, in words; '' before it was proposed."""
        if self.change.approvals_needed is None or self.change.state == ChangeState.DRAFT:
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
    except UnknownChangeKind:
        return None


def run_of(change: ChangeRequest) -> RunSummary | None:
    """None where it was never queued. One or two queries."""
    return runs_of([change]).get(change.pk) if change.state in _HAS_RUN else None


def runs_of(changes: Iterable[ChangeRequest]) -> Mapping[int, RunSummary]:
    """By number, of those that have one; the number of queries is the same for any number of requests of one kind."""
    by_kind: dict[str, list[ChangeRequest]] = {}
    for change in changes:
        if change.state in _HAS_RUN:
            by_kind.setdefault(change.kind, []).append(change)
    found: dict[int, RunSummary] = {}
    for own in by_kind.values():
        kind = known_kind(own[0])
        if kind is not None and kind.runs is not None:
            found |= kind.runs(own)
    return found


def waits_for(change: ChangeRequest, approvals: int, run: RunSummary | None = None) -> str:
    """Return who has to do what next, or what the request is waiting for; '' for nothing."""
    match ChangeState(change.state):
        case ChangeState.DRAFT:
            return "author: submit"
        case ChangeState.PROPOSED:
            return choose_plural("approver: review|# approvers: review", max(1, approvals_needed(change) - approvals))
        case ChangeState.STALE:
            return "author: refresh plan"
        case ChangeState.APPROVED:
            return "operator: start" if _can_start(change) else ""
        case ChangeState.QUEUED if run and run.behind:
            return f"after {join_items([f'#{number}' for number in run.behind])}"
        case ChangeState.QUEUED if run and run.blocked:
            return run.blocked
        case ChangeState.QUEUED:
            return "in queue"
        case ChangeState.PAUSED:
            return "operator: resume"
        case ChangeState.EXECUTING | ChangeState.CANCELLING:
            return "in progress"
        case ChangeState.VERIFYING:
            return "verification"
        case _:
            return ""


def _can_start(change: ChangeRequest) -> bool:
    kind = known_kind(change)
    return kind is not None and kind.starts


def change_listing(query: QueryDict, clusters: Iterable[Cluster]) -> ListQuery:
    return ListQuery(
        query,
        choices=[
            SHOW,
            FilterChoice("cluster", "cluster", {cluster.slug: cluster.name for cluster in clusters}),
            FilterChoice("state", "state", dict(RequestState.choices)),
        ],
        texts=["q", "author"],
        sorts={"number": [F("pk")], "since": [F("state_since"), F("pk")]},
        descending_first={"number", "since"},
    )


class ChangeListContext(TypedDict):
    now: datetime
    clusters: list[Cluster]
    listing: ListQuery
    page: Page[Any]
    rows: list[ChangeRow]
    counts: dict[str, Any]
    states: list[tuple[str, str]]
    narrowed: bool


def list_context(request: HttpRequest, now: datetime) -> ChangeListContext:
    """Return one page of the requests that this user may view; the number of queries is the same for any page."""
    clusters = list(visible_clusters(request.user).only("name", "slug"))
    listing = change_listing(request.GET, clusters)
    seen = ChangeRequest.objects.listed().filter(cluster__in=clusters)
    waiting = waiting_for(request.user)
    shown = _filter_changes(_select_changes(seen, waiting, listing, request.user.pk), listing)
    page = listing.page_of(_with_facts(shown).order_by(*_running_first(listing), *listing.order()))
    runs = runs_of(page.object_list)
    counts = seen.aggregate(
        all=Count("pk"),
        open=Count("pk", filter=Q(state__in=OPEN)),
        running=Count("pk", filter=Q(state__in=STEPPED)),
        ended=Count("pk", filter=Q(state__in=ENDED)),
        mine=Count("pk", filter=_contributed_by(request.user.pk)),
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


def build_segments(counts: Mapping[str, int], waiting: int) -> list[tuple[str, str, int]]:
    """Value of ``show``, its word and how many requests it has on all clusters."""
    return [(value, word, counts[value] if value else waiting) for value, word in SHOW.words.items()]


def _select_changes(
    seen: QuerySet[ChangeRequest], waiting: QuerySet[ChangeRequest], listing: ListQuery, user_id: int | None
) -> QuerySet[ChangeRequest]:
    show = listing.values["show"]
    if show == "open":
        return seen.filter(state__in=OPEN)
    if show == "running":
        return seen.filter(state__in=STEPPED)
    if show == "ended":
        return seen.filter(state__in=ENDED)
    if show == "mine":
        return seen.filter(_contributed_by(user_id))
    return seen if show == "all" else seen.filter(pk__in=waiting.order_by().values("pk"))


def _contributed_by(user_id: int | None) -> Q:
    return Q(author=user_id) | Q(contributor_ids__contains=[user_id])


def _filter_changes(rows: QuerySet[ChangeRequest], listing: ListQuery) -> QuerySet[ChangeRequest]:
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


def _running_first(listing: ListQuery) -> list[Any]:
    """Return the order: what runs, then what is queued, above the rest, until the user sorts the list."""
    if listing.sort_parameter:
        return []
    return [Case(When(state__in=RUNNING, then=0), When(state=ChangeState.QUEUED, then=1), default=2)]


def _with_facts(rows: QuerySet[ChangeRequest]) -> QuerySet[ChangeRequest]:
    """With everything that a row shows, so that rows ask nothing by themselves."""
    related = {"cluster", "cluster__policy", *(name for kind in registered_kinds() for name in kind.related)}
    valid = Q(reviews__verdict=ReviewVerdict.APPROVED, reviews__void_at=None, reviews__round=F("round"))
    return rows.select_related(*sorted(related)).annotate(valid_approvals=Count("reviews", filter=valid))


def page(request: HttpRequest) -> dict[str, Any]:
    """``waiting_for_me`` costs one query, and only on a page that shows it."""
    return {"waiting_for_me": SimpleLazyObject(lambda: waiting_for_me(request))}


def waiting_for_me(request: HttpRequest) -> int:
    """Asked once for a request, however often it is shown."""
    held: dict[str, int] = request.__dict__
    if "_waiting_for_me" not in held:
        held["_waiting_for_me"] = waiting_count(request.user)
    return held["_waiting_for_me"]
