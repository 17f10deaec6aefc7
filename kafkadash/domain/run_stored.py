"""The figures of a run as they are stored: JSON, without what the pages can tell from the rest."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kafkadash.domain.reasons import pack_reasons, unpack_reasons
from kafkadash.domain.run_progress import BrokerNow, Direction, Mark, RowNow, RunNow

FORMAT = 2


def as_json(run: RunNow) -> dict[str, Any]:
    """Infinite is stored as −1: JSON has no infinity."""
    return {
        "format": FORMAT,
        "at": run.at.timestamp(),
        "run": [
            run.total_bytes,
            run.moved_bytes,
            _digits(run.percent, 4),
            _digits(run.rate, 0),
            *[_seconds(value) for value in (run.eta_s, run.eta_low_s, run.eta_high_s)],
            [run.binding[0], run.binding[1].value] if run.binding else None,
            run.throttle,
            run.left_out,
        ],
        "brokers": [
            [
                b.broker,
                b.direction.value,
                b.total_bytes,
                b.moved_bytes,
                _digits(b.rate, 0),
                _seconds(b.eta_s),
                _digits(b.inbound, 0),
            ]
            for b in run.brokers
        ],
        "counts": dict(run.counts),
        "rows": [_row(row) for row in run.rows],
        "notes": list(run.notes),
        "known": [run.unsized, run.known_bytes, run.known_moved],
    }


def from_json(stored: Mapping[str, Any]) -> RunNow | None:
    """None for a format that is not known here: then nothing is known of the run's progress until its next step."""
    if stored.get("format") != FORMAT:
        return None
    total, moved, percent, rate, eta, low, high, binding, throttle, left_out = stored["run"]
    unsized, known, known_moved = stored.get("known", (0, None, None))  # stored by a version that did not tell it
    return RunNow(
        at=datetime.fromtimestamp(stored["at"], UTC),
        total_bytes=total,
        moved_bytes=moved,
        percent=percent,
        rate=rate,
        eta_s=_from_seconds(eta),
        eta_low_s=_from_seconds(low),
        eta_high_s=_from_seconds(high),
        binding=(binding[0], Direction(binding[1])) if binding else None,
        brokers=tuple(
            BrokerNow(broker, Direction(way), total, moved, rate, _from_seconds(eta), inbound)
            for broker, way, total, moved, rate, eta, inbound in stored["brokers"]
        ),
        counts=stored["counts"],
        rows=tuple(_row_from(values) for values in stored["rows"]),
        notes=tuple(stored["notes"]),
        throttle=throttle,
        left_out=left_out,
        unsized=unsized,
        known_bytes=known,
        known_moved=known_moved,
    )


def _row(row: RowNow) -> list[Any]:
    return [
        row.topic,
        row.partition,
        row.source,
        _digits(row.percent, 3),
        row.size_bytes,
        row.moved_bytes,
        _digits(row.rate, 0),
        _seconds(row.eta_s),
        row.in_isr,
        _at(row.grew_at),
        row.mark,
        pack_reasons([row.why] if row.why else []),
        row.estimate,
        _at(row.sampled_at),
        _digits(row.inbound, 0),
    ]


def _row_from(values: list[Any]) -> RowNow:
    (
        topic,
        partition,
        source,
        percent,
        size,
        moved,
        rate,
        eta,
        in_isr,
        grew,
        mark,
        why,
        estimate,
        at,
        inbound,
    ) = values
    return RowNow(
        topic,
        partition,
        source,
        percent,
        size,
        moved,
        rate,
        _from_seconds(eta),
        in_isr,
        _moment(grew),
        Mark(mark) if mark else None,
        next(iter(unpack_reasons(why)), None),
        estimate,
        _moment(at),
        inbound,
    )


def _digits(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _seconds(value: float | None) -> float | None:
    if value is None:
        return None
    return -1 if value == float("inf") else round(value, 1)


def _from_seconds(value: float | None) -> float | None:
    return float("inf") if value is not None and value < 0 else value


def _at(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
