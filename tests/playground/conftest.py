"""One real cluster of our own for this folder's tests: they stop, kill and renew what others share.

It comes to its three brokers in the ways in which a cluster can: started, started again, added to. What was seen on
that way is judged by tests.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from kafkadash.devtools.embedded.ports import LOOPBACK
from kafkadash.devtools.embedded.process import ChildProcess, ServerError, live_children, recorded
from kafkadash.devtools.playground.cluster import (
    KafkaPlayground,
    PlaygroundNodeStatus,
    PlaygroundState,
    prepare_runtime,
)
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from tests.embedded_plugin import RUN_FOLDER

ROOT = Path(__file__).parents[2]
KEPT = "kept"
POINTS = ("write_cluster", "_start")
"""Of adding a broker: before it is remembered, and before its process is started."""

LEAVING_A_NODE = """
import os, signal, sys
from pathlib import Path
from kafkadash.devtools.embedded.process import spawn
folder = Path(sys.argv[1])
spawn(folder, "kafka-1", [sys.executable, "-c", "import time; time.sleep(600)"], log=folder / "left.log")
os.kill(os.getpid(), signal.SIGKILL)
"""
KILLED_WHILE_ADDING = """
import os, signal, sys
from pathlib import Path
from unittest import mock
from kafkadash.devtools.playground import cluster
die = mock.patch.object(cluster if sys.argv[2] == "write_cluster" else cluster.KafkaPlayground, sys.argv[2],
                        side_effect=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
with die:
    cluster.KafkaPlayground(Path(sys.argv[1])).add_broker("b")
"""


@dataclass(frozen=True, slots=True)
class Killed:
    """A process that was killed while it added a broker: who is known then, and what runs."""

    known: list[int]
    formatted: bool
    running: list[bool]


@dataclass(slots=True)
class Grown:
    """What was seen on the way of a cluster from its first node to its third.

    ``made``: as it was at first. ``again``: after its end and its second start, while somebody had taken the port of
    its controller; ``freed``: what was still there between the two.
    """

    playground: KafkaPlayground
    left: ChildProcess
    left_lived: bool
    made: PlaygroundState
    freed: list[str] = field(default_factory=list)
    refusal: str = ""
    again: PlaygroundState | None = None
    killed: dict[str, Killed] = field(default_factory=dict)
    mended: list[PlaygroundNodeStatus] = field(default_factory=list)
    added: int = 0
    at_last: list[PlaygroundNodeStatus] = field(default_factory=list)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Below it, what a killed run leaves behind is ended by the next run."""
    run = os.environ.get(RUN_FOLDER)
    return Path(run) if run is not None else tmp_path_factory.mktemp("run")


@pytest.fixture(scope="session")
def runtime() -> None:
    try:
        prepare_runtime(lambda _: None)
    except ServerError as error:
        pytest.skip(f"no real Kafka here: {error}")


@pytest.fixture(scope="package")
def grown(run_folder: Path, runtime: None) -> Iterator[Grown]:
    """Racks a, b and b, two directories each; nothing of it runs at the end."""
    playground = KafkaPlayground(run_folder / f"playground-{os.environ.get('PYTEST_XDIST_WORKER', 'single')}")
    try:
        grown = _started_over_leftovers(playground)
        _down_and_up(grown)
        for point in POINTS:
            grown.killed[point] = _killed_while_adding(playground, point)
        playground.up()
        grown.mended = playground.status()
        grown.added = playground.add_broker("b")
        grown.at_last = playground.status()
        yield grown
    finally:
        playground.down()
    assert recorded(playground.folder) == []


def _started_over_leftovers(playground: KafkaPlayground) -> Grown:
    playground.folder.mkdir()
    done = _python(LEAVING_A_NODE, str(playground.folder))
    assert done.returncode == -signal.SIGKILL
    [left] = live_children(playground.folder)
    lived = left.alive()
    playground.up(brokers=1, racks=("a",), dirs=2)
    return Grown(playground, left, lived, playground.cluster)


def _down_and_up(grown: Grown) -> None:
    playground, [node] = grown.playground, grown.playground.status()
    load_topics(playground.bootstrap, [LoadTopic(KEPT, placement=[(1,)], fill_bytes=300_000)])
    playground.down()
    grown.freed = [child.name for child in recorded(playground.folder)]
    grown.freed += [str(node.pid)] if node.pid is None or psutil.pid_exists(node.pid) else []
    with pytest.raises(ServerError) as refused:
        playground.add_broker("b")
    grown.refusal = str(refused.value)
    assert node.controller_port is not None
    with socket.create_server((LOOPBACK, node.controller_port)):
        playground.up(racks=("a",))
    grown.again = playground.cluster


def _killed_while_adding(playground: KafkaPlayground, point: str) -> Killed:
    done = _python(KILLED_WHILE_ADDING, str(playground.folder), point)
    assert done.returncode == -signal.SIGKILL
    known = [node.node_id for node in playground.cluster.brokers]
    formatted = (playground.folder / "data" / "kafka-2").exists()
    return Killed(known, formatted, [node.pid is not None for node in playground.status()])


def _python(code: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, check=False, timeout=120)


@pytest.fixture
def whole(grown: Grown) -> KafkaPlayground:
    """The cluster with every node running: a test before may have failed half way."""
    grown.playground.up()
    return grown.playground
