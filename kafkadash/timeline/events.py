"""Events of collectors as entries: title, subjects with their values, links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.urls import reverse

from kafkadash.core.formatting import format_size, join_items, read_whole_number
from kafkadash.core.messages import CodedMessage, as_message, choose_plural, coded, first_names
from kafkadash.core.status import HealthState
from kafkadash.kafka.throttles import RATES
from kafkadash.monitoring.cluster_events.rules import EventCode, EventKind
from kafkadash.monitoring.groups.names import slug_of
from kafkadash.monitoring.models import ClusterEvent, ConfigSource
from kafkadash.timeline.entries import EntryKind, EntryLine, TimelineEntry, TimelineScope

EVENT_KINDS = frozenset(EntryKind(kind.value) for kind in EventKind)

_SOURCES: Mapping[EventKind, str] = {
    EventKind.LEADERS: "metadata",
    EventKind.CONTROLLERS: "controller quorum",
    EventKind.BROKERS: "metadata",
    EventKind.TOPICS: "metadata",
    EventKind.CONFIGS: "configs",
    EventKind.THROTTLES: "configs",
    EventKind.GROUPS: "consumer groups",
}
_STATES: Mapping[EventCode, HealthState] = {
    EventCode.LEADERS_LOST: HealthState.CRITICAL,
    EventCode.BROKERS_LEFT: HealthState.WARNING,
    EventCode.BROKERS_FENCED: HealthState.WARNING,
    EventCode.LEADERS_FAILED_OVER: HealthState.WARNING,
}
_CODES: Mapping[str, EventCode] = {code.value: code for code in EventCode}
_MOST_KEYS = 3


def describe_event(row: ClusterEvent, scope: TimelineScope) -> TimelineEntry:
    """Return the entry of an event. Of one of a newer version, whose code is not known here, it is the code."""
    code = _CODES.get(row.code)
    if code is None:
        return TimelineEntry(
            f"event-{row.pk}", EntryKind(row.kind), row.at, as_message(row.code), "", row.not_before, row.count
        )
    values, details = row.data.get("values", {}), row.data.get("details", [])
    lines = list(_LINES[code](EventData(values, details, scope.slug)))
    own = [line for line in lines if _is_about(line, code.kind, scope)]
    more = row.count - len(details) if details else 0
    return TimelineEntry(
        key=f"event-{row.pk}",
        kind=EntryKind(row.kind),
        at=row.at,
        not_before=row.not_before,
        message=_title(code, row, values, details),
        source=_SOURCES[code.kind],
        count=row.count,
        state=_STATES[code].value if code in _STATES else "",
        lines=own or lines,
        more=more + len(lines) - len(own) if own else more,
        code=row.code,
    )


def _is_about(line: EntryLine, kind: EventKind, scope: TimelineScope) -> bool:
    if scope.topic:
        topic = line.subject.rpartition("-")[0] if kind is EventKind.LEADERS else line.subject
        return topic == scope.topic
    return bool(scope.group) and line.subject == scope.group


def _title(code: EventCode, row: ClusterEvent, values: Mapping[str, Any], details: Sequence[Any]) -> CodedMessage:
    params: dict[str, Any] = {"count": row.count}
    kind = code.kind
    if kind is EventKind.LEADERS:
        params["broker"] = values.get("broker")
    elif kind is EventKind.CONTROLLERS:
        params |= {"after": values.get("after"), "epoch": values.get("epoch")}
    elif kind is EventKind.BROKERS:
        params["names"] = _name_first([str(broker) for broker in row.brokers])
    elif kind is EventKind.THROTTLES:
        params["subjects"] = _name_throttled(row, values, details)
    elif code is not EventCode.MORE_CONFIGS:
        names = [str(each[0]) for each in details if each[0]]
        params["names"] = _name_first(names, row.count)
        if kind is EventKind.CONFIGS:
            keys = [change[0] for change in _first_changes(details)]
            params["keys"] = first_names(keys, _MOST_KEYS)
        if code is EventCode.GROUPS_CHANGED:
            params |= {"before": values.get("before"), "after": values.get("after")}
    return coded(code, **params)


def _name_first(names: Sequence[str], count: int | None = None) -> tuple[str | int, ...]:
    """Return the first names, as ``first_names`` does, of which all are not known."""
    shown = first_names(names)
    if count is None or count == len(names) or not names:
        return shown
    return (*names[:3], count - 3)


def _name_throttled(row: ClusterEvent, values: Mapping[str, Any], details: Sequence[Any]) -> str:
    names = [str(each[0]) for each in details if each[0]]
    of = values.get("of")
    if of == "default":
        return "the default of all brokers"
    if len(names) == row.count <= _MOST_KEYS:
        return f"{'broker' if of == 'brokers' else 'topic'}{'s' if row.count > 1 else ''} {join_items(names)}"
    return choose_plural("# broker|# brokers" if of == "brokers" else "# topic|# topics", row.count)


def _first_changes(details: Sequence[Any]) -> Sequence[Any]:
    """Return the changes of the first resource; those with the same change have none of their own."""
    return details[0][1] if details and len(details[0]) > 1 else []


Lines = Iterator[EntryLine]


@dataclass(frozen=True, slots=True)
class EventData:
    """``ClusterEvent.data``, and the slug of its cluster for links."""

    values: Mapping[str, Any]
    details: Sequence[Any]
    slug: str


def _leader_lines(data: EventData) -> Lines:
    for topic, partition, before, after, epoch_before, epoch in data.details:
        epochs = "" if None in (epoch_before, epoch) or epoch == epoch_before else f"epoch {epoch_before} → {epoch}"
        yield EntryLine(
            f"{topic}-{partition}", _topic_url(data.slug, topic), "leader", _broker(before), _broker(after), epochs
        )


def _broker(broker: int | None) -> str:
    return "none" if broker is None else str(broker)


def _controller_lines(data: EventData) -> Lines:
    before = data.values.get("before")
    known = None if before is None or before < 0 else str(before)
    epochs = f"epoch {data.values.get('epoch_before')} → {data.values.get('epoch')}"
    yield EntryLine(what="leader", before=known or "none", after=str(data.values.get("after")), note=epochs)


def _broker_lines(data: EventData) -> Lines:
    for broker, address, rack, *earlier in data.details:
        url = _broker_url(data.slug, broker)
        now = _place(address, rack)
        yield EntryLine(f"broker {broker}", url, "", _place(*earlier) if earlier else None, now)


def _place(address: str, rack: str | None) -> str:
    return f"{address}, no rack" if rack is None else f"{address}, rack {rack}"


def _topic_lines(data: EventData) -> Lines:
    for topic, topic_id, partitions, factor, *earlier in data.details:
        size = f"{choose_plural('# partition|# partitions', partitions)}, replication factor {factor}"
        was = choose_plural("# partition|# partitions", earlier[0]) if earlier else None
        yield EntryLine(
            topic, _topic_url(data.slug, topic), "", was, size, f"ID {topic_id}" if topic_id != topic else ""
        )


def _growth_lines(data: EventData) -> Lines:
    for topic, before, after in data.details:
        yield EntryLine(topic, _topic_url(data.slug, topic), "partitions", str(before), str(after))


def _config_lines(data: EventData) -> Lines:
    own = [each for each in data.details if len(each) > 1]
    # Resources with the same change are named after it.
    same = [str(each[0]) for each in data.details] if len(own) < len(data.details) else []
    for name, changes in own:
        subject, url = ("", "") if same else _resource(name, data.values.get("of"), data.slug)
        for key, before, after in changes:
            sources = [entry[1] for entry in (before, after) if entry]
            note = " → ".join(dict.fromkeys(_SOURCE_WORDS.get(source, source) for source in sources))
            yield EntryLine(subject, url, key, _config_value(key, before), _config_value(key, after), note)
    if same:
        yield EntryLine(what="on", after=", ".join(same))


_SOURCE_WORDS: Mapping[str | None, str] = {source.value: f"source: {source.label}" for source in ConfigSource}


def _config_value(key: str, entry: Sequence[str | None] | None) -> str:
    if entry is None:
        return "default"
    value = entry[0]
    if value is None:
        return "hidden"
    number = read_whole_number(value) if key in RATES else None
    return (f"{format_size(number)}/s" if number is not None else value) or "empty"


def _resource(name: str, of: str | None, slug: str) -> tuple[str, str]:
    if of == "brokers":
        return f"broker {name}", _broker_url(slug, int(name))
    return (name, _topic_url(slug, name)) if name else ("default of all brokers", "")


def _group_lines(data: EventData) -> Lines:
    for name, before, after, members_before, members in data.details:
        url = reverse("monitoring:group", args=[data.slug, slug_of(name)])
        known = members if after else members_before
        note = "" if known is None else choose_plural("# member|# members", known)
        if before and after and None not in (members_before, members) and members_before != members:
            note = f"members {members_before} → {members}"
        yield EntryLine(name or "(empty name)", url, "", before or None, after or "gone", note)


@lru_cache(2_000)
def _topic_url(slug: str, topic: str) -> str:
    return reverse("monitoring:topic", args=[slug, topic])


@lru_cache(2_000)
def _broker_url(slug: str, broker: int) -> str:
    return reverse("monitoring:broker", args=[slug, broker])


_OF_KINDS: Mapping[EventKind, Callable[[EventData], Lines]] = {
    EventKind.LEADERS: _leader_lines,
    EventKind.CONTROLLERS: _controller_lines,
    EventKind.BROKERS: _broker_lines,
    EventKind.TOPICS: _topic_lines,
    EventKind.CONFIGS: _config_lines,
    EventKind.THROTTLES: _config_lines,
    EventKind.GROUPS: _group_lines,
}
_LINES = {code: _growth_lines if code is EventCode.PARTITIONS_ADDED else _OF_KINDS[code.kind] for code in EventCode}
