"""Verdicts on the partitions of a reassignment file, in the words of kafka-reassign-partitions --verify."""

from __future__ import annotations

import pytest

from kafkadash.planning.kafka_json import JsonRow
from kafkadash.verify.rules import (
    ClusterAnswers,
    MovingPartition,
    ReplicaDirectories,
    VerifyState,
    summarize_counts,
    tally,
    verify,
)

pytestmark = pytest.mark.domain


def row(*replicas: int, topic: str = "foo", partition: int = 0, log_dirs: tuple[str, ...] = ()) -> JsonRow:
    return JsonRow(topic, partition, replicas, log_dirs, line=1)


def told(
    replicas: tuple[int, ...] | None = None, moving: MovingPartition | None = None, **more: object
) -> ClusterAnswers:
    return ClusterAnswers(
        {("foo", 0): moving} if moving else {},
        {("foo", 0): replicas} if replicas is not None else {},
        **more,  # type: ignore[arg-type]
    )


def test_replicas_in_the_order_of_the_file_are_completed() -> None:
    [found] = verify([row(3, 4)], told((3, 4)))
    assert (found.state, found.words, found.note) == (
        VerifyState.COMPLETED,
        ("Reassignment of partition foo-0 is completed.",),
        "",
    )


def test_the_same_replicas_in_another_order_are_not_what_was_asked_for() -> None:
    [found] = verify([row(3, 4)], told((4, 3)))
    assert found.state == VerifyState.FAILED
    assert found.words == (
        "There is no active reassignment of partition foo-0, but replica set is 4,3 rather than 3,4.",
    )
    assert "Same brokers in another order" in found.note


def test_other_replicas_with_nothing_under_way_have_failed() -> None:
    [found] = verify([row(3, 4, 5)], told((1, 4)))
    assert found.words == (
        "There is no active reassignment of partition foo-0, but replica set is 1,4 rather than 3,4,5.",
    )
    assert (found.state, found.note) == (VerifyState.FAILED, "Brokers 3 and 5 have no replica.")


def test_too_many_replicas_have_failed_without_any_being_absent() -> None:
    [found] = verify([row(3, 4)], told((3, 4, 5)))
    assert (found.state, found.note) == (VerifyState.FAILED, "")


def test_one_in_the_listing_is_in_progress_whatever_its_replicas_are() -> None:
    [found] = verify([row(3, 4)], told((3, 4, 1), MovingPartition((3, 4, 1), (3, 4))))
    assert (found.state, found.words, found.note) == (
        VerifyState.IN_PROGRESS,
        ("Reassignment of partition foo-0 is still in progress.",),
        "",
    )


def test_one_that_moves_elsewhere_is_in_progress_for_kafka_and_the_note_says_where_to() -> None:
    [found] = verify([row(3, 4)], told((5, 1), MovingPartition((5, 4, 1), (5, 4))))
    assert found.state == VerifyState.IN_PROGRESS
    assert found.words == ("Reassignment of partition foo-0 is still in progress.",)
    assert found.note == "The current target is 5,4, not the one in the file."


def test_a_partition_that_does_not_exist_is_an_error_and_keeps_kafkas_words() -> None:
    [found] = verify([row(3, 4)], told())
    assert found.state == VerifyState.MISSING
    assert found.words == ("There is no active reassignment of partition foo-0, but replica set is  rather than 3,4.",)
    assert found.note == "Partition foo-0 does not exist."


def test_a_topic_that_could_not_be_read_is_neither_missing_nor_failed() -> None:
    [found] = verify([row(3, 4)], told(unread={"foo": "Topic foo could not be read: not allowed."}))
    assert (found.state, found.words, found.note) == (
        VerifyState.UNKNOWN,
        (),
        "Topic foo could not be read: not allowed.",
    )


DIRS = ("/a", "any")
OFFLINE = (
    "Partition foo-0 is not found in any live log dir on broker 3. "
    "There is likely an offline log directory on the broker."
)


@pytest.mark.parametrize(
    ("where", "state", "words"),
    [
        (ReplicaDirectories("/a"), VerifyState.COMPLETED, "Reassignment of replica foo-0-3 completed successfully."),
        (
            ReplicaDirectories("/b", "/a"),
            VerifyState.IN_PROGRESS,
            "Reassignment of replica foo-0-3 is still in progress.",
        ),
        (
            ReplicaDirectories("/b"),
            VerifyState.FAILED,
            "Partition foo-0 on broker 3 is not being moved from log dir /b to /a.",
        ),
        (
            ReplicaDirectories("/b", "/c"),
            VerifyState.FAILED,
            "Partition foo-0 on broker 3 is being moved to log dir /c instead of /a.",
        ),
        (
            None,
            VerifyState.FAILED,
            OFFLINE,
        ),
    ],
)
def test_a_directory_that_the_file_names_is_judged_too(
    where: ReplicaDirectories | None, state: VerifyState, words: str
) -> None:
    places = {(3, "foo", 0): where} if where else {}
    [found] = verify([row(3, 4, log_dirs=DIRS)], told((3, 4), directories=places))
    assert found.state == state
    assert found.words == ("Reassignment of partition foo-0 is completed.", words)


def test_a_directory_is_not_awaited_before_its_partition_has_arrived() -> None:
    [found] = verify([row(3, 4, log_dirs=DIRS)], told((3, 4, 1), MovingPartition((3, 4, 1), (3, 4))))
    assert found.state == VerifyState.IN_PROGRESS


def test_directories_of_a_broker_that_is_silent_are_unknown() -> None:
    [found] = verify([row(3, 4, log_dirs=DIRS)], told((3, 4), silent={3: "no answer within 8 s."}))
    assert found.state == VerifyState.UNKNOWN
    assert found.words == ("Reassignment of partition foo-0 is completed.",)
    assert found.note == "Log directories of broker 3 are unknown: no answer within 8 s."


def test_the_worst_come_first_then_topics_and_partitions_by_number() -> None:
    rows = [row(1, partition=10), row(1, partition=9), row(2, partition=1), row(1, topic="gone")]
    now = ClusterAnswers({}, {("foo", 10): (1,), ("foo", 9): (1,), ("foo", 1): (1,)})
    found = verify(rows, now)
    assert [(v.name, v.state) for v in found] == [
        ("foo-1", VerifyState.FAILED),
        ("gone-0", VerifyState.MISSING),
        ("foo-9", VerifyState.COMPLETED),
        ("foo-10", VerifyState.COMPLETED),
    ]
    assert summarize_counts(tally(found)) == "2 of 4 partitions completed, 1 failed, 1 not found"


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({VerifyState.COMPLETED: 5}, "All 5 partitions completed"),
        ({VerifyState.COMPLETED: 1}, "1 partition completed"),
        (
            {VerifyState.COMPLETED: 3, VerifyState.IN_PROGRESS: 1, VerifyState.FAILED: 1},
            "3 of 5 partitions completed, 1 in progress, 1 failed",
        ),
        (
            {VerifyState.IN_PROGRESS: 1_200, VerifyState.COMPLETED: 1},
            "1 of 1,201 partitions completed, 1,200 in progress",
        ),
        ({VerifyState.MISSING: 2}, "0 of 2 partitions completed, 2 not found"),
        ({VerifyState.UNKNOWN: 1}, "0 of 1 partition completed, 1 not read"),
    ],
)
def test_the_answer_is_a_sentence(counts: dict[VerifyState, int], sentence: str) -> None:
    assert summarize_counts(counts) == sentence
