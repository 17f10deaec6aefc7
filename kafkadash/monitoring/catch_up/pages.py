"""Catch-up as pages show it: the panel of a broker, its mark in lists, and lines at the partitions of a topic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import join_items, run_time
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.catch_up.packing import unpack_followers
from kafkadash.monitoring.catch_up.rules import CatchUpState, FollowerSample
from kafkadash.monitoring.freshness import FactFreshness
from kafkadash.monitoring.models import BrokerCatchUp, CollectorKind, CollectorRun, TopicState

MOST_LINES = 25

_STATE_WORDS = {
    CatchUpState.STILL: "not growing",
    CatchUpState.FALLING: "falls behind",
    CatchUpState.UNREAD: "not read",
    CatchUpState.SKIPPED: "not read",
    CatchUpState.MEASURING: "rate not known yet",
    CatchUpState.CLOSING: "catching up",
    CatchUpState.LEVEL: "all records, not in ISR yet",
}
_REASONS = {
    CatchUpState.STILL: "# replica does not grow|# replicas do not grow",
    CatchUpState.FALLING: "# replica falls behind|# replicas fall behind",
    CatchUpState.UNREAD: "# replica was not read|# replicas were not read",
    CatchUpState.SKIPPED: "# replica is beyond the limit|# replicas are beyond the limit",
    CatchUpState.MEASURING: "the rate of # replica is not known yet|the rates of # replicas are not known yet",
}
"""Why a broker has no time left."""
_WARNING = frozenset({CatchUpState.STILL, CatchUpState.FALLING})


@dataclass(frozen=True)
class FollowerLine:
    """Replica that is behind, as a page shows it."""

    broker: int
    sample: FollowerSample
    stale: bool

    @property
    def name(self) -> str:
        """Topic and partition as Kafka's tools write them."""
        return f"{self.sample.topic}-{self.sample.partition}"

    @cached_property
    def left_words(self) -> str:
        """Time left, or why there is none."""
        state, seconds = self.sample.state, self.sample.seconds_left
        if self.stale:
            return "unknown, data is old"
        if state is CatchUpState.CLOSING and seconds is not None:
            return run_time(seconds)
        if state is CatchUpState.UNREAD and self.sample.leader is None and not self.sample.error:
            return "not read, no leader"
        return _STATE_WORDS[state]

    @property
    def state(self) -> str:
        """State of the line's mark; '' for none."""
        if self.stale or self.sample.state is CatchUpState.UNREAD:
            return "unknown"
        return "warning" if self.sample.state in _WARNING else ""

    @property
    def short_words(self) -> str:
        """The line at a partition of the topic's page."""
        sample = self.sample
        if sample.lag is None or (sample.lag and self.stale):
            return f"broker {self.broker}: lag unknown"
        if not sample.lag:
            return f"broker {self.broker}: {'unknown' if self.stale else _STATE_WORDS[CatchUpState.LEVEL]}"
        behind = choose_plural("# record behind|# records behind", sample.lag)
        left = f"{self.left_words} left" if sample.state is CatchUpState.CLOSING else self.left_words
        return f"broker {self.broker}: {behind}, {left}"


@dataclass(frozen=True)
class CatchUpShown:
    """Stored catch-up of a broker. ``freshness`` is that of the oldest sample."""

    row: BrokerCatchUp
    freshness: FactFreshness

    @property
    def seconds_left(self) -> float | None:
        """None also where the data is too old to say it."""
        return None if self.freshness.stale else self.row.seconds_left

    @property
    def left_words(self) -> str:
        """Time left of the slowest replica; '' where ``reason`` says why there is none."""
        return "" if self.seconds_left is None else run_time(self.seconds_left)

    @property
    def reason(self) -> str:
        if self.seconds_left is not None:
            return "slowest replica"
        if self.freshness.stale:
            return "data is old"
        return join_items(
            [choose_plural(words, number) for state, words in _REASONS.items() if (number := self._count(state))]
        )

    @property
    def level(self) -> bool:
        """Return whether all replicas have all records and only wait to be in the ISR."""
        return self._count(CatchUpState.LEVEL) == self.row.replicas

    @property
    def unread(self) -> int:
        return self._count(CatchUpState.UNREAD) + self._count(CatchUpState.SKIPPED)

    @property
    def state(self) -> str:
        """State of the mark in a list; '' while all replicas get closer."""
        if self.freshness.stale or self.unread:
            return "unknown"
        return "warning" if any(self._count(state) for state in _WARNING) else ""

    @property
    def mark(self) -> str:
        """The words of a list of brokers."""
        replicas = choose_plural("# replica|# replicas", self.row.replicas)
        if self.freshness.stale:
            return f"{replicas} behind when last read"
        if self.level:
            return f"{replicas} not in ISR yet"
        return f"{replicas} behind, {f'{self.left_words} left' if self.left_words else 'time left unknown'}"

    def _count(self, state: CatchUpState) -> int:
        return int(self.row.counts.get(state.value, 0))


@dataclass(frozen=True)
class CatchUpPanel:
    """``shown`` is None before the first sample: then nothing is known of the replicas that are behind."""

    shown: CatchUpShown | None
    lines: Sequence[FollowerLine]

    @property
    def more(self) -> int:
        return self.shown.row.replicas - len(self.lines) if self.shown else 0


def load_catch_up(
    cluster: Cluster, brokers: Collection[int] | None, runs: Mapping[str, CollectorRun], now: datetime
) -> dict[int, CatchUpShown]:
    """Return what is stored of these brokers, or of all for None, without single replicas. One query."""
    rows = BrokerCatchUp.objects.filter(cluster=cluster).defer("data")
    rows = rows if brokers is None else rows.filter(broker_id__in=brokers)
    return {row.broker_id: _show(row, runs, now) for row in rows}


def build_panel(
    cluster: Cluster, broker: int, runs: Mapping[str, CollectorRun], now: datetime, *, expected: bool
) -> CatchUpPanel | None:
    """Return the panel of a broker; None where none of its replicas is behind.

    ``expected``: the metadata has replicas that are.
    """
    row = BrokerCatchUp.objects.filter(cluster=cluster, broker_id=broker).first()
    if row is None:
        return CatchUpPanel(None, []) if expected else None
    shown = _show(row, runs, now)
    samples = unpack_followers(row, most=MOST_LINES)
    return CatchUpPanel(shown, [FollowerLine(broker, sample, shown.freshness.stale) for sample in samples])


def load_followers(
    topic: TopicState, brokers: Collection[int], runs: Mapping[str, CollectorRun], now: datetime
) -> dict[int, list[FollowerLine]]:
    """Return partition → its replicas that are behind, by broker; ``brokers``: those that have one. One query."""
    found: dict[int, list[FollowerLine]] = defaultdict(list)
    for row in BrokerCatchUp.objects.filter(cluster=topic.cluster_id, broker_id__in=brokers).order_by("broker_id"):
        stale = _show(row, runs, now).freshness.stale
        for sample in unpack_followers(row, topic=topic.name):
            if sample.topic_id == topic.topic_id:
                found[sample.partition].append(FollowerLine(row.broker_id, sample, stale))
    return found


def _show(row: BrokerCatchUp, runs: Mapping[str, CollectorRun], now: datetime) -> CatchUpShown:
    run = runs.get(CollectorKind.CATCH_UP)
    interval_s = run.interval_s if run else 30.0
    return CatchUpShown(row, FactFreshness(row.sampled_at or row.taken_at, interval_s, now))
