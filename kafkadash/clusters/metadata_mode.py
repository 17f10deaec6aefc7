"""Mode of a cluster's metadata, for collectors and connection tests: known where all brokers that responded agree."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.clusters.models import ClusterMode
from kafkadash.kafka.api import ApiVersions

DESCRIBE_QUORUM = 55


def is_kraft(offered: Mapping[int, tuple[int, int]]) -> bool:
    """Return whether the broker is in KRaft mode: only such brokers offer DescribeQuorum (KIP-595)."""
    return DESCRIBE_QUORUM in offered


def judge_mode(versions: ApiVersions, before: ClusterMode) -> ClusterMode:
    """Return the mode in which all brokers responded that did; ``before`` where none did, or where they differ.

    They differ in a migration to KRaft (KIP-866), which restarts brokers one by one. Until the last one the cluster is
    what it was. One that nothing is known of is then in ZooKeeper mode: its moves, rates and controller are there.
    """
    kraft = {is_kraft(offered) for offered in versions.brokers.values()}
    if kraft == {True}:
        return ClusterMode.KRAFT
    if kraft == {False} or (kraft and before == ClusterMode.UNKNOWN):
        return ClusterMode.ZOOKEEPER
    return before
