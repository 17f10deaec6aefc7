"""What keeps a request from being planned, or deserves to be said about it, with its place in the file brought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ProblemCode(StrEnum):
    """Kinds of problems and notices of a request or a file; the values are stored with the job."""

    ALL_BROKERS = "all-brokers"
    ALREADY_MOVING = "already-moving"
    AS_ASKED = "as-asked"
    BAD_TOPOLOGY = "bad-topology"
    BYTE_ORDER_MARK = "byte-order-mark"
    CHECKER = "checker"
    DIRECTORIES_ONLY = "directories-only"
    DISK_LIMIT = "disk-limit"
    DISK_UNKNOWN = "disk-unknown"
    DISK_USE = "disk-use"
    DUPLICATE_FIELD = "duplicate-field"
    DUPLICATE_PARTITION = "duplicate-partition"
    EMPTY = "empty"
    EPS = "eps"
    FACTOR = "factor"
    GONE = "gone"
    HOLDS_NOTHING = "holds-nothing"
    KEPT_AWAY = "kept-away"
    KEPT_DIRECTORY = "kept-directory"
    LAST_OF_A_RACK = "last-of-a-rack"
    LEFT_ON_ONE_DOWN = "left-on-one-down"
    LEFT_OUT = "left-out"
    MEMORY = "memory"
    MIXED_RACKS = "mixed-racks"
    MOST_REPLICAS = "most-replicas"
    NO_BROKER = "no-broker"
    NO_FACTOR = "no-factor"
    NO_LEADER = "no-leader"
    NO_REPLACEMENT = "no-replacement"
    NO_TARGET = "no-target"
    NO_TOPIC = "no-topic"
    NO_VERSION = "no-version"
    NOT_JSON = "not-json"
    NOT_UTF_8 = "not-utf-8"
    NOTHING_TO_DO = "nothing-to-do"
    OTHER_SHAPE = "other-shape"
    OUTSIDE_EPS = "outside-eps"
    REGULAR_EXPRESSION = "regular-expression"
    REPLACED_BY_ITSELF = "replaced-by-itself"
    REPLICAS_PER_BROKER = "replicas-per-broker"
    REPLICATION_FACTOR = "replication-factor"
    SIZE_UNKNOWN = "size-unknown"
    TOO_FEW_BROKERS = "too-few-brokers"
    TOO_MANY = "too-many"
    UNEVEN = "uneven"
    UNFIT_BROKER = "unfit-broker"
    UNKNOWN_BROKER = "unknown-broker"
    UNKNOWN_DIRECTORY = "unknown-directory"
    UNKNOWN_FIELD = "unknown-field"
    UNKNOWN_PARTITION = "unknown-partition"
    UNKNOWN_TOPIC = "unknown-topic"
    WRONG_VERSION = "wrong-version"


@dataclass(frozen=True, slots=True)
class Problem:
    """One sentence for a person. ``line`` and ``column`` count from 1, None where there is no file or no such place."""

    code: ProblemCode | str
    sentence: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        if self.line is None:
            return self.sentence
        place = f"Line {self.line:,}" if self.column is None else f"Line {self.line:,}, column {self.column:,}"
        return f"{place}: {self.sentence}"

    def as_json(self) -> dict[str, Any]:
        return {"code": str(self.code), "sentence": self.sentence, "line": self.line, "column": self.column}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Problem:
        return cls(stored["code"], stored["sentence"], stored["line"], stored["column"])
