"""Part "short_points": the worker is killed at each fail point of the runs of items, and each run ends as it should.

Each round creates topics, enlarges one, edits configs, resets the offsets of a group, deletes the group, and deletes
the topics. It is done twice, as no run reaches all points: where Kafka's answer was lost, a reading settles the items
and there is no second answer to store. Kafka's own tools say what became of the cluster.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

from tests.proof.extent import Extent
from tests.proof.points import QUICK, WORKER, Points
from tests.stack.stack import Shape, Stack


def prove(folder: Path, extent: Extent) -> bool:
    began = time.monotonic()
    file = folder / "points"
    file.write_text("", encoding="utf-8")
    environment = {"": {**QUICK, "INTERVAL_GROUPS": "5"}, WORKER: {"SHORT_RUN_FAIL_POINTS": str(file)}}
    with Stack(folder / "stack", Shape(racks=("a", "b", "c"), webs=0), environment=environment) as stack:
        stack.provision()
        os.environ.update(stack.addresses() | {"DJANGO_SETTINGS_MODULE": "kafkadash.settings", "LOG_LEVEL": "ERROR"})
        import django

        django.setup()
        from tests.proof.short_points_runs import ARMED, ShortRounds

        points, stopped = Points(stack, file), ""
        rounds = ShortRounds(points)
        try:
            for number in range(extent.rounds):
                for armed in ARMED:
                    rounds.run_all(f"round-{number + 1}-{len(armed)}", armed)
        except AssertionError as late:
            stopped = f"  stopped: {late}"
        held = _print_table(points, rounds.kinds * extent.rounds) and not stopped
        print(stopped)  # noqa: T201
    stack.remove()
    print(f"  {len(points.hits())} deaths, {time.monotonic() - began:.0f} s")  # noqa: T201
    return held


def _print_table(points: Points, expected: int) -> bool:
    from kafkadash.short_runs.fail_points import POINTS

    hits = Counter(point for point, _ in points.hits())
    held = True
    print(f"\n  {'point':<28} {'hits':>4}  outcome")  # noqa: T201
    for point in POINTS:
        few = "" if hits[point] == expected else f"hit {hits[point]} times, not {expected}"
        said = "; ".join(filter(None, [few, *points.judged[point][:2]]))
        held = held and not said
        print(f"  {point:<28} {hits[point]:>4}  {said or 'every run ended right'}")  # noqa: T201
    return held
