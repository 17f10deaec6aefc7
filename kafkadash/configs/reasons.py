"""Coded reasons of configs that cannot be changed as approved."""

from __future__ import annotations

from enum import StrEnum

from kafkadash.core.messages import CodedReason


class ConfigReasonCode(StrEnum):
    """Codes of ``ShortItem.reason`` of changes of configs; the values are stored."""

    TOPIC_GONE = "config-topic-gone"
    TOPIC_RECREATED = "config-topic-recreated"
    BROKER_GONE = "config-broker-gone"
    UNREAD = "config-unread"
    VALUE_CHANGED = "config-value-changed"
    MIN_ISR_TOO_HIGH = "config-min-isr-too-high"


class ConfigValueChanged(CodedReason, code=ConfigReasonCode.VALUE_CHANGED):
    """``value`` that is set now, ``expected`` by the plan, as texts."""

    value: str
    expected: str


class MinIsrTooHigh(CodedReason, code=ConfigReasonCode.MIN_ISR_TOO_HIGH):
    min_isr: int
    factor: int
