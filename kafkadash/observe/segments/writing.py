"""One flush: the files of its kinds, and the manifest that names them, last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import IO

from kafkadash.domain.errors import UserError
from kafkadash.domain.segments import SCHEMA_VERSION, SegmentKind, address
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.segments import fail_points
from kafkadash.observe.segments.encoding import FLUSH_KEY, Columns, SegmentFile, Unreadable
from kafkadash.observe.segments.places import Place


class AnotherWrites(UserError):
    """A file of this flush's address is whole and of another flush; the text is a sentence."""


class Damaged(Exception):
    """A snapshot whose rows cannot be read back."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.id)
        self.snapshot = snapshot


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A row of the outbox; ``data`` fetches its rows."""

    id: int
    cluster: str
    kind: SegmentKind
    epoch: int
    seq: int
    observed_at: datetime
    rows: int
    data: Callable[[], bytes]
    not_answered: Sequence[int] = ()
    errors: str = ""
    duration_ms: int = 0

    def identity(self) -> Columns:
        return {
            "schema": SCHEMA_VERSION,
            "cluster": self.cluster,
            "epoch": self.epoch,
            "seq": self.seq,
            "observed_at": self.observed_at,
        }


@dataclass(frozen=True, slots=True)
class Flush:
    """``at`` gives date and hour of its addresses; ``token`` stands in its files and is nobody else's."""

    epoch: int
    seq: int
    at: datetime
    token: str

    def address(self, kind: SegmentKind) -> str:
        return address(kind, self.at, self.epoch, self.seq)


class Steps:
    """What a writer is asked on the way. This one is for who writes alone."""

    holder = 0
    """Epoch of the lease under which is written."""

    def going_on(self) -> None:
        """Now and then, while a file is being written."""

    def still_ours(self) -> None:
        """Before a file shows. Raises where somebody else has taken over."""

    def committed_at(self, flush: Flush) -> datetime:
        """What the manifest says; the same for everybody who writes it."""
        return flush.at


def write(place: Place, flush: Flush, snapshots: Sequence[Snapshot], steps: Steps) -> None:
    """Writes what is not there yet, so that it may be called again after any interruption.

    Raises OSError where the place cannot be written to, AnotherWrites, Damaged, and what ``steps`` raise.
    """
    for kind in SegmentKind:
        of_kind = [each for each in snapshots if each.kind is kind and each.rows]
        if of_kind:
            _file(place, flush, kind, steps, partial(_facts, flush, kind, of_kind, steps))
    committed_at = steps.committed_at(flush)
    _file(
        place,
        flush,
        SegmentKind.MANIFEST,
        steps,
        partial(_manifest, flush, snapshots, committed_at),
    )


def _file(place: Place, flush: Flush, kind: SegmentKind, steps: Steps, fill: Callable[[IO[bytes]], None]) -> None:
    if _is_there(place, flush, kind):
        return

    def filled(out: IO[bytes]) -> None:
        fail_points.reached(kind, fail_points.At.BEGUN)
        fill(out)

    def before_it_shows() -> None:
        fail_points.reached(kind, fail_points.At.WRITTEN)
        steps.still_ours()

    place.write(flush.address(kind), steps.holder, filled, before_it_shows)
    fail_points.reached(kind, fail_points.At.SHOWN)


def _is_there(place: Place, flush: Flush, kind: SegmentKind) -> bool:
    """Whether an earlier try of this flush got so far. What is not whole is written again."""
    try:
        found = place.footer(flush.address(kind))
    except Unreadable:
        return False
    if found is None:
        return False
    if found.metadata.get(FLUSH_KEY) != flush.token:
        raise AnotherWrites(CollectionErrorCode.ANOTHER_WRITES_HERE, file=flush.address(kind))
    return True


def _facts(flush: Flush, kind: SegmentKind, snapshots: Sequence[Snapshot], steps: Steps, out: IO[bytes]) -> None:
    with SegmentFile(out, kind, flush.token) as file:
        for snapshot in snapshots:
            try:
                file.add(snapshot.identity(), snapshot.data(), snapshot.rows)
            except Unreadable as error:
                raise Damaged(snapshot) from error
            steps.going_on()


def _manifest(flush: Flush, snapshots: Sequence[Snapshot], committed_at: datetime, out: IO[bytes]) -> None:
    each = list(snapshots)
    columns: Columns = {
        "schema": SCHEMA_VERSION,
        "cluster": [s.cluster for s in each],
        "epoch": [s.epoch for s in each],
        "seq": [s.seq for s in each],
        "observed_at": [s.observed_at for s in each],
        "kind": [str(s.kind) for s in each],
        "rows": [s.rows for s in each],
        "not_answered": [list(s.not_answered) for s in each],
        "errors": [s.errors or None for s in each],
        "duration_ms": [s.duration_ms for s in each],
        "file": [flush.address(s.kind) if s.rows else "" for s in each],
        "flush_epoch": flush.epoch,
        "flush_seq": flush.seq,
        "committed_at": committed_at,
    }
    with SegmentFile(out, SegmentKind.MANIFEST, flush.token) as file:
        file.add_rows(columns)
