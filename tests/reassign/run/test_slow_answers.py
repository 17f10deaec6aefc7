"""An offset that took long says little about when it was true: it is asked for once more."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import cast

from kafkadash.kafka.port import (
    DeadlineExceeded,
    ItemError,
    KafkaAdmin,
    OffsetKind,
    OffsetQuery,
    ReplicaOffset,
    ReplicaOffsets,
)
from kafkadash.reassign.run.look import CERTAIN_S, _asked_again

SLOW_ONE, QUICK_ONE = (OffsetQuery(broker, "orders", 0, OffsetKind.LATEST) for broker in (1, 2))
FIRST = ReplicaOffsets({SLOW_ONE: ReplicaOffset(10, 100.0, 3.0), QUICK_ONE: ReplicaOffset(20, 100.0, 0.01)}, {})


class Answering:
    """Answers once, with what it was given; a failure is raised."""

    def __init__(self, answer: ReplicaOffsets | Exception) -> None:
        self.answer = answer
        self.asked: list[OffsetQuery] = []

    def replica_offsets(self, queries: Collection[OffsetQuery], *, deadline: float) -> ReplicaOffsets:
        self.asked.extend(queries)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def again(client: Answering, first: ReplicaOffsets = FIRST, left_s: float = 8.0) -> ReplicaOffsets:
    return _asked_again(cast("KafkaAdmin", client), first, time.monotonic() + left_s)


def test_a_slow_answer__is_asked_for_once_more__and_the_quicker_one_counts() -> None:
    quick = ReplicaOffset(11, 102.0, 0.02)
    client = Answering(ReplicaOffsets({SLOW_ONE: quick}, {}))

    found = again(client)

    assert client.asked == [SLOW_ONE]
    assert found.offsets == {SLOW_ONE: quick, QUICK_ONE: FIRST.offsets[QUICK_ONE]}


def test_a_second_answer_that_is_slower_refused_or_missing__leaves_the_first() -> None:
    slower = ReplicaOffsets({SLOW_ONE: ReplicaOffset(11, 102.0, 4.0)}, {})
    refused = ReplicaOffsets({}, {SLOW_ONE: ItemError("is not there any more", 6)})
    for second in (slower, refused, DeadlineExceeded("It did not answer in time.")):
        assert again(Answering(second)) == FIRST


def test_nothing_is_asked_again__where_all_was_quick_or_no_time_is_left() -> None:
    client = Answering(AssertionError("it was asked"))
    just = ReplicaOffsets({SLOW_ONE: ReplicaOffset(10, 100.0, CERTAIN_S)}, {})
    assert again(client, just) is just
    assert again(client, left_s=2.0) is FIRST
    assert client.asked == []
