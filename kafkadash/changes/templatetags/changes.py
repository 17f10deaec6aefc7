"""Template tags for change requests: their phase, their facts, what is approved."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from kafkadash.changes.lists import phase_of
from kafkadash.monitoring.templatetags.marks import shape

register = template.Library()


@register.simple_tag
def phase_pill(state: str) -> SafeString:
    """The state of a request: a ring that fills, or a status where it is in trouble."""
    phase = phase_of(state)
    if phase.trouble:
        return format_html(
            '<span class="status-pill" data-state="{}">{}{}</span>', phase.trouble, shape(phase.trouble), phase.word
        )
    ring = "" if phase.phase == "ended" else _ring(phase.phase)
    return format_html('<span class="phase-pill" data-phase="{}">{}{}</span>', phase.phase, ring, phase.word)


@register.filter
def digest_groups(digest: str) -> str:
    """64 hexadecimal digits in groups of eight, so that two people can compare them aloud."""
    return " ".join(digest[at : at + 8] for at in range(0, len(digest), 8))


def _ring(phase: str) -> SafeString:
    return format_html('<svg aria-hidden="true"><use href="#phase-{}"/></svg>', phase)
