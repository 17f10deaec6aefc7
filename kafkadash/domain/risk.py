"""How risky a change is, as far as the server can tell by itself; a client cannot lower it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kafkadash.domain.wording import count, listed

# Points at most for each part; what is not known gets all of them.
BYTES = 35
PARTITIONS = 20
RF_DECREASE = 60
INTERNAL = 12
SPREAD_WORSE = 40
RACK_ON_ONE_BROKER = 12
IRREVERSIBLE = 60
HIGHEST = 100

MEDIUM_FROM = 25
HIGH_FROM = 60

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True, slots=True)
class RiskFacts:
    """What the floor is reckoned from. Shares are 0 to 1, of the whole cluster; None is not known and never harmless.

    ``rf_decreases``: partitions that lose a replica for good. ``internal_topics``: those that move.
    ``spread_worse``: partitions whose rack spread gets worse. ``racks_on_one_broker``: racks left with one broker that
    holds replicas. ``irreversible``: sentences about what no rollback brings back.
    """

    bytes_share: float | None
    partitions_share: float | None
    rf_decreases: int = 0
    internal_topics: int = 0
    spread_worse: int | None = 0
    racks_on_one_broker: tuple[str, ...] = ()
    irreversible: tuple[str, ...] = ()


class Level(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Reason:
    """One part of the floor: "+14 moves 16 % of the bytes"."""

    points: int
    text: str


@dataclass(frozen=True, slots=True)
class Floor:
    """``points`` 0 to 100; ``reasons`` in a fixed order, those without points left out. Their sum may pass 100."""

    points: int
    reasons: tuple[Reason, ...]

    @property
    def level(self) -> Level:
        return level_of(self.points)


def level_of(points: int | None) -> Level:
    """What is not known is high."""
    if points is None or points >= HIGH_FROM:
        return Level.HIGH
    return Level.MEDIUM if points >= MEDIUM_FROM else Level.LOW


def floor(facts: RiskFacts) -> Floor:
    """The risk floor. More of anything never lowers it, and not knowing weighs as much as the worst."""
    reasons = tuple(reason for reason in _reasons(facts) if reason.points)
    return Floor(min(HIGHEST, sum(reason.points for reason in reasons)), reasons)


def _reasons(facts: RiskFacts) -> Iterator[Reason]:
    yield _bytes(facts.bytes_share)
    yield _partitions(facts.partitions_share)
    if facts.rf_decreases:
        points = min(RF_DECREASE, 40 + facts.rf_decreases)
        verb = "ends" if facts.rf_decreases == 1 else "end"
        yield Reason(points, f"{count(facts.rf_decreases, 'partition')} {verb} with fewer replicas")
    if facts.internal_topics:
        name = _number(facts.internal_topics)
        yield Reason(min(INTERNAL, 3 * facts.internal_topics), f"{name} internal topic{_s(facts.internal_topics)}")
    yield from _spread(facts.spread_worse)
    if facts.racks_on_one_broker:
        racks = facts.racks_on_one_broker
        yield Reason(min(RACK_ON_ONE_BROKER, 4 * len(racks)), f"{listed(racks)} left with one broker")
    for place, sentence in enumerate(facts.irreversible):
        yield Reason(max(0, min(30, IRREVERSIBLE - 30 * place)), sentence)


def _bytes(share: float | None) -> Reason:
    """By the root of the share: the first tenth of a cluster's data says more than the last."""
    if share is None:
        return Reason(BYTES, "how many bytes move is not known")
    return Reason(round(BYTES * math.sqrt(_within(share))), f"moves {_percent(share)} of the bytes")


def _partitions(share: float | None) -> Reason:
    if share is None:
        return Reason(PARTITIONS, "how many of the partitions it touches is not known")
    return Reason(round(PARTITIONS * _within(share)), f"touches {_percent(share)} of the partitions")


def _spread(worse: int | None) -> Iterator[Reason]:
    if worse is None:
        yield Reason(SPREAD_WORSE, "whether the rack spread gets worse is not known")
    elif worse:
        verb = "is" if worse == 1 else "are"
        yield Reason(min(SPREAD_WORSE, 20 + worse), f"{count(worse, 'partition')} {verb} spread over racks worse")


def _within(share: float) -> float:
    return min(1.0, max(0.0, share))


def _percent(share: float) -> str:
    percent = round(100 * _within(share))
    return f"{percent} %" if percent else "less than 1 %"


def _number(number: int) -> str:
    return _WORDS[number] if number < len(_WORDS) else f"{number:,}"


def _s(number: int) -> str:
    return "" if number == 1 else "s"
