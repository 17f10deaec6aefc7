"""Consumer groups in memory behind their port, for what the collector decides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kafkadash.kafka.groups import Committed, Group, GroupMember, Groups, LogSpan, LogSpans, OtherGroup
from kafkadash.kafka.port import ItemError

SILENT = ItemError("did not answer within 8 s")
REFUSED = ItemError("The principal needs Describe on the group (GROUP_AUTHORIZATION_FAILED).", 30)


@dataclass
class MemoryGroup:
    """``committed``: topic → partition → offset. ``members``: client id → what it is assigned; None: not described."""

    committed: dict[str, dict[int, int]] = field(default_factory=dict)
    members: dict[str, dict[str, list[int]]] | None = field(default_factory=dict)
    state: str = ""
    type: str = "Classic"
    coordinator: int = 1


@dataclass
class MemoryGroups:
    """Implements ``KafkaGroups``. ``logs``: topic → partition → [start, end]. ``unread``: groups whose commits are
    refused; ``silent``: brokers that list nothing. ``before_answer`` is called with the name of each call.
    """

    clock: Callable[[], float]
    all: dict[str, MemoryGroup] = field(default_factory=dict)
    logs: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    others: dict[str, OtherGroup] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    before_answer: Callable[[str], None] = lambda _: None

    def add(self, name: str, committed: Mapping[str, Mapping[int, int]] | None = None, **more: object) -> MemoryGroup:
        group = MemoryGroup({t: dict(p) for t, p in (committed or {}).items()}, **more)  # type: ignore[arg-type]
        self.all[name] = group
        return group

    def log(self, topic: str, ends: Iterable[int], start: int = 0) -> None:
        self.logs[topic] = {number: [start, end] for number, end in enumerate(ends)}

    def groups(self, *, deadline: float) -> Groups:
        self._answer("groups")
        listed = {name: self._group(name, g) for name, g in self.all.items() if g.coordinator not in self.silent}
        return Groups(listed, dict.fromkeys(self.silent, SILENT), self.clock(), dict(self.others))

    def committed(self, groups: Collection[str], *, deadline: float) -> Committed:
        self._answer("committed")
        read = [name for name in groups if name not in self.unread]
        offsets = {n: {t: dict(p) for t, p in self.all[n].committed.items()} if n in self.all else {} for n in read}
        errors = {name: REFUSED for name in groups if name in self.unread}
        return Committed(offsets, errors, self.clock(), self.clock())

    def log_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        self._answer("log_spans")
        spans: dict[str, dict[int, LogSpan]] = {}
        errors: dict[str, dict[int, ItemError]] = {}
        for topic, numbers in partitions.items():
            for number in numbers:
                log = self.logs.get(topic, {}).get(number)
                if log is None:
                    errors.setdefault(topic, {})[number] = ItemError("does not exist", 3, "UNKNOWN_TOPIC_OR_PARTITION")
                else:
                    spans.setdefault(topic, {})[number] = LogSpan(log[0], log[1], self.clock())
        return LogSpans(spans, errors, self.clock())

    def _answer(self, call: str) -> None:
        self.calls.append(call)
        self.before_answer(call)

    def _group(self, name: str, group: MemoryGroup) -> Group:
        members = None
        if group.members is not None:
            members = [GroupMember(f"{c}-1", c, "10.0.0.1", None, assigned) for c, assigned in group.members.items()]
        state = group.state or ("Stable" if members else "Empty")
        error = REFUSED if members is None else None
        return Group(name, state, group.type, "consumer", "range", group.coordinator, members, error)
