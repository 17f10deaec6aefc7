"""`make smoke`: the whole product once, from outside.

Starts the demo in a folder of its own. A move of Kafka's own tool is watched; then two people have a broker drained and
the drain rolled back. Every pushed figure is compared with what the brokers themselves say. Exit code 0 only if
everything holds. With ``tool`` or ``people`` as an argument only that part of it is done; with ``--full`` more is moved
and it takes longer.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafkadash.devtools.playground.cluster import KafkaPlayground
from tests.agreement.tools import Tools
from tests.smoke.browser import Browser
from tests.smoke.demo_process import DemoProcess
from tests.smoke.extent import FULL, SHORT, SmokeExtent
from tests.smoke.steps import NotSo, Steps, demand, say
from tests.smoke.tool_move import ToolMove
from tests.smoke.two_people import TwoPeople
from tests.tool_server import ToolServer, tools_share_a_process

PARTS: Mapping[str, type[ToolMove] | type[TwoPeople]] = {"tool": ToolMove, "people": TwoPeople}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.smoke", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"only these of {', '.join(PARTS)}")
    parser.add_argument("--full", action="store_true", help="move 420 MB and drain at 6 MB/s: minutes to watch")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell lets what runs in its background ignore Ctrl-C
        signal.signal(number, signal.default_int_handler)
    root = Path(tempfile.mkdtemp(prefix="kafkadash-smoke-"))
    root.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    say(f"smoke in {root}")
    smoke = Smoke(root, asked.parts or tuple(PARTS), FULL if asked.full else SHORT)
    began = time.monotonic()
    try:
        with tools_share_a_process(root):
            smoke.run()
    except (NotSo, AssertionError, RuntimeError, OSError, subprocess.SubprocessError) as error:
        say(f"smoke failed: {error}\nLogs are kept in {root}.")
        return 1
    finally:
        smoke.end()
    shutil.rmtree(root)
    say(f"smoke passed in {time.monotonic() - began:.0f} s")
    return 0


class Smoke:
    def __init__(self, root: Path, parts: Sequence[str], extent: SmokeExtent) -> None:
        self.parts = parts
        self.extent = extent
        self.steps = Steps()
        self.root = root
        self.folder = root / "var"
        # What is live is compared here with raw reads in time: history is made beside it, and proven elsewhere.
        self.demo = DemoProcess(self.folder, "--no-pipeline", environment=dict(extent.pace))

    def run(self) -> None:
        with self.steps.step("demo started") as say:
            self.demo.wait_until_ready()
            say(f"{self.demo.seconds:.1f} s by its own account, {self.demo.base}")
        bootstrap = json.loads((self.folder / "playground" / "playground.json").read_text(encoding="utf-8"))
        servers = ",".join(f"127.0.0.1:{node['broker_port']}" for node in bootstrap["nodes"] if node["broker_port"])
        for part in self.parts:
            PARTS[part](self.demo, servers, self.root, self.steps, self.extent).run()
        with self.steps.step("active controller") as say:
            say(self._compare_controller())
        with self.steps.step("Ctrl-C, then nothing is left") as say:
            say(self._stop_demo())

    def end(self) -> None:
        """Whatever happened: nothing of it stays."""
        ToolServer(self.root).stop()
        self.demo.end()

    def _compare_controller(self) -> str:
        browser = Browser(self.demo.base)
        browser.sign_in("alice", self.demo.password("alice"))
        shown = re.search(r'data-controller="(\d+)"', browser.get("/clusters/demo/"))
        demand(shown is not None, "the overview page names no active controller")
        assert shown is not None
        leader = Tools(KafkaPlayground(self.folder / "playground", detached=True)).quorum_status().leader_id
        demand(shown[1] == str(leader), f"the page says {shown[1]}, kafka-metadata-quorum says {leader}")
        return f"page and kafka-metadata-quorum say {leader}"

    def _stop_demo(self) -> str:
        opened = self.demo.opened()
        code = self.demo.interrupt()
        demand(code == 0, f"the demo ended with {code}: {' / '.join(self.demo.lines[-3:])}")
        left = opened.still_there()
        demand(not left, f"still there: {', '.join(left)}")
        return (
            f"exit code 0; {len(opened.processes)} processes, {len(opened.ports)} ports, "
            f"{len(opened.sockets)} socket files gone"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
