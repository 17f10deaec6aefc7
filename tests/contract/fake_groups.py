"""Consumer groups of a fake cluster, and what its brokers answer about them.

The sources are Kafka's org.apache.kafka.coordinator.group.GroupMetadataManager, OffsetMetadataManager and
GroupCoordinatorService. A group's coordinator leads its partition of the offsets topic; here it is set by name.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from tests.contract.fake_entities import Entities

if TYPE_CHECKING:
    from tests.contract.fake_model import ClusterModel, FakeBroker

OFFSET_COMMIT, DELETE_GROUPS, OFFSET_DELETE = 8, 42, 47
OFFSET_FETCH, FIND_COORDINATOR, DESCRIBE_GROUPS, LIST_GROUPS, DESCRIBE_CONSUMER_GROUPS = 9, 10, 15, 16, 69
DESCRIBE_SHARE_GROUPS, DESCRIBE_STREAMS_GROUPS, DESCRIBE_SHARE_OFFSETS = 77, 89, 90


@dataclass(slots=True)
class FakeMember:
    """``assigned``: topic → partitions. ``raw``: a classic member's assignment in other bytes."""

    id: str
    client: str
    assigned: dict[str, tuple[int, ...]]
    instance: str | None = None
    raw: bytes | None = None


@dataclass(slots=True)
class FakeGroup:
    """``shared``: topic → partition → start offset and lag of a share group. A streams group has one subtopology: its
    tasks are the partitions that a member is assigned of any topic, and read all topics of ``sources``.
    """

    name: str
    coordinator: int
    type: str = "classic"
    state: str = "Stable"
    protocol_type: str = "consumer"
    assignor: str = "range"
    members: list[FakeMember] = field(default_factory=list)
    committed: dict[str, dict[int, int]] = field(default_factory=dict)
    shared: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)
    sources: tuple[str, ...] = ()


class FakeGroups:
    """All groups of a cluster.

    ``loading``: brokers that still read what they have to know as coordinators, for so many requests. ``rumours``:
    group → brokers that are named as its coordinator, one after the other, before the true one. ``homeless``: groups
    whose offsets partition has no leader. ``hidden``: groups without permission. ``deleted_on`` and
    ``converted_on``: API key → group that is deleted, or made one of the other type, just before a request with that
    key is answered.
    """

    def __init__(self) -> None:
        self.all: dict[str, FakeGroup] = {}
        self.loading: dict[int, int] = {}
        self.rumours: dict[str, list[int]] = {}
        self.homeless: set[str] = set()
        self.hidden: set[str] = set()
        self.deleted_on: dict[int, str] = {}
        self.converted_on: dict[int, str] = {}

    def add(self, name: str, brokers: Iterable[int], **values: Any) -> FakeGroup:
        ids = sorted(brokers)
        values.setdefault("coordinator", ids[zlib.crc32(name.encode()) % len(ids)])
        values.setdefault("state", "Stable" if values.get("members") else "Empty")
        group = FakeGroup(name, **values)
        self.all[name] = group
        return group

    def at(self, broker: int, name: str) -> FakeGroup | ErrorCode | None:
        """The group, None where there is none (as far as this broker can know), or what hinders it to tell."""
        group = self.all.get(name)
        if name in self.hidden:
            return ErrorCode.group_authorization_failed
        if self.loading.get(broker):
            return ErrorCode.coordinator_load_in_progress
        if group is not None and group.coordinator != broker:
            return ErrorCode.not_coordinator
        return group


def list_groups(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    del request
    groups = model.groups
    code = ErrorCode.coordinator_load_in_progress if groups.loading.get(broker.id) else ErrorCode.none
    if denied:
        code = ErrorCode.cluster_authorization_failed
    return entities.new(
        "ListGroupsResponse",
        throttle_time=timedelta(0),
        error_code=code,
        groups=tuple(
            entities.new(
                "ListedGroup",
                group_id=group.name,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.type,
            )
            for group in (() if code is not ErrorCode.none else groups.all.values())
            if group.coordinator == broker.id and group.name not in groups.hidden
        ),
    )


def describe_groups(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    """Of classic groups; others are unknown here: Dead, and from v6 on an error."""
    return entities.new(
        "DescribeGroupsResponse",
        throttle_time=timedelta(0),
        groups=tuple(_described(model, broker, entities, name, denied) for name in request.groups),
    )


def _described(model: ClusterModel, broker: FakeBroker, entities: Entities, name: str, denied: bool) -> Any:
    there = ErrorCode.group_authorization_failed if denied else model.groups.at(broker.id, name)
    if isinstance(there, FakeGroup) and there.type != "classic":
        there = None
    group = there if isinstance(there, FakeGroup) else FakeGroup(name, 0, state="", protocol_type="", assignor="")
    code = there if isinstance(there, ErrorCode) else ErrorCode.none
    if there is None:
        group.state = "Dead"
        code = ErrorCode.group_id_not_found if entities.version >= 6 else ErrorCode.none
    return entities.new(
        "DescribedGroup",
        error_code=code,
        error_message=None,
        group_id=name,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.assignor if group.state == "Stable" else "",
        members=tuple(
            entities.new(
                "DescribedGroupMember",
                member_id=member.id,
                group_instance_id=member.instance,
                client_id=member.client,
                client_host="/127.0.0.1",
                member_metadata=b"",
                member_assignment=_assignment(member) if group.state == "Stable" else b"",
            )
            for member in group.members
        ),
    )


def _assignment(member: FakeMember) -> bytes:
    """ConsumerProtocolAssignment v1, without user data."""
    if member.raw is not None:
        return member.raw
    parts = [struct.pack(">hi", 1, len(member.assigned))]
    for topic, indexes in member.assigned.items():
        name = topic.encode()
        parts.append(struct.pack(f">h{len(name)}si{len(indexes)}i", len(name), name, len(indexes), *indexes))
    return b"".join([*parts, struct.pack(">i", -1)])


def describe_consumer_groups(
    model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool
) -> Any:
    return entities.new(
        "ConsumerGroupDescribeResponse",
        throttle_time=timedelta(0),
        groups=tuple(_consumer_group(model, broker, entities, name, denied) for name in request.group_ids),
    )


def _consumer_group(model: ClusterModel, broker: FakeBroker, entities: Entities, name: str, denied: bool) -> Any:
    there = ErrorCode.group_authorization_failed if denied else model.groups.at(broker.id, name)
    if there is None or (isinstance(there, FakeGroup) and there.type != "consumer"):
        there = ErrorCode.group_id_not_found
    group = there if isinstance(there, FakeGroup) else FakeGroup(name, 0, state="", assignor="")
    return entities.new(
        "DescribedGroup",
        error_code=there if isinstance(there, ErrorCode) else ErrorCode.none,
        error_message=None,
        group_id=name,
        group_state=group.state,
        group_epoch=1,
        assignment_epoch=1,
        assignor_name=group.assignor,
        members=tuple(
            entities.new(
                "Member",
                member_id=member.id,
                instance_id=member.instance,
                rack_id=None,
                member_epoch=1,
                client_id=member.client,
                client_host="/127.0.0.1",
                subscribed_topic_names=tuple(member.assigned),
                subscribed_topic_regex=None,
                assignment=_assigned_topics(model, entities, member.assigned),
                target_assignment=_assigned_topics(model, entities, member.assigned),
                member_type=1,
            )
            for member in group.members
        ),
    )


def describe_share_groups(
    model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool
) -> Any:
    rows = [(name, _typed_group(model, broker, name, "share", denied)) for name in request.group_ids]
    return entities.new(
        "ShareGroupDescribeResponse",
        throttle_time=timedelta(0),
        groups=tuple(
            entities.new(
                "DescribedGroup",
                **_head(name, code, group),
                assignor_name="simple",
                members=tuple(
                    entities.new(
                        "Member",
                        member_id=member.id,
                        rack_id=None,
                        member_epoch=1,
                        client_id=member.client,
                        client_host="/127.0.0.1",
                        subscribed_topic_names=tuple(member.assigned),
                        assignment=_assigned_topics(model, entities, member.assigned),
                    )
                    for member in group.members
                ),
            )
            for name, (code, group) in rows
        ),
    )


def describe_streams_groups(
    model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool
) -> Any:
    rows = [(name, _typed_group(model, broker, name, "streams", denied)) for name in request.group_ids]
    return entities.new(
        "StreamsGroupDescribeResponse",
        throttle_time=timedelta(0),
        groups=tuple(_streams_group(entities, name, code, group) for name, (code, group) in rows),
    )


def _streams_group(entities: Entities, name: str, code: ErrorCode, group: FakeGroup) -> Any:
    subtopology = entities.new(
        "Subtopology",
        subtopology_id="0",
        source_topics=group.sources,
        repartition_sink_topics=(),
        state_changelog_topics=(),
        repartition_source_topics=(),
    )

    def assignment(member: FakeMember) -> Any:
        tasks = sorted({number for numbers in member.assigned.values() for number in numbers})
        active = (entities.new("TaskIds", subtopology_id="0", partitions=tuple(tasks)),)
        return entities.new("Assignment", active_tasks=active, standby_tasks=(), warmup_tasks=())

    return entities.new(
        "DescribedGroup",
        **_head(name, code, group),
        topology=entities.new("Topology", epoch=1, subtopologies=(subtopology,)),
        members=tuple(
            entities.new(
                "Member",
                member_id=member.id,
                member_epoch=1,
                instance_id=member.instance,
                rack_id=None,
                client_id=member.client,
                client_host="/127.0.0.1",
                topology_epoch=1,
                process_id="p",
                user_endpoint=None,
                client_tags=(),
                task_offsets=(),
                task_end_offsets=(),
                assignment=assignment(member),
                target_assignment=assignment(member),
                is_classic=False,
            )
            for member in group.members
        ),
    )


def describe_share_offsets(
    model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool
) -> Any:
    """Of a partition with a start offset below 0: UNKNOWN_TOPIC_OR_PARTITION."""
    kind = "DescribeShareGroupOffsetsResponse"
    rows = [(asked.group_id, _typed_group(model, broker, asked.group_id, "share", denied)) for asked in request.groups]
    none, unknown = ErrorCode.none, ErrorCode.unknown_topic_or_partition
    return entities.new(
        kind,
        throttle_time=timedelta(0),
        groups=tuple(
            entities.new(
                f"{kind}Group",
                group_id=name,
                error_code=code,
                error_message=None,
                topics=tuple(
                    entities.new(
                        f"{kind}Topic",
                        topic_name=topic,
                        topic_id=model.topics[topic].id,
                        partitions=tuple(
                            entities.new(
                                f"{kind}Partition",
                                partition_index=index,
                                start_offset=start,
                                leader_epoch=0,
                                lag=lag,
                                error_code=none if start >= 0 else unknown,
                                error_message=None,
                            )
                            for index, (start, lag) in partitions.items()
                        ),
                    )
                    for topic, partitions in group.shared.items()
                ),
            )
            for name, (code, group) in rows
        ),
    )


def _typed_group(
    model: ClusterModel, broker: FakeBroker, name: str, kind: str, denied: bool
) -> tuple[ErrorCode, FakeGroup]:
    there = ErrorCode.group_authorization_failed if denied else model.groups.at(broker.id, name)
    if isinstance(there, FakeGroup) and there.type == kind:
        return ErrorCode.none, there
    code = there if isinstance(there, ErrorCode) else ErrorCode.group_id_not_found
    return code, FakeGroup(name, 0, state="")


def _head(name: str, code: ErrorCode, group: FakeGroup) -> dict[str, Any]:
    state = {"group_state": group.state, "group_epoch": 1, "assignment_epoch": 1}
    return {"error_code": code, "error_message": None, "group_id": name, **state}


def _assigned_topics(model: ClusterModel, entities: Entities, assigned: Mapping[str, Sequence[int]]) -> Any:
    return entities.new(
        "Assignment",
        topic_partitions=tuple(
            entities.new(
                "TopicPartitions", topic_id=model.topics[topic].id, topic_name=topic, partitions=tuple(indexes)
            )
            for topic, indexes in assigned.items()
        ),
    )


def find_coordinator(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    del broker
    several = entities.version >= 4
    names = request.coordinator_keys if several else (request.key,)
    rows = [_coordinator(model, name, denied) for name in names]
    if not several:
        [(code, node)] = rows
        return entities.new(
            "FindCoordinatorResponse",
            throttle_time=timedelta(0),
            error_code=code,
            error_message=None,
            node_id=node.id if node else -1,
            host="127.0.0.1" if node else "",
            port=node.port if node else -1,
        )
    return entities.new(
        "FindCoordinatorResponse",
        throttle_time=timedelta(0),
        coordinators=tuple(
            entities.new(
                "Coordinator",
                key=name,
                node_id=node.id if node else -1,
                host="127.0.0.1" if node else "",
                port=node.port if node else -1,
                error_code=code,
                error_message=None,
            )
            for name, (code, node) in zip(names, rows, strict=True)
        ),
    )


def _coordinator(model: ClusterModel, name: str, denied: bool) -> tuple[ErrorCode, FakeBroker | None]:
    """A group that does not exist has a coordinator as well: its name alone decides."""
    if denied or name in model.groups.hidden:
        return ErrorCode.group_authorization_failed, None
    if name in model.groups.homeless:
        return ErrorCode.coordinator_not_available, None
    if rumours := model.groups.rumours.get(name):
        return ErrorCode.none, model.brokers[rumours.pop(0)]
    group = model.groups.all.get(name)
    ids = sorted(model.brokers)
    return ErrorCode.none, model.brokers[group.coordinator if group else ids[zlib.crc32(name.encode()) % len(ids)]]


def offset_fetch(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    """Of all topics. Of a group that is not there: nothing, and no error."""
    if entities.version >= 10:
        raise NotImplementedError("the fake answers with names of topics")
    several = entities.version >= 8
    kind = "Topics" if several else "Topic"
    partition_kind = "Partitions" if several else "Partition"
    rows: list[tuple[str, ErrorCode, tuple[Any, ...]]] = []
    for name in [group.group_id for group in request.groups] if several else [request.group_id]:
        there = ErrorCode.group_authorization_failed if denied else model.groups.at(broker.id, name)
        topics = tuple(
            entities.new(
                f"OffsetFetchResponse{kind}",
                name=topic,
                partitions=tuple(
                    entities.new(
                        f"OffsetFetchResponse{partition_kind}",
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=-1,
                        metadata="",
                        error_code=ErrorCode.none,
                    )
                    for index, offset in offsets.items()
                ),
            )
            for topic, offsets in (there.committed.items() if isinstance(there, FakeGroup) else ())
        )
        rows.append((name, there if isinstance(there, ErrorCode) else ErrorCode.none, topics))
    if not several:
        [(_, code, topics)] = rows
        return entities.new("OffsetFetchResponse", throttle_time=timedelta(0), error_code=code, topics=topics)
    return entities.new(
        "OffsetFetchResponse",
        throttle_time=timedelta(0),
        groups=tuple(
            entities.new("OffsetFetchResponseGroup", group_id=name, error_code=code, topics=topics)
            for name, code, topics in rows
        ),
    )


def offset_commit(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    """By nobody: refused where the group has members. A group that is not there comes into being."""
    there = ErrorCode.group_authorization_failed if denied else model.groups.at(broker.id, request.group_id)
    if there is None:
        there = model.groups.add(request.group_id, [broker.id], coordinator=broker.id, protocol_type="")
    code = there if isinstance(there, ErrorCode) else ErrorCode.none
    if isinstance(there, FakeGroup) and there.members:
        code = ErrorCode.unknown_member_id
    topics = []
    for topic in request.topics:
        own = code if code is not ErrorCode.none or topic.name in model.topics else ErrorCode.unknown_topic_or_partition
        rows = []
        for asked in topic.partitions:
            if own is ErrorCode.none:
                assert isinstance(there, FakeGroup)
                there.committed.setdefault(topic.name, {})[asked.partition_index] = asked.committed_offset
            told = {"partition_index": asked.partition_index, "error_code": own}
            rows.append(entities.new("OffsetCommitResponsePartition", **told))
        topics.append(entities.new("OffsetCommitResponseTopic", name=topic.name, partitions=tuple(rows)))
    return entities.new("OffsetCommitResponse", throttle_time=timedelta(0), topics=tuple(topics))


def offset_delete(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    there = ErrorCode.group_authorization_failed if denied else model.groups.at(broker.id, request.group_id)
    if there is None:
        there = ErrorCode.group_id_not_found
    if isinstance(there, ErrorCode):
        return entities.new("OffsetDeleteResponse", error_code=there, throttle_time=timedelta(0), topics=())
    read = {topic for member in there.members for topic in member.assigned}
    topics = []
    for topic in request.topics:
        code = ErrorCode.group_subscribed_to_topic if topic.name in read else ErrorCode.none
        rows = []
        for asked in topic.partitions:
            if code is ErrorCode.none:
                there.committed.get(topic.name, {}).pop(asked.partition_index, None)
            told = {"partition_index": asked.partition_index, "error_code": code}
            rows.append(entities.new("OffsetDeleteResponsePartition", **told))
        topics.append(entities.new("OffsetDeleteResponseTopic", name=topic.name, partitions=tuple(rows)))
    none = ErrorCode.none
    return entities.new("OffsetDeleteResponse", error_code=none, throttle_time=timedelta(0), topics=tuple(topics))


def delete_groups(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    rows = []
    for name in request.groups_names:
        there = ErrorCode.group_authorization_failed if denied else model.groups.at(broker.id, name)
        code = there if isinstance(there, ErrorCode) else ErrorCode.none
        if there is None:
            code = ErrorCode.group_id_not_found
        elif isinstance(there, FakeGroup) and there.members:
            code = ErrorCode.non_empty_group
        elif isinstance(there, FakeGroup):
            del model.groups.all[name]
        rows.append(entities.new("DeletableGroupResult", group_id=name, error_code=code))
    return entities.new("DeleteGroupsResponse", throttle_time=timedelta(0), results=tuple(rows))


def as_groups_change(
    api_key: int, answer: Callable[[ClusterModel, FakeBroker, Entities, Any, bool], Any]
) -> Callable[[ClusterModel, FakeBroker, Entities, Any, bool], Any]:
    """What ``FakeGroups`` has ``loading``, ``deleted_on`` and ``converted_on``."""

    def answered(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
        if api_key in model.groups.deleted_on:
            model.groups.all.pop(model.groups.deleted_on.pop(api_key))
        if api_key in model.groups.converted_on:
            group = model.groups.all[model.groups.converted_on.pop(api_key)]
            group.type = "classic" if group.type == "consumer" else "consumer"
        entity = answer(model, broker, entities, request, denied)
        if api_key != FIND_COORDINATOR and model.groups.loading.get(broker.id):
            model.groups.loading[broker.id] -= 1
        return entity

    return answered


GROUP_ANSWERS: Mapping[int, Callable[[ClusterModel, FakeBroker, Entities, Any, bool], Any]] = {
    key: as_groups_change(key, answer)
    for key, answer in {
        OFFSET_COMMIT: offset_commit,
        OFFSET_FETCH: offset_fetch,
        FIND_COORDINATOR: find_coordinator,
        DESCRIBE_GROUPS: describe_groups,
        LIST_GROUPS: list_groups,
        DELETE_GROUPS: delete_groups,
        OFFSET_DELETE: offset_delete,
        DESCRIBE_CONSUMER_GROUPS: describe_consumer_groups,
        DESCRIBE_SHARE_GROUPS: describe_share_groups,
        DESCRIBE_STREAMS_GROUPS: describe_streams_groups,
        DESCRIBE_SHARE_OFFSETS: describe_share_offsets,
    }.items()
}
