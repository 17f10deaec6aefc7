"""The load generator writes what it says, where it says, and stays within bounds."""

from __future__ import annotations

import re
import threading

import pytest

from kafkadash.embedded.process import ServerError
from kafkadash.playground.cluster import Playground
from kafkadash.playground.load import MIB, SteadyReport, Topic, load, steady
from tests.playground.test_cluster import log_dirs, tool
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("own-playground")


def sizes(playground: Playground, topic: str) -> dict[str, int]:
    """Partition → bytes on broker 1, as Kafka's tool prints them."""
    text = tool(playground, "log-dirs", "--describe", "--broker-list", "1", "--topic-list", topic)
    return {name: int(size) for name, size in re.findall(r'"partition":"([^"]+)","size":(\d+)', text)}


def test_it_produces_the_amount_asked_for_evenly_and_incompressible(whole: Playground) -> None:
    report = load(whole.bootstrap, 2, 4, 3, 8, prefix="amount")
    assert report.topics == report.created == ("amount-1", "amount-2")
    assert report.bytes == 8 * MIB
    for topic in report.topics:
        found = sizes(whole, topic)
        assert len(found) == 4
        for size in found.values():
            assert MIB <= size < 1.02 * MIB


def test_partitions_are_placed_where_the_test_wants_them(whole: Playground) -> None:
    load(whole.bootstrap, [Topic("placed", placement=[(2, 3), (3, 2), (2, 1)])])
    text = tool(whole, "topics", "--describe", "--topic", "placed")
    assert re.findall(r"Leader: (\d+)\s+Replicas: ([\d,]+)", text) == [("2", "2,3"), ("3", "3,2"), ("2", "2,1")]
    on_broker_1 = set().union(*log_dirs(whole)[1].values())
    assert {name for name in on_broker_1 if name.startswith("placed-")} == {"placed-2"}


def test_topics_that_exist_are_kept_and_filled_again_only_when_wanted(whole: Playground) -> None:
    topic = Topic("again", partitions=1, rf=1, fill_bytes=200_000)
    assert load(whole.bootstrap, [topic]).created == ("again",)
    second = load(whole.bootstrap, [topic], only_new=True)
    assert (second.created, second.bytes) == ((), 0)
    assert load(whole.bootstrap, [topic]).bytes == 200_000


def test_every_topic_has_bounds(whole: Playground) -> None:
    load(whole.bootstrap, [Topic("bounded", partitions=2, rf=1, fill_bytes=16 * MIB)])
    text = tool(whole, "configs", "--describe", "--entity-type", "topics", "--entity-name", "bounded")
    config = dict(re.findall(r"^\s+(\S+?)=(\S+) sensitive", text, re.MULTILINE))
    assert int(config["retention.bytes"]) == 12 * MIB
    assert int(config["segment.bytes"]) == 2 * MIB
    assert int(config["retention.ms"]) > 0


def test_a_topic_that_kafka_refuses_is_one_sentence(whole: Playground) -> None:
    with pytest.raises(ServerError, match=r"Kafka refused topic too-many: .*[Rr]eplication factor"):
        load(whole.bootstrap, [Topic("too-many", rf=4)])


def test_a_steady_producer_keeps_its_rate_until_it_is_stopped(whole: Playground) -> None:
    load(whole.bootstrap, [Topic("steady", partitions=3, rf=1, placement=[(1,), (1,), (1,)])])
    stop = threading.Event()
    reports: list[SteadyReport] = []
    producer = threading.Thread(
        target=lambda: reports.append(steady(whole.bootstrap, ["steady"], 200_000, stop)), daemon=True
    )
    producer.start()
    wait_until(lambda: sum(sizes(whole, "steady").values()) > 600_000, "three seconds' worth has arrived", 60)
    assert all(size > 100_000 for size in sizes(whole, "steady").values())
    stop.set()
    producer.join(20)
    [report] = reports
    assert report.dropped == 0
    # What was acknowledged is what the broker has, apart from the frames around it.
    assert report.delivered <= sum(sizes(whole, "steady").values()) < report.delivered * 1.05


def test_a_steady_producer_without_a_topic_is_told_so(whole: Playground) -> None:
    with pytest.raises(ServerError, match="No such topic to write to: nowhere"):
        steady(whole.bootstrap, ["nowhere"], 1000, threading.Event())
