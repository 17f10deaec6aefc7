"""Details of an entry as a list."""

from __future__ import annotations

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
    subject = format_html('<a href="{}">{}</a>', line.url, line.subject) if line.url else line.subject
    what = f" {line.what}" if line.what else ""
    before = "" if line.before is None else format_html(" <del>{}</del> →", line.before)
    after = format_html(" <b>{}</b>", line.after) if line.after else ""
    note = format_html(' <span class="muted">{}</span>', line.note) if line.note else ""
    return format_html('<li class="wrap-anywhere">{}{}{}{}{}</li>', subject, what, before, after, note)
