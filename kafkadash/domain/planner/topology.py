"""A cluster as planning sees it, and its interchange format (``manage.py export-topology``).

None is not known and never 0: a rack that no broker names, a size nobody could read, a disk whose total Kafka does not
tell (before 3.3, KIP-827).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkadash.domain.rack_spread import racks_known


@dataclass(frozen=True, slots=True)
class Directory:
    """A log directory: bytes in all and in use, None where not known."""

    path: str
    total_bytes: int | None = None
    used_bytes: int | None = None
    cordoned: bool = False


@dataclass(frozen=True, slots=True)
class Broker:
    """``alive`` is registered and not away; ``fenced`` registered but not let in (KRaft); ``silent`` does not
    answer, although the controllers have it alive.
    """

    id: int
    rack: str | None = None
    alive: bool = True
    fenced: bool = False
    dirs: tuple[Directory, ...] = ()
    silent: bool = False

    @property
    def disk_bytes(self) -> int | None:
        """Of all its directories; None where one does not tell."""
        totals = [directory.total_bytes for directory in self.dirs]
        return sum(t for t in totals if t is not None) if totals and None not in totals else None

    @property
    def used_bytes(self) -> int | None:
        used = [directory.used_bytes for directory in self.dirs]
        return sum(u for u in used if u is not None) if used and None not in used else None

    def rooms(self, limit: float) -> tuple[int, ...] | None:
        """Bytes that each directory which takes replicas may still be given below ``limit`` (0 to 1) of its total.

        None where one does not tell. Kafka chooses the directory, so what all of them have together is an upper bound.
        """
        rooms = []
        for directory in self.dirs:
            if not directory.cordoned:
                if directory.total_bytes is None or directory.used_bytes is None:
                    return None
                rooms.append(max(0, int(limit * directory.total_bytes) - directory.used_bytes))
        return tuple(rooms) if self.dirs else None

    def room(self, limit: float) -> int | None:
        """Of all of them together."""
        rooms = self.rooms(limit)
        return None if rooms is None else sum(rooms)

    @property
    def cordoned(self) -> bool:
        """Fully: not one directory takes new replicas (KIP-1066)."""
        return bool(self.dirs) and all(directory.cordoned for directory in self.dirs)

    @property
    def eligible(self) -> bool:
        """May be given replicas."""
        return self.up and not self.cordoned

    @property
    def up(self) -> bool:
        return self.alive and not self.fenced and not self.silent


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition; ``replicas`` in order, the first is the preferred leader. ``adding`` are in a running move."""

    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...] = ()
    leader: int | None = None
    size_bytes: int | None = None
    bytes_in_per_s: float | None = None
    moving: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """``id`` is Kafka's topic id, '' before Kafka 2.8; ``min_isr`` is min.insync.replicas in force."""

    name: str
    partitions: tuple[Partition, ...]
    id: str = ""
    internal: bool = False
    min_isr: int | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """Brokers by id and topics by name. ``kafka_id`` is Kafka's id of the cluster."""

    brokers: Mapping[int, Broker] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    kafka_id: str = ""

    @property
    def racks(self) -> dict[int, str]:
        """Registered broker → rack; empty where racks are not judged: one names none, or there is one rack only."""
        named = {broker.id: broker.rack for broker in self.brokers.values() if broker.alive}
        return {id_: rack for id_, rack in named.items() if rack is not None} if racks_known(named.values()) else {}
