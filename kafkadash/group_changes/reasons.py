"""Coded reasons of changes of consumer groups that do not fit the group any more."""

from __future__ import annotations

from enum import StrEnum

from kafkadash.core.messages import CodedReason


class GroupReasonCode(StrEnum):
    """Codes of ``ShortItem.reason`` of changes of groups; the values are stored."""

    GONE = "group-gone"
    ACTIVE = "group-active"
    SUBSCRIBED = "group-subscribed"
    TOPIC_GONE = "group-topic-gone"
    TOPIC_RECREATED = "group-topic-recreated"
    PARTITION_GONE = "group-partition-gone"
    OFFSET_MOVED = "group-offset-moved"
    OFFSETS_MOVED = "group-offsets-moved"
    NOT_COMMITTED = "group-not-committed"
    OUT_OF_LOG = "group-out-of-log"


class GroupActive(CodedReason, code=GroupReasonCode.ACTIVE):
    """``state``: Kafka's word, such as Stable."""

    state: str


class OffsetMoved(CodedReason, code=GroupReasonCode.OFFSET_MOVED):
    """``committed`` is what the group has, ``expected`` what the plan found; None is no committed offset."""

    committed: int | None
    expected: int | None


class OffsetOutOfLog(CodedReason, code=GroupReasonCode.OUT_OF_LOG):
    """``start`` and ``end`` of the log, between which an offset has to be."""

    offset: int
    start: int
    end: int
