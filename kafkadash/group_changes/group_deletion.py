"""The kind of change "group-delete": consumer groups are deleted with all committed offsets (DeleteGroups 42).

An item is one group with the committed offsets of the plan: a group has no id, and one that was used since is another
one than approved. It is reached when there is no such group, and ready when it is empty and has these offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kafkadash.changes.rights import NeededRight, name_subjects
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import listed_shortly
from kafkadash.core.messages import CodedReason, PlainReason, choose_plural, coded
from kafkadash.group_changes.errors import GroupCheckTitle, GroupErrorCode
from kafkadash.group_changes.reasons import GroupActive, GroupReasonCode
from kafkadash.group_changes.stored_groups import EMPTY, find_stale, flatten_offsets, hash_commits, load_groups
from kafkadash.kafka.api import GROUP_ID_NOT_FOUND, ItemChanged, WholeClient
from kafkadash.monitoring.groups.names import label_group
from kafkadash.monitoring.models import CollectorKind
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import Items, ItemWords, PlannedItems, ShortKind, doubt_refusals, name_answers
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState, name_or_count

KIND = "group-delete"
BATCH = 500
MOST_GROUPS = 1_000
"""The most groups of one change: the samples of each are loaded to plan it."""


def plan_deletion(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan the deletion of ``groups``, without those that are not empty or not read lately. Two queries."""
    items, left_out = [], []
    for name, group in sorted(load_groups(cluster, wanted["groups"]).items()):
        if group.freshness.stale:
            left_out.append(coded(GroupErrorCode.DATA_STALE, group=label_group(name)))
            continue
        if group.state != EMPTY:
            left_out.append(coded(GroupErrorCode.NOT_EMPTY_LEFT_OUT, group=label_group(name), state=group.state))
            continue
        known = [group.logs[partition][1] for partition in group.commits]
        lags = [end - offset for end, offset in zip(known, group.commits.values(), strict=True) if end is not None]
        content = {
            "group": name,
            "topics": dict(Counter(partition.topic for partition in sorted(group.commits))),
            "lag": sum(max(0, lag) for lag in lags) if len(lags) == len(known) else None,
            "commits": hash_commits(group.commits),
        }
        items.append(PlannedItem(label_group(name), content))
    return PlannedItems(items, left_out)


def find_group_fault(item: PlannedItem, state: str, commits: str) -> CodedReason | None:
    if state != EMPTY:
        return GroupActive(state)
    return None if commits == item.content["commits"] else PlainReason(GroupReasonCode.OFFSETS_MOVED)


def read_deletion(_: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read committed offsets, then the groups. Raises KafkaFailure."""
    names = [item.content["group"] for item in items]
    commits = client.committed(names, deadline=deadline / 2).offsets
    described = client.describe_groups(names, deadline=deadline / 2)
    readings = {}
    for item in items:
        name = item.content["group"]
        group = described.get(name)
        if group is None:
            readings[item.subject] = ItemReading(ReadingState.REACHED, found={"state": None})
        elif group.members is not None and name in commits:
            fault = find_group_fault(item, group.state, hash_commits(flatten_offsets(commits[name])))
            state = ReadingState.UNFIT if fault else ReadingState.READY
            readings[item.subject] = ItemReading(state, fault, {"state": group.state})
    return readings


def send_deletion(client: WholeClient, items: Items, deadline: float) -> ItemChanged[str]:
    """Delete groups with one DeleteGroups request to each coordinator.

    A group that Kafka does not know may have been deleted by an earlier request whose answer was lost.
    """
    subjects = {item.content["group"]: (item.subject,) for item in items}
    answer = client.delete_groups(list(subjects), deadline=deadline)
    return doubt_refusals(name_answers(answer, subjects), GROUP_ID_NOT_FOUND)


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why groups cannot be deleted as planned, from stored rows. Two queries."""
    groups = load_groups(cluster, [item.content["group"] for item in items])
    faults: dict[str, CodedReason] = {}
    for item in items:
        group = groups.get(item.content["group"])
        if group is None:
            faults[item.subject] = PlainReason(GroupReasonCode.GONE)
        elif fault := find_group_fault(item, group.state, hash_commits(group.commits)):
            faults[item.subject] = fault
    return faults


def find_risk(_: Cluster, items: Items) -> RiskFacts:
    return RiskFacts(0.0, 0.0, deleted_offsets=sum(sum(item.content["topics"].values()) for item in items))


def describe_deletion(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    topics, lag = item.content["topics"], item.content["lag"]
    if before is not None and before["state"] is None:
        return ItemWords("none", "deleted")
    if not topics:
        return ItemWords("no committed offsets", "deleted")
    offsets = choose_plural("# committed offset|# committed offsets", sum(topics.values()))
    told = "lag unknown" if lag is None else f"lag {choose_plural('# record|# records', lag)}"
    return ItemWords(f"{offsets} of {listed_shortly(list(topics))}; {told}", "deleted")


def describe_start(items: Items) -> list[str]:
    groups = choose_plural("# group is|# groups are", len(items))
    return [f"{groups} deleted, with all committed offsets. There is no rollback: offsets are lost."]


def find_rights(items: Items) -> list[NeededRight]:
    return [NeededRight("Delete", groups=name_subjects(item.content["group"] for item in items))]


def entitle_deletion(items: Items) -> str:
    return f"Delete {choose_plural('# group|# groups', len(items))}"


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Group deletion",
            noun="# group|# groups",
            batch=BATCH,
            plan=plan_deletion,
            read=read_deletion,
            send=send_deletion,
            facts=(CollectorKind.GROUPS,),
            title=GroupCheckTitle.DELETION_FITS,
            find_faults=find_faults,
            stale=find_stale,
            risk=find_risk,
            rights=find_rights,
            words=describe_deletion,
            start_words=describe_start,
            columns=("Group", "Now", "Planned"),
            confirm=name_or_count,
        )
    )
