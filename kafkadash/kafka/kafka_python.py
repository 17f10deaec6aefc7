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
        DescribeLogDirsRequest,
        DescribeQuorumRequest,
        ElectLeadersRequest,
        IncrementalAlterConfigsRequest,
        ListPartitionReassignmentsRequest,
    )
    from kafka.protocol.consumer import ListOffsetsRequest
    from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest, MetadataResponse

__all__ = [
    "AlterPartitionReassignmentsRequest",
    "AlterReplicaLogDirsRequest",
    "ApiVersionsRequest",
    "DescribeClusterRequest",
    "DescribeConfigsRequest",
    "DescribeLogDirsRequest",
    "DescribeQuorumRequest",
    "ElectLeadersRequest",
    "Future",
    "IncrementalAlterConfigsRequest",
    "KafkaConnectionManager",
    "KafkaSSLTransport",
    "KafkaTCPTransport",
    "ListOffsetsRequest",
    "ListPartitionReassignmentsRequest",
    "MetadataRequest",
    "MetadataResponse",
    "NetworkSelector",
    "errors",
]
