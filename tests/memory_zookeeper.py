"""Znodes in memory, read as a session with an ensemble reads them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kafkadash.kafka.api import KafkaFailure, ZooKeeperConnection
from kafkadash.kafka.znodes import CLUSTER_ID, ChangeNotice, ZNode, check_cluster


@dataclass
class MemoryZooKeeper:
    """``failure`` is raised instead of a session. Times are those that a test writes a znode with."""

    znodes: dict[str, ZNode] = field(default_factory=dict)
    failure: KafkaFailure | None = None
    opened: list[ZooKeeperConnection] = field(default_factory=list)
    _zxids: Iterator[int] = field(default_factory=lambda: itertools.count(0x100))

    def write(self, path: str, content: object, ms: int = 0) -> ZNode:
        """Create it, or set its data, which keeps czxid and ctime."""
        known, zxid = self.znodes.get(path), next(self._zxids)
        data = json.dumps(content).encode()
        created, version = (known.created_ms, known.version + 1) if known else (ms, 0)
        self.znodes[path] = ZNode(path, data, known.czxid if known else zxid, created, ms, version)
        return self.znodes[path]

    def identify(self, kafka_id: str) -> None:
        self.write(CLUSTER_ID, {"version": "1", "id": kafka_id})

    @contextmanager
    def open(self, connection: ZooKeeperConnection, *, deadline: float) -> Iterator[MemoryZooKeeper]:
        self.opened.append(connection)
        if self.failure is not None:
            raise self.failure
        check_cluster(self, connection)
        yield self

    def replace(self, znode: ZNode, data: bytes, notice: ChangeNotice) -> bool:
        known = self.znodes.get(znode.path)
        if known is None or known.version != znode.version:
            return False
        self.write(znode.path, json.loads(data))
        self.write(f"{notice.prefix}{known.version:010}", json.loads(notice.data))
        return True

    def read(self, paths: Sequence[str]) -> Sequence[ZNode | None]:
        return [self.znodes.get(path) for path in paths]

    def extend(self, seconds: float) -> None:
        """Nothing here takes time."""

    def children(self, path: str) -> Sequence[str]:
        below = f"{path}/"
        return sorted({each.removeprefix(below).partition("/")[0] for each in self.znodes if each.startswith(below)})
