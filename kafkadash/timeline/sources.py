"""Sources of the timeline: each reads the newest entries of a span from rows of one room, and counts them.

A new source is one more class in ``SOURCES``.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import (
    Case,
    Count,
    F,
    Func,
    IntegerField,
    Max,
    Min,
    Q,
    QuerySet,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils import timezone

from kafkadash.accounts.models import AuditEvent
from kafkadash.changes.models import ChangeRequest, Review, ReviewVerdict
from kafkadash.changes.trail import build_entries
from kafkadash.changes.transitions import OBJECT
from kafkadash.core.messages import coded
from kafkadash.core.status import HealthState
from kafkadash.execution.models import Move
from kafkadash.findings.kinds import FindingCode, FindingKind, stored_kind
from kafkadash.findings.models import Finding
from kafkadash.kafka.throttles import LISTS
from kafkadash.maintenance.models import QuietPeriod, QuietPurpose
from kafkadash.monitoring.cluster_events.rules import SubjectType, mark_subject
from kafkadash.monitoring.models import (
    BrokerState,
    ClusterEvent,
    MoveOutcome,
    ReassignmentSnapshot,
    ThrottledResource,
    ThrottleState,
)
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


class EntryPlace(NamedTuple):
    """Place of an entry on the axis: all that is read of the entries of pages that are not shown.

    ``ref``: what its source finds it by, ``step``: which of the entries of one row it is. A tuple, because the last
    page reads thousands.
    """

    at: datetime
    source: TimelineSource
    ref: Any
    step: str = ""


class PlaceRange(NamedTuple):
    """Entries of a part of the span, newest first: those that follow the first ``skipped``, at most ``most``."""

    part: TimeSpan
    skipped: int
    most: int

    def slice_rows(self, rows: QuerySet[Any], field: str) -> QuerySet[Any]:
        """Return the rows whose ``field`` is in the range."""
        newest = rows.filter(_within(field, self.part)).order_by(f"-{field}", "-pk")
        return newest[self.skipped : self.skipped + self.most]


@dataclass(frozen=True, slots=True)
class SourceReading:
    """Number of entries of a span by kind and interval, and how to read the places of those that are listed.

    ``counts``: of all kinds, listed or not.
    """

    counts: Sequence[KindCount]
    read_places: Callable[[PlaceRange], Iterable[EntryPlace]]

    def count_listed(self, kinds: Collection[EntryKind], oldest: int, newest: int) -> int:
        """Return the number of entries of these kinds from one interval to another."""
        return sum(each.count for each in self.counts if oldest <= each.bucket <= newest and each.kind in kinds)


class TimelineSource(Protocol):
    """Reads the entries of a span from rows of one room."""

    def read_span(self, scope: TimelineScope, span: TimeSpan) -> Sequence[SourceReading]: ...

    def describe_entries(self, scope: TimelineScope, places: Sequence[EntryPlace]) -> Sequence[TimelineEntry]: ...


def _bucket(field: str, span: TimeSpan, intervals: int = BUCKETS) -> Func:
    """Return the interval of a time as a number from 1 on."""
    begins = Value(_write_begins(span, intervals), output_field=TextField())
    template = "width_bucket(%(expressions)s::timestamptz[])"
    return Func(F(field), begins, template=template, output_field=IntegerField())


@lru_cache(maxsize=64)
def _write_begins(span: TimeSpan, intervals: int) -> str:
    return _write_array(span.list_begins(intervals))


def _write_array(moments: Iterable[datetime]) -> str:
    """Return an array as PostgreSQL reads it; as a list, each moment would be prepared by itself."""
    return f"{{{','.join([moment.isoformat() for moment in moments])}}}"


def _within(field: str, span: TimeSpan) -> Q:
    return Q(**{f"{field}__gte": span.begin, f"{field}__lt": span.end})


def _read_moments(
    source: TimelineSource,
    kind: EntryKind,
    field: str,
    rows: QuerySet[Any],
    scope: TimelineScope,
    span: TimeSpan,
) -> SourceReading:
    """Read rows whose ``field`` is in the span, each an entry."""
    counted = rows.annotate(bucket=_bucket(field, span)).order_by().values_list("bucket")
    counts = [KindCount(bucket - 1, kind, number) for bucket, number in counted.annotate(number=Count("*"))]

    def read_places(wanted: PlaceRange) -> Iterator[EntryPlace]:
        found = wanted.slice_rows(rows, field).values_list(field, "pk")
        return (EntryPlace(at, source, pk, field) for at, pk in found)

    return SourceReading(counts, read_places if scope.wants(kind) else _read_nothing)


def _read_nothing(_wanted: PlaceRange) -> Sequence[EntryPlace]:
    return ()


class CollectorEvents:
    """Events that collectors found between two readings."""

    # Each interval is a range of the index, and no row is given a number to group by: that takes a third of the time.
    _COUNT_INTERVALS = """
        SELECT interval.number, counted.kind, counted.events
        FROM unnest(%s::timestamptz[], %s::timestamptz[]) WITH ORDINALITY AS interval (begins, ends, number),
        LATERAL (
            SELECT kind, count(*) AS events FROM monitoring_clusterevent
            WHERE cluster_id = %s AND at >= interval.begins AND at < interval.ends GROUP BY kind
        ) AS counted
    """

    def read_span(self, scope: TimelineScope, span: TimeSpan) -> Sequence[SourceReading]:
        counts = [
            KindCount(bucket - 1, EntryKind(kind), number)
            for bucket, kind, number in self._count_kinds(scope, span)
            if kind in EVENT_KINDS
        ]
        rows = self._rows(scope, span).filter(kind__in=scope.kinds & EVENT_KINDS)

        def read_places(wanted: PlaceRange) -> Iterator[EntryPlace]:
            return (EntryPlace(at, self, pk) for at, pk in wanted.slice_rows(rows, "at").values_list("at", "pk"))

        return [SourceReading(counts, read_places if scope.kinds & EVENT_KINDS else _read_nothing)]

    def _count_kinds(self, scope: TimelineScope, span: TimeSpan) -> Iterable[tuple[int, str, int]]:
        """Return interval from 1 on, kind and number of events."""
        if scope.is_narrow:
            rows = self._rows(scope, span).annotate(bucket=_bucket("at", span))
            return rows.order_by().values_list("bucket", "kind").annotate(number=Count("*"))
        begins = span.list_begins()
        with connection.cursor() as cursor:
            edges = [_write_array(begins), _write_array([*begins[1:], span.end])]
            cursor.execute(self._COUNT_INTERVALS, [*edges, scope.cluster_id])
            counted: list[tuple[int, str, int]] = cursor.fetchall()
        return counted

    def describe_entries(self, scope: TimelineScope, places: Sequence[EntryPlace]) -> Sequence[TimelineEntry]:
        rows = ClusterEvent.objects.filter(pk__in=[place.ref for place in places]).defer("marks")
        return [describe_event(row, scope) for row in rows]

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

    _ENDS: Mapping[str, TimelineCode] = {
        "opened_at": TimelineCode.FINDING_OPENED,
        "closed_at": TimelineCode.FINDING_CLOSED,
    }

    def read_span(self, scope: TimelineScope, span: TimeSpan) -> Sequence[SourceReading]:
        rows = Finding.objects.filter(select_findings(scope), cluster=scope.cluster_id, opened_at__isnull=False)
        return [
            _read_moments(self, EntryKind.FINDINGS, field, rows.filter(_within(field, span)), scope, span)
            for field in self._ENDS
        ]

    def describe_entries(self, scope: TimelineScope, places: Sequence[EntryPlace]) -> Sequence[TimelineEntry]:
        rows = Finding.objects.in_bulk({place.ref for place in places})
        return [
            self._describe(rows[place.ref], place.step, self._ENDS[place.step], scope)
            for place in places
            if place.ref in rows
        ]

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
_OF_PARTITIONS = tuple(
    kind.value
    for kind in (
        FindingKind.OFFLINE,
        FindingKind.UNDER_MIN_ISR,
        FindingKind.AT_MIN_ISR,
        FindingKind.UNDER_REPLICATED,
        FindingKind.CONSUMER_LAG,
        FindingKind.HANGING_TRANSACTION,
        FindingKind.ZOMBIE_REASSIGNMENT,
    )
)
"""Kinds of findings that name partitions."""

_TOPICS_NAMED = Func(
    F("message_params"),
    template=(
        "ARRAY(SELECT regexp_replace(each #>> '{}', '-[0-9]+$', '') FROM jsonb_path_query(%(expressions)s,"
        """ '$.** ? (@.type() == "object").keyvalue() ? (@.key == "place" || @.key == "names").value[*]') AS each"""
        " WHERE jsonb_typeof(each) = 'string')"
    ),
    output_field=ArrayField(TextField()),
)
"""Topics of the partitions, as topic-partition, that a message and its notes name."""


def select_findings(scope: TimelineScope) -> Q:
    """Return the condition that a finding is about the broker, topic or group; of a topic, that it names it.

    One query where a topic is asked for.
    """
    wanted = Q()
    if scope.broker is not None:
        wanted &= Q(message_params__broker=scope.broker)
    if scope.group_key:
        wanted &= Q(kind__in=_OF_GROUPS, scope=scope.group_key)
    if scope.topic:
        # Read once here: as a subquery it would search the messages in every query.
        wanted &= Q(pk__in=list(_name_partitions(scope))) | _name_throttles(scope.topic)
    return wanted


def _name_partitions(scope: TimelineScope) -> QuerySet[Finding, int]:
    """Return the findings that name a partition of the topic."""
    rows = Finding.objects.filter(cluster=scope.cluster_id, kind__in=_OF_PARTITIONS)
    # Where several groups are summed up, the names are those of groups.
    rows = rows.exclude(message_code=FindingCode.MORE_GROUPS_BEHIND)
    # The text is searched first: that is ten times as fast as to take each message apart.
    begin = f'"{json.dumps(scope.topic, ensure_ascii=False)[1:-1]}-'
    rows = rows.annotate(told=Cast("message_params", TextField()), topics=_TOPICS_NAMED)
    return rows.filter(told__contains=begin, topics__overlap=[scope.topic]).values_list("pk", flat=True)


def _name_throttles(topic: str) -> Q:
    """Return the condition that a finding names an orphan throttle of the topic."""
    named = Q()
    for key in LISTS:
        throttle = ThrottleState(resource=ThrottledResource.TOPIC, name=topic, key=key)
        named |= Q(message_params__names__contains=[str(throttle)])
    return named & Q(kind=FindingKind.ORPHAN_THROTTLE)


class ChangeSteps:
    """Steps of change requests, with who approved what began. Of a broker, topic or group, those of its runs."""

    def read_span(self, scope: TimelineScope, span: TimeSpan) -> Sequence[SourceReading]:
        return [_read_moments(self, EntryKind.CHANGES, "at", self._rows(scope, span), scope, span)]

    def describe_entries(self, scope: TimelineScope, places: Sequence[EntryPlace]) -> Sequence[TimelineEntry]:
        events = list(AuditEvent.objects.filter(pk__in=[place.ref for place in places]))
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
                    number=int(event.object_id),
                    title=changes.get(int(event.object_id), "deleted"),
                ),
                source="kafkadash",
                state=step.trouble,
                url=reverse("changes:request", args=[event.object_id]) if int(event.object_id) in changes else "",
                lines=list(_change_lines(event, step.detail, reviews)),
                code=event.action,
            )
            for event, step in zip(events, build_entries(events), strict=True)
        ]

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
    """Return the numbers of changes whose run has an item or a reassignment of the broker, topic or group; of each."""
    found: list[set[int]] = []
    if scope.topic:
        moves = Move.objects.filter(execution__cluster=scope.cluster_id, topic=scope.topic)
        moved = set(moves.values_list("execution__request_id", flat=True).distinct())
        about = Q(content__contains={"topic": scope.topic}) | _with_owner(ThrottledResource.TOPIC, scope.topic)
        found.append(moved | _find_with_items(scope, about))
    if scope.group_key:
        found.append(_find_with_items(scope, Q(content__contains={"group": scope.group})))
    if scope.broker is not None:
        owners = ReassignmentSnapshot.objects.filter(_moves_of_broker(scope.broker), cluster=scope.cluster_id)
        moved = {
            int(owner[1:])
            for owner in owners.exclude(claimed_by="").values_list("claimed_by", flat=True).distinct()
            if owner[1:].isdecimal()
        }
        about = Q(content__contains={"broker": scope.broker}) | _with_owner(ThrottledResource.BROKER, str(scope.broker))
        found.append(moved | _find_with_items(scope, about))
    return set.intersection(*found)


def _find_with_items(scope: TimelineScope, about: Q) -> set[int]:
    items = ShortItem.objects.filter(about, run__cluster=scope.cluster_id)
    return set(items.order_by().values_list("run__request_id", flat=True).distinct())


def _with_owner(resource: ThrottledResource, name: str) -> Q:
    """Return the condition that an item is a config or a throttle of the topic or broker."""
    kind = resource.value
    return Q(content__contains={"of": kind, "name": name}) | Q(content__contains={"resource": kind, "name": name})


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
_READ_TIME = attrgetter("at")


class MoveFold(NamedTuple):
    """Reassignments of one owner that began, or ended with the same outcome, in one interval.

    ``at``: the first begin, or the last end. ``how``: the outcome, '' of begins. ``one``: the row, where it is one.
    A tuple, because 90 days have thousands; as tuples they are in the order of the timeline.
    """

    at: datetime
    owner: str
    url: str
    slot: int
    how: str
    not_before: datetime | None
    last: datetime
    number: int
    one: int

    def merge(self, other: MoveFold) -> MoveFold:
        """Return both as one."""
        known = [moment for moment in (self.not_before, other.not_before) if moment is not None]
        return self._replace(
            not_before=min(known, default=None),
            at=max(self.at, other.at) if self.how else min(self.at, other.at),
            last=max(self.last, other.last),
            number=self.number + other.number,
            one=min(self.one, other.one),
        )


class StoredReassignments:
    """Reassignments that began or ended: those of a run are one entry, those of others one for each short interval."""

    def read_span(self, scope: TimelineScope, span: TimeSpan) -> Sequence[SourceReading]:
        folds = [] if scope.group_key else sorted(self._fold(scope, span))  # the same order for each page
        edges = [bisect_left(folds, moment, key=_READ_TIME) for moment in [*span.list_begins(), span.end]]
        counts = [
            KindCount(bucket, EntryKind.MOVES, after - before)
            for bucket, (before, after) in enumerate(pairwise(edges))
            if after > before
        ]

        def read_places(wanted: PlaceRange) -> Iterator[EntryPlace]:
            ends = (wanted.part.begin, wanted.part.end)
            oldest, end = (bisect_left(folds, moment, key=_READ_TIME) for moment in ends)
            newest = max(oldest, end - wanted.skipped)
            listed = folds[max(oldest, newest - wanted.most) : newest]
            return (EntryPlace(fold.at, self, fold) for fold in reversed(listed))

        return [SourceReading(counts, read_places if scope.wants(EntryKind.MOVES) else _read_nothing)]

    def describe_entries(self, scope: TimelineScope, places: Sequence[EntryPlace]) -> Sequence[TimelineEntry]:
        alone = [place.ref.one for place in places if place.ref.number == 1]
        rows = ReassignmentSnapshot.objects.filter(pk__in=alone) if alone else ReassignmentSnapshot.objects.none()
        names = {pk: f"{topic}-{number}" for pk, topic, number in rows.values_list("pk", "topic", "partition")}
        return [self._describe(place.ref, scope, names.get(place.ref.one, "")) for place in places]

    def _fold(self, scope: TimelineScope, span: TimeSpan) -> Iterable[MoveFold]:
        """Fold begins and ends by owner, interval and outcome. One pass over the rows, which are many and wide."""
        began = _within("started_before", span)
        ended = _within("ended_at", span) & Q(outcome__in=list(_ENDED))
        rows = ReassignmentSnapshot.objects.filter(began | ended, cluster=scope.cluster_id)
        if scope.topic:
            rows = rows.filter(topic=scope.topic)
        if scope.broker is not None:
            rows = rows.filter(_moves_of_broker(scope.broker))
        groups = rows.annotate(
            begin_slot=self._slot("started_before", began, span), end_slot=self._slot("ended_at", ended, span)
        ).order_by()
        folds: dict[tuple[str, str, int, str], MoveFold] = {}
        for owner, url, begin_slot, end_slot, how, after, begun, last_begun, first_ended, ended_at, one, number in (
            groups.values_list("claimed_by", "claim_url", "begin_slot", "end_slot", "outcome").annotate(
                Min("started_after"), Min("started_before"), Max("started_before"), Min("ended_at"), Max("ended_at"),
                Min("pk"), number=Count("*"),
            )
        ):  # fmt: skip
            if begin_slot is not None:
                key = owner, url, begin_slot, ""
                fold, known = MoveFold(begun, *key, after, last_begun, number, one), folds.get(key)
                folds[key] = fold if known is None else fold.merge(known)
            if end_slot is not None:
                key = owner, url, end_slot, how
                fold, known = MoveFold(ended_at, *key, first_ended, ended_at, number, one), folds.get(key)
                folds[key] = fold if known is None else fold.merge(known)
        return folds.values()

    def _slot(self, field: str, counts: Q, span: TimeSpan) -> Case:
        """Return the interval of a begin or end; 0 of one that a run owns, null of one that does not count."""
        of_others = When(counts, claimed_by="", then=_bucket(field, span, _MOVE_SLOTS))
        return Case(of_others, When(counts, then=Value(0)), default=None, output_field=IntegerField())

    def _describe(self, fold: MoveFold, scope: TimelineScope, name: str) -> TimelineEntry:
        owner, how = fold.owner, fold.how
        about = f" of {name}" if name else f" of topic {scope.topic}" if scope.topic else ""
        params = {"count": fold.number, "about": about}
        if how:
            message = coded(_ENDED[how], **params, owner=f"change {owner}" if owner else OTHERS)
        elif owner:
            message = coded(TimelineCode.MOVES_STARTED_BY_RUN, **params, owner=owner)
        else:
            message = coded(TimelineCode.MOVES_STARTED, **params)
        not_before, last = fold.not_before, fold.last
        return TimelineEntry(
            key=f"moves-{owner.lstrip('#')}-{fold.slot}-{how}",
            kind=EntryKind.MOVES,
            at=fold.at,
            not_before=not_before if not_before and not_before < fold.at else None,
            message=message,
            source="kafkadash" if owner and not how else "reassignments",
            count=fold.number,
            lines=[EntryLine(what="until", after=f"{last:%Y-%m-%d %H:%M:%S} UTC")] if last > fold.at else (),
            url=fold.url or reverse("monitoring:reassignments", args=[scope.slug]),
            code=str(message.code),
        )


class MaintenancePeriods:
    """Maintenance windows and silences that began or ended. Of a broker, windows of it, its rack, and the cluster."""

    _ENDS: Sequence[str] = ("begins_at", "ends_at")

    def read_span(self, scope: TimelineScope, span: TimeSpan) -> Sequence[SourceReading]:
        return [
            _read_moments(self, EntryKind.MAINTENANCE, field, self._rows(scope, span, field), scope, span)
            for field in self._ENDS
        ]

    def describe_entries(self, scope: TimelineScope, places: Sequence[EntryPlace]) -> Sequence[TimelineEntry]:
        rows = QuietPeriod.objects.in_bulk({place.ref for place in places})
        return [self._describe(rows[place.ref], place.step, scope) for place in places if place.ref in rows]

    def _rows(self, scope: TimelineScope, span: TimeSpan, field: str) -> QuerySet[QuietPeriod]:
        # A planned begin or end has not happened.
        rows = QuietPeriod.objects.filter(
            _within(field, span), **{f"{field}__lte": timezone.now()}, cluster=scope.cluster_id
        )
        if scope.topic:
            return rows.none()
        if scope.group_key:
            return rows.filter(purpose=QuietPurpose.SILENCE, subject__in=(scope.group, scope.group_key))
        if scope.broker is not None:
            known = BrokerState.objects.filter(cluster=scope.cluster_id, broker_id=scope.broker, rack__isnull=False)
            windows = Q(broker=None, rack=None) | Q(broker=scope.broker) | Q(rack__in=known.values("rack"))
            silences = Q(purpose=QuietPurpose.SILENCE, subject=str(scope.broker))
            rows = rows.filter(silences | (windows & Q(purpose=QuietPurpose.MAINTENANCE)))
        return rows

    def _describe(self, row: QuietPeriod, field: str, scope: TimelineScope) -> TimelineEntry:
        begins = field == "begins_at"
        if row.is_silence:
            kind = stored_kind(row.kind).about.name if row.kind else "All kinds"
            what = ": ".join(part for part in (kind, row.subject) if part)
            code = TimelineCode.SILENCE_BEGAN if begins else TimelineCode.SILENCE_ENDED
        else:
            what = row.about or "the cluster"
            code = TimelineCode.MAINTENANCE_BEGAN if begins else TimelineCode.MAINTENANCE_ENDED
        lines = [EntryLine(what="reason", after=row.reason)] if begins else []
        if row.ended_by and not begins:
            lines.append(EntryLine(what="ended early by", after=row.ended_by))
        return TimelineEntry(
            key=f"{field}-{row.pk}",
            kind=EntryKind.MAINTENANCE,
            at=row.begins_at if begins else row.ends_at,
            message=coded(code, what=what, person=row.author_name),
            source="kafkadash",
            state=HealthState.MAINTENANCE.value,
            url=f"{reverse('maintenance:maintenance', args=[scope.slug])}#period-{row.pk}",
            lines=lines,
            code=code.value,
        )


SOURCES: Sequence[TimelineSource] = (
    CollectorEvents(),
    StoredFindings(),
    ChangeSteps(),
    StoredReassignments(),
    MaintenancePeriods(),
)


@dataclass(frozen=True, slots=True)
class TimelineReading:
    """Reading of a span: the number of all entries, and those of a page."""

    scope: TimelineScope
    span: TimeSpan
    readings: Sequence[SourceReading]

    @property
    def counts(self) -> list[KindCount]:
        """Number of entries by kind and interval, of all kinds."""
        return [count for reading in self.readings for count in reading.counts]

    def list_entries(self, begin: int, end: int) -> list[TimelineEntry]:
        """Return the entries of these places, newest first. A source reads those of its own at once."""
        places = self._read_places(begin, end)
        entries = [
            entry
            for source in SOURCES
            if (own := [place for place in places if place.source is source])
            for entry in source.describe_entries(self.scope, own)
        ]
        return sorted(entries, key=lambda entry: (entry.at, entry.key), reverse=True)

    def _read_places(self, begin: int, end: int) -> list[EntryPlace]:
        """Return the places of these entries, newest first. The counts tell which others are not read."""
        oldest, newest, newer = self._find_intervals(begin, end)
        begins = [*self.span.list_begins(), self.span.end]
        part = TimeSpan(begins[oldest], begins[newest + 1])
        first, last = begin - newer, end - newer
        counted = [reading.count_listed(self.scope.kinds, oldest, newest) for reading in self.readings]
        total = sum(counted)
        found: list[EntryPlace] = []
        left_out = 0
        for reading, own in zip(self.readings, counted, strict=True):
            others = total - own
            # Even if all entries of the others are newer than the page, this many of its own are newer too.
            skipped = min(own, max(0, first - others))
            if own > skipped:
                found += reading.read_places(PlaceRange(part, skipped, last - skipped))
            left_out += skipped
        found.sort(key=_READ_TIME, reverse=True)
        return found[first - left_out : last - left_out]

    def _find_intervals(self, begin: int, end: int) -> tuple[int, int, int]:
        """Return the oldest and the newest interval that have these entries, and how many listed ones are newer."""
        listed: Counter[int] = Counter()
        for count in self.counts:
            if count.kind in self.scope.kinds:
                listed[count.bucket] += count.count
        newest = BUCKETS - 1
        newer = 0
        while newest > 0 and newer + listed[newest] <= begin:
            newer += listed[newest]
            newest -= 1
        oldest, known = newest, newer + listed[newest]
        while oldest > 0 and known < end:
            oldest -= 1
            known += listed[oldest]
        return oldest, newest, newer


def read_timeline(scope: TimelineScope, span: TimeSpan) -> TimelineReading:
    """Count the entries of all sources; each reads those of a page when that is asked for."""
    return TimelineReading(scope, span, [reading for source in SOURCES for reading in source.read_span(scope, span)])
