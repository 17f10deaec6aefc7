"""``make proof``: the product as processes on real Kafka, and what must hold whatever becomes of them.

``python -m tests.proof [PART …] [--rounds N] [--minutes N]``: each part is a module of this package with
``prove(folder, extent)``, which says whether it held. It runs in a process of its own, because it sets Django up for
servers of its own. The folder of a part that did not hold is kept.
"""

from __future__ import annotations

import argparse
import importlib
import math
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.proof.extent import MINUTES, ROUNDS, Extent

PARTS = (
    "long",
    "tools",
    "mutants",
    "playground",
    "versions",
    "faults",
    "zookeeper",
    "upgrade",
    "demo",
    "planner",
    "segments",
    "pipeline",
    "standalone",
    "image",
    "history",
    "points",
    "short_points",
    "restarts",
    "attacks",
    "crowd",
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make proof", description="Parts: " + ", ".join(PARTS))
    parser.add_argument("parts", nargs="*", metavar="PART", help="all of them if none is named")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often everything of a part is done")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long the crowd works")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    unknown = [part for part in asked.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}")
    if asked.rounds < 1 or not 0 < asked.minutes < math.inf:
        parser.error("at least one round, and some minutes")
    extent = Extent(asked.rounds, asked.minutes)
    if asked.here:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # asked to end, it ends what it started
        held: bool = importlib.import_module(f"tests.proof.{asked.parts[0]}").prove(asked.here, extent)
        return 0 if held else 1
    failed = [part for part in asked.parts or PARTS if not _holds(part, extent)]
    print(f"proof failed: {', '.join(failed)}" if failed else "proof holds")  # noqa: T201
    return 1 if failed else 0


def _holds(part: str, extent: Extent) -> bool:
    folder = Path(tempfile.mkdtemp(prefix=f"kafkadash-proof-{part}-"))
    folder.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    print(f"proof: {part}, in {folder}", flush=True)  # noqa: T201
    much = ("--rounds", str(extent.rounds), "--minutes", str(extent.minutes))
    command = [sys.executable, "-m", "tests.proof", part, *much, "--here", str(folder)]
    held = subprocess.run(command, check=False).returncode == 0
    if held:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"proof: {part} does not hold; what it left is in {folder}", flush=True)  # noqa: T201
    return held


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
