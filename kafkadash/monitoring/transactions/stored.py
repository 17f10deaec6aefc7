"""Stored open transactions, and last stable offsets that are below their log end."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.models import TransactionSnapshot
from kafkadash.monitoring.transactions.rules import StableGap, StuckTransaction, TopicGaps


def load_snapshot(cluster: Cluster | int, *, gaps: bool = True) -> TransactionSnapshot | None:
    """Return the cluster's row, where wanted without its gaps, which may be thousands. Takes one query."""
    rows = TransactionSnapshot.objects.filter(cluster=cluster, format=1)
    return (rows if gaps else rows.defer("gaps")).first()


def read_transactions(snapshot: TransactionSnapshot | None) -> list[StuckTransaction]:
    return [StuckTransaction.from_json(each) for each in snapshot.transactions] if snapshot else []


def load_transactions(cluster: Cluster | int) -> list[StuckTransaction]:
    """Return the stored transactions. Takes one query."""
    return read_transactions(load_snapshot(cluster, gaps=False))


def read_gaps(snapshot: TransactionSnapshot | None, topics: Collection[str] | None = None) -> dict[str, TopicGaps]:
    """Return the gaps of these topics, or of all."""
    stored: Mapping[str, tuple[str, Mapping[str, tuple[int, int, float, float]]]] = snapshot.gaps if snapshot else {}
    return {
        topic: TopicGaps(topic_id, {int(number): StableGap(*gap) for number, gap in own.items()})
        for topic, (topic_id, own) in stored.items()
        if topics is None or topic in topics
    }


def pack_gaps(gaps: Mapping[str, TopicGaps]) -> dict[str, tuple[str, dict[str, tuple[int, int, float, float]]]]:
    """Return ``TransactionSnapshot.gaps``."""
    return {
        topic: (
            own.topic_id,
            {
                str(number): (gap.stable, gap.end, round(gap.since, 3), round(gap.read_at, 3))
                for number, gap in own.gaps.items()
            },
        )
        for topic, own in gaps.items()
    }
