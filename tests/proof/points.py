"""Part "points": the worker of runs is killed at every fail point, started again, and every run ends as it should.

Each round drains a broker, begins to take that back and is cancelled, and takes it back for good. Every point has to be
hit once in each round, and the referee finds nothing after any of the runs.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.proof.extent import Extent
from tests.stack.stack import Shape, Stack
from tests.waiting import wait_until

RACKS = ("a", "b", "c", "c")
LEAST_HITS = 3
WORKER = "worker-execute"
# A killed worker's lease is waited for; what pages and plans read is read often, because runs follow each other.
QUICK = {
    "LEASE_TTL": "8",
    "EXECUTE_INTERVAL": "1",
    **{f"INTERVAL_{kind}": "5" for kind in ("METADATA", "REASSIGNMENTS", "QUORUM", "LOG_DIRS", "CONFIGS")},
}


@dataclass
class Points:
    """The file of armed points of a stack's worker of runs, and what came of them."""

    stack: Stack
    file: Path
    deaths: int = 0
    judged: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def arm(self, points: tuple[str, ...]) -> None:
        """For the worker's next start, which is now."""
        self.file.write_text("".join(f"{point}\n" for point in points), encoding="utf-8")
        before = self.stack.starts(WORKER)
        self.stack.kill(WORKER, signal.SIGTERM)
        wait_until(lambda: self.stack.starts(WORKER) > before, f"{WORKER} ended and is started again", 60)

    @property
    def left(self) -> list[str]:
        return self.file.read_text(encoding="utf-8").split()

    def hits(self) -> list[tuple[str, int]]:
        """Point and process id of each, in order."""
        hits = self.file.with_name(f"{self.file.name}.hits")
        lines = hits.read_text(encoding="utf-8").splitlines() if hits.exists() else []
        return [(line.split()[0], int(line.split()[2])) for line in lines]

    def ended(self, words: str, since: int, problems: list[str]) -> None:
        """What the referee says of a run, during which the hits after the first ``since`` were made."""
        hits = self.hits()[since:]
        if self.left:
            problems = [*problems, f"never reached: {', '.join(self.left)}"]
        if len({pid for _, pid in hits}) != len(hits):
            problems = [*problems, "one process died twice"]
        for point in {point for point, _ in hits} | set(self.left):
            self.judged[point] += [f"{words}: {problem}" for problem in problems]
        for problem in problems:
            print(f"    WRONG: {problem}", flush=True)  # noqa: T201


def prove(folder: Path, extent: Extent) -> bool:
    began = time.monotonic()
    file = folder / "points"
    file.write_text("", encoding="utf-8")
    environment = {"": QUICK, WORKER: {"FAIL_POINTS": str(file)}}
    with Stack(folder / "stack", Shape(racks=RACKS, webs=0, dirs=2), environment=environment) as stack:
        stack.provision()
        os.environ.update(stack.addresses() | {"DJANGO_SETTINGS_MODULE": "kafkadash.settings", "LOG_LEVEL": "ERROR"})
        import django

        django.setup()
        from tests.proof.points_runs import Rounds

        points = Points(stack, file)
        judge, stopped = Rounds(points), ""
        try:
            for number in range(1, extent.rounds + 1):
                judge.round(number)
        except AssertionError as late:
            stopped = f"  stopped: {late}"
        held = _table(points, extent.rounds) and not stopped
        print(stopped)  # noqa: T201
    stack.remove()
    print(f"  {len(points.hits())} deaths, {time.monotonic() - began:.0f} s")  # noqa: T201
    return held


def _table(points: Points, rounds: int) -> bool:
    from kafkadash.execution.worker.fail_points import POINTS

    hits = Counter(point for point, _ in points.hits())
    least = min(LEAST_HITS, rounds)
    held = True
    print(f"\n  {'point':<28} {'hits':>4}  outcome")  # noqa: T201
    for point in POINTS:
        wrong = points.judged[point]
        few = "" if hits[point] >= least else f"hit less than {least} times"
        said = "; ".join(filter(None, [few, *wrong[:2]]))
        held = held and not said
        print(f"  {point:<28} {hits[point]:>4}  {said or 'every run ended right'}")  # noqa: T201
    return held
