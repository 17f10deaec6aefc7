"""ListGroups of every broker, and what the members of those groups are, each asked of the group's coordinator.

A broker lists the groups that it coordinates. Empty ones need no second question. Groups of the newer protocol
(KIP-848) have a request of their own; a group that one of the two requests does not know is asked for by the other,
because it may just have been converted, and is left out when that does not know it either: it was deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from kafkadash.domain.messages import coded
from kafkadash.kafka import clock
from kafkadash.kafka.asking import Answer, Ask
from kafkadash.kafka.client_bytes import AssignmentReading, clean_text
from kafkadash.kafka.codes import COORDINATOR_MOVES, GROUP_ID_NOT_FOUND, call_failure, item_error
from kafkadash.kafka.coordinators import DESCRIBE_GROUP, Locator
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.group_messages import (
    ConsumerGroup,
    ConsumerGroupsAnswer,
    ConsumerMember,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsAnswer,
    ListedGroup,
    ListGroupsAnswer,
    describe_consumer_groups_request,
    describe_groups_request,
    list_groups_request,
)
from kafkadash.kafka.groups import Group, GroupMember, Groups, OtherGroup
from kafkadash.kafka.messages import MetadataAnswer, metadata_request
from kafkadash.kafka.port import AnswerTooLarge, ItemError, KafkaFailure, NotSupported, Unreachable
from kafkadash.kafka.talk import Talk

GROUPS_PER_QUESTION = 200
CLASSIC, CONSUMER = "Classic", "Consumer"
_TYPES = {"": CLASSIC, "classic": CLASSIC, "consumer": CONSUMER}  # before v5 (Kafka 3.8) there is but one
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

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._locator = Locator(talk, self._describe, self._fail)
        self._listed: dict[str, Group] = {}
        self._others: dict[str, OtherGroup] = {}
        self._not_there: set[str] = set()  # as the type that it was listed as
        self._found: dict[str, Group] = {}
        self._errors: dict[int, ItemError] = {}
        self._taken_at: list[float] = []
        self._refused: list[int] = []  # codes
        self._assignments = AssignmentReading()

    def read(self) -> Groups:
        """Raises KafkaFailure when no broker listed its groups."""
        brokers: Ask[MetadataAnswer] = Ask(lambda offered: metadata_request(offered, ()))
        self._talk.ask(None, brokers, self._begin)
        self._talk.run()
        if not self._taken_at and self._refused:
            raise call_failure(self._refused[0], "ListGroups", permission=_LIST_GROUPS)
        return Groups(self._found, self._errors, min(self._taken_at, default=clock.seconds()), self._others)

    def _begin(self, result: Answer[MetadataAnswer] | KafkaFailure) -> None:
        if not isinstance(result, KafkaFailure):
            for broker in result.response.brokers:
                self._list(broker.node_id)

    def _list(self, broker: int) -> None:
        ask: Ask[ListGroupsAnswer] = Ask(list_groups_request)
        self._talk.ask(broker, ask, partial(self._told_list, broker))

    def _told_list(self, broker: int, result: Answer[ListGroupsAnswer] | KafkaFailure) -> None:
        if isinstance(result, KafkaFailure):
            self._errors[broker] = ItemError(result.message)
            return
        code = result.response.error_code
        if code in COORDINATOR_MOVES and self._talk.later(partial(self._list, broker)):
            return
        if code:
            self._refused.append(code)
            self._errors[broker] = item_error(
                code, f"Broker {broker} does not list its groups", permission=_LIST_GROUPS
            )
            return
        self._taken_at.append(result.taken_at)
        ours = []
        for row in result.response.groups:
            group = _listed(broker, row)
            if isinstance(group, OtherGroup):
                self._others[group.name] = group
            elif group is not None:
                self._listed[group.name] = group
                ours.append(group.name)
        self._describe(broker, ours)

    def _describe(self, broker: int, groups: Sequence[str]) -> None:
        """Of groups that this broker coordinates, as far as is known."""
        by_type: dict[str, list[str]] = {CLASSIC: [], CONSUMER: []}
        for name in groups:
            group = self._listed[name]
            if group.state == "Empty" and name not in self._not_there:
                self._found.setdefault(name, group)
            else:
                by_type[group.type].append(name)
        for kind, names in by_type.items():
            for start in range(0, len(names), GROUPS_PER_QUESTION):
                self._ask(broker, kind, names[start : start + GROUPS_PER_QUESTION])

    def _ask(self, broker: int, kind: str, groups: Sequence[str]) -> None:
        if kind == CLASSIC:
            classic: Ask[DescribeGroupsAnswer] = Ask(lambda offered: describe_groups_request(offered, groups))
            self._talk.ask(broker, classic, partial(self._told_classic, broker, groups))
        else:
            newer: Ask[ConsumerGroupsAnswer] = Ask(lambda offered: describe_consumer_groups_request(offered, groups))
            self._talk.ask(broker, newer, partial(self._told_consumer, broker, groups))

    def _told_classic(
        self, broker: int, groups: Sequence[str], result: Answer[DescribeGroupsAnswer] | KafkaFailure
    ) -> None:
        """Before v6 (Kafka 4.0) a group that is not known there is Dead, without an error."""
        if isinstance(result, KafkaFailure):
            self._not_told(broker, CLASSIC, groups, result)
            return
        rows = {row.group_id: row for row in result.response.groups}
        dead = {name for name, row in rows.items() if not row.error_code and _state(row.group_state) == "Dead"}
        codes = {name: GROUP_ID_NOT_FOUND if name in dead else row.error_code for name, row in rows.items()}
        for name in self._answered(broker, CLASSIC, groups, codes):
            if rows[name].protocol_type in _PROTOCOL_TYPES:
                self._found[name] = _classic(broker, rows[name], self._assignments)

    def _told_consumer(
        self, broker: int, groups: Sequence[str], result: Answer[ConsumerGroupsAnswer] | KafkaFailure
    ) -> None:
        if isinstance(result, KafkaFailure):
            self._not_told(broker, CONSUMER, groups, result)
            return
        rows = {row.group_id: row for row in result.response.groups}
        codes = {name: row.error_code for name, row in rows.items()}
        for name in self._answered(broker, CONSUMER, groups, codes):
            self._found[name] = _consumer(broker, rows[name])

    def _not_told(self, broker: int, kind: str, groups: Sequence[str], failure: KafkaFailure) -> None:
        if isinstance(failure, AnswerTooLarge) and len(groups) > 1:
            half = len(groups) // 2
            self._ask(broker, kind, groups[:half])
            self._ask(broker, kind, groups[half:])
            return
        errors = dict.fromkeys(groups, ItemError(failure.message))
        if isinstance(failure, Unreachable):  # it may have stopped, and another one takes its groups
            self._locator.locate_again(errors)
        elif isinstance(failure, NotSupported):  # where there is no other type, a group that is not of one is gone
            self._fail_all({name: error for name, error in errors.items() if name not in self._not_there})
        else:
            self._fail_all(errors)

    def _answered(self, broker: int, kind: str, groups: Sequence[str], codes: Mapping[str, int]) -> list[str]:
        """Those that were described; what is to be done about the others is done."""
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
            elif code != GROUP_ID_NOT_FOUND:
                self._fail(name, item_error(code, subject, permission=DESCRIBE_GROUP))
            elif name not in self._not_there:
                self._not_there.add(name)
                other.append(name)
        self._locator.locate_again(moved)
        if other:
            self._ask(broker, CONSUMER if kind == CLASSIC else CLASSIC, other)
        return described

    def _fail_all(self, errors: Mapping[str, ItemError]) -> None:
        for name, error in errors.items():
            self._fail(name, error)

    def _fail(self, name: str, error: ItemError) -> None:
        """What another broker told of the group stays."""
        self._found.setdefault(name, replace(self._listed[name], members=None, error=error))


def _listed(broker: int, row: ListedGroup) -> Group | OtherGroup | None:
    """None for a group that is just going away."""
    told = (row.group_type or "").lower()
    kind, state = _TYPES.get(told), _state(row.group_state)
    if state == "Dead":
        return None
    if kind is None or row.protocol_type not in _PROTOCOL_TYPES:
        return OtherGroup(row.group_id, clean_text(told if kind is None else row.protocol_type), state)
    return Group(row.group_id, state, kind, row.protocol_type, "", broker, members=())


def _classic(broker: int, row: DescribedGroup, assignments: AssignmentReading) -> Group:
    """A member whose assignment cannot be read has none here, and the error of the group names it."""
    assigned = assignments.decode_group([member.member_assignment for member in row.members])
    members = [
        _member(member, member.group_instance_id, of_it or {})
        for member, of_it in zip(row.members, assigned, strict=True)
    ]
    unreadable = [member.member_id for member, of_it in zip(members, assigned, strict=True) if of_it is None]
    error = None
    if unreadable:
        error = ItemError(
            coded(KafkaErrorCode.ASSIGNMENT_UNREADABLE, group=clean_text(row.group_id), member=unreadable[0])
        )
    return Group(
        row.group_id,
        _state(row.group_state),
        CLASSIC,
        row.protocol_type,
        clean_text(row.protocol_data or ""),
        broker,
        members,
        error,
    )


def _consumer(broker: int, row: ConsumerGroup) -> Group:
    members = [
        _member(
            member,
            member.instance_id,
            {topic.topic_name: tuple(topic.partitions) for topic in member.assignment.topic_partitions},
        )
        for member in row.members
    ]
    return Group(
        row.group_id,
        _state(row.group_state),
        CONSUMER,
        "consumer",
        clean_text(row.assignor_name or ""),
        broker,
        members,
    )


def _member(
    row: DescribedMember | ConsumerMember, instance: str | None, assigned: Mapping[str, Sequence[int]]
) -> GroupMember:
    return GroupMember(
        clean_text(row.member_id),
        clean_text(row.client_id),
        clean_text(row.client_host.removeprefix("/")),
        None if instance is None else clean_text(instance),
        assigned,
    )


def _state(word: str) -> str:
    """Kafka's own word, which brokers have written in different cases; Unknown for none and for what is newer."""
    return _STATES.get((word or "").lower(), "Unknown")
