"""Coded reasons of throttles that are not removed."""

from __future__ import annotations

from enum import StrEnum

from kafkadash.core.messages import CodedReason


class RemovalReasonCode(StrEnum):
    """Codes of ``ShortItem.reason`` of removals; the values are stored."""

    NEEDED = "removal-needed"
    OURS = "removal-ours"
    VALUE_CHANGED = "removal-value-changed"
    NOT_ORPHAN = "removal-not-orphan"
    RUN_ACTIVE = "removal-run-active"


class ThrottleChanged(CodedReason, code=RemovalReasonCode.VALUE_CHANGED):
    """Values as Kafka holds them, in bytes per second."""

    value: str
    expected: str


class RunActive(CodedReason, code=RemovalReasonCode.RUN_ACTIVE):
    number: int
