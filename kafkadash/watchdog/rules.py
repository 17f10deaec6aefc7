"""Scheduled tasks that are audited, how late each may be, and which are overdue. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

AUDIT, BEAT, TICK, PRUNE, DEAD_MAN = "audit", "beat", "tick", "prune", "dead-man"


@dataclass(frozen=True, slots=True)
class TaskSchedule:
    """Seconds between two rounds, and seconds without a round after which the task is overdue.

    ``needs``: the task without which this one gets no work; '' for none. ``queue``: its workers answer probes.
    """

    interval_s: float
    limit_s: float
    needs: str = ""
    queue: bool = False


# A probe waits for a free thread: a plan may take 5 minutes, a step of a run some requests of 8 s each.
AUDITED: Mapping[str, TaskSchedule] = {
    AUDIT: TaskSchedule(10, 60),
    BEAT: TaskSchedule(10, 60),
    TICK: TaskSchedule(1, 60, BEAT),
    "collect": TaskSchedule(10, 120, TICK, queue=True),
    "notify": TaskSchedule(10, 120, TICK, queue=True),
    "execute": TaskSchedule(10, 300, TICK, queue=True),
    "jobs": TaskSchedule(10, 900, TICK, queue=True),
    PRUNE: TaskSchedule(600, 1800, TICK),
    DEAD_MAN: TaskSchedule(60, 600),
}


@dataclass(frozen=True, slots=True)
class TaskRound:
    """Newest round of an audited task. ``finished_at``: None before the first one since ``expected_at``."""

    name: str
    expected_at: datetime
    finished_at: datetime | None

    @property
    def since(self) -> datetime:
        """Time of the newest round, or of the moment since when one is expected."""
        return max(filter(None, (self.expected_at, self.finished_at)))

    def is_overdue(self, now: datetime) -> bool:
        return now - self.since > timedelta(seconds=AUDITED[self.name].limit_s)


def find_overdue(rounds: Iterable[TaskRound], now: datetime) -> Iterator[TaskRound]:
    """Yield overdue tasks whose cause is not another one: without beat there is no tick, without it no work."""
    late = {each.name: each for each in rounds if each.name in AUDITED and each.is_overdue(now)}
    return (each for each in late.values() if not list_blockers(each.name) & late.keys())


def list_blockers(name: str) -> frozenset[str]:
    """Return the tasks without which this one gets no work."""
    needed = AUDITED[name].needs
    return frozenset({needed}) | list_blockers(needed) if needed else frozenset()
