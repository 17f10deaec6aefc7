"""Sessions of people: which there are, and the end of those that nobody uses any more."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.signals import user_logged_in
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin

from kafkadash.accounts.audit import record
from kafkadash.accounts.models import User

# A process asks the database at most so often whether a session was idle, and notes its use as often, in seconds.
NOTED_EVERY_S = 60.0
MOST_NOTED = 10_000
_noted: dict[str, float] = {}


def is_in_use(session_key: str) -> bool:
    """Note that somebody uses the session now; False where nobody had for ``SESSION_IDLE_SECONDS``.

    An open page uses it too, through its socket: whoever watches during an incident is not signed out.
    """
    if time.monotonic() - _noted.get(session_key, float("-inf")) < NOTED_EVERY_S:
        return True
    now = timezone.now()
    rows = UserSession.objects.filter(session_key=session_key)
    seen = rows.values_list("last_seen_at", flat=True).first()
    if seen is not None and now - seen > timedelta(seconds=settings.SESSION_IDLE_SECONDS):
        return False
    rows.update(last_seen_at=now)
    note_use(session_key)
    return True


class IdleSessions(MiddlewareMixin):
    """Signs out whoever comes back to a session that was idle for too long."""

    def process_view(self, request: HttpRequest, view: Callable[..., Any], *_: Any) -> None:
        if not getattr(view, "login_required", True):
            return
        user, key = request.user, request.session.session_key
        if isinstance(user, User) and key is not None and not is_in_use(key):
            with transaction.atomic():
                record(user, "user.signed_out", user, reason="The session was idle for too long.", request=request)
                UserSession.objects.filter(session_key=key).delete()
                logout(request)


def own_sessions(user: User) -> list[UserSession]:
    """The sessions of this person that are valid, the one used last first."""
    return sorted(UserSession.objects.purge_and_list(user), key=lambda row: row.last_seen_at, reverse=True)


def end_sessions(user: User, rows: list[UserSession], request: HttpRequest) -> None:
    """End these sessions. Their sockets close at once, as the rows are deleted."""
    if not rows:
        return
    with transaction.atomic():
        for row in rows:
            row.end()
        record(user, "user.sessions_ended", user, after={"sessions": len(rows)}, request=request)


def forget_expired(now: datetime) -> int:
    """Rows about sessions that are over by their age; returns how many."""
    over = now - timedelta(seconds=settings.SESSION_COOKIE_AGE)
    return int(UserSession.objects.filter(created_at__lt=over).delete()[0])


def note_use(session_key: str) -> None:
    """Note that the session is used now, so that the database is not asked for a minute."""
    if len(_noted) >= MOST_NOTED:
        _noted.clear()
    _noted[session_key] = time.monotonic()


def _signed_in(request: HttpRequest, **_: Any) -> None:
    if request.session.session_key is not None:
        note_use(request.session.session_key)


def connect() -> None:
    user_logged_in.connect(_signed_in, dispatch_uid="accounts.sessions")
