"""Whether the holder of a session may watch these keys, asked from the database each time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.accounts.sessions import is_in_use
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.access import VIEW, allowed
from kafkadash.clusters.models import Cluster
from kafkadash.live.panels import Watched, watched

# Close codes of the application's own range; browsers do not come back after them by themselves.
NOT_SIGNED_IN = 4401
NOT_ALLOWED = 4403


@dataclass(frozen=True, slots=True)
class Verdict:
    """``close_code`` is None when everything asked for may be watched; ``user_id`` is None when nobody is signed in."""

    close_code: int | None
    user_id: int | None = None


def judge(session_key: str | None, keys: Iterable[str]) -> Verdict:
    """Ask for all keys together: one refused key refuses the socket, as the page that listed it would be refused."""
    user = user_of_session(session_key)
    if user is None:
        return Verdict(NOT_SIGNED_IN)
    asked = [watched(key) for key in keys]
    known = [what for what in asked if what is not None]
    if not known or len(known) < len(asked) or not _may_watch(user, known):
        # Rights were read after the session: an account that was closed in between has none, and is not signed in.
        closed = user_of_session(session_key) is None
        return Verdict(NOT_SIGNED_IN if closed else NOT_ALLOWED, user.pk)
    return Verdict(None, user.pk)


def user_of_session(session_key: str | None) -> User | None:
    """The session's user as a request would see it: session alive, password unchanged since, account active."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    return user if isinstance(user, User) and is_in_use(session_key) else None


def _may_watch(user: User, known: list[Watched]) -> bool:
    of_clusters = [what for what in known if what.slug]
    numbers = {what.change for what in known if what.change is not None}
    slugs_of_changes = dict(ChangeRequest.objects.filter(pk__in=numbers).values_list("pk", "cluster__slug"))
    if len(slugs_of_changes) < len(numbers):
        return False
    asked = {(what.action, what.slug) for what in of_clusters} | {(VIEW, slug) for slug in slugs_of_changes.values()}
    clusters = {c.slug: c for c in Cluster.objects.filter(slug__in={slug for _, slug in asked})}
    if any(slug not in clusters for _, slug in asked):
        return False
    # A role on all clusters holds on each, so most people are settled with one question.
    everywhere = {action for action in {action for action, _ in asked} if allowed(user, action, None)}
    return all(action in everywhere or allowed(user, action, clusters[slug]) for action, slug in asked)
