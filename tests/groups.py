"""Consumer groups as their collector leaves them, for tests of what is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.api import GroupDescription, GroupMember
from kafkadash.monitoring.groups.collector import packed_members, values_of
from kafkadash.monitoring.groups.names import key_of
from kafkadash.monitoring.groups.rules import group_lag
from kafkadash.monitoring.groups.shares import SharePartition, pack_partitions
from kafkadash.monitoring.groups.window import GroupSamples, append_sample, build_sample, pack_window, partition_lags
from kafkadash.monitoring.models import GroupLagPoint, GroupState, GroupWindow, UnjudgedGroup
from tests.factories import NOW

INTERVAL = 30
STILL = [100] * 10
MOVING = list(range(100, 1100, 100))

Samples = Sequence[tuple[int | None, int | None]]
"""Commit and log end of each sample of a partition, oldest first."""


def samples(commits: Sequence[int | None], lag: int | Sequence[int] = 0) -> Samples:
    """Commits with the ends that give them this lag."""
    lags = [lag] * len(commits) if isinstance(lag, int) else lag
    return [(c, 500 if c is None else c + own) for c, own in zip(commits, lags, strict=True)]


WELL = samples(MOVING, [3, 0, 4, 2, 0, 3, 1, 5, 0, 3])
STALLED = [(100, 100 + 60 * n) for n in range(1, 11)]
NEW = samples([700, 710, 720, 730], 5)
NONE = samples([None] * 10)


def group_seen(
    cluster: Cluster,
    name: str = "g",
    partitions: Mapping[tuple[str, int], Samples] | None = None,
    *,
    members: Mapping[str, Mapping[str, list[int]]] | None = None,
    described: bool = True,
    starts: int = 0,
    allowed: int = 0,
    now: datetime = NOW - timedelta(seconds=6),
    **fields: Any,
) -> GroupState:
    """A group whose last look was at ``now``; ``members``: client id → what it is assigned."""
    partitions = {("orders.paid", 0): WELL} if partitions is None else partitions
    number = max((len(own) for own in partitions.values()), default=1)
    times = [now.timestamp() - INTERVAL * (number - 1 - n) for n in range(number)]
    window: GroupSamples | None = None
    for place, at in enumerate(times):
        window = append_sample(window, _look(partitions, place - number, starts), at)
    assert window is not None
    known = [GroupMember(f"{c}-id", c, "10.14.2.31", None, a) for c, a in (members or {}).items()]
    group = GroupDescription(
        name, "Stable" if known else "Empty", "Classic", "consumer", "range", 4, known if described else None
    )
    has_members = bool(known) if described else None
    judged = list(partition_lags(window, times, has_members=has_members, allowed=allowed))
    found = group_lag(judged, members=len(known) if described else None, allowed=allowed)
    values = {
        "members_since": now - timedelta(hours=3),
        "verdict_since": now - timedelta(minutes=11),
        "first_seen_at": now - timedelta(days=2),
        "taken_at": now,
        "times": times,
        **values_of(group, found, judged),
        **fields,
    }
    row = GroupState.objects.create(cluster=cluster, key=key_of(name), name=name, **values)
    GroupWindow.objects.create(group=row, data=pack_window(window), members=packed_members(known))
    return row


def share_seen(
    cluster: Cluster, name: str = "share-1", partitions: Sequence[SharePartition] = (), **fields: Any
) -> UnjudgedGroup:
    """A share group that Kafka listed six seconds ago, with one member of each partition."""
    assigned: dict[str, list[int]] = {}
    for share in partitions:
        assigned.setdefault(share.topic, []).append(share.partition)
    known = [GroupMember("m-1", "picker", "10.14.2.31", None, assigned)] if partitions else []
    lags = [share.lag for share in partitions if share.lag is not None]
    now = NOW - timedelta(seconds=6)
    values = {
        "kind": "share",
        "is_share": True,
        "state": "Stable" if known else "Empty",
        "coordinator": 4,
        "members": len(known),
        "partitions": len(partitions),
        "topics": sorted(assigned),
        "lag": sum(lags) if lags else None,
        "lag_unknown": len(partitions) - len(lags),
        "offsets": pack_partitions(partitions),
        "member_rows": packed_members(known),
        "first_seen_at": now,
        "taken_at": now,
        "read_at": now,
        **fields,
    }
    return UnjudgedGroup.objects.create(cluster=cluster, key=key_of(name), name=name, **values)


def _look(partitions: Mapping[tuple[str, int], Samples], place: int, start: int) -> Any:
    commits: dict[str, dict[int, int]] = {}
    spans: dict[str, dict[int, tuple[int, int, float]]] = {}
    for (topic, number), own in partitions.items():
        if place + len(own) < 0:
            continue
        commit, end = own[place]
        if commit is not None:
            commits.setdefault(topic, {})[number] = commit
        if end is not None:
            spans.setdefault(topic, {})[number] = (start, end, 0.0)
    here: dict[str, list[int]] = {}
    for (topic, number), own in partitions.items():
        if place + len(own) >= 0:
            here.setdefault(topic, []).append(number)
    return build_sample(commits, here, spans)


def point(row: GroupState, minutes_ago: float, lag: int | None, *, state: str = "ok", until: float = 0) -> None:
    """The lag of a group so long ago; ``until`` minutes ago if it held longer. One partition has all of it."""
    since = NOW - timedelta(minutes=minutes_ago)
    GroupLagPoint.objects.create(
        group=row,
        since=since,
        at=NOW - timedelta(minutes=until) if until else since,
        worst=state,
        lag=lag,
        worst_lag=lag,
        time_lag_s=None if lag is None else lag / 64,
        rest_time_lag_s=None if lag is None else 0.5,
    )
