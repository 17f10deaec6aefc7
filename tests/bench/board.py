"""The status board with 50 clusters and 200 open findings: how long one answer takes, and how many queries it asks.

Django's test client in this process: URL, middleware, session, rights, queries and templates are the product's own, on
an embedded PostgreSQL over its socket. What uvicorn and the network add is not in the figure.
"""

from __future__ import annotations

import importlib
import time
from datetime import UTC, datetime
from typing import Any

from tests.bench.bars import Bar, at_most, percentile
from tests.bench.server import empty_database

CLUSTERS, FINDINGS = 50, 200
REQUESTS = 120
LIMIT_MS, LIMIT_QUERIES = 150, 10


def measure() -> list[Bar]:
    with empty_database():
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        importlib.import_module("kafkadash.asgi")  # the web process sets itself up there, the garbage collector too
        client = sign_in_viewer()
        _fill()
        took, size = [], 0
        for _ in range(REQUESTS):
            keep_fresh()
            began = time.perf_counter()
            response = client.get("/")
            took.append(1000 * (time.perf_counter() - began))
            size = len(response.content)
            assert response.status_code == 200
            shown = response.content.count(b'class="finding-row"')
            assert shown == FINDINGS, f"the board shows {shown} findings, not {FINDINGS}"
        with CaptureQueriesContext(connection) as queries:
            client.get("/")
    return [
        at_most(f"board, {CLUSTERS} clusters, {FINDINGS} findings: p95", percentile(took, 95), LIMIT_MS, "ms"),
        Bar("board: median", round(percentile(took, 50), 3), "ms"),
        at_most("board: queries", len(queries), LIMIT_QUERIES, "queries"),
        Bar("board: HTML", round(size / 1000, 1), "kB"),
    ]


def sign_in_viewer() -> Any:
    from django.test import Client

    from kafkadash.accounts.models import User
    from kafkadash.clusters.models import ClusterRole, Role

    user = User.objects.create(username="vera")  # Django can only be named once it is set up
    ClusterRole.objects.create(user=user, role=Role.VIEWER)
    client = Client(HTTP_HOST="localhost")
    client.force_login(user)
    return client


def _fill() -> None:
    """Clusters with a trend and four findings each: offline, a broker down, under-replicated, racks."""
    from kafkadash.findings.models import Finding
    from kafkadash.monitoring.models import BrokerState, ClusterTrend
    from tests.factories import judged, watched

    now = datetime.now(UTC)
    for n in range(CLUSTERS):
        cluster = watched(f"cluster-{n:02}", now, offline_partitions=n + 1, under_replicated=3, rack_violations=2)
        BrokerState.objects.filter(cluster=cluster, broker_id=2).update(fenced=True)
        judged(cluster, now)
        ClusterTrend.objects.create(
            cluster=cluster,
            taken_at=now,
            rate=900.0,
            slot_at=now,
            slots=[700.0 + 5 * (slot % 20) for slot in range(48)],
        )
    found = Finding.objects.filter(closed_at=None, opened_at__isnull=False).count()
    assert found == FINDINGS, f"{found} findings are open, not {FINDINGS}"


def keep_fresh() -> None:
    """Time goes on while this runs; the data shown shall not grow old meanwhile."""
    from kafkadash.findings.models import Finding, Judgement
    from kafkadash.monitoring.models import CollectorRun, GroupState

    now = datetime.now(UTC)
    GroupState.objects.update(taken_at=now)
    CollectorRun.objects.update(succeeded_at=now)
    Judgement.objects.update(judged_at=now)
    Finding.objects.update(seen_at=now)
