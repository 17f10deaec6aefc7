"""The brokers of a cluster with their log directories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, When

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import BrokerState, BrokerWeights, Kind
from kafkadash.observe.standing import UP, Freshness, Standing, standing

MOST_ROWS = 50
DISK_MARKS = (80, 90)
"""Percent of a log directory from which a broker needs a look, and from which it needs one soon."""


@dataclass(frozen=True, slots=True)
class DirectoryRow:
    """A log directory; ``percent`` is None where Kafka does not tell its size (before 3.3)."""

    path: str
    total_bytes: int | None
    used_bytes: int | None
    percent: float | None
    cordoned: bool | None
    error: str

    @property
    def limit(self) -> int | None:
        """The highest of the marks that it is over, in percent; None below all of them."""
        passed = [mark for mark in DISK_MARKS if self.percent is not None and self.percent >= mark]
        return max(passed, default=None)

    @property
    def state(self) -> str:
        """Of its bar; '' while it is below the marks."""
        if self.error:
            return "warning"
        if self.limit is None:
            return ""
        return "critical" if self.limit == max(DISK_MARKS) else "warning"


@dataclass(frozen=True, slots=True)
class BrokerRow:
    broker: BrokerState
    state: str
    word: str
    directories: Sequence[DirectoryRow]
    disk_freshness: Freshness | None


def brokers_context(cluster: Cluster, now: datetime, known: Standing | None = None) -> dict[str, Any]:
    """The brokers with their log directories; those that are not up first, at most ``MOST_ROWS``."""
    read = known or standing(cluster, now)
    rows = BrokerState.objects.filter(cluster=cluster)
    up = Case(When(UP, then=1), default=0)
    shown = list(rows.order_by(up, "broker_id")[:MOST_ROWS])
    weights = {
        w.broker_id: w
        for w in BrokerWeights.objects.filter(cluster=cluster, broker_id__in=[b.broker_id for b in shown]).defer("data")
    }
    disk_interval = read.runs[Kind.LOG_DIRS].interval_s if Kind.LOG_DIRS in read.runs else 60.0
    freshness = read.freshness_of(Kind.METADATA)
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": freshness.taken_at,
        "brokers": sorted(
            (_broker_row(b, weights.get(b.broker_id), disk_interval, freshness, now) for b in shown),
            key=lambda row: row.broker.broker_id,
        ),
        "total": rows.count() if len(shown) == MOST_ROWS else len(shown),
        "freshness": freshness,
        "run": read.runs.get(Kind.METADATA),
    }


def _broker_row(
    broker: BrokerState, weights: BrokerWeights | None, disk_interval: float, freshness: Freshness, now: datetime
) -> BrokerRow:
    state, word = broker_state(broker, freshness)
    return BrokerRow(
        broker=broker,
        state=state,
        word=word,
        directories=[directory_row(d) for d in weights.dirs] if weights else [],
        disk_freshness=Freshness(weights.taken_at, disk_interval, now) if weights else None,
    )


def broker_state(broker: BrokerState, freshness: Freshness) -> tuple[str, str]:
    """What is known of a broker. Nothing old is said to be so now."""
    word = broker_word(broker)
    if freshness.stale:
        return "unknown", f"Was {word}"
    if word == "up":
        return "ok", "Up"
    return ("critical" if broker.replicas else "warning"), {"silent": "Does not answer"}.get(word, word.capitalize())


def broker_word(broker: BrokerState) -> str:
    """As it was last seen, such as "fenced"."""
    if broker.gone_at is not None:
        return "gone"
    return "fenced" if broker.fenced else "silent" if broker.silent_since is not None else "up"


def directory_row(stored: dict[str, Any]) -> DirectoryRow:
    total, usable = stored["total_bytes"], stored["usable_bytes"]
    used = total - usable if total is not None and usable is not None else None
    return DirectoryRow(
        path=stored["path"],
        total_bytes=total,
        used_bytes=used if used is not None else stored["replica_bytes"],
        percent=100.0 * used / total if used is not None and total else None,
        cordoned=stored["cordoned"],
        error=stored["error"] or "",
    )
