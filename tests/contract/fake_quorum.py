"""DescribeQuorum as the fake active controller answers it, and those that do not lead."""

from __future__ import annotations

import time
from typing import Any

from kio.schema.errors import ErrorCode

from tests.contract.fake_entities import Entities
from tests.contract.fake_model import ClusterModel, FakeBroker, FakeVoter, QuorumState

QUORUM_TOPIC = "__cluster_metadata"


def describe_quorum(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    if denied:
        return entities.new(
            "DescribeQuorumResponse",
            error_code=ErrorCode.cluster_authorization_failed,
            error_message=None,
            topics=(),
            nodes=(),
        )
    if [(t.topic_name, [p.partition_index for p in t.partitions]) for t in request.topics] != [(QUORUM_TOPIC, [0])]:
        return entities.new(
            "DescribeQuorumResponse", error_code=ErrorCode.invalid_request, error_message=None, topics=(), nodes=()
        )
    standby = broker.id in model.controllers and broker.id not in (model.controller, *model.brokers)
    led = model.quorum is QuorumState.LED and not standby
    now_ms = int(time.time() * 1000)
    partition = entities.new(
        "PartitionData",
        partition_index=0,
        error_code=ErrorCode.none if led else ErrorCode.not_leader_or_follower,
        error_message=None,
        leader_id=model.controller if led else 0 if standby else -1,
        leader_epoch=model.controller_epoch,
        high_watermark=model.metadata_end,
        current_voters=tuple(_voter(model, entities, voter, now_ms) for voter in model.voters.values()),
        observers=tuple(_voter(model, entities, voter, now_ms) for voter in model.observers.values()),
    )
    topic = entities.new("TopicData", topic_name=QUORUM_TOPIC, partitions=(partition,))
    return entities.new(
        "DescribeQuorumResponse", error_code=ErrorCode.none, error_message=None, topics=(topic,), nodes=()
    )


def _voter(model: ClusterModel, entities: Entities, voter: FakeVoter, now_ms: int) -> Any:
    """The leader reports *now* for its own stamps (org.apache.kafka.raft.LeaderState)."""
    leads = voter.id == model.controller
    return entities.new(
        "ReplicaState",
        replica_id=voter.id,
        replica_directory_id=voter.directory_id,
        log_end_offset=model.metadata_end if leads else voter.log_end,
        last_fetch_timestamp=now_ms if leads else voter.fetch_ms,
        last_caught_up_timestamp=now_ms if leads else voter.caught_up_ms,
    )
