"""What the versions of the protocol say about the software behind it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

DESCRIBE_QUORUM = 55
K = TypeVar("K", bound=Hashable)

# Lowest Kafka release that offers a version of a request, newest first: (API key, version, release).
_FIRST_OFFERED: Sequence[tuple[int, int, str]] = (
    (35, 5, "4.3"),  # DescribeLogDirs with cordoned directories
    (45, 1, "4.1"),  # AlterPartitionReassignments with allow_replication_factor_change
    (60, 2, "4.0"),  # DescribeCluster with fenced brokers
    (55, 2, "3.9"),  # DescribeQuorum with directory ids
    (60, 1, "3.7"),  # DescribeCluster with the type of endpoint (KIP-919); in ZooKeeper mode there is no 55
    (55, 1, "3.3"),  # DescribeQuorum with timestamps (KIP-836)
    (60, 0, "2.8"),  # DescribeCluster (KIP-700)
    (45, 0, "2.4"),  # AlterPartitionReassignments (KIP-455)
)


def at_least(offered: Mapping[int, tuple[int, int]]) -> str:
    """The newest Kafka release this broker is sure to have reached, or '' when it is older than 2.4.

    ``offered``: API key → (lowest, highest version). Patch releases do not show in the protocol.
    """
    for key, version, release in _FIRST_OFFERED:
        if key in offered and offered[key][1] >= version:
            return release
    return ""


def is_kraft(offered: Mapping[int, tuple[int, int]]) -> bool:
    """Whether the broker is in KRaft mode: only then it offers DescribeQuorum (KIP-595)."""
    return DESCRIBE_QUORUM in offered


def common_apis(brokers: Sequence[Mapping[int, tuple[int, int]]]) -> dict[int, tuple[int, int]]:
    """API key → (lowest, highest version) that every broker offers; keys that some of them cannot do are left out."""
    return _common(brokers)


def common_features(brokers: Sequence[Mapping[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    """Feature → (lowest, highest level) that the software of every broker supports (KIP-584)."""
    return _common(brokers)


def _common(ranges: Sequence[Mapping[K, tuple[int, int]]]) -> dict[K, tuple[int, int]]:
    if not ranges:
        return {}
    found: dict[K, tuple[int, int]] = {}
    for key in ranges[0]:
        if all(key in own for own in ranges):
            low, high = max(own[key][0] for own in ranges), min(own[key][1] for own in ranges)
            if low <= high:
                found[key] = (low, high)
    return found
