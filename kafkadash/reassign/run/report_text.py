"""The report of a run in words: what its page and its Markdown file show of the stored figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import reason_text
from kafkadash.domain.reasons import stored_reason
from kafkadash.domain.wording import count, run_time
from kafkadash.domain.wording import size as size_text
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.models import MoveState, Outcome

_MARKUP = re.compile(r"([\\\\`*_{}\[\]<>()#+!|~-])")
_END_WORDS = {State.DONE: "Done", State.CANCELLED: "Cancelled", State.FAILED: "Failed"}


@dataclass(frozen=True, slots=True)
class OtherRow:
    """A row that did not end as done."""

    name: str
    words: str
    reason: str


@dataclass(frozen=True, slots=True)
class Done:
    """What somebody did; ``person``: it was not kafkadash itself."""

    at: datetime
    who: str
    did: str
    detail: Sequence[str]

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
        """ "Done, with exceptions"."""
        word = _END_WORDS.get(State(self.stored["state"]), self.stored["state"])
        outcome = self.stored["outcome"]
        return f"{word}, {Outcome(outcome).label}" if outcome else word

    @property
    def state(self) -> str:
        """Of the status tokens."""
        if self.stored["state"] == State.FAILED:
            return "critical"
        if self.stored["state"] == State.DONE and self.stored["outcome"] == Outcome.CLEAN:
            return "ok"
        return "warning" if self.stored["state"] == State.DONE else "unknown"

    @property
    def headline(self) -> str:
        """The answer: how many of how many, how much, how long."""
        rows = self.stored["rows"]
        done = rows["by_end"].get(RowState.DONE.value, 0)
        moved = f"{done:,} of {count(rows['total'], 'partition')} moved"
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
            return "not known"
        least = "at least " if self.stored["bytes_unknown"] else ""
        return f"{least}{size_text(self.stored['bytes'])} copied"

    @property
    def bytes_least(self) -> str:
        if self.stored["bytes"] is None:
            return "not known"
        return f"{'at least ' if self.stored['bytes_unknown'] else ''}{size_text(self.stored['bytes'])}"

    @property
    def bytes_missing(self) -> str:
        """Of what the figure is not known; '' where that is nothing, or all."""
        unknown = self.stored["bytes_unknown"]
        known = self.stored["bytes"] is not None
        return f"{count(unknown, 'partition')} of unknown size" if unknown and known else ""

    @property
    def bytes_words(self) -> str:
        return ", ".join(filter(None, (self.bytes_least, self.bytes_missing)))

    @property
    def rate_words(self) -> str:
        rate = self.stored["mean_rate"]
        return "not known" if rate is None else f"{rate / 1e6:,.1f} MB/s"

    @property
    def started_at(self) -> datetime | None:
        return _moment(self.stored["started_at"])

    @property
    def ended_at(self) -> datetime | None:
        return _moment(self.stored["ended_at"])

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
            return "Nothing of our throttles is left."
        return "Something of our throttles could not be taken away yet; it is as soon as that is possible."

    @property
    def people(self) -> Sequence[Done]:
        return [
            Done(datetime.fromisoformat(one["at"]), one["who"], one["did"], one["detail"])
            for one in self.stored["people"]
        ]


def markdown(report: ReportShown) -> str:
    """The whole report; text that people wrote cannot become markup."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: ReportShown) -> Iterator[str]:
    stored = report.stored
    yield f"# Change #{report.number}: {_plain(stored['title'])}"
    yield ""
    yield f"**{report.ended}.** {report.headline}"
    yield ""
    yield f"- Cluster: {_plain(stored['cluster']['name'])} ({stored['cluster']['id']})"
    yield f"- Started: {_utc(report.started_at)}"
    yield f"- Ended: {_utc(report.ended_at)}"
    yield f"- Duration: {report.duration or 'not known'}"
    yield f"- Copied: {report.bytes_words}"
    yield f"- Mean rate: {report.rate_words}"
    yield f"- Digest: sha256:{stored['digest']}"
    yield from _section("Rows", [f"{words}: {number:,}" for words, number in report.ends])
    named = [f"{_plain(row.name)}: {row.words}. {_plain(row.reason)}".rstrip() for row in report.otherwise]
    if report.more_otherwise:
        named.append(f"and {report.more_otherwise:,} more")
    yield from _section("Rows that ended otherwise", named)
    yield from _section("Deviations from the plan", [_plain(one) for one in stored["deviations"]])
    yield from _section("Throttles", [report.throttle_words, *[_plain(one) for one in stored["obligations"]]])
    yield from _section("Meanwhile", [_plain(one) for one in stored["meanwhile"]])
    yield from _section("Who did what", [_did(one) for one in report.people])


def _section(title: str, items: Sequence[str]) -> Iterator[str]:
    if not items:
        return
    yield ""
    yield f"## {title}"
    yield ""
    for item in items:
        yield f"- {item}"


def _did(one: Done) -> str:
    detail = f": {_plain('; '.join(one.detail))}" if one.detail else ""
    return f"{_utc(one.at)} {_plain(one.who)} {_plain(one.did)}{detail}"


def _plain(text: str) -> str:
    """On one line, with what Markdown would read as markup escaped."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _utc(at: datetime | None) -> str:
    return "not known" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _moment(stored: str | None) -> datetime | None:
    return datetime.fromisoformat(stored) if stored else None
