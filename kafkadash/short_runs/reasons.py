"""Coded reasons of short runs and of their items. Kinds have reasons of their own for items that do not fit."""

from __future__ import annotations

from enum import StrEnum

from kafkadash.core.messages import CodedReason


class ItemReasonCode(StrEnum):
    """Codes of ``ShortItem.reason``; the values are stored."""

    LOST_TOO_OFTEN = "item-lost-too-often"
    REVERTED = "item-reverted"
    ALREADY_SO = "item-already-so"
    RUN_CANCELLED = "item-run-cancelled"
    REFUSED_BY_KAFKA = "item-refused-by-kafka"
    ANSWER_LOST = "item-answer-lost"


class RefusedByKafka(CodedReason, code=ItemReasonCode.REFUSED_BY_KAFKA):
    """``why``: Kafka's error in words; ``kafka_code``: its number."""

    why: str
    kafka_code: int


class AnswerLost(CodedReason, code=ItemReasonCode.ANSWER_LOST):
    why: str


class ShortRunReasonCode(StrEnum):
    """Codes of ``ShortRun.blocked`` and ``ShortRun.error``; the values are stored."""

    READ_ONLY = "short-run-read-only"
    NOT_WATCHED = "short-run-not-watched"
    WINDOW_NOT_OPEN = "short-run-window-not-open"
    CLUSTER_UNREAD = "short-run-cluster-unread"
    ITEMS_UNREAD = "short-run-items-unread"
    NOT_SENT = "short-run-not-sent"
    LOOKS_ONCE_MORE = "short-run-looks-once-more"
    NEWER_FORMAT = "short-run-newer-format"
    STEP_FAILED = "short-run-step-failed"
    START_REFUSED = "short-run-start-refused"
    ANOTHER_CLUSTER = "short-run-another-cluster"
    NOT_VALIDATED = "short-run-not-validated"


class ClusterUnread(CodedReason, code=ShortRunReasonCode.CLUSTER_UNREAD):
    why: str


class RequestNotSent(CodedReason, code=ShortRunReasonCode.NOT_SENT):
    why: str


class ItemsNotValidated(CodedReason, code=ShortRunReasonCode.NOT_VALIDATED):
    """Kafka was asked to validate items and did not answer for one; ``first``: its subject."""

    first: str
    why: str


class ItemsUnread(CodedReason, code=ShortRunReasonCode.ITEMS_UNREAD):
    """``first``: subject of one of them."""

    items: int
    first: str


class OtherClusterAnswers(CodedReason, code=ShortRunReasonCode.ANOTHER_CLUSTER):
    """``answered`` and ``expected`` are Kafka's cluster ids."""

    cluster: str
    answered: str
    expected: str


class LooksOnceMore(CodedReason, code=ShortRunReasonCode.LOOKS_ONCE_MORE):
    """``item``: subject of the first item that does not fit, ``why``: its reason."""

    item: str
    why: CodedReason


class ShortStartRefused(CodedReason, code=ShortRunReasonCode.START_REFUSED):
    why: str
