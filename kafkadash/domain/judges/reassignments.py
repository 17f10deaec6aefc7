"""What reassignments leave behind: throttles that nothing needs, and moves that never end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kafkadash.domain.facts import Facts
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.judges.words import it, of_partitions, some
from kafkadash.domain.wording import count


def orphan_throttle(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    if number := len(facts.orphan_throttles):
        yield Finding(
            FindingKind.ORPHAN_THROTTLE,
            f"{count(number, 'replication throttle is', 'replication throttles are')} in force although nothing moves"
            f" that needs {it(number)}.",
            f"has {count(number, 'orphan throttle')}",
            at,
            detail=f"{some(facts.orphan_throttles)} · replication that lags is slowed down as well",
            value=number,
            unit="throttles",
            threshold=0,
            measured=count(number, "throttle"),
            limit="limit 0",
        )


def zombie(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    if number := len(facts.zombies):
        yield of_partitions(
            FindingKind.ZOMBIE_REASSIGNMENT,
            number,
            f"{count(number, 'reassignment adds and removes', 'reassignments add and remove')} the same replica and"
            f" will not end by {'itself' if number == 1 else 'themselves'}.",
            f"has {count(number, 'zombie reassignment')}",
            at,
            some(facts.zombies),
            unit="reassignment",
        )
