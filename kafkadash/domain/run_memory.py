"""What a run remembers from one step to the next so that its figures can be told; stored, and overwritten each step.

Times are seconds since the epoch, offsets are records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkadash.domain.executor_state import Key
from kafkadash.domain.progress import RateMeter
from kafkadash.domain.run_progress import Direction

FORMAT = 2

Lane = tuple[int, Direction]
"""A broker and whether it is what arrives there or what it sends: each has a throttle of its own (KIP-73)."""

PAST_EVERY_S, PAST_KEPT = 15.0, 4
"""Log ends of the last minute are kept, to find out how long a copy was when its directory was read."""

WINDOW_S, WINDOWS_KEPT = 15.0, 40
"""Rates over quarter minutes, ten minutes of them."""


@dataclass(slots=True)
class CopyMemory:
    """One adding replica: its log end at the last read, and at ``RunMemory.past_at``. ``known``: (log end, bytes) when
    its directory was read last. ``uncounted``: records that it got while nobody knew how many bytes they are.
    """

    end: int | None = None
    past: list[int | None] = field(default_factory=list)
    known: tuple[int, int] | None = None
    uncounted: int = 0


@dataclass(slots=True)
class RowMemory:
    """A row in flight, ``log_start`` and ``log_end`` as its ``source``, the leader, told them last.

    ``record_bytes``: mean size of a record there. ``got``: records that all its copies got since it is measured;
    ``moved`` meters them, ``written`` those that producers add. ``grew_at``: when a copy grew last; ``losing_since``:
    since when producers are faster. ``copied_at``: since when no copy is behind. ``percent``, ``share`` (of its bytes,
    0 to 1), ``moved_bytes`` and ``size_bytes``: as told last.
    """

    begun_at: float
    copies: dict[int, CopyMemory]
    source: int | None = None
    log_start: int | None = None
    log_end: int | None = None
    log_past: list[int | None] = field(default_factory=list)
    record_bytes: float | None = None
    moved: RateMeter | None = None
    written: RateMeter | None = None
    grew_at: float | None = None
    losing_since: float | None = None
    copied_at: float | None = None
    percent: float | None = None
    share: float = 0.0
    size_bytes: int | None = None
    moved_bytes: int | None = None
    sampled_at: float | None = None
    refused: str = ""
    got: int = 0


@dataclass(slots=True)
class FlowMemory:
    """What arrives at a broker, or what it sends. ``total`` counts bytes since the run began to be measured.

    ``busy``: something was copied there at the last look; ``grew_at``: when it grew last. Until ``held_until`` the
    meter takes no sample: the throttle was changed, and a quota bursts then. ``windows``: bytes per second over
    quarter minutes, the newest last. ``due`` and ``dues``: the same of what it would have been had nothing but the
    throttle held it back; until the next look that is ``pace`` a second. ``blind``: something arrived of which nobody
    knows yet how many bytes it is; it is counted as soon as that is known.
    """

    total: int
    meter: RateMeter
    due: RateMeter
    pace: float = 0.0
    busy: bool = False
    held_until: float = 0.0
    windows: list[int] = field(default_factory=list)
    dues: list[int] = field(default_factory=list)
    window_at: float = 0.0
    window_total: int = 0
    window_due: int = 0
    grew_at: float = 0.0
    blind: bool = False

    @property
    def latest(self) -> float | None:
        """Of the last quarter minute that was measured; none is left of it once nothing is copied."""
        if self.blind:
            return None
        if not self.busy:
            return 0.0
        return float(self.windows[-1]) if self.windows else None


@dataclass(slots=True)
class RunMemory:
    """``learned``: bytes of one replica of rows whose size was not known when the run began. ``kept``: share of their
    weight, 0 to 1, that rows had copied that ended otherwise than done. ``led``: the source of rows that ended, where
    it was not their first replica. ``estimates``: topic → why its figures are estimates. ``sizes_at``: of the newest
    directory read that was used. ``at``: when offsets were read last; ``stepped_at``: of that step, by its own clock.
    """

    at: float
    throttle: int
    throttle_at: float
    rows: dict[Key, RowMemory] = field(default_factory=dict)
    flows: dict[Lane, FlowMemory] = field(default_factory=dict)
    whole: FlowMemory | None = None
    past_at: list[float] = field(default_factory=list)
    learned: dict[Key, int] = field(default_factory=dict)
    kept: dict[Key, float] = field(default_factory=dict)
    led: dict[Key, int] = field(default_factory=dict)
    estimates: dict[str, str] | None = None
    sizes_at: float = 0.0
    stepped_at: float = 0.0
    moved_bytes: int | None = None
    percent: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "at": [self.at, self.throttle_at, self.sizes_at, self.stepped_at],
            "run": [self.throttle, self.moved_bytes, self.percent],
            "past_at": self.past_at,
            "rows": [[*key, *_row(row)] for key, row in self.rows.items()],
            "flows": [[broker, way.value, *_flow(flow)] for (broker, way), flow in self.flows.items()],
            "whole": _flow(self.whole) if self.whole else None,
            "learned": [[*key, size] for key, size in self.learned.items()],
            "kept": [[*key, share] for key, share in self.kept.items()],
            "led": [[*key, broker] for key, broker in self.led.items()],
            "estimates": self.estimates,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunMemory | None:
        """None where another version stored it in a format that is not known here: measuring starts anew."""
        if stored.get("format") != FORMAT:
            return None
        at, throttle_at, sizes_at, stepped_at = stored["at"]
        throttle, moved_bytes, percent = stored["run"]
        return cls(
            at,
            throttle,
            throttle_at,
            rows={(topic, number): _row_from(values) for topic, number, *values in stored["rows"]},
            flows={(broker, Direction(way)): _flow_from(values) for broker, way, *values in stored["flows"]},
            whole=_flow_from(stored["whole"]) if stored["whole"] else None,
            past_at=stored["past_at"],
            learned={(topic, number): size for topic, number, size in stored["learned"]},
            kept={(topic, number): share for topic, number, share in stored["kept"]},
            led={(topic, number): broker for topic, number, broker in stored["led"]},
            estimates=stored["estimates"],
            sizes_at=sizes_at,
            stepped_at=stepped_at,
            moved_bytes=moved_bytes,
            percent=percent,
        )


_ROW = (
    "begun_at",
    "source",
    "log_start",
    "log_end",
    "log_past",
    "record_bytes",
    "grew_at",
    "losing_since",
    "copied_at",
    "percent",
    "share",
    "size_bytes",
    "moved_bytes",
    "sampled_at",
    "refused",
    "got",
)


def _row(row: RowMemory) -> list[Any]:
    copies = [[broker, copy.end, copy.past, copy.known, copy.uncounted] for broker, copy in row.copies.items()]
    return [copies, _meter(row.moved), _meter(row.written), *[getattr(row, name) for name in _ROW]]


def _row_from(values: list[Any]) -> RowMemory:
    copies, moved, written, *rest = values
    return RowMemory(
        copies={
            broker: CopyMemory(end, past, known and (known[0], known[1]), uncounted)
            for broker, end, past, known, uncounted in copies
        },
        moved=moved and RateMeter.from_list(moved),
        written=written and RateMeter.from_list(written),
        **dict(zip(_ROW, rest, strict=True)),
    )


def _meter(meter: RateMeter | None) -> list[float] | None:
    return meter.as_list() if meter else None


def _flow(flow: FlowMemory) -> list[Any]:
    return [
        flow.total,
        flow.meter.as_list(),
        flow.due.as_list(),
        flow.pace,
        flow.busy,
        flow.held_until,
        flow.windows,
        flow.dues,
        flow.window_at,
        flow.window_total,
        flow.window_due,
        flow.grew_at,
        flow.blind,
    ]


def _flow_from(values: list[Any]) -> FlowMemory:
    total, meter, due, *rest = values
    return FlowMemory(total, RateMeter.from_list(meter), RateMeter.from_list(due), *rest)
