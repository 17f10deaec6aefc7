"""The lag history of the quorum's nodes, aggregated in the database: the worst of each interval is kept."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.lag_history import LagBuckets, LagLine, coarser, lag_lines, summary
from kafkadash.domain.quorum import LAGGING_MS
from kafkadash.domain.quorum_history import Change, Reign, changes
from kafkadash.observe.models import CollectorRun, Kind
from kafkadash.observe.queries.controllers import reigns_of
from kafkadash.observe.standing import Standing, freshness_of, standing

_TABLE_ROWS = 24
_LEAST_TOP_MS = 2_500  # the line from which on a node lags is always in the picture
_MOST_TOP_MS = 20_000  # above, the axis is in seconds
_QUICKEST_REFETCH_S, _SLOWEST_REFETCH_S = 10, 60

# A node's lag is the leader's last-caught-up time minus its own, both in the same answer and on the leader's clock.
# A leader has none of its own. jsonb_to_recordset reads the packed column, format 1.
_WORST_PER_BUCKET = """
    SELECT bucket, id, bool_or(voter), max(leader_ms - own_ms)
    FROM (
        SELECT floor(extract(epoch FROM s.taken_at) / %(step)s)::bigint AS bucket, n.id, n.voter, s.leader_id,
               n.last_caught_up_ms AS own_ms,
               max(n.last_caught_up_ms) FILTER (WHERE n.id = s.leader_id) OVER (PARTITION BY s.id) AS leader_ms
        FROM observe_quorumsnapshot s,
             jsonb_to_recordset(s.replicas) AS n(id integer, voter boolean, last_caught_up_ms bigint)
        WHERE s.cluster_id = %(cluster)s AND s.taken_at >= %(start)s AND s.taken_at < %(end)s
    ) nodes
    WHERE id <> leader_id
    GROUP BY bucket, id
"""

# A quorum of one has no row above: its leader is the only node.
_HEARD = """
    SELECT DISTINCT floor(extract(epoch FROM taken_at) / %(step)s)::bigint
    FROM observe_quorumsnapshot
    WHERE cluster_id = %(cluster)s AND taken_at >= %(start)s AND taken_at < %(end)s
"""


@dataclass(frozen=True, slots=True)
class Range:
    """How far back the chart goes, and how long one interval of it is; both in seconds."""

    name: str
    words: str
    length_s: int
    step_s: int


RANGES = (
    Range("15m", "15 min", 900, 15),
    Range("1h", "1 h", 3600, 30),
    Range("6h", "6 h", 6 * 3600, 120),
    Range("24h", "24 h", 24 * 3600, 360),
)
DEFAULT_RANGE = RANGES[1]


def range_named(name: str | None) -> Range:
    """The range of that name, or the default for a name that is none."""
    return next((r for r in RANGES if r.name == name), DEFAULT_RANGE)


def lag_context(
    cluster: Cluster,
    now: datetime,
    chosen: Range,
    known: Standing | None = None,
    reigns: Sequence[Reign] | None = None,
) -> dict[str, Any]:
    """The chart, its line in words and its table. ``sampled_at``: the newest answer in it."""
    run = (known or standing(cluster, now)).runs.get(Kind.QUORUM)
    reigns = reigns_of(cluster) if reigns is None else reigns
    seen = _read(cluster, now, chosen, _step(cluster, run, chosen), reigns)
    lines = lag_lines(seen)
    clock = {bucket: _clock(seen.at(bucket)) for bucket in range(seen.buckets + 1)}
    inside = [c for c in changes(reigns) if seen.at(0) <= c.at.timestamp() < seen.at(seen.buckets)]
    table_step = max(1, math.ceil(seen.buckets / _TABLE_ROWS))
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": max((reign.last_seen for reign in reigns), default=None),
        "zookeeper": cluster.mode == Mode.ZOOKEEPER,
        "freshness": freshness_of(run, now),
        "chosen": chosen,
        "ranges": RANGES,
        "refetch_s": min(max(seen.step_s, _QUICKEST_REFETCH_S), _SLOWEST_REFETCH_S),
        "interval_s": seen.step_s,
        "table_interval_s": seen.step_s * table_step,
        "summary": summary(seen, lines, clock),
        "lines": lines,
        "known": any(line.worst is not None for line in lines),
        "voters": [line for line in lines if line.voter and not line.lagged],
        "observers": [line for line in lines if not line.voter and not line.lagged],
        "lagged": [line for line in lines if line.lagged],
        "changes": inside,
        "chart": json.dumps(_chart(seen, lines, inside), separators=(",", ":")),
        "rows": _table(seen, lines, inside, table_step),
    }


def _step(cluster: Cluster, run: CollectorRun | None, chosen: Range) -> int:
    """An interval of the chart is longer than that of the collector, or every other one would be a gap."""
    paces: list[float] = [cluster.cadence.get(Kind.QUORUM.value, settings.COLLECT_INTERVALS[Kind.QUORUM.value])]
    if run is not None:
        paces.append(run.interval_s)
    return max(chosen.step_s, math.ceil(1.5 * max(paces)))


def _read(cluster: Cluster, now: datetime, chosen: Range, step: int, reigns: Sequence[Reign]) -> LagBuckets:
    last = math.floor(now.timestamp() / step)
    first = last + 1 - math.ceil(chosen.length_s / step)
    start, end = (datetime.fromtimestamp(bucket * step, UTC) for bucket in (first, last + 1))
    heard, lag, voters = set(), defaultdict[int, dict[int, int]](dict), set()
    with connection.cursor() as cursor:
        cursor.execute(_WORST_PER_BUCKET, {"cluster": cluster.pk, "step": step, "start": start, "end": end})
        for bucket, node, voter, worst in cursor.fetchall():
            heard.add(bucket - first)
            own = lag[node]
            if voter:
                voters.add(node)
            if worst is not None:
                own[bucket - first] = max(0, worst)
        cursor.execute(_HEARD, {"cluster": cluster.pk, "step": step, "start": start, "end": end})
        heard |= {bucket - first for (bucket,) in cursor.fetchall()}
    watched = min((reign.first_seen for reign in reigns), default=end)
    # The interval that has only begun is left out until there is something in it.
    buckets = last + 1 - first if last - first in heard else last - first
    watched_from = min(buckets, max(0, math.floor(watched.timestamp() / step) - first))
    return LagBuckets(first * step, step, buckets, frozenset(voters), lag, frozenset(heard), watched_from)


def _chart(seen: LagBuckets, lines: list[LagLine], inside: list[Change]) -> dict[str, Any]:
    """As ``static/js/charts.js`` reads it."""
    worst = max((line.worst for line in lines if line.worst is not None), default=0)
    top = max(_LEAST_TOP_MS, round(worst * 1.12))
    in_seconds = top > _MOST_TOP_MS

    def scaled(ms: int | None) -> float | None:
        return ms if ms is None or not in_seconds else ms / 1000

    return {
        "x": [seen.at(bucket) for bucket in range(seen.buckets)],
        "range": [seen.at(0), seen.at(seen.buckets)],
        "unit": "s" if in_seconds else "ms",
        "min": 0,
        "max": scaled(top),
        "series": [
            {
                "label": line.label,
                "ink": "warning" if line.lagged else 1 if line.voter else 3,
                "width": 1.5 if line.voter or line.lagged else 1,
                "y": [scaled(ms) for ms in line.values],
            }
            for line in sorted(lines, key=lambda line: (line.lagged, line.voter))
        ],
        "limits": [{"y": scaled(LAGGING_MS), "label": f"lagging from {LAGGING_MS:,} ms"}],
        "marks": [
            {
                "x": change.at.timestamp(),
                "label": f"{change.before.leader_id} → {change.after.leader_id}, epoch {change.after.epoch}",
            }
            for change in inside
        ],
    }


@dataclass(frozen=True, slots=True)
class TableRow:
    """The worst of an interval for every line, in the order of the lines; ``changes`` of the leader in it."""

    at: datetime
    values: list[int | None]
    changes: list[Change]


def _table(seen: LagBuckets, lines: list[LagLine], inside: list[Change], size: int) -> list[TableRow]:
    columns = [coarser(line.values, size) for line in lines]
    rows = []
    for index, bucket in enumerate(range(0, seen.buckets, size)):
        begin = datetime.fromtimestamp(seen.at(bucket), UTC)
        end = begin + timedelta(seconds=seen.step_s * size)
        own = [change for change in inside if begin <= change.at < end]
        rows.append(TableRow(begin, [column[index] for column in columns], own))
    return rows[::-1]


def _clock(epoch_s: int) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%H:%M")
