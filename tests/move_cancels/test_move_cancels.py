"""Reassignments of others are cancelled by an approved change: which ones, what is sent, and what is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.checks import CheckResult
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Role
from kafkadash.core.messages import as_message
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Move
from kafkadash.kafka.api import ItemError, TopicPartition
from kafkadash.monitoring.models import ReassignmentSnapshot
from kafkadash.move_cancels.errors import CancelNoteCode
from kafkadash.move_cancels.kind import KIND, plan_cancels, remaining_replicas
from kafkadash.move_cancels.reasons import CancelReasonCode
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.plans import check_items
from kafkadash.short_runs.reasons import ShortRunReasonCode
from tests.execution.stored_runs import requested, running
from tests.execution.worlds import model_of
from tests.factories import ReassignmentFactory
from tests.pages.conftest import Element, Page
from tests.planning.stored import stored
from tests.short_runs.worlds import ShortWorld, stepped

pytestmark = pytest.mark.django_db
NEW = "/clusters/demo/cancels/new/"


class MovingWorld(ShortWorld):
    def move(self, topic: str, partition: int, target: tuple[int, ...], **columns: object) -> ReassignmentSnapshot:
        """A reassignment that others started, in Kafka and as stored."""
        assert self.kafka.model.submit((topic, partition), target)
        own = self.kafka.model.partitions[topic, partition]
        return ReassignmentFactory.create(
            cluster=self.cluster,
            topic=topic,
            topic_id=f"id-of-{topic}",
            partition=partition,
            replicas=list(own.replicas),
            adding=sorted(own.adding),
            removing=sorted(own.removing),
            target=list(target),
            **columns,
        )

    def end(self, topic: str, partition: int, replicas: tuple[int, ...]) -> None:
        """Let a reassignment come to its end in Kafka."""
        own = self.kafka.model.partitions[topic, partition]
        own.replicas, own.isr, own.adding, own.removing = replicas, set(replicas), set(), set()
        self.kafka.model.moving.discard((topic, partition))

    @property
    def cancelled(self) -> list[str]:
        """Partitions whose cancel arrived in Kafka."""
        return [
            f"{place.topic}-{place.partition}"
            for call, targets in self.kafka.sent
            if call == "alter_reassignments" and isinstance(targets, dict)
            for place, target in targets.items()
            if target is None
        ]


@pytest.fixture
def world(db: None, operator: User) -> Iterator[MovingWorld]:
    """orders-0 (on 1, 2, 3) moves from broker 3 to 6, orders-1 (on 2, 3, 4) from 3 to 6."""
    cluster = stored()
    made = MovingWorld(cluster, model_of(cluster), operator, KIND)
    made.move("orders", 0, (1, 2, 6))
    made.move("orders", 1, (2, 6, 4))
    with stepped(made):
        yield made


def subjects(world: MovingWorld, **wanted: object) -> list[str]:
    return [item.subject for item in plan_cancels(world.cluster, wanted).items]


# ---- plan


def test_plan__has_what_others_started(world: MovingWorld) -> None:
    ours = world.move("orders", 2, (6, 4, 5), claimed_by="#7")
    planned = plan_cancels(world.cluster, {})
    assert [item.subject for item in planned.items] == ["orders-0", "orders-1"]
    assert [(m.code, m.params) for m in planned.left_out] == [(CancelNoteCode.OURS_LEFT_OUT, {"moves": 1})]
    first = ReassignmentSnapshot.objects.get(partition=0)
    assert subjects(world, id=first.public_id) == ["orders-0"]
    assert subjects(world, id=ours.public_id) == []
    assert subjects(world, stuck=True) == []
    ReassignmentSnapshot.objects.filter(pk=first.pk).update(adding=[6], removing=[6])
    assert subjects(world, stuck=True) == ["orders-0"]


@pytest.mark.domain
@pytest.mark.parametrize(
    ("replicas", "adding", "remaining"),
    [
        ([6, 1, 2, 3], [6], (1, 2, 3)),
        ([1, 2, 3], [], (1, 2, 3)),
        ([1, 2, 5, 3, 4], [5], (1, 2, 3, 4)),  # retargeted from [1,2,4] to [1,2,5]: more than there were
        ([4], [4], ()),
    ],
)
def test_cancel__leaves_the_replicas_without_the_added_ones(
    replicas: list[int], adding: list[int], remaining: tuple[int, ...]
) -> None:
    assert remaining_replicas(replicas, adding) == remaining


# ---- run


def test_run__cancels_all_with_one_request(world: MovingWorld) -> None:
    change = world.until(world.queue(), "done")
    assert world.states(change) == {"orders-0": "done", "orders-1": "done"}
    assert world.run(change).outcome == "clean"
    assert world.cancelled == ["orders-0", "orders-1"]
    assert [set(world.kafka.model.partitions["orders", n].replicas) for n in (0, 1)] == [{1, 2, 3}, {2, 3, 4}]


def test_run__one_has_ended_by_then__is_told_and_not_sent(world: MovingWorld) -> None:
    change = world.queue()
    world.end("orders", 0, (1, 2, 6))
    change = world.until(change, "done")
    assert world.states(change) == {"orders-0": "unchanged", "orders-1": "done"}
    assert world.reasons(change)["orders-0"] == CancelReasonCode.ENDED
    assert world.cancelled == ["orders-1"]


def test_run__one_that_removes_none_has_ended_by_then__is_told(world: MovingWorld) -> None:
    added = world.move("orders", 2, (3, 4, 5, 6))
    change = world.queue({"id": added.public_id})
    world.end("orders", 2, (3, 4, 5, 6))
    change = world.until(change, "done")
    assert world.states(change) == {"orders-2": "unchanged"}
    assert world.reasons(change) == {"orders-2": CancelReasonCode.ENDED}
    assert world.cancelled == []


def test_run__kafka_says_that_it_had_ended__a_reading_tells_how(world: MovingWorld) -> None:
    change = world.step(world.queue({"id": ReassignmentSnapshot.objects.get(partition=0).public_id}))
    error = ItemError(as_message("nothing in flight"), 85, "NO_REASSIGNMENT_IN_PROGRESS")
    world.kafka.refuse[TopicPartition("orders", 0)] = error
    change = world.step(change)
    assert world.states(change) == {"orders-0": "lost"}
    world.end("orders", 0, (1, 2, 6))
    change = world.until(change, "done")
    assert world.states(change) == {"orders-0": "unchanged"}
    assert world.reasons(change) == {"orders-0": CancelReasonCode.ENDED}


@pytest.mark.parametrize("arrives", [True, False])
def test_run__answer_is_lost__a_reading_tells(world: MovingWorld, arrives: bool) -> None:
    change = world.step(world.queue())
    world.kafka.lose = arrives
    change = world.step(change)
    assert set(world.states(change).values()) == {"lost"}
    world.kafka.lose = None
    change = world.until(change, "done")
    assert set(world.states(change).values()) == {"done"}
    assert len(world.cancelled) == (2 if arrives else 4)


def test_run__broker_does_not_know_yet_how_it_ended__is_read_again(world: MovingWorld) -> None:
    change = world.step(world.queue({"id": ReassignmentSnapshot.objects.get(partition=0).public_id}))
    partition = world.kafka.model.partitions["orders", 0]
    told = partition.replicas

    def know_late(call: str) -> None:
        if call == "alter_reassignments":
            partition.replicas = told

    world.kafka.lose, world.kafka.after = True, know_late
    change = world.step(change)
    change = world.step(change)
    assert world.states(change) == {"orders-0": "lost"}, "not told as ended"
    assert world.run(change).error_code == ShortRunReasonCode.ITEMS_UNREAD
    world.end("orders", 0, (1, 2, 3))
    change = world.until(change, "done")
    assert world.states(change) == {"orders-0": "done"}


def test_run__a_run_of_kafkadash_moves_the_partition__it_goes_on(world: MovingWorld) -> None:
    change = world.step(world.queue())
    other = running(requested(world.cluster, world.operator, ChangeState.EXECUTING), {RowState.MOVING: 1})
    Move.objects.filter(execution=other).update(topic="orders", partition=0)
    change = world.until(change, "done")
    assert world.reasons(change)["orders-0"] == CancelReasonCode.OURS
    assert world.cancelled == ["orders-1"]


def test_run__no_remaining_replica_is_in_sync__is_skipped(world: MovingWorld) -> None:
    change = world.step(world.queue())
    world.kafka.model.partitions["orders", 0].isr = {6}
    change = world.until(change, "done")
    assert world.reasons(change)["orders-0"] == CancelReasonCode.NOTHING_IN_SYNC
    assert world.run(change).outcome == "exceptions"


# ---- before the start


def test_queued__the_move_is_another_one_by_now__turns_stale(world: MovingWorld) -> None:
    change = world.queue()
    world.kafka.model.cancel(("orders", 0))
    assert world.kafka.model.submit(("orders", 0), (1, 2, 5))
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == CancelReasonCode.MOVE_CHANGED
    assert world.cancelled == []


def test_queued__topic_was_created_again__turns_stale(world: MovingWorld) -> None:
    change = world.queue()
    world.kafka.model.topics["orders"] = "another-id"
    world.until_stale(change)


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"adding": [5]}, CancelReasonCode.MOVE_CHANGED),
        ({"claimed_by": "#9"}, CancelReasonCode.OURS),
        ({"topic_id": "another"}, CancelReasonCode.TOPIC_GONE),
    ],
)
def test_submit__stored_move_is_another_one__is_refused(
    world: MovingWorld, columns: dict[str, object], code: CancelReasonCode
) -> None:
    draft = world.draft()
    ReassignmentSnapshot.objects.filter(partition=0).update(**columns)
    with pytest.raises(ChangeRefused) as refused:
        services.submit(draft, world.operator, why="Left by a tool.", version=draft.version)
    assert refused.value.code == ChangeErrorCode.PLAN_NO_LONGER_FITS
    first = refused.value.message.params["first"]
    assert (first.code, first.params["why"].code) == (ShortRunErrorCode.ITEM_DOES_NOT_FIT, code)


def test_submit__stored_move_has_ended__fits(world: MovingWorld) -> None:
    draft = world.draft()
    ReassignmentSnapshot.objects.filter(partition=0).update(outcome="completed")
    assert services.submit(draft, world.operator, why="Left.", version=draft.version).state == "proposed"


def test_checks__listing_is_old__are_unknown(world: MovingWorld) -> None:
    outcome = check_items(world.draft(), world.clock + timedelta(hours=1))
    assert [check.result for check in outcome.checks] == [CheckResult.UNKNOWN]
    assert [problem.code for problem in outcome.checks[0].problems] == [ShortRunErrorCode.FACTS_OLD]


# ---- pages


def test_pages__offer_the_cancel_and_show_what_it_leaves(
    world: MovingWorld, client_of: Callable[[User], Client], make_user: Callable[..., User]
) -> None:
    client, viewer = client_of(world.operator), client_of(make_user("vic", Role.VIEWER))
    first = ReassignmentSnapshot.objects.get(partition=0)
    one = f"/clusters/demo/reassignments/{first.public_id}/"
    everything = "/clusters/demo/reassignments/?running=all"
    assert f"{NEW}?id={first.public_id}" in Page.read(client.get(one)).links(".page-actions")
    assert NEW in Page.read(client.get(everything)).links("#list header")
    for address in (one, everything):
        assert NEW not in viewer.get(address).content.decode()
    page = Page.read(client.get(f"{NEW}?id={first.public_id}"))
    cells = [[c.text for c in row.children if isinstance(c, Element)] for row in page.find("#items tbody tr")]
    listed = ", ".join(map(str, first.replicas))
    assert cells == [["orders-0", f"{listed}, adding 6, removing 3", "1, 2, 3"]]
    assert [item.text for item in page.find("#proposal p")][:1], "it says what a start does"
    client.post(NEW, {"why": "Nobody needs it."})
    change = ChangeRequest.objects.get()
    assert (change.state, change.kind, change.title) == ("proposed", KIND, "Cancel reassignments of others")
    for query in ("?stuck=1", "?id=r-0", "?id=%00"):
        assert client.get(NEW + query).status_code == 200
