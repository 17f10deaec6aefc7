"""What is approved: the rows of a plan in canonical form, the options it runs under, and the digest over both.

The artifact is named by the sha256 of its canonical JSON, and a request by the digest of the artifact, the options and
Kafka's own id of the cluster; sizes and estimates are part of neither, so that equal content has equal names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kafkadash.domain.refusals import lookups as said

FORMAT = 1

ANY_DIRECTORY = "any"
"""Kafka's word in its own files for a replica whose log directory the broker chooses."""


class BadPlan(Exception):
    """These bytes are no plan of a format known here; ``str()`` says what is wrong."""


class Replaced:
    """What follows from the current and the target replicas of one partition, both in order."""

    __slots__ = ()
    topic: str
    partition: int
    current: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def adding(self) -> tuple[int, ...]:
        """In the order of the target."""
        return tuple(broker for broker in self.target if broker not in self.current)

    @property
    def removing(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.current if broker not in self.target)


@dataclass(frozen=True, slots=True)
class Row(Replaced):
    """One partition: ``current`` replicas in order as the plan expects them, ``target`` replicas in order.

    ``topic_id`` is Kafka's, '' before Kafka 2.8. ``log_dirs``: one per target replica, a path or "any"; empty where no
    directory is asked for.
    """

    topic: str
    topic_id: str
    partition: int
    current: tuple[int, ...]
    target: tuple[int, ...]
    log_dirs: tuple[str, ...] = ()

    @property
    def directories(self) -> tuple[tuple[int, str], ...]:
        """(broker, path) of each new replica whose log directory is chosen."""
        return tuple((b, path) for b, path in self._directories_named if b not in self.current)

    @property
    def kept_directories(self) -> tuple[tuple[int, str], ...]:
        """(broker, path) of each replica that stays and for which the plan names a directory nevertheless."""
        return tuple((b, path) for b, path in self._directories_named if b in self.current)

    @property
    def _directories_named(self) -> list[tuple[int, str]]:
        pairs = zip(self.target, self.log_dirs, strict=False)
        return [(broker, path) for broker, path in pairs if path != ANY_DIRECTORY]

    @property
    def only_reorders(self) -> bool:
        """No data moves: the same replicas in another order."""
        return self.current != self.target and set(self.current) == set(self.target)

    @property
    def back(self) -> Row:
        """The row of the way back: the original replicas in their order. Directories are not restored."""
        return replace(self, current=self.target, target=self.current, log_dirs=())


@dataclass(frozen=True, slots=True)
class Options:
    """How a plan may be run; part of what is approved.

    Rates are bytes per second per broker and direction; ``throttle`` is where it starts, and may be changed between
    ``throttle_min`` and ``throttle_max`` while it runs. ``per_broker`` (in and out counted apart) and ``per_cluster``
    limit the moves in parallel. The window is two instants in UTC, ISO 8601 with seconds and ``Z``; '' is open.
    ``may_lose_racks``: partitions may be spread over racks worse than before.
    """

    throttle: int
    throttle_min: int
    throttle_max: int
    per_broker: int = 5
    per_cluster: int = 50
    not_before: str = ""
    not_after: str = ""
    elect_leaders: bool = True
    change_rf: bool = False
    may_lose_racks: bool = False

    def as_json(self) -> dict[str, Any]:
        """What the digest covers: the bounds of the throttle, not the rate it starts at.

        Racks stand there only where they may be lost, so that what was approved before this was known keeps its digest.
        """
        own: dict[str, Any] = {
            "throttle": [self.throttle_min, self.throttle_max],
            "parallel": [self.per_broker, self.per_cluster],
            "window": [self.not_before, self.not_after],
            "elect_leaders": self.elect_leaders,
            "change_rf": self.change_rf,
        }
        return {**own, "may_lose_racks": True} if self.may_lose_racks else own


def canonical(rows: Iterable[Row]) -> bytes:
    """The artifact: JSON with sorted rows and no blanks; the same rows in any order give the same bytes.

    Format 1: ``{"format":1,"rows":[[topic, topic id, partition, [current], [target], [log dirs]], …]}``.
    """
    packed = [
        (row.topic, row.topic_id, row.partition, row.current, row.target, row.log_dirs)
        for row in sorted(rows, key=lambda row: (row.topic, row.partition))
    ]
    return _compact({"format": FORMAT, "rows": packed})


def read(artifact: bytes) -> tuple[Row, ...]:
    """The rows of ``canonical`` bytes, sorted by topic and partition. Raises BadPlan."""
    try:
        parsed = json.loads(artifact)
        if parsed["format"] != FORMAT:
            raise BadPlan(said.PLAN_OF_ANOTHER_FORMAT(found=parsed["format"], own=FORMAT))
        return tuple(
            Row(topic, topic_id, partition, tuple(current), tuple(target), tuple(dirs))
            for topic, topic_id, partition, current, target, dirs in parsed["rows"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BadPlan(said.PLAN_NOT_READABLE(error=error)) from error


def sha256(artifact: bytes) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(artifact).hexdigest()


def digest(kafka_id: str, artifact_sha256: str, options: Mapping[str, Any] | Options) -> str:
    """Of everything that is approved: 64 hexadecimal digits, equal for equal content in every process."""
    own = options.as_json() if isinstance(options, Options) else dict(options)
    return sha256(_compact({"format": FORMAT, "cluster": kafka_id, "artifact": artifact_sha256, "options": own}))


def way_back(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rollback of a plan that was run whole."""
    return tuple(row.back for row in rows)


def _compact(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
