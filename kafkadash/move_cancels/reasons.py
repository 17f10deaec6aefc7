"""Coded reasons of reassignments that are not cancelled."""

from __future__ import annotations

from enum import StrEnum

from kafkadash.core.messages import CodedReason


class CancelReasonCode(StrEnum):
    """Codes of ``ShortItem.reason`` of cancellations; the values are stored."""

    TOPIC_GONE = "cancel-topic-gone"
    ENDED = "cancel-ended"
    OURS = "cancel-ours"
    MOVE_CHANGED = "cancel-move-changed"
    NOTHING_IN_SYNC = "cancel-nothing-in-sync"


class MoveEnded(CodedReason, code=CancelReasonCode.ENDED):
    """``replicas``: broker ids that the partition has now."""

    replicas: tuple[int, ...]


class MoveChanged(CodedReason, code=CancelReasonCode.MOVE_CHANGED):
    """Broker ids that the reassignment adds and removes now."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]


class NothingInSync(CodedReason, code=CancelReasonCode.NOTHING_IN_SYNC):
    """``replicas``: broker ids that a cancel would leave."""

    replicas: tuple[int, ...]
