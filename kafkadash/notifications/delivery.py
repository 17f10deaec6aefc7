"""Delivery: one worker at a time sends the messages of a target, oldest first, at least once each.

A worker that dies between the receiver's answer and its row sends that message again, with the same id.
"""

from __future__ import annotations

import ipaddress
import smtplib
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Coalesce
from django.urls import reverse

from kafkadash.accounts.models import User
from kafkadash.clusters.secrets import SecretError
from kafkadash.core import leases
from kafkadash.core.messages import CodedMessage, coded, first_names, message_columns, message_part
from kafkadash.notifications.apprise_services import send_to_service
from kafkadash.notifications.errors import DeliveryErrorCode, NotificationCode
from kafkadash.notifications.guarded_http import DeliveryFailed, ReceiverAnswer, clean_answer, post
from kafkadash.notifications.mail import MAIL_SECONDS, AddressesRefused
from kafkadash.notifications.models import (
    EventStep,
    EventSubject,
    MessageState,
    NotificationEvent,
    NotificationItem,
    NotificationMessage,
    NotificationTarget,
    TargetKind,
)
from kafkadash.notifications.payloads import (
    ConsequenceContent,
    EventContent,
    MessageContent,
    write_mail,
    write_pagerduty,
    write_slack,
    write_teams,
    write_webhook,
)
from kafkadash.notifications.routing import list_first_items, new_message_id

log = structlog.get_logger(__name__)

TARGETS = leases.LeasedTable(NotificationTarget._meta.db_table, "seq")
SECONDS = 10.0
"""Longest time of one try by HTTP."""
TURN_S = 15.0
"""Time after which a worker takes no further message, so that other work gets its thread."""
LONGEST_PAUSE_S = 60.0
LONGEST_ASKED_S = 300.0
"""Longest pause that a receiver may ask for (Retry-After)."""
GIVEN_UP_AFTER = timedelta(hours=24)
MOST_FAULTS = 5
"""Tries after which a message is given up that kafkadash itself cannot send: the later ones wait for it."""
_OPEN_STATES = (MessageState.HELD, MessageState.WAITING)


def claim_due(limit: int = 50, hold_s: float = 10) -> list[int]:
    """Targets with a message that is due, those that wait longest, marked so that they are handed out once."""
    states = ", ".join(f"'{state.value}'" for state in _OPEN_STATES)
    due = (
        f"SELECT FROM {NotificationMessage._meta.db_table} m WHERE m.target_id = r.id AND m.state IN ({states})"
        " AND m.send_at <= clock_timestamp() AND (r.enabled OR m.is_test)"
    )
    return leases.claim(TARGETS, f"WHERE EXISTS ({due})", limit, hold_s)


def hand_back(ids: list[int]) -> None:
    """Remove the mark of ``claim_due``."""
    leases.unclaim(TARGETS, ids)


def deliver(target_id: int) -> int:
    """Send what is due to a target, until a try fails or ``TURN_S`` have passed; return how many were accepted.

    Nothing is done where another worker is at it, or a pause after a failure is not over.
    """
    lease = leases.take(target_id, of=TARGETS)
    if lease is None:
        return 0
    began, sent = time.monotonic(), 0
    try:
        target = NotificationTarget.objects.get(pk=target_id)
        while time.monotonic() - began < TURN_S:
            message = _take_next(target, lease.now())
            if message is None:
                break
            lease.keep(SECONDS + MAIL_SECONDS)
            events = list(message.events.select_related("cluster").order_by("pk"))
            if not events:
                _give_up_empty(lease, message)
                continue
            if not _try_message(lease, target, message, events):
                break
            sent += 1
    except leases.LeaseLost:
        return sent
    finally:
        lease.give_back()
    return sent


def queue_test(target: NotificationTarget, person: User, now: datetime) -> NotificationMessage:
    """Store a test message to this target; it is sent within a second, also where the target is disabled."""
    words = coded(NotificationCode.TEST, target=target.name, person=person.get_username())
    with transaction.atomic():
        event = NotificationEvent.objects.create(
            subject=EventSubject.TEST,
            subject_id=str(target.pk),
            step=EventStep.TESTED,
            occurred_at=now,
            routed=True,
            **message_columns(words, "message"),
        )
        message = NotificationMessage.objects.create(
            target=target, public_id=new_message_id(), is_test=True, created_at=now, send_at=now
        )
        NotificationItem.objects.create(delivery=message, event=event, target=target)
        NotificationTarget.objects.filter(pk=target.pk).update(next_at=now)
    return message


def forget_old(now: datetime) -> int:
    """Delete messages and events that are older than ``KEEP_NOTIFICATIONS_HOURS``; return how many messages.

    A message that told of a finding stays until the finding has been closed for so long: by it, the closing finds its
    receivers. What waits for a disabled target is given up as what its receiver does not accept.
    """
    waiting = NotificationMessage.objects.filter(state__in=_OPEN_STATES, created_at__lt=now - GIVEN_UP_AFTER)
    waiting.filter(target__enabled=False).update(state=MessageState.GIVEN_UP, ended_at=now)
    before = now - timedelta(hours=settings.KEEP_NOTIFICATIONS_HOURS)
    findings = Q(event__subject=EventSubject.FINDING)
    closings = NotificationEvent.objects.filter(subject=EventSubject.FINDING, step=EventStep.CLOSED)
    over = closings.filter(subject_id=OuterRef("event__subject_id"), recorded_at__lt=before)
    told = NotificationItem.objects.filter(findings, ~Exists(over), delivery=OuterRef("pk"))
    old = NotificationMessage.objects.filter(~Exists(told), created_at__lt=before).exclude(state__in=_OPEN_STATES)
    _, by_model = old.delete()
    # The closing of a finding stays with those of the others that one message told of.
    kept = NotificationItem.objects.filter(findings, event__subject_id=OuterRef("subject_id"))
    closes = Q(subject=EventSubject.FINDING, step=EventStep.CLOSED)
    events = NotificationEvent.objects.filter(recorded_at__lt=before, routed=True, items=None)
    events.exclude(closes & Exists(kept)).delete()
    return by_model.get(NotificationMessage._meta.label, 0)


def _take_next(target: NotificationTarget, now: datetime) -> NotificationMessage | None:
    """Return the oldest message that is due. A digest that was held takes no more events from then on."""
    due = target.messages.filter(state__in=_OPEN_STATES, send_at__lte=now).order_by("send_at", "pk")
    if not target.enabled:
        due = due.filter(is_test=True)
    with transaction.atomic():
        message = due.select_for_update(no_key=True).first()
        if message is not None and message.state == MessageState.HELD:
            message.state = MessageState.WAITING
            message.save(update_fields=["state"])
    return message


def _give_up_empty(lease: leases.RowLease, message: NotificationMessage) -> None:
    """End a message whose events went with a cluster that was removed, so that the later ones are sent."""
    with lease.write():
        NotificationMessage.objects.filter(pk=message.pk).update(state=MessageState.GIVEN_UP, ended_at=lease.now())
    log.info("notifications.message_empty", message=message.public_id)


def _try_message(
    lease: leases.RowLease,
    target: NotificationTarget,
    message: NotificationMessage,
    events: Sequence[NotificationEvent],
) -> bool:
    began, at = time.monotonic(), lease.now()
    try:
        answer = _send(target, message, events, at)
    except SecretError as error:
        failed = DeliveryFailed(error.message)
    except DeliveryFailed as refused:
        failed = refused
    except Exception:
        # Recorded like any other failure: unrecorded, it would be tried again every second.
        log.exception("notifications.fault", target=target.name, message=message.public_id)
        failed = DeliveryFailed(coded(DeliveryErrorCode.FAULT))
    else:
        _record_accepted(lease, target, message, answer, began)
        return True
    log.warning("notifications.try_failed", target=target.name, message=message.public_id, code=failed.code)
    _record_failed(lease, target, message, failed, began)
    return False


def _record_accepted(
    lease: leases.RowLease,
    target: NotificationTarget,
    message: NotificationMessage,
    answer: ReceiverAnswer,
    began: float,
) -> None:
    now = lease.now()
    with lease.write():
        NotificationMessage.objects.filter(pk=message.pk).update(
            state=MessageState.SENT,
            ended_at=now,
            status=answer.status,
            answer=answer.text,
            **message_columns(answer.lacking, "error"),
            **_try_columns(now, began),
        )
        failing: dict[str, object] = {"failing_since": None, "failures": 0}
        if answer.lacking is not None:
            failing = _failing_columns(now)
        NotificationTarget.objects.filter(pk=target.pk).update(last_sent_at=now, **failing)


def _record_failed(
    lease: leases.RowLease,
    target: NotificationTarget,
    message: NotificationMessage,
    failed: DeliveryFailed,
    began: float,
) -> None:
    now = lease.now()
    state, ended_at = MessageState.WAITING, None
    last_fault = _is_last_fault(message, failed)
    if failed.final:
        state, ended_at = MessageState.REFUSED, now
    elif last_fault or now - message.created_at > GIVEN_UP_AFTER:
        state, ended_at = MessageState.GIVEN_UP, now
    # Failures of other messages before it make no pause longer.
    own_pause_s = min(2.0 ** min(message.tries, 10), LONGEST_PAUSE_S)
    pause_s = max(own_pause_s, min(failed.retry_after_s, LONGEST_ASKED_S))
    with lease.write():
        NotificationMessage.objects.filter(pk=message.pk).update(
            state=state,
            ended_at=ended_at,
            status=failed.status,
            answer=failed.answer,
            **message_columns(failed.message, "error"),
            **_try_columns(now, began),
        )
        NotificationTarget.objects.filter(pk=target.pk).update(
            next_at=now + timedelta(seconds=0 if failed.final or last_fault else pause_s),
            **_failing_columns(now),
        )


def _failing_columns(now: datetime) -> dict[str, object]:
    return {"failing_since": Coalesce("failing_since", now), "failures": F("failures") + 1}


def _is_last_fault(message: NotificationMessage, failed: DeliveryFailed) -> bool:
    """Return whether the try was one of ``MOST_FAULTS``, and failed by a fault of ours like the one before it."""
    again = failed.code == message.error_code == DeliveryErrorCode.FAULT
    return again and message.tries + 1 >= MOST_FAULTS


def _try_columns(now: datetime, began: float) -> dict[str, object]:
    return {"tries": F("tries") + 1, "tried_at": now, "took_ms": round(1000 * (time.monotonic() - began))}


def _send(
    target: NotificationTarget, message: NotificationMessage, events: Sequence[NotificationEvent], now: datetime
) -> ReceiverAnswer:
    """Send in the format of the target's kind. Raises DeliveryFailed and SecretError."""
    content = build_content(message, events)
    headers: dict[str, str] = {}
    url = target.address
    match target.kind:
        case TargetKind.WEBHOOK:
            body, headers = write_webhook(content, target.secret, now)
        case TargetKind.SLACK:
            body = write_slack(content)
        case TargetKind.TEAMS:
            body = write_teams(content)
        case TargetKind.PAGERDUTY:
            body = write_pagerduty(content, target.address, _find_incident(target, message, events))
            url = settings.PAGERDUTY_URL
        case TargetKind.APPRISE:
            return send_to_service(target.address, content)
        case _:
            return _send_mail(target, content)
    networks = [ipaddress.ip_network(text) for text in settings.NOTIFICATION_NETWORKS]
    secrets = [target.address, target.secret]
    return post(url, body, headers, networks=networks, seconds=SECONDS, secrets=secrets)


def _send_mail(target: NotificationTarget, content: MessageContent) -> ReceiverAnswer:
    subject, body = write_mail(content)
    host = settings.EMAIL_FROM.rpartition("@")[2].strip(">") or "kafkadash"
    mail = EmailMessage(
        subject,
        body,
        settings.EMAIL_FROM,
        [each.strip() for each in target.address.split(",")],
        headers={"Message-ID": f"<{content.message_id}@{host}>", "Auto-Submitted": "auto-generated"},
    )
    try:
        mail.send()
    except AddressesRefused as refused:
        # Tried again, it would be sent to the others again.
        addresses, detail = first_names(list(refused.answers)), _join_answers(refused.answers)
        lacking = coded(DeliveryErrorCode.ADDRESSES_REFUSED, addresses=addresses, detail=detail)
        return ReceiverAnswer(None, "", lacking)
    except OSError as error:  # SMTPException is one
        raise DeliveryFailed(coded(DeliveryErrorCode.MAIL_FAILED, detail=_describe_mail_failure(error))) from error
    return ReceiverAnswer(None, "")


def _describe_mail_failure(error: OSError) -> str:
    """Return what the mail server answered, or why there is no answer."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return _join_answers(error.recipients)
    if not isinstance(error, smtplib.SMTPResponseException):
        return error.strerror or type(error).__name__
    told = error.smtp_error
    return clean_answer(told if isinstance(told, str) else told.decode("utf-8", "replace"))


def _join_answers(answers: Mapping[str, tuple[int, bytes]]) -> str:
    """Return what a mail server said of addresses, the same words once."""
    return clean_answer("; ".join(dict.fromkeys(told.decode("utf-8", "replace") for _, told in answers.values())))


def _find_incident(
    target: NotificationTarget, message: NotificationMessage, events: Sequence[NotificationEvent]
) -> str:
    """Return PagerDuty's key of the incident: that of the message which told of the finding first.

    One finding's incident has the finding's id, that of a digest the digest's.
    """
    if message.digest:
        return message.public_id
    subject = events[-1].subject_id
    first = list_first_items(target, [subject]).values_list("delivery__public_id", "delivery__digest").first()
    return first[0] if first and first[1] else subject


def build_content(message: NotificationMessage, events: Sequence[NotificationEvent]) -> MessageContent:
    contents = [_event_content(event) for event in events]
    clusters = list(dict.fromkeys(event.cluster for event in events))
    only = clusters[0] if len(clusters) == 1 else None
    path = reverse("findings:overview", args=[only.slug]) if only else reverse("findings:board")
    counts = {
        "events": len(events),
        "opened": sum(event.step in (EventStep.OPENED, EventStep.ESCALATED) for event in events),
        "closed": sum(event.step == EventStep.CLOSED for event in events),
        "clusters": first_names([cluster.name if cluster else "kafkadash" for cluster in clusters]),
    }
    url = contents[0].url if len(contents) == 1 else page_url(path)
    summary = str(coded(NotificationCode.DIGEST, **counts))
    return MessageContent(message.public_id, contents, message.digest, summary, url)


def _event_content(event: NotificationEvent) -> EventContent:
    message = event.message or CodedMessage(event.message_code, event.message_params)
    return EventContent(
        event_id=f"{event.subject_id}:{event.step}:{event.pk}",
        cluster=event.cluster.name if event.cluster else "",
        subject=event.subject,
        subject_id=event.subject_id,
        step=event.step,
        kind=event.kind,
        severity=event.state,
        code=event.message_code,
        title=message_part(message, "title") or message.cause,
        text=str(message),
        url=page_url(event.path),
        runbook_url=page_url(event.runbook),
        occurred_at=event.occurred_at,
        consequences=[_consequence_content(each) for each in (event.consequences or {}).get("first", ())],
        consequence_count=(event.consequences or {}).get("count", 0),
    )


def _consequence_content(stored: Mapping[str, Any]) -> ConsequenceContent:
    message = CodedMessage.from_json({"code": stored["code"], "params": stored["params"]})
    return ConsequenceContent(
        subject_id=stored["id"],
        kind=stored["kind"],
        severity=stored["state"],
        code=stored["code"],
        title=message_part(message, "title") or message.cause,
    )


def page_url(path: str) -> str:
    """Return the address of a page; '' where ``PUBLIC_URL`` is not set."""
    return f"{settings.PUBLIC_URL.rstrip('/')}{path}" if settings.PUBLIC_URL and path else ""
