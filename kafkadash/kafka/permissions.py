"""What the principal may do, as the brokers tell it (KIP-430)."""

from __future__ import annotations

from collections.abc import Collection

from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.kafka_python import DescribeClusterRequest, MetadataRequest
from kafkadash.kafka.messages import DESCRIBE_CLUSTER, METADATA, ApiRanges, Request
from kafkadash.kafka.port import NotSupported

# org.apache.kafka.common.acl.AclOperation: code → the name that people know from kafka-acls.
_OPERATIONS = {
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    7: "Alter",
    8: "Describe",
    9: "ClusterAction",
    10: "DescribeConfigs",
    11: "AlterConfigs",
}


def cluster_permissions_request(offered: ApiRanges) -> Request:
    """Raises NotSupported before Kafka 2.8."""
    if DESCRIBE_CLUSTER not in offered:
        raise NotSupported(KafkaErrorCode.NOT_OFFERED, what="DescribeCluster (Kafka 2.8)")
    return DescribeClusterRequest(include_cluster_authorized_operations=True)


def topic_permissions_request(offered: ApiRanges) -> Request:
    """All topics that may be described. Raises NotSupported before Kafka 2.3 (Metadata v8)."""
    if METADATA not in offered or offered[METADATA][1] < 8:
        raise NotSupported(KafkaErrorCode.NOT_OFFERED, what="the permissions on topics (Metadata v8, Kafka 2.3)")
    return MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True)


def operations(codes: Collection[int] | None) -> frozenset[str] | None:
    """The names of these operations; None where the broker did not tell."""
    return None if codes is None else frozenset(_OPERATIONS[code] for code in codes if code in _OPERATIONS)
