"""Partitions that cannot be read or written, or are close to it, and how their replicas lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from kafkadash.domain.facts import Facts, Partitions
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.judges.words import NAMED, are, it, of_partitions
from kafkadash.domain.wording import count, listed


def offline(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    if number := facts.offline.number:
        yield of_partitions(
            FindingKind.OFFLINE,
            number,
            f"{count(number, 'partition')} {_have(number)} no leader: nobody can read or write {it(number)}.",
            f"has {count(number, 'partition')} without a leader",
            at,
            _names(facts.offline, f"of {count(facts.partitions, 'partition')}" if facts.partitions else ""),
        )


def under_min_isr(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    if number := facts.under_min_isr.number:
        yield of_partitions(
            FindingKind.UNDER_MIN_ISR,
            number,
            f"{count(number, 'partition')} {are(number)} under min-ISR: writes with acks=all are refused.",
            f"refuses writes to {count(number, 'partition')}",
            at,
            _names(facts.under_min_isr, "producers see NOT_ENOUGH_REPLICAS"),
        )


def at_min_isr(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    number = (facts.at_min_isr.number or 0) - facts.at_min_isr_moving
    if number > 0:
        yield of_partitions(
            FindingKind.AT_MIN_ISR,
            number,
            f"{count(number, 'partition')} {are(number)} at min-ISR: the next lost replica "
            f"{_then(number, min(facts.at_min_isr_last, number))}.",
            f"has {count(number, 'partition')} at min-ISR",
            at,
            _names(facts.at_min_isr, _moves_too(facts.at_min_isr_moving)),
        )


def under_replicated(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    number = (facts.under_replicated.number or 0) - facts.under_replicated_moving
    if number > 0:
        missing = facts.under_replicated.missing
        where = ""
        if missing:
            where = f"All miss {'their replica' if number > 1 else 'a replica'} on {_brokers(missing)}"
        yield of_partitions(
            FindingKind.UNDER_REPLICATED,
            number,
            f"{count(number, 'partition')} {are(number)} under-replicated, not explained by a move.",
            f"has {count(number, 'under-replicated partition')}",
            at,
            " · ".join(
                filter(None, [where, _names(facts.under_replicated), _moves_too(facts.under_replicated_moving)])
            ),
        )


def rack_violation(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    if number := facts.rack_violations:
        yield of_partitions(
            FindingKind.RACK_VIOLATION,
            number,
            f"{count(number, 'partition is', 'partitions are')} not spread evenly over the racks.",
            f"has {count(number, 'partition')} that a lost rack hits harder than it must",
            at,
            "One rack holds more than its share of the replicas",
        )


def topics_hidden(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    """Of what Kafka does not show nothing is known, so that nothing wrong was found does not mean that all is well."""
    if number := facts.hidden_topics:
        yield Finding(
            FindingKind.TOPICS_HIDDEN,
            f"At least {count(number, 'topic is', 'topics are')} hidden from kafkadash; how "
            f"{'it is' if number == 1 else 'they are'} cannot be told.",
            "some topics are hidden",
            at,
            detail="Describe on topics is missing: every figure leaves them out · the collection names them",
            value=number,
            unit="topics",
            threshold=0,
            measured=count(number, "topic"),
            limit="limit 0",
        )


def _then(number: int, last: int) -> str:
    """What the next lost replica does to partitions of which ``last`` have only one in sync: those go offline."""
    if not last:
        return "stops writes"
    if last == number:
        return f"takes {it(number)} offline"
    return f"takes {last:,} of them offline and stops writes to the {'other' if number - last == 1 else 'others'}"


def _names(partitions: Partitions, after: str = "") -> str:
    """The first of them by name, then what else is to be said."""
    rest = (partitions.number or 0) - len(partitions.names[:NAMED])
    named = ", ".join(partitions.names[:NAMED]) + (f" and {rest:,} more" if partitions.names and rest > 0 else "")
    return " · ".join(filter(None, [named, after]))


def _moves_too(moving: int) -> str:
    return f"{moving:,} more {are(moving)} explained by moves" if moving else ""


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {listed([str(i) for i in ids])}"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
