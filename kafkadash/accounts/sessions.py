"""User sessions: end idle sessions, list the sessions of a user, and end one or all of them."""

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
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.accounts.models import User
from kafkadash.accounts.services import record
from kafkadash.core.messages import coded
from kafkadash.core.middleware import post_only

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
                record(user, "user.signed_out", user, reason=coded(AccountErrorCode.SESSION_IDLE), request=request)
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


@require_safe
def sessions(request: HttpRequest) -> HttpResponse:
    user = _person(request)
    if not UserSession.objects.filter(session_key=request.session.session_key).exists():
        UserSession.objects.create_from_request(request)  # signed in before sessions were listed
    context = {
        "rows": own_sessions(user),
        "own_key": request.session.session_key,
        "idle_minutes": settings.SESSION_IDLE_SECONDS // 60,
        "hours": settings.SESSION_COOKIE_AGE // 3600,
    }
    return render(request, "account/sessions.html", context)


@post_only("account_sessions", same_arguments=False)
def end_session(request: HttpRequest, number: int) -> HttpResponse:
    """End one of one's own; the one of this page is ended by signing out. One that is over already is no fault."""
    user = _person(request)
    rows = UserSession.objects.filter(user=user, pk=number).exclude(session_key=request.session.session_key)
    end_sessions(user, list(rows), request)
    return redirect("account_sessions")


@post_only("account_sessions")
def end_others(request: HttpRequest) -> HttpResponse:
    user = _person(request)
    rows = UserSession.objects.filter(user=user).exclude(session_key=request.session.session_key)
    end_sessions(user, list(rows), request)
    return redirect("account_sessions")


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # nobody else is let in
    return request.user
