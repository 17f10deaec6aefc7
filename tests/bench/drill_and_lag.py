"""How long the server takes for the drill of 50,000 partitions, and for 24 h of the quorum's lag; rows, no Kafka."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta

from tests.bench.bars import Bar, at_most, percentile
from tests.bench.server import empty_database

PARTITIONS, BROKERS, TOPICS = 50_000, 60, 2_500
DRILL_BAR_S, LAG_BAR_S = 1.0, 0.5
RUNS = 15


def measure() -> list[Bar]:
    with empty_database():
        return [*_drills(), *_lags()]


def _drills() -> list[Bar]:
    from kafkadash.observe.models import BrokerState, TopicState
    from tests.factories import BrokerFactory, TopicFactory, watched

    cluster = watched("large", datetime.now(UTC))
    BrokerState.objects.filter(cluster=cluster).delete()
    for broker in range(1, BROKERS + 1):
        BrokerFactory.create(cluster=cluster, broker_id=broker, rack=f"rack-{broker % 3}")
    chance, rows = random.Random(1), []
    for number in range(TOPICS):
        placements = [chance.sample(range(1, BROKERS + 1), 3) for _ in range(PARTITIONS // TOPICS)]
        partitions = [[n, replicas[0], 5, replicas, replicas, []] for n, replicas in enumerate(placements)]
        rows.append(TopicFactory.build(cluster=cluster, name=f"topic-{number}", partitions=partitions, min_isr=2))
    TopicState.objects.bulk_create(rows, batch_size=500)
    return [
        _bar("drill of a rack, 50k partitions, median", "/clusters/large/drill/?rack=rack-1", DRILL_BAR_S),
        _bar("every single loss, 50k partitions, median", "/clusters/large/drill/", DRILL_BAR_S),
    ]


def _lags() -> list[Bar]:
    from tests.factories import watched
    from tests.quorums import answers

    now, bars = datetime.now(UTC), []
    for slug, pace_s in (("calm", 10), ("moving", 2)):
        answers(watched(slug, now), now, timedelta(hours=24), timedelta(seconds=pace_s))
        name = f"24 h of lag, an answer every {pace_s} s, median"
        bars.append(_bar(name, f"/clusters/{slug}/quorum/lag/?range=24h", LAG_BAR_S))
    return bars


def _bar(name: str, address: str, limit_s: float) -> Bar:
    """As a signed-in viewer's request takes, in this process; the first one, which fills caches, is left out."""
    from django.test import Client

    from kafkadash.accounts.models import User
    from kafkadash.clusters.models import ClusterRole, Role

    viewer, new = User.objects.get_or_create(username="viewer")
    if new:
        ClusterRole.objects.create(user=viewer, role=Role.VIEWER)
    client, took = Client(headers={"host": "127.0.0.1"}), []
    client.force_login(viewer)
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        answer = client.get(address)
        took.append(time.perf_counter() - began)
        if answer.status_code != 200:
            raise RuntimeError(f"{address} was answered with {answer.status_code}")
    return at_most(name, percentile(took[1:], 50), limit_s, "s")
