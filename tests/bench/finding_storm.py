"""500 findings within a minute: how many messages a receiver gets, and how long the status board takes meanwhile.

Findings are opened by judging clusters whose consumer groups stall, events are routed once a second, on an embedded
PostgreSQL; the board is read as in the part ``board``.
"""

from __future__ import annotations

import importlib
import time
from datetime import UTC, datetime
from typing import Any

from tests.bench.bars import Bar, at_most, percentile
from tests.bench.board import LIMIT_MS, LIMIT_QUERIES, keep_fresh, sign_in_viewer
from tests.bench.server import empty_database

CLUSTERS, GROUPS = 50, 10
FINDINGS = CLUSTERS * GROUPS
WITHIN_S = 60.0
MOST_MESSAGES = 2


def measure() -> list[Bar]:
    with empty_database():
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        importlib.import_module("kafkadash.asgi")  # the web process sets itself up there, the garbage collector too
        client = sign_in_viewer()
        clusters = _fill()
        took, messages = _open_all(clusters, client)
        with CaptureQueriesContext(connection) as queries:
            client.get("/")
    return [
        at_most(f"{FINDINGS} findings in a minute: messages of a route", messages, MOST_MESSAGES, "messages"),
        at_most("board meanwhile: p95", percentile(took, 95), LIMIT_MS, "ms"),
        Bar("board meanwhile: median", round(percentile(took, 50), 1), "ms"),
        at_most("board meanwhile: queries", len(queries), LIMIT_QUERIES, "queries"),
    ]


def _fill() -> list[Any]:
    """Clusters with groups that stall, of which no finding is open yet, and a receiver of everything."""
    from kafkadash.monitoring.groups.names import key_of
    from kafkadash.monitoring.models import GroupState
    from kafkadash.notifications.models import NotificationRoute, NotificationTarget
    from tests.factories import watched

    now = datetime.now(UTC)
    clusters = [watched(f"cluster-{n:02}", now) for n in range(CLUSTERS)]
    GroupState.objects.bulk_create(
        GroupState(
            cluster=cluster,
            key=key_of(f"service-{n}"),
            name=f"service-{n}",
            state="Stable",
            type="Consumer",
            members=3,
            verdict="err",
            worst="stall",
            rank=0,
            verdict_since=now,
            partitions=12,
            topics={f"topic-{n}": [12, 40_000 + n, "stall"]},
            lag=40_000 + n,
            worst_lag=9_000,
            times=[now.timestamp() - 30 * look for look in range(10)],
            taken_at=now,
            first_seen_at=now,
        )
        for cluster in clusters
        for n in range(GROUPS)
    )
    target = NotificationTarget.objects.create(
        name="bench", kind="webhook", address="https://receiver.example/", shown="bench", secret="key"
    )
    NotificationRoute.objects.create(target=target)
    return clusters


def _open_all(clusters: list[Any], client: Any) -> tuple[list[float], int]:
    """Judge the clusters in turn within ``WITHIN_S``; return milliseconds of the board's answers and the messages."""
    from kafkadash.findings.models import Finding
    from kafkadash.notifications.models import NotificationMessage
    from kafkadash.notifications.routing import route_events
    from tests.factories import judged

    took: list[float] = []
    began = time.monotonic()
    for number, cluster in enumerate(clusters):
        keep_fresh()
        judged(cluster, datetime.now(UTC))
        route_events(datetime.now(UTC))
        while time.monotonic() - began < WITHIN_S * (number + 1) / len(clusters):
            start = time.perf_counter()
            response = client.get("/")
            took.append(1000 * (time.perf_counter() - start))
            assert response.status_code == 200
    opened = Finding.objects.filter(closed_at=None, opened_at__isnull=False, kind="consumer-lag").count()
    assert opened == FINDINGS, f"{opened} findings are open, not {FINDINGS}"
    told = NotificationMessage.objects.filter(items__event__step="opened").distinct()
    items = sum(message.items.count() for message in told)
    assert items == FINDINGS, f"messages tell of {items} findings, not of {FINDINGS}"
    return took, told.count()
