"""Page model of a run: progress, time left, notices above the figures, the throttle in force. Stored rows only.

A notice says why the run does not begin, why nothing is submitted, or why the state is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, reduce
from operator import or_
from typing import Any, TypedDict

from django.db.models import Count, F, Func, IntegerField, Q, Sum

from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import RunOptions
from kafkadash.changes.state_machine import RUNNING, ChangeState
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import format_duration, join_items, read_whole_number, run_time
from kafkadash.core.formatting import format_size as size_text
from kafkadash.core.messages import (
    choose_plural,
    message_advice,
    message_cause,
    message_parts,
    message_text,
    reason_advice,
    reason_cause,
    reason_text,
)
from kafkadash.execution.engine.reasons import ClusterReadOnly, RunReasonCode
from kafkadash.execution.engine.state import ENDED
from kafkadash.execution.messages import write_second
from kafkadash.execution.models import Execution, Move, Order, ThrottleEntry, ThrottleEntryState
from kafkadash.execution.pages.counts import (
    INTERVAL_S,
    RowCounts,
    counts_of,
    execution_of,
    figures_of,
    freshness_of_figures,
    freshness_of_run,
)
from kafkadash.execution.progress.figures import BrokerNow, FlowDirection, RunNow
from kafkadash.execution.queue import in_front_of
from kafkadash.execution.worker.broker_absences import brokers_away
from kafkadash.execution.worker.finish import why_not_yet
from kafkadash.kafka.throttles import WORDS
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness, load_standing
from kafkadash.monitoring.models import CollectorKind, ThrottledResource, TopicState
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.options import MB, format_megabytes
from kafkadash.planning.window import day_and_time, run_options

_CANCELLED_FROM = (ChangeState.EXECUTING, ChangeState.PAUSED)
_MOST_ORDERS = 5
_FIRST_LOOK = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class RunNotice:
    """Notice of one sentence in bold and those that follow. ``state``: a status token; ``behind``: number of the change
    that the run waits for. ``cancels``: offers to cancel the run, to whoever may; ``asking``: leads to the rows that
    ask; ``gives_up``: leads to what giving the run up would leave behind.
    """

    state: str
    lead: str
    rest: str = ""
    behind: int | None = None
    cancels: bool = False
    asking: bool = False
    gives_up: bool = False


def notices_of(execution: Execution, counts: RowCounts, now: datetime) -> list[RunNotice]:
    """Worst first. One query, for what was asked of the run and not done yet, or for what is in front of it; one more
    where a broker is away.
    """
    change = execution.request
    if change.state == ChangeState.QUEUED:
        return [_queue_notice(execution, now)]
    if change.state not in RUNNING:
        return []
    found = [
        _unread_notice(execution, now),
        _brokers_down(execution, now),
        _read_only(execution),
        _brake_notice(execution, change),
        *_held_notices(execution, change, counts, now),
        _asking_notice(counts),
    ]
    found += [_order_notice(order) for order in _read_open_orders(execution)]
    return [notice for notice in found if notice is not None]


def _unread_notice(execution: Execution, now: datetime) -> RunNotice | None:
    """Return the notice that the data of the cluster is old, or could not be read, or None."""
    looked = freshness_of_run(execution, now)
    again = f", {execution.failures:,} times in a row" if execution.failures > 1 else ""
    error = (
        message_cause(ReassignmentErrorCode.CLUSTER_UNREAD, again=again, error=reason_text(execution.error))
        if execution.error
        else ""
    )
    if not looked.stale:
        return RunNotice("warning", error, message_advice(ReassignmentErrorCode.CLUSTER_UNREAD)) if error else None
    if looked.age_s is None:
        if error:
            return RunNotice("critical", error, message_text(ReassignmentErrorCode.NOT_READ_YET))
        if execution.started_at and now - execution.started_at < _FIRST_LOOK:
            return None
        return RunNotice("critical", *message_parts(ReassignmentErrorCode.NEVER_LOOKED))
    lead, goes_on = message_parts(ReassignmentErrorCode.SHOWN_IS_OLD, age=format_duration(looked.age_s))
    if error and not why_not_yet(execution, now):
        return RunNotice(
            "critical", lead, f"{error} {message_text(ReassignmentErrorCode.CANCEL_CANNOT_END)}", gives_up=True
        )
    return RunNotice(
        "critical", lead, f"{error or message_text(ReassignmentErrorCode.NOBODY_READS, interval=INTERVAL_S)} {goes_on}"
    )


def _brokers_down(execution: Execution, now: datetime) -> RunNotice | None:
    """Brokers that the last look did not see alive, whether anything of the run lies on them or not."""
    absent = brokers_away(execution.absences)
    if not absent:
        return None
    ids = sorted(absent)
    left = Move.objects.filter(execution=execution).exclude(state__in=ENDED)
    touched = left.filter(Q(current__overlap=ids) | Q(target__overlap=ids)).count()
    stale = freshness_of_run(execution, now).stale
    told = message_parts(
        ReassignmentErrorCode.BROKERS_DOWN,
        brokers=tuple(ids),
        down=choose_plural("was down|were down" if stale else "is down|are down", len(ids)),
        since=join_items(
            [f"since {write_second(at)}" if (at := absent[id_].gone_at) else "since before the run" for id_ in ids]
        ),
        moves=touched,
    )
    return RunNotice("warning", *told)


def _read_only(execution: Execution) -> RunNotice | None:
    """Return the notice of a run that still changes a cluster made read-only after its start, or None."""
    if not execution.cluster.read_only:
        return None
    going = (
        "will return to the original replicas" if execution.request.state == ChangeState.CANCELLING else "will finish"
    )
    return RunNotice(
        "warning", *message_parts(ReassignmentErrorCode.READ_ONLY_NOW, cluster=execution.cluster.name, going=going)
    )


def _brake_notice(execution: Execution, change: ChangeRequest) -> RunNotice | None:
    brake = execution.brake
    if brake is None:
        return None
    return RunNotice("critical", reason_cause(brake), reason_advice(brake), cancels=change.state in _CANCELLED_FROM)


def _held_notices(execution: Execution, change: ChangeRequest, counts: RowCounts, now: datetime) -> list[RunNotice]:
    state = "maintenance" if change.state == ChangeState.PAUSED else "warning"
    if change.state == ChangeState.PAUSED and counts.total and counts.ended == counts.total:
        return [RunNotice("warning", *message_parts(ReassignmentErrorCode.PAUSED_AT_ITS_END))]
    if change.not_after and change.not_after <= now and counts.waiting and change.state in _CANCELLED_FROM:
        told = message_parts(ReassignmentErrorCode.WINDOW_RAN_OUT, moves=counts.waiting)
        return [RunNotice("warning", *told, cancels=True)]
    told_above = execution.cluster.read_only
    reasons = [why for why in execution.held_reasons if not (told_above and isinstance(why, ClusterReadOnly))]
    if change.state == ChangeState.PAUSED:
        others = [reason_text(why) for why in reasons if why.stored_code != RunReasonCode.PAUSED]
        return [RunNotice(state, _paused_text(counts), " ".join([*others, message_advice(RunReasonCode.PAUSED)]))]
    held = [reason_text(why) for why in reasons]
    return [RunNotice(state, held[0], " ".join([*held[1:], "Nothing more is submitted."]))] if held else []


def _paused_text(counts: RowCounts) -> str:
    """Return a text such as "Paused. 2 moves in flight will finish; 14 are waiting."."""
    texts = "# move in flight will finish|# moves in flight will finish"
    flight = choose_plural(texts, counts.flight) if counts.flight else "No moves are in flight"
    return f"Paused. {flight}; {choose_plural('# is waiting|# are waiting', counts.waiting)}."


def _asking_notice(counts: RowCounts) -> RunNotice | None:
    if not counts.asks:
        return None
    told = message_parts(ReassignmentErrorCode.ROWS_ASK, moves=counts.asks)
    return RunNotice("warning", *told, asking=True)


def _read_open_orders(execution: Execution) -> list[Order]:
    return list(Order.objects.filter(execution=execution, taken_at=None)[:_MOST_ORDERS])


def _order_notice(order: Order) -> RunNotice:
    what = f"{order.topic}-{order.partition}" if order.topic else order.entity
    lead = f"{order.user_name} requested: {order.get_order_type_display()}, {what}."
    return RunNotice("unknown", lead, "The next step executes it.")


def _queue_notice(execution: Execution, now: datetime) -> RunNotice:
    """Return its place in the queue of the cluster, or why it does not begin at its turn."""
    if execution.blocked:
        since = f" for {format_duration((now - execution.blocked_at).total_seconds())}" if execution.blocked_at else ""
        until = " until the window ends" if execution.request.not_after else ""
        return RunNotice(
            "warning",
            *message_parts(ReassignmentErrorCode.BLOCKED, since=since, why=reason_text(execution.blocked), until=until),
        )
    before = in_front_of(execution, now)
    if before is None:
        opens = execution.request.not_before
        if opens and opens > now:
            return RunNotice(
                "maintenance",
                f"Queued. The window opens in {format_duration((opens - now).total_seconds())}.",
            )
        return RunNotice("unknown", "Next in the queue.", "The run starts when all checks pass.")
    lead = f"Queued behind #{before.request_id} {before.request.title}".rstrip() + "."
    rest = f"{execution.cluster.name} runs one reassignment at a time."
    return RunNotice("maintenance", lead, rest, behind=before.request_id)


@dataclass(frozen=True, slots=True)
class ForeignThrottleNote:
    """A throttle of others that differs from ours. ``entity`` is how an order names it."""

    resource: str
    name: str
    key: str
    value: str
    ours: str
    at: datetime | None

    @property
    def entity(self) -> str:
        return f"{self.resource} {self.name} {self.key}"

    @property
    def what(self) -> str:
        """Return a text such as "leader rate (outbound) of broker 4"."""
        return f"{WORDS.get(self.key, self.key)} of {self.resource} {self.name}".rstrip()

    @property
    def value_words(self) -> str:
        return value_words(self.key, self.value)

    @property
    def ours_words(self) -> str:
        return value_words(self.key, self.ours)


@dataclass(frozen=True, slots=True)
class ThrottleNow:
    """Rates in bytes per second. ``rates`` and ``pairs`` are ours and not cleared, ``obliged`` those of them that have
    to wait until they can be. ``floor``: below it nothing that is in flight can finish, as far as is known.
    """

    rate: int
    lowest: int
    highest: int
    per_broker: int
    per_cluster: int
    rates: int
    pairs: int
    obliged: int
    foreign: Sequence[ForeignThrottleNote]
    floor: float | None = None

    @property
    def top(self) -> int:
        """Rate at the end of the bar."""
        return max(self.highest, self.rate) * 5 // 4 or 1

    def _at(self, rate: int) -> str:
        return f"{100 * rate / self.top:.1f}%"

    @property
    def now_at(self) -> str:
        return self._at(self.rate)

    @property
    def lowest_at(self) -> str:
        return self._at(self.lowest)

    @property
    def highest_at(self) -> str:
        return self._at(self.highest)

    @property
    def width(self) -> str:
        return self._at(self.highest - self.lowest)

    @property
    def lowest_apart(self) -> bool:
        """Return whether its figure fits beside that of the rate."""
        return (self.rate - self.lowest) / self.top > _APART

    @property
    def highest_apart(self) -> bool:
        return (self.highest - self.rate) / self.top > _APART

    @property
    def floor_at(self) -> str:
        """'' where it is not known, or nothing is written."""
        return self._at(round(self.floor)) if self.floor else ""

    @property
    def fixed(self) -> bool:
        return self.lowest == self.highest

    @property
    def words(self) -> str:
        """The picture for those who do not see it."""
        floor = f", floor {self.floor / MB:.1f} MB/s" if self.floor else ""
        bounds = f"{format_megabytes(self.lowest)} to {format_megabytes(self.highest)}"
        return f"Approved {bounds} MB/s, now {format_megabytes(self.rate)} MB/s{floor}"

    @property
    def ours_words(self) -> str:
        if not (self.rates or self.pairs):
            return "Set by kafkadash: none"
        obliged = f", {self.obliged:,} to be removed later" if self.obliged else ""
        rates = choose_plural("# rate|# rates", self.rates)
        entries = choose_plural("# list entry|# list entries", self.pairs)
        return f"Set by kafkadash: {rates}, {entries}{obliged}"


_APART = 0.12


class _OpenPairs(Func):
    """How many pairs of a list are not cleared, without those that had stood there before."""

    arg_joiner = ") AS pair WHERE pair.value <> 'cleared' AND NOT jsonb_exists("
    template = "(SELECT count(*) FROM jsonb_each_text(%(expressions)s, pair.key))"
    output_field = IntegerField()


def throttle_now(execution: Execution, options: RunOptions, figures: RunNow | None) -> ThrottleNow:
    """Return the throttle in force with its range, limits, ledger counts and foreign throttles. One query."""
    lists = Q(resource=ThrottledResource.TOPIC)
    places = [Q(resource=each["resource"], name=each["name"], key=each["key"]) for each in execution.foreign]
    theirs = reduce(or_, places, Q(pk__in=()))
    sums = (
        ThrottleEntry.objects.filter(execution=execution)
        .exclude(Q(state=ThrottleEntryState.CLEARED) | theirs)
        .annotate(open_pairs=_OpenPairs(F("pairs"), F("already")))
        .aggregate(
            rates=Count("pk", filter=~lists),
            pairs=Sum("open_pairs", filter=lists, default=0),
            obliged=Count("pk", filter=Q(state=ThrottleEntryState.OBLIGED)),
        )
    )
    return ThrottleNow(
        execution.throttle,
        options.throttle_min,
        options.throttle_max,
        execution.per_broker,
        execution.per_cluster,
        sums["rates"],
        sums["pairs"],
        sums["obliged"],
        [_read_foreign_throttle(each) for each in execution.foreign],
        _worst_inbound_rate(figures),
    )


def _worst_inbound_rate(figures: RunNow | None) -> float | None:
    """Return the highest rate of producers into all that is copied to or from one broker; None where not known."""
    if figures is None or not figures.rows or any(row.inbound is None for row in figures.rows):
        return None
    return max((broker.inbound or 0.0 for broker in figures.brokers), default=0.0)


def value_words(key: str, value: str | None) -> str:
    """Return a rate in both units: "10 B/s", "60 MB/s (60,000,000 B/s)"; a list as it stands there."""
    text = str(value) if value is not None else ""
    if not text:
        return "not set"
    rate = None if key.endswith(".replicas") else read_whole_number(text)
    if rate is not None:
        return f"{rate:,} B/s" if rate < 1000 else f"{format_megabytes(rate)} MB/s ({rate:,} B/s)"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST = 120


def _read_foreign_throttle(stored: dict[str, Any]) -> ForeignThrottleNote:
    at = stored.get("at")
    return ForeignThrottleNote(
        str(stored["resource"]),
        str(stored["name"]),
        str(stored["key"]),
        str(stored["value"]) if stored.get("value") is not None else "",
        str(stored["ours"]) if stored.get("ours") is not None else "",
        datetime.fromisoformat(at) if at else None,
    )


@dataclass(frozen=True, slots=True)
class MinIsr:
    """``under`` and ``at`` are None where min.insync.replicas of a topic was not read, or nothing was."""

    under: int | None
    at: int | None
    freshness: FactFreshness

    @property
    def state(self) -> str:
        if self.under is None or self.freshness.stale:
            return "unknown"
        return "critical" if self.under else "warning" if self.at else "ok"


def min_isr_of(cluster: Cluster, now: datetime, known: CollectionFreshness | None = None) -> MinIsr:
    """Return min-ISR counts of all topics, moved or not. Two queries, one where ``known`` was read already."""
    freshness = (known or load_standing(cluster, now)).freshness_of(CollectorKind.METADATA)
    sums = TopicState.objects.filter(cluster=cluster).aggregate(
        under=Sum("under_min_isr", default=0),
        at=Sum("at_min_isr", default=0),
        unjudged=Count("pk", filter=Q(under_min_isr=None)),
    )
    if freshness.taken_at is None or sums["unjudged"]:
        return MinIsr(None, None, freshness)
    return MinIsr(sums["under"], sums["at"], freshness)


MOST_BROKERS = 5


@dataclass(frozen=True, slots=True)
class BrokerMeter:
    """Progress of the copies into one broker. ``binding``: this broker takes longest."""

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
            return "unknown"
        if seen.moved_bytes >= seen.total_bytes:
            return f"{size_text(seen.total_bytes)} done"
        return of_total(seen.moved_bytes, seen.total_bytes)


@dataclass(frozen=True)
class RunShown:
    """A run at ``now``. ``figures`` are those of its last step, None before the first; what is None is not known."""

    execution: Execution
    figures: RunNow | None
    counts: RowCounts
    options: RunOptions
    min_isr: MinIsr
    throttle: ThrottleNow
    notices: Sequence[RunNotice]
    now: datetime

    @property
    def change(self) -> ChangeRequest:
        return self.execution.request

    @property
    def live(self) -> bool:
        return self.change.state in RUNNING

    @cached_property
    def freshness(self) -> FactFreshness:
        """Freshness of the figures of progress."""
        return freshness_of_figures(self.execution, self.now)

    @cached_property
    def looked(self) -> FactFreshness:
        """Freshness of the last look at the cluster."""
        return freshness_of_run(self.execution, self.now)

    @property
    def percent(self) -> float | None:
        return self.figures.percent if self.figures else None

    @property
    def shown_percent(self) -> float | None:
        """Percent of the whole plan, or while that is not known of the rows of known size: see ``copied_words``."""
        if self.figures is None:
            return None
        return self.figures.known_percent if self.percent is None else self.percent

    @property
    def copied_words(self) -> str:
        """Return a text such as "338.9 of 665.5 GB copied"."""
        figures = self.figures
        if figures is not None and figures.known_percent is not None and self.percent is None:
            known = of_total(figures.known_moved or 0, figures.known_bytes or 0)
            unsized = choose_plural("# partition|# partitions", figures.unsized)
            return f"{known} copied, excluding {unsized} of unknown size"
        if figures is None or figures.moved_bytes is None:
            return "copied bytes unknown"
        if figures.total_bytes is None:
            return f"{size_text(figures.moved_bytes)} copied, total unknown"
        if not figures.total_bytes:
            return "nothing to copy"
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
            return "all moves have ended"
        if self.freshness.stale:
            return "end unknown (stale data)"
        eta = self.figures.eta_s if self.figures else None
        return "end not known yet" if eta is None else "no progress" if math.isinf(eta) else ""

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
            return "unknown"
        if self.left_unknown:
            return "unknown"
        return "no progress" if self.left_s is None else ""

    @property
    def left_range(self) -> str:
        figures = self.figures
        if self.freshness.stale:
            return "stale data"
        if figures is None or self.left_s is None:
            return "needs three samples" if self.left_unknown else "never ends at this rate"
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
        """Return a text such as "inbound, 58.6 of 60 MB/s"."""
        if self.binding is None:
            return "too few samples" if self.left_unknown else "concurrent moves are the limit"
        way = "inbound" if self.binding.direction is FlowDirection.IN else "outbound"
        rate = self.binding.rate
        now = "rate unknown" if rate is None else f"{rate / 1e6:,.1f} of {self.execution.throttle / 1e6:,g} MB/s"
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
        """Meters of the brokers that receive, the one that takes longest first, then by the bytes left."""
        figures = self.figures
        if figures is None:
            return ()
        into = [
            BrokerMeter(each, figures.binding == (each.broker, each.direction))
            for each in figures.brokers
            if each.direction is FlowDirection.IN
        ]
        return sorted(into, key=lambda meter: (not meter.binding, -_bytes_left(meter.seen), meter.seen.broker))

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
            return "never", "no end set"
        left = (self.closes - self.now).total_seconds()
        shown = f"{self.closes:%H:%M}" if abs(left) < _SAME_DAY_S else day_and_time(self.closes)
        return shown, f"in {format_duration(left)}" if left > 0 else f"closed {format_duration(-left)} ago"

    @property
    def guard(self) -> str:
        """Name who sees to it that no move changes the number of replicas: "kafka", "kafkadash" or "unknown".

        '' where such a change was approved.
        """
        if self.options.change_rf:
            return ""
        capabilities = getattr(self.execution.cluster, "capabilities", None)
        versions = capabilities.apis.get(_ALTER_REASSIGNMENTS) if capabilities else None
        return "unknown" if versions is None else "kafka" if versions[1] >= 1 else "kafkadash"

    @property
    def moves_words(self) -> str:
        """Below how many are done."""
        others = [f"{number:,} {words}" for number, words in self.counts.exceptions]
        return ", ".join(others) or "largest first"

    @property
    def trouble(self) -> str:
        """Text that is read aloud when it changes: "is now …"."""
        if self.live and self.looked.stale:
            return "without fresh data"
        parts = [(self.counts.stuck, "stuck"), (self.counts.asks, "awaiting a decision")]
        return ", ".join(f"{number:,} {words}" for number, words in parts if number) or "without problems"

    @property
    def title(self) -> str:
        """Return the name of the change and its state, for the title of the page."""
        name = f"#{self.change.pk} {self.change.title}".strip()
        match self.change.state:
            case ChangeState.QUEUED:
                return f"{name}: {'blocked' if self.execution.blocked else 'queued'}"
            case ChangeState.PAUSED:
                doing = "paused"
            case ChangeState.CANCELLING:
                doing = "being cancelled"
            case ChangeState.VERIFYING:
                doing = "being verified"
            case ChangeState.EXECUTING:
                doing = ""
            case _:
                return f"{name}: {self.change.get_state_display().lower()}"
        stuck = f"{self.counts.stuck:,} stuck" if self.counts.stuck else ""
        if self.looked.stale:
            return f"{name}: progress unknown (stale data)"
        known = "progress unknown"
        if self.shown_percent is not None:
            known = f"{math.floor(self.shown_percent * 10) / 10:.1f} %"
            known += " (known sizes only)" if self.percent is None else ""
        return f"{name}: {', '.join(part for part in (known, stuck, doing) if part)}"


_ALTER_REASSIGNMENTS = "45"
"""As ``Capabilities.apis`` names it; from version 1 on (Kafka 4.1) it refuses changes of the replication factor."""
_SAME_DAY_S = 20 * 3600
_FARTHEST_S = 365 * 86_400


def run_part(number: int, now: datetime) -> Mapping[str, Any] | None:
    """Return what is pushed of a run besides its rows; None where the request has no run."""
    execution = execution_of(number)
    return None if execution is None else part_of(run_shown(execution, now))


class RunPartContext(TypedDict):
    number: int
    shown: RunShown
    now: datetime
    sampled_at: datetime | None


def part_of(run: RunShown) -> RunPartContext:
    return {"number": run.change.pk, "shown": run, "now": run.now, "sampled_at": run.execution.progress_at}


def run_shown(execution: Execution, now: datetime, known: CollectionFreshness | None = None) -> RunShown:
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


def _bytes_left(seen: BrokerNow) -> int:
    return (seen.total_bytes or 0) - (seen.moved_bytes or 0)
