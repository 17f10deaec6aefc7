"""Nodes of a playground that stand still (SIGSTOP) and go on: away for everybody, and quicker back than after a start.

Nobody can tell such a node from one whose host hangs or whose network is cut. Where a case is about refused
connections, leadership given up or state read anew, the node is stopped or killed instead.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import psutil

from kafkadash.devtools.embedded.ports import LOOPBACK
from kafkadash.devtools.playground.cluster import KafkaPlayground
from tests.contract import raw
from tests.waiting import wait_until


@contextmanager
def fenced_broker(playground: KafkaPlayground, broker: int) -> Iterator[None]:
    """It stands still, the others know it, and Kafka's tools are told of the others only; at the end it goes on.

    A tool whose client happens to choose a broker that hangs waits for it as long as it waits for everything.
    """
    others = {node.node_id: node.broker_port for node in playground.cluster.brokers if node.node_id != broker}
    addresses = [f"{LOOPBACK}:{port}" for port in others.values()]
    with frozen_nodes(playground, broker), mock.patch.object(KafkaPlayground, "bootstrap", ",".join(addresses)):
        wait_until(lambda: all(alive_by(a) == sorted(others) for a in addresses), f"broker {broker} is fenced")
        yield


def alive_by(address: str) -> list[int]:
    """Ids of the brokers that the one at ``address`` does not take for dead."""
    answer = raw.ask(address, 3, 12, topics=(), include_topic_authorized_operations=False)
    return sorted(alive.node_id for alive in answer.brokers)


@contextmanager
def frozen_nodes(playground: KafkaPlayground, *node_ids: int) -> Iterator[None]:
    freeze_nodes(playground, *node_ids)
    try:
        yield
    finally:
        thaw_nodes(playground, *node_ids)


def freeze_nodes(playground: KafkaPlayground, *node_ids: int) -> None:
    for node_id in node_ids:
        pid = playground.process(node_id).pid
        os.kill(pid, signal.SIGSTOP)
        # The signal stops one thread after the other: until then a broker may still answer.
        wait_until(partial(_all_threads_stopped, pid), f"node {node_id} stands still")


def thaw_nodes(playground: KafkaPlayground, *node_ids: int) -> None:
    for node_id in node_ids:
        os.kill(playground.process(node_id).pid, signal.SIGCONT)


def _all_threads_stopped(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():  # not Linux
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    states = [(task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] for task in tasks.iterdir()]
    return all(state == "T" for state in states)
