"""`make smoke`: the whole product once, from outside.

Starts the demo in a folder of its own. A move of Kafka's own tool is watched; then two people have a broker drained and
the drain rolled back. Every pushed figure is compared with what the brokers themselves say. Exit code 0 only if
everything holds. With ``tool`` or ``people`` as an argument only that part of it is done.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.smoke.browser import Browser
from tests.smoke.demo_process import DemoProcess, command
from tests.smoke.steps import NotSo, Steps, demand, say
from tests.smoke.tool_move import ToolMove
from tests.smoke.two_people import TwoPeople

PARTS: Mapping[str, type[ToolMove] | type[TwoPeople]] = {"tool": ToolMove, "people": TwoPeople}


def main(*parts: str) -> int:
    root = Path(tempfile.mkdtemp(prefix="kafkadash-smoke-"))
    root.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    say(f"smoke in {root}")
    smoke = Smoke(root, parts or tuple(PARTS))
    began = time.monotonic()
    try:
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
    def __init__(self, root: Path, parts: Sequence[str]) -> None:
        self.parts = parts
        self.steps = Steps()
        self.root = root
        self.folder = root / "var"
        # What is live is compared here with raw reads in time: history is made beside it, and proven elsewhere.
        self.demo = DemoProcess(self.folder, "--no-pipeline")

    def run(self) -> None:
        with self.steps.step("demo started") as say:
            self.demo.wait_until_ready()
            say(f"{self.demo.seconds:.1f} s by its own account, {self.demo.base}")
        bootstrap = json.loads((self.folder / "playground" / "playground.json").read_text(encoding="utf-8"))
        servers = ",".join(f"127.0.0.1:{node['broker_port']}" for node in bootstrap["nodes"] if node["broker_port"])
        for part in self.parts:
            PARTS[part](self.demo, servers, self.root, self.steps).run()
        with self.steps.step("active controller") as say:
            say(self._compare_controller())
        with self.steps.step("Ctrl-C, then nothing is left") as say:
            say(self._stop_demo())

    def end(self) -> None:
        """Whatever happened: nothing of it stays."""
        self.demo.end()

    def _compare_controller(self) -> str:
        browser = Browser(self.demo.base)
        browser.sign_in("alice", self.demo.password("alice"))
        shown = re.search(r'data-controller="(\d+)"', browser.get("/clusters/demo/"))
        demand(shown is not None, "the overview page names no active controller")
        assert shown is not None
        said = command(self.folder, "playground", "tool", "quorum", "--", "describe", "--status")
        leader = re.search(r"LeaderId:\s+(\d+)", said)
        demand(leader is not None, f"kafka-metadata-quorum named no leader: {said}")
        assert leader is not None
        demand(shown[1] == leader[1], f"the page says {shown[1]}, kafka-metadata-quorum says {leader[1]}")
        return f"page and kafka-metadata-quorum say {leader[1]}"

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
    sys.exit(main(*sys.argv[1:]))
