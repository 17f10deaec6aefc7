"""The controllers: no quorum, none to spare, or too many elections."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kafkadash.domain.facts import QUORUM_FAILURES, Facts
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.quorum_history import FLAPPING_CHANGES
from kafkadash.domain.wording import count


def quorum_lost(facts: Facts, at: datetime, now: datetime) -> Iterator[Finding]:
    """Controllers silent while brokers answer: nothing can be changed, and no leader elected (KIP-500)."""
    quorum = facts.quorum
    if facts.controllers_silent:
        yield Finding(
            FindingKind.QUORUM_LOST,
            "The controllers do not answer: no leader can be elected and nothing can be changed.",
            "has no controller quorum",
            now,
            detail=quorum.error,
            value=quorum.failures,
            unit="refresh",
            threshold=QUORUM_FAILURES,
            measured=count(quorum.failures, "refresh", "refreshes"),
            limit="in a row without an answer",
            since=at if quorum.taken_at else None,
        )


def quorum_margin(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    voters, in_sync = facts.voters or 0, facts.voters_in_sync or 0
    majority = voters // 2 + 1
    if facts.kraft and facts.voters_failing and in_sync <= majority:
        yield Finding(
            FindingKind.QUORUM_MARGIN,
            "One more failed controller takes the majority away.",
            "survives no further failure of a controller",
            at,
            detail=f"{in_sync} of {voters} voters are known to be in sync, the majority is {majority}",
            value=in_sync - majority,
            unit="more failures",
            threshold=1,
            measured=f"{in_sync} of {voters}",
            limit=f"voters in sync, needs more than {majority}",
        )


def quorum_flapping(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    elections = facts.elections or 0
    if facts.kraft and elections > FLAPPING_CHANGES:
        yield Finding(
            FindingKind.QUORUM_FLAPPING,
            f"The controllers elected a leader {elections} times in 10 min.",
            f"elected its controller {elections} times in 10 min",
            at,
            detail="every election stops changes to the cluster for a moment",
            value=elections,
            unit="elections",
            threshold=FLAPPING_CHANGES,
            measured=count(elections, "election"),
            limit=f"in 10 min, limit {FLAPPING_CHANGES}",
        )
