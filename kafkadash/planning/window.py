"""Options of a plan as texts: its window, also as a bar, its rate, and the period and coverage of the rates it used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import RunOptions
from kafkadash.core.formatting import format_duration, format_size, long_duration
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.templatetags.figures import rate
from kafkadash.planning.impact import PlanImpact
from kafkadash.planning.proposal import options_of
from kafkadash.planning.solver.workload import WorkloadUsed
from kafkadash.planning.stored_topology import WorkloadModel

_UNKNOWN = "produce rates count as unknown"


def model_words(model: WorkloadModel, now: datetime) -> str:
    """Before there is a plan: what it would be made with."""
    if model.from_at is not None and model.to_at is not None:
        seen = _period(model.from_at, model.to_at, now)
        return f"The pipeline has produce rates of {choose_plural('# topic|# topics', model.topics)} {seen}."
    if model.old_at is not None:
        return f"The latest pipeline rates are from {_moment(model.old_at)}, too old for planning: {_UNKNOWN}."
    return f"The pipeline has no rates of this cluster yet: {_UNKNOWN}."


def used_words(used: WorkloadUsed | None, now: datetime) -> str:
    """Return the words on the workload of a plan; '' where nothing is copied or the workload is not known."""
    if used is None or not used.known + used.unknown:
        return ""
    if not used.known:
        return f"none: the pipeline has no rates of the {_count_partitions(used.unknown)} to copy"
    begin, end = datetime.fromisoformat(used.from_at), datetime.fromisoformat(used.to_at)
    words = f"for {_count_partitions(used.known)}, measured {_period(begin, end, now)}"
    if used.unknown:
        words += f"; unknown for {_count_partitions(used.unknown)}"
    words += f". Estimate: {rate(used.typical)} in total"
    if used.peak is not None:
        words += f", at most {rate(used.peak)} if all busiest hours coincide"
    if used.grows is not None:
        words += f", {'growing' if used.grows >= 0 else 'shrinking'} by {format_size(abs(used.grows))} per day"
    return words


def _count_partitions(number: int) -> str:
    return choose_plural("# partition|# partitions", number)


def _period(begin: datetime, end: datetime, now: datetime) -> str:
    age = long_duration(max(0.0, (now - end).total_seconds()))
    return f"from {_moment(begin)} to {_moment(end)}, {age} ago"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%-d %b %H:%M} UTC"


_DAY = timedelta(hours=20)


@dataclass(frozen=True, slots=True)
class WindowBar:
    """A window with a run in it. Positions are percent of the window; ``run_end`` is None where it is not known.

    ``spare_s`` is what is left of the window after the run, negative where it does not fit.
    """

    opens: datetime
    closes: datetime
    run_start: datetime
    run_end: datetime | None

    @property
    def x(self) -> str:
        return f"{self._at(self.run_start):.1f}%"

    @property
    def width(self) -> str:
        end = self.closes if self.run_end is None else min(self.run_end, self.closes)
        return f"{self._at(end) - self._at(self.run_start):.1f}%"

    @property
    def end_at(self) -> str:
        return "" if self.run_end is None else f"{self._at(self.run_end):.1f}%"

    @property
    def end_has_room(self) -> bool:
        """Return whether its time fits above the bar, apart from the times of the window."""
        return self.run_end is not None and 20 <= self._at(self.run_end) <= 80

    @property
    def fits(self) -> bool | None:
        return None if self.run_end is None else self.run_end <= self.closes

    @property
    def spare_words(self) -> str:
        if self.run_end is None:
            return "duration unknown"
        spare = (self.closes - self.run_end).total_seconds()
        return f"{format_duration(spare)} to spare" if spare >= 0 else f"{format_duration(-spare)} too long"

    @property
    def opens_words(self) -> str:
        return format_clock(self.opens, self.closes)

    @property
    def closes_words(self) -> str:
        return format_clock(self.closes, self.opens)

    @property
    def end_words(self) -> str:
        return "" if self.run_end is None else format_clock(self.run_end, self.closes)

    @property
    def words(self) -> str:
        """The picture for those who do not see it."""
        run = (
            f"a run from {format_clock(self.run_start, self.closes)} would end at {self.end_words}, {self.spare_words}"
        )
        if self.run_end is None:
            run = "the duration of the run is unknown"
        return f"Window {self.opens_words} to {self.closes_words}; {run}"

    def _at(self, then: datetime) -> float:
        share = (then - self.opens) / (self.closes - self.opens)
        return 100 * min(1.0, max(0.0, share))


@dataclass(frozen=True)
class WindowFacts:
    """``bar`` only where the window has two ends and is not over; ``over`` says that it is. ``rates_words``: which
    rates the plan was made with.
    """

    options: RunOptions
    opens: datetime | None
    closes: datetime | None
    bar: WindowBar | None
    over: bool
    inbound: float | None
    copies: bool
    rates_words: str = ""

    @property
    def opens_words(self) -> str:
        return "" if self.opens is None else day_and_time(self.opens)

    @property
    def closes_words(self) -> str:
        return "" if self.closes is None else day_and_time(self.closes)

    @property
    def slower_than_inbound(self) -> bool:
        """At its lowest rate copies would never catch up if all moved at once."""
        return self.inbound is not None and self.options.throttle_min <= self.inbound


def run_options(change: ChangeRequest) -> RunOptions:
    """Return the options of a request with a plan, which is made after its limits were chosen."""
    options = options_of(change.options)
    assert options is not None, f"#{change.pk} has a plan and no limits"
    return options


def window_facts(options: RunOptions, impact: PlanImpact, took: float | None, now: datetime) -> WindowFacts:
    """``took``: seconds that the run takes at least, None where that is not known."""
    opens, closes = _parse_instant(options.not_before), _parse_instant(options.not_after)
    bar = None
    over = closes is not None and closes <= now
    if opens is not None and closes is not None and opens < closes and not over:
        start = max(now, opens)
        bar = WindowBar(opens, closes, start, None if took is None else start + timedelta(seconds=took))
    copies = impact.copied_bytes != 0
    return WindowFacts(
        options, opens, closes, bar, over, impact.inbound_bytes_per_s, copies, used_words(impact.workload, now)
    )


def format_clock(then: datetime, other: datetime) -> str:
    """A time of day, with the day where that of ``other`` is far: "22:00", "20 Nov 04:00"."""
    return f"{then.astimezone(UTC):%H:%M}" if abs(then - other) < _DAY else day_and_time(then)


def day_and_time(then: datetime) -> str:
    return f"{then.astimezone(UTC):%-d %b %H:%M}"


def _parse_instant(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
