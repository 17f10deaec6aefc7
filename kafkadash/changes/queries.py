"""Which change requests wait for a person."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes.kinds import kinds
from kafkadash.changes.models import ChangeRequest, Policy, Review
from kafkadash.clusters.access import APPROVE, PROPOSE, START, clusters_allowing
from kafkadash.domain.workflow_states import State


def waiting_for(user: User | AnonymousUser) -> QuerySet[ChangeRequest]:
    """What this person can bring forward now, as one query.

    Proposed requests that he may approve: by role, on a cluster that is not read-only, with no hand in them unless the
    policy allows it, and not decided by him in this round. And those he has a hand in: stale ones, to refresh or to
    withdraw, and approved ones that may be started, unless they wait for their window.
    """
    if not user.is_authenticated:
        return ChangeRequest.objects.none()
    decided = Review.objects.filter(request=OuterRef("pk"), user=user.pk, round=OuterRef("round"), void_at=None)
    own = Q(hands__contains=[user.pk])
    may_approve_own = Exists(Policy.objects.filter(cluster=OuterRef("cluster"), self_approval=True))
    to_approve = (
        Q(state=State.PROPOSED, cluster__in=clusters_allowing(user, APPROVE).order_by(), cluster__read_only=False)
        & (~own | may_approve_own)
        & ~Exists(decided)
    )
    to_refresh = own & Q(state=State.STALE, cluster__in=clusters_allowing(user, PROPOSE).order_by())
    to_start = (
        own
        & Q(state=State.APPROVED, kind__in=[kind.name for kind in kinds() if kind.starts])
        & Q(cluster__in=clusters_allowing(user, START).order_by(), cluster__read_only=False)
        & (Q(not_before=None) | Q(not_before__lte=Now()))
    )
    return ChangeRequest.objects.filter(to_approve | to_refresh | to_start)


def waiting_count(user: User | AnonymousUser) -> int:
    """For the navigation of every page; one query."""
    if not user.is_authenticated:
        return 0
    statement, parameters = _count_statement(user.pk)
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        (count,) = cursor.fetchone()
    return int(count)


@lru_cache(maxsize=1000)
def _count_statement(user_id: int) -> tuple[str, tuple[Any, ...]]:
    """SQL and its parameters, kept: they depend on nothing else, and building them takes longer than the answer."""
    rows, parameters = waiting_for(User(pk=user_id)).order_by().values("pk").query.sql_with_params()
    return f"SELECT count(*) FROM ({rows}) AS waiting", parameters  # noqa: S608  no text of anybody is in it
