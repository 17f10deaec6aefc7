"""The controllers' own listeners: the way to change the configs of a broker that is down (KIP-919).

They know no Metadata, and each answers for itself; only the active one carries anything out. It checks no value of a
broker's config, as the broker itself does: what it would not understand when it comes back must not be sent here.
"""

from __future__ import annotations

from dataclasses import replace

from kafkadash.domain.messages import coded, join_messages
from kafkadash.domain.whole_numbers import read_whole_number
from kafkadash.kafka.admin import WireAdmin, countdown
from kafkadash.kafka.asking import Answer, Ask, Lane
from kafkadash.kafka.change_messages import AlterConfigsAnswer
from kafkadash.kafka.changing import ConfigChange, ConfigOperation
from kafkadash.kafka.client import NodeId
from kafkadash.kafka.codes import call_failure
from kafkadash.kafka.connection import Connection
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.messages import QUORUM_TOPIC, ClusterAnswer, QuorumAnswer, controllers_request, quorum_request
from kafkadash.kafka.port import KafkaFailure, QuorumUnavailable, Unreachable
from kafkadash.kafka.sending import Unanswered, outcome

RATES = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)


def harmless(change: ConfigChange) -> bool:
    """Whether any broker understands it: a rate that is a whole number of bytes per second, or one that is deleted."""
    if change.key not in RATES:
        return False
    if change.operation is ConfigOperation.DELETE:
        return True
    return change.operation is ConfigOperation.SET and read_whole_number(change.value or "") is not None


class Controllers(WireAdmin):
    """``connection.controller_servers`` as a client of their own."""

    def __init__(self, connection: Connection) -> None:
        own = replace(connection, key=f"{connection.key}-controllers", bootstrap_servers=connection.controller_servers)
        super().__init__(own)

    def send(
        self, ask: Ask[AlterConfigsAnswer], cluster_id: str, *, deadline: float
    ) -> Answer[AlterConfigsAnswer] | Unanswered:
        """To the active controller of this cluster, once. Raises KafkaFailure where it certainly was not sent."""
        left = countdown(deadline)
        node = self._active(left() / 3)
        self._refuse_another(node, cluster_id, left() / 2)
        return outcome(ask, lambda: self._with_wire(lambda wire: wire.ask_bootstrap(node, ask, deadline=left())))

    def _refuse_another(self, node: NodeId, cluster_id: str, deadline: float) -> None:
        """Brokers are numbered alike everywhere: what is meant for one must not reach its namesake elsewhere."""
        ask: Ask[ClusterAnswer] = Ask(controllers_request, Lane.CONTROLLER)
        response = self._with_wire(lambda wire: wire.ask_bootstrap(node, ask, deadline=deadline)).response
        if response.error_code:
            raise call_failure(
                response.error_code,
                "DescribeCluster",
                permission="Describe on the cluster",
                detail=response.error_message,
            )
        if not cluster_id or response.cluster_id != cluster_id:
            raise Unreachable(
                KafkaErrorCode.ANOTHER_QUORUM,
                answered=response.cluster_id,
                expected=cluster_id or "that of the brokers, which is not known",
            )

    def _active(self, deadline: float) -> NodeId:
        """The one that describes the quorum: a standby answers NOT_LEADER_OR_FOLLOWER in the partition."""
        # The lane of the changes: bootstrap servers are numbered by each lane for itself.
        ask: Ask[QuorumAnswer] = Ask(quorum_request, Lane.CONTROLLER)
        results = self._with_wire(lambda wire: wire.ask_each_bootstrap(ask, deadline=deadline))
        for result in results:
            if isinstance(result, Answer) and _leads(result.response):
                return result.node
        failures = join_messages(result.message for result in results if isinstance(result, KafkaFailure))
        raise QuorumUnavailable(replace(coded(KafkaErrorCode.NO_LEADER_THERE), news=failures))


def _leads(response: QuorumAnswer) -> bool:
    partitions = [p for topic in response.topics if topic.topic_name == QUORUM_TOPIC for p in topic.partitions]
    return not response.error_code and any(not p.error_code and p.leader_id >= 0 for p in partitions)
