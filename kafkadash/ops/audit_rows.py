"""The audit as somebody may read it: which events, by which filter, and each event as a row of the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.urls import reverse
from django.utils.dateparse import parse_date, parse_datetime

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.models import ChangeRequest, Review, Verdict
from kafkadash.clusters.access import VIEW_AUDIT, allowed, clusters_allowing
from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_text
from kafkadash.domain.wording import count
from kafkadash.observe.listing import Choice, Listing
from kafkadash.oncall.models import Finding
from kafkadash.ops.audit_words import NOTHING, WORDS, Changed, action_words, changed, short
from kafkadash.ops.errors import OperationErrorCode

PAGE_SIZE = 100
DEFAULT_PERIOD = "7d"
PERIODS: Mapping[str, str] = {"24h": "24 hours", "7d": "7 days", "30d": "30 days", "all": "All"}
_SPANS = {"24h": timedelta(hours=24), "7d": timedelta(days=7), "30d": timedelta(days=30)}
NO_CLUSTER = "-"  # the filter for what concerns the whole installation
CHANGE_TYPES = ("changerequest", "change")
_LARGEST_ID = 2**63 - 1


def readable(user: User) -> QuerySet[AuditEvent]:
    """The events this person may read: all of them with the right on all clusters, else those of his clusters.

    A name that was free again and is another cluster's now brings none of the old one's events.
    """
    events = AuditEvent.objects.all()
    if allowed(user, VIEW_AUDIT, None):
        return events
    own = clusters_allowing(user, VIEW_AUDIT)
    return events.filter(Exists(own.filter(slug=OuterRef("cluster"), created_at__lte=OuterRef("at"))))


@dataclass
class AuditFilter:
    """What the address asks for. ``since`` and ``until`` are instants; None is open."""

    query: QueryDict
    now: datetime
    since: datetime | None = field(init=False, default=None)
    until: datetime | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.listing = Listing(
            self.query,
            choices=[Choice("period", "period", PERIODS)],
            texts=["actor", "what", "cluster", "object", "q", "from", "to"],
            sorts={"at": ["at"]},
        )
        values = self.listing.values
        self.since, self.until = self._instant("from"), self._instant("to", end=True)
        if self.since or self.until:
            values["period"] = ""
        else:
            values["period"] = values["period"] or DEFAULT_PERIOD
            span = _SPANS.get(values["period"])
            self.since = self.now - span if span else None
        if values["object"] and ":" not in values["object"]:
            self.listing.problems.append(message_text(OperationErrorCode.OBJECT_UNNAMED, typed=values["object"][:60]))
            values["object"] = ""

    @property
    def values(self) -> Mapping[str, str]:
        return self.listing.values

    @property
    def narrowed(self) -> bool:
        """Whether anything but the time is asked for."""
        return any(self.values[name] for name in ("actor", "what", "cluster", "object", "q"))

    @property
    def asked(self) -> dict[str, str]:
        """What was asked for, as an export's own event has it."""
        return {name: value for name, value in self.values.items() if value}

    def of(self, events: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        values = self.values
        wanted = Q()
        if self.since:
            wanted &= Q(at__gte=self.since)
        if self.until:
            wanted &= Q(at__lt=self.until)
        if values["actor"]:
            wanted &= Q(actor_name__iexact=values["actor"])
        if values["what"]:
            wanted &= Q(action=values["what"]) if "." in values["what"] else Q(action__startswith=f"{values['what']}.")
        if values["cluster"]:
            wanted &= Q(cluster="" if values["cluster"] == NO_CLUSTER else values["cluster"])
        if values["object"]:
            type_, _, id_ = values["object"].partition(":")
            wanted &= Q(object_type=type_, object_id=id_)
        if values["q"]:
            wanted &= Q(reason__icontains=values["q"])
        return events.filter(wanted)

    def title(self, number: int) -> str:
        """The answer of the page."""
        if self.narrowed:
            many = f"{count(number, 'thing')} that {'matches' if number == 1 else 'match'}" if number else ""
            return f"{many or 'Nothing that matches'} {'were' if number > 1 else 'was'} done{self._when()}."
        done = f"{count(number, 'thing')} {'was' if number == 1 else 'were'} done" if number else "Nothing was done"
        return f"{done}{self._when()}."

    def _when(self) -> str:
        period = self.values["period"]
        if period in _SPANS:
            return f" in the last {PERIODS[period]}"
        if not self.since and not self.until:
            return " since kafkadash was set up"
        since = f" since {_short(self.since)}" if self.since else ""
        until = f" before {_short(self.until)}" if self.until else ""
        return f"{since}{' and' if since and until else ''}{until}"

    def _instant(self, name: str, *, end: bool = False) -> datetime | None:
        """A day or a moment in UTC; a day as the end of a span is meant whole."""
        text = self.listing.values[name]
        if not text:
            return None
        with suppress(ValueError, OverflowError):  # said below, with what else is no time
            day = parse_date(text)
            if day is not None:
                start = datetime(day.year, day.month, day.day, tzinfo=UTC)
                return start + timedelta(days=1) if end else start
            moment = parse_datetime(text)
            if moment is not None:
                # Beyond the first or the last day there is in UTC is no time either.
                return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        self.listing.problems.append(message_text(OperationErrorCode.MOMENT_UNREADABLE, typed=text[:60]))
        self.listing.values[name] = ""
        return None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of events, newest first. ``older`` and ``newer`` are query strings, '' at an end."""

    events: Sequence[AuditEvent]
    older: str
    newer: str
    first: str


def page_of(events: QuerySet[AuditEvent], asked: AuditFilter) -> AuditPage:
    """By place instead of number: page 1,000 costs as much as page 1, and new events move nothing."""
    older_than, newer_than = _place(events, asked, "older"), _place(events, asked, "newer")
    address = asked.listing.address
    if newer_than is not None:
        at, id_ = newer_than.at, newer_than.pk
        after = events.filter(at__gte=at).exclude(at=at, id__lte=id_)
        found = list(after.order_by("at", "id")[: PAGE_SIZE + 1])
        shown = found[:PAGE_SIZE][::-1]
        more_newer, more_older = len(found) > PAGE_SIZE, True
    else:
        if older_than is not None:
            at, id_ = older_than.at, older_than.pk
            events = events.filter(at__lte=at).exclude(at=at, id__gte=id_)
        found = list(events.order_by("-at", "-id")[: PAGE_SIZE + 1])
        shown = found[:PAGE_SIZE]
        more_newer, more_older = older_than is not None, len(found) > PAGE_SIZE
    return AuditPage(
        shown,
        older=address(older=str(shown[-1].pk)) if shown and more_older else "",
        newer=address(newer=str(shown[0].pk)) if shown and more_newer else "",
        first=address() if more_newer or not shown else "",
    )


def _place(events: QuerySet[AuditEvent], asked: AuditFilter, name: str) -> AuditEvent | None:
    text = asked.query.get(name, "")
    if not text:
        return None
    if re.fullmatch(r"[0-9]{1,19}", text) and int(text) <= _LARGEST_ID:
        found = events.filter(pk=int(text)).only("at").first()
        if found is not None:
            return found
    asked.listing.problems.append(message_text(OperationErrorCode.EVENT_NOT_LISTED, asked=text[:60]))
    return None


@dataclass(frozen=True)
class AuditRow:
    """An event as the pages show it. ``object_url`` is '' where the object is gone; ``approvers`` are names."""

    event: AuditEvent
    object_words: str
    object_url: str = ""
    cluster_url: str = ""
    approvers: Sequence[str] = ()

    @property
    def words(self) -> str:
        return action_words(self.event.action)

    @property
    def known(self) -> bool:
        return self.event.action in WORDS

    @cached_property
    def changed(self) -> Sequence[Changed]:
        return changed(self.event.before, self.event.after)

    @property
    def changed_short(self) -> Sequence[Changed]:
        """The first few, shortened; ``changed_more`` says how many are left out."""
        return [
            Changed(c.field, c.before and short(c.before), c.after and short(c.after)) for c in self._told[:MOST_FIELDS]
        ]

    @property
    def changed_more(self) -> int:
        return max(0, len(self._told) - MOST_FIELDS)

    @property
    def _told(self) -> Sequence[Changed]:
        """Without what began as nothing: the page of the event has that too."""
        return [c for c in self.changed if c.before is not None or c.after != NOTHING]

    @property
    def object_filter(self) -> str:
        return f"{self.event.object_type}:{self.event.object_id}"


MOST_FIELDS = 4


def audit_rows(events: Iterable[AuditEvent]) -> list[AuditRow]:
    """Rows with what their objects are called now; five queries, however many events."""
    shown = list(events)
    ids: dict[str, set[str]] = {}
    for event in shown:
        ids.setdefault(event.object_type, set()).add(event.object_id)
    slugs = {event.cluster for event in shown if event.cluster}
    known = _Objects(ids, slugs)
    return [known.row(event) for event in shown]


class _Objects:
    """The objects of some events that still exist, read together."""

    def __init__(self, ids: Mapping[str, set[str]], slugs: set[str]) -> None:
        self._clusters = {
            row.slug: row for row in Cluster.objects.filter(Q(slug__in=slugs) | Q(pk__in=_numbers(ids, "cluster")))
        }
        self._by_id = {str(row.pk): row for row in self._clusters.values()}
        users = User.objects.filter(pk__in=_numbers(ids, "user"))
        self._users = {str(pk): name for pk, name in users.values_list("pk", "username")}
        findings = Finding.objects.filter(public_id__in=ids.get("finding", ()))
        self._findings = {f.public_id: f for f in findings.select_related("cluster").only("public_id", "cluster__slug")}
        changes = _numbers(ids, *CHANGE_TYPES)
        found = ChangeRequest.objects.filter(pk__in=changes).values_list("pk", "title") if changes else ()
        self._changes = {str(pk): title for pk, title in found}
        approved = Review.objects.filter(request__in=changes, verdict=Verdict.APPROVED) if changes else ()
        self._reviews = list(approved)

    def row(self, event: AuditEvent) -> AuditRow:
        words, url = self._object(event)
        # A cluster that took the name of a removed one later is not the one that this event speaks of.
        cluster = self._clusters.get(event.cluster)
        there = cluster is not None and cluster.created_at <= event.at
        return AuditRow(
            event,
            object_words=words,
            object_url=url,
            cluster_url=reverse("oncall:overview", args=[event.cluster]) if there else "",
            approvers=self._approvers(event),
        )

    def _object(self, event: AuditEvent) -> tuple[str, str]:
        type_, id_ = event.object_type, event.object_id
        if type_ == "cluster":
            cluster = self._by_id.get(id_)
            if cluster is not None:
                return cluster.name, reverse("oncall:overview", args=[cluster.slug])
            return event.cluster or f"cluster {id_}", ""
        if type_ == "user":
            return self._users.get(id_, f"user {id_}"), ""
        if type_ == "finding":
            finding = self._findings.get(id_)
            url = reverse("oncall:finding", args=[finding.cluster.slug, id_]) if finding else ""
            return id_, url
        if type_ in CHANGE_TYPES:
            url = reverse("changes:request", args=[int(id_)]) if id_ in self._changes else ""
            return f"#{id_} {self._changes.get(id_, '')}".strip(), url
        if type_ in ("audit", "policy"):
            return "", ""  # the cluster beside it says of what
        return f"{type_} {id_}".strip(), ""

    def _approvers(self, event: AuditEvent) -> list[str]:
        """Who had approved the request when this was done to it, and was not void by then."""
        if event.object_type not in CHANGE_TYPES or event.action.endswith(".approved"):
            return []
        return list(
            dict.fromkeys(
                review.user_name
                for review in self._reviews
                if str(review.request_id) == event.object_id
                and review.at <= event.at
                and (review.void_at is None or review.void_at > event.at)
            )
        )


def _numbers(ids: Mapping[str, Any], *types: str) -> list[int]:
    every = (id_ for type_ in types for id_ in ids.get(type_, ()))
    return [int(id_) for id_ in every if re.fullmatch(r"[0-9]{1,18}", id_)]


def _short(moment: datetime | None) -> str:
    if moment is None:
        return ""
    midnight = moment.astimezone(UTC).time().replace(tzinfo=None) == datetime.min.time()
    return moment.astimezone(UTC).strftime("%-d %b %Y" if midnight else "%-d %b %Y %H:%M")
