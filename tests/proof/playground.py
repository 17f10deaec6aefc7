"""Part "playground": what costs clusters of its own: a supervisor that is killed, three controllers of which one is.

``make test`` has a sleeping process in the place of what a killed supervisor leaves, and controllers that come and go
in `tests/agreement`.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from kafkadash.devtools.embedded.process import live_children, recorded
from kafkadash.devtools.playground.cluster import KafkaPlayground, read_cluster
from tests.proof.extent import Extent
from tests.tool_server import ToolServer, tools_share_a_process
from tests.waiting import wait_until

UP_AND_KILLED = (
    "import os, signal, sys; from pathlib import Path;"
    "from kafkadash.devtools.playground.cluster import KafkaPlayground;"
    "KafkaPlayground(Path(sys.argv[1])).up(brokers=1); os.kill(os.getpid(), signal.SIGKILL)"
)


def prove(folder: Path, extent: Extent) -> bool:
    """Raises AssertionError where something does not hold."""
    try:
        with tools_share_a_process(folder):
            for number in range(extent.rounds):
                _supervisor_killed(folder / f"one-{number}")
                _controller_killed(folder / f"three-{number}")
    finally:
        ToolServer(folder).stop()
    print(f"playground: {extent.rounds} supervisors and {extent.rounds} controllers killed")  # noqa: T201
    return True


def _supervisor_killed(folder: Path) -> None:
    """What it left is ended, and the same cluster started anew; a reset leaves nothing of it."""
    done = subprocess.run([sys.executable, "-c", UP_AND_KILLED, str(folder)], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    [left] = live_children(folder)
    playground = KafkaPlayground(folder)
    try:
        cluster_id = playground.cluster.cluster_id
        playground.up()
        assert not left.alive()
        [node] = playground.status()
        assert node.pid not in (None, left.pid)
        assert cluster_id in playground.tool("cluster", ["cluster-id"]).stdout
    finally:
        playground.reset()
    assert live_children(folder) == []
    assert read_cluster(folder) is None
    assert not (folder / "data").exists()


def _controller_killed(folder: Path) -> None:
    """Another one leads; the killed one comes back; all of them stop."""
    playground = KafkaPlayground(folder)
    try:
        playground.up(brokers=1, controllers=3)
        assert [node.roles for node in playground.status()] == ["broker", "controller", "controller", "controller"]
        leader = _leader_of(playground)
        assert leader in (101, 102, 103)
        playground.kill_controller(leader)
        wait_until(lambda: _leader_of(playground) not in (None, leader), "another controller leads", 60)
        playground.start_controller(leader)
        assert all(node.pid is not None for node in playground.status())
    finally:
        playground.down()
    assert recorded(folder) == []


def _leader_of(playground: KafkaPlayground) -> int | None:
    done = playground.tool("quorum", ["describe", "--status"])
    found = re.search(r"LeaderId:\s+(-?\d+)", done.stdout)
    return int(found[1]) if done.returncode == 0 and found is not None else None
