"""The approved content of a change: the rows of a plan in canonical form, the run options, and the digest of both.

The artifact is named by the SHA-256 of its canonical JSON. A request is named by the digest of the artifact, the
options and Kafka's cluster id. Sizes and estimates are part of neither, so that equal content has equal names.
``PlanErrorCode`` and ``UnfitReason`` are the codes of problems and notices of plans and of the requests for them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from kafkadash.core.errors import UserError


class PlanErrorCode(StrEnum):
    """Codes; people search for the values."""

    # A request that cannot be planned, or about which something is to be known
    NO_BROKER_NAMED = "no-broker-named"
    BROKERS_UNKNOWN = "brokers-unknown"
    TARGETS_UNKNOWN = "targets-unknown"
    ALL_WOULD_BE_DRAINED = "all-would-be-drained"
    NO_TARGET = "no-target"
    NOTHING_TO_DRAIN = "nothing-to-drain"
    HOLDS_NOTHING = "holds-nothing"
    TOO_FEW_BROKERS = "too-few-brokers"
    RACKS_MIXED = "racks-mixed"
    LAST_OF_A_RACK = "last-of-a-rack"
    LEADER_MISSING = "leader-missing"
    MOVES_ALREADY = "moves-already"
    DISK_LIMIT = "disk-limit"
    DISK_LIMIT_OF_A_DIRECTORY = "disk-limit-of-a-directory"
    DISK_UNJUDGED = "disk-unjudged"
    SIZE_UNJUDGED = "size-unjudged"
    ALL_AS_ASKED = "all-as-asked"
    SOME_AS_ASKED = "some-as-asked"
    PARTITION_UNKNOWN = "partition-unknown"
    TOPIC_UNKNOWN = "topic-unknown"
    BROKER_UNKNOWN = "broker-unknown"
    BROKER_UNFIT = "broker-unfit"
    KEPT_ON_ONE_AWAY = "kept-on-one-away"
    OTHER_FACTOR = "other-factor"
    DIRECTORY_UNKNOWN = "directory-unknown"
    DIRECTORIES_ONLY = "directories-only"
    DIRECTORY_OF_ONE_THAT_STAYS = "directory-of-one-that-stays"
    NO_BROKERS_TO_ADD = "no-brokers-to-add"
    NO_BROKERS_TO_REPLACE = "no-brokers-to-replace"
    NO_REPLACEMENTS = "no-replacements"
    REPLACED_BY_ITSELF = "replaced-by-itself"
    NO_FACTOR = "no-factor"
    FACTOR_TOO_LOW = "factor-too-low"
    FACTOR_TOO_HIGH = "factor-too-high"
    PATTERN_WRONG = "pattern-wrong"
    NO_TOPIC_CHOSEN = "no-topic-chosen"
    ALL_TOPICS_EXCLUDED = "all-topics-excluded"
    TOPICS_UNKNOWN = "topics-unknown"
    EPS_OUTSIDE = "eps-outside"
    DISK_LIMIT_OUTSIDE = "disk-limit-outside"
    DISK_LIMIT_PASSED = "disk-limit-passed"
    MOST_REPLICAS_TOO_LOW = "most-replicas-too-low"
    GONE_LEFT_OUT = "gone-left-out"
    NOTHING_LEFT_TO_FINISH = "nothing-left-to-finish"

    # A placement that cannot be had, or not as it was asked for
    KEEPS_MORE_THAN_ALLOWED = "keeps-more-than-allowed"
    NO_ROOM_AT_THE_MAXIMUM = "no-room-at-the-maximum"
    MOVING_LEFT_OUT = "moving-left-out"
    AS_EVEN_AS_POSSIBLE = "as-even-as-possible"
    LEFT_ON_ONE_DOWN = "left-on-one-down"
    REPLACEMENT_HOLDS_IT = "replacement-holds-it"
    OUTSIDE_FOR_A_LARGE_ONE = "outside-for-a-large-one"
    OUTSIDE_FOR_THE_REST = "outside-for-the-rest"
    OUTSIDE_AND_STUCK = "outside-and-stuck"
    MORE_OUTSIDE = "more-outside"

    # The planner, and stored plans
    PLANNER_OUT_OF_MEMORY = "planner-out-of-memory"
    PLAN_OF_ANOTHER_FORMAT = "plan-of-another-format"
    PLAN_NOT_READABLE = "plan-not-readable"


NOTHING_TO_MOVE = frozenset(
    {PlanErrorCode.NOTHING_TO_DRAIN, PlanErrorCode.ALL_AS_ASKED, PlanErrorCode.NOTHING_LEFT_TO_FINISH}
)
"""The cluster is as it was asked for already."""


class UnfitReason(StrEnum):
    """Codes of why a broker can be given no replicas."""

    AWAY = "away"
    FENCED = "fenced"
    SILENT = "silent"
    CORDONED = "cordoned"


FORMAT = 1

ANY_DIRECTORY = "any"
"""Kafka's word in its own files for a replica whose log directory the broker chooses."""


class BadPlan(UserError):
    """These bytes are no plan of a format known here."""


class ReplicaChange:
    """Change from the current to the target replicas of one partition, both in order."""

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
class PartitionMove(ReplicaChange):
    """Move of one partition: ``current`` replicas in order as the plan expects them, ``target`` replicas in order.

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
    def back(self) -> PartitionMove:
        """The row of the way back: the original replicas in their order. Directories are not restored."""
        return replace(self, current=self.target, target=self.current, log_dirs=())


@dataclass(frozen=True, slots=True)
class RunOptions:
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
        """Return what the digest covers: the bounds of the throttle, not the rate at which the throttle starts.

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


def canonical_bytes(rows: Iterable[PartitionMove]) -> bytes:
    """The artifact: JSON with sorted rows and no blanks; the same rows in any order give the same bytes.

    Format 1: ``{"format":1,"rows":[[topic, topic id, partition, [current], [target], [log dirs]], …]}``.
    """
    packed = [
        (row.topic, row.topic_id, row.partition, row.current, row.target, row.log_dirs)
        for row in sorted(rows, key=lambda row: (row.topic, row.partition))
    ]
    return _encode_json({"format": FORMAT, "rows": packed})


def read_rows(artifact: bytes) -> tuple[PartitionMove, ...]:
    """The rows of ``canonical_bytes`` bytes, sorted by topic and partition. Raises BadPlan."""
    try:
        parsed = json.loads(artifact)
        if parsed["format"] != FORMAT:
            raise BadPlan(PlanErrorCode.PLAN_OF_ANOTHER_FORMAT, found=parsed["format"], own=FORMAT)
        return tuple(
            PartitionMove(topic, topic_id, partition, tuple(current), tuple(target), tuple(dirs))
            for topic, topic_id, partition, current, target, dirs in parsed["rows"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BadPlan(PlanErrorCode.PLAN_NOT_READABLE, error=str(error)) from error


def hash_artifact(artifact: bytes) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(artifact).hexdigest()


def compute_digest(kafka_id: str, artifact_sha256: str, options: Mapping[str, Any] | RunOptions) -> str:
    """Return the digest of everything approved: 64 hexadecimal digits, equal for equal content in every process."""
    own = options.as_json() if isinstance(options, RunOptions) else dict(options)
    return hash_artifact(
        _encode_json({"format": FORMAT, "cluster": kafka_id, "artifact": artifact_sha256, "options": own})
    )


def way_back(rows: Sequence[PartitionMove]) -> tuple[PartitionMove, ...]:
    """The rollback of a plan that was run whole."""
    return tuple(row.back for row in rows)


def _encode_json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
