"""The contract suite's cluster with ZooKeeper: real Kafka 3.9, asked and changed with the tools of Kafka 4."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tests.contract import raw
from tests.contract.kraft_backend import THROTTLE, KraftBackend
from tests.kafka_configs import alter, applied
from tests.waiting import wait_until

FOLLOWER_RATE = "follower.replication.throttled.rate"
FOLLOWERS_BPS = THROTTLE // 2


class ZooKeeperBackend(KraftBackend):
    """Three brokers with two log directories each, and one ZooKeeper server. The controller is one of the brokers."""

    name = "zookeeper"
    has_quorum = False
    _throttles = 0

    @property
    def zookeeper_servers(self) -> tuple[str, ...]:
        return tuple(self._playground.cluster.zookeeper.split(","))

    def create_topic(self, name: str, placement: Sequence[Sequence[int]], records: int = 0) -> None:
        super().create_topic(name, placement, records)
        self._wait_until_known(name)

    def start_move(self, topic: str, partition: int, target: Sequence[int]) -> None:
        self.throttle(topic)
        super().start_move(topic, partition, target)

    def throttle(self, topic: str) -> None:
        """Brokers hear of configs from ZooKeeper, perhaps after a move has begun: this waits until all follow them.

        They apply changes in the order in which they were made: who has the rate has the topic's config too. No two
        rates are equal, because a broker may still have that of an earlier move.
        """
        self._throttles += 1
        rate = str(FOLLOWERS_BPS - self._throttles)
        alter(self._playground, topic, follower_replication_throttled_replicas="*")
        for broker in self.broker_ids:
            alter(self._playground, broker, **{FOLLOWER_RATE: rate})
        told = partial(applied, self._playground, name=FOLLOWER_RATE)
        wait_until(lambda: {told(broker) for broker in self.broker_ids} == {rate}, "all brokers apply the rate")

    def topic(self, name: str) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
        self._wait_until_known(name)
        return super().topic(name)

    def _wait_until_known(self, topic: str) -> None:
        """Each broker hears of it from the controller, one after the other."""
        wait_until(lambda: all(self._knows(broker, topic) for broker in self.broker_ids), f"all brokers know {topic}")

    def _knows(self, broker: int, topic: str) -> bool:
        asked = raw.request_types(3, 12).MetadataRequestTopic(topic_id=None, name=topic)
        answer = raw.ask(self._address(broker), 3, 12, topics=(asked,), include_topic_authorized_operations=False)
        return all(partition.leader_id >= 0 for told in answer.topics for partition in told.partitions) and not any(
            told.error_code for told in answer.topics
        )

    def controller(self) -> int:
        return int(self._ask_metadata(self.broker_ids[0]).controller_id)

    def _ask_metadata(self, broker: int) -> Any:
        return raw.ask(self._address(broker), 3, 12, topics=(), include_topic_authorized_operations=False)

    def _is_whole(self) -> bool:
        try:
            answers = [self._ask_metadata(broker) for broker in self.broker_ids]
        except OSError:
            return False
        brokers = [sorted(broker.node_id for broker in answer.brokers) for answer in answers]
        return brokers == [self.broker_ids] * len(self.broker_ids) and answers[0].controller_id in self.broker_ids
