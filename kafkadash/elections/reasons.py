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
    CLEAN_POSSIBLE = "election-clean-possible"
    NO_REPLICA_LIVE = "election-no-replica-live"
    LED_SINCE = "election-led-since"
    CHOICE_CHANGED = "election-choice-changed"
    LED_AGAIN = "election-led-again"
    LED_BY_ANOTHER = "election-led-by-another"


class ReplicasChanged(CodedReason, code=ElectionReasonCode.REPLICAS_CHANGED):
    """Broker ids in order."""

    replicas: tuple[int, ...]
    expected: tuple[int, ...]


class PreferredOutOfSync(CodedReason, code=ElectionReasonCode.PREFERRED_OUT_OF_SYNC):
    broker: int


class CleanPossible(CodedReason, code=ElectionReasonCode.CLEAN_POSSIBLE):
    """``broker`` is live and in the ISR or the ELR."""

    broker: int


class ChoiceChanged(CodedReason, code=ElectionReasonCode.CHOICE_CHANGED):
    """``now``: the broker that Kafka would elect, in words."""

    now: str
    planned: int


class LedAgain(CodedReason, code=ElectionReasonCode.LED_AGAIN):
    """``leader`` has all committed records."""

    leader: int


class LedByAnother(CodedReason, code=ElectionReasonCode.LED_BY_ANOTHER):
    leader: int
    planned: int
