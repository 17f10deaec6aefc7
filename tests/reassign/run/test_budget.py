"""What a step costs while very much moves: few statements, whatever the number of rows (04-changes.md §6).

Seconds are of this thread's work, so that others on the machine do not count; the benchmark takes them by the wall.
What pages ask for when they are rendered is theirs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import User
from kafkadash.domain.plan import Row
from kafkadash.reassign.models import Move
from tests.reassign.run.runs import OPTIONS, World, model_of, patched
from tests.reassign.stored import stored

TOPICS, PARTITIONS = 20, 200
ROWS = tuple(
    Row(f"t{topic:02}", f"id-of-t{topic:02}", number, (1, 2, 3), (1, 2, 6))
    for topic in range(TOPICS)
    for number in range(PARTITIONS // 2)
)
MOST_STATEMENTS = 10
NOT_COUNTED = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE SAVEPOINT")


@pytest.fixture
def large(db: None) -> Iterator[World]:
    """4,000 partitions of 20 topics, half of which move at once and slowly."""
    topics = {f"t{topic:02}": [[1, 2, 3]] * PARTITIONS for topic in range(TOPICS)}
    cluster = stored(topics=topics, size=100_000_000, usable=1_900_000_000_000)
    world = World(cluster, model_of(cluster, rate=20_000_000))
    with patched(world, known_for_s=0.0):
        yield world


@pytest.mark.django_db
def test_step__of_2000_moving_rows__takes_few_statements_and_less_than_a_second(large: World, operator: User) -> None:
    large.queue(operator, ROWS, replace(OPTIONS, per_broker=5000, per_cluster=5000))
    for _ in range(6):
        large.tick()
    assert Move.objects.filter(state="moving").count() == len(ROWS), (large.run().blocked, large.run().error)
    statements, seconds = [], []
    for _ in range(6):
        large.reset()
        with CaptureQueriesContext(connection) as captured, mock.patch("kafkadash.live.signals.publish_keys"):
            began = time.thread_time()
            large.take()
            seconds.append(time.thread_time() - began)
        counted = [q["sql"] for q in captured.captured_queries if not q["sql"].startswith(NOT_COUNTED)]
        statements.append(counted)
        large.passes(2)
    assert Move.objects.filter(state="moving").count() == len(ROWS)
    most = max(statements, key=len)
    assert len(most) <= MOST_STATEMENTS, [sql[:160] for sql in most]
    assert sorted(seconds)[len(seconds) // 2] < 1.0, seconds
