"""The referee of chaos sees what it is there to see: each thing that is lost, doubled or left behind is a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes import services as running
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.transitions import audit_change
from kafkadash.execution.models import Move, Order, OrderType, ThrottleEntry
from kafkadash.kafka.api import ConfigResourceType
from kafkadash.planning.stored_topology import load_topology
from tests.agreement.tools import DescribedPartition, DescribedTopic, ListedMove, Tools
from tests.chaos import referee
from tests.chaos.metadata_log import Begun, ConfigSet, History, Stood
from tests.chaos.referee import Before, Disturbed, judge
from tests.execution.worlds import OPTIONS, ROWS, World, model_of, patched
from tests.planning.plans import planned
from tests.planning.stored import stored

pytestmark = pytest.mark.django_db
RATE = "leader.replication.throttled.rate"


@dataclass
class ToolsOfAModel:
    """What Kafka's tools would print of the model, and what a test puts in."""

    world: World
    foreign: dict[tuple[str, str, str], str] = field(default_factory=dict)
    listed: list[ListedMove] = field(default_factory=list)
    log: History = field(default_factory=History)
    playground: object = None

    def topics(self) -> dict[str, DescribedTopic]:
        model = self.world.model
        found = {name: DescribedTopic(topic_id, {}) for name, topic_id in model.topics.items()}
        for (topic, number), partition in model.partitions.items():
            described = DescribedPartition(partition.leader, partition.replicas, tuple(sorted(partition.isr)))
            found[topic].partitions[number] = described
        return found

    def moves(self) -> list[ListedMove]:
        return self.listed

    def quorum_status(self) -> SimpleNamespace:
        return SimpleNamespace(leader_id=101)

    def dynamic_configs(self, kind: str) -> dict[str, dict[str, tuple[str, str]]]:
        found: dict[str, dict[str, tuple[str, str]]] = {}
        for resource, configs in self.world.kafka.configs.items():
            if (resource.type is ConfigResourceType.BROKER) == (kind == "brokers"):
                for key, value in configs.items():
                    found.setdefault(resource.name, {})[key] = (value, "")
        for (resource_kind, name, key), value in self.foreign.items():
            if f"{resource_kind}s" == kind:
                found.setdefault(name, {})[key] = (value, "")
        return found


@dataclass
class Ended:
    """A run that went well, and whoever judges it."""

    world: World
    tools: ToolsOfAModel
    number: int
    alice: User
    before: Before = field(default_factory=lambda: Before({}))
    disturbed: Disturbed = field(default_factory=Disturbed)

    def judged(self) -> list[str]:
        return judge(cast("Tools", self.tools), [self.number], self.before, self.disturbed)


@pytest.fixture
def ended(db: None, operator: User, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ended]:
    cluster = stored()
    world = World(cluster, model_of(cluster))
    with patched(world):
        change = planned(cluster, load_topology(cluster).topology, ROWS, options=OPTIONS, approvals_needed=0)
        audit_change(change, operator, "created")
        for verb, source, target in (("submitted", "draft", "proposed"), ("approved", "proposed", "approved")):
            audit_change(change, operator, verb, before={"state": source}, after={"state": target})
        ChangeRequest.objects.filter(pk=change.pk).update(
            state=RequestState.APPROVED, expires_at=datetime.now(UTC) + timedelta(days=1)
        )
        running.start(change, operator, "Now.")
        world.runs.append(change.pk)
        world.executions[change.pk] = world.run(change.pk).pk
        world.until(RequestState.DONE)
        tools = ToolsOfAModel(world)
        at = world.run().started_at
        assert at is not None
        for row in ROWS:
            if row.adding:
                tools.log.begun.append(Begun(row.topic_id, row.partition, frozenset(row.adding), at))
        monkeypatch.setattr(referee, "history", lambda *_: tools.log)
        yield Ended(world, tools, change.pk, operator)


def test_a_run_that_went_well__has_no_problem(ended: Ended) -> None:
    assert ended.judged() == []


def _throttle_left(ended: Ended) -> None:
    ended.tools.foreign["broker", "3", RATE] = "1000"


def _throttle_of_others_lost(ended: Ended) -> None:
    ended.before = Before({("broker", "3", RATE): "7"})


def _throttle_that_others_set_lost(ended: Ended) -> None:
    ended.disturbed.throttles["broker", "5", RATE] = "9"


def _ledger_open(ended: Ended) -> None:
    ThrottleEntry.objects.filter(key=RATE).update(state="set")


def _still_moves(ended: Ended) -> None:
    ended.tools.listed.append(ListedMove("clicks", 0, (6, 5, 3), (6,), (3,)))


def _elsewhere(ended: Ended) -> None:
    ended.world.model.partitions["clicks", 0].replicas = (3, 5)


def _no_end(ended: Ended) -> None:
    Move.objects.filter(topic="clicks").update(state="moving")


def _begun_twice(ended: Ended) -> None:
    ended.tools.log.begun.append(ended.tools.log.begun[-1])


def _never_begun(ended: Ended) -> None:
    ended.tools.log.begun.pop()


def _unknown_to_the_rows(ended: Ended) -> None:
    Move.objects.filter(topic="clicks").update(attempt=0)


def _event_twice(ended: Ended) -> None:
    audit_change(ended.world.change(), "kafkadash", "verified", before={"state": "verifying"}, after={"state": "done"})


def _state_without_event(ended: Ended) -> None:
    ChangeRequest.objects.filter(pk=ended.number).update(state=RequestState.FAILED)


def _no_transition(ended: Ended) -> None:
    audit_change(ended.world.change(), "kafkadash", "started", before={"state": "done"}, after={"state": "done_"})


def _order_unanswered(ended: Ended) -> None:
    run = ended.world.run()
    Order.objects.create(execution=run, order_type=OrderType.AGAIN, topic="clicks", partition=0, user_name="alice")


def _run_active(ended: Ended) -> None:
    type(ended.world.run()).objects.update(active=True)


def _skipped_without_a_word(ended: Ended) -> None:
    Move.objects.filter(topic="clicks").update(state="skipped", reason_code="", attempt=0)


def _rate(ended: Ended, values: Sequence[str | None], seconds: float = 5) -> None:
    ended.disturbed.second_rate = "1300000"
    began = datetime.now(UTC)
    ended.tools.log.configs += [
        ConfigSet("broker", "3", RATE, value, began + timedelta(seconds=seconds * number))
        for number, value in enumerate(values)
    ]


def _theirs_set_over(ended: Ended) -> None:
    _rate(ended, ["1300000", str(OPTIONS.throttle)])


def _ours_set_over(ended: Ended) -> None:
    _rate(ended, [str(OPTIONS.throttle), "1300000"])


WRONG: dict[Callable[[Ended], None], str] = {
    _throttle_left: "broker 3 leader.replication.throttled.rate is '1000' by kafka-configs, not None.",
    _throttle_of_others_lost: "broker 3 leader.replication.throttled.rate is None by kafka-configs, not '7'.",
    _throttle_that_others_set_lost: "broker 5 leader.replication.throttled.rate is None by kafka-configs, not '9'.",
    _ledger_open: "the ledger has",
    _still_moves: "clicks-0 still moves",
    _elsewhere: "clicks-0 is done (no reason), but kafka-topics says [3, 5]",
    _no_end: "clicks-0 is moving, which is no end.",
    _begun_twice: "was begun 2 times by the metadata log",
    _never_begun: "is done, but the metadata log has no beginning of it",
    _unknown_to_the_rows: "was begun 1 times, of which the rows know 0",
    _event_twice: "the audit says verified from verifying, but it was done by the event before.",
    _state_without_event: "the audit ends at done, the request is failed.",
    _no_transition: "which is no transition.",
    _order_unanswered: "was never answered.",
    _run_active: "its run is active although it is over.",
    _skipped_without_a_word: "nothing says why.",
    _theirs_set_over: "and was set over with 500000000.",
    _ours_set_over: "and was set over with 1300000.",
}


@pytest.mark.parametrize("spoil", WRONG, ids=lambda spoil: spoil.__name__)
def test_what_is_wrong__is_a_problem(ended: Ended, spoil: Callable[[Ended], None]) -> None:
    spoil(ended)
    assert any(WRONG[spoil] in problem for problem in ended.judged()), ended.judged()


def test_rates_of_two_installations__one_after_the_other_or_at_once__are_no_problem(ended: Ended) -> None:
    ours = str(OPTIONS.throttle)
    _rate(ended, ["1300000", None, ours, None, "1300000"])
    _rate(ended, [None, ours, "1300000", None], seconds=0.1)
    assert ended.judged() == []


def test_what_is_owed_and_what_others_did__is_none(ended: Ended) -> None:
    ended.tools.foreign["broker", "3", RATE] = "1000"
    ThrottleEntry.objects.filter(name="3", key=RATE).update(state="obliged", changed_at=Now())
    ended.tools.foreign["broker", "5", RATE] = "9"
    ended.disturbed.throttles["broker", "5", RATE] = "9"
    ended.tools.listed.append(ListedMove("clicks", 0, (5, 6, 1), (1,), (6,)))
    ended.tools.foreign["broker", "6", RATE] = "8"
    ended.disturbed.covered = {("broker", "6", RATE): "8", ("broker", "4", RATE): "8"}
    ended.disturbed.moves["clicks", 0] = datetime.now(UTC) + timedelta(hours=1)
    assert ended.judged() == []


@pytest.mark.parametrize(
    ("arrived_s", "left_s", "problems"),
    [(-1, 2, 0), (1, 2, 0), (-5, -1, 1), (60, 70, 1)],
    ids=["before the step", "in the step", "gone before it", "arrived later"],
)
def test_done_and_then_moved_by_others__was_there_when_it_was_said(
    ended: Ended, arrived_s: float, left_s: float, problems: int
) -> None:
    row = Move.objects.get(topic="clicks")
    assert row.since is not None
    moments = [row.since + timedelta(seconds=seconds) for seconds in (arrived_s, left_s)]
    ended.tools.log.stood.append(Stood(row.topic_id, row.partition, tuple(row.target), moments[0]))
    ended.tools.log.begun.append(Begun(row.topic_id, row.partition, frozenset({9}), moments[1]))
    ended.disturbed.begun["clicks", 0] = 1
    _elsewhere(ended)
    assert len([problem for problem in ended.judged() if "clicks-0 is done" in problem]) == problems
