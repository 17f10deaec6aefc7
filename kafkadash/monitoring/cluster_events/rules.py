"""Differences between two readings as events, folded: one event for each cause, however many partitions it has.

Details of an event are of its first ``MOST_DETAILS`` subjects; ``marks`` find the others by name.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from kafkadash.kafka.throttles import LISTS, RATES

MOST_DETAILS = 50
"""Subjects that an event names with their values."""

MOST_EVENTS = 100
"""Events of one kind of configs in one reading; the rest becomes one more event."""

LONGEST_VALUE = 300
"""Characters of a config's value in an event."""


class EventKind(StrEnum):
    """Kinds of events, each a filter of the timeline."""

    LEADERS = "leaders"
    CONTROLLERS = "controllers"
    BROKERS = "brokers"
    TOPICS = "topics"
    CONFIGS = "configs"
    THROTTLES = "throttles"
    GROUPS = "groups"


class EventCode(StrEnum):
    """Codes of events. Their texts are in ``timeline.messages``."""

    LEADERS_FAILED_OVER = "leaders-failed-over"
    LEADERS_LOST = "leaders-lost"
    LEADERS_REGAINED = "leaders-regained"
    LEADERS_REASSIGNED = "leaders-reassigned"
    LEADERS_PREFERRED = "leaders-preferred"
    LEADERS_MOVED = "leaders-moved"
    LEADERS_KEPT = "leaders-kept"
    CONTROLLER_ELECTED = "controller-elected"
    BROKERS_JOINED = "brokers-joined"
    BROKERS_LEFT = "brokers-left"
    BROKERS_FENCED = "brokers-fenced"
    BROKERS_UNFENCED = "brokers-unfenced"
    BROKERS_REPLACED = "brokers-replaced"
    TOPICS_CREATED = "topics-created"
    TOPICS_DELETED = "topics-deleted"
    TOPICS_RECREATED = "topics-recreated"
    PARTITIONS_ADDED = "partitions-added"
    TOPIC_CONFIGS = "topic-configs"
    BROKER_CONFIGS = "broker-configs"
    DEFAULT_CONFIGS = "default-configs"
    MORE_CONFIGS = "more-configs"
    THROTTLES_SET = "throttles-set"
    THROTTLES_CHANGED = "throttles-changed"
    THROTTLES_REMOVED = "throttles-removed"
    GROUPS_FOUND = "groups-found"
    GROUPS_GONE = "groups-gone"
    GROUPS_CHANGED = "groups-changed"

    @property
    def kind(self) -> EventKind:
        return _KINDS[self]


_KINDS: Mapping[EventCode, EventKind] = {
    **dict.fromkeys((code for code in EventCode if code.startswith("leaders-")), EventKind.LEADERS),
    **dict.fromkeys((code for code in EventCode if code.startswith("brokers-")), EventKind.BROKERS),
    **dict.fromkeys((code for code in EventCode if code.startswith("topics-")), EventKind.TOPICS),
    **dict.fromkeys((code for code in EventCode if code.endswith("-configs")), EventKind.CONFIGS),
    **dict.fromkeys((code for code in EventCode if code.startswith("throttles-")), EventKind.THROTTLES),
    **dict.fromkeys((code for code in EventCode if code.startswith("groups-")), EventKind.GROUPS),
    EventCode.CONTROLLER_ELECTED: EventKind.CONTROLLERS,
    EventCode.PARTITIONS_ADDED: EventKind.TOPICS,
}


class SubjectType(StrEnum):
    """Types of subjects that are found by their name."""

    TOPIC = "topic"
    GROUP = "group"


def mark_subject(subject: SubjectType, name: str) -> int:
    """Return 32 bits, signed, by which an event of 10,000 topics is found by one of them.

    Two names in 4 billion have the same mark: an event then shows up on a page where it does not belong.
    """
    mark = zlib.crc32(f"{subject}:{name}".encode("utf-8", "surrogatepass"))
    return mark - 2**32 if mark >= 2**31 else mark


@dataclass(frozen=True, slots=True)
class EventDraft:
    """Event before it is stored. ``not_before``: the reading that did not show it yet, None for the usual one.

    ``details``: one list for each of the first subjects, of the shape of the code. ``values``: what all have in common.
    """

    code: EventCode
    count: int
    details: Sequence[Sequence[Any]] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    brokers: Collection[int] = ()
    marks: Collection[int] = ()
    not_before: datetime | None = None


PackedPartition = Sequence[Any]
"""[partition, leader or null, leader epoch or null, [replicas], [isr], [offline]], as of ``TopicState.partitions``."""


@dataclass(slots=True)
class _LeaderFold:
    count: int = 0
    details: list[list[Any]] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)
    taken_by: Counter[int] = field(default_factory=Counter)
    left_by: Counter[int] = field(default_factory=Counter)
    most_epochs: int = 0


class LeaderChanges:
    """Elections of all topics between two readings, folded by cause and broker. ``live``: brokers that may lead."""

    def __init__(self, live: Collection[int]) -> None:
        self._live = frozenset(live)
        self._folds: dict[tuple[EventCode, int | None], _LeaderFold] = {}

    def add_topic(self, topic: str, before: Iterable[PackedPartition], after: Iterable[PackedPartition]) -> None:
        known = {row[0]: row for row in before}
        for row in after:
            old = known.get(row[0])
            if old is None or (old[1] == row[1] and old[2] == row[2]):
                continue
            cause = _find_cause(old, row, self._live)
            if cause is not None:
                self._add_change(cause, topic, old, row)

    def _add_change(
        self, cause: tuple[EventCode, int | None], topic: str, old: PackedPartition, row: PackedPartition
    ) -> None:
        fold = self._folds.setdefault(cause, _LeaderFold())
        fold.count += 1
        fold.topics.add(topic)
        if len(fold.details) < MOST_DETAILS:
            fold.details.append([topic, row[0], old[1], row[1], old[2], row[2]])
        if row[1] is not None:
            fold.taken_by[row[1]] += 1
        if old[1] is not None:
            fold.left_by[old[1]] += 1
        if old[2] is not None and row[2] is not None:
            fold.most_epochs = max(fold.most_epochs, row[2] - old[2])

    def events(self) -> Iterator[EventDraft]:
        for (code, broker), fold in sorted(self._folds.items(), key=lambda each: (each[0][0], each[0][1] or 0)):
            yield EventDraft(
                code,
                fold.count,
                fold.details,
                {
                    "broker": broker,
                    "topics": len(fold.topics),
                    "to": [list(each) for each in fold.taken_by.most_common(MOST_DETAILS)],
                    "epochs": fold.most_epochs,
                },
                brokers=sorted({*fold.taken_by, *fold.left_by}),
                marks=_mark_all(SubjectType.TOPIC, fold.topics),
            )


def _find_cause(
    old: PackedPartition, new: PackedPartition, live: Collection[int]
) -> tuple[EventCode, int | None] | None:
    """Return the code and the broker that stands for it; None if a reassignment of the partition says it all."""
    before, after = old[1], new[1]
    moved = set(old[3]) != set(new[3])
    if before == after:
        return None if moved or (new[2] or 0) <= (old[2] or 0) else (EventCode.LEADERS_KEPT, after)
    if after is None:
        return EventCode.LEADERS_LOST, before
    if before is None:
        return EventCode.LEADERS_REGAINED, after
    if moved:
        return EventCode.LEADERS_REASSIGNED, before
    if before not in live:
        return EventCode.LEADERS_FAILED_OVER, before
    if new[3] and after == new[3][0]:
        return EventCode.LEADERS_PREFERRED, after
    return EventCode.LEADERS_MOVED, before


@dataclass(frozen=True, slots=True)
class TopicShape:
    """Topic as one reading had it. ``id`` is its name where the brokers have no topic IDs."""

    id: str
    name: str
    partitions: int
    replication_factor: int


def find_topic_events(gone: Sequence[TopicShape], new: Sequence[TopicShape]) -> Iterator[EventDraft]:
    """Yield one event each for deleted, created and recreated topics.

    Kafka leaves topics out that kafkadash may not describe: such a topic counts as deleted as well.
    """
    before = {topic.name: topic for topic in gone}
    after = {topic.name: topic for topic in new}
    both = before.keys() & after.keys()
    parts = (
        (EventCode.TOPICS_DELETED, [topic for topic in gone if topic.name not in both]),
        (EventCode.TOPICS_CREATED, [topic for topic in new if topic.name not in both]),
        (EventCode.TOPICS_RECREATED, [after[name] for name in both]),
    )
    for code, topics in parts:
        if topics:
            first = sorted(topics, key=lambda topic: topic.name)[:MOST_DETAILS]
            details: list[list[Any]] = [[t.name, t.id, t.partitions, t.replication_factor] for t in first]
            if code is EventCode.TOPICS_RECREATED:
                details = [
                    [*each, before[t.name].partitions, before[t.name].id]
                    for t, each in zip(first, details, strict=True)
                ]
            marks = _mark_all(SubjectType.TOPIC, (topic.name for topic in topics))
            yield EventDraft(code, len(topics), details, marks=marks)


def find_grown_topics(grown: Sequence[tuple[str, int, int]]) -> Iterator[EventDraft]:
    """Yield an event of topics that got partitions: (topic, partitions before, partitions now)."""
    if grown:
        details = [list(each) for each in sorted(grown)[:MOST_DETAILS]]
        marks = _mark_all(SubjectType.TOPIC, (name for name, _, _ in grown))
        yield EventDraft(EventCode.PARTITIONS_ADDED, len(grown), details, marks=marks)


@dataclass(frozen=True, slots=True)
class BrokerSighting:
    """Broker as one reading had it; ``listed`` is False for one that left."""

    id: int
    listed: bool
    fenced: bool
    address: str
    rack: str | None


def find_broker_events(changes: Iterable[tuple[BrokerSighting | None, BrokerSighting]]) -> Iterator[EventDraft]:
    """Yield an event for each thing that happened to brokers, with all brokers of it."""
    found: dict[EventCode, list[list[Any]]] = {}
    for before, after in changes:
        for code in _broker_codes(before, after):
            detail = [after.id, after.address, after.rack]
            if code is EventCode.BROKERS_REPLACED and before is not None:
                detail += [before.address, before.rack]
            found.setdefault(code, []).append(detail)
    for code, details in sorted(found.items()):
        yield EventDraft(code, len(details), details[:MOST_DETAILS], brokers=[each[0] for each in details])


def _broker_codes(before: BrokerSighting | None, after: BrokerSighting) -> Iterator[EventCode]:
    if before is None or not before.listed:
        if after.listed:
            yield EventCode.BROKERS_JOINED
    elif not after.listed:
        yield EventCode.BROKERS_LEFT
        return
    elif before.fenced != after.fenced:
        yield EventCode.BROKERS_FENCED if after.fenced else EventCode.BROKERS_UNFENCED
    if before is not None and after.listed and (before.address, before.rack) != (after.address, after.rack):
        yield EventCode.BROKERS_REPLACED


PackedConfig = Mapping[str, Sequence[str | None]]
"""{key: [value, source]}, as of ``TopicState.config``."""

ConfigChange = list[Any]
"""[key, [value, source] or null before, the same after]."""


@dataclass(frozen=True, slots=True)
class ChangedConfig:
    """Config of a resource before and after. ``name``: of a topic, or the ID of a broker; '' for the default of all."""

    name: str
    before: PackedConfig
    after: PackedConfig
    not_before: datetime | None = None


def list_config_changes(before: PackedConfig, after: PackedConfig) -> list[ConfigChange]:
    """Return the keys that differ; a value is cut to ``LONGEST_VALUE``. A sensitive value is null on both sides."""
    keys = sorted(before.keys() | after.keys())
    return [
        [key, _shorten(before.get(key)), _shorten(after.get(key))]
        for key in keys
        if _pair(before.get(key)) != _pair(after.get(key))
    ]


def _pair(entry: Sequence[str | None] | None) -> list[str | None] | None:
    return None if entry is None else list(entry)


def _shorten(entry: Sequence[str | None] | None) -> list[str | None] | None:
    if entry is None:
        return None
    value, source = entry
    return [value if value is None or len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 1]}…", source]


def find_config_events(code: EventCode, changed: Iterable[ChangedConfig]) -> list[EventDraft]:
    """Return events of configs and of throttles. Resources with the same change are one event.

    Lists of throttled replicas differ from topic to topic: all topics whose list was set are one event, and so on.
    """
    folds: dict[str, _ConfigFold] = {}
    for resource in changed:
        changes = list_config_changes(resource.before, resource.after)
        for of_throttles in (True, False):
            part = [change for change in changes if (change[0] in _THROTTLES) is of_throttles]
            if part:
                own = _throttle_code(part) if of_throttles else code
                same = [[c[0], c[1] is None, c[2] is None] for c in part] if part[0][0] in LISTS else part
                folds.setdefault(json.dumps([own, same]), _ConfigFold(own, same is part)).add(resource, part)
    of_brokers = code is EventCode.BROKER_CONFIGS
    ranked = sorted(folds.values(), key=lambda fold: -len(fold.names))
    events = [fold.event(of_brokers=of_brokers) for fold in ranked[:MOST_EVENTS]]
    if rest := ranked[MOST_EVENTS:]:
        more = _ConfigFold(EventCode.MORE_CONFIGS, is_same=False)
        for fold in rest:
            more.names += fold.names
            more.details += fold.details[: MOST_DETAILS - len(more.details)]
        events.append(more.event(of_brokers=of_brokers))
    return events


_THROTTLES = frozenset({*LISTS, *RATES})


def _throttle_code(part: Sequence[ConfigChange]) -> EventCode:
    if all(before is None for _, before, _ in part):
        return EventCode.THROTTLES_SET
    return EventCode.THROTTLES_REMOVED if all(after is None for _, _, after in part) else EventCode.THROTTLES_CHANGED


@dataclass(slots=True)
class _ConfigFold:
    code: EventCode
    is_same: bool
    names: list[str] = field(default_factory=list)
    details: list[list[Any]] = field(default_factory=list)
    oldest: datetime | None = None

    def add(self, resource: ChangedConfig, part: Sequence[ConfigChange]) -> None:
        self.names.append(resource.name)
        if len(self.details) < MOST_DETAILS:
            # Resources with the same change share the values of the first.
            self.details.append([resource.name, list(part)] if not (self.is_same and self.details) else [resource.name])
        if resource.not_before is not None:
            self.oldest = min(self.oldest or resource.not_before, resource.not_before)

    def event(self, *, of_brokers: bool) -> EventDraft:
        names = [name for name in self.names if name]
        return EventDraft(
            self.code,
            len(self.names),
            self.details,
            {"of": "brokers" if of_brokers else "topics" if names else "default"},
            brokers=sorted({int(name) for name in names}) if of_brokers else (),
            marks=() if of_brokers else _mark_all(SubjectType.TOPIC, names),
            not_before=self.oldest,
        )


@dataclass(frozen=True, slots=True)
class GroupSighting:
    """Group that appeared (``before`` is ''), went (``after`` is ''), or has another state. ``seen_at``: before."""

    name: str
    before: str
    after: str
    members_before: int | None
    members: int | None
    seen_at: datetime | None = None


def find_group_events(changed: Iterable[GroupSighting]) -> list[EventDraft]:
    """Return one event for each pair of states, with all groups of it."""
    folds: dict[tuple[EventCode, str, str], list[GroupSighting]] = {}
    for each in changed:
        code = (
            EventCode.GROUPS_FOUND
            if not each.before
            else EventCode.GROUPS_GONE
            if not each.after
            else EventCode.GROUPS_CHANGED
        )
        states = (each.before, each.after) if code is EventCode.GROUPS_CHANGED else ("", "")
        folds.setdefault((code, *states), []).append(each)
    events = []
    for (code, before, after), groups in sorted(folds.items()):
        first = sorted(groups, key=lambda group: group.name)[:MOST_DETAILS]
        events.append(
            EventDraft(
                code,
                len(groups),
                [[g.name, g.before, g.after, g.members_before, g.members] for g in first],
                {"before": before, "after": after} if before else {},
                marks=_mark_all(SubjectType.GROUP, (group.name for group in groups)),
                not_before=min((group.seen_at for group in groups if group.seen_at), default=None),
            )
        )
    return events


def describe_controller(before: tuple[int, int], after: tuple[int, int]) -> EventDraft:
    """Return the event of another leader of the quorum, or another epoch: (node, epoch) of two readings."""
    values = {"before": before[0], "after": after[0], "epoch_before": before[1], "epoch": after[1]}
    brokers = sorted({node for node in (before[0], after[0]) if node >= 0})
    return EventDraft(EventCode.CONTROLLER_ELECTED, max(1, after[1] - before[1]), (), values, brokers=brokers)


def _mark_all(subject: SubjectType, names: Iterable[str]) -> list[int]:
    return sorted({mark_subject(subject, name) for name in names})
