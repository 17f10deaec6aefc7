"""Details of an entry as a list."""

from __future__ import annotations

from functools import lru_cache

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from kafkadash.monitoring.templatetags.figures import figure
from kafkadash.timeline.entries import EntryLine, TimelineEntry

register = template.Library()


@register.simple_tag
def entry_lines(entry: TimelineEntry) -> SafeString:
    """Return the lines of an entry as a list. A template would take three times as long: a page has up to 5,000."""
    items = [_format_line(line) for line in entry.lines]
    if entry.more > 0:
        items.append(format_html('<li class="muted">and {} more</li>', figure(entry.more)))
    listed = mark_safe("\n".join(items))  # noqa: S308  each is formatted above
    return format_html('<ul class="timeline-lines">{}</ul>', listed)


def _format_line(line: EntryLine) -> SafeString:
    layout = _lay_out(bool(line.url), bool(line.what), line.before is not None, bool(line.after), bool(line.note))
    return format_html(layout, line.url, line.subject, line.what, line.before, line.after, line.note)


@lru_cache
def _lay_out(has_url: bool, has_what: bool, has_before: bool, has_after: bool, has_note: bool) -> str:
    """Return the format of a line with these parts. Each line is formatted once: that is the time a page takes."""
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
