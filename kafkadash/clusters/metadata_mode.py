"""Mode of a cluster's metadata, by what its brokers respond, for collectors and connection tests."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.clusters.models import ClusterMode
from kafkadash.kafka.api import ApiVersions

DESCRIBE_QUORUM = 55


def is_kraft(offered: Mapping[int, tuple[int, int]]) -> bool:
    """Return whether the broker is in KRaft mode: only such brokers offer DescribeQuorum (KIP-595)."""
    return DESCRIBE_QUORUM in offered


def judge_mode(versions: ApiVersions, before: ClusterMode) -> ClusterMode:
    """Return KRaft mode where all brokers responded in it, and ZooKeeper mode where any responded in that.

    A migration to KRaft (KIP-866) restarts brokers one by one, and may go back. While one broker is in ZooKeeper mode,
    moves, rates and controller are there. A silent broker may be such a one, so that it ends no ZooKeeper mode.
    """
    kraft = {is_kraft(offered) for offered in versions.brokers.values()}
    if False in kraft:
        return ClusterMode.ZOOKEEPER
    if not kraft or (versions.errors and before == ClusterMode.ZOOKEEPER):
        return before
    return ClusterMode.KRAFT
