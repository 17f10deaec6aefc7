"""`make chaos`: runs of a drain and its rollback on a real cluster, while whatever can go wrong goes wrong.

Kafka's own tools, the cluster's metadata log and the audit say at the end of each whether anything was lost, doubled or
left behind (``referee``). Prints a table of faults and what became of them; exit code 0 only if nothing was. With
``--write`` the table goes into docs/reliability.md. What a run that failed leaves is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos import table
from tests.chaos.scene import LARGE, SMALL, Scene, may_mount
from tests.embedded_plugin import RUN_FOLDER
from tests.tool_server import ToolServer, tools_share_a_process

if TYPE_CHECKING:  # they need Django, which needs the stack's addresses
    from tests.chaos.faults import Fault

ALONE = "KAFKADASH_CHAOS_ALONE"
MOST_PER_RUN = 4
LEAST_WITHIN = 0.6
MOST_RUNS_BEYOND = 1.6


@dataclass(slots=True)
class Played:
    records: list[table.Record] = field(default_factory=list)
    runs: int = 0
    failed: int = 0


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    _in_a_namespace_of_its_own(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    root = Path(tempfile.mkdtemp(prefix="kafkadash-chaos-"))
    root.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    with (root / "journal").open("a", encoding="utf-8") as journal:
        began = time.monotonic()

        def say(text: str) -> None:
            line = f"{time.monotonic() - began:7.1f} {text}"
            for out in (sys.stdout, journal):
                out.write(f"{line}\n")
                out.flush()

        say(f"chaos in {root}, seed {options.seed}, {options.faults} faults")
        with _tools(root):
            good = _play(options, root, say)
    if good:
        shutil.rmtree(root, ignore_errors=True)
        return 0
    sys.stdout.write(f"What is left of it is kept in {root}.\n")
    return 1


@contextlib.contextmanager
def _tools(root: Path) -> Iterator[None]:
    """One process for Kafka's tools: that of the test run which plays this game, or one of its own."""
    run_folder = os.environ.get(RUN_FOLDER)
    try:
        with tools_share_a_process(Path(run_folder or root)):
            yield
    finally:
        if run_folder is None:
            ToolServer(root).stop()


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--per-run", type=int, default=MOST_PER_RUN, help="faults of a drain and its rollback")
    parser.add_argument("--mib", type=int, default=3, help="of each partition that is drained")
    parser.add_argument("--small", action="store_true", help="three brokers, of which one is the controller too")
    parser.add_argument("--only", action="append", default=[], help="names of faults, or parts of them")
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    return parser.parse_args(arguments)


def _in_a_namespace_of_its_own(arguments: Sequence[str]) -> None:
    """File systems that are mounted for a disk that is full are seen by nobody else, and end with this process."""
    if os.environ.get(ALONE) or not may_mount():
        return
    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-m", "tests.chaos", *arguments]
    os.execvpe(command[0], command, {**os.environ, ALONE: "yes"})  # noqa: S606  the same program once more


def _play(options: argparse.Namespace, root: Path, say: Callable[[str], None]) -> bool:
    scene = Scene(root / "scene", say, options.mib, SMALL if options.small else LARGE)
    try:
        scene.start()
        os.environ.update(scene.stack.addresses())
        os.environ |= {"LOG_LEVEL": "ERROR", "DJANGO_SETTINGS_MODULE": "kafkadash.settings"}
        import django

        django.setup()
        return _runs(options, scene, root, say)
    finally:
        scene.stop()


def _runs(options: argparse.Namespace, scene: Scene, root: Path, say: Callable[[str], None]) -> bool:
    from tests.chaos.faults import FAULTS

    chance = random.Random(options.seed)
    possible = [f for f in FAULTS if not options.only or any(part in f.name for part in options.only)]
    played = Played()
    try:
        _play_all(options, scene, root, say, chance, possible, played)
    finally:  # also of a game that was broken off
        within = table.within(played.records)
        head = (
            f"Seed {options.seed}, {datetime.now(UTC):%-d %B %Y}: {len(played.records)} of {options.faults} faults "
            f"struck in {played.runs} runs of a drain with its rollback, {within} of them between the first intent and "
            f"the last cleared throttle; {played.runs - played.failed} of {played.runs} runs hold."
        )
        text = [head, "", *table.lines(played.records, [fault.name for fault in FAULTS])]
        for line in text:
            say(line)
    if options.write:
        table.write(text)
    enough = len(played.records) >= options.faults and within >= LEAST_WITHIN * options.faults
    return enough and not played.failed


def _play_all(
    options: argparse.Namespace,
    scene: Scene,
    root: Path,
    say: Callable[[str], None],
    chance: random.Random,
    possible: Sequence[Fault],
    played: Played,
) -> None:
    """Runs until so many faults have struck; those that found nothing to strike are dealt again."""
    from tests.chaos.game import Game

    deck: list[Fault] = []
    most_runs = int(MOST_RUNS_BEYOND * options.faults / options.per_run) + 2
    for number in range(1, most_runs + 1):
        if len(played.records) >= options.faults:
            break
        while len(deck) < options.per_run:
            more = list(possible)
            chance.shuffle(more)
            deck += more
        few = min(options.per_run, options.faults - len(played.records))
        dealt, deck = deck[:few], deck[few:]
        say(f"run {number}: {', '.join(fault.name for fault in dealt)}")
        game = Game(scene, number, random.Random(chance.randrange(2**32)), say)
        game.play(dealt)
        deck = [*game.unplayed, *deck]
        played.runs += 1
        played.records += game.records
        for problem in game.problems:
            say(f"run {number} WRONG: {problem}")
        holds = "is wrong" if game.problems else "holds"
        say(f"run {number} {holds}: {len(played.records)} of {options.faults} faults so far")
        if game.problems:
            played.failed += 1
            scene.renew(root / f"run-{number}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
