"""The audit page: the events that a user may read, filtered, as readable rows or as a CSV or JSON lines file.

An action or value that the catalogue does not know is shown as it was recorded. Exports are generated while they are
sent.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import AuditEvent, User
from kafkadash.accounts.services import COMMAND_LINE, record
from kafkadash.changes.models import ChangeRequest, Review, ReviewVerdict
from kafkadash.clusters.access import VIEW_AUDIT, clusters_allowing, is_allowed, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import format_size
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import choose_plural, message_text
from kafkadash.core.middleware import post_only
from kafkadash.findings.models import Finding, finding_path
from kafkadash.ops.errors import OperationErrorCode

ACTIONS: Mapping[str, Mapping[str, str]] = {
    "Change requests": {
        "change.created": "created a draft",
        "change.edited": "edited a draft",
        "change.planned": "computed a plan",
        "change.submitted": "submitted a change",
        "change.reopened": "reopened a change as a draft",
        "change.withdrawn": "withdrew a change",
        "change.approved": "approved a change",
        "change.declined": "declined a change",
        "change.commented": "commented on a change",
        "change.turned_stale": "marked a change as outdated",
        "change.refresh_started": "started to refresh a change",
        "change.refreshed": "refreshed a change",
        "change.expired": "expired a change",
        "change.scheduled": "queued a change at the start of its window",
        "change.broke_glass": "queued a change without approvals",
        "change.started": "started a change",
        "change.turn_came": "started a run",
        "change.paused": "paused a run",
        "change.resumed": "resumed a run",
        "change.throttle_changed": "changed the throttle of a run",
        "change.throttle_vanished": "found the throttle of a run removed",
        "change.throttle_foreign": "found a rate set by others on a run",
        "change.throttle_left": "kept a throttle that others had changed",
        "change.throttle_late": "found a throttle set by a late request",
        "change.throttle_obliged": "deferred the removal of a throttle",
        "change.throttle_settled": "removed the remaining throttles of a run",
        "change.parallel_changed": "changed the concurrent moves of a run",
        "change.ordered": "sent a command to a run",
        "change.cancelled": "cancelled a run",
        "change.came_late": "found that a request reached Kafka late",
        "change.braked": "held the moves of a run (min-ISR guard)",
        "change.brake_released": "released the moves of a run (min-ISR guard)",
        "change.rows_ended": "ended the last move of a run",
        "change.cancel_ended": "ended a cancelled run",
        "change.verified": "verified a run",
        "change.failed": "marked a run as failed",
        "change.rollback_proposed": "created a rollback",
        "change.row_replanned": "created a new plan for a move",
        "change.copied": "copied a change",
        "change.deleted": "deleted a draft",
        "policy.changed": "changed the approval policy",
        "policy.loosening_asked": "requested a less strict policy",
        "policy.loosening_confirmed": "confirmed a less strict policy",
        "policy.loosening_dropped": "discarded a less strict policy",
        "policy.loosened": "applied a less strict policy",
    },
    "Clusters": {
        "cluster.registered": "registered a cluster",
        "cluster.connection_changed": "changed a connection",
        "cluster.connection_tested": "tested a connection",
        "cluster.identified": "detected the ID of a cluster",
        "cluster.read_only_changed": "changed the read-only setting",
        "cluster.enabled": "enabled a cluster",
        "cluster.disabled": "disabled a cluster",
        "cluster.removed": "removed a cluster",
        "topic_rules.changed": "changed topic rules",
        "allowed_lag.set": "set a lag threshold",
        "allowed_lag.removed": "removed a lag threshold",
    },
    "Findings": {
        "finding.acknowledged": "acknowledged a finding",
        "finding.snoozed": "snoozed a finding",
        "finding.released": "released a finding",
        "finding.lapsed": "ended an acknowledgement at its time",
    },
    "Maintenance": {
        "maintenance.planned": "planned maintenance",
        "maintenance.ended": "ended maintenance",
        "maintenance.cancelled": "cancelled maintenance",
        "silence.planned": "silenced findings",
        "silence.ended": "ended a silence",
        "silence.cancelled": "cancelled a silence",
    },
    "Notifications": {
        "receiver.added": "added a receiver",
        "receiver.changed": "changed a receiver",
        "receiver.removed": "removed a receiver",
        "receiver.key_renewed": "made a new key of a receiver",
        "receiver.route_added": "added a route",
        "receiver.route_removed": "removed a route",
    },
    "Users": {
        "role.given": "granted a role",
        "role.removed": "revoked a role",
        "user.created": "created a user",
        "user.closed": "closed an account",
        "user.opened": "reopened an account",
        "user.password_set": "set a password",
        "user.password_changed": "changed their password",
        "user.signed_in": "signed in",
        "user.signed_out": "signed out",
        "user.sessions_ended": "ended other sessions",
        "user.sign_in_failed": "rejected a sign-in",
    },
    "Audit log": {"audit.exported": "exported the audit log"},
}
WORDS: Mapping[str, str] = {action: words for group in ACTIONS.values() for action, words in group.items()}

NOTHING = "–"
LONGEST_IN_LIST = 160
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAMES = {"counts_from": "effective from", "expires_at": "expires"}
_UNITS: Mapping[str, Callable[[float], str]] = {
    "throttle": lambda rate: f"{format_size(rate)}/s",
    "throttle_min": lambda rate: f"{format_size(rate)}/s",
    "throttle_max": lambda rate: f"{format_size(rate)}/s",
    "disk_limit": lambda share: f"{100 * share:g} %",
    "valid_hours": lambda hours: f"{hours:,} h",
    "records": lambda records: f"{records:,} records",
}
"""Field → its number with a unit."""


@dataclass(frozen=True, slots=True)
class ChangedField:
    """Field of an event. ``before`` and ``after`` are texts; None where that side was not recorded."""

    field: str
    before: str | None
    after: str | None


def action_words(action: str) -> str:
    return WORDS.get(action, action)


def list_changes(before: object, after: object) -> list[ChangedField]:
    """The fields that differ between two recorded values, in the order in which they were recorded.

    Fields of a nested value are fields of their own: ``{"input": {"mode": "drain"}}`` has the field "input mode".
    """
    old, new = _recorded_fields(before), _recorded_fields(after)
    names = list(dict.fromkeys([*old, *new]))
    return [
        ChangedField(
            field_words(name),
            value_words(old[name], name) if name in old else None,
            value_words(new[name], name) if name in new else None,
        )
        for name in names
        if name not in old or name not in new or old[name] != new[name]
    ]


def field_words(name: str) -> str:
    return " ".join(_NAMES.get(part, part.replace("_", " ")) for part in name.split("."))


def value_words(value: object, name: str = "") -> str:
    """Return a recorded value as a person reads it, with the unit of the field ``name``."""
    if value in (None, "", [], {}):
        return NOTHING
    unit = _UNITS.get(name.rpartition(".")[2])
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float() if unit:
            return unit(value)
        case str():
            return value
        case list():
            return ("; " if any(isinstance(item, dict) for item in value) else ", ").join(map(value_words, value))
        case dict():
            return ", ".join(f"{field_words(key)}: {value_words(each, key)}" for key, each in value.items())
        case _:
            return json.dumps(value, ensure_ascii=False)


def shorten_text(text: str) -> str:
    """Return the text as a list shows it; of a digest, enough characters to tell it from others."""
    if _DIGEST.fullmatch(text):
        return f"{text[:12]}…"
    return text if len(text) <= LONGEST_IN_LIST else f"{text[: LONGEST_IN_LIST - 1]}…"


def _recorded_fields(recorded: object) -> Mapping[str, Any]:
    if recorded is None:
        return {}
    return dict(_flatten_fields(recorded)) if isinstance(recorded, dict) else {"value": recorded}


def _flatten_fields(recorded: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in recorded.items():
        if isinstance(value, dict) and value:
            yield from _flatten_fields(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value


PAGE_SIZE = 100
DEFAULT_PERIOD = "7d"
PERIODS: Mapping[str, str] = {"24h": "24 hours", "7d": "7 days", "30d": "30 days", "all": "All time"}
_SPANS = {"24h": timedelta(hours=24), "7d": timedelta(days=7), "30d": timedelta(days=30)}
NO_CLUSTER = "-"  # the filter for what concerns the whole installation
CHANGE_TYPES = ("changerequest", "change")
_LARGEST_ID = 2**63 - 1


def list_readable(user: User) -> QuerySet[AuditEvent]:
    """The events this person may read: all of them with the right on all clusters, else those of his clusters.

    A name that was free again and is another cluster's now brings none of the old one's events.
    """
    events = AuditEvent.objects.all()
    if is_allowed(user, VIEW_AUDIT, None):
        return events
    own = clusters_allowing(user, VIEW_AUDIT)
    return events.filter(Exists(own.filter(slug=OuterRef("cluster"), created_at__lte=OuterRef("at"))))


@dataclass
class AuditFilter:
    """Filter that the address asks for. ``since`` and ``until`` are instants; None is open."""

    query: QueryDict
    now: datetime
    since: datetime | None = field(init=False, default=None)
    until: datetime | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.listing = ListQuery(
            self.query,
            choices=[FilterChoice("period", "period", PERIODS)],
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
        """Return whether anything but the time is asked for."""
        return any(self.values[name] for name in ("actor", "what", "cluster", "object", "q"))

    @property
    def given(self) -> dict[str, str]:
        """Filter values that are set, as an export's own event has them."""
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
            wanted &= Q(reason__icontains=values["q"]) | Q(reason_code__icontains=values["q"])
        return events.filter(wanted)

    def title(self, number: int) -> str:
        matching = "matching " if self.narrowed else ""
        events = choose_plural(f"# {matching}event|# {matching}events", number) if number else f"no {matching}events"
        return f"Audit log, {events}"

    @property
    def span(self) -> str:
        """The time that the page covers."""
        period = self.values["period"]
        if period in _SPANS:
            return f"last {PERIODS[period]}"
        if not self.since and not self.until:
            return "all time"
        since = f"since {_format_moment(self.since)}" if self.since else ""
        until = f"before {_format_moment(self.until)}" if self.until else ""
        return " and ".join(filter(None, (since, until)))

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


def page_of(events: QuerySet[AuditEvent], filters: AuditFilter) -> AuditPage:
    """By place instead of number: page 1,000 costs as much as page 1, and new events move nothing."""
    older_than, newer_than = _find_place(events, filters, "older"), _find_place(events, filters, "newer")
    address = filters.listing.address
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


def _find_place(events: QuerySet[AuditEvent], filters: AuditFilter, name: str) -> AuditEvent | None:
    text = filters.query.get(name, "")
    if not text:
        return None
    if re.fullmatch(r"[0-9]{1,19}", text) and int(text) <= _LARGEST_ID:
        found = events.filter(pk=int(text)).only("at").first()
        if found is not None:
            return found
    filters.listing.problems.append(message_text(OperationErrorCode.EVENT_NOT_LISTED, asked=text[:60]))
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
    def changed(self) -> Sequence[ChangedField]:
        return list_changes(self.event.before, self.event.after)

    @property
    def changed_short(self) -> Sequence[ChangedField]:
        """The first few, shortened; ``changed_more`` says how many are left out."""
        return [
            ChangedField(c.field, c.before and shorten_text(c.before), c.after and shorten_text(c.after))
            for c in self._told[:MOST_FIELDS]
        ]

    @property
    def changed_more(self) -> int:
        return max(0, len(self._told) - MOST_FIELDS)

    @property
    def _told(self) -> Sequence[ChangedField]:
        """Without what began as nothing: the page of the event has that too."""
        return [c for c in self.changed if c.before is not None or c.after != NOTHING]

    @property
    def from_command(self) -> bool:
        return self.event.actor == COMMAND_LINE

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
    known = _AuditObjects(ids, slugs)
    return [known.row(event) for event in shown]


class _AuditObjects:
    """The objects of some events that still exist, read together."""

    def __init__(self, ids: Mapping[str, set[str]], slugs: set[str]) -> None:
        self._clusters = {
            row.slug: row for row in Cluster.objects.filter(Q(slug__in=slugs) | Q(pk__in=_parse_ids(ids, "cluster")))
        }
        self._by_id = {str(row.pk): row for row in self._clusters.values()}
        users = User.objects.filter(pk__in=_parse_ids(ids, "user"))
        self._users = {str(pk): name for pk, name in users.values_list("pk", "username")}
        findings = Finding.objects.filter(public_id__in=ids.get("finding", ()))
        self._findings = {f.public_id: f for f in findings.select_related("cluster").only("public_id", "cluster__slug")}
        changes = _parse_ids(ids, *CHANGE_TYPES)
        found = ChangeRequest.objects.filter(pk__in=changes).values_list("pk", "title") if changes else ()
        self._changes = {str(pk): title for pk, title in found}
        approved = Review.objects.filter(request__in=changes, verdict=ReviewVerdict.APPROVED) if changes else ()
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
            cluster_url=reverse("findings:overview", args=[event.cluster]) if there else "",
            approvers=self._approvers(event),
        )

    def _object(self, event: AuditEvent) -> tuple[str, str]:
        type_, id_ = event.object_type, event.object_id
        if type_ == "cluster":
            cluster = self._by_id.get(id_)
            if cluster is not None:
                return cluster.name, reverse("findings:overview", args=[cluster.slug])
            return event.cluster or f"cluster {id_}", ""
        if type_ == "user":
            return self._users.get(id_, f"user {id_}"), ""
        if type_ == "finding":
            finding = self._findings.get(id_)
            url = finding_path(finding.cluster, finding) if finding else ""
            return id_, url
        if type_ in CHANGE_TYPES:
            url = reverse("changes:request", args=[int(id_)]) if id_ in self._changes else ""
            return f"#{id_} {self._changes.get(id_, '')}".strip(), url
        if type_ in ("audit", "policy", "topic_rules"):
            return "", ""  # the cluster beside it says of what
        return f"{type_} {id_}".strip(), ""

    def _approvers(self, event: AuditEvent) -> list[str]:
        """Return the users whose approval of the request was given, and not void, at the time of the event."""
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


def _parse_ids(ids: Mapping[str, Any], *types: str) -> list[int]:
    every = (id_ for type_ in types for id_ in ids.get(type_, ()))
    return [int(id_) for id_ in every if re.fullmatch(r"[0-9]{1,18}", id_)]


def _format_moment(moment: datetime | None) -> str:
    if moment is None:
        return ""
    midnight = moment.astimezone(UTC).time().replace(tzinfo=None) == datetime.min.time()
    return moment.astimezone(UTC).strftime("%-d %b %Y" if midnight else "%-d %b %Y %H:%M")


PORTION = 1_000
"""Events that are held at once."""

COLUMNS = (
    "id",
    "at",
    "actor",
    "actor_name",
    "action",
    "words",
    "object_type",
    "object_id",
    "cluster",
    "reason",
    "reason_code",
    "reason_params",
    "before",
    "after",
    "address",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")

Portions = Iterator[list[AuditEvent]]


def read_batches(events: QuerySet[AuditEvent]) -> Portions:
    """All events, newest first, some at a time and each time by place: no cursor, no transaction is held open."""
    rest = events.order_by("-at", "-id")
    while found := list(rest[:PORTION]):
        yield found
        if len(found) < PORTION:
            return
        last = found[-1]
        rest = events.filter(at__lte=last.at).exclude(at=last.at, id__gte=last.pk).order_by("-at", "-id")


def as_csv(found: Sequence[AuditEvent]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    for event in found:
        fields = _fields(event)
        writer.writerow([escape_cell(fields[name]) for name in COLUMNS])
    return out.getvalue()


def as_json_lines(found: Sequence[AuditEvent]) -> str:
    return "".join(json.dumps(_fields(event), ensure_ascii=False, separators=(",", ":")) + "\n" for event in found)


def escape_cell(value: object) -> str:
    """A cell that no spreadsheet takes for a formula: one that begins like it gets an apostrophe in front (OWASP)."""
    if value is None:
        return ""
    content = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{content}" if content.startswith(_FORMULA) else content


FORMATS: dict[str, tuple[str, str, str, Callable[[Sequence[AuditEvent]], str]]] = {
    "csv": ("text/csv; charset=utf-8", "csv", ",".join(COLUMNS) + "\r\n", as_csv),
    "jsonl": ("application/x-ndjson; charset=utf-8", "jsonl", "", as_json_lines),
}
"""Format → content type, ending of the file's name, its first line, and how events are written."""


def write_lines(events: QuerySet[AuditEvent], name: str) -> Iterator[str]:
    """The file in portions."""
    _, _, head, write = FORMATS[name]
    if head:
        yield head
    for found in read_batches(events):
        yield write(found)


async def lines_async(events: QuerySet[AuditEvent], name: str) -> AsyncIterator[str]:
    """The same for an event loop: each portion is read in the thread of the request."""
    source = write_lines(events, name)
    while (text := await sync_to_async(lambda: next(source, None))()) is not None:
        yield text


def _fields(event: AuditEvent) -> dict[str, Any]:
    return {
        "id": event.pk,
        "at": event.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "actor": event.actor,
        "actor_name": event.actor_name,
        "action": event.action,
        "words": action_words(event.action),
        "object_type": event.object_type,
        "object_id": event.object_id,
        "cluster": event.cluster,
        "reason": str(event.why),
        "reason_code": event.reason_code,
        "reason_params": event.reason_params,
        "before": event.before,
        "after": event.after,
        "address": event.address,
    }


@require_safe
@needs(VIEW_AUDIT, anywhere=True)
def audit(request: HttpRequest) -> HttpResponse:
    """Newest first; every filter is in the address."""
    user = _user(request)
    now = timezone.now()
    filters = AuditFilter(request.GET, now)
    events = filters.of(list_readable(user))
    number = events.count()
    page = page_of(events, filters)
    clusters = {cluster.slug: cluster.name for cluster in clusters_allowing(user, VIEW_AUDIT)}
    everywhere = is_allowed(user, VIEW_AUDIT, None)
    if everywhere:
        clusters[NO_CLUSTER] = "Installation"
    chosen = filters.values["cluster"]
    if chosen and chosen not in clusters:
        clusters[chosen] = chosen
    context = {
        "section": "audit",
        "now": now,
        "title": filters.title(number),
        "number": number,
        "filters": filters,
        "listing": filters.listing,
        "page": page,
        "rows": audit_rows(page.events),
        "periods": PERIODS,
        "groups": ACTIONS,
        "unknown_action": filters.values["what"] if filters.values["what"] not in WORDS else "",
        "clusters": clusters,
        "everywhere": everywhere,
    }
    return render(request, "ops/audit.html", context)


@require_safe
@needs(VIEW_AUDIT, anywhere=True)
def audit_event(request: HttpRequest, event_id: int) -> HttpResponse:
    """Show one audit event in full."""
    event = list_readable(_user(request)).filter(pk=event_id).first()
    if event is None:
        raise MissingObject(OperationErrorCode.NO_SUCH_EVENT, number=event_id)
    return render(
        request, "ops/audit_event.html", {"section": "audit", "now": timezone.now(), "row": audit_rows([event])[0]}
    )


@post_only("ops:audit")
@needs(VIEW_AUDIT, anywhere=True)
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """All events that the filter leaves, as a file. The export is an event itself, and not part of the file."""
    user = _user(request)
    name = request.POST.get("format", "")
    if name not in FORMATS:
        return HttpResponse(
            message_text(OperationErrorCode.NO_SUCH_FORMAT, asked=name[:60], known=", ".join(FORMATS)),
            status=400,
            content_type="text/plain; charset=utf-8",
        )
    now = timezone.now()
    filters = AuditFilter(request.POST, now)
    newest = list_readable(user).order_by("-id").values_list("pk", flat=True).first()
    # Nothing is changed or deleted here, so what is below the newest id stays the same while it is sent.
    events = filters.of(list_readable(user)).filter(pk__lte=newest or 0)
    chosen = filters.values["cluster"]
    record(
        user,
        "audit.exported",
        ("audit", "export"),
        cluster="" if chosen == NO_CLUSTER else chosen,
        after={"format": name, "events": events.count(), "filter": filters.given},
        request=request,
    )
    kind, ending, _, _ = FORMATS[name]
    source = lines_async(events, name) if isinstance(request, ASGIRequest) else write_lines(events, name)
    response = StreamingHttpResponse(source, content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="kafkadash-audit-{now:%Y%m%d-%H%M%S}.{ending}"'
    return response


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # ``needs`` let nobody else in
    return request.user
