"""`make soak`: the product under continuous moves, and what its processes need more and more of.

The processes that the demo starts, on real Kafka: a broker is drained and the drain rolled back, again and again, by
two people, while others read pages and watch the run. After a warm-up of a quarter of the time no process may need
more than a tenth more memory by the end, nor more threads, sockets or files. ARGS="--minutes 5" for another time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from kafkadash.devtools.playground.load import MIB, LoadTopic, load_topics
from tests.bench.bars import Bar, at_most, conclude
from tests.soak.needs import Needs, needs_of
from tests.soak.visitors import Visitors
from tests.stack.stack import Shape, Stack

MINUTES = 20.0
SAMPLE_S = 5.0
WARM_UP, WINDOW = 0.25, 0.2
"""Parts of the time: before the first figures, and over which the first and the last figures are taken."""
GROWS_PERCENT = 10.0
MORE = 2
"""So many threads, sockets or files more are no growth: a pool lent one more connection, a page was being served."""
SHAPE = Shape(racks=("a", "a", "b"), controllers=1)
PACE = {"INTERVAL_METADATA": "5", "INTERVAL_LOG_DIRS": "5", "INTERVAL_CONFIGS": "5", "INTERVAL_REASSIGNMENTS": "5"}
PRODUCT = ("web", "worker-tick", "worker-collect", "worker-jobs", "worker-execute", "worker-notify", "beat")
DRAINED = 1


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    minutes = parser.parse_args(arguments).minutes
    root = Path(tempfile.mkdtemp(prefix="kafkadash-soak-"))
    root.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    stack = Stack(root / "stack", SHAPE, environment={"": PACE})
    try:
        with stack:
            code = _soaked(stack, minutes * 60)
    finally:
        stack.remove()
    shutil.rmtree(root, ignore_errors=True)
    return code


def _soaked(stack: Stack, seconds: float) -> int:
    names = ["soak-1", "soak-2"]
    topics = [LoadTopic(name, placement=[(DRAINED, 3)] * 2, fill_bytes=8 * MIB) for name in names]
    load_topics(stack.playground.bootstrap, topics)
    stack.provision()
    os.environ.update(stack.addresses())
    os.environ |= {"LOG_LEVEL": "ERROR", "DJANGO_SETTINGS_MODULE": "kafkadash.settings"}
    import django

    django.setup()
    until = time.monotonic() + seconds
    over = threading.Event()
    samples: dict[str, list[Needs]] = defaultdict(list)
    visitors = Visitors(stack.url, stack.password("alice"), over)
    sampling = threading.Thread(target=_sample, args=(stack, samples, over), daemon=True)
    sampling.start()
    visitors.start()
    try:
        runs = _moves(until, visitors)
    finally:
        over.set()
        sampling.join(SAMPLE_S * 2)
        visitors.join()
    bars = [Bar("runs that ended", runs, "runs", "≥ 1", runs >= 1)]
    bars += [Bar("pages read", visitors.pages, "pages"), Bar("frames pushed", visitors.frames, "frames")]
    bars += [at_most("pages that failed", visitors.failed, 0, "pages")]
    starts = sum(stack.starts(name) - 1 for name in PRODUCT)
    bars += [at_most("processes that ended", starts, 0, "times")]
    for name in PRODUCT:
        bars += _growth(name, samples[name])
    bars += [bar for name in ("postgres", "valkey") for bar in _growth(name, samples[name], judged=False)]
    return conclude("soak", bars)


def _moves(until: float, visitors: Visitors) -> int:
    """How many runs ended, the last of them after the time is over."""
    from kafkadash.changes.state_machine import OVER
    from tests.chaos.drain import POLL_S, People

    people = People(lambda _: None)
    ended = 0
    while time.monotonic() < until:
        number: int | None = people.drain(DRAINED)
        while number is not None:
            visitors.number = number
            people.start(number)
            while people.tend(number) not in OVER:
                time.sleep(POLL_S)
            ended += 1
            print(f"  {people.stands(number)}", flush=True)  # noqa: T201
            number = people.roll_back(number) if ended % 2 else None
    return ended


def _sample(stack: Stack, samples: dict[str, list[Needs]], over: threading.Event) -> None:
    while not over.wait(SAMPLE_S):
        for name, pid in stack.processes().items():
            found = needs_of(pid)
            if found is not None:
                samples[name].append(found)


def _growth(name: str, samples: Sequence[Needs], *, judged: bool = True) -> list[Bar]:
    """From the window after the warm-up to the last one, of each kind."""
    size = max(1, int(len(samples) * WINDOW))
    start = int(len(samples) * WARM_UP)
    first, last = samples[start : start + size], samples[-size:]
    if not first:
        return [Bar(f"{name}: samples", 0, "samples", "≥ 1", ok=False)]
    memory = [statistics.median(each.memory for each in part) for part in (first, last)]
    bars = [Bar(f"{name}: memory", round(memory[1] / 1e6, 1), "MB")]
    grown = 100 * (memory[1] / memory[0] - 1)
    bars.append(at_most(f"{name}: memory grows", grown, GROWS_PERCENT, "%") if judged else _told(name, "memory", grown))
    for kind in ("threads", "sockets", "files"):
        figures = [statistics.median(getattr(each, kind) for each in part) for part in (first, last)]
        more = figures[1] - figures[0]
        bars.append(at_most(f"{name}: {kind} more", more, MORE, kind) if judged else _told(name, kind, more))
    return bars


def _told(name: str, kind: str, more: float) -> Bar:
    return Bar(f"{name}: {kind} more", round(more, 1), "%" if kind == "memory" else kind)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
