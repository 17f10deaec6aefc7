"""Asks a cluster what ``domain.verify`` has to know. Only workers and commands call this."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from kafkadash.domain.verify import Directories, Moving, Replica, State, Told
from kafkadash.domain.wording import count
from kafkadash.kafka.port import KafkaAdmin, LogDir, OngoingReassignment

TOPICS_AT_ONCE = 500
UNKNOWN_TOPIC = 3  # UNKNOWN_TOPIC_OR_PARTITION

Step = Callable[[float, str], None]
"""Is told the share that is done and what is being done; may raise to end it."""


Judge = Callable[[Told], Mapping[State, int]]
"""Is told what the cluster tells, and returns how many rows of the file are in each state."""


def verify_now(
    admin: KafkaAdmin,
    topics: Sequence[str],
    brokers: Sequence[int],
    judge: Judge,
    *,
    deadline: Callable[[], float],
    step: Step,
    check_cluster: Callable[[str], None],
) -> datetime:
    """Read Kafka's listing, these topics, and the directories of these brokers; change nothing.

    What it is told last is what counts: ``judge`` is asked again when something failed that may have begun to move
    between two answers. Returns when the partitions were read, the oldest answer of all.

    ``deadline`` gives the seconds for the next question; ``check_cluster`` is told the Kafka cluster's id and raises if
    that is another one. Raises KafkaFailure, and what ``judge``, ``step`` and ``check_cluster`` raise.
    """
    step(0.0, "Asking what moves")
    listing = admin.list_reassignments(deadline=deadline())
    moving = _moving(listing.rows)
    replicas: dict[tuple[str, int], tuple[int, ...]] = {}
    unread: dict[str, str] = {}
    for first in range(0, len(topics), TOPICS_AT_ONCE):
        step(0.1 + 0.7 * first / len(topics), f"Reading {count(len(topics), 'topic')}")
        answer = admin.metadata(deadline=deadline(), topics=topics[first : first + TOPICS_AT_ONCE])
        check_cluster(answer.cluster_id)
        for topic in answer.topics:
            if topic.error is None:
                replicas.update({(topic.name, p.partition): p.replicas for p in topic.partitions})
            elif topic.error.code != UNKNOWN_TOPIC:
                unread[topic.name] = f"Topic {topic.name} could not be read: {topic.error.text}"
    directories, silent = _directories(admin, brokers, deadline, step)
    counts = judge(Told(moving, replicas, unread, directories, silent))
    if counts.get(State.FAILED):
        # What began to move between the two answers has replicas of both sets: it has not failed.
        step(0.95, "Asking again what moves")
        later = _moving(admin.list_reassignments(deadline=deadline()).rows)
        judge(Told({**later, **moving}, replicas, unread, directories, silent))
    return datetime.fromtimestamp(listing.taken_at, UTC)


def _moving(rows: Iterable[OngoingReassignment]) -> dict[tuple[str, int], Moving]:
    return {(row.topic, row.partition): Moving(row.replicas, row.target) for row in rows}


def _directories(
    admin: KafkaAdmin, brokers: Sequence[int], deadline: Callable[[], float], step: Step
) -> tuple[dict[Replica, Directories], dict[int, str]]:
    """Of these brokers; no question where there are none."""
    if not brokers:
        return {}, {}
    step(0.85, f"Reading the directories of {count(len(brokers), 'broker')}")
    answer = admin.log_dirs(brokers, deadline=deadline())
    found: dict[Replica, Directories] = {}
    for broker, dirs in answer.brokers.items():
        _add(found, broker, dirs)
    return found, {broker: error.text for broker, error in answer.errors.items()}


def _add(found: dict[Replica, Directories], broker: int, dirs: Iterable[LogDir]) -> None:
    for directory in dirs:
        for replica in directory.replicas if directory.error is None else ():
            place = (broker, replica.topic, replica.partition)
            known = found.get(place, Directories())
            found[place] = (
                Directories(known.current, directory.path)
                if replica.future
                else Directories(directory.path, known.future)
            )
