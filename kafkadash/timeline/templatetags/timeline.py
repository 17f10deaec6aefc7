"""Entries of the timeline as items of a list."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from kafkadash.monitoring.templatetags.figures import figure, iso
from kafkadash.monitoring.templatetags.marks import shape, since
from kafkadash.timeline.entries import EntryLine, TimelineEntry

register = template.Library()


@register.simple_tag
def timeline_entries(entries: Iterable[TimelineEntry], now: datetime) -> SafeString:
    """Return entries as items of a list.

    Formatted here, because a page has 100 entries with up to 5,000 lines: a template takes three times as long.
    """
    return format_html_join("\n", "{}", ((_format_entry(entry, now),) for entry in entries))


def _format_entry(entry: TimelineEntry, now: datetime) -> SafeString:
    return format_html(
        '<li class="timeline-entry" id="{}" data-kind="{}" data-code="{}"{}>'
        '<p class="timeline-time"><time datetime="{}">{}</time><span class="muted">{} ago</span></p>'
        '<div class="timeline-what">{}{}<p class="timeline-source muted">{} · seen in {}{}</p></div></li>',
        entry.key,
        entry.kind.value,
        entry.code,
        format_html(' data-state="{}"', entry.state) if entry.state else "",
        iso(entry.at),
        f"{entry.at.astimezone(UTC):%H:%M:%S}",
        since(entry.at, now),
        _format_title(entry),
        _format_lines(entry) if entry.lines else "",
        entry.kind.words,
        entry.source,
        _format_earliest(entry, entry.not_before) if entry.not_before else "",
    )


def _format_title(entry: TimelineEntry) -> SafeString:
    if entry.url:
        title = format_html('<a class="strong wrap-anywhere" href="{}">{}</a>', entry.url, entry.text)
    else:
        title = format_html('<span class="strong wrap-anywhere">{}</span>', entry.text)
    return format_html('<p class="timeline-title">{}{}</p>', shape(entry.state) if entry.state else "", title)


def _format_earliest(entry: TimelineEntry, not_before: datetime) -> SafeString:
    begin, at = not_before.astimezone(UTC), entry.at.astimezone(UTC)
    words = f"{begin:%H:%M:%S}" if begin.date() == at.date() else f"{begin:%-d %b %H:%M:%S}"
    return format_html(' · happened after <time datetime="{}">{}</time>', iso(begin), words)


def _format_lines(entry: TimelineEntry) -> SafeString:
    """Return the lines as a list, folded where they are many."""
    items = [_format_line(line) for line in entry.lines]
    if entry.more > 0:
        items.append(format_html('<li class="muted">and {} more</li>', figure(entry.more)))
    listed = format_html('<ul class="timeline-lines">{}</ul>', mark_safe("\n".join(items)))  # noqa: S308  each is formatted
    if entry.is_short:
        return listed
    return format_html(
        '<details class="disclosure" id="{}-lines"><summary>Show {}{}</summary>{}</details>',
        entry.key,
        figure(len(entry.lines)),
        f" of {figure(entry.count)}" if entry.more > 0 else "",
        listed,
    )


def _format_line(line: EntryLine) -> SafeString:
    layout = _lay_out(bool(line.url), bool(line.what), line.before is not None, bool(line.after), bool(line.note))
    return format_html(layout, line.url, line.subject, line.what, line.before, line.after, line.note)


@lru_cache
def _lay_out(has_url: bool, has_what: bool, has_before: bool, has_after: bool, has_note: bool) -> str:
    """Return the format of a line with these parts."""
    parts = [
        '<li class="wrap-anywhere">',
        '<a href="{0}">{1}</a>' if has_url else "{1}",
        " {2}" if has_what else "",
        " <del>{3}</del> →" if has_before else "",
        " <b>{4}</b>" if has_after else "",
        ' <span class="muted">{5}</span>' if has_note else "",
        "</li>",
    ]
    return "".join(parts)
