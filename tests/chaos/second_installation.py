"""Another installation of the product on the same cluster, with a database of its own, that moves something too.

    second = SecondInstallation(folder, bootstrap, cluster_id)
    run = second.move("elsewhere", 0, (2, 4))     # returns when it was started there; raises ServerError
    run.wait(60)                                  # raises AssertionError where it did not end well

As a program (``python -m tests.chaos.second_installation TOPIC PARTITION BROKERS``, in its environment) this proposes,
approves and runs that move and stays until it is over. Exit code 0: nothing of its throttle is left.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkadash.core.messages import as_message
from kafkadash.devtools.embedded.process import ServerError
from tests.stack.stack import CHECKOUT, Shape, Stack
from tests.waiting import wait_until

RATE = 1_300_000
"""Of its moves, bytes per second; nobody else sets this one."""
STARTED = "started"
STARTS_S = 90.0
OWED_S = 60.0


@dataclass(frozen=True, slots=True)
class MoveThere:
    """A move of the second installation that was started."""

    process: subprocess.Popen[str]
    log: Path

    def wait(self, seconds: float) -> None:
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the second installation is not done: {_end_of(self.log)}") from None
        assert code == 0, f"the second installation says: {_end_of(self.log)}"


class SecondInstallation:
    """Started when it is first asked to move something."""

    def __init__(self, folder: Path, bootstrap: str, cluster_id: str, pace: Mapping[str, str]) -> None:
        self._stack = Stack(folder, Shape(webs=0))
        self._stack.environment[""] = {**pace, "LOG_LEVEL": "INFO"}
        self._cluster = bootstrap, cluster_id
        self._runs = False

    def move(self, topic: str, partition: int, target: Sequence[int]) -> MoveThere:
        """Raises ServerError where nothing came of it, as when the partition is being moved already."""
        if not self._runs:
            self._stack.start()
            self._stack.manage("provision_demo", *self._cluster)
            self._runs = True
        log = self._stack.folder / "logs" / f"move-{time.monotonic_ns()}.log"
        with log.open("w", encoding="utf-8") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__, topic, str(partition), ",".join(map(str, target))],
                cwd=CHECKOUT,
                env=self._stack.environment_of("command"),
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
            )
        wait_until(lambda: process.poll() is not None or STARTED in _end_of(log), f"it started ({log})", STARTS_S)
        if process.poll() not in (None, 0):
            raise ServerError(as_message(_end_of(log)))
        return MoveThere(process, log)

    def remove(self) -> None:
        if self._runs:
            self._stack.remove()
        self._runs = False


def _end_of(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace").strip()[-600:]


def main(topic: str, partition: str, brokers: str) -> int:
    """In the environment of the second installation."""
    os.environ |= {"LOG_LEVEL": "ERROR", "DJANGO_SETTINGS_MODULE": "kafkadash.settings"}
    import django

    django.setup()
    from kafkadash.changes.state_machine import OVER
    from kafkadash.execution.models import ThrottleEntry
    from tests.chaos.drain import POLL_S, People, again

    people = People(_say)
    number = people.move(topic, int(partition), [int(broker) for broker in brokers.split(",")], RATE)
    people.start(number)
    _say(STARTED)
    while people.tend(number) not in OVER:
        time.sleep(POLL_S)
    _say(people.stands(number))
    left = ThrottleEntry.objects.filter(execution__request=number).exclude(state="cleared")
    wait_until(_none(lambda: again(left.exists)), "nothing of its throttle is left", OWED_S)
    return 0


def _none(ask: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: not ask()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
