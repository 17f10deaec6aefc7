"""Fan-out of recorded events: once a second, each becomes part of a message to every receiver with a fitting route."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Count, Max, Q, QuerySet

from kafkadash.notifications.models import (
    CAUSE_MARK,
    EventStep,
    EventSubject,
    MessageState,
    NotificationEvent,
    NotificationItem,
    NotificationMessage,
    NotificationRoute,
    NotificationTarget,
    TargetKind,
)
from kafkadash.notifications.outbox import change_cause
from kafkadash.notifications.rules import STORM_WITHIN, RouteFilter, RouteHours, RouteTraffic, SentChanges

MOST_EVENTS = 5_000
"""Events that are routed in one transaction; the next second takes the others."""

_LOCK = 0x6E6F_7465
"""First half of the advisory lock of routing ("note"); the second is 0."""

_TELLING = (EventStep.OPENED, EventStep.ESCALATED, EventStep.UNACKNOWLEDGED)
"""Steps by which a receiver comes to know of a finding: its closing follows them."""
_LOST_STATES = (MessageState.REFUSED, MessageState.GIVEN_UP)
"""States of messages that are not sent again, although their receiver has not accepted them."""


def filter_of(route: NotificationRoute) -> RouteFilter:
    return RouteFilter(
        cluster=route.cluster_id,
        findings=route.findings,
        changes=SentChanges(route.changes),
        severity=route.severity,
        kinds=frozenset(route.kinds),
        hours=RouteHours(route.time_zone, frozenset(route.weekdays), route.begins, route.ends),
    )


def route_events(now: datetime) -> int:
    """Bind events that wait to messages, in one transaction; return how many there were.

    A closing goes to the receivers that were sent the opening, whatever the hour; where one is disabled, it waits. An
    event of a consequence goes only to those that were not told of its cause, and a finding about a change that failed
    only to those that were not told of its end. Events are left for later until their ``hold_until``.

    While another process routes, nothing is done: a closing would not find an opening that is not committed yet, and a
    storm would become two digests. Takes two queries where none waits.
    """
    with transaction.atomic():
        if not _take_turn():
            return 0
        due = Q(hold_until=None) | Q(hold_until__lte=now)
        waiting = NotificationEvent.objects.filter(due, routed=False).order_by("pk")
        # The removal of a cluster may hold events of it for long.
        events = list(waiting.select_for_update(skip_locked=True, no_key=True)[:MOST_EVENTS])
        if not events:
            return 0
        routes = NotificationRoute.objects.select_related("target").order_by("pk")
        table = _RouteTable.load(list(routes), events, now)
        chosen: dict[NotificationRoute, list[NotificationEvent]] = defaultdict(list)
        # Whoever is told of a cause in this second is not told of its consequences.
        for event in sorted(events, key=lambda each: bool(each.cause)):
            for route in table.choose(event):
                chosen[route].append(event)
        _store_messages(chosen, now)
        NotificationEvent.objects.filter(pk__in=[event.pk for event in events]).update(routed=True)
    return len(events)


def _take_turn() -> bool:
    """Return whether this transaction alone routes until it ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, 0)", [_LOCK])
        return bool(cursor.fetchone()[0])


@dataclass(slots=True)
class _RouteTable:
    """Routes by their targets, and which targets were told of findings and of their causes, also of ends of changes.

    ``informed``: by which route, so that closings follow; ``aware``: without those that did not accept the message.
    """

    filters: Mapping[int, Sequence[tuple[NotificationRoute, RouteFilter]]]
    informed: dict[str, dict[int, NotificationRoute]]
    aware: dict[str, set[int]]
    now: datetime

    @classmethod
    def load(
        cls, routes: Sequence[NotificationRoute], events: Sequence[NotificationEvent], now: datetime
    ) -> _RouteTable:
        filters: dict[int, list[tuple[NotificationRoute, RouteFilter]]] = defaultdict(list)
        for route in routes:
            filters[route.target_id].append((route, filter_of(route)))
        own = [each for each in events if each.subject == EventSubject.FINDING]
        causes = {each.cause for each in own if each.cause}
        subjects = {each.subject_id for each in own} | causes
        told = Q(event__subject=EventSubject.FINDING, event__subject_id__in=subjects, event__step__in=_TELLING)
        if changes := [cause.removeprefix(CAUSE_MARK) for cause in causes if cause.startswith(CAUSE_MARK)]:
            told |= Q(event__subject=EventSubject.CHANGE, event__subject_id__in=changes, event__step=EventStep.ENDED)
        informed: dict[str, dict[int, NotificationRoute]] = defaultdict(dict)
        aware: dict[str, set[int]] = defaultdict(set)
        known = {route.pk: route for route in routes}
        columns = ("event__subject", "event__subject_id", "target_id", "delivery__route_id", "delivery__state")
        for subject, number, target, used, state in NotificationItem.objects.filter(told).values_list(*columns):
            if target in filters:
                name = _name_informed(subject, number)
                informed[name][target] = known.get(used or 0) or filters[target][0][0]
                if state not in _LOST_STATES:
                    aware[name].add(target)
        return cls(filters, informed, aware, now)

    def choose(self, event: NotificationEvent) -> list[NotificationRoute]:
        """Return at most one route of each target, the oldest that fits."""
        if event.subject == EventSubject.FINDING and event.step == EventStep.CLOSED:
            return list(self.informed[event.subject_id].values())
        found = []
        told = self.aware[event.cause] if event.cause else ()
        again = self.aware[event.subject_id] if event.step == EventStep.OPENED else ()
        for target, routes in self.filters.items():
            if target in told or target in again or not routes[0][0].target.enabled:
                continue
            for route, wanted in routes:
                if self._takes(wanted, event):
                    found.append(route)
                    if event.step in (*_TELLING, EventStep.ENDED):
                        name = _name_informed(event.subject, event.subject_id)
                        self.informed[name][target] = route
                        self.aware[name].add(target)
                    break
        return found

    def _takes(self, wanted: RouteFilter, event: NotificationEvent) -> bool:
        if event.subject == EventSubject.FINDING:
            return wanted.takes_finding(event.cluster_id, event.kind, event.state, self.now)
        return wanted.takes_change(event.cluster_id, self.now, waits=event.step == EventStep.WAITING)


def _name_informed(subject: str, subject_id: str) -> str:
    """Return the subject of an event as causes of events name it."""
    return subject_id if subject == EventSubject.FINDING else change_cause(subject_id)


def _store_messages(chosen: Mapping[NotificationRoute, Sequence[NotificationEvent]], now: datetime) -> None:
    targets = {route.target_id for route in chosen}
    digests = NotificationMessage.objects.filter(target__in=targets, state=MessageState.HELD)
    held = list(digests.select_for_update(no_key=True).order_by("pk"))
    holding = _load_holding(held, chosen.values())
    own_digests = {message.route_id: message for message in held}
    traffic = _load_traffic(chosen, now)
    messages: list[NotificationMessage] = []
    items: list[NotificationItem] = []
    for route, taken in chosen.items():
        own_held = own_digests.get(route.pk)
        free = []
        for event in taken:
            if digest := holding.get((route.target_id, event.subject, event.subject_id)):
                items.append(_item(digest, event))
            else:
                free.append(event)
        alone, others = _part_events(route.target, free)
        parts: list[tuple[Sequence[NotificationEvent], datetime | None]] = [([event], None) for event in alone]
        if own_held is not None:
            items += [_item(own_held, event) for event in others]
        elif others:
            digest_at = traffic.get(route.pk, RouteTraffic()).digest_at(len(others), now)
            split = _split_events(route.target, others, digest=digest_at is not None)
            parts += [(part, digest_at) for part in split]
        for part, digest_at in parts:
            message = _build_message(route, now, digest_at)
            messages.append(message)
            items += [_item(message, event) for event in part]
    NotificationMessage.objects.bulk_create(messages)
    NotificationItem.objects.bulk_create(items, batch_size=1_000)


def _load_holding(
    held: Sequence[NotificationMessage], chosen: Iterable[Sequence[NotificationEvent]]
) -> dict[tuple[int, str, str], NotificationMessage]:
    """Return the held digest of each target that tells of the subject of an event already.

    The event is told with it, also where another route takes it or that of the digest was removed: a closing must not
    arrive before its opening.
    """
    if not held:
        return {}
    digests = {message.pk: message for message in held}
    subjects = {event.subject_id for events in chosen for event in events}
    items = NotificationItem.objects.filter(delivery__in=held, event__subject_id__in=subjects)
    rows = items.values_list("delivery_id", "target_id", "event__subject", "event__subject_id")
    return {(target, subject, number): digests[digest] for digest, target, subject, number in rows}


@dataclass(frozen=True, slots=True)
class _FirstDelivery:
    """Message by which a receiver was told of a finding first. In PagerDuty it opened the incident of the finding."""

    number: int
    digest: bool


def _load_first_deliveries(target: NotificationTarget, subjects: Iterable[str]) -> dict[str, _FirstDelivery]:
    rows = list_first_items(target, subjects).values_list("event__subject_id", "delivery_id", "delivery__digest")
    found: dict[str, _FirstDelivery] = {}
    for subject, number, digest in rows:
        found.setdefault(subject, _FirstDelivery(number, digest))
    return found


def list_first_items(target: NotificationTarget, subjects: Iterable[str]) -> QuerySet[NotificationItem]:
    """Return what told a receiver of these findings, oldest first; closings are left out."""
    told = NotificationItem.objects.filter(
        target=target,
        event__subject=EventSubject.FINDING,
        event__subject_id__in=set(subjects),
        event__step__in=_TELLING,
    )
    return told.order_by("pk")


def _part_events(
    target: NotificationTarget, events: Sequence[NotificationEvent]
) -> tuple[list[NotificationEvent], list[NotificationEvent]]:
    """Return events that are sent alone, because PagerDuty has an incident of their finding, and the other events."""
    if target.kind != TargetKind.PAGERDUTY:
        return [], list(events)
    first = _load_first_deliveries(target, (event.subject_id for event in events))
    later = [event for event in events if event.subject_id in first]
    return _drop_early_closings(target, later, first), [event for event in events if event.subject_id not in first]


def _drop_early_closings(
    target: NotificationTarget, events: Sequence[NotificationEvent], first: Mapping[str, _FirstDelivery]
) -> list[NotificationEvent]:
    """Leave out closings that would resolve an incident of PagerDuty too early.

    Findings that a digest opened share one incident: the last one that closes resolves it.
    """
    closed = {event.subject_id for event in events if event.step == EventStep.CLOSED}
    digest_of = {subject: first[subject].number for subject in closed if first[subject].digest}
    if not digest_of:
        return list(events)
    items = NotificationItem.objects.filter(delivery__in=set(digest_of.values()), event__step__in=_TELLING)
    told = _load_first_deliveries(target, items.values_list("event__subject_id", flat=True))
    members: dict[int, set[str]] = defaultdict(set)
    for subject, own in told.items():
        members[own.number].add(subject)
    over = set(
        NotificationEvent.objects.filter(
            subject=EventSubject.FINDING, subject_id__in=told, step=EventStep.CLOSED
        ).values_list("subject_id", flat=True)
    )
    last = {max(own & closed) for own in members.values() if own <= over and own & closed}
    return [
        event
        for event in events
        if event.step != EventStep.CLOSED or event.subject_id not in digest_of or event.subject_id in last
    ]


def _split_events(
    target: NotificationTarget, events: Sequence[NotificationEvent], *, digest: bool
) -> Iterable[Sequence[NotificationEvent]]:
    """Split events into messages. PagerDuty takes one event at a time, because each has an incident of its own."""
    if digest or target.kind != TargetKind.PAGERDUTY:
        return [events]
    return [[event] for event in events]


def _build_message(route: NotificationRoute, now: datetime, digest_at: datetime | None) -> NotificationMessage:
    return NotificationMessage(
        target=route.target,
        route=route,
        public_id=new_message_id(),
        digest=digest_at is not None,
        state=MessageState.HELD if digest_at and digest_at > now else MessageState.WAITING,
        created_at=now,
        send_at=digest_at or now,
    )


def new_message_id() -> str:
    return f"n-{secrets.token_hex(12)}"


def _item(message: NotificationMessage, event: NotificationEvent) -> NotificationItem:
    return NotificationItem(delivery=message, event=event, target=message.target)


def _load_traffic(routes: Iterable[NotificationRoute], now: datetime) -> dict[int, RouteTraffic]:
    rows = (
        NotificationMessage.objects.filter(route__in=list(routes), send_at__gt=now - STORM_WITHIN)
        .values("route_id")
        .annotate(count=Count("items"), newest=Max("send_at"))
    )
    return {row["route_id"]: RouteTraffic(row["count"], row["newest"]) for row in rows}
