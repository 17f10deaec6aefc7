"""The runbooks, one for each kind of finding, written in Markdown in ``docs/runbooks`` and shown as pages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from kafkadash.domain.finding_kinds import FindingKind

FOLDER = settings.BASE_DIR / "docs" / "runbooks"


@dataclass(frozen=True, slots=True)
class Runbook:
    """``title`` is its first heading, ``lead`` the first paragraph, ``html`` all after the heading."""

    kind: FindingKind
    title: str
    lead: SafeString
    html: SafeString


@cache
def runbook(kind: FindingKind) -> Runbook:
    """Raises FileNotFoundError where there is none, ValueError for one that does not begin with a heading."""
    text = (FOLDER / f"{kind.value}.md").read_text(encoding="utf-8")
    heading, _, body = text.partition("\n")
    if not heading.startswith("# "):
        raise ValueError(f"The runbook {kind.value}.md does not begin with a heading.")
    lead = body.strip().split("\n\n", 1)[0]
    return Runbook(kind, heading.removeprefix("# ").strip(), rendered(lead), rendered(body))


def rendered(markdown: str) -> SafeString:
    """Markdown as HTML. Raw HTML in it is shown as text, never taken over; links keep only harmless addresses."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    html: str = parser.render(markdown)
    return mark_safe(html)  # noqa: S308  the parser escapes everything that is not Markdown


def all_runbooks() -> list[Runbook]:
    """In the order of urgency."""
    return [runbook(kind) for kind in FindingKind]
