"""Absences of brokers during a run, as the observations of its steps saw them: kept in ``Execution.absences``.

A broker is away while it is fenced, or not registered although an earlier observation of the run saw it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.execution.engine.state import BrokerSeen
from kafkadash.execution.messages import ReportNoteCode

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
    """Observations of a run's brokers over all looks. ``brokers``: all that any look saw. ``gap_s``: the longest time
    without a look, from the start of the run on. ``more``: absences that are counted only.
    """

    first_at: datetime
    last_at: datetime
    gap_s: float
    brokers: frozenset[int]
    absences: tuple[BrokerAbsence, ...] = ()
    more: int = 0

    @property
    def away(self) -> Mapping[int, BrokerAbsence]:
        """Absences of the brokers that the last look did not see alive, by broker."""
        return {each.broker: each for each in self.absences if each.back_at is None}


def read_looks(stored: Mapping[str, Any] | None) -> LooksAtBrokers | None:
    """Return None where nothing was kept: before the first look."""
    return unpack_dataclass(LooksAtBrokers, stored) if stored else None


def note_look(
    stored: Mapping[str, Any] | None, brokers: Mapping[int, BrokerSeen], at: datetime, began: datetime | None
) -> dict[str, Any]:
    """Return what is kept after one more look; ``began`` is when the run did."""
    before = read_looks(stored)
    alive = {id_ for id_, broker in brokers.items() if broker.alive}
    if before is None:
        absent = tuple(BrokerAbsence(id_, None) for id_ in sorted(brokers.keys() - alive))
        gap = (at - began).total_seconds() if began else 0.0
        return pack_dataclass(LooksAtBrokers(at, at, max(0.0, gap), frozenset(brokers), absent))
    kept = [
        BrokerAbsence(each.broker, each.gone_at, at) if each.back_at is None and each.broker in alive else each
        for each in before.absences
    ]
    known = before.brokers | brokers.keys()
    left = [BrokerAbsence(id_, at) for id_ in sorted(known - alive - before.away.keys())]
    kept += left[: max(0, MOST_ABSENCES - len(kept))]
    looks = LooksAtBrokers(
        before.first_at,
        at,
        max(before.gap_s, (at - before.last_at).total_seconds()),
        known,
        tuple(kept),
        before.more + len(before.absences) + len(left) - len(kept),
    )
    return pack_dataclass(looks)


def absence_notes(stored: Mapping[str, Any] | None, ended: datetime) -> list[CodedMessage]:
    """Return what a report says of brokers: each absence with its times, and nothing that no look has seen."""
    looks = read_looks(stored)
    if looks is None:
        return [coded(ReportNoteCode.ABSENCES_NOT_RECORDED)]
    gap = max(looks.gap_s, (ended - looks.last_at).total_seconds())
    notes = [_describe_absence(each) for each in looks.absences]
    if looks.more:
        notes.append(coded(ReportNoteCode.MORE_ABSENCES, more=looks.more))
    if gap > WATCHED_S:
        code = ReportNoteCode.OTHERS_NOT_WATCHED if notes else ReportNoteCode.BROKERS_NOT_WATCHED
        notes.append(coded(code, gap=gap))
    elif not notes:
        notes.append(coded(ReportNoteCode.BROKERS_STAYED))
    return notes


def brokers_away(stored: Mapping[str, Any] | None) -> Mapping[int, BrokerAbsence]:
    """Return those that the last look of the run did not see alive."""
    looks = read_looks(stored)
    return looks.away if looks else {}


def _describe_absence(each: BrokerAbsence) -> CodedMessage:
    gone, back = each.gone_at, each.back_at
    if gone is None and back is None:
        return coded(ReportNoteCode.AWAY_ALL_THE_TIME, broker=each.broker)
    if gone is None:
        return coded(ReportNoteCode.AWAY_AT_THE_START, broker=each.broker, back=back)
    if back is None:
        return coded(ReportNoteCode.AWAY_AT_THE_END, broker=each.broker, gone=gone)
    away_s = (back - gone).total_seconds()
    return coded(ReportNoteCode.AWAY_BETWEEN, broker=each.broker, gone=gone, back=back, away_s=away_s)
