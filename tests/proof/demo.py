"""Part "demo": its supervisor is killed when everything runs, and starts once more over what it left. With ZooKeeper it
shows the controller that kazoo's client reads, and ends with Ctrl-C.

The short form, of which the second start is broken off, is in `tests/demo/test_it_stops_without_traces.py`.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from kazoo.client import KazooClient

from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.devtools.embedded.process import reap_leftovers
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.kafka import znodes
from tests.demo.test_it_stops_without_traces import a_web_that_dies_is_started_again
from tests.proof.extent import Extent
from tests.smoke.browser import Browser
from tests.smoke.demo_process import STOP_SECONDS, DemoProcess
from tests.waiting import wait_until

PAGE_SECONDS = 60.0


def prove(folder: Path, extent: Extent) -> bool:
    """Raises AssertionError where something does not hold."""
    for number in range(extent.rounds):
        _prove_in(folder / f"demo-{number}", _killed_and_started_again)
    print(f"demo: {extent.rounds} supervisors killed and started again")  # noqa: T201
    _prove_in(folder / "demo-zookeeper", _with_zookeeper)
    print("demo: with ZooKeeper it shows its controller and leaves nothing")  # noqa: T201
    return True


def _prove_in(folder: Path, proof: Callable[[Path], None]) -> None:
    folder.mkdir(mode=0o755)
    try:
        proof(folder)
    finally:
        for state in (folder / "playground", folder):
            reap_leftovers(state)
        EmbeddedPostgres(folder).remove()


def _killed_and_started_again(folder: Path) -> None:
    """With its pipeline and a drain that waits. The second is asked twice to end, which is at once."""
    killed = DemoProcess(folder, "--racks", "a")
    try:
        killed.wait_until_ready()
        password = killed.password("alice")
        a_web_that_dies_is_started_again(killed, folder)
        opened = killed.opened()
        killed.signal(signal.SIGKILL)
        assert killed.wait(STOP_SECONDS) == -signal.SIGKILL
        assert len(opened.still_there()) > 5
    finally:
        killed.end()
    again = DemoProcess(folder, "--racks", "a")
    try:
        again.wait_until_ready()
        assert "postgres" in again.wait_for_line("Stopped leftovers of a killed demo", 0.0)
        assert not {name for name in opened.still_there() if name.startswith("process")}
        assert again.base == killed.base
        Browser(again.base).sign_in("alice", password)
        opened = again.opened()
        again.signal(signal.SIGTERM)
        again.signal(signal.SIGTERM)
        assert again.wait(STOP_SECONDS) == 0
        assert opened.still_there() == []
    finally:
        again.end()


def _with_zookeeper(folder: Path) -> None:
    demo = DemoProcess(folder, "--zookeeper", "--racks", "a,b,c", "--no-pipeline")
    try:
        demo.wait_until_ready()
        browser = Browser(demo.base)
        browser.sign_in("alice", demo.password("alice"))
        controller = _read_controller(KafkaPlayground(folder / "playground").cluster.zookeeper)
        expected = f"Demo: broker {controller} is the controller"
        wait_until(
            lambda: browser.headline("/clusters/demo/quorum/") == expected, f"its page says {expected!r}", PAGE_SECONDS
        )
        opened = demo.opened()
        assert demo.interrupt() == 0
        assert opened.still_there() == []
    finally:
        demo.end()


def _read_controller(zookeeper: str) -> int:
    with ExitStack() as held:
        client = KazooClient(zookeeper)
        held.callback(client.close)
        client.start(timeout=PAGE_SECONDS)
        held.callback(client.stop)
        return int(json.loads(client.get(znodes.CONTROLLER)[0])["brokerid"])
