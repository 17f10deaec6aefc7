"""How long the server takes for failures and restarts of many partitions, and 24 h of the quorum's lag; no Kafka."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from tests.bench.answers import answered_in
from tests.bench.bars import Bar
from tests.bench.server import empty_database

PARTITIONS, BROKERS, TOPICS = 50_000, 60, 2_500
RESTARTED = 200_000
DRILL_BAR_S, RESTART_BAR_S, LAG_BAR_S = 1.0, 1.0, 0.5


def measure() -> list[Bar]:
    with empty_database():
        return [*_drills(), *_restarts(), *_lags()]


def _drills() -> list[Bar]:
    _fill("large", PARTITIONS)
    return [
        answered_in("drill of a rack, 50k partitions, median", "/clusters/large/drill/?rack=rack-1", DRILL_BAR_S),
        answered_in("every single loss, 50k partitions, median", "/clusters/large/drill/", DRILL_BAR_S),
    ]


def _restarts() -> list[Bar]:
    _fill("vast", RESTARTED)
    return [
        answered_in("restart of a broker, 200k partitions, median", "/clusters/vast/brokers/7/restart/", RESTART_BAR_S),
        answered_in("order of restarts, 200k partitions, median", "/clusters/vast/restart/", RESTART_BAR_S),
    ]


def _fill(slug: str, number: int) -> None:
    """Three replicas of each partition, in topics of 20 partitions."""
    from kafkadash.monitoring.models import BrokerState, TopicState
    from tests.factories import BrokerFactory, TopicFactory, watched

    cluster = watched(slug, datetime.now(UTC))
    BrokerState.objects.filter(cluster=cluster).delete()
    for broker in range(1, BROKERS + 1):
        BrokerFactory.create(cluster=cluster, broker_id=broker, rack=f"rack-{broker % 3}")
    chance, rows = random.Random(1), []
    for topic in range(number * TOPICS // PARTITIONS):
        placements = [chance.sample(range(1, BROKERS + 1), 3) for _ in range(PARTITIONS // TOPICS)]
        partitions = [[n, replicas[0], 5, replicas, replicas, []] for n, replicas in enumerate(placements)]
        rows.append(TopicFactory.build(cluster=cluster, name=f"topic-{topic}", partitions=partitions, min_isr=2))
    TopicState.objects.bulk_create(rows, batch_size=500)


def _lags() -> list[Bar]:
    from tests.factories import watched
    from tests.quorums import answers

    now, bars = datetime.now(UTC), []
    for slug, pace_s in (("calm", 10), ("moving", 2)):
        answers(watched(slug, now), now, timedelta(hours=24), timedelta(seconds=pace_s))
        name = f"24 h of lag, an answer every {pace_s} s, median"
        bars.append(answered_in(name, f"/clusters/{slug}/quorum/lag/?range=24h", LAG_BAR_S))
    return bars
