"""Texts of the report of a run, for its page and its Markdown file, from the stored figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kafkadash.changes.state_machine import ChangeState
from kafkadash.core.formatting import format_size as size_text
from kafkadash.core.formatting import run_time
from kafkadash.core.messages import CodedMessage, choose_plural, reason_text, stored_reason, unpack_value
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import MoveState, RunOutcome

_MARKUP = re.compile(r"([\\\\`*_{}\[\]<>()#+!|~-])")
_END_WORDS = {ChangeState.DONE: "Done", ChangeState.CANCELLED: "Cancelled", ChangeState.FAILED: "Failed"}


@dataclass(frozen=True, slots=True)
class OtherRow:
    """A row that did not end as done."""

    name: str
    words: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReportDone:
    """Action of a person or of kafkadash; ``person``: not of kafkadash itself."""

    at: datetime
    who: str
    did: str
    detail: Sequence[CodedMessage | str]

    @property
    def person(self) -> bool:
        return self.who != "kafkadash"


@dataclass(frozen=True)
class ReportShown:
    """``stored`` as ``report.report_of`` makes it."""

    stored: Mapping[str, Any]

    @property
    def number(self) -> int:
        return int(self.stored["change"])

    @property
    def ended(self) -> str:
        """Return a text such as "Done, with exceptions"."""
        word = _END_WORDS.get(ChangeState(self.stored["state"]), self.stored["state"])
        outcome = self.stored["outcome"]
        return f"{word}, {RunOutcome(outcome).label}" if outcome else word

    @property
    def state(self) -> str:
        """Status token of the run's end."""
        if self.stored["state"] == ChangeState.FAILED:
            return "critical"
        if self.stored["state"] == ChangeState.DONE and self.stored["outcome"] == RunOutcome.CLEAN:
            return "ok"
        return "warning" if self.stored["state"] == ChangeState.DONE else "unknown"

    @property
    def headline(self) -> str:
        """Return partitions moved of all, bytes copied, and duration in one sentence."""
        rows = self.stored["rows"]
        done = rows["by_end"].get(RowState.DONE.value, 0)
        moved = f"{done:,} of {choose_plural('# partition|# partitions', rows['total'])} moved"
        took = self.duration
        parts = [moved, *([self.copied] if self.stored["bytes"] is not None else []), *([f"in {took}"] if took else [])]
        return f"{', '.join(parts)}."

    @property
    def duration(self) -> str:
        """'' where it is not known."""
        took = self.stored["duration_s"]
        return "" if took is None else run_time(took)

    @property
    def copied(self) -> str:
        if self.stored["bytes"] is None:
            return "unknown"
        least = "at least " if self.stored["bytes_unknown"] else ""
        return f"{least}{size_text(self.stored['bytes'])} copied"

    @property
    def bytes_least(self) -> str:
        if self.stored["bytes"] is None:
            return "unknown"
        return f"{'at least ' if self.stored['bytes_unknown'] else ''}{size_text(self.stored['bytes'])}"

    @property
    def bytes_missing(self) -> str:
        """Number of partitions of unknown size, in words; '' where that is none of them, or all."""
        unknown = self.stored["bytes_unknown"]
        known = self.stored["bytes"] is not None
        return f"{choose_plural('# partition|# partitions', unknown)} of unknown size" if unknown and known else ""

    @property
    def bytes_words(self) -> str:
        return ", ".join(filter(None, (self.bytes_least, self.bytes_missing)))

    @property
    def rate_words(self) -> str:
        rate = self.stored["mean_rate"]
        return "unknown" if rate is None else f"{rate / 1e6:,.1f} MB/s"

    @property
    def started_at(self) -> datetime | None:
        return _parse_time(self.stored["started_at"])

    @property
    def ended_at(self) -> datetime | None:
        return _parse_time(self.stored["ended_at"])

    @property
    def ends(self) -> Sequence[tuple[str, int]]:
        """Rows by how they ended, in words; those that are done first."""
        found = self.stored["rows"]["by_end"]
        ordered = sorted(found, key=lambda state: (state != RowState.DONE.value, state))
        return [(MoveState(state).label, found[state]) for state in ordered]

    @property
    def otherwise(self) -> Sequence[OtherRow]:
        return [
            OtherRow(f"{topic}-{partition}", MoveState(state).label, reason_text(stored_reason(code, params)))
            for topic, partition, state, code, params in self.stored["otherwise"]
        ]

    @property
    def more_otherwise(self) -> int:
        """Rows that ended otherwise and are not named."""
        return int(self.stored["otherwise_count"]) - len(self.stored["otherwise"])

    @property
    def throttle_words(self) -> str:
        if not self.stored["obligations"]:
            return "All kafkadash throttles removed."
        return "Some kafkadash throttles remain. kafkadash removes them as soon as possible."

    @property
    def deviations(self) -> Sequence[CodedMessage]:
        return [CodedMessage.from_json(note) for note in self.stored["deviations"]]

    @property
    def meanwhile(self) -> Sequence[CodedMessage]:
        return [CodedMessage.from_json(note) for note in self.stored["meanwhile"]]

    @property
    def people(self) -> Sequence[ReportDone]:
        return [
            ReportDone(datetime.fromisoformat(one["at"]), one["who"], one["did"], unpack_value(one["detail"]))
            for one in self.stored["people"]
        ]


def render_markdown(report: ReportShown) -> str:
    """The whole report; text that people wrote cannot become markup."""
    return "\n".join(_render_lines(report)) + "\n"


def _render_lines(report: ReportShown) -> Iterator[str]:
    stored = report.stored
    yield f"# Change #{report.number}: {_escape_markup(stored['title'])}"
    yield ""
    yield f"**{report.ended}.** {report.headline}"
    yield ""
    yield f"- Cluster: {_escape_markup(stored['cluster']['name'])} ({stored['cluster']['id']})"
    yield f"- Started: {_format_utc(report.started_at)}"
    yield f"- Ended: {_format_utc(report.ended_at)}"
    yield f"- Duration: {report.duration or 'unknown'}"
    yield f"- Copied: {report.bytes_words}"
    yield f"- Mean rate: {report.rate_words}"
    yield f"- Digest: sha256:{stored['digest']}"
    yield from _section("Partitions", [f"{words}: {number:,}" for words, number in report.ends])
    named = [
        f"{_escape_markup(row.name)}: {row.words}. {_escape_markup(row.reason)}".rstrip() for row in report.otherwise
    ]
    if report.more_otherwise:
        named.append(f"and {report.more_otherwise:,} more")
    yield from _section("Partitions not completed as planned", named)
    yield from _section("Deviations from plan", [_escape_markup(str(note)) for note in report.deviations])
    yield from _section("Throttles", [report.throttle_words, *[_escape_markup(one) for one in stored["obligations"]]])
    yield from _section("Other cluster activity", [_escape_markup(str(note)) for note in report.meanwhile])
    yield from _section("Actions", [_render_event(one) for one in report.people])


def _section(title: str, items: Sequence[str]) -> Iterator[str]:
    if not items:
        return
    yield ""
    yield f"## {title}"
    yield ""
    for item in items:
        yield f"- {item}"


def _render_event(one: ReportDone) -> str:
    detail = f": {_escape_markup('; '.join(map(str, one.detail)))}" if one.detail else ""
    return f"{_format_utc(one.at)} {_escape_markup(one.who)} {_escape_markup(one.did)}{detail}"


def _escape_markup(text: str) -> str:
    """On one line, with what Markdown would read as markup escaped."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _format_utc(at: datetime | None) -> str:
    return "unknown" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _parse_time(stored: str | None) -> datetime | None:
    return datetime.fromisoformat(stored) if stored else None
