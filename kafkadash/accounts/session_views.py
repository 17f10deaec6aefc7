"""Own sessions: see them, end one, end all others. ``urls`` says that one has to be signed in."""

from __future__ import annotations

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from kafkadash.accounts.models import User
from kafkadash.accounts.sessions import end_sessions, own_sessions
from kafkadash.post_only import post_only


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
