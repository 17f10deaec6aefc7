"""What a cancel leads to is said before it is confirmed, also after somebody gave a partition another target."""

from __future__ import annotations

from typing import Any

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import running
from kafkadash.changes.models import RequestState
from kafkadash.domain.executor_state import State as RowState
from kafkadash.reassign.models import Execution, Move
from kafkadash.reassign.run.cancelling import GoesBack, goes_back, preview
from tests.factories import ReassignmentFactory
from tests.reassign.run.runs import ROWS, World

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(world: World, operator: User) -> Execution:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    return world.run()


def row(run: Execution, listed: dict[str, Any] | None = None) -> GoesBack:
    """Of orders-0, which moves 1, 2, 3 → 1, 2, 6."""
    if listed is not None:
        ReassignmentFactory.create(cluster=run.cluster, topic="orders", partition=0, **listed)
    (found,) = goes_back(run, [Move.objects.get(execution=run, topic="orders", partition=0)])
    return found


def test_a_plain_move_goes_back_to_its_original_replicas_in_order(run: Execution) -> None:
    listed = {"replicas": [1, 2, 6, 3], "adding": [6], "removing": [3], "target": [1, 2, 6]}
    found = row(run, listed)
    assert (found.ours, found.other, list(found.leaves)) == (True, False, [1, 2, 3])
    assert found.sentence == "It goes back to 1, 2, 3, in that order."


def test_one_that_was_not_seen_yet_says_so(run: Execution) -> None:
    found = row(run)
    assert list(found.leaves) == [1, 2, 3]
    assert "It was not seen in the cluster yet" in found.sentence


def test_after_a_retarget_it_can_be_a_larger_set(run: Execution) -> None:
    """Somebody moved it to 1, 2, 5 and then to our target: 5 is in the replicas, and no longer among the added."""
    listed = {"replicas": [1, 2, 6, 3, 5], "adding": [6], "removing": [3, 5], "target": [1, 2, 6]}
    found = row(run, listed)
    assert (found.ours, found.other, list(found.leaves), found.more) == (True, True, [1, 2, 3, 5], [5])
    assert "A cancel leaves 1, 2, 3, 5, another set than the original 1, 2, 3" in found.sentence
    assert "1, 2, 3 is restored by a second request" in found.sentence


def test_what_somebody_else_targets_is_not_ours_to_cancel(run: Execution) -> None:
    listed = {"replicas": [1, 2, 5, 3], "adding": [5], "removing": [3], "target": [1, 2, 5]}
    found = row(run, listed)
    assert not found.ours
    assert "Somebody else gave it the target 1, 2, 5." in found.sentence


def test_a_change_of_order_is_put_back(run: Execution) -> None:
    Move.objects.filter(topic="orders", partition=0).update(target=[2, 1, 3])
    assert row(run).sentence == "Only its order changes; it is put back to 1, 2, 3."


def test_it_says_what_stays_and_what_is_not_started(run: Execution) -> None:
    Move.objects.update(state=RowState.PENDING)
    Move.objects.filter(topic="orders", partition__in=(0, 1)).update(state=RowState.MOVING)
    Move.objects.filter(topic="orders", partition=2).update(state=RowState.DONE)
    Move.objects.filter(topic="orders", partition=4).update(state=RowState.SKIPPED)
    found = preview(run, None)
    assert (found.flight, found.done, found.waiting, found.ended) == (2, 1, 2, 1)
    assert list(found.sentences) == [
        "2 moves in flight return to their original replicas, as listed below.",
        "1 done move stays where it is, and is listed in the report.",
        "2 waiting moves are not started.",
        "1 move ended otherwise before.",
        "Our throttles are taken away; what cannot be now is as soon as it is possible.",
    ]
    assert [each.name for each in found.rows] == ["orders-0", "orders-1"]


def test_cancelled_the_cluster_is_as_the_preview_said(world: World, run: Execution, operator: User) -> None:
    said = {each.name: list(each.leaves) for each in preview(run, None).rows}
    assert said
    running.cancel(world.change(), operator, "Wrong broker.")
    world.until(RequestState.CANCELLED)
    for topic_row in ROWS:
        name = topic_row.name
        if world.states()[name][0] == RowState.CANCELLED and name in said:
            assert list(world.model.partitions[topic_row.topic, topic_row.partition].replicas) == said[name]
