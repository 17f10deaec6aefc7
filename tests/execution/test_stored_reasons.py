"""Reasons of runs and of their rows as steps store them: why a run does not begin, why a row waits or ended otherwise.

The page of a run shows these (tests/pages/test_run.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import services as steering
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import PartitionMove
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason, PlainReason, as_message, coded, message_reason
from kafkadash.execution.engine.reasons import (
    AllRefused,
    ChangedSince,
    ClusterReadOnly,
    DisksAboveLimit,
    DisksFull,
    DisksNotRead,
    DisksReadLongAgo,
    LacksPermission,
    LiesElsewhere,
    LiesNobodyKnows,
    LookedOnceMore,
    NewerVersion,
    NotReadLately,
    NotReread,
    NotSentYet,
    NotWatched,
    RateNotApplied,
    RefusedByKafka,
    RefusedToCancel,
    RefusedToOrder,
    RowReasonCode,
    RunReasonCode,
    ThrottleAnswerLost,
    ThrottleCallRefused,
    ThrottleMissing,
    ThrottleRemoved,
    TopicDeleted,
    TopicDeletedSince,
    TopicsUnread,
)
from kafkadash.execution.models import RUN_FORMAT, Execution
from kafkadash.execution.models import Move as Stored
from kafkadash.execution.worker import running as budget
from kafkadash.execution.worker import step as stepping
from kafkadash.kafka.api import ConfigResource, ItemChanged, ItemError, KafkaUnreachable, TopicPartition
from kafkadash.kafka.throttles import RATES
from kafkadash.monitoring.models import BrokerWeights, CollectorRun
from kafkadash.planning.errors import ReassignmentErrorCode
from tests.execution.test_run_in_trouble import NAMED
from tests.execution.worlds import OPTIONS as RUN_OPTIONS
from tests.execution.worlds import ROWS, World
from tests.factories import GB, directory

LEADER_ONLY = ROWS[4]


class Stepped:
    """A run on a virtual Kafka."""

    def __init__(self, world: World, user: User) -> None:
        self.world, self.user, self.kafka = world, user, world.kafka

    def blocked(self, **options: Any) -> CodedReason | None:
        self.world.queue(self.user, options=replace(RUN_OPTIONS, **options))
        return self.blocked_now()

    def blocked_now(self) -> CodedReason | None:
        self.world.step()
        assert self.world.change().state == RequestState.QUEUED
        return self.world.run().blocked

    def queued(self) -> Stepped:
        self.world.queue(self.user)
        return self

    def begun(self) -> Stepped:
        self.world.queue(self.user)
        self.world.until(RequestState.EXECUTING)
        self.world.tick()
        self.world.tick()
        return self

    def not_watched(self) -> CodedReason | None:
        self.queued()
        Cluster.objects.update(enabled=False)
        return self.blocked_now()

    def old_facts(self) -> CodedReason | None:
        self.queued()
        CollectorRun.objects.filter(kind="log_dirs").update(succeeded_at=self.world.clock - timedelta(minutes=10))
        return self.blocked_now()

    def window(self) -> CodedReason | None:
        tomorrow = self.world.clock + timedelta(days=1)
        self.world.queue(self.user, options=replace(RUN_OPTIONS, not_before=f"{tomorrow:%Y-%m-%dT%H:%M:%SZ}"))
        ChangeRequest.objects.update(not_before=tomorrow)
        return self.blocked_now()

    def hidden(self) -> CodedReason | None:
        self.queued()
        self.kafka.hidden.add("clicks")
        return self.blocked_now()

    def looked_once_more(self) -> CodedReason | None:
        self.queued()
        self.world.model.delete("clicks")
        return self.blocked_now()

    def not_permitted(self) -> CodedReason | None:
        self.kafka.lacks = frozenset({"Alter"})
        return self.blocked()

    def read_only(self) -> CodedReason | None:
        self.queued()
        Cluster.objects.update(read_only=True)
        return self.blocked_now()

    def reasons(self) -> list[CodedReason]:
        return [each for _, reason in self.world.states().values() for each in reason or ()]

    def verified(self, happens: Callable[[World], object]) -> list[CodedReason]:
        self.queued()
        self.world.until(RequestState.VERIFYING)
        happens(self.world)
        self.world.until(RequestState.DONE)
        return self.reasons()

    def not_reread(self) -> list[CodedReason]:
        self.queued()
        self.world.until(RequestState.VERIFYING)
        self.kafka.hidden.add("clicks")
        for _ in range(14):
            self.world.tick(60)
        return self.reasons()

    def no_time(self, *some: PartitionMove) -> list[CodedReason]:
        self.world.queue(self.user, some)
        self.world.until(RequestState.EXECUTING)
        with mock.patch.object(budget, "STEP_S", 0.0):
            self.world.tick()
        return self.reasons()

    def cancelled(self) -> set[TopicPartition]:
        """What moves of a run that is being cancelled."""
        self.begun()
        moves = Stored.objects.filter(state__in=("moving", "catching_up"))
        steering.cancel(self.world.change(), self.user, "Wrong broker.")
        return {TopicPartition(move.topic, move.partition) for move in moves}

    def refused_to_cancel(self) -> list[CodedReason]:
        for key in self.cancelled():
            self.kafka.refuse[key] = ItemError(as_message("Not now."), 29)
        self.world.tick()
        self.world.tick()
        return self.reasons()

    def refused_to_order(self) -> list[CodedReason]:
        """A cancel leaves the replicas in another order than before."""
        moving_now = self.cancelled()
        said: list[CodedReason] = []
        for _ in range(30):
            self.world.tick()
            for key in moving_now:
                there = self.world.model.partitions[key.topic, key.partition]
                if not there.moving:
                    there.replicas = (*there.replicas[1:], there.replicas[0])
                    self.kafka.refuse[key] = ItemError(as_message("Not now."), 29)
            said += self.reasons()
        return said

    def newer_version(self) -> CodedReason | None:
        self.queued()
        Execution.objects.update(format=RUN_FORMAT + 1)
        self.world.step()
        return self.world.run().error

    def all_refused(self) -> CodedReason | None:
        for row in ROWS:
            self.kafka.refuse[TopicPartition(row.topic, row.partition)] = ItemError(as_message("Not allowed here."), 42)
        self.queued()
        self.world.until(RequestState.FAILED)
        return self.world.run().error

    def fault(self) -> CodedReason | None:
        self.begun()
        with mock.patch.object(stepping, "observe_cluster", side_effect=KeyError("secret")):
            self.world.step()
        return self.world.run().error

    def given_up(self) -> list[CodedReason]:
        """One row moves, the others wait; then another cluster answers until nobody believes it to be a mishap."""
        self.world.queue(self.user, options=replace(RUN_OPTIONS, per_cluster=1))
        for _ in range(3):
            self.world.tick()
        self.kafka.cluster_id = "another"
        for _ in range(22):
            self.world.tick(31)
        assert self.world.change().state == RequestState.FAILED
        return self.reasons()

    def throttle_removed(self) -> set[type[CodedReason]]:
        self.begun()
        found: set[type[CodedReason]] = set()
        for _ in range(12):
            for own in self.kafka.configs.values():
                for key in [key for key in own if key.endswith(".rate")]:
                    del own[key]
            self.world.tick()
            found |= {type(reason) for reason in self.world.run().held_reasons}
        return found

    def lies(self, **kafka: Any) -> list[CodedReason]:
        """Of a row whose plan names a directory."""
        for name, value in kafka.items():
            setattr(self.kafka, name, value)
        self.world.queue(self.user, [NAMED])
        self.world.until(RequestState.DONE)
        return self.reasons()

    def other_topics(self, succeeded_at: Any) -> set[str]:
        self.begun()
        CollectorRun.objects.filter(kind="metadata").update(succeeded_at=succeeded_at)
        self.world.step()
        return {reason.stored_code for reason in self.world.run().held_reasons}

    def disks(self, **weights: Any) -> list[CodedReason]:
        self.queued()
        self.world.until(RequestState.EXECUTING)
        BrokerWeights.objects.filter(broker_id=6).update(**weights)
        self.world.step()
        return self.reasons()

    def throttled(self, answer: Callable[[ConfigResource], ItemChanged[ConfigResource]]) -> list[CodedReason]:
        """Kafka answers so when it is asked to set a throttle; the first of its changes is given to ``answer``."""
        self.queued()
        self.world.until(RequestState.EXECUTING)
        answers = mock.Mock(side_effect=lambda changes, **_: answer(changes[0].resource))
        with mock.patch.object(self.kafka, "alter_configs", answers):
            self.world.tick()
        return self.reasons()

    def throttle_changed(self) -> list[CodedReason]:
        """Somebody else sets rates after they were read, and before ours are set."""

        def others_set(name: str) -> None:
            if name == "describe_configs":
                for number in range(1, 7):
                    own = self.kafka.configs.setdefault(ConfigResource.broker(number), {})
                    own.update(dict.fromkeys(RATES, "7"))

        self.queued()
        self.world.until(RequestState.EXECUTING)
        with mock.patch.object(self.kafka, "after", others_set):
            self.world.tick()
        return self.reasons()

    def not_applied(self) -> list[CodedReason]:
        """A broker hears of its rate late: the row waits, and is submitted when the broker applies it."""
        self.queued()
        self.world.until(RequestState.EXECUTING)
        self.kafka.not_applied = {6}
        self.world.tick()
        waits = self.reasons()
        assert not self.kafka.model.moving
        self.kafka.not_applied = ()
        self.world.tick()
        assert self.kafka.model.moving
        return waits

    def no_disks(self) -> list[CodedReason]:
        self.queued()
        self.world.until(RequestState.EXECUTING)
        BrokerWeights.objects.filter(broker_id=6).delete()
        self.world.step()
        return self.reasons()


REASONS: Sequence[tuple[Callable[[Stepped], list[CodedReason]], CodedReason]] = (
    (lambda s: s.verified(lambda world: world.model.delete("clicks")), TopicDeletedSince("clicks")),
    (
        lambda s: s.verified(lambda world: setattr(world.model.partitions["clicks", 0], "replicas", (5, 6))),
        ChangedSince((5, 6)),
    ),
    (Stepped.not_reread, NotReread("clicks")),
    (lambda s: s.no_time(ROWS[0]), PlainReason(RowReasonCode.NO_TIME_FOR_THROTTLE)),
    (lambda s: s.no_time(LEADER_ONLY), PlainReason(RowReasonCode.NO_TIME_LEFT)),
    (Stepped.given_up, PlainReason(RowReasonCode.RUN_ENDED_UNSEEN)),
    (Stepped.given_up, PlainReason(RowReasonCode.RUN_ENDED_BEFORE)),
    (Stepped.refused_to_cancel, RefusedToCancel("Not now.")),
    (Stepped.refused_to_order, RefusedToOrder("Not now.")),
    (lambda s: s.lies(forgetful=True), LiesElsewhere(6, "/data-1", "/data-2")),
    (
        lambda s: s.lies(fail={"log_dirs": KafkaUnreachable(as_message("Broker 6 could not be connected."))}),
        LiesNobodyKnows(6, "/data-2", "Broker 6 could not be connected."),
    ),
    (Stepped.no_disks, DisksNotRead(6)),
    (
        lambda s: s.throttled(lambda one: ItemChanged(refused={one: ItemError(as_message("Not now."), 42)})),
        NotSentYet(ThrottleCallRefused(message_reason(as_message("Not now.")))),
    ),
    (Stepped.not_applied, RateNotApplied(6)),
    (Stepped.throttle_changed, PlainReason(RowReasonCode.THROTTLE_CHANGED_MEANWHILE)),
)


@pytest.mark.django_db
@pytest.mark.parametrize(("see", "reason"), REASONS, ids=[reason.stored_code for _, reason in REASONS])
def test_reason_of_a_row(
    see: Callable[[Stepped], list[CodedReason]], reason: CodedReason, world: World, operator: User
) -> None:
    assert reason in see(Stepped(world, operator))


@pytest.mark.django_db
def test_throttle_of_which_nothing_is_told__holds_rows_up(world: World, operator: User) -> None:
    why = ThrottleAnswerLost(message_reason(coded(ReassignmentErrorCode.OUTCOME_NOT_TOLD)))
    assert NotSentYet(why) in Stepped(world, operator).throttled(lambda _: ItemChanged())


@pytest.mark.django_db
def test_disks_read_long_ago__hold_a_row_up(world: World, operator: User) -> None:
    seen = Stepped(world, operator).disks(taken_at=world.clock - timedelta(hours=3))

    found = next(each for each in seen if isinstance(each, DisksReadLongAgo))
    assert (found.broker, found.age >= 3 * 3600) == (6, True)


@pytest.mark.django_db
def test_disks_without_room__hold_a_row_up(world: World, operator: User) -> None:
    seen = Stepped(world, operator).disks(dirs=[directory("/data/a", usable=GB // 1000)])

    assert next(each.broker for each in seen if isinstance(each, DisksFull | DisksAboveLimit)) == 6


RUN_REASONS: Sequence[tuple[Callable[[Stepped], CodedReason | None], CodedReason]] = (
    (Stepped.not_watched, NotWatched("demo")),
    (Stepped.read_only, ClusterReadOnly("demo")),
    (Stepped.window, PlainReason(RunReasonCode.WINDOW_NOT_OPEN)),
    (Stepped.old_facts, NotReadLately(("log_dirs",))),
    (Stepped.hidden, TopicsUnread(1, ("clicks",))),
    (Stepped.looked_once_more, LookedOnceMore("clicks-0", TopicDeleted("clicks"))),
    (Stepped.not_permitted, LacksPermission((("Alter", ""),))),
    (Stepped.fault, PlainReason(RunReasonCode.STEP_FAILED)),
    (Stepped.newer_version, NewerVersion(RUN_FORMAT + 1, RUN_FORMAT)),
    (Stepped.all_refused, AllRefused(6, RefusedByKafka("Not allowed here."))),
)


@pytest.mark.django_db
@pytest.mark.parametrize(("see", "reason"), RUN_REASONS, ids=[reason.stored_code for _, reason in RUN_REASONS])
def test_reason_of_a_run(
    see: Callable[[Stepped], CodedReason | None], reason: CodedReason, world: World, operator: User
) -> None:
    assert see(Stepped(world, operator)) == reason


@pytest.mark.django_db
def test_throttle_of_ours_removed_again_and_again__is_told_and_nothing_submitted(world: World, operator: User) -> None:
    assert Stepped(world, operator).throttle_removed() >= {ThrottleMissing, ThrottleRemoved}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ago", "code"),
    [
        (None, RunReasonCode.OTHER_TOPICS_NEVER_READ),
        (timedelta(minutes=20), RunReasonCode.OTHER_TOPICS_READ_LONG_AGO),
    ],
)
def test_other_topics_not_read__nothing_is_submitted(
    ago: timedelta | None, code: RunReasonCode, world: World, operator: User
) -> None:
    read_at = None if ago is None else world.clock - ago

    assert code in Stepped(world, operator).other_topics(read_at)
