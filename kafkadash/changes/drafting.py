"""Drafts: begun, edited, copied from another request, deleted. What is proposed of them is ``services``' to do.

Each change and its audit event are one transaction, with the row locked and the right asked in it, as in ``services``;
they raise what those raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.guards import fresh, locked, refuse, refuse_other_version
from kafkadash.changes.kinds import kind_of
from kafkadash.changes.live import tell
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.changes.transitions import audit, changed_text, swap
from kafkadash.changes.written import short, text_of, title_of, window_of
from kafkadash.clusters.access import PROPOSE
from kafkadash.clusters.models import Cluster
from kafkadash.domain.workflow_states import State

_WITHOUT_PLAN: Mapping[str, Any] = {
    "artifact": None,
    "digest": "",
    "topology_at": None,
    "risk": None,
    "risk_reasons": [],
    "checks": [],
    "checked_at": None,
}


def create_draft(
    cluster: Cluster,
    kind: str,
    user: User,
    *,
    title: str,
    input: Mapping[str, Any],  # noqa: A002  the column's name
    options: Mapping[str, Any],
    origin: ChangeRequest | None = None,
    origin_word: str = "",
    request: HttpRequest | None = None,
) -> ChangeRequest:
    """A new draft, written at the first step of its form. Raises UnknownKind as well.

    ``options`` may hold ``not_before`` and ``not_after``, instants as in ``domain.plan.Options``: the window.
    """
    kind_of(kind)
    with transaction.atomic():
        current = Cluster.objects.filter(pk=cluster.pk).first()
        if current is None:
            raise Refused(ChangeErrorCode.CLUSTER_REMOVED, cluster=cluster.name)
        refuse(user, PROPOSE, current)
        change = ChangeRequest(
            cluster=current,
            kind=kind,
            title=title_of(title),
            input=dict(input),
            options=dict(options),
            author=user,
            author_name=user.get_username(),
            hands=[user.pk],
            origin=origin,
            origin_word=origin_word,
            **window_of(options),
        )
        change.save(force_insert=True)
        after = {"kind": kind, "title": change.title, "input": short(input), "options": short(options)}
        audit(change, user, "created", after=after, request=request)
        tell(change.pk)
    change.refresh_from_db()
    return change


def edit_draft(
    change: ChangeRequest,
    user: User,
    version: int,
    *,
    title: str | None = None,
    input: Mapping[str, Any] | None = None,  # noqa: A002  the column's name
    options: Mapping[str, Any] | None = None,
    why: str | None = None,
    drop_plan: bool | None = None,
    request: HttpRequest | None = None,
) -> ChangeRequest:
    """Stores what is given; ``version`` is the one that the editor saw. What is the same already is no edit.

    The plan stays when only title, why or options differ (``drop_plan`` says otherwise), with a new digest.
    """
    with transaction.atomic():
        row = locked(change)
        refuse(user, PROPOSE, row.cluster)
        refuse_other_version(row, version, user)
        asked: dict[str, Any] = {}
        if title is not None:
            asked["title"] = title_of(title)
        if why is not None:
            asked["why"] = text_of(why, "The reason")
        if input is not None:
            asked["input"] = dict(input)
        if options is not None:
            asked |= {"options": dict(options), **window_of(options)}
        before = {name: getattr(row, name) for name in asked}
        differ = [name for name in asked if before[name] != asked[name]]
        if not differ and not drop_plan:
            return row
        drop = "input" in differ if drop_plan is None else drop_plan
        swap(
            row,
            {
                **{name: asked[name] for name in differ},
                **(_WITHOUT_PLAN if drop else {"digest": _digest_with(row, asked)}),
                "version": row.version + 1,
                "hands": sorted({*row.hands, user.pk}),
                "edited_by_name": user.get_username(),
                "edited_at": Now(),
            },
        )
        audit(
            row,
            user,
            "edited",
            before={name: short(before[name]) for name in differ},
            after={name: short(asked[name]) for name in differ},
            request=request,
        )
    return fresh(change)


def copy(change: ChangeRequest, user: User, request: HttpRequest | None = None) -> ChangeRequest:
    """A new draft that asks for the same, without its plan. Who wrote the original has a hand in the copy too."""
    with transaction.atomic():
        row = locked(change)
        refuse(user, PROPOSE, row.cluster)
        draft = ChangeRequest(
            cluster=row.cluster,
            kind=row.kind,
            title=row.title,
            why=row.why,
            input=row.input,
            options=row.options,
            not_before=row.not_before,
            not_after=row.not_after,
            author=user,
            author_name=user.get_username(),
            hands=sorted({*row.hands, user.pk}),
            origin=row,
            origin_word="copy",
        )
        draft.save(force_insert=True)
        copied = kind_of(row.kind).copied
        if copied is not None:
            copied(row, draft)
        audit(draft, user, "created", after={"kind": row.kind, "title": row.title, "copy_of": row.pk}, request=request)
        audit(row, user, "copied", after={"copy": draft.pk}, request=request)
        tell(row.pk, draft.pk)
    draft.refresh_from_db()
    return draft


def delete(change: ChangeRequest, user: User, reason: str = "", request: HttpRequest | None = None) -> None:
    """Forgets a draft that was never proposed; what was proposed once is kept."""
    with transaction.atomic():
        row = locked(change)
        refuse(user, PROPOSE, row.cluster, read_only_too=True)
        if row.state != State.DRAFT:
            raise Changed(ChangeErrorCode.ONLY_A_DRAFT_IS_DELETED, now=changed_text(row.pk))
        if row.round:
            raise Refused(ChangeErrorCode.KEPT_ONCE_PROPOSED, number=row.pk)
        before = {"kind": row.kind, "title": row.title, "why": row.why, "input": short(row.input)}
        audit(row, user, "deleted", reason=reason, before=before, request=request)
        tell(row.pk)
        row.delete()


def _digest_with(row: ChangeRequest, asked: Mapping[str, Any]) -> str:
    """Of the draft with these columns; '' without a plan."""
    if not row.artifact_id:
        return ""
    after = fresh(row)
    for name, value in asked.items():
        setattr(after, name, value)
    return kind_of(row.kind).digest(after)
