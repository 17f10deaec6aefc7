"""A run as its page shows it: how far, until when, what holds it up, and the throttle in force. Stored rows only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.plan import Options
from kafkadash.domain.run_progress import BrokerNow, Direction, RunNow
from kafkadash.domain.wording import count, duration, run_time
from kafkadash.domain.wording import size as size_text
from kafkadash.domain.workflow_states import State
from kafkadash.observe.standing import Freshness, Standing
from kafkadash.reassign.models import Execution
from kafkadash.reassign.run.counts import Counts, counts_of
from kafkadash.reassign.run.min_isr import MinIsr, min_isr_of
from kafkadash.reassign.run.notices import Notice, notices_of
from kafkadash.reassign.run.stored import (
    execution_of,
    figures_of,
    freshness_of_figures,
    freshness_of_run,
)
from kafkadash.reassign.run.throttle_now import ThrottleNow, throttle_now
from kafkadash.reassign.window_facts import day_and_time, run_options

LIVE = (State.EXECUTING, State.PAUSED, State.CANCELLING, State.VERIFYING)
"""States in which somebody works on the run."""
MOST_BROKERS = 5


@dataclass(frozen=True, slots=True)
class BrokerMeter:
    """What goes into one broker. ``binding``: it takes longest."""

    seen: BrokerNow
    binding: bool

    @property
    def percent(self) -> float | None:
        seen = self.seen
        if seen.total_bytes is None or seen.moved_bytes is None:
            return None
        return 100.0 if not seen.total_bytes else min(100.0, 100 * seen.moved_bytes / seen.total_bytes)

    @property
    def words(self) -> str:
        seen = self.seen
        if seen.total_bytes is None or seen.moved_bytes is None:
            return "not known"
        if seen.moved_bytes >= seen.total_bytes:
            return f"{size_text(seen.total_bytes)} done"
        return of_total(seen.moved_bytes, seen.total_bytes)


@dataclass(frozen=True)
class RunShown:
    """A run at ``now``. ``figures`` are those of its last step, None before the first; what is None is not known."""

    execution: Execution
    figures: RunNow | None
    counts: Counts
    options: Options
    min_isr: MinIsr
    throttle: ThrottleNow
    notices: Sequence[Notice]
    now: datetime

    @property
    def change(self) -> ChangeRequest:
        return self.execution.request

    @property
    def live(self) -> bool:
        return self.change.state in LIVE

    @cached_property
    def freshness(self) -> Freshness:
        """Of the figures of progress."""
        return freshness_of_figures(self.execution, self.now)

    @cached_property
    def looked(self) -> Freshness:
        """Of the last look at the cluster."""
        return freshness_of_run(self.execution, self.now)

    @property
    def percent(self) -> float | None:
        return self.figures.percent if self.figures else None

    @property
    def shown_percent(self) -> float | None:
        """Of the whole plan, or while that is not known of the rows whose size is: ``copied_words`` says which."""
        if self.figures is None:
            return None
        return self.figures.known_percent if self.percent is None else self.percent

    @property
    def copied_words(self) -> str:
        """ "338.9 of 665.5 GB copied"."""
        figures = self.figures
        if figures is not None and figures.known_percent is not None and self.percent is None:
            known = of_total(figures.known_moved or 0, figures.known_bytes or 0)
            return f"{known} copied, without {count(figures.unsized, 'partition')} of unknown size"
        if figures is None or figures.moved_bytes is None:
            return "how much is copied is not known"
        if figures.total_bytes is None:
            return f"{size_text(figures.moved_bytes)} copied, of how much is not known"
        if not figures.total_bytes:
            return "nothing has to be copied"
        return f"{of_total(figures.moved_bytes, figures.total_bytes)} copied"

    @cached_property
    def done_at(self) -> datetime | None:
        """None where ``done_words`` says why; so it is when the figures are too old to tell."""
        return None if self.freshness.stale else self._at(self.figures.eta_s if self.figures else None)

    @property
    def between(self) -> tuple[datetime, datetime] | None:
        """None too where both are in the same minute, which is how exactly they are shown."""
        if self.done_at is None or self.figures is None:
            return None
        low, high = self._at(self.figures.eta_low_s), self._at(self.figures.eta_high_s)
        if low is None or high is None or low.replace(second=0, microsecond=0) == high.replace(second=0, microsecond=0):
            return None
        return low, high

    @property
    def done_words(self) -> str:
        if self.counts.ended == self.counts.total:
            return "every move has ended"
        if self.freshness.stale:
            return "when it is done cannot be told"
        eta = self.figures.eta_s if self.figures else None
        return "when it is done is not known yet" if eta is None else "no progress" if math.isinf(eta) else ""

    def _at(self, seconds: float | None) -> datetime | None:
        if self.figures is None or seconds is None or not math.isfinite(seconds) or seconds > _FARTHEST_S:
            return None
        return self.figures.at + timedelta(seconds=seconds)

    @property
    def left_s(self) -> float | None:
        """Seconds from the time of the figures; None where ``left_words`` says why."""
        eta = self.figures.eta_s if self.figures and not self.freshness.stale else None
        return eta if eta is not None and math.isfinite(eta) else None

    @property
    def left_unknown(self) -> bool:
        """Fresh figures do not tell the time left."""
        return not self.freshness.stale and (self.figures is None or self.figures.eta_s is None)

    @property
    def left_words(self) -> str:
        if self.freshness.stale:
            return "cannot be told"
        if self.left_unknown:
            return "not known"
        return "no progress" if self.left_s is None else ""

    @property
    def left_range(self) -> str:
        figures = self.figures
        if self.freshness.stale:
            return "its figures are old"
        if figures is None or self.left_s is None:
            return "needs three samples" if self.left_unknown else "at this rate it never ends"
        low, high = figures.eta_low_s, figures.eta_high_s
        if low is None or high is None:
            return "at this rate"
        if math.isinf(high):
            return f"{run_time(low)} or more" if math.isfinite(low) else "at this rate"
        return f"{run_time(low)} to {run_time(high)}"

    @cached_property
    def binding(self) -> BrokerNow | None:
        if self.figures is None or self.figures.binding is None:
            return None
        return next((b for b in self.figures.brokers if (b.broker, b.direction) == self.figures.binding), None)

    @property
    def binding_words(self) -> str:
        """ "inbound, 58.6 of 60 MB/s"."""
        if self.binding is None:
            return "too few samples" if self.left_unknown else "moves in parallel are the limit"
        way = "inbound" if self.binding.direction is Direction.IN else "outbound"
        rate = self.binding.rate
        now = "rate not known" if rate is None else f"{rate / 1e6:,.1f} of {self.execution.throttle / 1e6:,g} MB/s"
        return f"{way}, {now}"

    @cached_property
    def segments(self) -> Sequence[tuple[str, str, str]]:
        """The bar as (class, x, width) in percent of all bytes: done, in flight, stuck."""
        figures = self.figures
        percent = self.shown_percent
        if figures is None or percent is None:
            return ()
        stuck = flight = 0.0
        if total := figures.known_bytes if figures.percent is None else figures.total_bytes:
            for row in figures.rows:
                part = 100 * min(row.moved_bytes or 0, total) / total
                stuck, flight = (stuck + part, flight) if row.mark == "stuck" else (stuck, flight + part)
        stuck, flight = min(stuck, percent), min(flight, percent)
        done = max(0.0, percent - flight - stuck)
        places = (("done", 0.0, done), ("flight", done, flight), ("stuck", done + flight, stuck))
        return [(name, f"{at:.2f}", f"{width:.2f}") for name, at, width in places if width > 0]

    @cached_property
    def brokers(self) -> Sequence[BrokerMeter]:
        """Those that receive, the one that takes longest first, then by what is left."""
        figures = self.figures
        if figures is None:
            return ()
        into = [
            BrokerMeter(each, figures.binding == (each.broker, each.direction))
            for each in figures.brokers
            if each.direction is Direction.IN
        ]
        return sorted(into, key=lambda meter: (not meter.binding, -_left(meter.seen), meter.seen.broker))

    @property
    def shown_brokers(self) -> Sequence[BrokerMeter]:
        return self.brokers[:MOST_BROKERS]

    @property
    def more_brokers(self) -> Sequence[BrokerMeter]:
        return self.brokers[MOST_BROKERS:]

    @property
    def closes(self) -> datetime | None:
        return datetime.fromisoformat(self.options.not_after) if self.options.not_after else None

    @property
    def closes_words(self) -> tuple[str, str]:
        """When the window closes, and in how long."""
        if self.closes is None:
            return "open", "it has no end"
        left = (self.closes - self.now).total_seconds()
        shown = f"{self.closes:%H:%M}" if abs(left) < _SAME_DAY_S else day_and_time(self.closes)
        return shown, f"in {duration(left)}" if left > 0 else f"it closed {duration(-left)} ago"

    @property
    def guard_words(self) -> str:
        """Who sees to it that no move changes how many replicas a partition has; '' where that was approved."""
        if self.options.change_rf:
            return ""
        capabilities = getattr(self.execution.cluster, "capabilities", None)
        versions = capabilities.apis.get(_ALTER_REASSIGNMENTS) if capabilities else None
        ours = "kafkadash reads each partition again right before it submits it"
        if versions is None:
            return f"Whether Kafka guards the number of replicas is not known; {ours}."
        if versions[1] >= 1:
            return "Kafka itself refuses a move that would change the number of replicas."
        return f"The number of replicas is guarded by kafkadash, as this Kafka is older than 4.1: {ours}."

    @property
    def moves_words(self) -> str:
        """Below how many are done."""
        others = [f"{number:,} {words}" for number, words in self.counts.exceptions]
        return ", ".join(others) or "largest first"

    @property
    def trouble(self) -> str:
        """What is said aloud when it changes: "is now …"."""
        if self.live and self.looked.stale:
            return "without new figures"
        parts = [(self.counts.stuck, "stuck"), (self.counts.asks, "asking for an answer")]
        return ", ".join(f"{number:,} {words}" for number, words in parts if number) or "without trouble"

    @property
    def title(self) -> str:
        """The answer, for the title of the page."""
        name = f"#{self.change.pk} {self.change.title}".strip()
        match self.change.state:
            case State.QUEUED:
                return f"{name} {'is blocked' if self.execution.blocked else 'waits for its turn'}"
            case State.PAUSED:
                doing = "paused"
            case State.CANCELLING:
                doing = "being cancelled"
            case State.VERIFYING:
                doing = "being verified"
            case State.EXECUTING:
                doing = ""
            case _:
                return f"{name}: {self.change.get_state_display().lower()}"
        stuck = f"{self.counts.stuck:,} stuck" if self.counts.stuck else ""
        if self.looked.stale:
            return f"Cannot tell how far {name} is"
        known = "progress not known"
        if self.shown_percent is not None:
            known = f"{math.floor(self.shown_percent * 10) / 10:.1f} %"
            known += " of what is known" if self.percent is None else ""
        return f"{name}: {', '.join(part for part in (known, stuck, doing) if part)}"


_ALTER_REASSIGNMENTS = "45"
"""As ``Capabilities.apis`` names it; from version 1 on (Kafka 4.1) it refuses changes of the replication factor."""
_SAME_DAY_S = 20 * 3600
_FARTHEST_S = 365 * 86_400


def run_part(number: int, now: datetime) -> Mapping[str, Any] | None:
    """What is pushed of a run besides its rows; None where the request has none."""
    execution = execution_of(number)
    return None if execution is None else part_of(run_shown(execution, now))


def part_of(run: RunShown) -> dict[str, Any]:
    return {"number": run.change.pk, "shown": run, "now": run.now, "sampled_at": run.execution.progress_at}


def run_shown(execution: Execution, now: datetime, known: Standing | None = None) -> RunShown:
    """Five queries, or six where something is asked of it; one less where ``known`` was read already."""
    figures = figures_of(execution)
    counts = counts_of(execution, figures)
    options = run_options(execution.request)
    return RunShown(
        execution=execution,
        figures=figures,
        counts=counts,
        options=options,
        min_isr=min_isr_of(execution.cluster, now, known),
        throttle=throttle_now(execution, options, figures),
        notices=notices_of(execution, counts, now),
        now=now,
    )


def of_total(part: int, whole: int) -> str:
    """In the unit of the whole where that leaves something to be read: "338.9 of 665.5 GB", "12.0 MB of 1.3 GB"."""
    whole_figure, unit = size_text(whole).split(" ", 1)
    part_figure, part_unit = size_text(min(part, whole)).split(" ", 1)
    if part_unit == unit or part == 0:
        return f"{part_figure if part else '0'} of {whole_figure} {unit}"
    return f"{part_figure} {part_unit} of {whole_figure} {unit}"


def _left(seen: BrokerNow) -> int:
    return (seen.total_bytes or 0) - (seen.moved_bytes or 0)
