"""``python -m tests.bench GROUP``: runs the parts of a group, each in a process of its own, and judges all their bars.

A part is a module of this package with a function ``measure() -> list[Bar]``.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from kafkadash.core.thread_stacks import widen_thread_stacks
from tests.bench.bars import Bar, conclude

GROUPS = {
    "changes": ["large_plan"],
    "collect": ["collect_size", "ensemble_size", "canary_cost"],
    "freshness": ["freshness"],
    "execution": ["makespan", "time_left", "run_step"],
    "planner": ["planner_kip36", "planner", "planner_disks"],
    "pipeline": ["pipeline.collection", "pipeline.stream", "pipeline.jobs", "pipeline.history"],
    "topics": ["topic_runs"],
    "oncall": ["broker_messages", "receiver_down", "finding_storm", "scrape", "timeline"],
    "pages": ["board", "drill_and_lag", "lists", "page_quality", "live_pixel"],
}


def main(arguments: list[str]) -> int:
    if len(arguments) == 3 and arguments[0] == "--part":
        _, part, written_to = arguments
        widen_thread_stacks()
        with ThreadPoolExecutor(1) as thread:  # as the product's code runs
            bars: list[Bar] = thread.submit(importlib.import_module(f"tests.bench.{part}").measure).result()
        Path(written_to).write_text(json.dumps([asdict(bar) for bar in bars]), encoding="utf-8")
        return 0
    if not arguments or arguments[0] not in GROUPS or not set(arguments[1:]) <= set(GROUPS[arguments[0]]):
        groups = "; ".join(f"{group}: {', '.join(parts)}" for group, parts in GROUPS.items())
        print(f"usage: python -m tests.bench GROUP [PART …]\n{groups}")  # noqa: T201
        return 2
    group, chosen = arguments[0], arguments[1:] or GROUPS[arguments[0]]
    bars, failed = [], False
    with TemporaryDirectory() as folder:
        for part in chosen:
            out = Path(folder) / part
            print(f"{group}: {part}", flush=True)  # noqa: T201
            done = subprocess.run([sys.executable, "-m", "tests.bench", "--part", part, str(out)], check=False)
            failed = failed or done.returncode != 0
            bars += [Bar(**fields) for fields in json.loads(out.read_text())] if out.exists() else []
    missed = conclude(group, bars)
    return 1 if failed else missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
