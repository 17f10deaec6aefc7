"""Part "faults": thousands of broken answers of brokers and of ZooKeeper, as ``tests.contract.broken_calls`` has them.

At the end no thread is left that a call started.
"""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from kazoo.client import KazooClient

from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.kafka import znodes
from kafkadash.kafka.api import (
    KafkaFailure,
    ZooKeeperConnection,
)
from kafkadash.kafka.znodes import WriteUnanswered
from kafkadash.kafka.zookeeper import open_session
from tests.contract.broken_calls import (
    DEADLINE_S,
    LATE_S,
    CheckedCall,
    FaultTally,
    break_kafka,
    counting_threads,
    first_answer,
    inject_faults,
    judge_change,
    list_differences,
)
from tests.contract.fake_broker import LOOPBACK
from tests.contract.faulty_proxy import FaultKind, FaultyProxy
from tests.proof.extent import Extent

FAULTS = 10_000
"""Faults of a round, on Kafka's wire and on ZooKeeper's together."""
CLUSTERS = 4  # fake ones, broken at the same time
CONFIGURED = [f"configured-{number}" for number in range(300)]
TOPICS, WRITTEN = 200, "/written"
"""Topics below a chroot of its own, in which no controller looks for work."""
ALIVE, ABSENT, NEVER_SET = 1, 2, 3
"""Brokers there: the last one has no configs."""
ZOOKEEPER_EVERY = 4  # one fault of so many is on ZooKeeper's wire


def prove(folder: Path, extent: Extent) -> bool:
    began = time.monotonic()
    faults = FAULTS * extent.rounds
    on_zookeeper = faults // ZOOKEEPER_EVERY
    each = math.ceil((faults - on_zookeeper) / CLUSTERS)
    tally = FaultTally()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(CLUSTERS + 1, spawn, initializer=_log_nothing) as pool:
        shares = [pool.submit(break_kafka, number, each) for number in range(CLUSTERS)]
        shares.append(pool.submit(break_zookeeper, folder / "zookeeper", on_zookeeper))
        for share in shares:
            found = share.result()
            tally.answered += found.answered
            tally.failed += found.failed
            tally.wrong += found.wrong
            tally.threads_left += found.threads_left
    print(f"\n  {'fault':<10} {'answered':>8} {'failed':>8}")  # noqa: T201
    for kind in FaultKind:
        print(f"  {kind:<10} {tally.answered[kind]:>8} {tally.failed[kind]:>8}")  # noqa: T201
    for text in tally.wrong[:20] + tally.threads_left:
        print(f"  {text}")  # noqa: T201
    print(  # noqa: T201
        f"  {tally.injected} faults, {len(tally.wrong)} wrong or late answers, {len(tally.threads_left)} threads left, "
        f"{time.monotonic() - began:.0f} s"
    )
    return not tally.wrong and not tally.threads_left and tally.injected >= faults


def _log_nothing() -> None:
    """Each malformed answer is logged with its traceback, and there are thousands."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def break_zookeeper(folder: Path, faults: int) -> FaultTally:
    with started_zookeeper(folder) as address, counting_threads(FaultTally()) as tally:
        _break_zookeeper(address, faults, tally)
    return tally


def _break_zookeeper(address: str, faults: int, tally: FaultTally) -> None:
    with ExitStack() as held:
        raw = KazooClient(address)
        raw.start(timeout=30)
        held.callback(raw.close)
        held.callback(raw.stop)
        for name in CONFIGURED:
            content = {"version": 1, "config": {"retention.ms": str(len(name) * 60_000)}}
            raw.create(f"{znodes.TOPIC_CONFIGS}/{name}", json.dumps(content).encode())
        _write_topics(raw)
        proxy = held.enter_context(FaultyProxy(LATE_S))
        port = proxy.stand_before(int(address.rpartition(":")[2]))
        kafka_id = json.loads(raw.get("/cluster/id")[0])["id"]
        connection = ZooKeeperConnection((f"{LOOPBACK}:{port}",), kafka_id=kafka_id)
        written = replace(connection, chroot=WRITTEN, kafka_id=WRITTEN)
        calls = [read_call(connection), topics_call(written), write_call(connection, raw)]
        inject_faults(proxy, calls, CLUSTERS, faults, tally)


@contextmanager
def started_zookeeper(folder: Path) -> Iterator[str]:
    """Yield the address of a ZooKeeper server that a broker uses."""
    playground = KafkaPlayground(folder)
    playground.up(brokers=1, zookeepers=1)
    try:
        yield playground.cluster.zookeeper
    finally:
        playground.down()


def read_call(connection: ZooKeeperConnection) -> CheckedCall:
    def ask() -> Mapping[Any, Any]:
        with open_session(connection, deadline=DEADLINE_S) as session:
            return {
                "facts": znodes.read_facts(session),
                "brokers": znodes.read_brokers(session),
                "configs": znodes.read_configs(session, znodes.TOPIC_CONFIGS, CONFIGURED),
            }

    expected = first_answer(ask)
    return CheckedCall("znodes", ask, partial(list_differences, expected))


def _write_topics(raw: KazooClient) -> None:
    """Topics of which each moves a partition, and configs of two brokers, of which one is registered."""
    moving = {"adding_replicas": {"0": [ABSENT]}, "removing_replicas": {"0": [ALIVE]}}
    contents: dict[str, Mapping[str, Any]] = {
        znodes.CLUSTER_ID: {"version": "1", "id": WRITTEN},
        znodes.CONTROLLER: {"version": 1, "brokerid": ALIVE, "timestamp": "1700000000000"},
        f"{znodes.BROKERS}/{ALIVE}": {"version": 5, "endpoints": ["PLAINTEXT://nobody:9092"]},
    }
    for broker in (ALIVE, ABSENT):
        configs = {"follower.replication.throttled.rate": str(broker)}
        contents[f"{znodes.BROKER_CONFIGS}/{broker}"] = {"version": 1, "config": configs}
    for number in range(TOPICS):
        replicas = {str(partition): [ALIVE, ABSENT] for partition in range(number % 5 + 1)}
        contents[f"{znodes.TOPICS}/topic-{number}"] = {"version": 2, "partitions": replicas, **moving}
    for path, content in contents.items():
        raw.create(f"{WRITTEN}{path}", json.dumps(content).encode(), makepath=True)


def topics_call(connection: ZooKeeperConnection) -> CheckedCall:
    def ask() -> Mapping[Any, Any]:
        with open_session(connection, deadline=DEADLINE_S) as session:
            configs = znodes.read_absent_configs(session, (ALIVE, ABSENT, NEVER_SET))
            return {"topics": znodes.read_topics(session), "configs of absent brokers": configs}

    expected = first_answer(ask)
    assert len(expected["topics"]) == TOPICS
    assert expected["configs of absent brokers"].keys() == {ABSENT, NEVER_SET}
    return CheckedCall("znodes of topics", ask, partial(list_differences, expected))


def write_call(connection: ZooKeeperConnection, raw: KazooClient) -> CheckedCall:
    path, values = "/faults", iter(range(1 << 40))
    notice = znodes.ChangeNotice(f"{path}/notice_", b"{}")
    raw.create(path, b"")

    def ask() -> Mapping[Any, Any]:
        old, value = raw.get(path)[0], str(next(values)).encode()
        outcome = "refused"
        try:
            with open_session(connection, deadline=DEADLINE_S) as session:
                [znode] = session.read([path])
                assert znode is not None
                outcome = "done" if session.replace(znode, value, notice) else "refused"
        except WriteUnanswered:
            outcome = "lost"
        except KafkaFailure:
            if raw.get(path)[0] != old:
                return {"outcome": outcome, "new": value, "old": old, "now": raw.get(path)[0]}
            raise
        return {"outcome": outcome, "new": value, "old": old, "now": raw.get(path)[0]}

    return CheckedCall("write of a znode", ask, judge_change)
