"""Dataclasses as JSON holds them, and content that is not of the dataclass."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import ClassVar

import pytest

from kafkadash.core.json_columns import ContentMismatch, pack_dataclass, unpack_dataclass, unpack_format
from kafkadash.core.messages import CodedReason, PlainReason

pytestmark = pytest.mark.domain


class Side(StrEnum):
    LEFT = "left"


@dataclass(frozen=True)
class ShortRow:
    stored_as_list: ClassVar = True

    name: str
    at: datetime | None = None
    rate: float | None = None


@dataclass(frozen=True)
class WholeThing:
    side: Side
    rows: Mapping[tuple[str, int], ShortRow] = field(default_factory=dict)
    brokers: frozenset[int] = frozenset()
    left_s: float = 0.0
    why: CodedReason | None = None


THING = WholeThing(
    Side.LEFT,
    {("orders", 0): ShortRow("a", datetime(2026, 11, 25, tzinfo=UTC), 1.5), ("orders", 1): ShortRow("b")},
    frozenset({3, 1}),
    math.inf,
    PlainReason("no-leader"),
)


def test_dataclass__packed_and_unpacked__is_the_same() -> None:
    stored = json.loads(json.dumps(pack_dataclass(THING), allow_nan=False))

    assert stored["rows"][1] == [["orders", 1], ["b", None, None]]
    assert unpack_dataclass(WholeThing, stored) == THING


@pytest.mark.parametrize(
    "change",
    [
        {"side": "above"},
        {"rows": [[["orders", 0], []]]},
        {"rows": [[["orders", 0], ["a", "yesterday", None]]]},
        {"rows": 7},
        {"brokers": ["three"]},
        {"why": {}},
    ],
)
def test_content_of_another_shape__is_refused(change: dict[str, object]) -> None:
    stored = {**pack_dataclass(THING, format_number=1), **change}

    with pytest.raises(ContentMismatch):
        unpack_dataclass(WholeThing, stored)
    assert unpack_format(WholeThing, stored, 1) is None


@pytest.mark.parametrize("values", [["a"], ["a", None], ["a", None, None, "later"]])
def test_row_of_another_version__lacks_new_fields_or_has_more__is_read(values: list[object]) -> None:
    stored = {**pack_dataclass(THING), "rows": [[["orders", 0], values]]}

    assert unpack_dataclass(WholeThing, stored).rows == {("orders", 0): ShortRow("a")}


def test_content_of_another_format__is_not_read() -> None:
    assert unpack_format(WholeThing, pack_dataclass(THING, format_number=1), 2) is None
