"""Findings that are expected or silenced: which maintenance window or silence covers which finding. Pure.

A window of the whole cluster covers everything that is read from it, and that it cannot be read; not runs of changes
and the pipeline, which work on, and not how the cluster is registered. A window of a broker or a rack covers what is
about its brokers, the partitions that lack replicas of these brokers alone, and uneven leaders. It does not cover
partitions without a leader or without enough replicas in sync: producers fail then, whatever is maintained.

A consequence of a covered finding is covered too, with the same exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from kafkadash.findings.causes import absent_brokers
from kafkadash.findings.facts import ClusterFacts
from kafkadash.findings.kinds import FactSource, FindingKind

LOUD = frozenset({FindingKind.OFFLINE, FindingKind.UNDER_MIN_ISR})
"""Kinds that only a window of the whole cluster, or a silence of their own, covers."""
_OF_BROKERS = frozenset(
    {
        FindingKind.BROKER_DOWN,
        FindingKind.BROKER_AWAY,
        FindingKind.CANARY_FAILS,
        FindingKind.CANARY_SLOW,
        FindingKind.FAILED_DIRECTORY,
        FindingKind.DISK_SOON,
        FindingKind.DISK_FULL,
    }
)
"""Kinds whose scope begins with the ID of a broker."""
_OF_REPLICAS = frozenset({FindingKind.AT_MIN_ISR, FindingKind.UNDER_REPLICATED})
_WORKS_ON = frozenset({FactSource.RUNS, FactSource.PIPELINE})
_OF_REGISTRATION = frozenset({FindingKind.ANOTHER_CLUSTER, FindingKind.REGISTERED_TWICE, FindingKind.DISABLED})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QuietRule(Generic[T]):
    """Window or silence that is in force until ``ends_at``; ``row`` is whatever the caller keeps it in.

    ``brokers``: those of the window, None for the whole cluster. A silence has a ``kind``, or ``subjects``, or both;
    without a kind, a number is the ID of a broker and the name of a group.
    """

    row: T
    ends_at: datetime
    silence: bool = False
    brokers: frozenset[int] | None = None
    kind: str = ""
    subjects: frozenset[str] = frozenset()


def find_quiet(kind: FindingKind, scope: str, facts: ClusterFacts, rules: Sequence[QuietRule[T]]) -> T | None:
    """Return the row of the rule that covers a finding: a window before a silence, then the one that ends last."""
    found = [rule for rule in rules if _covers(rule, kind, scope, facts)]
    last = max(found, key=lambda rule: (not rule.silence, rule.ends_at), default=None)
    return last.row if last is not None else None


def _covers(rule: QuietRule[T], kind: FindingKind, scope: str, facts: ClusterFacts) -> bool:
    broker = scope.partition(":")[0] if kind in _OF_BROKERS else ""
    if rule.silence:
        return rule.kind in ("", kind.value) and (not rule.subjects or bool(rule.subjects & {scope, broker or scope}))
    if rule.brokers is None:
        return kind.about.source not in _WORKS_ON and kind not in _OF_REGISTRATION
    if broker:
        return broker.isdecimal() and int(broker) in rule.brokers
    if kind in _OF_REPLICAS:
        absent = absent_brokers(kind, facts)
        return bool(absent) and absent <= rule.brokers
    return kind is FindingKind.LEADER_SKEW
