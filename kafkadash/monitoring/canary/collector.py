"""Collector of the canary: produces to and consumes from every partition of the canary topic.

Only clusters whose canary an administrator started have this collector (``monitoring.canary.pages``).
"""

from __future__ import annotations

from kafkadash.kafka.api import NotSupported, read_named_topics
from kafkadash.kafka.connect import run_canary
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.canary.rules import TOPIC, judge_probes, judge_silence
from kafkadash.monitoring.collectors import CollectContext, CollectedFacts, to_utc
from kafkadash.monitoring.models import BrokerState, CanaryPoint

LONGEST_S = 5.0


def read(asking: CollectContext) -> CollectedFacts:
    """Raises NotSupported on a cluster that is read-only here, and KafkaFailure as ``probe_partitions`` does.

    Where no broker answers, each of the known ones failed; of a failure that may be ours nothing is stored.
    """
    cluster = asking.cluster
    if cluster.read_only:
        raise NotSupported(KafkaErrorCode.CANARY_OF_READ_ONLY)
    asking.step()
    answer = run_canary(cluster.connection(), cluster.kafka_id, TOPIC, deadline=min(LONGEST_S, asking.deadline))
    brokers = BrokerState.objects.filter(cluster=cluster, gone_at=None).values_list("broker_id", flat=True)
    if answer.silence:
        readings = judge_silence(answer.silence, brokers)
    else:
        asking.step()
        topic = read_named_topics(asking.admin, [TOPIC], deadline=asking.deadline).get(TOPIC)
        after = {each.partition: each for each in topic.partitions} if topic else {}
        readings = judge_probes(answer.partitions, after, brokers)
    point = CanaryPoint(
        cluster=cluster,
        taken_at=to_utc(answer.taken_at),
        readings={str(broker): reading.as_json() for broker, reading in readings.items()},
    )
    return CollectedFacts(taken_at=point.taken_at, rows=len(answer.partitions), write=lambda _: point.save())
