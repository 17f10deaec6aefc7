"""``manage.py groups``: groups as stored, in the columns of ``kafka-consumer-groups`` and ``kafka-share-groups``, and
proposals about those with committed offsets.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkadash.accounts.errors import command_error
from kafkadash.clusters.models import Cluster
from kafkadash.group_changes import group_deletion, offset_deletion
from kafkadash.group_changes.errors import GroupErrorCode
from kafkadash.group_changes.forms import ResetForm
from kafkadash.group_changes.reset import KIND, ResetTarget
from kafkadash.group_changes.stored_groups import StoredGroup, load_groups, refuse_type
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.groups.names import key_of, label_group, slug_of
from kafkadash.monitoring.groups.pages import others_of, present_groups
from kafkadash.monitoring.groups.shares import SharePartition, read_partitions, read_share_members
from kafkadash.monitoring.groups.window import SampledMember, members_of
from kafkadash.monitoring.models import CollectorKind, UnjudgedGroup
from kafkadash.monitoring.stored_commands import (
    BAD,
    add_output_options,
    align_columns,
    find_cluster,
    find_freshness,
)
from kafkadash.short_runs.commands import ItemCommand, add_proposal_options

ABSENT = "-"
"""Kafka's tool prints this where there is no offset, and no member that reads the partition."""

_OFFSETS = (
    *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"),
)

_SHARE_OFFSETS = ("GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG")


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A partition of a group, with offsets in records, None where not known, and the member that reads it."""

    topic: str
    partition: int
    committed: int | None
    log_end: int | None
    member: SampledMember | None

    @property
    def lag(self) -> int | None:
        known = self.committed is not None and self.log_end is not None
        return max(0, self.log_end - self.committed) if known else None  # type: ignore[operator]


class Command(ItemCommand):
    help = (
        "Lists and describes groups of all types, from collected data, and proposes to reset or delete their committed "
        "offsets, or to delete them. Exit code 2: bad input, or a group is not known."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        lister = actions.add_parser("list", help="names of all groups")
        describe = actions.add_parser("describe", help="committed offsets, log ends, lag and members of groups")
        describe.add_argument("names", nargs="+", metavar="GROUP")
        add_output_options(lister, describe)
        reset = actions.add_parser("reset-offsets", help="propose other committed offsets of an empty group")
        reset.add_argument("name", metavar="GROUP")
        reset.add_argument("--topic", default="", help="only this topic; default: all with committed offsets")
        reset.add_argument("--partitions", default="", metavar="0,2,5-7", help="only these of the topic")
        target = reset.add_mutually_exclusive_group(required=True)
        target.add_argument("--to-earliest", action="store_true")
        target.add_argument("--to-latest", action="store_true")
        target.add_argument("--to-datetime", metavar="TIME", help="ISO 8601; UTC where it names no zone")
        target.add_argument("--shift-by", metavar="N", help="number of records; below 0 to read again")
        target.add_argument("--to-offset", action="append", metavar="TOPIC-PARTITION=OFFSET")
        delete = actions.add_parser("delete", help="propose to delete empty groups; --confirm: the name, or how many")
        delete.add_argument("names", nargs="+", metavar="GROUP")
        offsets = actions.add_parser("delete-offsets", help="propose to delete the committed offsets of a topic")
        offsets.add_argument("name", metavar="GROUP")
        offsets.add_argument("--topic", required=True)
        add_proposal_options(reset, delete, offsets)

    def answer(self, options: Mapping[str, Any]) -> None:
        cluster = find_cluster(options["cluster"])
        match options["action"]:
            case "list":
                self._list(cluster, as_data=options["json"])
            case "describe":
                self._describe(cluster, options["names"], as_data=options["json"])
            case "reset-offsets":
                self._reset(cluster, options)
            case "delete":
                self._delete(cluster, options)
            case _:
                [group] = find_groups(cluster, [options["name"]])
                wanted = {"group": group.name, "topic": options["topic"]}
                title = f"Delete offsets of {options['topic']} in {label_group(group.name)}"
                self.propose(cluster, offset_deletion.KIND, wanted, title, options)

    def _list(self, cluster: Cluster, *, as_data: bool) -> None:
        freshness = find_freshness(cluster, CollectorKind.GROUPS)
        judged = present_groups(cluster).values_list("name", "state", "type", "members")
        others = others_of(cluster).values_list("name", "state", "kind", "members")
        rows = sorted([*judged, *((name, state, kind.title(), count) for name, state, kind, count in others)])
        if as_data:
            keys = ("group", "state", "type", "members")
            self.print_json(freshness, {"groups": [dict(zip(keys, row, strict=True)) for row in rows]})
            return
        self.print_age(freshness)
        for name, *_ in rows:
            self.stdout.write(label_group(name))

    def _describe(self, cluster: Cluster, names: Sequence[str], *, as_data: bool) -> None:
        freshness = find_freshness(cluster, CollectorKind.GROUPS)
        others = list(others_of(cluster).filter(key__in=[key_of(name) for name in names]))
        groups = find_groups(cluster, [name for name in names if name not in {other.name for other in others}])
        members = {
            row.name: members_of(row) for row in present_groups(cluster).filter(name__in=names).select_related("window")
        }
        if as_data:
            told = [describe_group(group, members.get(group.name, [])) for group in groups]
            self.print_json(freshness, {"groups": [*told, *map(describe_unjudged, others)]})
            return
        self.print_age(freshness)
        for group in groups:
            self.stdout.write(f"{label_group(group.name)}: {group.state}")
            rows = [_format_row(group, offset) for offset in list_offsets(group, members.get(group.name, []))]
            for line in align_columns([_OFFSETS, *rows]) if rows else ():
                self.stdout.write(line)
        for other in others:
            self.stdout.write(f"{label_group(other.name)}: {other.state}, {other.kind} group")
            rows = [_format_share(other, row) for row in read_partitions(other)]
            for line in align_columns([_SHARE_OFFSETS, *rows]) if rows else ():
                self.stdout.write(line)

    def _reset(self, cluster: Cluster, options: Mapping[str, Any]) -> None:
        [group] = find_groups(cluster, [options["name"]])
        form = ResetForm(_read_target(options), cluster=cluster, group=group)
        if not form.is_valid():
            self.refuse_form(cluster, form)
        self.propose(cluster, KIND, form.cleaned_data, f"Reset offsets of {label_group(group.name)}", options)

    def _delete(self, cluster: Cluster, options: Mapping[str, Any]) -> None:
        """Propose to delete all groups that are named, or none of them."""
        names = set(options["names"])
        if len(names) > group_deletion.MOST_GROUPS:
            raise command_error(GroupErrorCode.TOO_MANY, most=group_deletion.MOST_GROUPS, returncode=BAD)
        wanted = {"groups": [each.name for each in find_groups(cluster, sorted(names))]}
        planned = group_deletion.plan_deletion(cluster, wanted)
        if planned.left_out:
            raise command_error(planned.left_out[0], returncode=BAD)
        self.propose(cluster, group_deletion.KIND, wanted, group_deletion.entitle_deletion(planned.items), options)


def _read_target(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options as the form of the page takes them."""
    typed = {"topic": options["topic"], "partitions": options["partitions"]}
    if options["to_earliest"]:
        return {**typed, "to": ResetTarget.EARLIEST.value}
    if options["to_latest"]:
        return {**typed, "to": ResetTarget.LATEST.value}
    if options["to_datetime"] is not None:
        return {**typed, "to": ResetTarget.TIME.value, "at": options["to_datetime"]}
    if options["shift_by"] is not None:
        return {**typed, "to": ResetTarget.SHIFT.value, "by": options["shift_by"]}
    return {"to": ResetTarget.OFFSETS.value, "offsets": "\n".join(options["to_offset"])}


def find_groups(cluster: Cluster, names: Sequence[str]) -> list[StoredGroup]:
    """Raises CodedCommandError for a group that Kafka does not list, as far as is known."""
    stored = load_groups(cluster, names)
    missing = next((name for name in names if name not in stored), None)
    if missing is not None:
        if refused := refuse_type(cluster, slug_of(missing)):
            raise command_error(refused, returncode=BAD)
        code = CollectionErrorCode.GROUP_NOT_SEEN
        raise command_error(code, cluster=cluster.name, group=missing, returncode=BAD)
    return [stored[name] for name in sorted(stored)]


def list_offsets(group: StoredGroup, members: Sequence[SampledMember]) -> Iterator[GroupOffset]:
    """Yield each partition with a commit or a member, in order."""
    readers = {
        (topic, number): member
        for member in members
        for topic, numbers in member.assigned.items()
        for number in numbers
    }
    commits = {(each.topic, each.partition): offset for each, offset in group.commits.items()}
    ends = {(each.topic, each.partition): log[1] for each, log in group.logs.items()}
    for key in sorted(commits.keys() | readers.keys()):
        yield GroupOffset(*key, commits.get(key), ends.get(key), readers.get(key))


def describe_group(group: StoredGroup, members: Sequence[SampledMember]) -> dict[str, Any]:
    """Return a group for programs; null where nobody knows, or nothing is committed."""
    return {
        "group": group.name,
        "type": group.type,
        "state": group.state,
        "members": len(members),
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "committed": each.committed,
                "log_end": each.log_end,
                "lag": each.lag,
                "member": each.member.member_id if each.member else None,
            }
            for each in list_offsets(group, members)
        ],
    }


def describe_unjudged(group: UnjudgedGroup) -> dict[str, Any]:
    """Return a group without committed offsets for programs; null where nobody knows."""
    return {
        "group": group.name,
        "type": group.kind.title(),
        "state": group.state,
        "members": group.members,
        "member_ids": [member.member_id for member in read_share_members(group)] if group.is_share else None,
        "partitions": [
            {
                "topic": row.topic,
                "partition": row.partition,
                "start": row.start,
                "completed_at_most": row.most_completed,
                "log_end": row.end,
                "lag": row.lag,
            }
            for row in read_partitions(group)
        ],
    }


def _format_share(group: UnjudgedGroup, row: SharePartition) -> Sequence[str]:
    figures = (ABSENT if figure is None else str(figure) for figure in (row.start, row.lag))
    return [label_group(group.name), row.topic, str(row.partition), *figures]


def _format_row(group: StoredGroup, offset: GroupOffset) -> Sequence[str]:
    figures = (offset.committed, offset.log_end, offset.lag)
    member = offset.member
    reader = (member.member_id, member.host, member.client_id) if member else (ABSENT, ABSENT, ABSENT)
    shown = (ABSENT if figure is None else str(figure) for figure in figures)
    return [label_group(group.name), offset.topic, str(offset.partition), *shown, *reader]
