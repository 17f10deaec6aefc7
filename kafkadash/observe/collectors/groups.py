"""Consumer groups: what they have committed, how far the logs are, and what follows from the last samples."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from kafkadash.clusters.allowed_lag import allowed_for
from kafkadash.clusters.models import Cluster
from kafkadash.domain.lag import WINDOW, LagState
from kafkadash.domain.lag_group import GroupLag, PartitionLag, group_lag
from kafkadash.domain.segments import SegmentKind
from kafkadash.domain.status import is_stale
from kafkadash.domain.wording import count
from kafkadash.kafka.groups import Committed, Group, GroupMember, Groups, LogSpans
from kafkadash.observe.collectors.group_facts import GroupFacts
from kafkadash.observe.collectors.reading import Asking, Reading, moment, refuse_nothing, silent
from kafkadash.observe.collectors.writing import update_rows
from kafkadash.observe.cycles import without_search_for_cycles
from kafkadash.observe.group_lag import flow_of, partition_lags, topics_of
from kafkadash.observe.group_names import key_of
from kafkadash.observe.group_window import Look, Window, appended, look, pack, unpack, without_newest
from kafkadash.observe.lease import Stamp
from kafkadash.observe.models import Collection, GroupLagPoint, GroupState, GroupWindow, Kind, UnjudgedGroup
from kafkadash.observe.segments.outbox import Facts

AT_ONCE = 500
"""Groups that are judged, and written in one transaction, together."""

REACH = 18
"""Intervals that a window with missed looks may reach back: the pipeline reads 20 refreshes for each."""

RANKS: Mapping[LagState | None, int] = {
    LagState.ERR: 0,
    LagState.WARN: 1,
    LagState.UNKNOWN: 2,
    LagState.OK: 3,
    None: 4,
}
"""Of a group's verdict, the worst first; None where it has committed nothing."""

_FIGURES = ("worst", "lag", "worst_lag", "time_lag_s", "rest_time_lag_s")
_OF_A_REFRESH = ("taken_at", "times", "point_at")
_NO_MEMBERS = zlib.compress(b"[]", 1)


def read(asking: Asking) -> Reading:
    """Commits are read before the ends of the logs, so that nothing is ever read further than it was written."""
    asking.step()
    listed = asking.groups.groups(deadline=asking.deadline)
    refuse_nothing([*listed.groups, *listed.others], listed.errors)
    asking.step()
    committed = asking.groups.committed(listed.groups, deadline=asking.deadline)
    asking.step()
    with without_search_for_cycles():
        assigned = {name: _assigned(group.members) for name, group in listed.groups.items()}
        spans = asking.groups.log_spans(_asked(committed, assigned), deadline=asking.deadline)
        portions = list(_portions(asking, listed, committed, assigned, spans))
    names = listed.groups.keys()
    gone = _gone(asking.cluster, {key_of(name) for name in names}) if not listed.errors else []
    taken_at = moment(committed.taken_at)
    others = _others(asking.cluster, listed, taken_at)

    def write(_: Stamp) -> None:
        others.write()
        GroupState.objects.filter(pk__in=gone, gone_at=None).update(gone_at=taken_at)

    return Reading(
        taken_at=taken_at,
        portions=[portion.write for portion in portions],
        rows=len(names) + len(listed.others),
        write=write,
        not_answered=sorted(silent(listed.errors)),
        errors=list(_errors(listed, committed, spans)),
        facts=[Facts(SegmentKind.GROUP_OFFSET, [portion.facts.columns for portion in portions])],
    )


def _asked(committed: Committed, assigned: Mapping[str, Mapping[str, set[int]]]) -> dict[str, set[int]]:
    """Every partition that somebody has committed or is assigned: each is asked for once, whoever reads it."""
    asked: dict[str, set[int]] = {}
    for of_groups in (committed.offsets.values(), assigned.values()):
        for topics in of_groups:
            for topic, partitions in topics.items():
                asked.setdefault(topic, set()).update(partitions)
    return asked


def _assigned(members: Sequence[GroupMember] | None) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for member in members or ():
        for topic, partitions in member.assigned.items():
            found.setdefault(topic, set()).update(partitions)
    return found


def _gone(cluster: Cluster, listed: Set[str]) -> list[int]:
    """Rows of groups that no broker lists, where all of them answered."""
    rows = GroupState.objects.filter(cluster=cluster, gone_at=None).values_list("pk", "key")
    return [pk for pk, key in rows if key not in listed]


@dataclass(slots=True)
class _Others:
    """What changes in the rows of groups that are not judged."""

    new: list[UnjudgedGroup] = field(default_factory=list)
    changed: dict[int, dict[str, Any]] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)

    def write(self) -> None:
        if self.gone:
            UnjudgedGroup.objects.filter(pk__in=self.gone).delete()
        update_rows(UnjudgedGroup, self.changed)
        UnjudgedGroup.objects.bulk_create(self.new)


def _others(cluster: Cluster, listed: Groups, taken_at: datetime) -> _Others:
    """A row goes only where every broker listed its groups, or where the group is a consumer group now."""
    found = _Others()
    known = {row.key: row for row in UnjudgedGroup.objects.filter(cluster=cluster)}
    for name, group in listed.others.items():
        if "\x00" in name:
            continue
        told = {"kind": group.kind.replace("\x00", "")[:32], "state": group.state[:32]}
        row = known.pop(key_of(name), None)
        if row is None:
            found.new.append(
                UnjudgedGroup(cluster=cluster, key=key_of(name), name=name, first_seen_at=taken_at, **told)
            )
        elif (row.kind, row.state) != (told["kind"], told["state"]):
            found.changed[row.pk] = told
    judged = {key_of(name) for name in listed.groups}
    found.gone = [row.pk for row in known.values() if not listed.errors or row.key in judged]
    return found


@dataclass(slots=True)
class _Portion:
    """What is written of some groups in one transaction: new rows, changed ones, those that were only looked at."""

    new: list[tuple[GroupState, bytes, bytes]] = field(default_factory=list)
    changed: dict[int, dict[str, Any]] = field(default_factory=dict)
    seen: dict[int, dict[str, Any]] = field(default_factory=dict)
    windows: dict[int, dict[str, Any]] = field(default_factory=dict)
    members: dict[int, dict[str, Any]] = field(default_factory=dict)
    points: list[tuple[Any, ...]] = field(default_factory=list)
    facts: GroupFacts = field(default_factory=GroupFacts)

    def write(self) -> None:
        update_rows(GroupState, self.changed)
        update_rows(GroupState, self.seen)
        update_rows(GroupWindow, self.windows)
        update_rows(GroupWindow, self.members)
        GroupState.objects.bulk_create([state for state, _, _ in self.new])
        GroupWindow.objects.bulk_create([GroupWindow(group=s, data=d, members=m) for s, d, m in self.new])
        self.points += [
            (state.pk, state.taken_at, state.taken_at, *(getattr(state, name) for name in _FIGURES))
            for state, _, _ in self.new
            if state.point_at
        ]
        _copy(self.points)


def _copy(points: Sequence[tuple[Any, ...]]) -> None:
    if not points:
        return
    columns = ", ".join(("group_id", "since", "at", *_FIGURES))
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {GroupLagPoint._meta.db_table} ({columns}) FROM STDIN") as into,
    ):
        for point in points:
            into.write_row(point)


def _portions(
    asking: Asking,
    listed: Groups,
    committed: Committed,
    assigned: Mapping[str, Mapping[str, set[int]]],
    spans: LogSpans,
) -> Iterator[_Portion]:
    """Groups whose commits could not be read are left as they are: their rows say how old they are."""
    names = sorted(name for name in committed.offsets if name in listed.groups and "\x00" not in name)
    allowed = allowed_for(asking.cluster.pk, names)
    told = _told(asking, moment(committed.taken_at))
    for first in range(0, len(names), AT_ONCE):
        asking.step()
        by_key = {key_of(name): name for name in names[first : first + AT_ONCE]}
        rows = {row.key: row for row in _rows(asking.cluster, by_key)}
        portion = _Portion()
        for key, name in by_key.items():
            seen = look(committed.offsets[name], assigned[name], spans.spans)
            row, before = rows.get(key), _continued(rows.get(key), asking.interval_s, moment(committed.taken_at), told)
            _judge(portion, asking, listed.groups[name], key, row, before, seen, committed.taken_at, allowed[name])
        yield portion


def _rows(cluster: Cluster, keys: Iterable[str]) -> Iterator[GroupState]:
    yield from GroupState.objects.filter(cluster=cluster, key__in=keys).select_related("window")


def _judge(
    portion: _Portion,
    asking: Asking,
    group: Group,
    key: str,
    row: GroupState | None,
    samples: tuple[Window | None, list[float]],
    seen: Look,
    taken_s: float,
    allowed: int,
) -> None:
    taken_at = moment(taken_s)
    before, times = samples
    window = appended(before, seen, taken_s)
    times = [*times[1 - WINDOW :], round(taken_s, 3)]
    members = packed_members(group.members)
    has_members = None if group.members is None else bool(group.members)
    judged = list(partition_lags(window, times, has_members=has_members, allowed=allowed))
    found = group_lag(judged, members=None if group.members is None else len(group.members), allowed=allowed)
    portion.facts.add(group, judged)
    values = values_of(group, found, judged)
    if row is None:
        state = GroupState(cluster=asking.cluster, key=key, name=group.name, first_seen_at=taken_at, **values)
        state.verdict_since = state.taken_at = taken_at
        state.members_since = None if group.members is None else taken_at
        state.times, state.point_at = times, taken_at if window.keys else None
        portion.new.append((state, pack(window), members))
        return
    same_members = group.members is None or bytes(row.window.members) == members
    values |= {
        "members_since": row.members_since if same_members and row.members_since else taken_at,
        "verdict_since": row.verdict_since if values["worst"] == row.worst else taken_at,
        "gone_at": None,
    }
    if group.members is None:
        values["members_since"] = row.members_since
    refreshed = {"taken_at": taken_at, "times": times, "point_at": _points(portion, row, values, taken_at, before)}
    if any(getattr(row, name) != value for name, value in values.items()):
        portion.changed[row.pk] = values | refreshed
    else:
        portion.seen[row.pk] = refreshed
    if before is None or not window.same(before):
        portion.windows[row.pk] = {"data": pack(window)}
    if not same_members:
        portion.members[row.pk] = {"members": members}


def _told(asking: Asking, now: datetime) -> set[datetime]:
    """When refreshes were taken of which all was stored, the segments' rows too, as far back as a sample is continued.

    Groups are written in portions before that: one that was broken off in between leaves samples that no segment has.
    """
    since = now - (REACH + 1) * timedelta(seconds=asking.interval_s)
    rows = Collection.objects.filter(cluster=asking.cluster, kind=Kind.GROUPS, taken_at__gte=since, ok=True)
    return {taken_at for taken_at in rows.values_list("taken_at", flat=True) if taken_at is not None}


def _continued(
    row: GroupState | None, interval_s: float, now: datetime, told: Container[datetime]
) -> tuple[Window | None, list[float]]:
    """The samples that the new one continues: none where the group was gone, or where nobody looked for so long that
    the window would reach back further than ``REACH``. What happened in between is judged as if it had been seen; a
    coordinator that moves, and workers that are started again, are not worth forgetting that a group stalls.

    A newest sample that was not told is none: the pipeline, which judges by the same rules, never sees it.
    """
    if row is None or row.gone_at is not None or now <= row.taken_at:
        return None, []
    if row.taken_at in told:
        if _too_far(row.times, interval_s, now):
            return None, []
        return unpack(bytes(row.window.data)), row.times
    times = row.times[:-1]
    if not times or _too_far(times, interval_s, now):
        return None, []
    return without_newest(unpack(bytes(row.window.data))), times


def _too_far(times: Sequence[float], interval_s: float, now: datetime) -> bool:
    """True where a sample of now would make a window that reaches too far back. Refreshes that come late do not."""
    if not is_stale(moment(times[-1]), interval_s, now):
        return False
    oldest = times[1 - WINDOW :][0]
    return (now - moment(oldest)).total_seconds() > REACH * interval_s


def _points(
    portion: _Portion, row: GroupState, values: Mapping[str, Any], taken_at: datetime, before: Window | None
) -> datetime | None:
    """A point where the figures are new, and one before it that says how long the old ones held. Returns since when
    the newest point holds."""
    if not values["partitions"] and row.point_at is None:
        return None
    same = before is not None and row.point_at is not None and all(getattr(row, n) == values[n] for n in _FIGURES)
    if same:
        return row.point_at
    if row.point_at is not None and row.taken_at > row.point_at:
        portion.points.append((row.pk, row.point_at, row.taken_at, *(getattr(row, name) for name in _FIGURES)))
    if not values["partitions"]:
        return None
    portion.points.append((row.pk, taken_at, taken_at, *(values[name] for name in _FIGURES)))
    return taken_at


def values_of(group: Group, found: GroupLag, judged: Sequence[PartitionLag]) -> dict[str, Any]:
    """The columns of ``GroupState`` that follow from one look."""
    worst, flow = found.worst, flow_of(judged)
    return {
        "state": group.state[:32],
        "type": group.type[:16],
        "assignor": group.assignor.replace("\x00", ""),
        "coordinator": group.coordinator,
        "members": found.members,
        "verdict": found.state.value if worst else "",
        "worst": found.verdict.value if worst else "",
        "rank": RANKS[found.state if worst else None],
        "allowed_lag": found.allowed,
        "partitions": found.partitions,
        "counts": {state.value: number for state, number in found.counts.items() if number},
        "topics": topics_of(judged),
        "lag": _stored(found.lag),
        "lag_unknown": found.lag_unknown,
        "in_doubt": found.in_doubt,
        "worst_topic": worst.topic if worst else "",
        "worst_partition": worst.partition if worst else None,
        "worst_lag": worst.lag if worst else None,
        "time_lag_s": flow.time_lag_s,
        "rest_time_lag_s": flow.rest_time_lag_s,
        "read_rate": flow.read,
        "written_rate": flow.written,
        "drain_s": flow.drain_s,
        "never_drains": flow.never,
        "lost": _stored(found.lost),
    }


def _stored(number: int | None) -> int | None:
    """What a column takes: anybody may commit the greatest offset there is, and so a sum may be greater."""
    return None if number is None else min(number, 2**63 - 1)


def packed_members(members: Sequence[GroupMember] | None) -> bytes:
    """In an order of their own: Kafka lists them in any."""
    if not members:
        return _NO_MEMBERS
    rows = [
        [m.member_id, m.client_id, m.host, m.instance_id, {t: sorted(p) for t, p in sorted(m.assigned.items())}]
        for m in sorted(members, key=lambda m: (m.client_id, m.member_id))
    ]
    return zlib.compress(json.dumps(rows, separators=(",", ":")).encode(), 1)


def _errors(listed: Groups, committed: Committed, spans: LogSpans) -> Iterator[str]:
    """A sentence for each broker that did not list its groups, then one for each cause with how many it concerns."""
    yield from (f"broker {broker}: {error.text}" for broker, error in sorted(listed.errors.items()))
    described = Counter(group.error.text for group in listed.groups.values() if group.error)
    for message, number in described.most_common():
        yield f"{count(number, 'group')} could not be described: {message}"
    for message, number in Counter(error.text for error in committed.errors.values()).most_common():
        yield f"the commits of {count(number, 'group')} could not be read: {message}"
    ends = Counter(error.text for partitions in spans.errors.values() for error in partitions.values())
    for message, number in ends.most_common():
        yield f"the log ends of {count(number, 'partition')} could not be read: {message}"
    unspoken = sum("\x00" in name for name in listed.groups)
    if unspoken:
        yield f"{count(unspoken, 'group')} with a NUL character in its name cannot be stored"
