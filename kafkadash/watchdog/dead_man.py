"""Ping of the dead-man URL: a service elsewhere raises the alarm when pings stop."""

from __future__ import annotations

import ipaddress

import structlog
from django.conf import settings

from kafkadash.notifications.guarded_http import DeliveryFailed, post
from kafkadash.watchdog.rounds import record_round, take_turn
from kafkadash.watchdog.rules import DEAD_MAN

log = structlog.get_logger(__name__)

SECONDS = 10.0
"""Longest time of one ping."""


def ping_dead_man() -> bool:
    """Send a ping if one is due; return whether one was accepted. The URL is a secret, and never logged."""
    if not settings.DEAD_MAN_URL or not take_turn(DEAD_MAN):
        return False
    networks = [ipaddress.ip_network(text) for text in settings.NOTIFICATION_NETWORKS]
    try:
        post(settings.DEAD_MAN_URL, b"{}", {}, networks=networks, seconds=SECONDS)
    except DeliveryFailed as refused:
        log.warning("watchdog.ping_failed", code=refused.code)
        return False
    record_round(DEAD_MAN)
    return True
