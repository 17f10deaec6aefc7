"""Collector of groups: committed offsets, log ends, verdicts from the last samples, pipeline facts; of share groups
start offsets and lag as Kafka tells them, without a verdict.

The pipeline gets each pair of group and partition together with its previous sample.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from kafkadash.clusters.allowed_lag import allowed_for
from kafkadash.clusters.models import Cluster
from kafkadash.core.leases import WriteStamp
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.rows import update_rows, without_search_for_cycles
from kafkadash.core.status import is_stale
from kafkadash.export.outbox import OutboxFacts
from kafkadash.export.schema import SegmentKind
from kafkadash.kafka.api import (
    CommittedOffsets,
    GroupDescription,
    GroupListing,
    GroupMember,
    ItemError,
    KafkaFailure,
    LogSpans,
    OtherGroup,
    ShareOffsets,
)
from kafkadash.monitoring.cluster_events.rules import EventDraft, GroupSighting, find_group_events
from kafkadash.monitoring.cluster_events.store import store_events
from kafkadash.monitoring.collectors import (
    CollectContext,
    CollectedFacts,
    broker_errors,
    count_causes,
    find_silent_brokers,
    refuse_nothing,
    to_utc,
)
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.groups.held_reads import StalledRead, find_held, list_stalled
from kafkadash.monitoring.groups.names import key_of
from kafkadash.monitoring.groups.rules import WINDOW, GroupLag, LagState, OffsetSample, PartitionLag, group_lag, lag_of
from kafkadash.monitoring.groups.shares import SharePartition, pack_partitions
from kafkadash.monitoring.groups.window import (
    GroupSample,
    GroupSamples,
    append_sample,
    build_sample,
    flow_of,
    pack_window,
    partition_lags,
    topics_of,
    unpack_window,
    without_newest,
)
from kafkadash.monitoring.models import Collection, CollectorKind, GroupLagPoint, GroupState, GroupWindow, UnjudgedGroup

_NAMES = (
    "group",
    "topic",
    "partition",
    "committed",
    "log_start",
    "log_end",
    "lag",
    "group_state",
    "members",
    "allowed_lag",
    "previous_committed",
    "previous_lag",
    "previous_at",
    "verdict",
)
_NOTHING = OffsetSample(0.0, None, None)


@dataclass(slots=True)
class GroupFacts:
    """Columns of ``SegmentKind.GROUP_OFFSET``, a row for each partition of some groups."""

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _NAMES})

    def add(self, group: GroupDescription, judged: Sequence[PartitionLag]) -> None:
        columns, members = self.columns, None if group.members is None else len(group.members)
        for each in judged:
            before = each.looks[-2] if len(each.looks) > 1 else _NOTHING
            row = (
                group.name,
                each.topic,
                each.partition,
                each.committed,
                each.start,
                each.end,
                each.lag,
                group.state,
                members,
                each.allowed,
                before.committed,
                lag_of(before.committed, before.end),
                round(before.at * 1_000_000) if before.at else None,
                each.state.value,
            )
            for name, value in zip(_NAMES, row, strict=True):
                columns[name].append(value)


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
"""Verdicts of a group, the worst first; None where it has committed nothing."""

_FIGURES = ("worst", "lag", "worst_lag", "time_lag_s", "rest_time_lag_s")
_OF_A_REFRESH = ("taken_at", "times", "point_at")
_NO_MEMBERS = zlib.compress(b"[]", 1)


def read(asking: CollectContext) -> CollectedFacts:
    """Commits are read before the ends of the logs, so that nothing is ever read further than it was written."""
    asking.step()
    listed = asking.groups.groups(deadline=asking.deadline)
    refuse_nothing([*listed.groups, *listed.others], listed.errors)
    asking.step()
    shares = _read_shares(asking, listed)  # not between commits and log ends, which are to be close to each other
    committed = asking.groups.committed(listed.groups, deadline=asking.deadline)
    asking.step()
    with without_search_for_cycles():
        assigned = {name: _collect_assigned(group.members) for name, group in listed.groups.items()}
        of_shares = {name: _collect_assigned(group.members) for name, group in listed.others.items() if group.is_share}
        partitions = _collect_partitions(
            [*committed.offsets.values(), *assigned.values(), *shares.offsets.values(), *of_shares.values()]
        )
        spans = asking.groups.log_spans(partitions, deadline=asking.deadline)
        portions = list(_portions(asking, listed, committed, assigned, spans))
    _note_held(asking, portions)
    names = listed.groups.keys()
    gone, gone_sightings = _find_gone_groups(asking.cluster, listed)
    taken_at = to_utc(committed.taken_at)
    others = _collect_other_groups(asking.cluster, listed, shares, spans, taken_at)
    # All that the first refresh finds is new to kafkadash, but not to the cluster.
    seen_before = asking.succeeded_at is not None
    sightings = [each for portion in portions for each in portion.sightings] if seen_before else []
    events = find_group_events(sightings)
    end_events = find_group_events([*gone_sightings, *others.sightings] if seen_before else [])

    def tell(told: Sequence[EventDraft]) -> None:
        store_events(asking.cluster.pk, told, taken_at, asking.succeeded_at)

    def write_first() -> None:
        portions[0].write()
        tell(events)

    def write(_: WriteStamp) -> None:
        others.write()
        GroupState.objects.filter(pk__in=gone, gone_at=None).update(gone_at=taken_at)
        tell(end_events)

    return CollectedFacts(
        taken_at=taken_at,
        # Events go with the first portion, as those of the metadata collector.
        portions=[write_first, *(portion.write for portion in portions[1:])] if portions else [],
        rows=len(names) + len(listed.others),
        write=write,
        not_answered=sorted(find_silent_brokers(listed.errors)),
        errors=list(_collect_errors(listed, committed, shares, spans)),
        facts=[OutboxFacts(SegmentKind.GROUP_OFFSET, [portion.facts.columns for portion in portions])],
    )


def _read_shares(asking: CollectContext, listed: GroupListing) -> ShareOffsets:
    """Read start offsets of the share groups. Where nobody answers, that is an error of each, not of the refresh."""
    names = [name for name, group in listed.others.items() if group.is_share]
    if not names:
        return ShareOffsets({}, {}, listed.taken_at)
    try:
        return asking.groups.share_offsets(names, deadline=asking.deadline)
    except KafkaFailure as failure:
        return ShareOffsets({}, dict.fromkeys(names, ItemError(failure.message)), listed.taken_at)
    finally:
        asking.step()


def _collect_partitions(of_groups: Iterable[Mapping[str, Iterable[int]]]) -> dict[str, set[int]]:
    """Every partition that a group has an offset of or is assigned: each is asked for once, whoever reads it."""
    partitions_by_topic: dict[str, set[int]] = {}
    for topics in of_groups:
        for topic, partitions in topics.items():
            partitions_by_topic.setdefault(topic, set()).update(partitions)
    return partitions_by_topic


def _collect_assigned(members: Sequence[GroupMember] | None) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for member in members or ():
        for topic, partitions in member.assigned.items():
            found.setdefault(topic, set()).update(partitions)
    return found


def _find_gone_groups(cluster: Cluster, listed: GroupListing) -> tuple[list[int], list[GroupSighting]]:
    """Rows of groups that no broker lists, where all of them answered, and of those that have another type now.

    Second, what is told of those that are gone.
    """
    judged, others = ({key_of(name) for name in names} for names in (listed.groups, listed.others))
    rows = GroupState.objects.filter(cluster=cluster, gone_at=None)
    gone, sightings = [], []
    for pk, key, name, state, members, seen_at in rows.values_list("pk", "key", *_SIGHTED):
        if key not in judged and (not listed.errors or key in others):
            gone.append(pk)
            if key not in others:
                sightings.append(GroupSighting(name, state or UNKNOWN_STATE, "", members, None, seen_at))
    return gone, sightings


_SIGHTED = ("name", "state", "members", "taken_at")
UNKNOWN_STATE = "Unknown"
"""Kafka's word where a coordinator does not tell the state."""


def _sight_state(
    row: GroupState | UnjudgedGroup | None, group: GroupDescription | OtherGroup
) -> Iterator[GroupSighting]:
    """Yield what is told of a listed group, if it is new or has another state. An unknown state is no other state."""
    members = None if group.members is None else len(group.members)
    state = group.state[:32] or UNKNOWN_STATE
    if row is None or getattr(row, "gone_at", None) is not None:
        yield GroupSighting(group.name, "", state, None, members)
    elif row.state != state and UNKNOWN_STATE not in (row.state or UNKNOWN_STATE, state):
        yield GroupSighting(group.name, row.state, state, row.members, members, row.taken_at)


@dataclass(slots=True)
class _OtherGroups:
    """Row changes of groups that are not judged."""

    new: list[UnjudgedGroup] = field(default_factory=list)
    changed: dict[int, dict[str, Any]] = field(default_factory=dict)
    seen: dict[int, dict[str, Any]] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)
    sightings: list[GroupSighting] = field(default_factory=list)

    def write(self) -> None:
        if self.gone:
            UnjudgedGroup.objects.filter(pk__in=self.gone).delete()
        update_rows(UnjudgedGroup, self.changed)
        update_rows(UnjudgedGroup, self.seen)
        UnjudgedGroup.objects.bulk_create(self.new)


def _collect_other_groups(
    cluster: Cluster, listed: GroupListing, shares: ShareOffsets, spans: LogSpans, taken_at: datetime
) -> _OtherGroups:
    """A row goes only where every broker listed its groups, or where the group has another type now."""
    found = _OtherGroups()
    known = {row.key: row for row in UnjudgedGroup.objects.filter(cluster=cluster)}
    for name, group in listed.others.items():
        if "\x00" in name:
            continue
        key = key_of(name)
        row = known.pop(key, None)
        found.sightings += _sight_state(row, group)
        new = row is None or row.is_share != group.is_share
        before = UnjudgedGroup(cluster=cluster, key=key, name=name, first_seen_at=taken_at) if new else row
        assert before is not None
        values = {
            "kind": group.kind.replace("\x00", "")[:32],
            "is_share": group.is_share,
            "state": group.state[:32],
            "coordinator": group.coordinator,
            "members": None if group.members is None else len(group.members),
            "member_rows": before.member_rows if group.members is None else packed_members(group.members),
            "taken_at": taken_at,
            **_share_values(before, group, shares, spans),
        }
        if row is not None:
            same = all(_is_same(getattr(row, name), value) for name, value in values.items() if name not in _TIMES)
            (found.seen if same else found.changed)[row.pk] = {n: values[n] for n in _TIMES} if same else values
            continue
        for field_name, value in values.items():
            setattr(before, field_name, value)
        found.new.append(before)
    judged = {key_of(name) for name in listed.groups}
    for row in known.values():
        if not listed.errors or row.key in judged:
            found.gone.append(row.pk)
            if row.key not in judged:
                found.sightings.append(
                    GroupSighting(row.name, row.state or UNKNOWN_STATE, "", row.members, None, row.taken_at)
                )
    return found


_TIMES = ("taken_at", "read_at")


def _is_same(stored: Any, value: Any) -> bool:
    return bytes(stored) == value if isinstance(stored, memoryview) else bool(stored == value)


def _share_values(before: UnjudgedGroup, group: OtherGroup, shares: ShareOffsets, spans: LogSpans) -> dict[str, Any]:
    """Columns of the offsets; those from before where they could not be read."""
    names = ("partitions", "topics", "lag", "lag_unknown", "offsets", "read_at")
    offsets = shares.offsets.get(group.name)
    if offsets is None:
        return {name: getattr(before, name) for name in names}
    keys = _collect_partitions([offsets, _collect_assigned(group.members)])
    rows = []
    for topic in sorted(keys):
        own, ends = offsets.get(topic, {}), spans.spans.get(topic, {})
        for number in sorted(keys[topic]):
            start, lag = own.get(number, (None, None))
            rows.append(SharePartition(topic, number, start, ends[number].end if number in ends else None, lag))
    lags = [row.lag for row in rows if row.lag is not None]
    lag = _clamp_bigint(sum(lags)) if lags else None
    read_at = to_utc(shares.taken_at)
    values = (len(rows), sorted(keys), lag, len(rows) - len(lags), pack_partitions(rows), read_at)
    return dict(zip(names, values, strict=True))


@dataclass(slots=True)
class _GroupBatch:
    """Rows of some groups to write in one transaction: new ones, changed ones, and unchanged ones just sampled."""

    new: list[tuple[GroupState, bytes, bytes]] = field(default_factory=list)
    changed: dict[int, dict[str, Any]] = field(default_factory=dict)
    seen: dict[int, dict[str, Any]] = field(default_factory=dict)
    windows: dict[int, dict[str, Any]] = field(default_factory=dict)
    members: dict[int, dict[str, Any]] = field(default_factory=dict)
    points: list[tuple[Any, ...]] = field(default_factory=list)
    facts: GroupFacts = field(default_factory=GroupFacts)
    states: dict[str, GroupState] = field(default_factory=dict)
    stalled: list[StalledRead] = field(default_factory=list)
    held: dict[int, dict[str, Any]] = field(default_factory=dict)
    sightings: list[GroupSighting] = field(default_factory=list)

    def write(self) -> None:
        update_rows(GroupState, self.changed)
        update_rows(GroupState, self.seen)
        update_rows(GroupState, self.held)
        update_rows(GroupWindow, self.windows)
        update_rows(GroupWindow, self.members)
        GroupState.objects.bulk_create([state for state, _, _ in self.new])
        GroupWindow.objects.bulk_create([GroupWindow(group=s, data=d, members=m) for s, d, m in self.new])
        self.points += [
            (state.pk, state.taken_at, state.taken_at, *(getattr(state, name) for name in _FIGURES))
            for state, _, _ in self.new
            if state.point_at
        ]
        _copy_points(self.points)


def _note_held(asking: CollectContext, portions: Sequence[_GroupBatch]) -> None:
    """Note which stalled partitions an open transaction holds back. A group keeps what it has where nobody tells."""
    stalled = [each for portion in portions for each in portion.stalled]
    if stalled:
        asking.step()
    held = find_held(asking.groups, stalled, asking.deadline) if stalled else {}
    for portion in portions if held is not None else ():
        suspected = {each.group for each in portion.stalled}
        for name, state in portion.states.items():
            if name in suspected and name not in (held or {}):
                continue
            found = [list(each) for each in (held or {}).get(name, ())]
            if state.held == found:
                continue
            if state._state.adding:  # noqa: SLF001  (Django's own way to tell)
                state.held = found
            else:
                portion.held[state.pk] = {"held": found}


def _copy_points(points: Sequence[tuple[Any, ...]]) -> None:
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
    asking: CollectContext,
    listed: GroupListing,
    committed: CommittedOffsets,
    assigned: Mapping[str, Mapping[str, set[int]]],
    spans: LogSpans,
) -> Iterator[_GroupBatch]:
    """Groups whose commits could not be read are left as they are: their rows say how old they are."""
    names = sorted(name for name in committed.offsets if name in listed.groups and "\x00" not in name)
    allowed = allowed_for(asking.cluster.pk, names)
    told = _read_exported_times(asking, to_utc(committed.taken_at))
    for first in range(0, len(names), AT_ONCE):
        asking.step()
        by_key = {key_of(name): name for name in names[first : first + AT_ONCE]}
        rows = {row.key: row for row in _read_rows(asking.cluster, by_key)}
        portion = _GroupBatch()
        for key, name in by_key.items():
            seen = build_sample(committed.offsets[name], assigned[name], spans.spans)
            row, before = (
                rows.get(key),
                _continue_samples(rows.get(key), asking.interval_s, to_utc(committed.taken_at), told),
            )
            _judge_group(
                portion, asking, listed.groups[name], key, row, before, seen, committed.taken_at, allowed[name]
            )
        yield portion


def _read_rows(cluster: Cluster, keys: Iterable[str]) -> Iterator[GroupState]:
    yield from GroupState.objects.filter(cluster=cluster, key__in=keys).select_related("window")


def _judge_group(
    portion: _GroupBatch,
    asking: CollectContext,
    group: GroupDescription,
    key: str,
    row: GroupState | None,
    samples: tuple[GroupSamples | None, list[float]],
    seen: GroupSample,
    taken_s: float,
    allowed: int,
) -> None:
    taken_at = to_utc(taken_s)
    before, times = samples
    window = append_sample(before, seen, taken_s)
    times = [*times[1 - WINDOW :], round(taken_s, 3)]
    members = packed_members(group.members)
    has_members = None if group.members is None else bool(group.members)
    judged = list(partition_lags(window, times, has_members=has_members, allowed=allowed))
    found = group_lag(judged, members=None if group.members is None else len(group.members), allowed=allowed)
    portion.facts.add(group, judged)
    stalled = list_stalled(group.name, judged)
    portion.stalled += stalled
    values = values_of(group, found, judged)
    portion.sightings += _sight_state(row, group)
    if row is None:
        state = GroupState(cluster=asking.cluster, key=key, name=group.name, first_seen_at=taken_at, **values)
        state.verdict_since = state.taken_at = taken_at
        state.members_since = None if group.members is None else taken_at
        state.times, state.point_at = times, taken_at if window.keys else None
        portion.new.append((state, pack_window(window), members))
        portion.states[group.name] = state
        return
    if stalled or row.held:
        portion.states[group.name] = row
    same_members = group.members is None or bytes(row.window.members) == members
    values |= {
        "members_since": row.members_since if same_members and row.members_since else taken_at,
        "verdict_since": row.verdict_since if values["worst"] == row.worst else taken_at,
        "gone_at": None,
    }
    if group.members is None:
        values["members_since"] = row.members_since
    refreshed = {"taken_at": taken_at, "times": times, "point_at": _add_points(portion, row, values, taken_at, before)}
    if any(getattr(row, name) != value for name, value in values.items()):
        portion.changed[row.pk] = values | refreshed
    else:
        portion.seen[row.pk] = refreshed
    if before is None or not window.same(before):
        portion.windows[row.pk] = {"data": pack_window(window)}
    if not same_members:
        portion.members[row.pk] = {"members": members}


def _read_exported_times(asking: CollectContext, now: datetime) -> set[datetime]:
    """When refreshes were taken of which all was stored, the segments' rows too, as far back as a sample is continued.

    Groups are written in portions before that: one that was broken off in between leaves samples that no segment has.
    """
    since = now - (REACH + 1) * timedelta(seconds=asking.interval_s)
    rows = Collection.objects.filter(cluster=asking.cluster, kind=CollectorKind.GROUPS, taken_at__gte=since, ok=True)
    return {taken_at for taken_at in rows.values_list("taken_at", flat=True) if taken_at is not None}


def _continue_samples(
    row: GroupState | None, interval_s: float, now: datetime, told: Container[datetime]
) -> tuple[GroupSamples | None, list[float]]:
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
        return unpack_window(bytes(row.window.data)), row.times
    times = row.times[:-1]
    if not times or _too_far(times, interval_s, now):
        return None, []
    return without_newest(unpack_window(bytes(row.window.data))), times


def _too_far(times: Sequence[float], interval_s: float, now: datetime) -> bool:
    """True where a sample of now would make a window that reaches too far back. Refreshes that come late do not."""
    if not is_stale(to_utc(times[-1]), interval_s, now):
        return False
    oldest = times[1 - WINDOW :][0]
    return (now - to_utc(oldest)).total_seconds() > REACH * interval_s


def _add_points(
    portion: _GroupBatch, row: GroupState, values: Mapping[str, Any], taken_at: datetime, before: GroupSamples | None
) -> datetime | None:
    """A point where the figures are new, and one before it that says how long the old ones held. Returns since when
    the newest point holds.
    """
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


def values_of(group: GroupDescription, found: GroupLag, judged: Sequence[PartitionLag]) -> dict[str, Any]:
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
        "lag": _clamp_bigint(found.lag),
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
        "lost": _clamp_bigint(found.lost),
    }


def _clamp_bigint(number: int | None) -> int | None:
    """Limit a number to PostgreSQL's bigint: clients may commit any offset up to 2^63 - 1, so a sum may exceed it."""
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


def _collect_errors(
    listed: GroupListing, committed: CommittedOffsets, shares: ShareOffsets, spans: LogSpans
) -> Iterator[CodedMessage]:
    """Yield a message for each broker that did not list its groups, then one for each cause with its number."""
    yield from broker_errors(listed.errors)
    every: list[GroupDescription | OtherGroup] = [*listed.groups.values(), *listed.others.values()]
    for why, number in count_causes(group.error for group in every if group.error):
        yield coded(CollectionErrorCode.GROUPS_NOT_DESCRIBED, groups=number, why=why)
    for why, number in count_causes(committed.errors.values()):
        yield coded(CollectionErrorCode.COMMITS_NOT_READ, groups=number, why=why)
    for why, number in count_causes(shares.errors.values()):
        yield coded(CollectionErrorCode.SHARE_OFFSETS_NOT_READ, groups=number, why=why)
    for why, number in count_causes(error for partitions in spans.errors.values() for error in partitions.values()):
        yield coded(CollectionErrorCode.LOG_ENDS_NOT_READ, partitions=number, why=why)
    unspoken = sum("\x00" in group.name for group in every)
    if unspoken:
        yield coded(CollectionErrorCode.GROUPS_UNSTORABLE, groups=unspoken)
