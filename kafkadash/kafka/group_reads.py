"""Reads of groups: coordinators, ListGroups and descriptions of members, and committed offsets (OffsetFetch).

A broker lists the groups that it coordinates. Empty groups need no second request. Groups of the newer protocols
(KIP-848, streams, share) have a describe request each. A group that one of these requests does not know is asked for by
the next, because it may just have been converted, and is left out if none knows it: it was deleted. Of groups of other
types, which a newer Kafka may have, there is what the list tells.
Requests take many groups at a time, each sent to its coordinator, and again while coordinators are moving.

A broker does not decode the assignment of a classic member, and takes any text as a client id or a group instance id.
All such bytes and names are hostile until they have passed ``ByteReader`` and ``clean_text``: counts and lengths are
checked against the bytes that are left, work is bounded, and names follow Kafka's own rules.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from kafkadash.core import clock
from kafkadash.core.messages import coded
from kafkadash.kafka.api import (
    GROUP_ID_NOT_FOUND,
    AnswerTooLarge,
    CommittedOffsets,
    GroupDescription,
    GroupListing,
    GroupMember,
    ItemError,
    KafkaFailure,
    KafkaUnreachable,
    NotSupported,
    Offsets,
    OtherGroup,
    ShareOffset,
    ShareOffsets,
)
from kafkadash.kafka.dispatch import BrokerAnswer, BrokerRequest, FanOut
from kafkadash.kafka.error_codes import COORDINATOR_MOVES, UNSUPPORTED_VERSION, call_failure, item_error
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.messages import (
    ConsumerGroup,
    ConsumerGroupsAnswer,
    ConsumerMember,
    CoordinatorsAnswer,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsAnswer,
    FetchedTopic,
    ListedGroup,
    ListGroupsAnswer,
    MetadataAnswer,
    OffsetFetchAnswer,
    OneAtATime,
    ShareGroup,
    ShareGroupsAnswer,
    ShareMember,
    ShareOffsetsAnswer,
    ShareTopic,
    StreamsGroup,
    StreamsGroupsAnswer,
    StreamsMember,
    StreamsSubtopology,
    committed_request,
    coordinators_request,
    describe_consumer_groups_request,
    describe_groups_request,
    describe_share_groups_request,
    describe_streams_groups_request,
    list_groups_request,
    metadata_request,
    name_operations,
    share_offsets_request,
)

DESCRIBE_GROUP = "Describe on the group"
"""The permission that all questions about a group need."""

GROUPS_PER_COORDINATOR = 1000

Found = Callable[[int, list[str]], None]
Failed = Callable[[str, ItemError], None]


class CoordinatorLocator:
    """Tells ``found`` a broker and its groups, or ``failed`` a group and why nobody is known to coordinate it.

    Not to be asked about groups that do not exist: with the first of them Kafka creates its offsets topic.
    """

    def __init__(self, talk: FanOut, found: Found, failed: Failed) -> None:
        self._talk = talk
        self._found = found
        self._failed = failed

    def locate(self, groups: Sequence[str]) -> None:
        for start in range(0, len(groups), GROUPS_PER_COORDINATOR):
            self._ask(groups[start : start + GROUPS_PER_COORDINATOR])

    def locate_again(self, moved: Mapping[str, ItemError]) -> None:
        """Locate moved or unready coordinators again; ``moved``: the error of each group if no time is left."""
        if moved and not self._talk.later(partial(self.locate, list(moved))):
            for group, why in moved.items():
                self._failed(group, why)

    def _ask(self, groups: Sequence[str]) -> None:
        ask: BrokerRequest[CoordinatorsAnswer] = BrokerRequest(lambda offered: coordinators_request(offered, groups))
        self._talk.ask(None, ask, partial(self._told, groups))

    def _told(self, groups: Sequence[str], result: BrokerAnswer[CoordinatorsAnswer] | KafkaFailure) -> None:
        if isinstance(result, OneAtATime):
            for group in groups:
                self._ask([group])
            return
        if isinstance(result, KafkaFailure):
            for group in groups:
                self._failed(group, ItemError(result.message))
            return
        response = result.response
        if response.API_VERSION < 4:
            told = {groups[0]: (response.error_code, response.node_id)}
        else:
            told = {row.key: (row.error_code, row.node_id) for row in response.coordinators}
        at: dict[int, list[str]] = defaultdict(list)
        moving: dict[str, ItemError] = {}
        for group in groups:
            code, node = told.get(group, (None, -1))
            subject = f"The coordinator of group {group} is unknown"
            if code == 0:
                at[node].append(group)
            elif code is None:
                self._failed(group, ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject)))
            elif code in COORDINATOR_MOVES:
                moving[group] = item_error(code, subject)
            else:
                self._failed(group, item_error(code, subject, permission=DESCRIBE_GROUP))
        self.locate_again(moving)
        for node, groups_there in at.items():
            self._found(node, groups_there)


class CoordinatorReading:
    """Collects which broker coordinates each group of one call."""

    def __init__(self, talk: FanOut) -> None:
        self._talk = talk
        self._found: dict[int, list[str]] = defaultdict(list)
        self._errors: dict[str, ItemError] = {}

    def read(self, groups: Collection[str]) -> tuple[Mapping[int, list[str]], Mapping[str, ItemError]]:
        """Return the groups of each broker, and why others have none. Raises KafkaFailure when nobody answered."""
        CoordinatorLocator(self._talk, self._keep, self._errors.__setitem__).locate(list(groups))
        self._talk.run()
        return self._found, self._errors

    def _keep(self, broker: int, groups: list[str]) -> None:
        self._found[broker] += groups


MAX_ASSIGNED_TOPICS, MAX_ASSIGNED_PARTITIONS = 10_000, 50_000
# org.apache.kafka.common.internals.Topic: MAX_NAME_LENGTH, LEGAL_CHARS, and the two names that are folders.
LEGAL_TOPIC_NAME = re.compile(rb"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}\Z")
MAX_BYTES, MAX_BYTES_OF_GROUP = 64 * 2**20, 4 * 2**20
MAX_TEXT = 255
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SMALLEST_TOPIC = 2 + 1 + 4  # a name of one letter, no partitions


class UnreadableBytes(ValueError):
    """These bytes are not what the protocol says, or are more than anybody writes in earnest."""


class ByteReader:
    """Reads big-endian values one after the other. Everything raises UnreadableBytes at the end of the bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes that were not read yet."""
        return len(self._content) - self._at

    def read_int16(self) -> int:
        return int.from_bytes(self.read_bytes(2), "big", signed=True)

    def read_int32(self) -> int:
        return int.from_bytes(self.read_bytes(4), "big", signed=True)

    def read_bytes(self, length: int) -> bytes:
        if not 0 <= length <= self.left:
            raise UnreadableBytes(f"{length} bytes are announced, {self.left} are left")
        start = self._at
        self._at += length
        return self._content[start : self._at]

    def read_int32s(self, number: int) -> tuple[int, ...]:
        return struct.unpack(f">{number}i", self.read_bytes(4 * number))


def decode_assignment(content: bytes) -> dict[str, tuple[int, ...]]:
    """Topic → partitions of a classic member (ConsumerProtocolAssignment.json; later versions only add at the end).

    Empty for no bytes, which is what members have while their group rebalances. Raises UnreadableBytes for anything
    else that is no assignment, and for more than 10,000 topics or 50,000 partitions.
    """
    if not content:
        return {}
    reader = ByteReader(bytes(content))
    reader.read_int16()  # the version
    topics = reader.read_int32()
    if not 0 <= topics <= min(MAX_ASSIGNED_TOPICS, reader.left // _SMALLEST_TOPIC):
        raise UnreadableBytes(f"{topics} topics are announced in {reader.left} bytes")
    found: dict[str, tuple[int, ...]] = {}
    partitions = 0
    for _ in range(topics):
        name = reader.read_bytes(reader.read_int16())
        if LEGAL_TOPIC_NAME.match(name) is None:
            raise UnreadableBytes("a topic has a name that Kafka does not allow")
        number = reader.read_int32()
        partitions += max(0, number)
        if partitions > MAX_ASSIGNED_PARTITIONS:
            raise UnreadableBytes(f"more than {MAX_ASSIGNED_PARTITIONS:,} partitions are assigned")
        assigned = reader.read_int32s(number)
        if assigned and min(assigned) < 0:
            raise UnreadableBytes("a partition has a negative number")
        topic = name.decode("ascii")
        if topic in found:
            raise UnreadableBytes("a topic is assigned twice")
        found[topic] = assigned
    return found


class AssignmentReading:
    """Decodes the assignments of one call, 64 MiB of them at most, 4 MiB for each group."""

    def __init__(self) -> None:
        self._left = MAX_BYTES

    def decode_group(self, assignments: Sequence[bytes]) -> list[dict[str, tuple[int, ...]] | None]:
        """Assignments of the members, in their order; None for one that cannot be read."""
        left = min(self._left, MAX_BYTES_OF_GROUP)
        found: list[dict[str, tuple[int, ...]] | None] = []
        for assignment in assignments:
            if len(assignment) > left:
                found.append(None)
                continue
            left -= len(assignment)
            self._left -= len(assignment)
            try:
                found.append(decode_assignment(assignment))
            except UnreadableBytes:
                found.append(None)
        return found


def clean_text(text: str) -> str:
    """A client's own words, fit to be stored and shown: 255 characters at most, the replacement character for controls.

    PostgreSQL stores neither NUL nor half a surrogate pair.
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text[:MAX_TEXT])


GROUPS_PER_DESCRIBE = 200
CLASSIC, CONSUMER, STREAMS, SHARE = "Classic", "Consumer", "Streams", "Share"
# Before v5 (Kafka 3.8) there is but one, without a name.
_TYPES = {"": CLASSIC, "classic": CLASSIC, "consumer": CONSUMER, "streams": STREAMS, "share": SHARE}
_WITH_COMMITS = (CLASSIC, CONSUMER, STREAMS)
_PROTOCOL_TYPES = ("consumer", "")
_STATES = {
    word.lower(): word
    for word in (
        "Stable",
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Assigning",
        "Reconciling",
        "NotReady",
        "Dead",
    )
}
_LIST_GROUPS = "Describe on the cluster or on the groups"


class GroupReading:
    """Collects the answers of one call."""

    def __init__(self, talk: FanOut) -> None:
        self._talk = talk
        self._locator = CoordinatorLocator(talk, self._describe, self._fail)
        self._listed: dict[str, GroupDescription] = {}
        self._others: dict[str, OtherGroup] = {}
        self._kinds: Sequence[str] = (*_WITH_COMMITS, SHARE)
        self._not_there: defaultdict[str, set[str]] = defaultdict(set)  # types that a group is not of
        self._found: dict[str, GroupDescription] = {}
        self._errors: dict[int, ItemError] = {}
        self._taken_at: list[float] = []
        self._refused: list[int] = []  # codes
        self._assignments = AssignmentReading()
        self._rights: dict[str, Collection[int] | None] | None = None

    def read(self) -> GroupListing:
        """Raises KafkaFailure when no broker listed its groups."""
        brokers: BrokerRequest[MetadataAnswer] = BrokerRequest(lambda offered: metadata_request(offered, ()))
        self._talk.ask(None, brokers, self._begin)
        self._talk.run()
        if not self._taken_at and self._refused:
            raise call_failure(self._refused[0], "ListGroups", permission=_LIST_GROUPS)
        shares = {name: group for name, group in self._found.items() if group.type == SHARE}
        return GroupListing(
            {name: group for name, group in self._found.items() if name not in shares},
            self._errors,
            min(self._taken_at, default=clock.seconds()),
            self._others | {name: _as_share(group) for name, group in shares.items()},
        )

    def read_named(self, groups: Collection[str]) -> Mapping[str, GroupDescription]:
        """Describe these groups only. Nobody says of which type they are: all requests but that of share groups are
        tried.

        Raises KafkaFailure when nobody answered.
        """
        self._kinds = _WITH_COMMITS
        self._listed = {name: GroupDescription(name, "Unknown", CLASSIC, "", "", None, members=None) for name in groups}
        self._locator.locate(list(self._listed))
        self._talk.run()
        return self._found

    def read_rights(self, groups: Collection[str]) -> Mapping[str, frozenset[str] | None]:
        """Return what Kafka grants on these groups (KIP-430), None where it does not tell.

        A group that does not exist, or could not be described, is left out. Raises KafkaFailure when nobody answered.
        """
        self._rights = {}
        described = self.read_named(groups)
        return {
            name: name_operations(operations)
            for name, operations in self._rights.items()
            if name in described and described[name].members is not None
        }

    def _begin(self, result: BrokerAnswer[MetadataAnswer] | KafkaFailure) -> None:
        if not isinstance(result, KafkaFailure):
            for broker in result.response.brokers:
                self._list(broker.node_id)

    def _list(self, broker: int) -> None:
        ask: BrokerRequest[ListGroupsAnswer] = BrokerRequest(list_groups_request)
        self._talk.ask(broker, ask, partial(self._told_list, broker))

    def _told_list(self, broker: int, result: BrokerAnswer[ListGroupsAnswer] | KafkaFailure) -> None:
        if isinstance(result, KafkaFailure):
            self._errors[broker] = ItemError(result.message)
            return
        code = result.response.error_code
        if code in COORDINATOR_MOVES and self._talk.later(partial(self._list, broker)):
            return
        if code:
            self._refused.append(code)
            self._errors[broker] = item_error(
                code, f"Groups of broker {broker} cannot be listed", permission=_LIST_GROUPS
            )
            return
        self._taken_at.append(result.taken_at)
        ours = []
        for row in result.response.groups:
            group = _read_listed(broker, row)
            if isinstance(group, OtherGroup):
                self._others[group.name] = group
            elif group is not None:
                self._listed[group.name] = group
                ours.append(group.name)
        self._describe(broker, ours)

    def _describe(self, broker: int, groups: Sequence[str]) -> None:
        """Describe the groups that this broker coordinates, as far as is known."""
        by_type: defaultdict[str, list[str]] = defaultdict(list)
        for name in groups:
            group = self._listed[name]
            if group.state == "Empty" and name not in self._not_there:
                self._found.setdefault(name, group)
            else:
                by_type[group.type].append(name)
        self._ask_all(broker, by_type)

    def _ask_all(self, broker: int, by_type: Mapping[str, Sequence[str]]) -> None:
        for kind, names in by_type.items():
            for start in range(0, len(names), GROUPS_PER_DESCRIBE):
                self._ask(broker, kind, names[start : start + GROUPS_PER_DESCRIBE])

    def _ask_next(self, broker: int, kind: str, groups: Sequence[str]) -> None:
        """Ask for groups that are not of this type as another one; what is of none is left out."""
        by_type: defaultdict[str, list[str]] = defaultdict(list)
        for name in groups:
            self._not_there[name].add(kind)
            other = next((each for each in self._kinds if each not in self._not_there[name]), None)
            if other is not None:
                by_type[other].append(name)
        self._ask_all(broker, by_type)

    def _ask(self, broker: int, kind: str, groups: Sequence[str]) -> None:
        with_rights = self._rights is not None
        if kind == CLASSIC:
            classic: BrokerRequest[DescribeGroupsAnswer] = BrokerRequest(
                lambda offered: describe_groups_request(offered, groups, with_rights=with_rights)
            )
            self._talk.ask(broker, classic, partial(self._told_classic, broker, groups))
        elif kind == STREAMS:
            streams: BrokerRequest[StreamsGroupsAnswer] = BrokerRequest(
                lambda offered: describe_streams_groups_request(offered, groups, with_rights=with_rights)
            )
            self._talk.ask(broker, streams, partial(self._told_streams, broker, groups))
        elif kind == SHARE:
            share: BrokerRequest[ShareGroupsAnswer] = BrokerRequest(
                lambda offered: describe_share_groups_request(offered, groups)
            )
            self._talk.ask(broker, share, partial(self._told_share, broker, groups))
        else:
            newer: BrokerRequest[ConsumerGroupsAnswer] = BrokerRequest(
                lambda offered: describe_consumer_groups_request(offered, groups, with_rights=with_rights)
            )
            self._talk.ask(broker, newer, partial(self._told_consumer, broker, groups))

    def _told_classic(
        self, broker: int, groups: Sequence[str], result: BrokerAnswer[DescribeGroupsAnswer] | KafkaFailure
    ) -> None:
        """Before v6 (Kafka 4.0) a group that is not known there is Dead, without an error."""
        if isinstance(result, KafkaFailure):
            self._not_told(broker, CLASSIC, groups, result)
            return
        rows = {row.group_id: row for row in result.response.groups}
        dead = {
            name for name, row in rows.items() if not row.error_code and _normalize_state(row.group_state) == "Dead"
        }
        codes = {name: GROUP_ID_NOT_FOUND if name in dead else row.error_code for name, row in rows.items()}
        for name in self._answered(broker, CLASSIC, groups, codes):
            if rows[name].protocol_type in _PROTOCOL_TYPES:
                self._found[name] = _read_classic(broker, rows[name], self._assignments)
                if self._rights is not None:
                    self._rights[name] = rows[name].authorized_operations

    def _told_consumer(
        self, broker: int, groups: Sequence[str], result: BrokerAnswer[ConsumerGroupsAnswer] | KafkaFailure
    ) -> None:
        if isinstance(result, KafkaFailure):
            self._not_told(broker, CONSUMER, groups, result)
            return
        rows = {row.group_id: row for row in result.response.groups}
        codes = {name: row.error_code for name, row in rows.items()}
        for name in self._answered(broker, CONSUMER, groups, codes):
            self._found[name] = _read_consumer(broker, rows[name])
            if self._rights is not None:
                self._rights[name] = rows[name].authorized_operations

    def _told_share(
        self, broker: int, groups: Sequence[str], result: BrokerAnswer[ShareGroupsAnswer] | KafkaFailure
    ) -> None:
        if isinstance(result, KafkaFailure):
            self._not_told(broker, SHARE, groups, result)
            return
        rows = {row.group_id: row for row in result.response.groups}
        for name in self._answered(broker, SHARE, groups, {name: row.error_code for name, row in rows.items()}):
            self._found[name] = _read_share(broker, rows[name])

    def _told_streams(
        self, broker: int, groups: Sequence[str], result: BrokerAnswer[StreamsGroupsAnswer] | KafkaFailure
    ) -> None:
        """A task reads its partition of each source topic that has one: how many they have is asked first."""
        if isinstance(result, KafkaFailure):
            self._not_told(broker, STREAMS, groups, result)
            return
        rows = {row.group_id: row for row in result.response.groups}
        codes = {name: row.error_code for name, row in rows.items()}
        described = [rows[name] for name in self._answered(broker, STREAMS, groups, codes)]
        several = [topics for row in described for topics in _list_sources(row).values() if len(topics) > 1]
        topics = sorted({topic for each in several for topic in each})
        if not topics:
            self._keep_streams(broker, described, {})
            return
        sizes: BrokerRequest[MetadataAnswer] = BrokerRequest(lambda offered: metadata_request(offered, topics))
        self._talk.ask(None, sizes, partial(self._told_sizes, broker, described))

    def _told_sizes(
        self, broker: int, described: Sequence[StreamsGroup], result: BrokerAnswer[MetadataAnswer] | KafkaFailure
    ) -> None:
        topics = () if isinstance(result, KafkaFailure) else result.response.topics
        sizes = {topic.name or "": len(topic.partitions) for topic in topics if not topic.error_code}
        self._keep_streams(broker, described, sizes)

    def _keep_streams(self, broker: int, described: Sequence[StreamsGroup], sizes: Mapping[str, int]) -> None:
        for row in described:
            self._found[row.group_id] = _read_streams(broker, row, sizes)
            if self._rights is not None:
                self._rights[row.group_id] = row.authorized_operations

    def _not_told(self, broker: int, kind: str, groups: Sequence[str], failure: KafkaFailure) -> None:
        if isinstance(failure, AnswerTooLarge) and len(groups) > 1:
            half = len(groups) // 2
            self._ask(broker, kind, groups[:half])
            self._ask(broker, kind, groups[half:])
            return
        errors = dict.fromkeys(groups, ItemError(failure.message))
        if isinstance(failure, KafkaUnreachable):  # it may have stopped, and another one takes its groups
            self._locator.locate_again(errors)
        elif isinstance(failure, NotSupported):  # where there is no such type, a group may be of another or gone
            self._fail_all({name: error for name, error in errors.items() if name not in self._not_there})
            self._ask_next(broker, kind, [name for name in groups if name in self._not_there])
        else:
            self._fail_all(errors)

    def _answered(self, broker: int, kind: str, groups: Sequence[str], codes: Mapping[str, int]) -> list[str]:
        """Return the groups that were described; locate, ask again or fail the others."""
        moved: dict[str, ItemError] = {}
        other: list[str] = []
        described: list[str] = []
        for name in groups:
            subject = f"Group {name} cannot be described"
            code = codes.get(name)
            if code == 0:
                described.append(name)
            elif code is None:
                self._fail(name, ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject)))
            elif code in COORDINATOR_MOVES:
                moved[name] = item_error(code, subject)
            elif code == GROUP_ID_NOT_FOUND or (code == UNSUPPORTED_VERSION and name in self._not_there):
                other.append(name)  # a broker offers requests of protocols that are off, and has no groups of them
            else:
                self._fail(name, item_error(code, subject, permission=DESCRIBE_GROUP))
        self._locator.locate_again(moved)
        self._ask_next(broker, kind, other)
        return described

    def _fail_all(self, errors: Mapping[str, ItemError]) -> None:
        for name, error in errors.items():
            self._fail(name, error)

    def _fail(self, name: str, error: ItemError) -> None:
        """Store the error of the group, unless another broker's answer about the group is there."""
        self._found.setdefault(name, replace(self._listed[name], members=None, error=error))


def _read_listed(broker: int, row: ListedGroup) -> GroupDescription | OtherGroup | None:
    """None for a group that is just going away."""
    told = (row.group_type or "").lower()
    kind, state = _TYPES.get(told), _normalize_state(row.group_state)
    if state == "Dead":
        return None
    if kind is None or (kind in (CLASSIC, CONSUMER) and row.protocol_type not in _PROTOCOL_TYPES):
        word = state if state != "Unknown" else clean_text(row.group_state or "") or state
        return OtherGroup(row.group_id, clean_text(told if kind is None else row.protocol_type), word)
    return GroupDescription(row.group_id, state, kind, row.protocol_type, "", broker, members=())


def _read_classic(broker: int, row: DescribedGroup, assignments: AssignmentReading) -> GroupDescription:
    """A member whose assignment cannot be read has none here, and the error of the group names it."""
    assigned = assignments.decode_group([cast("bytes", member.member_assignment) for member in row.members])
    members = [
        _member(member, member.group_instance_id, of_it or {})
        for member, of_it in zip(row.members, assigned, strict=True)
    ]
    unreadable = [member.member_id for member, of_it in zip(members, assigned, strict=True) if of_it is None]
    error = _name_unreadable(row.group_id, unreadable)
    return GroupDescription(
        row.group_id,
        _normalize_state(row.group_state),
        CLASSIC,
        row.protocol_type,
        clean_text(row.protocol_data or ""),
        broker,
        members,
        error,
    )


def _read_consumer(broker: int, row: ConsumerGroup) -> GroupDescription:
    members = [
        _member(
            member,
            member.instance_id,
            {topic.topic_name: tuple(topic.partitions) for topic in member.assignment.topic_partitions},
        )
        for member in row.members
    ]
    return GroupDescription(
        row.group_id,
        _normalize_state(row.group_state),
        CONSUMER,
        "consumer",
        clean_text(row.assignor_name or ""),
        broker,
        members,
    )


def _as_share(group: GroupDescription) -> OtherGroup:
    told = (group.coordinator, group.members, group.error)
    return OtherGroup(group.name, "share", group.state, True, *told)  # noqa: FBT003


def _read_share(broker: int, row: ShareGroup) -> GroupDescription:
    """Members of a share group share partitions: each partition may be assigned to several."""
    members = [
        _member(
            member, None, {topic.topic_name: tuple(topic.partitions) for topic in member.assignment.topic_partitions}
        )
        for member in row.members
    ]
    state = _normalize_state(row.group_state)
    return GroupDescription(row.group_id, state, SHARE, "share", clean_text(row.assignor_name or ""), broker, members)


def _list_sources(row: StreamsGroup) -> dict[str, list[str]]:
    """Subtopology → topics that its tasks read; none while the topology is not configured."""
    subtopologies: Sequence[StreamsSubtopology] = (row.topology.subtopologies if row.topology else None) or ()
    found = {}
    for each in subtopologies:
        names = [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        found[each.subtopology_id] = [
            name for name in dict.fromkeys(names) if LEGAL_TOPIC_NAME.match(name.encode("utf-8", "replace"))
        ]
    return found


def _read_streams(broker: int, row: StreamsGroup, sizes: Mapping[str, int]) -> GroupDescription:
    """``sizes``: partitions of topics, as far as known. A member with more than 50,000 partitions has none here, and
    the error of the group names it.
    """
    sources = _list_sources(row)
    assigned = [_read_tasks(member, sources, sizes) for member in row.members]
    members = [
        _member(member, member.instance_id, of_it or {}) for member, of_it in zip(row.members, assigned, strict=True)
    ]
    unreadable = [member.member_id for member, of_it in zip(members, assigned, strict=True) if of_it is None]
    error = _name_unreadable(row.group_id, unreadable)
    return GroupDescription(
        row.group_id, _normalize_state(row.group_state), STREAMS, "streams", "", broker, members, error
    )


def _read_tasks(
    member: StreamsMember, sources: Mapping[str, Sequence[str]], sizes: Mapping[str, int]
) -> dict[str, tuple[int, ...]] | None:
    found: dict[str, tuple[int, ...]] = {}
    left = MAX_ASSIGNED_PARTITIONS
    for tasks in member.assignment.active_tasks:
        for topic in sources.get(tasks.subtopology_id, ()):
            left -= len(tasks.partitions)
            if left < 0:
                return None
            here = [number for number in tasks.partitions if 0 <= number < sizes.get(topic, number + 1)]
            if here:
                found[topic] = (*found.get(topic, ()), *here)
    return found


def _name_unreadable(group: str, members: Sequence[str]) -> ItemError | None:
    if not members:
        return None
    return ItemError(coded(KafkaErrorCode.ASSIGNMENT_UNREADABLE, group=clean_text(group), member=members[0]))


def _member(
    row: DescribedMember | ConsumerMember | ShareMember | StreamsMember,
    instance: str | None,
    assigned: Mapping[str, Sequence[int]],
) -> GroupMember:
    return GroupMember(
        clean_text(row.member_id),
        clean_text(row.client_id),
        clean_text(row.client_host.removeprefix("/")),
        None if instance is None else clean_text(instance),
        assigned,
    )


def _normalize_state(word: str) -> str:
    """Kafka's own word, which brokers have written in different cases; Unknown for none and for what is newer."""
    return _STATES.get((word or "").lower(), "Unknown")


# An answer about groups with a few hundred partitions each stays near a megabyte, and others get their turn between.
GROUPS_PER_FETCH = 100
_NO_COMMIT = -1


class CommittedReading:
    """Collects the answers of one call."""

    def __init__(self, talk: FanOut) -> None:
        self._talk = talk
        self._locator = CoordinatorLocator(talk, self._ask_there, self._fail)
        self._found: dict[str, Offsets] = {}
        self._errors: dict[str, ItemError] = {}
        self._names: dict[str, str] = {}  # a topic's name is kept once, however many groups read it
        self._taken_at: list[float] = []

    def read(self, groups: Collection[str]) -> CommittedOffsets:
        """Raises KafkaFailure when nobody answered anything."""
        self._locator.locate(list(dict.fromkeys(groups)))
        self._talk.run()
        finished_at = clock.seconds()
        return CommittedOffsets(self._found, self._errors, min(self._taken_at, default=finished_at), finished_at)

    def _ask_there(self, broker: int, groups: list[str]) -> None:
        for start in range(0, len(groups), GROUPS_PER_FETCH):
            self._ask(broker, groups[start : start + GROUPS_PER_FETCH])

    def _ask(self, broker: int, groups: Sequence[str]) -> None:
        ask: BrokerRequest[OffsetFetchAnswer] = BrokerRequest(lambda offered: committed_request(offered, groups))
        self._talk.ask(broker, ask, partial(self._told, broker, groups))

    def _told(self, broker: int, groups: Sequence[str], result: BrokerAnswer[OffsetFetchAnswer] | KafkaFailure) -> None:
        if isinstance(result, OneAtATime):
            for group in groups:
                self._ask(broker, [group])
            return
        if isinstance(result, KafkaUnreachable):  # it may have stopped, and another one takes its groups
            self._locator.locate_again(dict.fromkeys(groups, ItemError(result.message)))
            return
        if isinstance(result, KafkaFailure):
            for group in groups:
                self._fail(group, ItemError(result.message))
            return
        self._taken_at.append(result.taken_at)
        response = result.response
        if response.API_VERSION < 8:
            told: dict[str, tuple[int, Sequence[FetchedTopic]]] = {groups[0]: (response.error_code, response.topics)}
        else:
            told = {row.group_id: (row.error_code, row.topics) for row in response.groups}
        moved: dict[str, ItemError] = {}
        for group in groups:
            code, topics = told.get(group, (None, ()))
            self._sort(group, code, topics, moved)
        self._locator.locate_again(moved)

    def _sort(self, group: str, code: int | None, topics: Sequence[FetchedTopic], moved: dict[str, ItemError]) -> None:
        subject = f"Committed offsets of group {group} cannot be read"
        if code == 0:
            code = next((p.error_code for topic in topics for p in topic.partitions if p.error_code), 0)
        if code == 0:
            self._found[group] = {
                self._names.setdefault(topic.name, topic.name): offsets
                for topic in topics
                if (
                    offsets := {
                        p.partition_index: p.committed_offset
                        for p in topic.partitions
                        if p.committed_offset > _NO_COMMIT
                    }
                )
            }
        elif code == GROUP_ID_NOT_FOUND:
            self._found[group] = {}
        elif code is None:
            self._fail(group, ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject)))
        elif code in COORDINATOR_MOVES:
            moved[group] = item_error(code, subject)
        else:
            self._fail(group, item_error(code, subject, permission=DESCRIBE_GROUP))

    def _fail(self, group: str, error: ItemError) -> None:
        self._errors[group] = error


class ShareReading:
    """Collects start offsets and lag of the share groups of one call."""

    def __init__(self, talk: FanOut) -> None:
        self._talk = talk
        self._locator = CoordinatorLocator(talk, self._ask_there, self._fail)
        self._found: dict[str, Mapping[str, Mapping[int, ShareOffset]]] = {}
        self._errors: dict[str, ItemError] = {}
        self._taken_at: list[float] = []

    def read(self, groups: Collection[str]) -> ShareOffsets:
        """Raises KafkaFailure when nobody answered anything."""
        self._locator.locate(list(dict.fromkeys(groups)))
        self._talk.run()
        return ShareOffsets(self._found, self._errors, min(self._taken_at, default=clock.seconds()))

    def _ask_there(self, broker: int, groups: list[str]) -> None:
        for start in range(0, len(groups), GROUPS_PER_FETCH):
            self._ask(broker, groups[start : start + GROUPS_PER_FETCH])

    def _ask(self, broker: int, groups: Sequence[str]) -> None:
        ask: BrokerRequest[ShareOffsetsAnswer] = BrokerRequest(lambda offered: share_offsets_request(offered, groups))
        self._talk.ask(broker, ask, partial(self._told, broker, groups))

    def _told(
        self, broker: int, groups: Sequence[str], result: BrokerAnswer[ShareOffsetsAnswer] | KafkaFailure
    ) -> None:
        if isinstance(result, AnswerTooLarge) and len(groups) > 1:
            half = len(groups) // 2
            self._ask(broker, groups[:half])
            self._ask(broker, groups[half:])
            return
        if isinstance(result, KafkaUnreachable):  # it may have stopped, and another one takes its groups
            self._locator.locate_again(dict.fromkeys(groups, ItemError(result.message)))
            return
        if isinstance(result, KafkaFailure):
            for group in groups:
                self._fail(group, ItemError(result.message))
            return
        self._taken_at.append(result.taken_at)
        rows = {row.group_id: row for row in result.response.groups}
        moved: dict[str, ItemError] = {}
        for group in groups:
            row = rows.get(group)
            subject = f"Start offsets of group {group} cannot be read"
            code = None if row is None else row.error_code
            if row is None or code is None:
                self._fail(group, ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject)))
            elif code == 0:
                self._found[group] = {topic.topic_name: _read_share_topic(topic) for topic in row.topics}
                if wrong := next((p.error_code for topic in row.topics for p in topic.partitions if p.error_code), 0):
                    self._fail(group, item_error(wrong, subject, permission=DESCRIBE_GROUP))
            elif code == GROUP_ID_NOT_FOUND:
                self._found[group] = {}
            elif code in COORDINATOR_MOVES:
                moved[group] = item_error(code, subject)
            else:
                self._fail(group, item_error(code, subject, permission=DESCRIBE_GROUP))
        self._locator.locate_again(moved)

    def _fail(self, group: str, error: ItemError) -> None:
        self._errors[group] = error


def _read_share_topic(topic: ShareTopic) -> dict[int, ShareOffset]:
    return {
        row.partition_index: ShareOffset(
            row.start_offset if row.start_offset >= 0 and not row.error_code else None,
            row.lag if row.lag >= 0 and not row.error_code else None,
        )
        for row in topic.partitions
    }
