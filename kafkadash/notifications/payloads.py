"""Messages in the formats of their receivers. Pure.

Names of topics and groups are text of others: they never become markup, links or mentions of a receiver, nor lines of
their own. Programs get them as they are, people without line breaks and marks that turn the direction of text.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafkadash.core.status import HealthState

VERSION = 1
MOST_LISTED = 20
"""Events of a message that are listed one by one; of the others, their number."""
MOST_SENT = 200
"""The same of a webhook, which programs read."""

SLACK_HEADER, SLACK_TEXT, PAGERDUTY_SUMMARY, MAIL_SUBJECT = 150, 2_900, 1_024, 200
"""Most characters that each of these takes."""


@dataclass(frozen=True, slots=True)
class ConsequenceContent:
    """Finding that follows from the finding of an event."""

    subject_id: str
    kind: str
    severity: str
    code: str
    title: str


@dataclass(frozen=True, slots=True)
class EventContent:
    """Event as it is sent. ``event_id`` stays the same in every message that has it.

    ``consequences`` are the first of ``consequence_count`` findings; of an event that closes, those still open.
    """

    event_id: str
    cluster: str
    subject: str
    subject_id: str
    step: str
    kind: str
    severity: str
    code: str
    title: str
    text: str
    url: str
    runbook_url: str
    occurred_at: datetime
    consequences: Sequence[ConsequenceContent] = ()
    consequence_count: int = 0

    @property
    def long_text(self) -> str:
        """Text in one line, with the consequences in another."""
        text = _one_line(self.text)
        if not self.consequence_count:
            return text
        titles = _one_line("; ".join(each.title for each in self.consequences))
        more = self.consequence_count - len(self.consequences)
        word = "Still open" if self.closes else "Consequences"
        return f"{text}\n{word} ({self.consequence_count}): {titles}{f'; {more} more' if more > 0 else ''}"

    @property
    def closes(self) -> bool:
        return self.step == "closed"

    @property
    def word(self) -> str:
        """Severity of what opened, else the step."""
        return self.severity.upper() if self.step in ("opened", "escalated") else self.step.upper()

    @property
    def headline(self) -> str:
        where = f"{self.cluster}: " if self.cluster else ""
        return _one_line(f"[{self.word}] {where}{self.title}")


@dataclass(frozen=True, slots=True)
class MessageContent:
    """Message as it is sent, with the same ``message_id`` in every try. ``summary``: of a digest."""

    message_id: str
    events: Sequence[EventContent]
    digest: bool
    summary: str
    url: str

    @property
    def headline(self) -> str:
        if self.digest or len(self.events) > 1:
            return _one_line(f"[{self._worst_word()}] {self.summary}")
        return self.events[0].headline

    def _worst_word(self) -> str:
        opened = [each.severity for each in self.events if not each.closes and each.severity]
        return min(opened, key=lambda state: HealthState(state).severity).upper() if opened else "CLOSED"


@dataclass(frozen=True, slots=True)
class TextStyle:
    """Form in which a service shows a text as it is. ``most``: characters of a body, ``title``: of a title, or 0.

    ``quote`` keeps a text from becoming markup, a mention or a link between ``begin`` and ``end``.
    """

    most: int
    title: int
    begin: str
    end: str
    quote: Callable[[str], str]

    @classmethod
    def fenced(cls, most: int) -> TextStyle:
        """Code block of Markdown. Google Chat has no rule for mentions such as <users/all> in it."""
        return cls(most, 0, "```\n", "\n```", lambda text: text.replace("```", "\N{PRIME}" * 3).replace("<", "‹"))

    @classmethod
    def preformatted(cls, most: int) -> TextStyle:
        """Preformatted HTML; characters count as they are shown."""
        return cls(most, 0, "<pre>", "</pre>", html.escape)

    @classmethod
    def plain(cls, most: int, *, title: int) -> TextStyle:
        """Plain text, in which an address is a link all the same."""
        return cls(most, title, "", "", lambda text: text.replace("://", "∶//"))


def write_webhook(content: MessageContent, key: str, sent_at: datetime) -> tuple[bytes, dict[str, str]]:
    """Return body and headers, signed as Standard Webhooks does: HMAC-SHA256 of id, time and body.

    The time lets a receiver refuse a body that somebody sends again later.
    """
    document = {
        "version": VERSION,
        "id": content.message_id,
        "digest": content.digest,
        "summary": content.headline,
        "events": [_event_document(each) for each in content.events[:MOST_SENT]],
        "more": max(0, len(content.events) - MOST_SENT),
    }
    body = _pack(document)
    stamp = str(int(sent_at.timestamp()))
    signed = f"{content.message_id}.{stamp}.".encode() + body
    digest = base64.b64encode(hmac.new(key.encode(), signed, hashlib.sha256).digest()).decode()
    headers = {"webhook-id": content.message_id, "webhook-timestamp": stamp, "webhook-signature": f"v1,{digest}"}
    return body, headers


def write_slack(content: MessageContent) -> bytes:
    """Blocks of an incoming webhook: texts are plain, and only addresses of kafkadash are links."""
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain_text(content.headline, SLACK_HEADER)},
    ]
    for event in content.events[:MOST_LISTED]:
        text = event.long_text if len(content.events) == 1 else f"{event.headline}\n{event.long_text}"
        blocks.append({"type": "section", "text": _plain_text(text, SLACK_TEXT)})
        if links := _slack_links(event):
            blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": links}]})
    if more := _count_more(content):
        blocks.append({"type": "section", "text": _plain_text(more, SLACK_TEXT)})
    return _pack({"text": _escape_slack(content.headline), "blocks": blocks})


def write_teams(content: MessageContent) -> bytes:
    """Adaptive card for a Workflows webhook. Text runs, unlike text blocks, know no markdown."""
    body = [_card_text(content.headline, weight="Bolder", size="Medium")]
    for event in content.events[:MOST_LISTED]:
        if len(content.events) > 1:
            body.append(_card_text(event.headline, weight="Bolder"))
        body += [_card_text(line) for line in event.long_text.splitlines()]
    if more := _count_more(content):
        body.append(_card_text(more))
    actions = [{"type": "Action.OpenUrl", "title": title, "url": url} for title, url in _list_links(content)]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": actions,
    }
    content_type = "application/vnd.microsoft.card.adaptive"
    return _pack(
        {"type": "message", "attachments": [{"contentType": content_type, "contentUrl": None, "content": card}]}
    )


def write_pagerduty(content: MessageContent, routing_key: str, incident: str) -> bytes:
    """Event of the Events API v2. ``incident``: deduplication key, that of the opening in its closing.

    A digest opens one incident, and closes with the last of its findings.
    """
    newest = content.events[-1]
    closed = {each.subject_id for each in content.events if each.closes}
    closes = all(each.subject_id in closed for each in content.events)
    event: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "resolve" if closes else "trigger",
        "dedup_key": incident,
        "client": "kafkadash",
    }
    if content.url:
        event["client_url"] = content.url
    if not closes:
        severities = [each.severity for each in content.events if not each.closes]
        event["payload"] = {
            "summary": content.headline[:PAGERDUTY_SUMMARY],
            "source": _one_line(newest.cluster) or "kafkadash",
            "severity": "critical" if HealthState.CRITICAL in severities else "warning",
            "timestamp": newest.occurred_at.isoformat(),
            "component": _one_line(newest.cluster),
            "class": newest.kind,
            "custom_details": {"text": [each.long_text for each in content.events[:MOST_LISTED]]},
        }
        event["links"] = [{"href": url, "text": title} for title, url in _list_links(content)]
    return _pack(event)


def write_text(content: MessageContent, style: TextStyle) -> tuple[str, str]:
    """Return title and body for a service that takes a text; the title is empty where the body has it.

    Only addresses of kafkadash are outside of what the style quotes.
    """
    title = content.headline if style.title else ""
    lines: list[str] = []
    for event in content.events[:MOST_LISTED]:
        if not title or len(content.events) > 1:
            lines.append(event.headline)
        lines += [event.long_text, f"{event.occurred_at:%Y-%m-%d %H:%M:%S} UTC", ""]
    if not title and len(content.events) > 1:
        lines = [content.headline, "", *lines]
    lines += filter(None, [_count_more(content)])
    links = "".join(f"\n{name}: {url}" for name, url in _list_links(content))
    text = "\n".join(lines).strip()
    room = style.most - len(links) - len(style.begin) - len(style.end)
    if len(text) > room:
        text = f"{text[: room - 1]}…"
    return title[: style.title], f"{style.begin}{style.quote(text)}{style.end}{links}"


def write_mail(content: MessageContent) -> tuple[str, str]:
    """Return subject and body, plain text."""
    lines = []
    for event in content.events[:MOST_LISTED]:
        lines += [event.headline, event.long_text, f"{event.occurred_at:%Y-%m-%d %H:%M:%S} UTC"]
        lines += [line for line in (event.url, event.runbook_url) if line]
        lines.append("")
    lines += filter(None, [_count_more(content)])
    return content.headline[:MAIL_SUBJECT], "\n".join(lines)


def _event_document(event: EventContent) -> Mapping[str, Any]:
    return {
        "id": event.event_id,
        "cluster": event.cluster,
        "subject": event.subject,
        "subject_id": event.subject_id,
        "step": event.step,
        "kind": event.kind,
        "severity": event.severity,
        "code": event.code,
        "title": event.title,
        "text": event.text,
        "url": event.url,
        "runbook_url": event.runbook_url,
        "occurred_at": event.occurred_at.isoformat(),
        "consequences": [
            {
                "id": each.subject_id,
                "kind": each.kind,
                "severity": each.severity,
                "code": each.code,
                "title": each.title,
            }
            for each in event.consequences
        ],
        "consequence_count": event.consequence_count,
    }


def _count_more(content: MessageContent) -> str:
    more = len(content.events) - MOST_LISTED
    return f"{more} more" if more > 0 else ""


def _list_links(content: MessageContent) -> list[tuple[str, str]]:
    if len(content.events) > 1:
        return [("Open the status board", content.url)] if content.url else []
    [event] = content.events
    links = [("Open in kafkadash", event.url), ("Runbook", event.runbook_url)]
    return [(title, url) for title, url in links if url]


def _slack_links(event: EventContent) -> str:
    links = [("Open in kafkadash", event.url), ("Runbook", event.runbook_url)]
    return " · ".join(f"<{url}|{title}>" for title, url in links if url)


def _plain_text(text: str, most: int) -> dict[str, Any]:
    return {"type": "plain_text", "emoji": False, "text": text[:most] or "-"}


def _escape_slack(text: str) -> str:
    """As Slack asks for: without these, no text is a link or a mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _card_text(text: str, **style: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}


def _one_line(text: str) -> str:
    """Return the text without line breaks, control characters and marks of direction, which turn what follows."""
    return "".join(each if each.isprintable() else " " for each in text)


def _pack(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
