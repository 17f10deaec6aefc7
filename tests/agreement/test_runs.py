"""A change that kafkadash runs by itself on real Kafka; Kafka's own tools see what it did, and find nothing left.

Runs of approved requests on real Kafka: what they leave behind is what Kafka's own tools say.

What people ask of a run on real Kafka, rightly and wrongly.

The life of a change beside real Kafka: what Kafka's own tool changes under an approved request turns it stale.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Event

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from pytest_django import Settings

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import services
from kafkadash.changes import services as drafting
from kafkadash.changes import services as running
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import RunOptions
from kafkadash.changes.recheck import recheck
from kafkadash.changes.services import start_key
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import coded
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.load import LoadTopic, load_topics, produce_steadily
from kafkadash.execution.engine.reasons import (
    BrokerAway,
    BrokerNotRegistered,
    DestinationAway,
    DestinationUnregistered,
    TopicCreatedAgain,
    TopicDeleted,
)
from kafkadash.execution.models import Execution, Move, RunOutcome, ThrottleEntry
from kafkadash.execution.progress import measure as run_measure
from kafkadash.execution.progress import stuck as run_stuck
from kafkadash.execution.progress.figures import RowMark
from kafkadash.execution.worker.measure import inbound_of, stored_progress
from kafkadash.execution.worker.step import step_once
from kafkadash.jobs.models import JobState
from kafkadash.jobs.runner import attempt_job
from kafkadash.kafka.throttles import FOLLOWER_LIST, LEADER_LIST
from kafkadash.monitoring.models import CollectorKind
from kafkadash.planning import proposal as uploads
from kafkadash.planning.problem_codes import CheckErrorCode
from kafkadash.planning.proposal import EXPLICIT, PlanInput, options_json, start_planning
from kafkadash.planning.solver.plan import plan
from kafkadash.planning.solver.request import DRAIN, PlanRequest
from kafkadash.planning.stored_checks import plan_rows
from kafkadash.planning.stored_topology import load_topology
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.runs import HELD_MIB, SLOW, Requests, braked, broker_hung
from tests.agreement.tools import Tools
from tests.kafka_releases import has_quorum, tells_fenced
from tests.pages.conftest import Page
from tests.planning.plans import planned
from tests.waiting import wait_until

READ = (
    CollectorKind.METADATA,
    CollectorKind.REASSIGNMENTS,
    CollectorKind.QUORUM,
    CollectorKind.LOG_DIRS,
    CollectorKind.CONFIGS,
)
RATE = 2_000_000
MOST_S = 300
READ_AGAIN_S = 10  # as often as collectors do; between, the steps are as many as a busy machine allows


def test_a_drain__runs_throttled_to_its_end(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, operator: User
) -> None:
    topic = make_topic([[3, 1], [1, 3], [2, 3], [1, 2]], mib=48)
    for kind in READ:
        refresh(kind)
    change = _queued(cluster, topic, operator)
    before = _configs(tools)
    percents: list[float] = []
    meanwhile: dict[str, tuple[str, str]] = {}
    until, read_at = time.monotonic() + MOST_S, time.monotonic()
    while _state(change) not in (RequestState.DONE, RequestState.FAILED):
        assert time.monotonic() < until, (_state(change), Execution.objects.get().error, _rows())
        if time.monotonic() > read_at + READ_AGAIN_S:
            read_at = time.monotonic()
            for kind in (
                CollectorKind.METADATA,
                CollectorKind.REASSIGNMENTS,
                CollectorKind.QUORUM,
                CollectorKind.LOG_DIRS,
            ):
                refresh(kind)
        execution = Execution.objects.get(request=change)
        Execution.objects.filter(pk=execution.pk).update(next_at=Now())
        step_once(execution.pk)
        shown = stored_progress(Execution.objects.get(pk=execution.pk))
        if shown is not None and shown.percent is not None:
            percents.append(shown.percent)
        if not meanwhile and Move.objects.filter(state="moving").exists():
            meanwhile = tools.dynamic_configs("topics").get(topic, {})

    run = Execution.objects.get(request=change)
    assert _rows() == dict.fromkeys((0, 1, 2), ("done", ""))
    assert (run.outcome, run.active, run.error) == (RunOutcome.CLEAN, False, None)
    placed = tools.topics()[topic]
    assert [p.replicas for _, p in sorted(placed.partitions.items())] == [(2, 1), (1, 2), (2, 1), (1, 2)]
    assert {LEADER_LIST, FOLLOWER_LIST} <= meanwhile.keys()
    assert _configs(tools) == before
    assert tools.moves() == []
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
    assert percents == sorted(percents)
    assert sum(5 < percent < 95 for percent in percents) >= 3
    took = (run.ended_at - run.started_at).total_seconds()  # type: ignore[operator]
    assert took > 5, "it was throttled"


def _queued(cluster: Cluster, topic: str, operator: User) -> ChangeRequest:
    topology = load_topology(Cluster.objects.get(pk=cluster.pk), [topic]).topology
    found = plan(topology, PlanRequest(DRAIN, (3,), disk_limit=0.99))
    assert found.problems == ()
    change = planned(
        cluster, topology, found.rows, options=RunOptions(RATE, RATE, 10 * RATE, per_broker=2), approvals_needed=0
    )
    ChangeRequest.objects.filter(pk=change.pk).update(
        state=RequestState.APPROVED,
        expires_at=datetime.now(UTC) + timedelta(hours=1),
        input={**change.input, "disk_limit": 0.99},
    )
    return running.start(change, operator, "Its disk fails.")


def _state(change: ChangeRequest) -> str:
    return ChangeRequest.objects.values_list("state", flat=True).get(pk=change.pk)


def _configs(tools: Tools) -> object:
    return {kind: tools.dynamic_configs(kind) for kind in ("topics", "brokers")}


def _rows() -> dict[int, tuple[str, str]]:
    return {move.partition: (move.state, move.reason_code) for move in Move.objects.all()}


REORDER_S = 30.0


def test_a_plan_that_only_reorders__is_done_though_kafka_never_lists_it(
    requests: Requests, make_topic: TopicMaker, tools: Tools
) -> None:
    topic = make_topic([[1, 2, 3], [2, 3, 1]], mib=1)
    run = requests.approved({(topic, 0): [3, 2, 1], (topic, 1): [3, 1, 2]}).start()
    run.until_it_is(RequestState.DONE, REORDER_S)
    assert run.execution.outcome == RunOutcome.CLEAN
    described = tools.topics("--topic", topic)[topic].partitions
    assert [(p.replicas, p.leader) for _, p in sorted(described.items())] == [((3, 2, 1), 3), ((3, 1, 2), 3)]
    assert tools.throttles(topic, 1, 2, 3) == {}


def test_a_run__steered_to_its_end__is_what_kafkas_tool_calls_completed_and_leaves_no_throttle(
    requests: Requests, make_topic: TopicMaker, tools: Tools, tmp_path: Path, alices_client: Client
) -> None:
    topic = make_topic([[1, 2], [2, 1]], mib=6)
    before = tools.throttles(topic, 1, 2, 3)
    run = requests.approved({(topic, 0): [1, 3], (topic, 1): [3, 2]}, elect=False).start()
    run.until_moving(topic)
    braked(tools, 3, "follower.replication.throttled.rate", SLOW)
    run.raise_throttle("1000")
    run.until_it_is(RequestState.DONE)
    assert run.execution.outcome == RunOutcome.CLEAN
    file = tmp_path / "plan.json"
    file.write_bytes(alices_client.get(f"/changes/{run.change.pk}/kafka.json").content)
    assert sorted(tools.verify(file)) == [f"Reassignment of partition {topic}-{n} is completed." for n in (0, 1)]
    assert tools.throttles(topic, 1, 2, 3) == before


def test_a_cancelled_run__gives_back_replicas_in_their_order_and_takes_its_throttles_away(
    requests: Requests, make_topic: TopicMaker, tools: Tools
) -> None:
    topic = make_topic([[2, 1]], mib=HELD_MIB)
    before = tools.throttles(topic, 1, 2, 3)
    run = requests.approved({(topic, 0): [3, 1]}).start()
    run.until_moving(topic)
    run.cancel("Consumers complain.")
    assert tools.topics("--topic", topic)[topic].partitions[0].replicas == (2, 1)
    assert tools.moves() == []
    assert tools.throttles(topic, 1, 2, 3) == before


@pytest.mark.long
def test_a_destination_that_is_stopped__before_it_blocks_with_a_sentence__during_it_is_stuck_with_the_cause(
    requests: Requests,
    make_topic: TopicMaker,
    tools: Tools,
    playground: KafkaPlayground,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
) -> None:
    settings.KAFKA_DEADLINE = 2.0  # a broker that hangs is not waited for long
    for module in (run_stuck, run_measure):
        for name, seconds in (("SLOW_AFTER_S", 1.0), ("STUCK_AFTER_S", 2.0)):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, seconds)
    topic = make_topic([[1, 2]], mib=HELD_MIB)
    run = requests.approved({(topic, 0): [1, 3]})
    with broker_hung(playground, tools, 3):
        run.start().step()
        assert run.state == RequestState.QUEUED
        assert run.execution.blocked == (BrokerAway(3) if tells_fenced() else BrokerNotRegistered(3))
        assert tools.moves() == []
        assert tools.throttles(topic, 1, 2) == {}

    def moves() -> bool:
        requests.read_all()  # what the broker that is back holds gets in sync by and by
        return run.state == RequestState.EXECUTING and run.row(topic).state == "moving"

    run.until(moves, f"{topic} moves")
    assert run.execution.blocked_code == ""
    with broker_hung(playground, tools, 3):
        run.until(lambda: run.mark(topic) is RowMark.STUCK, "it is stuck")
        now = run.figures(topic)
        assert now is not None
        assert now.why == (DestinationAway(3) if tells_fenced() else DestinationUnregistered(3))
    run.raise_throttle("1000", "It has to catch up.")
    run.until_it_is(RequestState.DONE, 90)
    assert tools.topics("--topic", topic)[topic].partitions[0].replicas == (1, 3)
    assert tools.throttles(topic, 1, 2, 3) == {}
    wait_until(tools.in_sync, "every replica is in sync again", 60)


@pytest.mark.long
def test_a_topic_deleted_and_made_again_while_it_moves__ends_its_rows_and_nothing_else(
    requests: Requests, make_topic: TopicMaker, tools: Tools, playground: KafkaPlayground
) -> None:
    topic, other = make_topic([[1, 2]], mib=HELD_MIB), make_topic([[1, 2]], mib=2)
    run = requests.approved({(topic, 0): [1, 3], (other, 0): [1, 3]}).start()
    run.until_moving(topic)
    tools.run("topics", "--delete", "--topic", topic)
    wait_until(lambda: tools.replicas(topic) == (), "it is deleted", 30)

    def is_made_again() -> bool:
        """Beside ZooKeeper the name stays in use until the controller has removed the topic that had it."""
        load_topics(playground.bootstrap, [LoadTopic(topic, placement=[[1, 2]])])
        return tools.replicas(topic) == (1, 2)

    wait_until(is_made_again, "a topic has its name", 60)
    run.until(lambda: run.row(topic).state == "topic_deleted", "its row ends")
    # Beside ZooKeeper a broker may not yet know the new one.
    assert run.row(topic).reason in (TopicCreatedAgain(topic), *(() if has_quorum() else (TopicDeleted(topic),)))
    run.raise_throttle("1000", "The other one may finish.")
    run.until_it_is(RequestState.DONE)
    assert run.execution.outcome == RunOutcome.EXCEPTIONS
    assert run.row(other).state == "done"
    wait_until(lambda: tools.replicas(topic) == (1, 2), "the new one is known", 30)
    assert tools.throttles(topic, 1, 2, 3) == {}


MB = 1_000_000
RATE_KEY = "leader.replication.throttled.rate"
# What is typed for MB/s → what is said to it.
NONSENSE = {
    "0": "A throttle of 0 would stop all copies.",
    "-5": "Enter a rate above 0 MB/s",
    "fast": "“fast” is not a number.",
    "": "Enter a rate in MB/s",
    "0.01": "0.01 MB/s (10,000 bytes/s) is less than 1 MB/s. Confirm to set it anyway.",
    "2000": "2000 MB/s (2,000,000,000 bytes/s) needs a new approval",
}


@pytest.mark.django_db(transaction=True)
def test_start__pressed_twice_at_once__starts_it_once(
    requests: Requests, make_topic: TopicMaker, client_of: Callable[[User], Client]
) -> None:
    topic = make_topic([[1, 2]], mib=1)
    run = requests.approved({(topic, 0): [2, 1]})
    clients, together = [client_of(requests.alice) for _ in range(2)], Barrier(2)
    form = {"key": start_key(run.change, requests.alice), "reason": "Now."}

    def press(client: Client) -> int:
        together.wait(10)
        try:
            return int(client.post(f"/changes/{run.change.pk}/start/", form).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(press, clients)) == [302, 302]
    assert Execution.objects.count() == 1
    assert len(run.said("started")) == 1
    run.until_it_is(RequestState.DONE)


def test_throttles_that_cannot_be_meant__get_a_sentence_and_change_nothing(
    requests: Requests, make_topic: TopicMaker, tools: Tools, alices_client: Client
) -> None:
    topic = make_topic([[1]], mib=HELD_MIB)
    run = requests.approved({(topic, 0): [2]}).start()
    run.until_moving(topic)
    braked(tools, 1, RATE_KEY, SLOW)
    for typed, said in NONSENSE.items():
        address = f"/changes/{run.change.pk}/run/throttle/"
        page = alices_client.post(address, {"rate": typed, "reason": "It is night."}, follow=True)
        assert said in Page(page.content.decode()).text, typed
        run.step()
        assert tools.throttles(1)[1, RATE_KEY] == str(SLOW), typed
    run.cancel("Enough.")


def test_a_throttle_below_what_producers_write__is_asked_about_and_not_set(
    requests: Requests, make_topic: TopicMaker, tools: Tools, playground: KafkaPlayground, alices_client: Client
) -> None:
    topic = make_topic([[1]], mib=64)
    run = requests.approved({(topic, 0): [2]}, throttle=3 * MB).start()
    enough = Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(produce_steadily, playground.bootstrap, [topic], 1.5 * MB, enough)
        try:
            run.until_moving(topic)
            braked(tools, 1, RATE_KEY, 3 * MB)
            run.until(lambda: (inbound_of(run.execution)[0] or 0) > MB, "what producers write is known")
            address = f"/changes/{run.change.pk}/run/throttle/"
            page = alices_client.post(address, {"rate": "1", "reason": "Consumers complain."}, follow=True)
            assert "At that rate the run could never finish." in Page(page.content.decode()).text
            run.step()
            assert tools.throttles(1)[1, RATE_KEY] == str(3 * MB)
        finally:
            enough.set()
    run.cancel("Enough.")


OPTIONS = RunOptions(throttle=60_000_000, throttle_min=20_000_000, throttle_max=80_000_000)


def test_an_approved_request__moved_under_it_by_kafkas_tool__turns_stale_and_its_refresh_is_approved_anew(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    mover: Mover,
    tools: Tools,
    make_user: Callable[..., User],
) -> None:
    alice, bob = make_user("alice", Role.OPERATOR), make_user("bob", Role.APPROVER)
    topic = make_topic([[1, 2], [2, 1]], mib=1)
    for kind in READ:
        refresh(kind)
    change = run_planning(draft(cluster, alice, topic), alice)
    change = services.submit(change, alice, why="Broker 3 is new.", version=change.version)
    assert change.approvals_needed is not None
    seen = services.approve(change, bob, change.digest, "as discussed")
    assert seen.state == ChangeState.APPROVED, "one is enough for so little"
    recheck(cluster.pk, datetime.now(UTC))
    assert ChangeRequest.objects.get(pk=change.pk).state == ChangeState.APPROVED, "nothing changed yet"

    mover.start(topic, [2, 3], throttle=1_000_000_000)
    wait_until(lambda: tools.replicas(topic) == (2, 3), "the move is over", 30)
    for kind in READ:
        refresh(kind)
    recheck(cluster.pk, datetime.now(UTC))
    stale = ChangeRequest.objects.get(pk=change.pk)
    assert stale.state == ChangeState.STALE
    told = coded(CheckErrorCode.OTHER_THAN_PLANNED, row=f"{topic}-0", replicas=(2, 3), expected=(1, 2))
    assert stale.stale_reasons == [told.as_json()]
    assert AuditEvent.objects.get(action="change.turned_stale").reason_code == told.code

    stale = services.start_refresh(stale, alice)
    run(stale)
    again = ChangeRequest.objects.get(pk=change.pk)
    assert (again.state, again.round, again.stale_reasons) == (ChangeState.PROPOSED, 2, [])
    assert again.digest != seen.digest
    assert {row.partition: row.current for row in plan_rows(str(again.artifact_id))} == {0: (2, 3), 1: (2, 1)}
    assert again.reviews.get().void_by == "alice"
    assert services.approve(again, bob, again.digest).state == ChangeState.APPROVED


def draft(cluster: Cluster, user: User, topic: str) -> ChangeRequest:
    """Both partitions of the topic to brokers 1 and 3, as somebody brought it in Kafka's JSON."""
    rows = ",".join(f'{{"topic":"{topic}","partition":{n},"replicas":[1,3]}}' for n in (0, 1))
    brought = uploads.from_text(f'{{"version":1,"partitions":[{rows}]}}')
    asked = PlanInput(EXPLICIT, upload=brought.sha256, disk_limit=0.99)
    change = drafting.create_draft(
        cluster,
        "reassignment",
        user,
        title="To 1 and 3",
        input=pack_dataclass(asked),
        options=options_json(OPTIONS, asked),
    )
    uploads.store_upload(change, brought)
    return change


def run_planning(change: ChangeRequest, user: User) -> ChangeRequest:
    start_planning(change, user, change.version)
    return run(ChangeRequest.objects.get(pk=change.pk))


def run(change: ChangeRequest) -> ChangeRequest:
    """Its job, as a worker does."""
    assert change.job is not None
    attempt_job(change.job.pk)
    change.job.refresh_from_db()
    assert (change.job.state, change.job.error) == (JobState.DONE, None), change.job.result
    return ChangeRequest.objects.get(pk=change.pk)
