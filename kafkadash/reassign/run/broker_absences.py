"""Brokers that were away while a run went on, as the looks of its steps saw it: kept in ``Execution.absences``.

A broker is away while it is fenced, and while it is not registered though an earlier look of the run saw it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kafkadash.domain.executor_state import BrokerSeen
from kafkadash.domain.wording import count, duration

MOST_ABSENCES = 100
"""So many are kept; those after them are counted."""
WATCHED_S = 60.0
"""A broker that restarts in less than this may come back between two looks; longer gaps are told."""


@dataclass(frozen=True, slots=True)
class BrokerAbsence:
    """``gone_at`` is the first look at which the broker was away, None where it was before the run's first look;
    ``back_at`` the first one at which it was there again, None where it is still away.
    """

    broker: int
    gone_at: datetime | None
    back_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LooksAtBrokers:
    """What the looks of one run told of its brokers. ``brokers``: all that any look saw. ``gap_s``: the longest time
    for which nobody looked, from the start of the run on. ``more``: absences that are counted only.
    """

    first_at: datetime
    last_at: datetime
    gap_s: float
    brokers: frozenset[int]
    absences: tuple[BrokerAbsence, ...] = ()
    more: int = 0

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> LooksAtBrokers | None:
        """None where nothing was kept: before the first look, and of runs of an earlier version."""
        if not stored:
            return None
        return cls(
            datetime.fromisoformat(stored["first_at"]),
            datetime.fromisoformat(stored["last_at"]),
            stored["gap_s"],
            frozenset(stored["brokers"]),
            tuple(BrokerAbsence(broker, _moment(gone), _moment(back)) for broker, gone, back in stored["absences"]),
            stored["more"],
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "first_at": self.first_at.isoformat(),
            "last_at": self.last_at.isoformat(),
            "gap_s": round(self.gap_s, 1),
            "brokers": sorted(self.brokers),
            "absences": [[each.broker, _written(each.gone_at), _written(each.back_at)] for each in self.absences],
            "more": self.more,
        }

    @property
    def away(self) -> Mapping[int, BrokerAbsence]:
        """Those that the last look did not see alive, by broker."""
        return {each.broker: each for each in self.absences if each.back_at is None}


def note_look(
    stored: Mapping[str, Any] | None, brokers: Mapping[int, BrokerSeen], at: datetime, began: datetime | None
) -> dict[str, Any]:
    """Return what is kept after one more look; ``began`` is when the run did."""
    before = LooksAtBrokers.from_json(stored)
    alive = {id_ for id_, broker in brokers.items() if broker.alive}
    if before is None:
        away = tuple(BrokerAbsence(id_, None) for id_ in sorted(brokers.keys() - alive))
        gap = (at - began).total_seconds() if began else 0.0
        return LooksAtBrokers(at, at, max(0.0, gap), frozenset(brokers), away).as_json()
    kept = [
        BrokerAbsence(each.broker, each.gone_at, at) if each.back_at is None and each.broker in alive else each
        for each in before.absences
    ]
    known = before.brokers | brokers.keys()
    left = [BrokerAbsence(id_, at) for id_ in sorted(known - alive - before.away.keys())]
    kept += left[: max(0, MOST_ABSENCES - len(kept))]
    return LooksAtBrokers(
        before.first_at,
        at,
        max(before.gap_s, (at - before.last_at).total_seconds()),
        known,
        tuple(kept),
        before.more + len(before.absences) + len(left) - len(kept),
    ).as_json()


def absence_sentences(stored: Mapping[str, Any] | None, ended: datetime) -> list[str]:
    """Return what a report says of brokers: each absence with its times, and nothing that no look has seen."""
    looks = LooksAtBrokers.from_json(stored)
    if looks is None:
        return ["Whether brokers were away meanwhile was not recorded."]
    gap = max(looks.gap_s, (ended - looks.last_at).total_seconds())
    said = [_absence(each) for each in looks.absences]
    if looks.more:
        said.append(f"Brokers were away {count(looks.more, 'more time')}.")
    if gap > WATCHED_S:
        seen = "Others could" if said else "No broker was seen away, but one could"
        said.append(f"{seen} have been: the cluster was not read for up to {duration(gap)}.")
    elif not said:
        said.append("Every broker that was there when it began was there at each look until it ended.")
    return said


def brokers_away(stored: Mapping[str, Any] | None) -> Mapping[int, BrokerAbsence]:
    """Return those that the last look of the run did not see alive."""
    looks = LooksAtBrokers.from_json(stored)
    return looks.away if looks else {}


def _absence(each: BrokerAbsence) -> str:
    broker = f"Broker {each.broker}"
    if each.gone_at is None and each.back_at is None:
        return f"{broker} was away when it began and when it ended."
    if each.gone_at is None:
        return f"{broker} was away when it began, and was back at {time_words(each.back_at)}."
    if each.back_at is None:
        return f"{broker} was away from {time_words(each.gone_at)} on, and was not back when it ended."
    took = duration((each.back_at - each.gone_at).total_seconds())
    return f"{broker} was away from {time_words(each.gone_at)} to {time_words(each.back_at)}, {took}."


def time_words(at: datetime | None) -> str:
    """ "24 Nov 10:02:13 UTC"."""
    return f"{at.astimezone(UTC):%d %b %H:%M:%S} UTC" if at else "an unknown time"


def _moment(stored: str | None) -> datetime | None:
    return datetime.fromisoformat(stored) if stored else None


def _written(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
