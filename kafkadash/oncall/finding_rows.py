"""Findings as the pages show them: stored ones, and those that the ages alone tell at the time of looking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from django.urls import reverse

from kafkadash.clusters.models import Cluster
from kafkadash.domain.facts import Facts
from kafkadash.domain.finding_kinds import FindingKind, Source
from kafkadash.domain.headline import Point
from kafkadash.domain.staleness import AgeFinding, ages, not_judged, trusted
from kafkadash.domain.status import State, is_stale
from kafkadash.domain.wording import count
from kafkadash.oncall.models import Finding
from kafkadash.oncall.next_steps import NextStep, next_step

STEADY_AFTER = timedelta(minutes=10)
_WIDTH, _TOP, _BOTTOM = 100.0, 3.0, 20.0


@dataclass(frozen=True, slots=True)
class Trend:
    """How the number went: in words, as points of a line in a box of 100 × 22, and where the limit lies in it."""

    words: str
    points: str
    limit_y: str


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding on a page. ``row`` is None for one that the ages tell and nobody has stored yet.

    ``old``: the data behind it is too old to say that it is still so.
    """

    cluster: Cluster
    now: datetime
    kind: FindingKind
    said: Finding | AgeFinding
    row: Finding | None
    old: bool = False

    @property
    def own_state(self) -> State:
        """As it was when it was last seen."""
        return self.kind.about.state

    @property
    def state(self) -> State:
        return State.UNKNOWN if self.old else self.own_state

    @property
    def word(self) -> str:
        return f"Was {self.own_state.word}" if self.old else self.kind.about.word

    @property
    def html_id(self) -> str:
        return f"finding-{self.row.public_id}" if self.row else f"finding-{self.cluster.slug}-{self.kind}"

    @property
    def url(self) -> str:
        """Its own page; '' while it is not stored."""
        return f"{_folder(self.cluster.slug)}{self.row.public_id}/" if self.row else ""

    @property
    def runbook_url(self) -> str:
        return _runbook_address(self.kind)

    @property
    def since(self) -> datetime | None:
        if self.said.since is not None:
            return self.said.since
        return self.row.first_seen_at if self.row else None

    @property
    def seen_at(self) -> datetime | None:
        return self.row.seen_at if self.row else None

    @property
    def owner(self) -> str:
        return self.row.acknowledged_by.get_username() if self.row and self.row.acknowledged_by else ""

    @property
    def trend(self) -> Trend | None:
        threshold = self.row.threshold if self.row else None
        return trend_of(self.row.history, threshold, self.now) if self.row and self.row.history else None

    @property
    def next(self) -> NextStep | None:
        return next_step(self.cluster, self.kind, self.row.scope if self.row else "")

    @property
    def point(self) -> Point:
        return Point(self.kind, self.state, self.said.answer, self.owner)


def rows_of(
    cluster: Cluster, stored: Iterable[Finding], facts: Facts, judged_at: datetime | None, now: datetime
) -> tuple[FindingRow, ...]:
    """All that is wrong with a cluster as of ``now``, most urgent first.

    Ages are judged here and now, so that nothing old looks well when nobody judges any more; what is stored about them
    gives them their identity. ``facts`` need only hold the ages (``facts.age_facts``).
    """
    kept = list(stored)
    by_kind = {row.kind: row for row in kept}
    own = list(ages(facts, now))
    if not own and (forgotten := not_judged(judged_at, facts, now)):
        own.append(forgotten)
    rows = [FindingRow(cluster, now, a.kind, a, by_kind.get(a.kind.value)) for a in own]
    history = not trusted(facts, now)
    for row in kept:
        kind = FindingKind(row.kind)
        if kind.about.source is not Source.AGES:
            rows.append(FindingRow(cluster, now, kind, row, row, old=history or _old(row, kind, facts, now)))
    return tuple(sorted(rows, key=_urgency))


def trend_of(history: list[list[float]], threshold: float | None, now: datetime) -> Trend:
    """``history`` as ``models.Finding`` keeps it, not empty."""
    values = [value for _, value in history]
    changed_at = datetime.fromtimestamp(history[-1][0], UTC)
    word = "steady"
    if len(values) > 1 and now - changed_at < STEADY_AFTER:
        word = "rising" if values[-1] > values[-2] else "falling"
    at_first = f", {values[0]:,g} at first" if values[0] != values[-1] else ""
    low, high = min([*values, threshold or 0.0]), max([*values, threshold or 0.0])
    begin, end = history[0][0], max(now.timestamp(), history[-1][0] + 1)

    def x(at: float) -> float:
        return _WIDTH * (at - begin) / (end - begin)

    def y(value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * ((value - low) / (high - low) if high > low else 0.5)

    corners = []
    for (at, value), then in zip(history, [*(h[0] for h in history[1:]), end], strict=True):
        corners += [f"{x(at):.1f},{y(value):.1f}", f"{x(then):.1f},{y(value):.1f}"]
    return Trend(word + at_first, " ".join(corners), f"{y(threshold):.1f}" if threshold is not None else "")


def counted(rows: Iterable[FindingRow]) -> Mapping[FindingKind, int]:
    """How many of each kind, most urgent kind first."""
    found: dict[FindingKind, int] = {}
    for row in sorted(rows, key=lambda row: row.kind.rank):
        found[row.kind] = found.get(row.kind, 0) + 1
    return found


def more_words(number: int) -> str:
    return count(number, "more finding")


@cache
def _folder(slug: str) -> str:
    """Where the findings of a cluster lie: a board has hundreds of addresses, and finding one is slow."""
    return reverse("oncall:finding", args=[slug, "f"]).removesuffix("f/")


@cache
def _runbook_address(kind: FindingKind) -> str:
    return reverse("oncall:runbook", args=[kind.value])


def _old(row: Finding, kind: FindingKind, facts: Facts, now: datetime) -> bool:
    """That the controllers are silent is seen in every try, whenever their last answer was."""
    if kind is FindingKind.QUORUM_LOST:
        return False
    return is_stale(row.seen_at, facts.refreshed(kind.about.source).interval_s, now)


def _urgency(row: FindingRow) -> tuple[int, bool, int, int, datetime, float, str]:
    """Of those of one kind that opened together, the one with the largest number first."""
    opened = row.row.first_seen_at if row.row else row.now
    scope = row.row.scope if row.row else ""
    number = -(row.row.value or 0.0) if row.row else 0.0
    return row.state.severity, row.old, row.own_state.severity, row.kind.rank, opened, number, scope
