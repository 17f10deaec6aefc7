"""The throttle of a run as its page shows it: the rate in force within its bounds, what is ours, what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Count, F, Func, IntegerField, Q, Sum

from kafkadash.domain.plan import Options
from kafkadash.domain.run_progress import RunNow
from kafkadash.domain.whole_numbers import read_whole_number
from kafkadash.domain.wording import count
from kafkadash.observe.models import ThrottledResource
from kafkadash.reassign.models import EntryState, Execution, ThrottleEntry
from kafkadash.reassign.rates import MB, megabytes

_KEYS = {
    "leader.replication.throttled.rate": "leader rate",
    "follower.replication.throttled.rate": "follower rate",
    "leader.replication.throttled.replicas": "list of throttled leaders",
    "follower.replication.throttled.replicas": "list of throttled followers",
    "replica.alter.log.dirs.io.max.bytes.per.second": "rate between directories",
}


@dataclass(frozen=True, slots=True)
class Foreign:
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
        """ "leader rate of broker 4"."""
        return f"{_KEYS.get(self.key, self.key)} of {self.resource} {self.name}".rstrip()

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
    foreign: Sequence[Foreign]
    floor: float | None = None

    @property
    def top(self) -> int:
        """Where the bar ends."""
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
        """Its figure can stand beside that of the rate without touching it."""
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
        bounds = f"{megabytes(self.lowest)} to {megabytes(self.highest)}"
        return f"Approved {bounds} MB/s, now {megabytes(self.rate)} MB/s{floor}"

    @property
    def ours_words(self) -> str:
        if not (self.rates or self.pairs):
            return "Ours: none set"
        obliged = f", {self.obliged:,} to be cleared later" if self.obliged else ""
        return f"Ours: {count(self.rates, 'rate')}, {count(self.pairs, 'entry', 'entries')}{obliged}"


_APART = 0.12


class _OpenPairs(Func):
    """How many pairs of a list are not cleared, without those that had stood there before."""

    arg_joiner = ") AS pair WHERE pair.value <> 'cleared' AND NOT jsonb_exists("
    template = "(SELECT count(*) FROM jsonb_each_text(%(expressions)s, pair.key))"
    output_field = IntegerField()


def throttle_now(execution: Execution, options: Options, figures: RunNow | None) -> ThrottleNow:
    """One query."""
    lists = Q(resource=ThrottledResource.TOPIC)
    places = [Q(resource=each["resource"], name=each["name"], key=each["key"]) for each in execution.foreign]
    theirs = reduce(or_, places, Q(pk__in=()))
    sums = (
        ThrottleEntry.objects.filter(execution=execution)
        .exclude(Q(state=EntryState.CLEARED) | theirs)
        .annotate(open_pairs=_OpenPairs(F("pairs"), F("already")))
        .aggregate(
            rates=Count("pk", filter=~lists),
            pairs=Sum("open_pairs", filter=lists, default=0),
            obliged=Count("pk", filter=Q(state=EntryState.OBLIGED)),
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
        [_foreign(each) for each in execution.foreign],
        _floor(figures),
    )


def _floor(figures: RunNow | None) -> float | None:
    """What producers add to all that is copied to one broker, or from one, at the worst of them."""
    if figures is None or not figures.rows or any(row.inbound is None for row in figures.rows):
        return None
    return max((broker.inbound or 0.0 for broker in figures.brokers), default=0.0)


def value_words(key: str, value: str | None) -> str:
    """Of a rate in both units: "10 B/s", "60 MB/s (60,000,000 B/s)"; of a list as it stands there."""
    text = str(value) if value is not None else ""
    if not text:
        return "nothing"
    rate = None if key.endswith(".replicas") else read_whole_number(text)
    if rate is not None:
        return f"{rate:,} B/s" if rate < 1000 else f"{megabytes(rate)} MB/s ({rate:,} B/s)"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST = 120


def _foreign(stored: dict[str, Any]) -> Foreign:
    at = stored.get("at")
    return Foreign(
        str(stored["resource"]),
        str(stored["name"]),
        str(stored["key"]),
        str(stored["value"]) if stored.get("value") is not None else "",
        str(stored["ours"]) if stored.get("ours") is not None else "",
        datetime.fromisoformat(at) if at else None,
    )
