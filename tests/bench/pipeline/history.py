"""A chart out of a year of minute rollups of 5,000 group-topics.

A year is 2.6 billion rows, more than a bench can write. The table is partitioned by day, a chart of minutes reads two
days at most; so the last 25 hours are filled whole, in the order in which they come, and of other days there are the
empty partitions, which planning has to look through. Hours of a week and days of a year are whole.
"""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime, timedelta

from tests.bench.bars import Bar, at_most, percentile
from tests.bench.server import empty_database

SERIES = int(os.environ.get("HISTORY_SERIES", "5000"))
CHART_MS = 300.0
LOOKS = 60

_FILL = """
    INSERT INTO history_rollup (bucket, version, samples, series_id, grain, most, p50, p95, p99, mean)
    SELECT at, 1, 60, s.id, %s, 9000 + s.id, 40 + s.id %% 7, 800 + s.id %% 90, 900, 77.5
    FROM generate_series(%s::timestamptz, %s::timestamptz, make_interval(secs => %s)) AS at, history_series s
    ORDER BY at, md5(s.id::text)
"""


def measure() -> list[Bar]:
    with empty_database():
        return _measure()


def _measure() -> list[Bar]:
    from django.db import connection

    from kafkadash.clusters.models import Cluster
    from kafkadash.history.charts import RANGES, group_history_context
    from kafkadash.history.models import Series

    now = datetime.now(UTC)
    cluster = Cluster.objects.create(name="large", slug="large", bootstrap_servers="127.0.0.1:1")
    Series.objects.bulk_create(
        Series(cluster=cluster, kind="lag_rollup", group=f"group-{n}", topic=f"topic-{n % 400}", seen_on=now.date())
        for n in range(SERIES)
    )
    _fill(now)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE history_rollup")
        cursor.execute("SELECT count(*), count(DISTINCT tableoid) FROM history_rollup")
        rows, tables = cursor.fetchone()
        cursor.execute(
            "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('history_rollup') WHERE isleaf"
        )
        size = int(cursor.fetchone()[0])
    chance = random.Random(7)
    bars = []
    for chosen in RANGES:
        took = []
        for _ in range(LOOKS):
            group = f"group-{chance.randrange(SERIES)}"
            began = time.perf_counter()
            context = group_history_context(cluster, group, None, chosen, now)
            took.append((time.perf_counter() - began) * 1000)
            assert context["lines"].known > 0.9 * context["lines"].buckets
        bars.append(
            at_most(f"{SERIES:,} group-topics: a chart of a {chosen.words}, p95", percentile(took, 95), CHART_MS, "ms")
        )
    a_day = SERIES * 1440
    return [
        *bars,
        Bar(f"rows in {tables} tables that hold any", rows, "rows"),
        Bar("bytes of a row with its index", round(size / rows, 1), "B"),
        Bar("minute rollups of 90 days, from that", round(90 * a_day * size / rows / 1e9, 1), "GB"),
    ]


def _fill(now: datetime) -> None:
    from django.db import connection

    from kafkadash.history import partitions
    from kafkadash.history.partitions import DAY, HOUR, MINUTE

    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    partitions.ensure_partitions((MINUTE, today - timedelta(days=n)) for n in range(365))
    partitions.ensure_partitions((HOUR, today - timedelta(days=30 * n)) for n in range(4))
    partitions.ensure_partitions((DAY, today - timedelta(days=365 * n)) for n in range(2))
    spans = (
        (MINUTE, now - timedelta(hours=25)),
        (HOUR, today - timedelta(days=89)),
        (DAY, today - timedelta(days=366)),
    )
    for grain, since in spans:
        begin = datetime.fromtimestamp(since.timestamp() // grain * grain, UTC)
        for place in _days(begin, now):
            partitions.ensure_partitions([(grain, place)])
        with connection.cursor() as cursor:
            cursor.execute(_FILL, [grain, begin, now, grain])


def _days(begin: datetime, end: datetime) -> list[datetime]:
    return [begin + timedelta(days=n) for n in range((end - begin).days + 2)]
