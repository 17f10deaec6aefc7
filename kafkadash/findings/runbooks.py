"""Runbooks, one for each kind of finding: Markdown files in ``docs/runbooks`` and their pages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import signed_in, visible_clusters
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding

_CODE = re.compile(r"<code[^>]*>.*?</code>", re.DOTALL)
FOLDER = settings.BASE_DIR / "docs" / "runbooks"


@dataclass(frozen=True, slots=True)
class FindingRunbook:
    """``title`` is its first heading, ``lead`` the first paragraph, ``html`` all after the heading."""

    kind: FindingKind
    title: str
    lead: SafeString
    html: SafeString


@cache
def read_runbook(kind: FindingKind) -> FindingRunbook:
    """Raises FileNotFoundError where there is none, ValueError for one that does not begin with a heading."""
    text = (FOLDER / f"{kind.value}.md").read_text(encoding="utf-8")
    heading, _, body = text.partition("\n")
    if not heading.startswith("# "):
        raise ValueError(f"The runbook {kind.value}.md does not begin with a heading.")
    lead = body.strip().split("\n\n", 1)[0]
    return FindingRunbook(kind, heading.removeprefix("# ").strip(), render_markdown(lead), render_markdown(body))


def render_markdown(markdown: str) -> SafeString:
    """Markdown as HTML. Raw HTML in it is shown as text, never taken over; links keep only harmless addresses."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    html: str = parser.render(markdown)
    return mark_safe(html)  # noqa: S308  the parser escapes everything that is not Markdown


def fill_commands(html: SafeString, values: Mapping[str, str]) -> SafeString:
    """Return a runbook's HTML with the placeholders of its commands replaced; each value is quoted for a shell."""
    places = re.compile("|".join(rf"\b{re.escape(place)}\b" for place in values))

    def fill(code: re.Match[str]) -> str:
        return places.sub(lambda place: escape(shlex.quote(values[place[0]])), code[0])

    return mark_safe(_CODE.sub(fill, html))  # noqa: S308  values are escaped


def all_runbooks() -> list[FindingRunbook]:
    """In the order of urgency."""
    return [read_runbook(kind) for kind in FindingKind]


@require_safe
@signed_in
def runbooks(request: HttpRequest) -> HttpResponse:
    """All of them, most urgent first, with those that are needed now marked."""
    open_now = Finding.objects.filter(
        Q(cluster__in=visible_clusters(request.user)) | Q(cluster=None), closed_at=None, opened_at__isnull=False
    ).values_list("kind", flat=True)
    return render(
        request, "findings/runbooks.html", {"section": "status", "runbooks": all_runbooks(), "needed": set(open_now)}
    )


@require_safe
@signed_in
def runbook(request: HttpRequest, kind: str) -> HttpResponse:
    if kind not in list(FindingKind):
        raise MissingObject(OnCallErrorCode.NO_SUCH_RUNBOOK, kind=kind)
    return render(request, "findings/runbook.html", {"section": "status", "runbook": read_runbook(FindingKind(kind))})
