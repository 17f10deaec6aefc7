"""Where chaos happens: a stack with brokers in racks, disks that can be full and clocks that can jump.

Both disks of one broker are small file systems of their own, if this process may mount such; else a limit of the kernel
on the size of a broker's files stands for a full disk.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from kafkadash.core.messages import as_message
from kafkadash.devtools.embedded.files import write_atomically
from kafkadash.devtools.embedded.process import ServerError
from kafkadash.devtools.playground.load import MIB, LoadTopic, load_topics
from tests.agreement.tools import Tools
from tests.chaos.second_installation import SecondInstallation
from tests.committed import commit_offsets
from tests.stack.stack import Shape, Stack
from tests.waiting import wait_until

DISK_BYTES = 160 * MIB
# What is read of the cluster is read more often than usual, so that a run is proposed, approved and started in seconds.
PACE = {
    "INTERVAL_METADATA": "5",
    "INTERVAL_LOG_DIRS": "5",
    "INTERVAL_CONFIGS": "5",
    "INTERVAL_REASSIGNMENTS": "5",
    "INTERVAL_QUORUM": "5",
}
PARTITIONS = 2
ELSEWHERE = "elsewhere"
WATCHERS = "watchers"
"""A group that has commits and no members."""
CLOCK = Path(__file__).with_name("clock")
IN_SYNC_S = 90.0


@dataclass(frozen=True, slots=True)
class Ground:
    """Which brokers there are. What ``source`` holds is drained: it shares its rack with ``destinations`` alone, and
    ``keepers`` have the other replicas.

    ``small_disk``: the broker whose disks can be full; None where no such fault is played. ``strikes_s``: how long
    after rows began to move a fault may wait. ``lease_s``: an executor that has not been heard for so long is replaced.
    """

    racks: tuple[str, ...]
    controllers: int
    source: int
    destinations: tuple[int, ...]
    keepers: tuple[int, ...]
    topics: int
    executes: int
    webs: int
    small_disk: int | None
    strikes_s: float
    lease_s: int

    @property
    def jumping(self) -> Sequence[str]:
        """Processes whose clocks can jump."""
        executors = ["worker-execute", *(f"worker-execute-{n}" for n in range(2, self.executes + 1))]
        return (*executors, "worker-tick", "beat", "worker-collect")

    @property
    def executors(self) -> Sequence[str]:
        return self.jumping[: self.executes]


LARGE = Ground(
    racks=("a", "a", "a", "b", "c"),
    controllers=3,
    source=1,
    destinations=(2, 3),
    keepers=(4, 5),
    topics=4,
    executes=2,
    webs=1,
    small_disk=2,
    strikes_s=14.0,
    lease_s=30,
)
# Three nodes in all: the source is the controller too.
SMALL = Ground(
    racks=("a", "a", "b"),
    controllers=1,
    source=1,
    destinations=(2,),
    keepers=(3,),
    topics=2,
    executes=1,
    webs=0,
    small_disk=None,
    strikes_s=1.0,
    lease_s=6,
)


@dataclass
class Scene:
    """``say`` gets a line for each thing that happens; ``mib`` is the size of each partition that is drained."""

    folder: Path
    say: Callable[[str], None]
    mib: int = 3
    ground: Ground = LARGE
    topics: tuple[str, ...] = ()
    faults_told: Counter[str] = field(default_factory=Counter)
    _mounted: list[Path] = field(default_factory=list)
    _second: SecondInstallation | None = None

    def __post_init__(self) -> None:
        self.stack = self._new_stack()
        self.tools = Tools(self.stack.playground)
        self.lock = threading.Lock()

    def start(self) -> None:
        """Returns when the product has read the cluster."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.stack.environment[""] = {**PACE, "LOG_LEVEL": "INFO", "LEASE_TTL": str(self.ground.lease_s)}
        for name in self.ground.jumping:
            self.jump(name, 0)
            self.stack.environment[name] = {"PYTHONPATH": str(CLOCK), "KAFKADASH_TEST_CLOCK": str(self._clock(name))}
        self.stack.start()
        if self.ground.small_disk is not None:
            self._small_disks(self.ground.small_disk)
        keepers = self.ground.keepers
        elsewhere = LoadTopic(ELSEWHERE, placement=[keepers, keepers[::-1]], fill_bytes=2 * MIB)
        load_topics(self.stack.playground.bootstrap, [elsewhere])
        if self.has_groups:
            self._commit()
        self.stack.provision()

    def stop(self) -> None:
        if self._second is not None:
            self._second.remove()
            self._second = None
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
        source, keepers = self.ground.source, self.ground.keepers
        placement = [(source, *keepers), (source, *reversed(keepers))][:PARTITIONS]
        topics = [
            LoadTopic(f"chaos-{run}-{number}", placement=placement, fill_bytes=PARTITIONS * self.mib * MIB)
            for number in range(1, self.ground.topics + 1)
        ]
        load_topics(self.stack.playground.bootstrap, topics)
        self.topics = tuple(topic.name for topic in topics)

    def well(self) -> bool:
        """Every broker is there and every replica in sync, as a broker that is up says."""
        brokers = range(1, len(self.ground.racks) + 1)
        with contextlib.suppress(OSError, StopIteration, AssertionError):
            return not any(self.tools.fenced(broker) for broker in brokers) and self.tools.in_sync()
        return False

    def second_installation(self) -> SecondInstallation:
        """On the same cluster. Raises ServerError where this machine has no room for one."""
        if self.ground is SMALL:
            raise ServerError(as_message("there is one installation only"))
        if self._second is None:
            cluster = self.stack.playground.cluster
            folder = self.folder / "second"
            self._second = SecondInstallation(folder, cluster.bootstrap, cluster.cluster_id, PACE)
        return self._second

    def node(self, broker: int) -> str:
        return f"kafka-{broker}"

    @property
    def controllers(self) -> list[str]:
        """Processes that are controllers and nothing else."""
        cluster = self.stack.playground.cluster
        return [node.name for node in cluster.nodes if node not in cluster.brokers]

    @property
    def has_groups(self) -> bool:
        """Offsets of groups have three replicas: on three brokers none could be drained."""
        return len(self.ground.racks) > 3

    def any_broker(self) -> str:
        """host:port of one that is up. Raises OSError where none is."""
        for address in self.stack.playground.bootstrap.split(","):
            host, port = address.rsplit(":", 1)
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=2):
                return address
        raise OSError("no broker accepts a connection")

    def _commit(self) -> None:
        servers = {"bootstrap.servers": self.stack.playground.bootstrap, "log_level": 0}
        consumer = Consumer({**servers, "group.id": WATCHERS, "enable.auto.commit": False})
        commit_offsets(consumer, [TopicPartition(ELSEWHERE, 0, 1)])
        consumer.close()

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
        folders = self._disks(broker)
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

    def _disks(self, broker: int) -> list[Path]:
        playground = self.stack.playground
        node = next(node for node in playground.cluster.brokers if node.node_id == broker)
        return playground.layout.log_dirs(playground.cluster, node)

    def _small_disks(self, broker: int) -> None:
        """Both directories of this broker become file systems of their own, with what they hold."""
        with self.stack.away(self.node(broker)):
            for folder in self._disks(broker):
                aside = folder.with_name(f"{folder.name}.aside")
                folder.rename(aside)
                folder.mkdir()
                command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
                if subprocess.run(command, check=False, capture_output=True).returncode == 0:
                    self._mounted.append(folder)
                shutil.copytree(aside, folder, dirs_exist_ok=True)
                shutil.rmtree(aside)
        self.stack.wait_serving(self.node(broker))

    def _new_stack(self) -> Stack:
        ground = self.ground
        return Stack(
            self.folder / "stack",
            Shape(ground.racks, ground.controllers, dirs=2, webs=ground.webs, executes=ground.executes),
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
