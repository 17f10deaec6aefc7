"""The way in: a refresh stores its facts for the pipeline in the transaction in which it stores everything else.

What is committed there reaches a file, also if this worker dies at once; what is not committed never was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import psycopg
from django.db import connection

from kafkadash.domain.segments import SegmentKind
from kafkadash.observe.models import Kind
from kafkadash.observe.segments.encoding import Columns, Packed, missing, pack

KINDS: Mapping[Kind, tuple[SegmentKind, ...]] = {
    Kind.REASSIGNMENTS: (SegmentKind.REASSIGNMENT,),
    Kind.QUORUM: (SegmentKind.QUORUM,),
    Kind.LOG_DIRS: (SegmentKind.BROKER, SegmentKind.REPLICA),
    Kind.GROUPS: (SegmentKind.GROUP_OFFSET,),
}
"""What each refresh of a collector gives, and what is missing when one fails."""


_INSERT = (
    "INSERT INTO observe_segmentoutbox (cluster, kind, epoch, seq, observed_at, rows, data, size, not_answered, errors,"
    " duration_ms) VALUES (%s, %s, %s, %s, %s, %s, %b, %s, %s::jsonb, %s, %s)"
)


@dataclass(frozen=True, slots=True)
class Facts:
    """Rows of one kind from one refresh, in parts that are asked for one after the other, once.

    None at all is an answer too: then the manifest says that there were no rows.
    """

    kind: SegmentKind
    parts: Iterable[Columns] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What the manifest says of a refresh; ``errors`` are sentences."""

    cluster: str
    observed_at: datetime
    duration_ms: int
    not_answered: Sequence[int] = ()
    errors: Sequence[str] = ()


def packed(facts: Iterable[Facts]) -> list[Packed]:
    """Before the transaction, as it takes a while. Nothing where no segments are written."""
    return [] if missing() else [pack(each.kind, each.parts) for each in facts]


def nothing_of(kind: Kind) -> list[Packed]:
    """What a refresh that failed has to give: that its rows are missing."""
    return [] if missing() else [Packed(each, 0, b"") for each in KINDS.get(kind, ())]


def store(told: Told, packs: Iterable[Packed]) -> None:
    """Last in the transaction of a refresh: who else counts the same kind of this cluster waits until its end."""
    for each in sorted(packs, key=lambda each: each.kind):  # in one order, so that two do not wait for each other
        epoch, seq = _next(told.cluster, each.kind)
        values = (
            *(told.cluster, each.kind.value, epoch, seq, told.observed_at, each.rows, each.data, len(each.data)),
            *(json.dumps(list(told.not_answered)), "\n".join(told.errors).replace("\x00", ""), told.duration_ms),
        )
        connection.ensure_connection()
        # As it is: Django's own cursor would make a text of it, twice as long, which takes several times as long.
        with psycopg.Cursor(connection.connection) as cursor:
            cursor.execute(_INSERT, values)


def _next(cluster: str, kind: SegmentKind) -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO observe_segmentcounter AS known (cluster, kind, epoch, seq)"
            " VALUES (%s, %s, extract(epoch FROM clock_timestamp())::bigint, 1)"
            " ON CONFLICT (cluster, kind) DO UPDATE SET seq = known.seq + 1 RETURNING epoch, seq",
            [cluster, kind],
        )
        epoch, seq = cursor.fetchone()
    return epoch, seq
