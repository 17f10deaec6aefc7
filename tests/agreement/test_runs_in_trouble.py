"""Runs while somebody else moves and throttles the same: nothing of theirs is lost, and each thing is said.

Runs on real Kafka whose rows others cancel or retarget, whose brokers die, and whose controllers do not answer.

Each fail point once on real Kafka: whoever steps next finds out what became of it, and ends the run right.

The death is an exception that nobody catches instead of SIGKILL, which `make proof` sends: what is stored and what
Kafka has is the same. What a process had in memory is forgotten.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from kafkadash.accounts.models import AuditEvent
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, PlainReason, coded
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.execution import commands as orders
from kafkadash.execution.command_answers import OrderAnswerCode
from kafkadash.execution.engine import admission as executor_look
from kafkadash.execution.engine import state as executor_state
from kafkadash.execution.engine import step as executor
from kafkadash.execution.engine import throttle_ledger as ledger
from kafkadash.execution.engine.reasons import MovedByOthers, ReassignedByOthers, RowReasonCode, RunReasonCode
from kafkadash.execution.engine.state import Key
from kafkadash.execution.messages import ReportNoteCode
from kafkadash.execution.models import Move, Order, OrderType, RunOutcome, ThrottleEntry
from kafkadash.execution.worker import fail_points, moves
from kafkadash.execution.worker import step as stepping
from kafkadash.execution.worker.broker_absences import brokers_away
from kafkadash.execution.worker.fail_points import POINTS, ArmedPoint
from kafkadash.execution.worker.step import step_once
from kafkadash.findings.models import Finding
from kafkadash.findings.services import judge
from kafkadash.kafka.api import ItemChanged, TopicPartition
from kafkadash.kafka.mutations import WireClient
from kafkadash.monitoring.models import CollectorKind
from kafkadash.notifications.models import NotificationEvent
from kafkadash.planning.errors import ReassignmentErrorCode
from tests.agreement import runs
from tests.agreement.conftest import Mover, TopicMaker
from tests.agreement.runs import FAST, HELD_MIB, SLOW, Requests, Run, braked, broker_hung, broker_killed
from tests.agreement.tools import DescribedPartition, Tools
from tests.factories import ThrottleFactory
from tests.frozen_nodes import freeze_nodes, thaw_nodes
from tests.kafka_configs import alter
from tests.kafka_releases import has_quorum
from tests.pages.conftest import Page
from tests.waiting import wait_until

# What a retarget had begun to add is no adding replica any more: cancelled, it stays (KIP-455). With ZooKeeper the
# controller remembers what was there first.
LEFT_BY_A_RETARGET = {1, 2} if has_quorum() else {1}
LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"


def test_a_move_of_somebody_else__before_the_start__makes_it_stale_with_a_sentence(
    requests: Requests, make_topic: TopicMaker, mover: Mover
) -> None:
    topic = make_topic([[1, 2]], mib=HELD_MIB)
    run = requests.approved({(topic, 0): [1, 3]})
    mover.start(topic, [3, 2], throttle=SLOW)
    run.start()
    run.until_it_is(RequestState.STALE)
    run.change.refresh_from_db()
    why = coded(ReassignmentErrorCode.ROW_NOT_AS_APPROVED, row=f"{topic}-0", why=ReassignedByOthers((3, 2)))
    assert run.change.stale_reasons == [why.as_json()]


@pytest.mark.long
def test_a_retarget_by_somebody_else__of_a_row_in_flight__supersedes_it_and_is_not_fought__nor_is_its_cancel(
    requests: Requests, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[1]], mib=HELD_MIB)
    run = requests.approved({(topic, 0): [2]}).start()
    run.until_moving(topic)
    mover.start(topic, [3], throttle=SLOW, beside=True)
    run.until(lambda: run.row(topic).state == "superseded", "the row is superseded")
    assert run.row(topic).reason == MovedByOthers((3,))
    run.cancel("Somebody else is at it.")
    [listed] = [move for move in tools.moves() if move.topic == topic]
    assert listed.adding == (3,), "their move goes on"
    mover.cancel(topic)
    wait_until(lambda: not tools.moves(), "their cancel is done", 30)
    wait_until(lambda: set(tools.replicas(topic)) == LEFT_BY_A_RETARGET, "brokers know what is left", 30)
    assert run.row(topic).state == "superseded"


def test_throttles_of_somebody_else__from_before__are_there_afterwards_as_they_were(
    requests: Requests, make_topic: TopicMaker, tools: Tools, playground: KafkaPlayground
) -> None:
    listed, starred = make_topic([[1]], mib=3), make_topic([[1]], mib=3)
    alter(playground, 1, **{f"{LEADER}.rate": "30000000"})
    alter(playground, 3, **{f"{FOLLOWER}.rate": "7000000"})
    for broker, key, value in (("1", LEADER, "30000000"), ("3", FOLLOWER, "7000000")):  # read long before the run
        ThrottleFactory.create(cluster=requests.cluster, name=broker, key=f"{key}.rate", value=value)
    alter(playground, listed, **{f"{LEADER}.replicas": "0:1,0:3", f"{FOLLOWER}.replicas": "0:3"})
    alter(playground, starred, **{f"{FOLLOWER}.replicas": "*"})
    try:
        wait_until(lambda: len(tools.throttles(listed, starred, 1, 3)) == 5, "brokers know these throttles", 20)
        before = printed_configs(tools, listed, starred)
        run = requests.approved({(listed, 0): [2], (starred, 0): [2]}).start()
        run.until_moving(listed)
        braked(tools, 1, f"{LEADER}.rate", SLOW)
        during = tools.throttles(listed, starred, 1, 3)
        assert during[1, f"{LEADER}.rate"] == str(SLOW)
        assert set(during[listed, f"{FOLLOWER}.replicas"].split(",")) == {"0:3", "0:2"}
        assert during[starred, f"{FOLLOWER}.replicas"] == "*"
        assert {name: value for (owner, name), value in during.items() if owner == 3} == {f"{FOLLOWER}.rate": "7000000"}
        run.raise_throttle("1000")
        run.until_it_is(RequestState.DONE)
        assert run.execution.outcome == RunOutcome.CLEAN
        assert printed_configs(tools, listed, starred) == before
    finally:
        alter(playground, 1, **{f"{LEADER}.rate": None})
        alter(playground, 3, **{f"{FOLLOWER}.rate": None})
        alter(playground, listed, **{f"{LEADER}.replicas": None, f"{FOLLOWER}.replicas": None})
        alter(playground, starred, **{f"{FOLLOWER}.replicas": None})


def printed_configs(tools: Tools, *topics: str) -> object:
    """Return what ``kafka-configs`` tells of the brokers and of these topics."""
    told = tools.dynamic_configs("topics")
    return tools.dynamic_configs("brokers"), {topic: told.get(topic) for topic in topics}


def test_a_throttle_that_somebody_else_changes_meanwhile__stops_adjusting_until_somebody_decides(
    requests: Requests, make_topic: TopicMaker, tools: Tools, playground: KafkaPlayground, alices_client: Client
) -> None:
    topic = make_topic([[1]], mib=32)
    run = requests.approved({(topic, 0): [2]}).start()
    run.until_moving(topic)
    alter(playground, 1, **{f"{LEADER}.rate": "777777"})
    run.until(lambda: run.execution.foreign, "it is found")
    [theirs] = run.execution.foreign
    assert (theirs["value"], theirs["ours"]) == ("777777", str(SLOW))
    page = Page(alices_client.get(f"/changes/{run.change.pk}/run/").content.decode()).text
    for rate in ("0.777777 MB/s (777,777 B/s)", "0.2 MB/s (200,000 B/s)"):
        assert rate in page
    run.raise_throttle("2", "Faster.")
    for _ in range(3):
        run.step()
    assert tools.throttles(1)[1, f"{LEADER}.rate"] == "777777"
    entity = f"{theirs['resource']} {theirs['name']} {theirs['key']}"
    orders.throttle_owner(run.change, run.alice, entity, OrderType.SET_THROTTLE, "They agreed.")
    run.until(lambda: tools.throttles(1)[1, f"{LEADER}.rate"] == "2000000", "ours is set again")
    run.until(lambda: not run.execution.foreign, "it is settled")
    run.raise_throttle("1000")
    run.until_it_is(RequestState.DONE)
    left = tools.throttles(topic, 1, 2, 3)
    alter(playground, 1, **{f"{LEADER}.rate": None})
    assert left == {(1, f"{LEADER}.rate"): "777777"}, "theirs is put back"


def test_kafkas_own_tool__taking_our_throttles_away__is_reported_and_they_are_set_again(
    requests: Requests, make_topic: TopicMaker, tools: Tools, tmp_path: Path
) -> None:
    topic, other = make_topic([[1]], mib=HELD_MIB), make_topic([[3]])
    file = tmp_path / "other.json"
    entry = {"topic": other, "partition": 0, "replicas": [3]}
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
    # What holds the move back while ours are away.
    tools.set_config(None, **{f"{role}.rate": str(SLOW) for role in (LEADER, FOLLOWER)})
    try:
        run = requests.approved({(topic, 0): [2]}).start()
        run.until_moving(topic)
        for broker in (1, 2):
            braked(tools, broker, f"{FOLLOWER}.rate", SLOW)
        ours = tools.throttles(1, 2)
        assert ours == {(broker, f"{role}.rate"): str(SLOW) for broker in (1, 2) for role in (LEADER, FOLLOWER)}
        tools.run("reassign", "--reassignment-json-file", str(file), "--verify")
        run.step()
        assert tools.throttles(1, 2) == ours, "the tool takes nothing away while something moves"
        tools.run("reassign", "--reassignment-json-file", str(file), "--cancel")
        wait_until(lambda: tools.throttles(1, 2) == {}, "each broker has heard that the tool took ours away")
        run.until(lambda: tools.throttles(1, 2) == ours, "they are set again")
        [event] = run.said("throttle_vanished")
        assert "broker 1" in str(event.why)
        run.raise_throttle("1000")
        run.until_it_is(RequestState.DONE)
        assert tools.throttles(1, 2) == {}
        why = event.why
        assert isinstance(why, CodedMessage)
        [told] = [note for note in run.execution.report["meanwhile"] if note["params"].get("found") == why.as_json()]
        assert told["params"]["times"] == 1
    finally:
        tools.delete_config(None, *(f"{role}.rate" for role in (LEADER, FOLLOWER)))


FOLLOWER_RATE = "follower.replication.throttled.rate"
WATCHED_S = 120.0
"""What an answer that was lost may have left behind is watched for 75 s before a run calls itself done (ADR 10)."""

SKEWED_PAIRS = 60
"""Broker 1 leads them all: 120 leaders, more than the internal topics of Kafka can be uneven by."""


@pytest.mark.long
def test_a_move_that_somebody_else_cancels__ends_and_has_its_order_again(
    requests: Requests, make_topic: TopicMaker, tools: Tools, tmp_path: Path
) -> None:
    """Kafka's own --cancel takes our throttles away too, and does not restore the order of replicas."""
    topic = make_topic([[2, 1]], mib=HELD_MIB)
    run = requests.approved({(topic, 0): [1, 3]}).start()
    run.until_moving(topic)
    file = _plan(tmp_path, topic, [1, 3])

    tools.run("reassign", "--reassignment-json-file", str(file), "--cancel")
    run.until_it_is(RequestState.DONE)

    row = run.row(topic)
    assert (row.state, row.reason) == ("cancelled", PlainReason(RowReasonCode.CANCELLED_BY_OTHERS))
    assert run.execution.outcome == RunOutcome.EXCEPTIONS
    assert tools.topics("--topic", topic)[topic].partitions[0].replicas == (2, 1)
    assert tools.throttles(topic, 1, 2, 3) == {}


def test_leader_skew__of_a_broker_whose_replicas_a_run_moves__has_the_run_as_its_cause(
    requests: Requests, make_topic: TopicMaker, tools: Tools
) -> None:
    """Brokers that were away in an earlier test lead their partitions again, so that none leads too few by more."""
    tools.run("leader-election", "--election-type", "preferred", "--all-topic-partitions")
    make_topic([[1, 2], [1, 3]] * SKEWED_PAIRS)
    topic = make_topic([[1, 2]], mib=HELD_MIB)
    run = requests.approved({(topic, 0): [3, 2]}).start()
    run.until_moving(topic)

    def skew() -> Finding:
        for _ in range(2):  # one that may flap opens when two readings show it
            for kind in (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS):
                requests.refresh(kind)
            judge(requests.cluster.pk, timezone.now())
        return Finding.objects.get(cluster=requests.cluster, kind="leader-skew", opened_at__isnull=False)

    explained = skew()
    assert (explained.scope, explained.cause_run) == ("1", run.change.pk)
    assert not NotificationEvent.objects.filter(subject_id=explained.public_id).exists()
    run.cancel("The cause of a finding was seen.")
    assert skew().cause_run is None


@pytest.mark.long
def test_a_move_that_somebody_else_retargets_and_cancels__stays_as_they_left_it(
    requests: Requests, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    """The cancel of a retargeted move reverts to what was there and what had been added first: a larger set."""
    topic = make_topic([[1]], mib=HELD_MIB)
    run = requests.approved({(topic, 0): [2]}).start()
    run.until_moving(topic)
    mover.start(topic, [3], throttle=SLOW, beside=True)
    run.until(lambda: run.row(topic).state == "superseded", "the row is superseded")

    mover.cancel(topic)
    run.until_it_is(RequestState.DONE)

    assert set(tools.topics("--topic", topic)[topic].partitions[0].replicas) == LEFT_BY_A_RETARGET
    assert run.row(topic).state == "superseded"
    moved = coded(ReportNoteCode.OTHERS_MOVED, rows=1, named=f"{topic}-0")
    assert run.execution.report["meanwhile"][0] == moved.as_json()
    assert run.execution.outcome == RunOutcome.EXCEPTIONS
    assert tools.throttles(topic, 1, 2, 3) == {}


@pytest.mark.quorum
@pytest.mark.long
def test_a_submission_without_an_answer__is_carried_out_late_and_taken_for_what_it_is(
    requests: Requests,
    make_topic: TopicMaker,
    tools: Tools,
    playground: KafkaPlayground,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker keeps what it cannot forward: the controllers find it when they have a majority again."""
    topic = make_topic([[1, 2]], mib=24)  # more than slips through before the rate holds
    run = requests.approved({(topic, 0): [1, 3]}).start()
    answers: list[ItemChanged[TopicPartition]] = []
    sent = WireClient.alter_reassignments

    with monkeypatch.context() as patch, without_majority(playground, tools) as freeze:

        def into_the_dark(client: WireClient, *args: object, **options: object) -> ItemChanged[TopicPartition]:
            freeze()
            answers.append(sent(client, *args, **options))  # type: ignore[arg-type]
            return answers[-1]

        patch.setattr(WireClient, "alter_reassignments", into_the_dark)
        run.until(lambda: answers, "it is submitted")
        [answer] = answers
        assert answer.lost.keys() == {TopicPartition(topic, 0)}
        assert run.row(topic).state == "unknown"
        run.step()
        assert len(answers) == 1, "nothing is submitted while no controller answers"
        assert PlainReason(RunReasonCode.QUORUM_SILENT) in run.execution.held_reasons

    # Brokers know what is committed; a controller that is about to resign lists what it may lose again.
    wait_until(lambda: 3 in tools.topics("--topic", topic)[topic].partitions[0].replicas, "it is carried out", 60)
    wait_until_all_follow(tools)
    assert [move.topic for move in tools.moves()] == [topic]
    run.until(lambda: run.row(topic).state == "moving", "it is seen")
    assert run.row(topic).attempt == 1
    run.raise_throttle("1000")
    run.until_it_is(RequestState.DONE, WATCHED_S)
    assert run.execution.outcome == RunOutcome.CLEAN
    assert tools.topics("--topic", topic)[topic].partitions[0].replicas == (1, 3)
    assert tools.throttles(topic, 1, 2, 3) == {}


@pytest.mark.usefixtures("late_calls_come_soon")
def test_a_broker_that_dies__has_its_rate_taken_away_through_the_controllers(
    requests: Requests, cluster: Cluster, make_topic: TopicMaker, tools: Tools, playground: KafkaPlayground
) -> None:
    listeners = [f"127.0.0.1:{node.controller_port}" for node in playground.cluster.controllers]
    Cluster.objects.filter(pk=cluster.pk).update(controller_servers=",".join(listeners), connection_version=2)
    cluster.refresh_from_db()
    topic = make_topic([[1, 2]], mib=HELD_MIB)
    run = requests.approved({(topic, 0): [1, 3]}).start()
    run.until_moving(topic)
    braked(tools, 3, FOLLOWER_RATE, SLOW)

    # With ZooKeeper its rate is taken away in its znode, which a broker reads when it starts.
    away = broker_hung if has_quorum() else broker_killed
    with away(playground, tools, 3):
        run.step()
        assert brokers_away(run.execution.absences).keys() == {3}
        run.cancel("Its destination died.")
        run.until(lambda: not run.uncleared(), "its rate is taken away")
    wait_until(lambda: tools.throttles(topic, 1, 2, 3) == {}, "the broker has heard of it")
    assert run.row(topic).state == "cancelled"
    [away] = [note for note in run.execution.report["meanwhile"] if note["params"].get("broker") == 3]
    assert away["code"] == ReportNoteCode.AWAY_AT_THE_END
    wait_until(tools.in_sync, "every replica is in sync again", 60)


def test_a_new_replica__lies_in_the_directory_that_the_plan_names(
    requests: Requests, make_topic: TopicMaker, tools: Tools, playground: KafkaPlayground
) -> None:
    topic = make_topic([[1, 2], [1, 2]], mib=1)
    paths = sorted(tools.sizes(topic)[3]) or sorted(tools.all_sizes([3])[3])
    assert len(paths) == 2
    directories = {(topic, 0): ["any", paths[1]], (topic, 1): ["any", paths[0]]}
    run = requests.approved({(topic, 0): [1, 3], (topic, 1): [1, 3]}, throttle=50_000_000, directories=directories)
    run.start().until_it_is(RequestState.DONE)
    assert run.execution.outcome == RunOutcome.CLEAN
    lies = tools.sizes(topic)[3]
    assert {path: set(partitions) for path, partitions in lies.items() if partitions} == {paths[1]: {0}, paths[0]: {1}}


@contextmanager
def without_majority(playground: KafkaPlayground, tools: Tools) -> Iterator[Callable[[], None]]:
    """Gives what stops the leading controller and one more; both go on at the end."""
    leader = tools.quorum_status().leader_id
    voters = [node.node_id for node in playground.cluster.controllers]
    chosen = {leader, next(voter for voter in voters if voter != leader)}
    try:
        yield lambda: freeze_nodes(playground, *chosen)
    finally:
        thaw_nodes(playground, *chosen)


def wait_until_all_follow(tools: Tools) -> None:
    """Wait until all nodes caught up with the leading controller.

    A controller that was stopped while it led answers from its old state until it hears of its successor.
    """
    begin_ms = time.time() * 1000
    wait_until(
        lambda: all(row.last_caught_up_ms > begin_ms for row in tools.quorum_replication().values()),
        "all nodes follow the leading controller",
        60,
    )


def _plan(folder: Path, topic: str, replicas: Sequence[int]) -> Path:
    file = folder / f"{topic}.json"
    entry = {"topic": topic, "partition": 0, "replicas": list(replicas)}
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
    return file


IN_A_DRAIN = (
    # No row may lose three requests, else it asks the operator: two rows are killed twice before they are sent.
    *("throttle-set.before-call", "submit.before-call", "submit.after-row"),
    *("throttle-clear.before-call", "throttle-clear.after-call", "throttle-clear.after-row"),
    *("place.before-call", "place.after-call", "place.after-row"),
    *("throttle-set.after-call", "submit.after-call", "throttle-set.after-row"),
    *("election.after-call", "election.before-call", "election.after-row"),
)
IN_A_CANCEL = (
    *("cancel.before-call", "cancel.after-call", "reorder.before-call", "reorder.after-call"),
    *("cancel.after-row", "reorder.after-row"),
)
ROWS = 6
READ_EVERY_S = 20.0
OTHERS_RATE = {"leader_replication_throttled_rate": "300000000"}
OTHERS_LIST = {"leader_replication_throttled_replicas": "9:1"}

Kills = Callable[[tuple[str, ...]], Path]


class Killed(BaseException):
    pass


def dies() -> None:
    raise Killed


@pytest.fixture
def kills(requests: Requests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kills:
    """Arms these points for all steps of the test; returns the file in which the hits stand."""
    # Nothing is late here: whatever was sent has arrived when the next step looks.
    for module in (executor, executor_look, executor_state, ledger):
        for name in ("RETRY", "UNANSWERED"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, timedelta(seconds=1))

    read_at = 0.0

    def step_or_die(execution_id: int) -> None:
        nonlocal read_at
        if time.monotonic() - read_at > READ_EVERY_S:
            requests.read_all()
            read_at = time.monotonic()
        try:
            step_once(execution_id)
        except Killed:
            moves.kept.forget()
            stepping._known_lately.clear()

    def armed(points: tuple[str, ...]) -> Path:
        file = tmp_path / "points"
        file.write_text("\n".join(points), encoding="utf-8")
        monkeypatch.setattr(fail_points, "_armed", ArmedPoint(file, dies))
        monkeypatch.setattr(runs, "step_once", step_or_die)
        return tmp_path / "points.hits"

    return armed


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, int, tuple[int, ...]]]:
    """How often Kafka accepted which target of which partition."""
    found: Counter[tuple[str, int, tuple[int, ...]]] = Counter()
    sent = WireClient.alter_reassignments

    def counted(
        client: WireClient, targets: dict[TopicPartition, tuple[int, ...] | None], **options: object
    ) -> ItemChanged[TopicPartition]:
        answer = sent(client, targets, **options)  # type: ignore[arg-type]
        found.update((item.topic, item.partition, target) for item in answer.done if (target := targets[item]))
        return answer

    monkeypatch.setattr(WireClient, "alter_reassignments", counted)
    return found


def hit(file: Path) -> tuple[str, ...]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return tuple(line.split()[0] for line in lines)


def as_set(tools: Tools, topic: str, expected: Mapping[str, str]) -> dict[tuple[str | int, str], str]:
    """What is set of throttles, as soon as every broker knows of what this test has just had set."""
    names = {name.replace("_", ".") for name in expected}
    wait_until(
        lambda: {name for _, name in tools.throttles(topic, 1, 2, 3)} == names, "what is set is known everywhere", 20
    )
    return tools.throttles(topic, 1, 2, 3)


def first_of(run: Run) -> tuple[str, int]:
    """The row that moves: only half of a topic's does at once."""
    moving = Move.objects.filter(execution__request=run.change, state="moving")
    run.until_it_is(RequestState.EXECUTING)
    run.until(moving.exists, "one moves")
    [row] = moving
    return row.topic, row.partition


def audited(run: Run) -> list[str]:
    events = AuditEvent.objects.filter(object_type="changerequest", object_id=str(run.change.pk)).order_by("id")
    verbs = [action.removeprefix("change.") for action in events.values_list("action", flat=True)]
    return verbs[verbs.index("started") :]


class Scene:
    """A topic on which others have set throttles before its run, and what Kafka was asked for and has afterwards."""

    def __init__(
        self,
        make_topic: TopicMaker,
        tools: Tools,
        playground: KafkaPlayground,
        accepted: Counter[tuple[str, int, tuple[int, ...]]],
    ) -> None:
        self.tools = tools
        self._make_topic, self._playground, self._accepted = make_topic, playground, accepted

    def topic(self, placement: list[list[int]], *, mib: int, broker_1: Mapping[str, str] | None = None) -> list[Key]:
        """Makes it; its rows. ``broker_1``: what others have set there."""
        self.name = self._make_topic(placement, mib=mib)
        rates = broker_1 or {}
        if rates:
            alter(self._playground, 1, **rates)
        for name, value in rates.items():  # as the collector has it, whose time does not come here
            ThrottleFactory.create(cluster=Cluster.objects.get(), name="1", key=name.replace("_", "."), value=value)
        alter(self._playground, self.name, **OTHERS_LIST)
        self._before = as_set(self.tools, self.name, {**rates, **OTHERS_LIST})
        return [(self.name, number) for number in range(len(placement))]

    @property
    def partitions(self) -> list[DescribedPartition]:
        return list(self.tools.topics("--topic", self.name)[self.name].partitions.values())

    def assert_accepted_once(self, rows: list[Key], *targets: tuple[int, ...]) -> None:
        assert self._accepted == Counter({(*row, target): 1 for row in rows for target in targets})

    def assert_nothing_is_left(self) -> None:
        assert self.tools.moves() == []
        assert self.tools.throttles(self.name, 1, 2, 3) == self._before


@pytest.fixture
def scene(
    make_topic: TopicMaker,
    tools: Tools,
    playground: KafkaPlayground,
    accepted: Counter[tuple[str, int, tuple[int, ...]]],
) -> Iterator[Scene]:
    """What others have set on the topic is taken away afterwards: the next test finds a cluster without throttles."""
    scene = Scene(make_topic, tools, playground, accepted)
    yield scene
    alter(playground, scene.name, **dict.fromkeys(OTHERS_LIST))
    wait_until(lambda: tools.throttles(scene.name) == {}, "the topic has no throttles any more", 20)


def test_every_point_has_its_place() -> None:
    assert sorted(IN_A_DRAIN + IN_A_CANCEL) == sorted(POINTS)


def test_a_drain_that_dies_at_every_point__is_done_once_and_leaves_nothing(
    requests: Requests, scene: Scene, kills: Kills
) -> None:
    rows = scene.topic([[1, 2]] * ROWS, mib=1, broker_1=OTHERS_RATE)
    directory = max(scene.tools.all_sizes([3])[3])
    file = kills(IN_A_DRAIN)
    run = requests.approved(
        {row: [3, 1] for row in rows},
        throttle=FAST // 20,
        per_broker=1,
        directories={row: [directory, "any"] for row in rows},
    ).start()

    run.until(lambda: "throttle-set.after-row" in hit(file), "the last row is on its way", 60)
    orders.order_row(run.change, run.alice, *rows[0], OrderType.ELECT, "Its leader is wanted now.")
    run.until_it_is(RequestState.DONE, 60)

    assert hit(file) == IN_A_DRAIN
    scene.assert_accepted_once(rows, (3, 1))
    assert {(p.replicas, p.leader) for p in scene.partitions} == {((3, 1), 3)}
    assert set(scene.tools.sizes(scene.name)[3][directory]) == set(range(ROWS))
    scene.assert_nothing_is_left()
    assert run.execution.outcome == RunOutcome.CLEAN
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
    assert Order.objects.get().answer == PlainReason(OrderAnswerCode.ELECTED)
    assert audited(run) == ["started", "turn_came", "ordered", "rows_ended", "verified"]


@pytest.mark.long
def test_a_cancel_that_dies_at_every_point__gives_everything_back(
    requests: Requests, scene: Scene, kills: Kills
) -> None:
    rows = scene.topic([[2, 1]] * 2, mib=24)
    run = requests.approved({row: [3, 1] for row in rows}, throttle=SLOW // 4).start()
    first = first_of(run)
    file = kills(IN_A_CANCEL)

    orders.order_row(run.change, run.alice, *first, OrderType.CANCEL_ROW, "Its consumers complain.")
    run.until(lambda: run.row(*first).state == "cancelled", "one row is given back")
    assert hit(file) == IN_A_CANCEL[:4]
    assert first_of(run) != first
    run.cancel("All complain.")

    assert hit(file) == IN_A_CANCEL
    scene.assert_accepted_once(rows, (3, 1), (2, 1))
    assert {p.replicas for p in scene.partitions} == {(2, 1)}
    scene.assert_nothing_is_left()
    assert {run.row(*row).state for row in rows} == {"cancelled"}
    assert audited(run) == ["started", "turn_came", "ordered", "cancelled", "cancel_ended"]
