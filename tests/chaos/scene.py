"""Where chaos happens: a stack with five brokers in racks and three controllers, two executors, disks that can be full
and clocks that can jump.

Broker 1 shares rack a with 2 and 3, so what it holds goes there. Both disks of broker 2 are small file systems of their
own, if this process may mount such; else a limit of the kernel on the size of a broker's files stands for a full disk.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kafkadash.embedded.files import write_atomically
from kafkadash.playground.load import MIB, Topic, load
from tests.agreement.tools import Tools
from tests.stack.stack import Shape, Stack
from tests.waiting import wait_until

RACKS = ("a", "a", "a", "b", "c")
SOURCE, DESTINATIONS, KEEPERS = 1, (2, 3), (4, 5)
SMALL_DISK = 2
DISK_BYTES = 160 * MIB
# What is read of the cluster is read more often than usual, so that a run is proposed, approved and started in seconds.
PACE = {
    "INTERVAL_METADATA": "5",
    "INTERVAL_LOG_DIRS": "5",
    "INTERVAL_CONFIGS": "5",
    "INTERVAL_REASSIGNMENTS": "5",
    "INTERVAL_QUORUM": "5",
}
TOPICS, PARTITIONS = 4, 2
ELSEWHERE = "elsewhere"
CLOCK = Path(__file__).with_name("clock")
JUMPING = ("worker-execute", "worker-execute-2", "worker-tick", "beat", "worker-collect")
IN_SYNC_S = 90.0


@dataclass
class Scene:
    """``say`` gets a line for each thing that happens; ``mib`` is the size of each of eight partitions."""

    folder: Path
    say: Callable[[str], None]
    mib: int = 3
    topics: tuple[str, ...] = ()
    faults_told: Counter[str] = field(default_factory=Counter)
    _mounted: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stack = self._new_stack()
        self.tools = Tools(self.stack.playground)
        self.lock = threading.Lock()

    def start(self) -> None:
        """Returns when the product has read the cluster."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.stack.environment[""] = {**PACE, "LOG_LEVEL": "INFO"}
        for name in JUMPING:
            self.jump(name, 0)
            self.stack.environment[name] = {"PYTHONPATH": str(CLOCK), "KAFKADASH_TEST_CLOCK": str(self._clock(name))}
        self.stack.start()
        self._small_disks()
        load(self.stack.playground.bootstrap, [Topic(ELSEWHERE, placement=[(4, 5), (5, 4)], fill_bytes=2 * MIB)])
        self.stack.provision()

    def stop(self) -> None:
        self.stack.stop()
        for folder in self._mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)
        self._mounted.clear()

    def remove(self) -> None:
        self.stop()
        self.stack.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def renew(self, keep: Path) -> None:
        """Puts all of it aside, for whoever looks what went wrong, and begins anew at the same addresses."""
        self.stop()
        keep.mkdir(parents=True, exist_ok=True)
        for folder in (self.stack.folder, self.stack.playground.folder):
            if folder.exists():
                folder.rename(keep / folder.name)
        self.stack = self._new_stack()
        self.tools = Tools(self.stack.playground)
        keys = keep / self.stack.folder.name / "environment"
        if keys.exists():
            self.stack.folder.mkdir(mode=0o755)
            shutil.copy(keys, self.stack.folder / "environment")
        self.topics, self.faults_told = (), Counter()
        self.start()

    def fresh_topics(self, run: int) -> None:
        """Topics of this run alone, all led by the broker that will be drained, in sync; those of the last are gone."""
        wait_until(self.well, "every replica is in sync", IN_SYNC_S)
        if self.topics:
            admin = AdminClient({"bootstrap.servers": self.stack.playground.bootstrap, "log_level": 0})
            for deleted in admin.delete_topics(list(self.topics)).values():
                with contextlib.suppress(KafkaException):  # somebody deleted it, as faults do
                    deleted.result(timeout=30)
        placement = [(SOURCE, *KEEPERS), (SOURCE, *reversed(KEEPERS))][:PARTITIONS]
        topics = [
            Topic(f"chaos-{run}-{number}", placement=placement, fill_bytes=PARTITIONS * self.mib * MIB)
            for number in range(1, TOPICS + 1)
        ]
        load(self.stack.playground.bootstrap, topics)
        self.topics = tuple(topic.name for topic in topics)

    def well(self) -> bool:
        """Every broker is there and every replica in sync, as a broker that is up says."""
        with contextlib.suppress(OSError, StopIteration, AssertionError):
            return all(not self.tools.fenced(node) for node in range(1, len(RACKS) + 1)) and self.tools.in_sync()
        return False

    def node(self, broker: int) -> str:
        return f"kafka-{broker}"

    def leader(self) -> str:
        """The name of the active controller's process."""
        return self.node(self.tools.quorum_status().leader_id)

    # --- clocks ---

    def jump(self, name: str, seconds: int) -> None:
        """From now on the wall clock of this process is so many seconds off; its monotonic clock goes on as it was."""
        write_atomically(self._clock(name), f"{seconds:+d}\n")

    def _clock(self, name: str) -> Path:
        return self.folder / f"clock-{name}"

    # --- disks ---

    @property
    def mounts(self) -> bool:
        return bool(self._mounted)

    def fill_disk(self, broker: int, adding: Sequence[str]) -> Callable[[], None]:
        """No byte more goes onto the disk of this broker that has the most of ``adding`` ("topic-partition" folders).

        Returns what makes room again and starts the broker anew, which is what brings a failed directory back.
        """
        if not self._mounted:
            pid = self.stack.pid(self.node(broker))
            assert pid is not None, f"broker {broker} is away"
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            return lambda: self._restart(broker)
        folders = self._disks()
        folder = max(folders, key=lambda each: sum((each / name).exists() for name in adding))
        ballast = folder / "ballast"
        with ballast.open("wb") as out, contextlib.suppress(OSError):
            while True:
                out.write(b"\0" * MIB)
                out.flush()

        def heal() -> None:
            ballast.unlink(missing_ok=True)
            self._restart(broker)

        return heal

    def _restart(self, broker: int) -> None:
        self.stack.kill(self.node(broker), signal.SIGKILL)

    def _disks(self) -> list[Path]:
        playground = self.stack.playground
        node = next(node for node in playground.cluster.brokers if node.node_id == SMALL_DISK)
        return playground.layout.log_dirs(playground.cluster, node)

    def _small_disks(self) -> None:
        """Both directories of one broker become file systems of their own, with what they hold."""
        with self.stack.away(self.node(SMALL_DISK)):
            for folder in self._disks():
                aside = folder.with_name(f"{folder.name}.aside")
                folder.rename(aside)
                folder.mkdir()
                command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
                if subprocess.run(command, check=False, capture_output=True).returncode == 0:
                    self._mounted.append(folder)
                shutil.copytree(aside, folder, dirs_exist_ok=True)
                shutil.rmtree(aside)
        self.stack.wait_serving(self.node(SMALL_DISK))

    def _new_stack(self) -> Stack:
        return Stack(
            self.folder / "stack",
            Shape(racks=RACKS, dirs=2, executes=2),
            say=lambda text: self.say(f"  {text}"),
        )


def now() -> datetime:
    return datetime.now(UTC)


def pause(seconds: float, unless: threading.Event) -> None:
    """Faults last for a while: this is no wait for a condition."""
    end = time.monotonic() + seconds
    unless.wait(max(0.0, end - time.monotonic()))


def may_mount() -> bool:
    """Whether this process could mount a file system, in a mount namespace of its own."""
    return (
        os.geteuid() == 0
        and subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0
    )
