"""Coded reasons of elections that do not fit the cluster."""

from __future__ import annotations

from enum import StrEnum

from kafkadash.core.messages import CodedReason


class ElectionReasonCode(StrEnum):
    """Codes of ``ShortItem.reason`` of elections; the values are stored."""

    PARTITION_GONE = "election-partition-gone"
    TOPIC_RECREATED = "election-topic-recreated"
    REPLICAS_CHANGED = "election-replicas-changed"
    PREFERRED_OUT_OF_SYNC = "election-preferred-out-of-sync"


class ReplicasChanged(CodedReason, code=ElectionReasonCode.REPLICAS_CHANGED):
    """Broker ids in order."""

    replicas: tuple[int, ...]
    expected: tuple[int, ...]


class PreferredOutOfSync(CodedReason, code=ElectionReasonCode.PREFERRED_OUT_OF_SYNC):
    broker: int
