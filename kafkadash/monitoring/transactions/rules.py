"""Judgement of open transactions: which last stable offsets stand still, and which transactions nobody will end.

Consumers with read_committed stop at the last stable offset, the first record of the oldest open transaction. A
transaction hangs (KIP-664) if it is open in a partition and its coordinator will never write its end there: no
coordinator knows the producer, or its transaction does not include the partition. The rules are those of
``kafka-transactions.sh find-hanging``. The time that a transaction may take is also counted by kafkadash's own clock,
because the time of a record is whatever its producer says.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from kafkadash.kafka.api import CoordinatedTransaction, CoordinatedTransactions, LogSpan, OpenTransaction

MAX_TIMEOUT = "transaction.max.timeout.ms"
USUAL_LIMIT_S = 900.0
"""Kafka's default of ``transaction.max.timeout.ms`` and of ``find-hanging --max-transaction-timeout``."""
MOST_GAPS, MOST_ASKED, MOST_KEPT = 5_000, 1_000, 1_000
"""Partitions and transactions that are stored, and partitions whose producers are asked for in a refresh."""


class StableGap(NamedTuple):
    """Partition whose last stable offset is below its log ``end``. ``since``: when it was first seen to be ``stable``,
    ``read_at``: when it was read last. Seconds since the epoch.
    """

    stable: int
    end: int
    since: float
    read_at: float

    @property
    def stands_still(self) -> bool:
        """Return whether it was the same at two readings."""
        return self.since < self.read_at


@dataclass(frozen=True, slots=True)
class TopicGaps:
    """Partitions of a topic with a gap. A topic that was created again has another id."""

    topic_id: str
    gaps: Mapping[int, StableGap]


class TransactionVerdict(StrEnum):
    """Judgement of an open transaction; the values are stored."""

    HANGING = "hanging"
    OPEN = "open"
    UNKNOWN = "unknown"


class TransactionDoubt(StrEnum):
    """Codes of why it is not known whether a transaction hangs; the values are stored."""

    PRODUCERS_NOT_TOLD = "transaction-producers-not-told"
    COORDINATORS_SILENT = "transaction-coordinators-silent"
    IDS_HIDDEN = "transactional-ids-hidden"


@dataclass(frozen=True, slots=True)
class StuckTransaction:
    """Transaction in a partition whose last stable offset stands still.

    ``start`` is the offset of its first record, ``producer_id`` None where the leader does not tell its producers.
    ``last_at``: its newest record by the producer's clock, ``seen_at``: when it was first seen, in seconds since the
    epoch. ``doubt`` is a ``TransactionDoubt`` or "". ``transactional_id`` and ``state`` as its coordinator has them, ""
    where none does. ``hung``: it was found to hang before it came into doubt.
    """

    topic: str
    partition: int
    start: int
    producer_id: int | None
    producer_epoch: int
    coordinator_epoch: int
    last_at: float | None
    seen_at: float
    verdict: TransactionVerdict = TransactionVerdict.OPEN
    doubt: str = ""
    transactional_id: str = ""
    state: str = ""
    hung: bool = False

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def open_since(self) -> float:
        return self.seen_at if self.last_at is None else min(self.seen_at, self.last_at)

    @property
    def is_blind(self) -> bool:
        """Return whether it hung and nobody can tell if it still does."""
        return self.verdict is TransactionVerdict.UNKNOWN and self.hung

    def as_json(self) -> list[Any]:
        return [
            self.topic,
            self.partition,
            self.start,
            self.producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.last_at,
            round(self.seen_at, 3),
            self.verdict.value,
            self.doubt,
            self.transactional_id,
            self.state,
            self.hung,
        ]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> StuckTransaction:
        return cls(*stored[:8], TransactionVerdict(stored[8]), *stored[9:])  # type: ignore[call-arg]


def follow_gaps(
    spans: Mapping[str, Mapping[int, LogSpan]],
    topics: Mapping[str, tuple[str, Sequence[int]]],
    before: Mapping[str, TopicGaps],
) -> dict[str, TopicGaps]:
    """Return the partitions with a gap. ``topics``: name → topic id and partitions; one not read stays as it was.

    A last stable offset never goes back, so one that is the same as before has not moved in between.
    """
    found: dict[str, TopicGaps] = {}
    for topic, (topic_id, partitions) in topics.items():
        known = before.get(topic)
        old: Mapping[int, StableGap] = known.gaps if known is not None and known.topic_id == topic_id else {}
        read = spans.get(topic, {})
        gaps = {number: old[number] for number in partitions if number in old and number not in read} if old else {}
        for number, span in read.items():
            if span.start < span.end:
                same = old.get(number)
                since = same.since if same is not None and same.stable == span.start else span.taken_at
                gaps[number] = StableGap(span.start, span.end, since, span.taken_at)
        if gaps:
            found[topic] = TopicGaps(topic_id, gaps)
    return found


def list_oldest(gaps: Mapping[str, TopicGaps]) -> list[tuple[str, int, StableGap]]:
    """Return all gaps, those first whose last stable offset stands still for longest."""
    every = ((topic, number, gap) for topic, own in gaps.items() for number, gap in own.gaps.items())
    return sorted(every, key=lambda each: (each[2].since, each[0], each[1]))


def keep_oldest(gaps: Mapping[str, TopicGaps], began: float, most: int = MOST_GAPS) -> dict[str, TopicGaps]:
    """Return at most so many gaps, and of those that are new in the reading that ``began`` then others each time: one
    that stands still is kept sooner or later.
    """
    kept: dict[str, dict[int, StableGap]] = {}
    every = list_oldest(gaps)
    if len(every) > most:
        every.sort(key=lambda each: (min(each[2].since, began), zlib.crc32(f"{each[0]}-{each[1]}-{began}".encode())))
    for topic, number, gap in every[:most]:
        kept.setdefault(topic, {})[number] = gap
    return {topic: TopicGaps(gaps[topic].topic_id, own) for topic, own in kept.items()}


def list_suspects(
    gaps: Mapping[str, TopicGaps], began: float, before: Iterable[StuckTransaction]
) -> list[tuple[str, int, StableGap]]:
    """Return the gaps that were there before the reading that ``began`` then, those first in which one hung."""
    hung = {(each.topic, each.partition) for each in before if each.hung}
    found = [each for each in list_oldest(gaps) if each[2].since < began]
    return sorted(found, key=lambda each: each[:2] not in hung)


class _EarlierTransactions:
    """Transactions of the reading before. ``hung``: partitions in which one hung, ``lost``: those where it is not known
    which one.
    """

    def __init__(self, before: Sequence[StuckTransaction]) -> None:
        self.seen = {(each.topic, each.partition, each.producer_id, each.start): each for each in before}
        self.hung = {(each.topic, each.partition) for each in before if each.hung}
        self.lost = {(each.topic, each.partition) for each in before if each.hung and each.producer_id is None}


def build_transactions(
    suspects: Iterable[tuple[str, int, StableGap]],
    opened: Mapping[str, Mapping[int, Sequence[OpenTransaction]]],
    before: Sequence[StuckTransaction],
) -> list[StuckTransaction]:
    """Return the transactions in suspected partitions, not judged yet, and one in doubt where no leader tells any."""
    earlier = _EarlierTransactions(before)
    return [
        each
        for topic, number, gap in suspects
        for each in _build_of_partition(topic, number, gap, opened.get(topic, {}).get(number), earlier)
    ]


def _build_of_partition(
    topic: str, number: int, gap: StableGap, opened: Sequence[OpenTransaction] | None, earlier: _EarlierTransactions
) -> Iterator[StuckTransaction]:
    if opened is None:
        doubt = TransactionDoubt.PRODUCERS_NOT_TOLD.value
        hung = (topic, number) in earlier.hung
        yield StuckTransaction(
            topic, number, gap.stable, None, -1, -1, None, gap.since, TransactionVerdict.UNKNOWN, doubt, hung=hung
        )
        return
    for each in opened:
        known = earlier.seen.get((topic, number, each.producer_id, each.start))
        first = known.seen_at if known else gap.since if each.start == gap.stable else gap.read_at
        yield StuckTransaction(
            topic,
            number,
            each.start,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_at,
            first,
            hung=known.hung if known else (topic, number) in earlier.lost,
        )


def is_late(transaction: StuckTransaction, limit_s: float, now: float) -> bool:
    """Return whether it is open for longer than any producer may ask for, so its coordinator should have ended it.

    One that hung stays late, whatever the limit is now: only coordinators and leaders tell that it does not hang.
    """
    return transaction.hung or now - transaction.open_since > limit_s


def judge_transaction(transaction: StuckTransaction, known: CoordinatedTransactions | None) -> StuckTransaction:
    """Return a late transaction with its verdict; ``known`` is None where no coordinator could be asked."""
    own: CoordinatedTransaction | None = None
    if known is not None and transaction.producer_id is not None:
        own = known.described.get(transaction.producer_id)
    if own is not None:
        includes = (transaction.topic, transaction.partition) in own.partitions
        verdict = TransactionVerdict.OPEN if includes else TransactionVerdict.HANGING
        return replace(
            transaction,
            verdict=verdict,
            transactional_id=own.transactional_id,
            state=own.state,
            hung=not includes,
        )
    if known is None or not known.complete or transaction.producer_id in known.described:
        return _doubt(transaction, TransactionDoubt.COORDINATORS_SILENT)
    if not known.sees_all:
        return _doubt(transaction, TransactionDoubt.IDS_HIDDEN)
    return replace(transaction, verdict=TransactionVerdict.HANGING, hung=True)


def confirm_hanging(
    judged: Iterable[StuckTransaction], opened: Mapping[str, Mapping[int, Sequence[OpenTransaction]]]
) -> Iterator[StuckTransaction]:
    """Yield those that are still open, as leaders tell after the coordinators: one that ended in between is known to
    none of these any more, and does not hang.
    """
    for each in judged:
        if each.verdict is not TransactionVerdict.HANGING:
            yield each
            continue
        again = opened.get(each.topic, {}).get(each.partition)
        if again is None:
            yield replace(_doubt(each, TransactionDoubt.PRODUCERS_NOT_TOLD), hung=each.hung)
        elif any((own.producer_id, own.start) == (each.producer_id, each.start) for own in again):
            yield each


def _doubt(transaction: StuckTransaction, doubt: TransactionDoubt) -> StuckTransaction:
    return replace(transaction, verdict=TransactionVerdict.UNKNOWN, doubt=doubt.value)


_RANKS = {TransactionVerdict.HANGING: 0, TransactionVerdict.UNKNOWN: 1, TransactionVerdict.OPEN: 2}


def rank_transactions(transactions: Iterable[StuckTransaction]) -> list[StuckTransaction]:
    """Return hanging ones first, then those in doubt, each the oldest first."""
    return sorted(
        transactions,
        key=lambda each: (_RANKS[each.verdict], not each.hung, each.open_since, each.topic, each.partition),
    )


def committed_lag(committed: int, end: int, stable: int) -> int:
    """Return how many records a consumer with read_committed has to read yet."""
    return max(0, min(end, stable) - committed)


def first_hanging(transactions: Iterable[StuckTransaction]) -> StuckTransaction | None:
    return next((each for each in transactions if each.verdict is TransactionVerdict.HANGING), None)
