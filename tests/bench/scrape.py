"""``/metrics`` with 5,000 consumer groups: how long one scrape takes, and how many queries it runs.

Django's test client in this process, on an embedded PostgreSQL over its socket. What uvicorn and the network add is not
in the figure.
"""

from __future__ import annotations

import importlib
import time
from datetime import UTC, datetime
from typing import Any

from tests.bench.bars import Bar, at_most, percentile
from tests.bench.board import keep_fresh
from tests.bench.server import empty_database

CLUSTERS, GROUPS = 10, 5_000
SCRAPES = 40
LIMIT_MS = 500
TOKEN = "a-token-of-the-bench"
OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
FORMATS: dict[str, dict[str, str]] = {"text": {}, "OpenMetrics": OPENMETRICS}


def measure() -> list[Bar]:
    with empty_database():
        from django.db import connection
        from django.test import Client, override_settings
        from django.test.utils import CaptureQueriesContext

        importlib.import_module("kafkadash.asgi")  # the web process sets itself up there, the garbage collector too
        client = Client(HTTP_HOST="localhost", headers={"Authorization": f"Bearer {TOKEN}"})
        bars, queries = [], []
        with override_settings(METRICS_TOKEN=TOKEN):
            clusters = _fill_clusters()
            for groups in (1, GROUPS):
                _fill_groups(clusters, groups)
                _scrape(client, {})  # the first one loads modules
                with CaptureQueriesContext(connection) as captured:
                    _scrape(client, {})
                queries.append(len(captured))
            for name, headers in FORMATS.items():
                took, size = [], 0
                for _ in range(SCRAPES):
                    keep_fresh()
                    began = time.perf_counter()
                    content = _scrape(client, headers)
                    took.append(1000 * (time.perf_counter() - began))
                    size = len(content)
                    shown = content.count(b"\nkafkadash_group_lag_records{")
                    assert shown == GROUPS, f"a scrape has {shown} groups, not {GROUPS}"
                bars += [
                    at_most(f"scrape of {GROUPS:,} groups, {name}: p95", percentile(took, 95), LIMIT_MS, "ms"),
                    Bar(f"scrape, {name}: median", round(percentile(took, 50), 1), "ms"),
                    Bar(f"scrape, {name}: size", round(size / 1000, 1), "kB"),
                ]
    return [
        *bars,
        Bar("scrape: queries", queries[-1], "queries"),
        at_most(f"scrape: queries more for {GROUPS:,} groups than for 1", queries[-1] - queries[0], 0, "queries"),
    ]


def _scrape(client: Any, headers: dict[str, str]) -> bytes:
    response = client.get("/metrics", headers=headers)
    assert response.status_code == 200, response.status_code
    content: bytes = response.content
    return content


def _fill_clusters() -> list[Any]:
    from tests.factories import judged, watched

    now = datetime.now(UTC)
    clusters = []
    for n in range(CLUSTERS):
        clusters.append(watched(f"cluster-{n:02}", now, offline_partitions=n, under_replicated=3))
        judged(clusters[-1], now)
    return clusters


def _fill_groups(clusters: list[Any], number: int) -> None:
    """So many groups, spread over the clusters, each with all figures."""
    from kafkadash.monitoring.groups.names import key_of
    from kafkadash.monitoring.models import GroupState

    now = datetime.now(UTC)
    GroupState.objects.all().delete()
    GroupState.objects.bulk_create(
        GroupState(
            cluster=clusters[n % CLUSTERS],
            key=key_of(f"orders.service-{n}.consumer"),
            name=f"orders.service-{n}.consumer",
            state="Stable",
            type="Consumer",
            members=12,
            verdict="ok",
            worst="ok",
            rank=3,
            verdict_since=now,
            partitions=48,
            topics={f"orders.topic-{n}": [48, 1234, "ok"]},
            lag=1234 + n,
            worst_lag=99,
            time_lag_s=0.75,
            times=[now.timestamp() - 30 * look for look in range(10)],
            taken_at=now,
            first_seen_at=now,
        )
        for n in range(number)
    )
