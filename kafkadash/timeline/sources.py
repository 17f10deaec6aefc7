"""Sources of the timeline: each reads the newest entries of a span from rows of one room, and counts them.

A new source, such as maintenance windows, is one more class in ``SOURCES``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from django.db.models import Case, Count, F, Func, IntegerField, Max, Min, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast
from django.urls import reverse

from kafkadash.accounts.models import AuditEvent
from kafkadash.changes.models import ChangeRequest, Review, ReviewVerdict
from kafkadash.changes.trail import build_entries
from kafkadash.changes.transitions import OBJECT
from kafkadash.core.messages import coded
from kafkadash.core.status import HealthState
from kafkadash.execution.models import Move
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.monitoring.cluster_events.rules import SubjectType, mark_subject
from kafkadash.monitoring.models import ClusterEvent, MoveOutcome, ReassignmentSnapshot
from kafkadash.short_runs.models import ShortItem
from kafkadash.timeline.entries import BUCKETS, EntryKind, EntryLine, KindCount, TimelineEntry, TimelineScope, TimeSpan
from kafkadash.timeline.errors import TimelineCode
from kafkadash.timeline.events import EVENT_KINDS, describe_event

_MOVE_SLOTS = 2 * BUCKETS
"""Reassignments of others that began or ended in one of so many intervals are one entry."""

CHANGE_ACTIONS: Sequence[str] = tuple(
    f"change.{verb}"
    for verb in (
        "submitted",
        "withdrawn",
        "approved",
        "declined",
        "turned_stale",
        "expired",
        "broke_glass",
        "started",
        "scheduled",
        "turn_came",
        "paused",
        "resumed",
        "throttle_changed",
        "parallel_changed",
        "throttle_vanished",
        "throttle_foreign",
        "throttle_left",
        "ordered",
        "cancelled",
        "cancel_ended",
        "rows_ended",
        "verified",
        "failed",
    )
)
"""Audit events of changes that concern the cluster; edits and comments do not."""

_BEGINS = frozenset({"change.started", "change.scheduled", "change.turn_came"})


class TimelineSource(Protocol):
    """Reads entries of a span, newest first and at most so many, and counts all of them."""

    def list_entries(self, scope: TimelineScope, span: TimeSpan, most: int) -> list[TimelineEntry]: ...

    def count_entries(self, scope: TimelineScope, span: TimeSpan) -> list[KindCount]: ...


def _bucket(field: str, span: TimeSpan, buckets: int = BUCKETS) -> Func:
    """Return the interval of a time as a number from 1 on."""
    begin, end = span.begin.timestamp(), span.end.timestamp()
    return Func(
        F(field),
        template=f"width_bucket(extract(epoch FROM %(expressions)s), {begin:.6f}, {end:.6f}, {buckets})",
        output_field=IntegerField(),
    )


def _within(field: str, span: TimeSpan) -> Q:
    return Q(**{f"{field}__gte": span.begin, f"{field}__lt": span.end})


class CollectorEvents:
    """Events that collectors found between two readings."""

    def list_entries(self, scope: TimelineScope, span: TimeSpan, most: int) -> list[TimelineEntry]:
        kinds = scope.kinds & EVENT_KINDS
        rows = self._rows(scope, span).filter(kind__in=kinds).defer("marks") if kinds else []
        newest = rows.order_by("-at", "-pk")[:most] if isinstance(rows, QuerySet) else []
        return [entry for row in newest if (entry := describe_event(row, scope)) is not None]

    def count_entries(self, scope: TimelineScope, span: TimeSpan) -> list[KindCount]:
        rows = self._rows(scope, span).annotate(bucket=_bucket("at", span)).order_by()
        counted = rows.values_list("bucket", "kind").annotate(number=Count("*"))
        return [
            KindCount(bucket - 1, EntryKind(kind), number) for bucket, kind, number in counted if kind in EVENT_KINDS
        ]

    def _rows(self, scope: TimelineScope, span: TimeSpan) -> QuerySet[ClusterEvent]:
        rows = ClusterEvent.objects.filter(_within("at", span), cluster=scope.cluster_id)
        if scope.broker is not None:
            rows = rows.filter(brokers__contains=[scope.broker])
        if scope.topic:
            rows = rows.filter(marks__contains=[mark_subject(SubjectType.TOPIC, scope.topic)])
        if scope.group_key:
            rows = rows.filter(marks__contains=[mark_subject(SubjectType.GROUP, scope.group)])
        return rows


class StoredFindings:
    """Findings that opened or closed."""

    _ENDS = (("opened_at", TimelineCode.FINDING_OPENED), ("closed_at", TimelineCode.FINDING_CLOSED))

    def list_entries(self, scope: TimelineScope, span: TimeSpan, most: int) -> list[TimelineEntry]:
        if not scope.wants(EntryKind.FINDINGS):
            return []
        return [
            self._describe(row, field, code, scope)
            for field, code in self._ENDS
            for row in self._rows(scope, span, field).order_by(f"-{field}", "-pk")[:most]
        ]

    def count_entries(self, scope: TimelineScope, span: TimeSpan) -> list[KindCount]:
        found = []
        for field, _ in self._ENDS:
            rows = self._rows(scope, span, field).annotate(bucket=_bucket(field, span)).order_by()
            counted = rows.values_list("bucket").annotate(number=Count("*"))
            found += [KindCount(bucket - 1, EntryKind.FINDINGS, number) for bucket, number in counted]
        return found

    def _rows(self, scope: TimelineScope, span: TimeSpan, field: str) -> QuerySet[Finding]:
        rows = Finding.objects.filter(_within(field, span), cluster=scope.cluster_id, opened_at__isnull=False)
        return rows.filter(select_findings(scope))

    def _describe(self, row: Finding, field: str, code: TimelineCode, scope: TimelineScope) -> TimelineEntry:
        opened = code is TimelineCode.FINDING_OPENED
        begun = row.since or row.first_seen_at
        return TimelineEntry(
            key=f"{field}-{row.public_id}",
            kind=EntryKind.FINDINGS,
            at=getattr(row, field),
            not_before=begun if opened and begun < getattr(row, field) else None,
            message=coded(code, title=row.title),
            source="findings",
            state=row.state if opened else HealthState.OK.value,
            url=reverse("findings:finding", args=[scope.slug, row.public_id]),
            lines=[EntryLine(after=row.detail)] if opened and row.detail else (),
            code=str(row.message_code),
        )


_OF_GROUPS = (FindingKind.CONSUMER_LAG.value, FindingKind.CONSUMER_LOSS.value)


def select_findings(scope: TimelineScope) -> Q:
    """Return the condition that a finding is about the broker, topic or group; of a topic, that it names it."""
    wanted = Q()
    if scope.broker is not None:
        wanted &= Q(message_params__broker=scope.broker)
    if scope.group_key:
        wanted &= Q(kind__in=_OF_GROUPS, scope=scope.group_key)
    if scope.topic:
        name = json.dumps(scope.topic, ensure_ascii=False)[1:-1]
        wanted &= Q(pk__in=_naming(f'"{name}-')) | Q(pk__in=_naming(f'"{name}"'))
    return wanted


def _naming(text: str) -> QuerySet[Finding, int]:
    told = Finding.objects.annotate(told=Cast("message_params", TextField()))
    return told.filter(told__contains=text).values_list("pk", flat=True)


class ChangeSteps:
    """Steps of change requests, with who approved what began. Of a broker, only runs that moved replicas of it."""

    def list_entries(self, scope: TimelineScope, span: TimeSpan, most: int) -> list[TimelineEntry]:
        if not scope.wants(EntryKind.CHANGES):
            return []
        events = list(self._rows(scope, span).order_by("-at", "-id")[:most])
        numbers = {int(event.object_id) for event in events}
        own = ChangeRequest.objects.filter(pk__in=numbers, cluster=scope.cluster_id)
        changes = dict(own.values_list("pk", "title"))
        begun = {int(event.object_id) for event in events if event.action in _BEGINS}
        reviews = list(Review.objects.filter(request__in=begun, verdict=ReviewVerdict.APPROVED)) if begun else []
        return [
            TimelineEntry(
                key=f"change-{event.pk}",
                kind=EntryKind.CHANGES,
                at=event.at,
                message=coded(
                    TimelineCode.CHANGE_STEP,
                    person=step.who,
                    words=step.words,
                    number=number,
                    title=changes[number],
                ),
                source="kafkadash",
                state=step.trouble,
                url=reverse("changes:request", args=[number]),
                lines=list(_change_lines(event, step.detail, reviews)),
                code=event.action,
            )
            for event, step in zip(events, build_entries(events), strict=True)
            if (number := int(event.object_id)) in changes
        ]

    def count_entries(self, scope: TimelineScope, span: TimeSpan) -> list[KindCount]:
        rows = self._rows(scope, span).annotate(bucket=_bucket("at", span)).order_by()
        counted = rows.values_list("bucket").annotate(number=Count("*"))
        return [KindCount(bucket - 1, EntryKind.CHANGES, number) for bucket, number in counted]

    def _rows(self, scope: TimelineScope, span: TimeSpan) -> QuerySet[AuditEvent]:
        rows = AuditEvent.objects.filter(
            _within("at", span), cluster=scope.slug, object_type=OBJECT, action__in=CHANGE_ACTIONS
        )
        if scope.is_narrow:
            rows = rows.filter(object_id__in=[str(number) for number in _find_changes(scope)])
        return rows


def _change_lines(event: AuditEvent, detail: Sequence[object], reviews: Sequence[Review]) -> Iterator[EntryLine]:
    names = dict.fromkeys(
        review.user_name
        for review in reviews
        if str(review.request_id) == event.object_id
        and review.at <= event.at
        and (review.void_at is None or review.void_at > event.at)
    )
    if names:
        yield EntryLine(what="approved by", after=", ".join(names))
    if event.action in _BEGINS and not names:
        yield EntryLine(what="without approvals")
    for text in detail:
        yield EntryLine(note=str(text))


def _find_changes(scope: TimelineScope) -> set[int]:
    """Return the numbers of changes whose run has an item or a reassignment of the broker, topic or group."""
    found: set[int] = set()
    own = {"run__cluster": scope.cluster_id}
    if scope.topic:
        moves = Move.objects.filter(execution__cluster=scope.cluster_id, topic=scope.topic)
        found |= set(moves.values_list("execution__request_id", flat=True).distinct())
        items = ShortItem.objects.filter(Q(subject=scope.topic) | Q(subject__startswith=f"{scope.topic}-"), **own)
        found |= set(items.values_list("run__request_id", flat=True).distinct())
    if scope.group_key:
        items = ShortItem.objects.filter(Q(subject=scope.group) | Q(subject__startswith=f"{scope.group} "), **own)
        found |= set(items.values_list("run__request_id", flat=True).distinct())
    if scope.broker is not None:
        owners = ReassignmentSnapshot.objects.filter(_moves_of_broker(scope.broker), cluster=scope.cluster_id)
        found |= {
            int(owner[1:])
            for owner in owners.exclude(claimed_by="").values_list("claimed_by", flat=True).distinct()
            if owner[1:].isdecimal()
        }
    return found


def _moves_of_broker(broker: int) -> Q:
    return Q(adding__contains=[broker]) | Q(removing__contains=[broker])


_ENDED: Mapping[str, TimelineCode] = {
    MoveOutcome.COMPLETED: TimelineCode.MOVES_COMPLETED,
    MoveOutcome.CANCELLED: TimelineCode.MOVES_CANCELLED,
    MoveOutcome.SUPERSEDED: TimelineCode.MOVES_SUPERSEDED,
    MoveOutcome.TOPIC_DELETED: TimelineCode.MOVES_OF_DELETED_TOPICS,
    MoveOutcome.UNKNOWN: TimelineCode.MOVES_ENDED_UNSEEN,
}
OTHERS = "others"


class Reassignments:
    """Reassignments that began or ended: those of a run are one entry, those of others one for each short interval."""

    def list_entries(self, scope: TimelineScope, span: TimeSpan, most: int) -> list[TimelineEntry]:
        if not scope.wants(EntryKind.MOVES):
            return []
        entries = self._entries(scope, span)
        return sorted(entries, key=lambda entry: (entry.at, entry.key), reverse=True)[:most]

    def count_entries(self, scope: TimelineScope, span: TimeSpan) -> list[KindCount]:
        counts = Counter(
            min(BUCKETS - 1, int((entry.at - span.begin) / span.step)) for entry in self._entries(scope, span)
        )
        return [KindCount(bucket, EntryKind.MOVES, number) for bucket, number in counts.items()]

    def _entries(self, scope: TimelineScope, span: TimeSpan) -> list[TimelineEntry]:
        if scope.group_key:
            return []
        return [*self._starts(scope, span), *self._ends(scope, span)]

    def _starts(self, scope: TimelineScope, span: TimeSpan) -> Iterator[TimelineEntry]:
        for row in self._fold(scope, span, "started_before", before=Min("started_after"), outcome=Value("")):
            owner = row["claimed_by"]
            code = TimelineCode.MOVES_STARTED_BY_RUN if owner else TimelineCode.MOVES_STARTED
            params = {"owner": owner} if owner else {}
            yield self._describe(row, "started", scope, row["before"] or row["first"], code, params)

    def _ends(self, scope: TimelineScope, span: TimeSpan) -> Iterator[TimelineEntry]:
        for row in self._fold(scope, span, "ended_at", before=Value(None, TextField()), outcome=F("outcome")):
            owner = f"change {row['claimed_by']}" if row["claimed_by"] else OTHERS
            not_before = row["first"] if row["first"] < row["at"] else None
            yield self._describe(row, "ended", scope, not_before, _ENDED[row["how"]], {"owner": owner})

    def _fold(
        self, scope: TimelineScope, span: TimeSpan, field: str, before: Any, outcome: Any
    ) -> Iterable[Mapping[str, Any]]:
        rows = ReassignmentSnapshot.objects.filter(_within(field, span), cluster=scope.cluster_id)
        if field == "ended_at":
            rows = rows.filter(outcome__in=list(_ENDED))
        if scope.topic:
            rows = rows.filter(topic=scope.topic)
        if scope.broker is not None:
            rows = rows.filter(_moves_of_broker(scope.broker))
        slot = Case(
            When(claimed_by="", then=_bucket(field, span, _MOVE_SLOTS)), default=Value(0), output_field=IntegerField()
        )
        return (
            rows.annotate(slot=slot, how=outcome)
            .order_by()
            .values("claimed_by", "claim_url", "slot", "how")
            .annotate(
                before=before,
                first=Min(field),
                at=Max(field),
                number=Count("*"),
                topic_first=Min("topic"),
                topic_last=Max("topic"),
                partition_first=Min("partition"),
            )
        )

    def _describe(
        self,
        row: Mapping[str, Any],
        step: str,
        scope: TimelineScope,
        not_before: datetime | None,
        code: TimelineCode,
        params: Mapping[str, Any],
    ) -> TimelineEntry:
        topic = row["topic_first"]
        one_topic = topic == row["topic_last"]
        about = f" of {topic}-{row['partition_first']}" if row["number"] == 1 else f" of topic {topic}" * one_topic
        return TimelineEntry(
            key=f"{step}-{row['claimed_by'].lstrip('#')}-{row['slot']}-{row['how']}",
            kind=EntryKind.MOVES,
            at=row["at"],
            not_before=not_before if not_before and not_before < row["at"] else None,
            message=coded(code, count=row["number"], about=about, **params),
            source="kafkadash" if row["claimed_by"] and step == "started" else "reassignments",
            count=row["number"],
            url=row["claim_url"] or reverse("monitoring:reassignments", args=[scope.slug]),
            code=str(code),
        )


SOURCES: Sequence[TimelineSource] = (CollectorEvents(), StoredFindings(), ChangeSteps(), Reassignments())


def list_entries(scope: TimelineScope, span: TimeSpan, most: int) -> list[TimelineEntry]:
    """Return the newest entries of all sources, newest first."""
    found = [entry for source in SOURCES for entry in source.list_entries(scope, span, most)]
    return sorted(found, key=lambda entry: (entry.at, entry.key), reverse=True)[:most]


def count_entries(scope: TimelineScope, span: TimeSpan) -> list[KindCount]:
    return [each for source in SOURCES for each in source.count_entries(scope, span)]
