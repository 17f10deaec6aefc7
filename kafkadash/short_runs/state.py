"""Items of a short run, and how each goes on. Pure: no database and no Kafka.

An item is one thing to be done with one request of Kafka, such as the election of one partition. An item whose
request was sent is in flight until Kafka's answer is stored; one whose answer is missing is lost, and a reading of the
cluster settles it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from kafkadash.core.messages import CodedReason, PlainReason
from kafkadash.kafka.api import ItemChanged
from kafkadash.short_runs.reasons import AnswerLost, ItemReasonCode, RefusedByKafka

MOST_ATTEMPTS = 3
"""Requests of one item: an answer that is lost so often is a cause of its own."""


class ItemState(StrEnum):
    """State of an item; the values are stored."""

    PENDING = "pending"
    SENDING = "sending"
    LOST = "lost"
    DONE = "done"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    REVERTED = "reverted"


IN_FLIGHT = frozenset({ItemState.SENDING, ItemState.LOST})
ENDED = frozenset(ItemState) - IN_FLIGHT - {ItemState.PENDING}
REACHED = frozenset({ItemState.DONE, ItemState.UNCHANGED})


class ReadingState(StrEnum):
    """State of an item's subject in Kafka, compared with the item."""

    READY = "ready"
    REACHED = "reached"
    UNFIT = "unfit"


@dataclass(frozen=True, slots=True)
class ItemReading:
    """``reason`` says why an item does not fit the cluster, or why it needs nothing though it was not done by us.

    ``found``: the values that stand there now, as JSON.
    """

    state: ReadingState
    reason: CodedReason | None = None
    found: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """``subject`` names the item among those of its run; ``content`` is JSON of the kind.

    ``before``: the values found before its first request, once there are any; None in a plan.
    """

    subject: str
    content: Mapping[str, Any]
    before: Mapping[str, Any] | None = None


def name_or_count(items: Sequence[PlannedItem]) -> str:
    """Return the text to type before items are submitted: the subject of a single one, else how many they are."""
    return items[0].subject if len(items) == 1 else str(len(items))


@dataclass(frozen=True, slots=True)
class ItemProgress:
    """An item of a run. ``before``: the values that were found before its first request; None before that."""

    place: int
    item: PlannedItem
    state: ItemState = ItemState.PENDING
    reason: CodedReason | None = None
    attempt: int = 0
    before: Mapping[str, Any] | None = None

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def opened(self) -> PlannedItem:
        """The item with the values that its first request was made from, where nothing newer may take their place."""
        unsent = self.state is ItemState.PENDING and not self.attempt
        return self.item if unsent else replace(self.item, before=self.before)


def open_item(row: ItemProgress, reading: ItemReading | None) -> ItemProgress:
    """Return a pending item as it is before its request: about to be sent, or ended. None: it could not be read."""
    if reading is None:
        return row
    before = row.before if row.attempt and row.before is not None else reading.found
    if reading.state is ReadingState.REACHED:
        already = reading.reason or PlainReason(ItemReasonCode.ALREADY_SO)
        ours = bool(row.attempt) and reading.reason is None
        state = ItemState.DONE if ours else ItemState.UNCHANGED
        return replace(row, state=state, reason=None if ours else already, before=before)
    if reading.state is ReadingState.UNFIT:
        return replace(row, state=ItemState.SKIPPED, reason=reading.reason)
    return replace(row, state=ItemState.SENDING, reason=None, attempt=row.attempt + 1, before=before)


def settle_item(row: ItemProgress, reading: ItemReading | None) -> ItemProgress:
    """Return an item in flight as the cluster shows it. What was not done may be sent again, three times at most."""
    if reading is None or row.state not in IN_FLIGHT:
        return row
    if reading.state is ReadingState.REACHED:
        state = ItemState.DONE if reading.reason is None else ItemState.UNCHANGED
        return replace(row, state=state, reason=reading.reason)
    if reading.state is ReadingState.UNFIT:
        return replace(row, state=ItemState.SKIPPED, reason=reading.reason)
    if row.attempt < MOST_ATTEMPTS:
        return replace(row, state=ItemState.PENDING)
    return replace(row, state=ItemState.REFUSED, reason=PlainReason(ItemReasonCode.LOST_TOO_OFTEN))


def answer_item(row: ItemProgress, answers: ItemChanged[str]) -> ItemProgress:
    """Return an item after its request; one that the answer does not name is lost."""
    subject = row.item.subject
    if subject in answers.done:
        return replace(row, state=ItemState.DONE, reason=None)
    if error := answers.refused.get(subject):
        if error.code is None:
            return replace(row, state=ItemState.PENDING, attempt=row.attempt - 1)
        return replace(row, state=ItemState.REFUSED, reason=RefusedByKafka(error.cause, error.code))
    error = answers.lost.get(subject)
    return replace(row, state=ItemState.LOST, reason=AnswerLost(error.cause if error else ""))


def cancel_item(row: ItemProgress) -> ItemProgress:
    """Return a pending item as cancelled; what is in flight is settled first, and what has ended stays."""
    if row.state is not ItemState.PENDING:
        return row
    return replace(row, state=ItemState.CANCELLED, reason=PlainReason(ItemReasonCode.RUN_CANCELLED))


def verify_item(row: ItemProgress, reading: ItemReading | None) -> ItemProgress:
    """Return an item that was reached as the last reading shows it; what somebody changed since is reverted."""
    if reading is None or row.state not in REACHED or reading.state is ReadingState.REACHED:
        return row
    return replace(row, state=ItemState.REVERTED, reason=reading.reason or PlainReason(ItemReasonCode.REVERTED))


def count_states(rows: Iterable[ItemProgress]) -> dict[ItemState, int]:
    counts = dict.fromkeys(ItemState, 0)
    for row in rows:
        counts[row.state] += 1
    return counts
