"""What is asked before anything is done with a change request: the row as it is now, the right, the facts, the text."""

from __future__ import annotations

from datetime import UTC, datetime

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.refusals import Changed, EditedMeanwhile, Refused
from kafkadash.changes.transitions import changed_text
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
    allowed,
    counts_from,
    read_only_text,
    roles_text,
)
from kafkadash.clusters.models import Cluster
from kafkadash.domain.status import is_stale
from kafkadash.domain.wording import duration
from kafkadash.domain.workflow_states import State
from kafkadash.jobs.models import JobState
from kafkadash.observe.models import CollectorRun, Kind

_DOING = {
    PROPOSE: "To propose changes",
    APPROVE: "To approve changes",
    DECLINE: "To decline changes",
    COMMENT: "To comment on changes",
    MANAGE: "To start a change without its approvals",
    START: "To start a change or to steer its run",
    CANCEL: "To cancel a run",
    GIVE_UP: "To give up a run",
}
_CONTENT = {Kind.METADATA: "topics and brokers", Kind.REASSIGNMENTS: "running reassignments"}


def refuse(user: User, action: str, cluster: Cluster, *, read_only_too: bool = False) -> None:
    """Unless this person may do this on this cluster now: the database is asked. Raises Refused."""
    if cluster.removed_at is not None:
        raise Refused(ChangeErrorCode.ITS_CLUSTER_REMOVED)
    if not allowed(user, action, cluster):
        waits_until = counts_from(user, action, cluster)
        if waits_until is not None:
            at = f"{waits_until.astimezone(UTC):%-d %b at %H:%M} UTC"
            raise Refused(ChangeErrorCode.ROLE_COUNTS_LATER, cluster=cluster.name, at=at)
        raise Refused(
            ChangeErrorCode.NEEDS_ROLE_NOW, doing=_DOING[action], cluster=cluster.name, roles=roles_text(action)
        )
    if cluster.read_only and action in LEADS_TO_CHANGES | {MANAGE} and not read_only_too:
        raise Refused(read_only_text(cluster))


def refuse_other_version(row: ChangeRequest, version: int, user: User) -> None:
    """Unless it is a draft of the version that this person saw. Raises Changed, EditedMeanwhile."""
    if row.state != State.DRAFT:
        raise Changed(ChangeErrorCode.NO_DRAFT_ANY_MORE, number=row.pk, now=changed_text(row.pk))
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
            raise Refused(ChangeErrorCode.FACTS_NOT_READ, facts=words, cluster=cluster.name)
        if is_stale(run.succeeded_at, run.interval_s, now):
            age = duration((now - run.succeeded_at).total_seconds())
            raise Refused(ChangeErrorCode.FACTS_TOO_OLD, facts=words, cluster=cluster.name, age=age)


def locked(change: ChangeRequest) -> ChangeRequest:
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
    return _there(row, change)


def fresh(change: ChangeRequest) -> ChangeRequest:
    """The row as it is now, with its cluster. Raises Changed when it is gone."""
    return _there(ChangeRequest.objects.select_related("cluster", "job").filter(pk=change.pk).first(), change)


def planning(change: ChangeRequest) -> bool:
    """Whether a plan is being made for it."""
    return change.job is not None and change.job.state in (JobState.QUEUED, JobState.RUNNING)


def _there(row: ChangeRequest | None, change: ChangeRequest) -> ChangeRequest:
    if row is None:
        raise Changed(changed_text(change.pk))
    return row
