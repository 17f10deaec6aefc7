"""The form of new committed offsets: scope and rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django import forms

from kafkadash.clusters.forms import CodedForm
from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.formatting import LARGEST_INT, read_whole_number
from kafkadash.core.messages import coded, reason_message
from kafkadash.group_changes.errors import GroupErrorCode
from kafkadash.group_changes.reset import ResetTarget, find_faults, plan_reset
from kafkadash.group_changes.stored_groups import EMPTY, StoredGroup, load_topics
from kafkadash.monitoring.groups.names import label_group

TARGETS = (
    (ResetTarget.EARLIEST.value, "Earliest: log start"),
    (ResetTarget.LATEST.value, "Latest: log end"),
    (ResetTarget.TIME.value, "Time: first record since"),
    (ResetTarget.SHIFT.value, "Shift: by a number of records"),
    (ResetTarget.OFFSETS.value, "Offsets: typed per partition"),
)
MOST_CHARACTERS = 4_000
MOST_FAULTS = 5
_SHOWN = 60
_OFFSET_LINE = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})=(?P<offset>[0-9]{1,19})")


class ResetForm(CodedForm):
    """``cleaned_data`` is the input of the change once the form is valid, which it is if the plan fits stored rows."""

    to = forms.CharField(label="Target", required=False)
    topic = forms.CharField(label="Topic", required=False)
    partitions = forms.CharField(label="Partitions", required=False, max_length=MOST_CHARACTERS)
    at = forms.CharField(label="Time", required=False, max_length=64)
    by = forms.CharField(label="Shift", required=False, max_length=64)
    offsets = forms.CharField(label="Offsets", required=False)

    def __init__(self, *args: Any, cluster: Cluster, group: StoredGroup, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cluster, self._group = cluster, group
        self._topics = sorted({partition.topic for partition in group.commits})
        self.fields["to"].choices = TARGETS  # type: ignore[attr-defined]  # which the page lists
        self.fields["topic"].choices = [  # type: ignore[attr-defined]
            ("", "All with committed offsets"),
            *((topic, topic) for topic in self._topics),
        ]

    def clean(self) -> dict[str, Any]:
        """Check each field for itself, then the whole plan."""
        values = self.cleaned_data
        to = values.get("to", "")
        wanted: dict[str, Any] = {"group": self._group.name, "to": to}
        if to == ResetTarget.OFFSETS:
            wanted["offsets"] = self._check_offsets(values.get("offsets", ""))
        elif any(to == value for value, _ in TARGETS):
            wanted |= self._check_scope(values)
        else:
            self._refuse("to", coded(GroupErrorCode.RULE_UNKNOWN))
        if to == ResetTarget.TIME:
            wanted["at_ms"] = self._check_time(values.get("at", ""))
        if to == ResetTarget.SHIFT:
            wanted["by"] = self._check_shift(values.get("by", ""))
        if not self.errors:
            self._check_plan(wanted)
        return wanted

    def _check_scope(self, values: Mapping[str, str]) -> dict[str, Any]:
        topic, typed = values.get("topic", ""), values.get("partitions", "")
        if topic and topic not in self._topics:
            self._refuse("topic", coded(GroupErrorCode.TOPIC_UNKNOWN))
            return {}
        if typed and not topic:
            self._refuse("partitions", coded(GroupErrorCode.PARTITIONS_ALONE))
            return {}
        return {"topic": topic, "partitions": self._check_partitions(topic, typed)}

    def _check_partitions(self, topic: str, typed: str) -> list[int]:
        """Read "0, 2, 5-7"; a number that the topic does not have is refused."""
        count = load_topics(self._cluster, [topic]).get(topic, ("", 0))[1] if typed else 0
        found: set[int] = set()
        for part in filter(None, map(str.strip, typed.split(","))):
            first, dash, last = part.partition("-")
            begin = read_whole_number(first, LARGEST_INT)
            end = read_whole_number(last, LARGEST_INT) if dash else begin
            if begin is None or end is None or end < begin:
                self._refuse("partitions", coded(GroupErrorCode.PARTITIONS_FORMAT, part=part[:_SHOWN]))
                return []
            if end >= count:
                self._refuse("partitions", coded(GroupErrorCode.PARTITION_UNKNOWN, topic=topic, partition=end))
                return []
            found.update(range(begin, end + 1))
        if typed and not found:
            self._refuse("partitions", coded(GroupErrorCode.PARTITIONS_FORMAT, part=typed[:_SHOWN]))
        return sorted(found)

    def _check_time(self, typed: str) -> int:
        """Return milliseconds since the epoch; a time without a zone is in UTC."""
        try:
            at = datetime.fromisoformat(typed.strip())
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
            since = at.timestamp()
        except (ValueError, OverflowError):
            since = -1.0
        if since < 0:
            self._refuse("at", coded(GroupErrorCode.TIME_WRONG))
        elif since > clock.seconds():
            self._refuse("at", coded(GroupErrorCode.TIME_AHEAD))
        return round(since * 1000)

    def _check_shift(self, typed: str) -> int:
        shift = typed.strip().replace("\N{MINUS SIGN}", "-")
        sign, digits = (-1, shift[1:]) if shift.startswith("-") else (1, shift.removeprefix("+"))
        number = read_whole_number(digits)
        if not number:
            self._refuse("by", coded(GroupErrorCode.SHIFT_WRONG))
            return 0
        return sign * number

    def _check_offsets(self, typed: str) -> dict[str, dict[str, int]]:
        """Read ``topic-partition=offset`` lines."""
        found: dict[str, dict[str, int]] = {}
        lines = list(filter(None, map(str.strip, typed.splitlines())))
        if len(typed) > MOST_CHARACTERS:
            self._refuse("offsets", coded(GroupErrorCode.OFFSETS_TOO_LONG, length=len(typed), most=MOST_CHARACTERS))
            return {}
        if not lines:
            self._refuse("offsets", coded(GroupErrorCode.OFFSETS_MISSING))
        for line in lines:
            match = _OFFSET_LINE.fullmatch(line)
            number = read_whole_number(match["partition"], LARGEST_INT) if match else None
            offset = read_whole_number(match["offset"]) if match else None
            if match is None or number is None or offset is None:
                self._refuse("offsets", coded(GroupErrorCode.OFFSETS_FORMAT, line=line[:_SHOWN]))
            elif str(number) in found.setdefault(match["topic"], {}):
                partition = f"{match['topic']}-{number}"
                self._refuse("offsets", coded(GroupErrorCode.OFFSETS_REPEATED, partition=partition))
            else:
                found[match["topic"]][str(number)] = offset
        topics = load_topics(self._cluster, found)
        for topic, numbers in found.items():
            for number_text in numbers:
                if int(number_text) >= topics.get(topic, ("", 0))[1]:
                    unknown = coded(GroupErrorCode.PARTITION_UNKNOWN, topic=topic, partition=int(number_text))
                    self._refuse("offsets", unknown)
        return found

    def _check_plan(self, wanted: Mapping[str, Any]) -> None:
        """Refuse a plan that does not fit stored rows."""
        group = label_group(self._group.name)
        if self._group.freshness.stale:
            self._refuse(None, coded(GroupErrorCode.DATA_STALE, group=group))
            return
        if self._group.state != EMPTY:
            self._refuse(None, coded(GroupErrorCode.NOT_EMPTY_LEFT_OUT, group=group, state=self._group.state))
            return
        items = plan_reset(self._cluster, wanted).items
        faults = find_faults(self._cluster, items) if items else {}
        for subject, fault in list(faults.items())[:MOST_FAULTS]:
            self._refuse(None, coded(GroupErrorCode.DOES_NOT_FIT, item=subject, why=reason_message(fault)))
        if not items and not self._group.commits and wanted["to"] != ResetTarget.OFFSETS:
            self._refuse(None, coded(GroupErrorCode.NO_OFFSETS, group=group))
