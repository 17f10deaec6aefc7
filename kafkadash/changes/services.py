"""What people do with change requests, from the submission on; what comes before it is in ``drafting``.

Each change and its audit event are one transaction; nothing asks Kafka.

The right to do it is asked from the database inside that transaction, with the row locked, so that a role taken away
or a cluster made read-only meanwhile counts. All raise Refused with a sentence, or its kinds Changed (somebody else was
first) and EditedMeanwhile (of a draft). They return the row as it is afterwards; the one given stays as it was read.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.guards import fresh, locked, planning, refuse, refuse_old_facts, refuse_other_version
from kafkadash.changes.kinds import kind_of
from kafkadash.changes.live import tell
from kafkadash.changes.models import ChangeRequest, Comment, Review, Verdict
from kafkadash.changes.policy import policy_of, rules_of
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.changes.submission import judge, refuse_unready
from kafkadash.changes.transitions import audit, changed_text, move, pure
from kafkadash.changes.written import text_of
from kafkadash.clusters.access import APPROVE, COMMENT, DECLINE, MANAGE, PROPOSE, users_allowed
from kafkadash.domain.workflow import Deed, needed, standing
from kafkadash.domain.workflow_errors import WorkflowErrorCode
from kafkadash.domain.workflow_states import State, Trigger, Who


def submit(
    change: ChangeRequest,
    user: User,
    *,
    why: str,
    version: int,
    digest: str = "",
    request: HttpRequest | None = None,
) -> ChangeRequest:
    """DRAFT → PROPOSED: says why, has a plan, and its content was found as planned in facts that are not stale.

    ``version`` is the one that the author saw, and so is ``digest`` where it is given. What is judged is read before
    the transaction, which stores it only if the request is the same by then.
    """
    reason = text_of(why, "The reason")
    if not reason:
        raise Refused(ChangeErrorCode.WHY_MISSING)
    row = fresh(change)
    refuse_other_version(row, version, user)
    refuse(user, PROPOSE, row.cluster)
    refuse_unready(row, digest)
    now = datetime.now(UTC)
    found = judge(row, now)
    with transaction.atomic():
        held = locked(row)
        refuse(user, PROPOSE, held.cluster)
        if (held.state, held.version, held.digest) != (row.state, row.version, row.digest):
            raise Changed(changed_text(row.pk))
        held.risk = found.floor.points
        move(
            held,
            Deed(Trigger.SUBMIT, user.pk, frozenset({Who.OPERATOR}), reason=reason),
            rules_of(policy_of(held.cluster)),
            now,
            actor=user,
            fields={**found.columns, "why": reason, "submitted_at": now},
            also={"risk": found.floor.points, "level": found.floor.level.value},
            request=request,
        )
    return fresh(change)


def approve(
    change: ChangeRequest,
    user: User,
    digest: str,
    note: str = "",
    request: HttpRequest | None = None,
    *,
    seen_round: int | None = None,
) -> ChangeRequest:
    """This person approves exactly the content named ``digest``; the last approval needed makes it APPROVED.

    ``seen_round`` is the round that he saw: what was proposed anew since is another proposal, also of the same digest.
    Two people at once: the second waits for the first one's row, and then counts both.
    """
    said = text_of(note, "The note")
    with transaction.atomic():
        row = locked(change)
        refuse(user, APPROVE, row.cluster)
        if not users_allowed(APPROVE, row.cluster, not_given_by=row.hands).filter(pk=user.pk).exists():
            raise Refused(ChangeErrorCode.ROLE_FROM_AUTHOR, name=f"#{row.pk}")
        now = datetime.now(UTC)
        refuse_old_facts(row.cluster, now)
        rules = rules_of(policy_of(row.cluster))
        deed = Deed(Trigger.APPROVE, user.pk, frozenset({Who.APPROVER}), digest, seen_round, said)
        before = pure(row)
        after = move(
            row,
            deed,
            rules,
            now,
            actor=user,
            also={
                "approver": user.get_username(),
                "needed": needed(before, rules),
                "had": standing(before, rules),
                **({"self_approval": True} if user.pk in row.hands else {}),
            },
            request=request,
        )
        _review(row, user, Verdict.APPROVED, after.digest, said)
    return fresh(change)


def decline(
    change: ChangeRequest,
    user: User,
    digest: str,
    reason: str,
    request: HttpRequest | None = None,
    *,
    seen_round: int | None = None,
) -> ChangeRequest:
    """PROPOSED → DECLINED, for good; the reason is what the author reads. Also whoever approved before may."""
    said = text_of(reason, "The reason")
    with transaction.atomic():
        row = locked(change)
        refuse(user, DECLINE, row.cluster)
        deed = Deed(Trigger.DECLINE, user.pk, frozenset({Who.APPROVER}), digest, seen_round, said)
        rules = rules_of(policy_of(row.cluster))
        move(
            row,
            deed,
            rules,
            datetime.now(UTC),
            actor=user,
            also={"approver": user.get_username()},
            request=request,
        )
        Review.objects.filter(request=row, user=user, round=row.round, void_at=None).update(
            void_at=Now(), void_why=f"{user.get_username()} declined it later"[:200]
        )
        _review(row, user, Verdict.DECLINED, row.digest, said)
    return fresh(change)


def withdraw(change: ChangeRequest, user: User, reason: str = "", request: HttpRequest | None = None) -> ChangeRequest:
    """PROPOSED, APPROVED, QUEUED or STALE → DRAFT; approvals are void. Also on a cluster that became read-only."""
    return _to_draft(change, user, Trigger.WITHDRAW, reason, request, read_only_too=True)


def edit(change: ChangeRequest, user: User, reason: str = "", request: HttpRequest | None = None) -> ChangeRequest:
    """PROPOSED or STALE → DRAFT, to be edited; approvals are void."""
    return _to_draft(change, user, Trigger.EDIT, reason, request)


def comment(change: ChangeRequest, user: User, text: str, request: HttpRequest | None = None) -> Comment:
    said = text_of(text, "The comment")
    if not said:
        raise Refused(ChangeErrorCode.COMMENT_MISSING)
    with transaction.atomic():
        row = locked(change)
        refuse(user, COMMENT, row.cluster)
        stored = Comment.objects.create(request=row, user=user, user_name=user.get_username(), text=said)
        audit(row, user, "commented", after={"comment": stored.pk}, request=request)
        tell(row.pk)
    stored.refresh_from_db()
    return stored


def start_refresh(change: ChangeRequest, user: User, request: HttpRequest | None = None) -> ChangeRequest:
    """Has a new plan made for a STALE request; ``plans.refreshed`` ends it. Who asks for it may not approve it."""
    with transaction.atomic():
        row = locked(change)
        refuse(user, PROPOSE, row.cluster)
        if row.state != State.STALE:
            raise Changed(WorkflowErrorCode.NOTHING_TO_REFRESH, name=f"#{row.pk}", state=row.state)
        if planning(row):
            raise Refused(ChangeErrorCode.NEW_PLAN_UNDER_WAY)
        kind_of(row.kind).replan(row, user)
        audit(row, user, "refresh_started", before={"state": row.state}, request=request)
        tell(row.pk)
    return fresh(change)


def break_glass(
    change: ChangeRequest,
    user: User,
    digest: str,
    reason: str,
    request: HttpRequest | None = None,
    *,
    seen_round: int | None = None,
) -> ChangeRequest:
    """PROPOSED → QUEUED without the approvals, by an administrator, if the policy allows it and the kind can be run."""
    said = text_of(reason, "The reason")
    with transaction.atomic():
        row = locked(change)
        refuse(user, MANAGE, row.cluster)
        rules = rules_of(policy_of(row.cluster))
        before = pure(row)
        move(
            row,
            Deed(Trigger.BREAK_GLASS, user.pk, frozenset({Who.ADMIN}), digest, seen_round, said),
            rules,
            datetime.now(UTC),
            actor=user,
            also={"approvals": standing(before, rules), "needed": needed(before, rules)},
            request=request,
        )
    return fresh(change)


def _to_draft(
    change: ChangeRequest,
    user: User,
    trigger: Trigger,
    reason: str,
    request: HttpRequest | None,
    *,
    read_only_too: bool = False,
) -> ChangeRequest:
    said = text_of(reason, "The reason")
    with transaction.atomic():
        row = locked(change)
        refuse(user, PROPOSE, row.cluster, read_only_too=read_only_too)
        move(
            row,
            Deed(trigger, user.pk, frozenset({Who.OPERATOR}), reason=said),
            rules_of(policy_of(row.cluster)),
            datetime.now(UTC),
            actor=user,
            fields={"stale_reasons": []},
            request=request,
        )
    return fresh(change)


def _review(row: ChangeRequest, user: User, verdict: Verdict, digest: str, note: str) -> None:
    Review.objects.create(
        request=row,
        user=user,
        user_name=user.get_username(),
        verdict=verdict,
        round=row.round,
        digest=digest,
        note=note,
    )
