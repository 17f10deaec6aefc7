"""kafka-python, imported in this one place: its message classes and its connection manager.

The library reads its schemas through an importlib call that Python 3.11 and 3.12 call deprecated, and it has no types;
both end here. Its admin client's convenience methods are not used: they lose error codes and per-item failures.
"""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="(read|open)_text is deprecated", category=DeprecationWarning)
    # The SASL mechanisms are named so that their loggers exist when the logs are quietened.
    import kafka.net.sasl.plain
    import kafka.net.sasl.scram  # noqa: F401
    from kafka import errors
    from kafka.future import Future
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.selector import NetworkSelector
    from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
    from kafka.protocol.admin import (
        AlterPartitionReassignmentsRequest,
        AlterReplicaLogDirsRequest,
        DescribeClusterRequest,
        DescribeConfigsRequest,
        DescribeGroupsRequest,
        DescribeLogDirsRequest,
        DescribeQuorumRequest,
        ElectLeadersRequest,
        IncrementalAlterConfigsRequest,
        ListGroupsRequest,
        ListPartitionReassignmentsRequest,
    )
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest
    from kafka.protocol.metadata import (
        ApiVersionsRequest,
        FindCoordinatorRequest,
        MetadataRequest,
        MetadataResponse,
    )

    class ConsumerGroupDescribeRequest(ApiMessage, load_json="kafkadash.kafka.schemas"):  # type: ignore[call-arg, misc]
        """KIP-848 (Kafka 3.7)."""

    class ConsumerGroupDescribeResponse(ApiMessage, load_json="kafkadash.kafka.schemas"):  # type: ignore[call-arg, misc]
        """Found by its request through the library's registry."""


__all__ = [
    "AlterPartitionReassignmentsRequest",
    "AlterReplicaLogDirsRequest",
    "ApiVersionsRequest",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "DescribeClusterRequest",
    "DescribeConfigsRequest",
    "DescribeGroupsRequest",
    "DescribeLogDirsRequest",
    "DescribeQuorumRequest",
    "ElectLeadersRequest",
    "FindCoordinatorRequest",
    "Future",
    "IncrementalAlterConfigsRequest",
    "KafkaConnectionManager",
    "KafkaSSLTransport",
    "KafkaTCPTransport",
    "ListGroupsRequest",
    "ListOffsetsRequest",
    "ListPartitionReassignmentsRequest",
    "MetadataRequest",
    "MetadataResponse",
    "NetworkSelector",
    "OffsetFetchRequest",
    "errors",
]
