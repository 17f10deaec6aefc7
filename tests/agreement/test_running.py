"""Runs of approved requests on real Kafka: what they leave behind is what Kafka's own tools say."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from kafkadash.changes.models import RequestState
from kafkadash.domain import run_measure, run_stuck
from kafkadash.domain.row_reasons import BrokerAway, TopicCreatedAgain
from kafkadash.domain.run_progress import Mark
from kafkadash.domain.stuck_reasons import DestinationAway
from kafkadash.playground.cluster import Playground
from kafkadash.playground.load import Topic, load
from kafkadash.reassign.models import Outcome
from tests.agreement.conftest import TopicMaker
from tests.agreement.runs import SLOW, Requests, braked, broker_hung
from tests.agreement.tools import Tools
from tests.waiting import wait_until

REORDER_S = 30.0


def test_a_plan_that_only_reorders__is_done_though_kafka_never_lists_it(
    requests: Requests, make_topic: TopicMaker, tools: Tools
) -> None:
    topic = make_topic([[1, 2, 3], [2, 3, 1]], mib=1)
    run = requests.approved({(topic, 0): [3, 2, 1], (topic, 1): [3, 1, 2]}).start()
    run.until_it_is(RequestState.DONE, REORDER_S)
    assert run.execution.outcome == Outcome.CLEAN
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
    assert run.execution.outcome == Outcome.CLEAN
    file = tmp_path / "plan.json"
    file.write_bytes(alices_client.get(f"/changes/{run.change.pk}/kafka.json").content)
    assert sorted(tools.verify(file)) == [f"Reassignment of partition {topic}-{n} is completed." for n in (0, 1)]
    assert tools.throttles(topic, 1, 2, 3) == before


def test_a_cancelled_run__gives_back_replicas_in_their_order_and_takes_its_throttles_away(
    requests: Requests, make_topic: TopicMaker, tools: Tools
) -> None:
    topic = make_topic([[2, 1]], mib=8)
    before = tools.throttles(topic, 1, 2, 3)
    run = requests.approved({(topic, 0): [3, 1]}).start()
    run.until_moving(topic)
    run.cancel("Consumers complain.")
    assert tools.topics("--topic", topic)[topic].partitions[0].replicas == (2, 1)
    assert tools.moves() == []
    assert tools.throttles(topic, 1, 2, 3) == before


def test_a_destination_that_is_stopped__before_it_blocks_with_a_sentence__during_it_is_stuck_with_the_cause(
    requests: Requests,
    make_topic: TopicMaker,
    tools: Tools,
    playground: Playground,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
) -> None:
    settings.KAFKA_DEADLINE = 2.0  # a broker that hangs is not waited for long
    for module in (run_stuck, run_measure):
        for name, seconds in (("SLOW_AFTER_S", 1.0), ("STUCK_AFTER_S", 2.0)):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, seconds)
    topic = make_topic([[1, 2]], mib=8)
    run = requests.approved({(topic, 0): [1, 3]})
    with broker_hung(playground, tools, 3):
        run.start().step()
        assert run.state == RequestState.QUEUED
        assert run.execution.blocked == BrokerAway(3)
        assert tools.moves() == []
        assert tools.throttles(topic, 1, 2) == {}

    def moves() -> bool:
        requests.read_all()  # what the broker that is back holds gets in sync by and by
        return run.state == RequestState.EXECUTING and run.row(topic).state == "moving"

    run.until(moves, f"{topic} moves")
    assert run.execution.blocked_code == ""
    with broker_hung(playground, tools, 3):
        run.until(lambda: run.mark(topic) is Mark.STUCK, "it is stuck")
        now = run.figures(topic)
        assert now is not None
        assert now.why == DestinationAway(3)
    run.raise_throttle("1000", "It has to catch up.")
    run.until_it_is(RequestState.DONE, 90)
    assert tools.topics("--topic", topic)[topic].partitions[0].replicas == (1, 3)
    assert tools.throttles(topic, 1, 2, 3) == {}


def test_a_topic_deleted_and_made_again_while_it_moves__ends_its_rows_and_nothing_else(
    requests: Requests, make_topic: TopicMaker, tools: Tools, playground: Playground
) -> None:
    topic, other = make_topic([[1, 2]], mib=8), make_topic([[1, 2]], mib=2)
    run = requests.approved({(topic, 0): [1, 3], (other, 0): [1, 3]}).start()
    run.until_moving(topic)
    tools.run("topics", "--delete", "--topic", topic)
    wait_until(lambda: topic not in tools.topics(), "it is deleted", 30)
    load(playground.bootstrap, [Topic(topic, placement=[[1, 2]])])
    run.until(lambda: run.row(topic).state == "topic_deleted", "its row ends")
    assert run.row(topic).reason == TopicCreatedAgain(topic)
    run.raise_throttle("1000", "The other one may finish.")
    run.until_it_is(RequestState.DONE)
    assert run.execution.outcome == Outcome.EXCEPTIONS
    assert run.row(other).state == "done"
    assert tools.topics("--topic", topic)[topic].partitions[0].replicas == (1, 2)
    assert tools.throttles(topic, 1, 2, 3) == {}
