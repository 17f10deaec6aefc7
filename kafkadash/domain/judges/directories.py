"""Log directories that failed or fill up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime

from kafkadash.domain.facts import BrokerFact, DirectoryFact, Facts
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.status import is_stale

DISK_PERCENT = (80.0, 90.0)
"""A directory that is filled this far is a finding; past the second it says so louder."""


def failed_directory(facts: Facts, at: datetime, now: datetime) -> Iterator[Finding]:
    for broker, directory in _directories(facts, now):
        if directory.error:
            yield Finding(
                FindingKind.FAILED_DIRECTORY,
                f"A log directory of broker {broker.id} failed: {directory.path}.",
                f"has a failed log directory on broker {broker.id}",
                broker.directories_at or at,
                scope=f"{broker.id}:{directory.path}",
                detail=f"Its replicas are offline · {directory.error}",
                value=1,
                unit="directories",
                threshold=0,
                measured="1 directory",
                limit="offline, limit 0",
            )


def disk_full(facts: Facts, at: datetime, now: datetime) -> Iterator[Finding]:
    for broker, directory in _directories(facts, now):
        percent = _used_percent(directory)
        if percent is None or percent < DISK_PERCENT[0] or directory.error:
            continue
        limit = max(step for step in DISK_PERCENT if percent >= step)
        free = _gigabytes(directory.usable_bytes or 0)
        yield Finding(
            FindingKind.DISK_FULL,
            f"A log directory of broker {broker.id} is {_percent(percent)} full: {directory.path}.",
            f"has a log directory on broker {broker.id} that is {_percent(percent)} full",
            broker.directories_at or at,
            scope=f"{broker.id}:{directory.path}",
            detail=f"{free} free of {_gigabytes(directory.total_bytes or 0)}; a full directory goes offline",
            value=math.floor(percent * 10) / 10,
            unit="%",
            threshold=limit,
            measured=_percent(percent),
            limit=f"limit {limit:.0f} %",
        )


def _directories(facts: Facts, now: datetime) -> Iterator[tuple[BrokerFact, DirectoryFact]]:
    """Directories that were read lately, of brokers that are there."""
    for broker in facts.brokers:
        if not broker.gone and not unread(facts, broker, now):
            for directory in broker.directories:
                yield broker, directory


def unread(facts: Facts, broker: BrokerFact, now: datetime) -> bool:
    """Whether its directories were not read lately."""
    return broker.directories_at is None or is_stale(broker.directories_at, facts.log_dirs.interval_s, now)


def _used_percent(directory: DirectoryFact) -> float | None:
    """How full the volume of a directory is, in percent; None where Kafka does not tell."""
    total, usable = directory.total_bytes, directory.usable_bytes
    return None if not total or usable is None else 100 * (total - usable) / total


def _percent(value: float) -> str:
    """Rounded down, so that nothing looks full before it is."""
    return f"{math.floor(value * 10) / 10:.1f} %"


def _gigabytes(number: int) -> str:
    return f"{number / 1e9:,.1f} GB"
