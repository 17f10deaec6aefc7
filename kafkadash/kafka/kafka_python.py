"""The only import of kafka-python: its message classes and its connection manager.

The library reads its schemas through an importlib call that Python 3.11 and 3.12 call deprecated, and it has no types;
both end here. Its admin client is not used, because it loses error codes and per-item failures.
"""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="(read|open)_text is deprecated", category=DeprecationWarning)
    # The SASL mechanisms are named so that their loggers exist when the logs are quietened.
    import kafka.errors as errors  # noqa: PLR0402  the package itself has no types
    import kafka.net.sasl.plain
    import kafka.net.sasl.scram
    from kafka.future import Future
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.sasl.oauth import AbstractTokenProvider
    from kafka.net.selector import NetworkSelector
    from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
    from kafka.protocol.admin import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        AlterReplicaLogDirsRequest,
        AlterReplicaLogDirsResponse,
        CreatePartitionsRequest,
        CreatePartitionsResponse,
        CreateTopicsRequest,
        CreateTopicsResponse,
        DeleteGroupsRequest,
        DeleteGroupsResponse,
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        DescribeClusterRequest,
        DescribeClusterResponse,
        DescribeConfigsRequest,
        DescribeConfigsResponse,
        DescribeGroupsRequest,
        DescribeGroupsResponse,
        DescribeLogDirsRequest,
        DescribeLogDirsResponse,
        DescribeProducersRequest,
        DescribeProducersResponse,
        DescribeQuorumRequest,
        DescribeQuorumResponse,
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
        DescribeTransactionsRequest,
        DescribeTransactionsResponse,
        ElectLeadersRequest,
        ElectLeadersResponse,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
        ListGroupsRequest,
        ListGroupsResponse,
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
        ListTransactionsRequest,
        ListTransactionsResponse,
    )
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.consumer import (
        ListOffsetsRequest,
        ListOffsetsResponse,
        OffsetCommitRequest,
        OffsetCommitResponse,
        OffsetDeleteRequest,
        OffsetDeleteResponse,
        OffsetFetchRequest,
        OffsetFetchResponse,
    )
    from kafka.protocol.metadata import (
        ApiVersionsRequest,
        ApiVersionsResponse,
        FindCoordinatorRequest,
        FindCoordinatorResponse,
        MetadataRequest,
        MetadataResponse,
    )

    class ConsumerGroupDescribeRequest(ApiMessage, load_json="kafkadash.kafka.schemas"):
        """KIP-848 (Kafka 3.7)."""

    class ConsumerGroupDescribeResponse(ApiMessage, load_json="kafkadash.kafka.schemas"):
        """Found by its request through the library's registry."""

    class ShareGroupDescribeRequest(ApiMessage, load_json="kafkadash.kafka.schemas"):
        """KIP-932 (Kafka 4.1; version 0 of 4.0 was removed)."""

    class ShareGroupDescribeResponse(ApiMessage, load_json="kafkadash.kafka.schemas"):
        """Found by its request through the library's registry."""

    class DescribeShareGroupOffsetsRequest(ApiMessage, load_json="kafkadash.kafka.schemas"):
        """KIP-932 (Kafka 4.0); with lag from version 1 on (KIP-1226, Kafka 4.2)."""

    class DescribeShareGroupOffsetsResponse(ApiMessage, load_json="kafkadash.kafka.schemas"):
        """Found by its request through the library's registry."""

    class StreamsGroupDescribeRequest(ApiMessage, load_json="kafkadash.kafka.schemas"):
        """KIP-1071 (Kafka 4.1)."""

    class StreamsGroupDescribeResponse(ApiMessage, load_json="kafkadash.kafka.schemas"):
        """Found by its request through the library's registry."""

    class UnregisterBrokerRequest(ApiMessage, load_json="kafkadash.kafka.schemas"):
        """KIP-631 (Kafka 2.8)."""

    class UnregisterBrokerResponse(ApiMessage, load_json="kafkadash.kafka.schemas"):
        """Found by its request through the library's registry."""
