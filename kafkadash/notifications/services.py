"""Receivers and routes as administrators change them; each change and its audit event in one transaction."""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.accounts.services import record
from kafkadash.core.errors import FieldRefused
from kafkadash.notifications.apprise_services import ServiceRefused, check_service_url
from kafkadash.notifications.errors import DeliveryErrorCode
from kafkadash.notifications.guarded_http import DeliveryFailed, Network, check_literal_host, is_plain_url
from kafkadash.notifications.models import NotificationRoute, NotificationTarget, TargetKind
from kafkadash.notifications.rules import SentChanges

_ROUTING_KEY = re.compile(r"[0-9A-Za-z]{32}")
_SLACK_HOSTS = ("hooks.slack.com", "hooks.slack-gov.com")


class ReceiverRefused(FieldRefused):
    """A receiver or a route stays as it is."""


def check_address(kind: str, address: str) -> str:
    """Return the part of an address that may be shown. Raises ReceiverRefused.

    A URL of a chat service contains its secret: only its host is shown.
    """
    match kind:
        case TargetKind.PAGERDUTY:
            if not _ROUTING_KEY.fullmatch(address):
                raise ReceiverRefused("address", DeliveryErrorCode.KEY_WRONG)
            return f"key …{address[-4:]}"
        case TargetKind.EMAIL:
            return _check_mail(address)
        case TargetKind.APPRISE:
            return _check_service(address)
        case _:
            return _check_url(kind, address)


def _check_mail(address: str) -> str:
    if not settings.EMAIL_FROM:
        raise ReceiverRefused("address", DeliveryErrorCode.MAIL_NOT_SET)
    parts = [part.strip() for part in address.split(",") if part.strip()]
    for part in parts or [""]:
        try:
            validate_email(part)
        except ValidationError:
            raise ReceiverRefused("address", DeliveryErrorCode.MAIL_WRONG, address=part[:80]) from None
    return ", ".join(parts)[:255]


def _check_service(address: str) -> str:
    try:
        return check_service_url(address)
    except ServiceRefused as refused:
        raise ReceiverRefused("address", refused.message) from None


def _check_url(kind: str, address: str) -> str:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ReceiverRefused("address", DeliveryErrorCode.URL_WRONG) from None
    usable = parts.scheme in ("http", "https") and host and is_plain_url(address)
    if not usable or "@" in parts.netloc or parts.fragment:
        raise ReceiverRefused("address", DeliveryErrorCode.URL_WRONG)
    _check_host(address)
    if parts.scheme == "http" and not settings.NOTIFICATION_NETWORKS:
        raise ReceiverRefused("address", DeliveryErrorCode.URL_UNENCRYPTED)
    if kind == TargetKind.SLACK and host not in _SLACK_HOSTS and not _is_own_network(host):
        raise ReceiverRefused("address", DeliveryErrorCode.URL_OF_SERVICE, host=host, service="Slack")
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}/…"


def _check_host(address: str) -> None:
    """Refuse a host that a try could not reach whatever a name server answers."""
    try:
        check_literal_host(address, _allowed_networks())
    except DeliveryFailed as refused:
        raise ReceiverRefused("address", refused.message) from None
    except httpx.InvalidURL:
        raise ReceiverRefused("address", DeliveryErrorCode.URL_WRONG) from None


def _is_own_network(host: str) -> bool:
    """Return whether the host is an address in ``NOTIFICATION_NETWORKS``, such as a proxy of one's own."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(address in network for network in _allowed_networks())


def _allowed_networks() -> list[Network]:
    return [ipaddress.ip_network(text) for text in settings.NOTIFICATION_NETWORKS]


def add_target(user: User, name: str, kind: TargetKind, address: str, request: HttpRequest) -> NotificationTarget:
    """Store a receiver with one route of all findings, and a new key if webhooks to it are signed.

    Raises ReceiverRefused, and SecretError without usable keys.
    """
    shown = check_address(kind, address)
    key = secrets.token_urlsafe(32) if kind is TargetKind.WEBHOOK else ""
    try:
        with transaction.atomic():
            target = NotificationTarget.objects.create(name=name, kind=kind, address=address, shown=shown, secret=key)
            NotificationRoute.objects.create(target=target)
            _record(user, "receiver.added", target, request, after={"name": name, "kind": kind.value, "to": shown})
    except IntegrityError:
        raise ReceiverRefused("name", DeliveryErrorCode.NAME_TAKEN, name=name) from None
    return target


def change_target(
    target: NotificationTarget, user: User, *, name: str, address: str, enabled: bool, request: HttpRequest
) -> None:
    """Store name, address (as it is where empty) and whether messages are sent. Raises ReceiverRefused, SecretError."""
    before = {"name": target.name, "to": target.shown, "enabled": target.enabled}
    shown = check_address(target.kind, address) if address else target.shown
    after = {"name": name, "to": shown, "enabled": enabled}
    try:
        with transaction.atomic():
            row = NotificationTarget.objects.select_for_update(no_key=True).get(pk=target.pk)
            row.name, row.shown, row.enabled = name, shown, enabled
            columns = ["name", "shown", "enabled"]
            if address:
                row.address = address
                columns.append("address")
            row.save(update_fields=columns)
            if before != after or address:
                _record(user, "receiver.changed", row, request, before=before, after=after)
    except IntegrityError:
        raise ReceiverRefused("name", DeliveryErrorCode.NAME_TAKEN, name=name) from None
    except NotificationTarget.DoesNotExist:
        raise ReceiverRefused("", DeliveryErrorCode.TARGET_GONE) from None


def remove_target(target: NotificationTarget, user: User, request: HttpRequest) -> None:
    """Delete the receiver with its routes and its list of deliveries."""
    with transaction.atomic():
        _record(user, "receiver.removed", target, request, before={"name": target.name, "to": target.shown})
        target.delete()


def renew_key(target: NotificationTarget, user: User, request: HttpRequest) -> str:
    """Store another key for signatures, and return it; it is shown once."""
    key = secrets.token_urlsafe(32)
    with transaction.atomic():
        target.secret = key
        target.save(update_fields=["secret"])
        _record(user, "receiver.key_renewed", target, request)
    return key


def add_route(target: NotificationTarget, user: User, values: Mapping[str, Any], request: HttpRequest) -> None:
    """Store a route with these columns. Raises ReceiverRefused."""
    sends_changes = values["changes"] != SentChanges.NONE
    if not (values["findings"] or sends_changes):
        raise ReceiverRefused("findings", DeliveryErrorCode.NOTHING_SENT)
    if sends_changes and target.kind == TargetKind.PAGERDUTY:
        raise ReceiverRefused("changes", DeliveryErrorCode.FINDINGS_ONLY)
    with transaction.atomic():
        route = NotificationRoute.objects.create(target=target, **values)
        _record(user, "receiver.route_added", target, request, after=_describe_route(route))


def remove_route(route: NotificationRoute, user: User, request: HttpRequest) -> None:
    with transaction.atomic():
        _record(user, "receiver.route_removed", route.target, request, before=_describe_route(route))
        route.delete()


def _describe_route(route: NotificationRoute) -> dict[str, Any]:
    return {
        "cluster": route.cluster.slug if route.cluster else "all",
        "findings": route.findings,
        "changes": route.changes,
        "severity": route.severity,
        "kinds": list(route.kinds),
        "hours": f"{route.begins:%H:%M}-{route.ends:%H:%M} {route.time_zone}",
        "weekdays": list(route.weekdays),
    }


def _record(
    user: User,
    action: str,
    target: NotificationTarget,
    request: HttpRequest,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    record(user, action, ("receiver", str(target.pk)), before=before, after=after, request=request)
