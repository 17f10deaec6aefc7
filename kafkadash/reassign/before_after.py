"""Brokers and racks before and after a plan, as bars and as a pair of rack maps."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kafkadash.domain.impact import BrokerImpact, Impact
from kafkadash.domain.wording import count

MOST_BROKERS = 60
"""Bars on a page; the others have an address."""
MOST_CELLS = 90
"""Up to so many brokers each has a cell; beyond, only those that change most."""
CELLS_OF_MANY = 30
VISIBLE_CHANGE = 0.02
"""Of the scale: less is not marked as a change."""
_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))
_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure before and after on a scale; None is not known. ``limit`` is a share of the scale."""

    before: int | None
    after: int | None
    scale: float | None
    factor: int = 1
    unit: str = ""
    limit: float | None = None

    @property
    def known(self) -> bool:
        return self.before is not None and self.after is not None

    @property
    def drawn(self) -> bool:
        return self.known and bool(self.scale)

    @property
    def before_width(self) -> str:
        return self._width(self.before)

    @property
    def after_width(self) -> str:
        return self._width(self.after)

    @property
    def limit_at(self) -> str:
        return "" if self.limit is None else f"{100 * self.limit:.1f}%"

    @property
    def changed(self) -> str:
        """ "up" or "down" where the change can be seen."""
        if self.before is None or self.after is None or not self.scale:
            return ""
        if abs(self.after - self.before) < VISIBLE_CHANGE * self.scale:
            return ""
        return "up" if self.after > self.before else "down"

    @property
    def before_text(self) -> str:
        return self._text(self.before)

    @property
    def after_text(self) -> str:
        return self._text(self.after)

    def _text(self, value: int | None) -> str:
        if value is None:
            return "unknown"
        if self.factor == 1:
            return f"{value:,}"
        scaled = value / self.factor
        return f"{scaled:,.0f}" if scaled >= 100 or not value else f"{scaled:,.1f}"

    def _width(self, value: int | None) -> str:
        share = 0.0 if value is None or not self.scale else min(1.0, max(0.0, value / self.scale))
        return f"{100 * share:.1f}%"


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """A row of the table of bars. ``peak_percent``: of its disks at worst while the plan runs, None if not known."""

    impact: BrokerImpact
    disk: Bar
    replicas: Bar
    leaders: Bar
    disk_of: str
    peak_percent: float | None
    over_limit: bool

    @property
    def peak_matters(self) -> bool:
        """It is higher than before and after by what can be seen, or above the limit."""
        own = self.impact
        if self.peak_percent is None or own.peak_bytes is None or not own.disk_bytes:
            return False
        grows = max(0, (own.bytes_after or 0) - (own.bytes_before or 0))
        return self.over_limit or own.bytes_in - grows >= VISIBLE_CHANGE * own.disk_bytes


@dataclass(frozen=True)
class BrokerBars:
    """Bars of some brokers. ``disk_of``: the size of the disk that all of them have, '' where they differ."""

    lines: Sequence[BrokerLine]
    total: int
    changed: int
    limited: bool
    disk_of: str
    limit_percent: float | None


@dataclass(frozen=True, slots=True)
class Cell:
    """A broker in a map. ``change``: "gains" or "empties"; ``percent`` of its disks, None where unknown."""

    id: int
    replicas: int
    leaders: int
    bytes: int | None
    percent: float | None
    delta: int = 0
    change: str = ""

    @property
    def empty(self) -> bool:
        return not self.replicas


@dataclass(frozen=True, slots=True)
class MapRack:
    """``name`` is None for the brokers that name none; '' is a name. ``hidden`` of its brokers have no cell."""

    name: str | None
    replicas: int
    cells: Sequence[Cell]
    hidden: int


@dataclass(frozen=True, slots=True)
class RackPair:
    before: Sequence[MapRack]
    after: Sequence[MapRack]
    note: str
    limit_percent: float | None


@dataclass(frozen=True)
class _Scales:
    impact: Impact

    @cached_property
    def replicas(self) -> float:
        return _nice(max((max(b.replicas_before, b.replicas_after) for b in self.impact.brokers), default=0))

    @cached_property
    def leaders(self) -> float:
        return _nice(max((max(b.leaders_before, b.leaders_after) for b in self.impact.brokers), default=0))

    @cached_property
    def unit(self) -> tuple[int, str]:
        """One for all brokers, so that they can be compared: that of the most any of them holds."""
        return _unit(max((max(b.bytes_before or 0, b.bytes_after or 0) for b in self.impact.brokers), default=0))


def broker_bars(impact: Impact, *, everything: bool) -> BrokerBars:
    """By id: all of a small cluster or with ``everything``, else those that change, at most ``MOST_BROKERS``."""
    scales = _Scales(impact)
    shown = sorted(impact.brokers, key=lambda b: b.id)
    if len(shown) > MOST_BROKERS and not everything:
        shown = [broker for broker in shown if changes(broker)][:MOST_BROKERS]
    disks = {broker.disk_bytes for broker in shown}
    shared = next(iter(disks)) if len(disks) == 1 else None
    return BrokerBars(
        lines=[_line(broker, scales, impact.disk_limit, named=shared is None) for broker in shown],
        total=len(impact.brokers),
        changed=sum(changes(broker) for broker in impact.brokers),
        limited=len(shown) < len(impact.brokers),
        disk_of=_size(shared) if shared else "",
        limit_percent=None if impact.disk_limit is None else 100 * impact.disk_limit,
    )


def rack_pair(impact: Impact) -> RackPair:
    """Racks and brokers keep their places in both maps: by name and id."""
    by_rack: defaultdict[str | None, list[BrokerImpact]] = defaultdict(list)
    for broker in sorted(impact.brokers, key=lambda b: b.id):
        by_rack[broker.rack].append(broker)
    names = sorted(by_rack, key=lambda name: (name is None, name or ""))
    shown = _with_cells(impact)
    scale = _Scales(impact).replicas
    return RackPair(
        before=[
            _rack(name, by_rack[name], [_before(b) for b in by_rack[name] if b.id in shown], after=False)
            for name in names
        ],
        after=[
            _rack(name, by_rack[name], [_after(b, scale) for b in by_rack[name] if b.id in shown], after=True)
            for name in names
        ],
        note=spread_words(impact),
        limit_percent=None if impact.disk_limit is None else 100 * impact.disk_limit,
    )


def spread_words(impact: Impact) -> str:
    before, after, lost = impact.violations_before, impact.violations_after, impact.racks_lost
    if before is None or after is None or lost is None:
        return "The spread over racks is not judged: not every broker names a rack, or there is only one."
    loses = "No partition loses a rack."
    if lost:
        loses = f"{count(lost, 'partition')} {'ends' if lost == 1 else 'end'} in fewer racks."
    return f"{loses} {count(before, 'violation')} before, {after:,} after."


def changes(broker: BrokerImpact) -> bool:
    """One of its figures does."""
    return (
        broker.replicas_before != broker.replicas_after
        or broker.leaders_before != broker.leaders_after
        or broker.bytes_before != broker.bytes_after
    )


def _line(broker: BrokerImpact, scales: _Scales, limit: float | None, *, named: bool) -> BrokerLine:
    factor, unit = scales.unit
    peak = _percent(broker.peak_bytes, broker.disk_bytes)
    disk = Bar(
        broker.bytes_before,
        broker.bytes_after,
        broker.disk_bytes,
        factor,
        unit,
        limit if broker.disk_bytes else None,
    )
    return BrokerLine(
        impact=broker,
        disk=disk,
        replicas=Bar(broker.replicas_before, broker.replicas_after, scales.replicas),
        leaders=Bar(broker.leaders_before, broker.leaders_after, scales.leaders),
        disk_of=_size(broker.disk_bytes) if named else "",
        peak_percent=peak,
        over_limit=peak is not None and limit is not None and peak > 100 * limit,
    )


def _with_cells(impact: Impact) -> frozenset[int]:
    """Brokers that have a cell: all of a small cluster, of a large one those whose replicas change most."""
    if len(impact.brokers) <= MOST_CELLS:
        return frozenset(broker.id for broker in impact.brokers)
    changed = [broker for broker in impact.brokers if broker.replicas_after != broker.replicas_before]
    changed.sort(key=lambda b: (-abs(b.replicas_after - b.replicas_before), b.id))
    return frozenset(broker.id for broker in changed[:CELLS_OF_MANY])


def _before(broker: BrokerImpact) -> Cell:
    percent = _percent(broker.bytes_before, broker.disk_bytes)
    return Cell(broker.id, broker.replicas_before, broker.leaders_before, broker.bytes_before, percent)


def _after(broker: BrokerImpact, scale: float) -> Cell:
    delta = broker.replicas_after - broker.replicas_before
    change = "gains" if delta >= max(1, VISIBLE_CHANGE * scale) else ""
    if broker.replicas_before and not broker.replicas_after:
        change = "empties"
    percent = _percent(broker.bytes_after, broker.disk_bytes)
    return Cell(broker.id, broker.replicas_after, broker.leaders_after, broker.bytes_after, percent, delta, change)


def _rack(name: str | None, brokers: Sequence[BrokerImpact], cells: Sequence[Cell], *, after: bool) -> MapRack:
    replicas = sum(b.replicas_after if after else b.replicas_before for b in brokers)
    return MapRack(name, replicas, cells, len(brokers) - len(cells))


def _percent(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else 100 * part / whole


def _size(value: int | None) -> str:
    if value is None:
        return "unknown"
    factor, unit = _unit(value)
    return f"{value / factor:,.0f} {unit}"


def _unit(value: int) -> tuple[int, str]:
    """Gigabytes at most: a broker's share of a plan would be lost in terabytes with one decimal."""
    return next((unit for unit in _UNITS if value >= unit[0]), _UNITS[-1])


def _nice(largest: int) -> float:
    """The end of a scale: a round figure with some room above the largest."""
    if largest <= 0:
        return 1.0
    wanted = 1.05 * largest
    decade = 10 ** math.floor(math.log10(wanted))
    return next(float(step * decade) for step in _STEPS if step * decade >= wanted)
