"""Checks before a change request is used: the current row, the permission, the age of the facts, the text entered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused, EditedMeanwhile
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.changes.transitions import changed_message
from kafkadash.clusters.access import (
    APPROVE,
    CANCEL,
    COMMENT,
    DECLINE,
    GIVE_UP,
    LEADS_TO_CHANGES,
    MANAGE,
    PROPOSE,
    START,
    counts_from,
    is_allowed,
    roles_text,
)
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import format_duration
from kafkadash.core.messages import message_text
from kafkadash.core.status import is_stale
from kafkadash.jobs.models import JobState
from kafkadash.monitoring.models import CollectorKind, CollectorRun

_DOING = {
    PROPOSE: "To propose changes",
    APPROVE: "To approve changes",
    DECLINE: "To decline changes",
    COMMENT: "To comment on changes",
    MANAGE: "To start a change without approvals",
    START: "To start a change or to control its run",
    CANCEL: "To cancel a run",
    GIVE_UP: "To give up a run",
}
_CONTENT = {CollectorKind.METADATA: "topics and brokers", CollectorKind.REASSIGNMENTS: "running reassignments"}


def require_permission(user: User, action: str, cluster: Cluster, *, read_only_too: bool = False) -> None:
    """Unless this person may do this on this cluster now: the database is asked. Raises Refused."""
    if cluster.removed_at is not None:
        raise ChangeRefused(ChangeErrorCode.ITS_CLUSTER_REMOVED)
    if not is_allowed(user, action, cluster):
        waits_until = counts_from(user, action, cluster)
        if waits_until is not None:
            at = f"{waits_until.astimezone(UTC):%-d %b at %H:%M} UTC"
            raise ChangeRefused(ChangeErrorCode.ROLE_COUNTS_LATER, cluster=cluster.name, at=at)
        raise ChangeRefused(
            ChangeErrorCode.NEEDS_ROLE_NOW, doing=_DOING[action], cluster=cluster.name, roles=roles_text(action)
        )
    if cluster.read_only and action in LEADS_TO_CHANGES | {MANAGE} and not read_only_too:
        raise ChangeRefused(ClusterErrorCode.READ_ONLY, cluster=cluster.name)


def refuse_other_version(row: ChangeRequest, version: int, user: User) -> None:
    """Unless it is a draft of the version that this person saw. Raises Changed, EditedMeanwhile."""
    if row.state != ChangeState.DRAFT:
        raise ChangedMeanwhile(ChangeErrorCode.NO_DRAFT_ANY_MORE, number=row.pk, now=changed_message(row.pk))
    if row.version == version:
        return
    at = f" on {row.edited_at.astimezone(UTC):%-d %b at %H:%M:%S} UTC" if row.edited_at else ""
    who = row.edited_by_name or row.author_name
    if who == user.get_username():
        raise EditedMeanwhile(ChangeErrorCode.SAVED_IN_ANOTHER_WINDOW, number=row.pk, at=at)
    raise EditedMeanwhile(ChangeErrorCode.EDITED_MEANWHILE, who=who, number=row.pk, at=at)


def refuse_old_facts(cluster: Cluster, now: datetime) -> None:
    """Unless what content is compared with was read lately: no older than twice its interval. One query."""
    runs = {run.kind: run for run in CollectorRun.objects.filter(cluster=cluster, kind__in=_CONTENT)}
    for kind, words in _CONTENT.items():
        run = runs.get(kind)
        if run is None or run.succeeded_at is None:
            raise ChangeRefused(ChangeErrorCode.FACTS_NOT_READ, facts=words, cluster=cluster.name)
        if is_stale(run.succeeded_at, run.interval_s, now):
            age = format_duration((now - run.succeeded_at).total_seconds())
            raise ChangeRefused(ChangeErrorCode.FACTS_TOO_OLD, facts=words, cluster=cluster.name, age=age)


def lock_change(change: ChangeRequest) -> ChangeRequest:
    """The row as it is now, with its cluster, held until the transaction ends. Raises Changed when it is gone.

    Without its key: whoever writes a row twice that refers to it has PostgreSQL look for the key, and he may hold what
    is waited for here.
    """
    row = (
        ChangeRequest.objects.select_for_update(of=("self",), no_key=True)
        .select_related("cluster", "job")
        .filter(pk=change.pk)
        .first()
    )
    return _require_row(row, change)


def reload_change(change: ChangeRequest) -> ChangeRequest:
    """The row as it is now, with its cluster. Raises Changed when it is gone."""
    return _require_row(ChangeRequest.objects.select_related("cluster", "job").filter(pk=change.pk).first(), change)


def is_planning(change: ChangeRequest) -> bool:
    """Return whether a plan is being made for the change."""
    return change.job is not None and change.job.state in (JobState.QUEUED, JobState.RUNNING)


def _require_row(row: ChangeRequest | None, change: ChangeRequest) -> ChangeRequest:
    if row is None:
        raise ChangedMeanwhile(changed_message(change.pk))
    return row


LONGEST_TITLE = 200
LONGEST_TEXT = 10_000
"""Characters of a comment, a reason, a note or the why."""
_LONGEST_SHOWN = 2_000


def text_of(written: str, what: str) -> str:
    """Without blanks around it. Raises Refused when it is too long; ``what`` begins the sentence ("The reason")."""
    written = written.replace("\x00", "").strip()
    if len(written) > LONGEST_TEXT:
        raise ChangeRefused(ChangeErrorCode.TEXT_TOO_LONG, what=what, length=len(written), most=LONGEST_TEXT)
    return written


def wrong_reason(reason: str, missing: str) -> str:
    """Return what is wrong with a reason, "" where nothing is. ``missing`` is said where there is none."""
    if not reason.strip():
        return missing
    if len(reason) > LONGEST_TEXT:
        return message_text(ChangeErrorCode.TYPED_TOO_LONG, length=len(reason), most=LONGEST_TEXT)
    return ""


def title_of(title: str) -> str:
    """On one line. Raises Refused when it is too long."""
    title = " ".join(title.replace("\x00", "").split())
    if len(title) > LONGEST_TITLE:
        raise ChangeRefused(ChangeErrorCode.TITLE_TOO_LONG, length=len(title), most=LONGEST_TITLE)
    return title


def window_of(options: Mapping[str, Any]) -> dict[str, datetime | None]:
    """The columns of the window that ``options`` name, as ``changes.plan.RunOptions`` does. Raises Refused."""
    window = {name: _parse_instant(options.get(name)) for name in ("not_before", "not_after")}
    begin, end = window["not_before"], window["not_after"]
    if begin is not None and end is not None and begin >= end:
        raise ChangeRefused(ChangeErrorCode.WINDOW_TURNED_ROUND)
    return window


def _parse_instant(written: object) -> datetime | None:
    if not written:
        return None
    try:
        instant = datetime.fromisoformat(str(written))
    except ValueError as error:
        raise ChangeRefused(ChangeErrorCode.NO_TIME, written=repr(written)) from error
    return instant.replace(tzinfo=instant.tzinfo or UTC)


def shorten_value(value: Any) -> Any:
    """For the audit: what is too long to be read there is named by its length."""
    written = json.dumps(value, default=str)
    return value if len(written) <= _LONGEST_SHOWN else f"{len(written):,} characters"
