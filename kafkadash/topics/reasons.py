"""Coded reasons of topics that cannot be created as approved."""

from __future__ import annotations

from enum import StrEnum

from kafkadash.core.messages import CodedReason


class TopicReasonCode(StrEnum):
    """Codes of ``ShortItem.reason`` of changes of topics; the values are stored."""

    EXISTS = "topic-exists"
    COLLIDES = "topic-collides"
    BROKERS_AWAY = "topic-brokers-away"
    GONE = "topic-gone"
    RECREATED = "topic-recreated"
    MOVING = "topic-moving"
    PARTITIONS_CHANGED = "topic-partitions-changed"
    FACTOR_DIFFERS = "topic-factor-differs"


class TopicExists(CodedReason, code=TopicReasonCode.EXISTS):
    """``partitions``: how many the topic has."""

    partitions: int


class TopicNameCollides(CodedReason, code=TopicReasonCode.COLLIDES):
    """``other``: a topic whose name differs in dots and underscores only."""

    other: str


class BrokersAway(CodedReason, code=TopicReasonCode.BROKERS_AWAY):
    """Ids of brokers of the assignment that are gone, fenced or silent."""

    brokers: tuple[int, ...]


class PartitionsChanged(CodedReason, code=TopicReasonCode.PARTITIONS_CHANGED):
    """``partitions`` that the topic has, ``expected`` by the plan."""

    partitions: int
    expected: int


class FactorDiffers(CodedReason, code=TopicReasonCode.FACTOR_DIFFERS):
    """``replicas`` of partition 0, ``planned`` for each new partition: Kafka takes no other number."""

    replicas: int
    planned: int
