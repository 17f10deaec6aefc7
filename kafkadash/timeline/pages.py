"""Pages of the timeline: what changed, its export, the span before a finding, and closed findings."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any

from django.conf import settings
from django.db.models import Q, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.core.charts import ChartLine, ChartPanel, ChartSpec, Ink, largest_rows
from kafkadash.core.formatting import format_duration, long_duration
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import choose_plural, message_text
from kafkadash.core.rows import one_moment
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.models import CollectorKind, GroupState
from kafkadash.timeline.entries import (
    BUCKETS,
    EntryKind,
    KindCount,
    TimelineEntry,
    TimelineScope,
    TimeSpan,
    count_kinds,
)
from kafkadash.timeline.errors import TimelineErrorCode
from kafkadash.timeline.parameters import PERIODS, TimelineQuery, address_before, find_span_before
from kafkadash.timeline.sources import read_timeline

PAGE_SIZE = 100
MOST_BEFORE = 10
"""Entries on the page of a finding."""
MOST_PAGES = 50
MOST_EXPORTED = 20_000
_SAME_DAY = timedelta(hours=20)
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TimelineDay:
    """Day with its entries, newest first. ``count``: those on this page."""

    day: date
    entries: Sequence[TimelineEntry]


@dataclass(frozen=True, slots=True)
class KindChoice:
    """Filter of one kind: how many entries it has in the span, and the address that lists it or leaves it out."""

    kind: EntryKind
    count: int
    chosen: bool
    address: str


@require_safe
@needs(VIEW)
@one_moment()
def timeline(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what changed in the span, newest first, with a chart in which a span can be chosen by dragging."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    asked = TimelineQuery(request.GET, cluster, bar["now"])
    wanted = _page_number(request.GET.get("page", ""))
    reading = read_timeline(asked.scope, asked.span)
    by_kind = count_kinds(reading.counts)
    total = sum(by_kind[kind] for kind in asked.scope.kinds)
    pages = min(MOST_PAGES, max(1, -(-total // PAGE_SIZE)))
    number = min(wanted, pages)
    entries = reading.list_entries((number - 1) * PAGE_SIZE, number * PAGE_SIZE)
    if request.GET.get("refused") == "export" and total > MOST_EXPORTED:
        asked.problems.append(message_text(TimelineErrorCode.EXPORT_TOO_LARGE, count=total, most=MOST_EXPORTED))
    finding = _find_finding(slug, asked.listing.values["finding"])
    title = describe_total(total, asked, finding)
    context = {
        **bar,
        "tab": "timeline",
        "title": title,
        "asked": asked,
        "listing": asked.listing,
        "problems": asked.problems,
        "span": asked.span,
        "length": format_duration(asked.span.seconds),
        "subject": describe_subject(asked),
        "subject_url": _subject_url(asked),
        "finding": finding,
        "periods": {name: (words, asked.address(period=name, **_NO_SPAN)) for name, words in PERIODS.items()},
        "choices": [
            KindChoice(kind, by_kind[kind], kind in asked.kinds, asked.kind_address(kind)) for kind in EntryKind
        ],
        "all_kinds": asked.kind_address(None),
        "days": list(group_days(entries)),
        "total": total,
        "shown_from": (number - 1) * PAGE_SIZE + 1,
        "shown_to": (number - 1) * PAGE_SIZE + len(entries),
        "newer": asked.address(page=str(number - 1)) if number > 1 else "",
        "older": asked.address(page=str(number + 1)) if number < pages and entries else "",
        "is_cut": number == pages == MOST_PAGES,
        "panel": draw_counts(reading.counts, asked.span),
        "zoom_address": asked.address(period="", page="", **_NO_SPAN),
        "whole_day": asked.address(period="24h", **_NO_SPAN),
        "query": asked.permalink,
        "keep_days": round(settings.KEEP_EVENTS_HOURS / 24),
        "keep_moves_days": round(settings.KEEP_ENDED_REASSIGNMENTS_HOURS / 24),
    }
    return render(request, "timeline/timeline.html", context)


_NO_SPAN = {"from": "", "to": "", "finding": ""}


def _page_number(text: str) -> int:
    return min(MOST_PAGES, max(1, int(text))) if text.isdecimal() and len(text) < 9 else 1


def _find_finding(slug: str, public_id: str) -> Finding | None:
    return Finding.objects.filter(cluster__slug=slug, public_id=public_id).first() if public_id else None


def describe_total(total: int, asked: TimelineQuery, finding: Finding | None) -> str:
    """Return the title: how much changed, of what, and when."""
    things = choose_plural("# thing changed|# things changed", total) if total else "No changes seen"
    subject = describe_subject(asked)
    about = f" {'on' if asked.scope.broker is not None else 'about'} {subject}" if subject else ""
    if finding is not None:
        return f"{things}{about} in the 15 minutes before: {finding.title}"
    if asked.period:
        return f"{things}{about} in the last {PERIODS[asked.period]}"
    return f"{things}{about} between {_span_words(asked.span, asked.now)}"


def _span_words(span: TimeSpan, now: datetime) -> str:
    """Return both ends with as much of the date as tells them apart."""
    begin, end = span.begin.astimezone(UTC), span.end.astimezone(UTC)
    clock = "%H:%M" if not (begin.second or end.second) else "%H:%M:%S"
    day = "%-d %B" if begin.year == end.year == now.year else "%-d %B %Y"
    if begin.date() == end.date():
        date_words = "" if abs(now - begin) < _SAME_DAY else f" on {begin.strftime(day)}"
        return f"{begin.strftime(clock)} and {end.strftime(clock)}{date_words}"
    return f"{begin.strftime(f'{day} {clock}')} and {end.strftime(f'{day} {clock}')}"


def describe_subject(asked: TimelineQuery) -> str:
    """Return the broker, topic or group that the timeline is about; '' for the whole cluster."""
    scope = asked.scope
    if scope.broker is not None:
        return f"broker {scope.broker}"
    if scope.topic:
        return f"topic {scope.topic}"
    return f"group {scope.group or '(empty name)'}" if scope.group_key else ""


def _subject_url(asked: TimelineQuery) -> str:
    scope, values = asked.scope, asked.listing.values
    if scope.broker is not None:
        return reverse("monitoring:broker", args=[scope.slug, scope.broker])
    if scope.topic:
        return reverse("monitoring:topic", args=[scope.slug, scope.topic])
    return reverse("monitoring:group", args=[scope.slug, values["group"]]) if scope.group_key else ""


def group_days(entries: Iterable[TimelineEntry]) -> Iterable[TimelineDay]:
    for day, of_day in groupby(entries, lambda entry: entry.at.astimezone(UTC).date()):
        yield TimelineDay(day, list(of_day))


_LINES: Sequence[tuple[str, Ink, frozenset[EntryKind]]] = (
    ("findings", "critical", frozenset({EntryKind.FINDINGS})),
    ("brokers, controllers and leaders", 1, frozenset({EntryKind.BROKERS, EntryKind.CONTROLLERS, EntryKind.LEADERS})),
    (
        "changes, reassignments and maintenance",
        2,
        frozenset({EntryKind.CHANGES, EntryKind.MOVES, EntryKind.MAINTENANCE}),
    ),
    ("topics, configs and throttles", 3, frozenset({EntryKind.TOPICS, EntryKind.CONFIGS, EntryKind.THROTTLES})),
    ("groups", "context", frozenset({EntryKind.GROUPS})),
)


def draw_counts(counts: Sequence[KindCount], span: TimeSpan) -> ChartPanel:
    """Return the chart of entries by interval, of all kinds."""
    begin, step = span.begin.timestamp(), span.step.total_seconds()
    times = [round(begin + place * step, 3) for place in range(BUCKETS)]
    lines = []
    for label, ink, kinds in _LINES:
        values = [0] * BUCKETS
        for each in counts:
            if each.kind in kinds:
                values[min(BUCKETS - 1, max(0, each.bucket))] += each.count
        lines.append(ChartLine(label, ink, values, stepped=True))
    spec = ChartSpec(times, begin, span.end.timestamp(), lines, top=4.0)
    return ChartPanel(
        "changes",
        "Changes over time",
        f"Entries per {format_duration(step)}. Drag over the chart to choose a time.",
        spec,
        largest_rows(spec, lambda value: f"{value:,.0f}"),
        note="Entries of the timeline by interval, whatever kinds are listed below.",
    )


COLUMNS = ("at", "not_before", "kind", "code", "text", "count", "source", "state", "url", "details")
_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson; charset=utf-8"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@require_safe
@needs(VIEW)
def timeline_export(request: HttpRequest, slug: str) -> HttpResponse:
    """Return all entries that the filter leaves as a file: CSV, or JSON lines."""
    cluster = cluster_for(request, slug, VIEW)
    now = timezone.now()
    asked = TimelineQuery(request.GET, cluster, now)
    form = "jsonl" if request.GET.get("format") == "jsonl" else "csv"
    reading = read_timeline(asked.scope, asked.span)
    by_kind = count_kinds(reading.counts)
    if sum(by_kind[kind] for kind in asked.scope.kinds) > MOST_EXPORTED:
        return HttpResponseRedirect(f"{reverse('timeline:timeline', args=[slug])}{asked.address(refused='export')}")
    rows = [export_entry(entry, request) for entry in reading.list_entries(0, MOST_EXPORTED)]
    content = _write_csv(rows) if form == "csv" else "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    response = HttpResponse(content, content_type=_TYPES[form])
    name = f"kafkadash-timeline-{slug}-{now:%Y%m%d-%H%M%S}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def export_entry(entry: TimelineEntry, request: HttpRequest) -> dict[str, Any]:
    """Return the values of ``COLUMNS``; times in UTC, ``details`` the lines of the entry."""
    names = ("subject", "what", "before", "after", "note")
    return {
        "at": _stamp(entry.at),
        "not_before": _stamp(entry.not_before) if entry.not_before else None,
        "kind": entry.kind.value,
        "code": entry.code,
        "text": entry.text,
        "count": entry.count,
        "source": entry.source,
        "state": entry.state,
        "url": request.build_absolute_uri(entry.url) if entry.url else "",
        "details": [{name: getattr(line, name) for name in names} for line in entry.lines],
    }


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write_csv(rows: Sequence[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in COLUMNS])
    return out.getvalue()


def _cell(value: object) -> str:
    """Return a cell that no spreadsheet takes for a formula: one that begins like it gets an apostrophe (OWASP)."""
    if value is None:
        return ""
    content = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{content}" if content.startswith(_FORMULA) else content


@require_safe
@needs(VIEW)
def before_finding(request: HttpRequest, slug: str, finding_id: str) -> HttpResponse:
    """Lead to what changed in the 15 minutes before a finding; list the newest of it for the page of the finding."""
    cluster = cluster_for(request, slug, VIEW)
    finding = _find_finding(slug, finding_id)
    if finding is None:
        raise MissingObject(OnCallErrorCode.FINDING_FORGOTTEN, number=finding_id)
    address = f"{reverse('timeline:timeline', args=[slug])}{address_before(finding)}"
    if "HX-Request" not in request.headers:
        return HttpResponseRedirect(address)
    scope = TimelineScope(cluster.pk, slug, frozenset(EntryKind))
    reading = read_timeline(scope, find_span_before(finding))
    listed = reading.list_entries(0, MOST_BEFORE + 2)
    entries = [entry for entry in listed if not entry.key.endswith(finding.public_id)]
    total = sum(each.count for each in reading.counts) - (len(listed) - len(entries))
    context = {
        "now": timezone.now(),
        "address": address,
        "entries": entries[:MOST_BEFORE],
        "more": max(0, total - MOST_BEFORE),
    }
    return render(request, "timeline/_before_finding.html", context)


@dataclass(frozen=True, slots=True)
class ClosedFindingRow:
    """Closed finding as the list shows it. ``lasted``: from its beginning to its end."""

    finding: Finding
    kind: str
    lasted: str


@require_safe
@needs(VIEW)
@one_moment()
def closed_findings(request: HttpRequest, slug: str) -> HttpResponse:
    """List closed findings, the newest first, with a search in kind, subject and the names in the message."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    kinds = {kind.value: kind.about.name for kind in FindingKind}
    listing = ListQuery(
        request.GET, choices=[FilterChoice("kind", "kind", kinds)], texts=["q"], sorts={"closed": ["closed_at"]}
    )
    rows = Finding.objects.filter(cluster=cluster, closed_at__isnull=False, opened_at__isnull=False)
    if listing.values["kind"]:
        rows = rows.filter(kind=listing.values["kind"])
    if listing.values["q"]:
        rows = search_findings(rows, cluster.pk, listing.values["q"], kinds)
    page = listing.page_of(rows.select_related("acknowledged_by").order_by("-closed_at", "-pk"))
    shown = [ClosedFindingRow(row, kinds.get(row.kind, row.kind), _lasted(row)) for row in page.object_list]
    found = page.paginator.count
    matching = "matching " if listing.filtered else ""
    words = choose_plural(f"# {matching}closed finding|# {matching}closed findings", found)
    context = {
        **bar,
        "tab": "timeline",
        "title": f"{words} of {cluster.name}" if found else f"No {matching}closed findings of {cluster.name}",
        "listing": listing,
        "kinds": kinds,
        "page": page,
        "rows": shown,
        "keep_days": round(settings.KEEP_CLOSED_FINDINGS_HOURS / 24),
    }
    return render(request, "timeline/closed_findings.html", context)


def search_findings(rows: Any, cluster_id: int, text: str, kinds: dict[str, str]) -> Any:
    """Return the findings whose kind, number, scope or parameters have the text; a group is found by its name."""
    named = [kind for kind, name in kinds.items() if text.casefold() in name.casefold()]
    groups = GroupState.objects.filter(cluster=cluster_id, name__icontains=text).values_list("key", flat=True)
    return rows.annotate(told=Cast("message_params", TextField())).filter(
        Q(kind__in=named)
        | Q(public_id__icontains=text)
        | Q(scope__icontains=text)
        | Q(told__icontains=json.dumps(text, ensure_ascii=False)[1:-1])
        | Q(scope__in=groups, kind__in=(FindingKind.CONSUMER_LAG.value, FindingKind.CONSUMER_LOSS.value))
    )


def _lasted(row: Finding) -> str:
    begun = row.since or row.first_seen_at
    return long_duration(max(0.0, (row.closed_at - begun).total_seconds())) if row.closed_at else ""
