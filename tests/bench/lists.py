"""How long the server takes for lists of 10,000 topics with 200,000 partitions and of 1,000 brokers; rows, no Kafka."""

from __future__ import annotations

import json
import random
import zlib
from collections import defaultdict
from datetime import UTC, datetime

from tests.bench.answers import answered_in
from tests.bench.bars import Bar
from tests.bench.server import empty_database

TOPICS, PARTITIONS_OF_EACH, BROKERS = 10_000, 20, 1_000
LIST_BAR_S, PAGE_BAR_S = 0.2, 1.0
LISTS = {
    "topics, 10k": "topics/",
    "topics, part of the name": "topics/?q=payments.9",
    "topics, under-replicated": "topics/?state=under-replicated",
    "topics, largest first": "topics/?sort=-size",
    "topics, the last page": "topics/?page=100",
    "brokers, 1,000": "brokers/",
    "brokers, fullest first": "brokers/?sort=-disk&rack=rack-1",
}
PAGES = {
    "one of 10k topics": "topics/payments.00042/",
    "one of 1,000 brokers": "brokers/7/",
    "racks with 500 violating topics": "racks/",
    "throttles of 1,000 brokers": "throttles/",
}


def measure() -> list[Bar]:
    with empty_database():
        _rows()
        bars = [answered_in(f"{name}, median", f"/clusters/large/{page}", LIST_BAR_S) for name, page in LISTS.items()]
        return bars + [answered_in(f"{name}, median", f"/clusters/large/{p}", PAGE_BAR_S) for name, p in PAGES.items()]


def _rows() -> None:
    from kafkadash.monitoring.models import BrokerState, BrokerWeights, ClusterState, ThrottleState, TopicState
    from tests.factories import GB, BrokerFactory, BrokerWeightsFactory, ThrottleFactory, TopicFactory, watched

    now = datetime.now(UTC)
    cluster = watched("large", now)
    ClusterState.objects.filter(cluster=cluster).update(partitions=TOPICS * PARTITIONS_OF_EACH)
    BrokerState.objects.filter(cluster=cluster).delete()
    BrokerWeights.objects.filter(cluster=cluster).delete()
    chance = random.Random(1)
    sizes: dict[int, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for first in range(0, TOPICS, 500):
        topics = []
        for number in range(first, first + 500):
            name = f"payments.{number:05}"
            placements = [chance.sample(range(BROKERS), 3) for _ in range(PARTITIONS_OF_EACH)]
            # Every twentieth topic misses replicas and is not spread over the racks.
            hurt = number % 20 == 0
            partitions = [[n, r[0], 5, r, r[:2] if hurt else r, []] for n, r in enumerate(placements)]
            for n, replicas in enumerate(placements):
                for broker in replicas:
                    sizes[broker][name][str(n)] = GB
            topics.append(
                TopicFactory.build(
                    cluster=cluster,
                    topic_id=f"id-{number}",
                    name=name,
                    partitions=partitions,
                    rack_violations=5 if hurt else 0,
                    size_bytes=chance.randrange(1000) * GB,
                    changed_at=now,
                )
            )
        TopicState.objects.bulk_create(topics)
    BrokerState.objects.bulk_create(
        BrokerFactory.build(cluster=cluster, broker_id=n, rack=f"rack-{n % 3}", changed_at=now) for n in range(BROKERS)
    )
    BrokerWeights.objects.bulk_create(
        BrokerWeightsFactory.build(
            cluster=cluster, broker_id=n, taken_at=now, data=zlib.compress(json.dumps(sizes[n]).encode())
        )
        for n in range(BROKERS)
    )
    ThrottleState.objects.bulk_create(ThrottleFactory.build(cluster=cluster, name=str(n)) for n in range(BROKERS))
