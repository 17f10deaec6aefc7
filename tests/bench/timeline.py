"""The timeline of 90 days with 200,000 events of collectors, besides findings, changes, their items and reassignments.

Django's test client in this process, on an embedded PostgreSQL over its socket. What uvicorn and the network add is not
in the figure.
"""

from __future__ import annotations

import importlib
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.bench.bars import Bar, at_most, percentile
from tests.bench.server import empty_database

DAYS, EVENTS, FINDINGS, CHANGES, MOVES, ITEMS = 90, 200_000, 5_000, 2_000, 20_000, 100_000
TOPICS, BROKERS, GROUPS = 2_000, 100, 5_000
OPENINGS = 20
LIMIT_MS = 300
QUERIES = {
    "90 days": "period=90d",
    "90 days, one kind": "period=90d&kind=leaders",
    "90 days, a broker": "period=90d&broker=7",
    "90 days, a topic": "period=90d&topic=topic-7",
    "90 days, a group": "period=90d&group=group-7",
    "90 days, page 50": "period=90d&page=50",
    "24 hours": "period=24h",
}


def measure() -> list[Bar]:
    with empty_database():
        from django.db import connection
        from django.test import Client
        from django.test.utils import CaptureQueriesContext

        from kafkadash.accounts.models import User

        importlib.import_module("kafkadash.asgi")  # the web process sets itself up there, the garbage collector too
        cluster = _fill_cluster()
        client = Client(HTTP_HOST="localhost")
        client.force_login(User.objects.create_superuser("bench"))
        bars = []
        for name, query in QUERIES.items():
            address = f"/clusters/{cluster.slug}/timeline/?{query}"
            _open(client, address)  # the first one loads modules and pages of the database
            took = []
            for _ in range(OPENINGS):
                began = time.perf_counter()
                _open(client, address)
                took.append(1000 * (time.perf_counter() - began))
            bars.append(at_most(f"timeline of {name}: p95", percentile(took, 95), LIMIT_MS, "ms"))
        with CaptureQueriesContext(connection) as captured:
            _open(client, f"/clusters/{cluster.slug}/timeline/?period=90d")
        return [*bars, Bar("timeline of 90 days: queries", len(captured), "queries")]


def _open(client: Any, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 200, response.status_code
    assert b'data-total="0"' not in response.content, address


def _fill_cluster() -> Any:
    from django.db import connection

    from kafkadash.accounts.models import AuditEvent
    from kafkadash.changes.models import ChangeRequest
    from kafkadash.findings.models import Finding
    from kafkadash.monitoring.groups.names import key_of
    from kafkadash.monitoring.models import ClusterEvent, GroupState, MoveOutcome, ReassignmentSnapshot
    from kafkadash.short_runs.models import ShortItem, ShortRun
    from tests.factories import ReassignmentFactory, watched

    now, chance = datetime.now(UTC), random.Random(26)
    cluster = watched("bench", now)
    moments = sorted(now - timedelta(days=DAYS) * chance.random() for _ in range(EVENTS))
    ClusterEvent.objects.bulk_create(
        (_build_event(cluster.pk, at, place, chance) for place, at in enumerate(moments)), batch_size=5000
    )
    GroupState.objects.create(
        cluster=cluster,
        key=key_of("group-7"),
        name="group-7",
        state="Stable",
        rank=3,
        verdict_since=now,
        partitions=1,
        taken_at=now,
        first_seen_at=now,
    )
    Finding.objects.bulk_create(
        Finding(
            cluster=cluster,
            public_id=f"f-{place}",
            kind="broker-down" if place % 2 else "under-replicated",
            scope=str(place % BROKERS),
            state="critical",
            rank=3,
            message_code="broker-down-fenced" if place % 2 else "partitions-under-replicated",
            message_params={"broker": place % BROKERS, "replicas": 40} if place % 2 else _name_partitions(place),
            first_seen_at=moments[place * 40],
            opened_at=moments[place * 40],
            seen_at=moments[place * 40],
            closed_at=moments[place * 40] + timedelta(minutes=3),
        )
        for place in range(FINDINGS)
    )
    changes = ChangeRequest.objects.bulk_create(
        ChangeRequest(cluster=cluster, kind="reassignment", title=f"Drain broker {n}", author_name="ann")
        for n in range(CHANGES)
    )
    AuditEvent.objects.bulk_create(
        AuditEvent(
            at=moments[place * 10],
            actor="user:1",
            actor_name="ann",
            action=("change.submitted", "change.approved", "change.started", "change.verified")[place % 4],
            object_type="changerequest",
            object_id=str(changes[place // 4].pk),
            cluster=cluster.slug,
        )
        for place in range(4 * CHANGES)
    )
    runs = ShortRun.objects.bulk_create(ShortRun(request=change, cluster=cluster) for change in changes[: CHANGES // 2])
    ShortItem.objects.bulk_create(
        (
            ShortItem(
                run=runs[place % len(runs)],
                place=place // len(runs),
                subject=f"topic-{place % TOPICS}-{place}",
                content={"topic": f"topic-{place % TOPICS}", "partition": place, "replicas": [1, 2, 3], "leader": 2},
            )
            for place in range(ITEMS)
        ),
        batch_size=5000,
    )
    ReassignmentSnapshot.objects.bulk_create(
        (
            ReassignmentFactory.build(
                cluster=cluster,
                public_id=f"r-bench-{place}",
                topic=f"topic-{place % TOPICS}",
                partition=place,
                adding=[place % BROKERS],
                claimed_by=f"#{changes[place % CHANGES].pk}" if place % 2 else "",
                started_before=moments[EVENTS - 1 - place * 3],
                outcome=MoveOutcome.COMPLETED,
                ended_at=moments[EVENTS - 1 - place * 3] + timedelta(minutes=1),
            )
            for place in range(MOVES)
        ),
        batch_size=5000,
    )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return cluster


def _name_partitions(place: int) -> dict[str, Any]:
    names = [f"topic-{(place + number) % TOPICS}-{number}" for number in range(3)]
    return {"partitions": 40, "notes": [{"code": "note-named", "params": {"names": [*names, 37]}}]}


def _build_event(cluster_id: int, at: datetime, place: int, chance: random.Random) -> Any:
    from kafkadash.monitoring.cluster_events.rules import EventCode, SubjectType, mark_subject
    from kafkadash.monitoring.models import ClusterEvent

    code = tuple(EventCode)[place % len(EventCode)]
    names = [f"topic-{chance.randrange(TOPICS)}" for _ in range(1 + 40 * (place % 10 == 0))]
    subject = SubjectType.TOPIC
    brokers = [chance.randrange(BROKERS) for _ in range(3)]
    details: list[list[Any]] = list(_list_details(code, names, brokers))
    if code.kind == "groups":
        subject, names = SubjectType.GROUP, [f"group-{chance.randrange(GROUPS)}"]
        details = [[names[0], "Stable", "Empty", 3, 0]]
    values: dict[str, Any] = {"broker": brokers[0], "before": "Stable", "after": "Empty"}
    if code.kind == "controllers":
        values, details = {"before": 1, "after": 2, "epoch_before": 3, "epoch": 4}, []
    return ClusterEvent(
        cluster_id=cluster_id,
        kind=code.kind,
        code=code,
        at=at,
        not_before=at - timedelta(seconds=30),
        count=len(names),
        brokers=brokers,
        marks=[mark_subject(subject, name) for name in names],
        data={"values": values | {"of": "topics"}, "details": details},
    )


def _list_details(code: str, names: list[str], brokers: list[int]) -> Iterator[list[Any]]:
    from kafkadash.monitoring.cluster_events.rules import EventCode, EventKind

    for name in names:
        match EventCode(code).kind:
            case EventKind.LEADERS:
                yield [name, 3, brokers[0], brokers[1], 7, 8]
            case EventKind.BROKERS:
                yield [brokers[0], "kafka-7.internal:9092", "a"]
            case EventKind.TOPICS if code == EventCode.PARTITIONS_ADDED:
                yield [name, 3, 6]
            case EventKind.TOPICS:
                yield [name, "pW7mE1rASEqVl0d3kB4pzQ", 6, 3]
            case EventKind.CONFIGS | EventKind.THROTTLES:
                yield [name, [["retention.ms", ["1000", "topic"], ["2000", "topic"]]]]
