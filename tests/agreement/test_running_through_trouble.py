"""Runs on real Kafka whose rows others cancel or retarget, whose brokers die, and whose controllers do not answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.domain.row_reasons import CancelledByOthers
from kafkadash.domain.run_reasons import QuorumSilent
from kafkadash.kafka.changing import Changed
from kafkadash.kafka.port import TopicPartition
from kafkadash.kafka.wire_client import WireClient
from kafkadash.playground.cluster import Playground
from kafkadash.reassign.models import Outcome
from kafkadash.reassign.run.broker_absences import brokers_away
from tests.agreement.conftest import Mover, TopicMaker
from tests.agreement.runs import SLOW, Requests, braked, broker_hung
from tests.agreement.tools import Tools
from tests.frozen_nodes import freeze_nodes, thaw_nodes
from tests.waiting import wait_until

FOLLOWER_RATE = "follower.replication.throttled.rate"
WATCHED_S = 120.0
"""What an answer that was lost may have left behind is watched for 75 s before a run calls itself done (ADR 10)."""


def test_a_move_that_somebody_else_cancels__ends_and_has_its_order_again(
    requests: Requests, make_topic: TopicMaker, tools: Tools, tmp_path: Path
) -> None:
    """Kafka's own --cancel takes our throttles away too, and does not restore the order of replicas."""
    topic = make_topic([[2, 1]], mib=8)
    run = requests.approved({(topic, 0): [1, 3]}).start()
    run.until_moving(topic)
    file = _plan(tmp_path, topic, [1, 3])

    tools.run("reassign", "--reassignment-json-file", str(file), "--cancel")
    run.until_it_is(RequestState.DONE)

    row = run.row(topic)
    assert (row.state, row.reason) == ("cancelled", CancelledByOthers())
    assert run.execution.outcome == Outcome.EXCEPTIONS
    assert tools.topics("--topic", topic)[topic].partitions[0].replicas == (2, 1)
    assert tools.throttles(topic, 1, 2, 3) == {}


def test_a_move_that_somebody_else_retargets_and_cancels__stays_as_they_left_it(
    requests: Requests, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    """The cancel of a retargeted move reverts to what was there and what had been added first: a larger set."""
    topic = make_topic([[1]], mib=8)
    run = requests.approved({(topic, 0): [2]}).start()
    run.until_moving(topic)
    mover.start(topic, [3], throttle=SLOW, beside=True)
    run.until(lambda: run.row(topic).state == "superseded", "the row is superseded")

    mover.cancel(topic)
    run.until_it_is(RequestState.DONE)

    assert set(tools.topics("--topic", topic)[topic].partitions[0].replicas) == {1, 2}
    assert run.row(topic).state == "superseded"
    assert run.execution.report["meanwhile"][0] == f"Others moved 1 partition: {topic}-0."
    assert run.execution.outcome == Outcome.EXCEPTIONS
    assert tools.throttles(topic, 1, 2, 3) == {}


def test_a_submission_without_an_answer__is_carried_out_late_and_taken_for_what_it_is(
    requests: Requests,
    make_topic: TopicMaker,
    tools: Tools,
    playground: Playground,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker keeps what it cannot forward: the controllers find it when they have a majority again."""
    topic = make_topic([[1, 2]], mib=4)
    run = requests.approved({(topic, 0): [1, 3]}).start()
    answers: list[Changed[TopicPartition]] = []
    sent = WireClient.alter_reassignments

    with monkeypatch.context() as patch, without_majority(playground, tools) as freeze:

        def into_the_dark(client: WireClient, *args: object, **options: object) -> Changed[TopicPartition]:
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
        assert QuorumSilent() in run.execution.held_reasons

    wait_until(lambda: [move.topic for move in tools.moves()] == [topic], "the late request is carried out", 60)
    run.until(lambda: run.row(topic).state == "moving", "it is seen")
    assert run.row(topic).attempt == 1
    run.raise_throttle("1000")
    run.until_it_is(RequestState.DONE, WATCHED_S)
    assert run.execution.outcome == Outcome.CLEAN
    assert tools.topics("--topic", topic)[topic].partitions[0].replicas == (1, 3)
    assert tools.throttles(topic, 1, 2, 3) == {}


@pytest.mark.usefixtures("late_calls_come_soon")
def test_a_broker_that_dies__has_its_rate_taken_away_through_the_controllers(
    requests: Requests, cluster: Cluster, make_topic: TopicMaker, tools: Tools, playground: Playground
) -> None:
    listeners = [f"127.0.0.1:{node.controller_port}" for node in playground.cluster.controllers]
    Cluster.objects.filter(pk=cluster.pk).update(controller_servers=",".join(listeners), connection_version=2)
    cluster.refresh_from_db()
    topic = make_topic([[1, 2]], mib=8)
    run = requests.approved({(topic, 0): [1, 3]}).start()
    run.until_moving(topic)
    braked(tools, 3, FOLLOWER_RATE, SLOW)

    with broker_hung(playground, tools, 3):
        run.step()
        assert brokers_away(run.execution.absences).keys() == {3}
        run.cancel("Its destination died.")
        run.until(lambda: not run.uncleared(), "its rate is taken away")
    wait_until(lambda: tools.throttles(topic, 1, 2, 3) == {}, "the broker has heard of it")
    assert run.row(topic).state == "cancelled"
    [away] = [said for said in run.execution.report["meanwhile"] if "Broker 3 was away from" in said]
    assert away.endswith("on, and was not back when it ended.")


def test_a_new_replica__lies_in_the_directory_that_the_plan_names(
    requests: Requests, make_topic: TopicMaker, tools: Tools, playground: Playground
) -> None:
    topic = make_topic([[1, 2], [1, 2]], mib=1)
    paths = sorted(tools.sizes(topic)[3]) or sorted(tools.all_sizes([3])[3])
    assert len(paths) == 2
    directories = {(topic, 0): ["any", paths[1]], (topic, 1): ["any", paths[0]]}
    run = requests.approved({(topic, 0): [1, 3], (topic, 1): [1, 3]}, throttle=50_000_000, directories=directories)
    run.start().until_it_is(RequestState.DONE)
    assert run.execution.outcome == Outcome.CLEAN
    lies = tools.sizes(topic)[3]
    assert {path: set(partitions) for path, partitions in lies.items() if partitions} == {paths[1]: {0}, paths[0]: {1}}


@contextmanager
def without_majority(playground: Playground, tools: Tools) -> Iterator[Callable[[], None]]:
    """Gives what stops the leading controller and one more; both go on at the end."""
    leader = tools.quorum_status().leader_id
    voters = [node.node_id for node in playground.cluster.controllers]
    chosen = {leader, next(voter for voter in voters if voter != leader)}
    try:
        yield lambda: freeze_nodes(playground, *chosen)
    finally:
        thaw_nodes(playground, *chosen)


def _plan(folder: Path, topic: str, replicas: Sequence[int]) -> Path:
    file = folder / f"{topic}.json"
    entry = {"topic": topic, "partition": 0, "replicas": list(replicas)}
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
    return file
