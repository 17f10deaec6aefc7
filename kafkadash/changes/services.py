"""All actions of people on change requests: drafts, submission, reviews, and start, pause, resume and cancel.

Each action and its audit event share one transaction, and no action calls Kafka. The permission is read from the
database inside that transaction, with the row locked, so that a role removed or a cluster made read-only meanwhile
counts. All functions raise Refused, or its subclasses Changed (another user was first) and EditedMeanwhile (the draft
has a newer version). They return the row as it is afterwards; the instance passed in is not modified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.checks import ChangeCheck, CheckResult, CheckSubject
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused
from kafkadash.changes.kinds import kind_of
from kafkadash.changes.models import ChangeRequest, Comment, PlanArtifact, Review, ReviewVerdict, VoidCode
from kafkadash.changes.policy import rules_for
from kafkadash.changes.recheck import collect_reasons, stored_checks
from kafkadash.changes.request_validation import (
    is_planning,
    lock_change,
    refuse_old_facts,
    refuse_other_version,
    reload_change,
    require_permission,
    shorten_value,
    text_of,
    title_of,
    window_of,
)
from kafkadash.changes.risk import RiskFloor, compute_floor
from kafkadash.changes.state_machine import (
    ActorKind,
    ChangeState,
    ChangeTrigger,
    TransitionRequest,
    WorkflowErrorCode,
    count_approvals,
    required_approvals,
)
from kafkadash.changes.step_checks import run_checks
from kafkadash.changes.transitions import (
    OBJECT,
    announce_changes,
    audit_change,
    changed_message,
    move,
    swap_state,
    to_domain,
)
from kafkadash.clusters.access import APPROVE, CANCEL, COMMENT, DECLINE, MANAGE, PROPOSE, START, users_allowed
from kafkadash.clusters.models import Cluster


@dataclass(frozen=True, slots=True)
class SubmissionFacts:
    """Risk floor of the draft, and the columns that hold what was judged."""

    floor: RiskFloor
    columns: Mapping[str, Any]


def refuse_unready(row: ChangeRequest, digest: str) -> None:
    """Unless it has a plan, the one that the author saw, and no other is being made. Raises Refused, Changed."""
    if is_planning(row):
        raise ChangeRefused(ChangeErrorCode.PLAN_UNDER_WAY, number=row.pk)
    if not row.artifact_id or not row.digest:
        raise ChangeRefused(WorkflowErrorCode.PLAN_MISSING, number=row.pk)
    if PlanArtifact.objects.filter(pk=row.artifact_id, rows=0).exists():
        raise ChangeRefused(ChangeErrorCode.PLAN_EMPTY, number=row.pk)
    if digest and digest != row.digest:
        raise ChangedMeanwhile(ChangeErrorCode.PLANNED_ANEW, number=row.pk)


def judge(row: ChangeRequest, now: datetime) -> SubmissionFacts:
    """Checks and risk of the change, from stored rows no older than twice their interval. Raises Refused.

    Every check of the content has to have passed; one that nobody could make counts as one that failed. Health
    matters only where no time that passes mends it: the rest is asked again when the change is about to run.
    """
    refuse_old_facts(row.cluster, now)
    checked = run_checks(row, now)
    failed = checked.failed(CheckSubject.CONTENT)
    if failed:
        raise ChangeRefused(ChangeErrorCode.PLAN_NO_LONGER_FITS, **_first_and_others(failed))
    unknown = tuple(check.title for check in checked.of(CheckSubject.CONTENT) if check.result is CheckResult.UNKNOWN)
    if unknown:
        raise ChangeRefused(ChangeErrorCode.PLAN_NOT_CHECKED, checks=unknown)
    if checked.lasting:
        raise ChangeRefused(ChangeErrorCode.PLAN_NEVER_STARTS, **_first_and_others(checked.lasting))
    judged = compute_floor(kind_of(row.kind).risk(row))
    return SubmissionFacts(
        judged,
        {
            "risk": judged.points,
            "risk_reasons": [[reason.points, reason.message.as_json()] for reason in judged.reasons],
            "checks": stored_checks(checked),
            "checked_at": checked.facts_at,
            "stale_reasons": [],
        },
    )


def _first_and_others(failed: Sequence[ChangeCheck]) -> dict[str, Any]:
    total = sum(max(check.problem_count, len(check.problems), 1) for check in failed)
    return {"first": collect_reasons(failed)[0], "total": total, "others": total - 1}


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
        raise ChangeRefused(ChangeErrorCode.WHY_MISSING)
    row = reload_change(change)
    refuse_other_version(row, version, user)
    require_permission(user, PROPOSE, row.cluster)
    refuse_unready(row, digest)
    now = datetime.now(UTC)
    found = judge(row, now)
    with transaction.atomic():
        held = lock_change(row)
        require_permission(user, PROPOSE, held.cluster)
        if (held.state, held.version, held.digest) != (row.state, row.version, row.digest):
            raise ChangedMeanwhile(changed_message(row.pk))
        held.risk = found.floor.points
        move(
            held,
            TransitionRequest(ChangeTrigger.SUBMIT, user.pk, frozenset({ActorKind.OPERATOR}), reason=reason),
            rules_for(held),
            now,
            actor=user,
            fields={**found.columns, "why": reason, "submitted_at": now},
            also={"risk": found.floor.points, "level": found.floor.level.value},
            request=request,
        )
    return reload_change(change)


def approve(
    change: ChangeRequest,
    user: User,
    digest: str,
    note: str = "",
    request: HttpRequest | None = None,
    *,
    seen_round: int | None = None,
) -> ChangeRequest:
    """Record an approval of exactly the content named ``digest``; the last approval needed makes it APPROVED.

    ``seen_round`` is the round that he saw: what was proposed anew since is another proposal, also of the same digest.
    Two people at once: the second waits for the first one's row, and then counts both.
    """
    text = text_of(note, "The note")
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, APPROVE, row.cluster)
        if not users_allowed(APPROVE, row.cluster, not_given_by=row.contributor_ids).filter(pk=user.pk).exists():
            raise ChangeRefused(ChangeErrorCode.ROLE_FROM_AUTHOR, name=f"#{row.pk}")
        now = datetime.now(UTC)
        refuse_old_facts(row.cluster, now)
        rules = rules_for(row)
        transition = TransitionRequest(
            ChangeTrigger.APPROVE, user.pk, frozenset({ActorKind.APPROVER}), digest, seen_round, text
        )
        before = to_domain(row)
        after = move(
            row,
            transition,
            rules,
            now,
            actor=user,
            also={
                "approver": user.get_username(),
                "needed": required_approvals(before, rules),
                "had": count_approvals(before, rules),
                **({"self_approval": True} if user.pk in row.contributor_ids else {}),
            },
            request=request,
        )
        _store_review(row, user, ReviewVerdict.APPROVED, after.digest, text)
    return reload_change(change)


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
    text = text_of(reason, "The reason")
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, DECLINE, row.cluster)
        transition = TransitionRequest(
            ChangeTrigger.DECLINE, user.pk, frozenset({ActorKind.APPROVER}), digest, seen_round, text
        )
        rules = rules_for(row)
        move(
            row,
            transition,
            rules,
            datetime.now(UTC),
            actor=user,
            also={"approver": user.get_username()},
            request=request,
        )
        Review.objects.filter(request=row, user=user, round=row.round, void_at=None).update(
            void_at=Now(), void_code=VoidCode.DECLINED_LATER, void_by=user.get_username()
        )
        _store_review(row, user, ReviewVerdict.DECLINED, row.digest, text)
    return reload_change(change)


def withdraw(change: ChangeRequest, user: User, reason: str = "", request: HttpRequest | None = None) -> ChangeRequest:
    """PROPOSED, APPROVED, QUEUED or STALE → DRAFT; approvals are void. Also on a cluster that became read-only."""
    return _to_draft(change, user, ChangeTrigger.WITHDRAW, reason, request, read_only_too=True)


def edit(change: ChangeRequest, user: User, reason: str = "", request: HttpRequest | None = None) -> ChangeRequest:
    """PROPOSED or STALE → DRAFT, to be edited; approvals are void."""
    return _to_draft(change, user, ChangeTrigger.EDIT, reason, request)


def comment(change: ChangeRequest, user: User, text: str, request: HttpRequest | None = None) -> Comment:
    said = text_of(text, "The comment")
    if not said:
        raise ChangeRefused(ChangeErrorCode.COMMENT_MISSING)
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, COMMENT, row.cluster)
        stored = Comment.objects.create(request=row, user=user, user_name=user.get_username(), text=said)
        audit_change(row, user, "commented", after={"comment": stored.pk}, request=request)
        announce_changes(row.pk)
    stored.refresh_from_db()
    return stored


def start_refresh(change: ChangeRequest, user: User, request: HttpRequest | None = None) -> ChangeRequest:
    """Has a new plan made for a STALE request; ``plans.refreshed`` ends it. Who asks for it may not approve it."""
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, PROPOSE, row.cluster)
        if row.state != ChangeState.STALE:
            raise ChangedMeanwhile(WorkflowErrorCode.NOTHING_TO_REFRESH, name=f"#{row.pk}", state=row.state)
        if is_planning(row):
            raise ChangeRefused(ChangeErrorCode.NEW_PLAN_UNDER_WAY)
        kind_of(row.kind).replan(row, user)
        audit_change(row, user, "refresh_started", before={"state": row.state}, request=request)
        announce_changes(row.pk)
    return reload_change(change)


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
    text = text_of(reason, "The reason")
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, MANAGE, row.cluster)
        rules = rules_for(row)
        before = to_domain(row)
        move(
            row,
            TransitionRequest(
                ChangeTrigger.BREAK_GLASS, user.pk, frozenset({ActorKind.ADMIN}), digest, seen_round, text
            ),
            rules,
            datetime.now(UTC),
            actor=user,
            also={"approvals": count_approvals(before, rules), "needed": required_approvals(before, rules)},
            request=request,
        )
    return reload_change(change)


def _to_draft(
    change: ChangeRequest,
    user: User,
    trigger: ChangeTrigger,
    reason: str,
    request: HttpRequest | None,
    *,
    read_only_too: bool = False,
) -> ChangeRequest:
    text = text_of(reason, "The reason")
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, PROPOSE, row.cluster, read_only_too=read_only_too)
        move(
            row,
            TransitionRequest(trigger, user.pk, frozenset({ActorKind.OPERATOR}), reason=text),
            rules_for(row),
            datetime.now(UTC),
            actor=user,
            fields={"stale_reasons": []},
            request=request,
        )
    return reload_change(change)


def _store_review(row: ChangeRequest, user: User, verdict: ReviewVerdict, digest: str, note: str) -> None:
    Review.objects.create(
        request=row,
        user=user,
        user_name=user.get_username(),
        verdict=verdict,
        round=row.round,
        digest=digest,
        note=note,
    )


LONGEST_KEY = 100
_STARTED = f"change.{ChangeTrigger.START.value}"


def start_key(change: ChangeRequest, user: User | AnonymousUser) -> str:
    """Return the key of this person's start of this approval: a form sent twice, or from two windows, starts once."""
    return f"{change.pk}-{change.round}-{user.pk}"


def start(
    change: ChangeRequest,
    user: User,
    reason: str = "",
    key: str = "",
    request: HttpRequest | None = None,
    *,
    seen_round: int | None = None,
) -> ChangeRequest:
    """APPROVED → QUEUED. ``key`` names this start: sent again, also at once, it is the same one and no error.

    ``seen_round`` is of the approval that the person saw; None where that is not said. Approved steps after this one
    are queued along, and wait there for it.
    """
    text = text_of(reason, "The reason")
    if len(key) > LONGEST_KEY:
        raise ChangeRefused(ChangeErrorCode.START_KEY_TOO_LONG, most=LONGEST_KEY)
    with transaction.atomic():
        row = lock_change(change)
        if row.state != ChangeState.APPROVED and _started_by(row, key):
            return row
        require_permission(user, START, row.cluster)
        if seen_round not in (None, row.round):
            raise ChangedMeanwhile(changed_message(row.pk))
        now = datetime.now(UTC)
        refuse_old_facts(row.cluster, now)
        move(
            row,
            TransitionRequest(ChangeTrigger.START, user.pk, frozenset({ActorKind.OPERATOR}), reason=text),
            rules_for(row),
            now,
            actor=user,
            also={"key": key} if key else None,
            request=request,
        )
        _queue_later_steps(row, user, text, now, request)
    return reload_change(change)


def _queue_later_steps(
    change: ChangeRequest, user: User, reason: str, now: datetime, request: HttpRequest | None
) -> None:
    """A step that cannot be queued now, such as one that expires at this instant, is left to a start of its own."""
    later = ChangeRequest.objects.steps_of(change).filter(step__gt=change.step, state=ChangeState.APPROVED)
    for row in later.select_related("cluster").select_for_update(of=("self",), no_key=True):
        transition = TransitionRequest(ChangeTrigger.START, user.pk, frozenset({ActorKind.OPERATOR}), reason=reason)
        with suppress(ChangeRefused):
            move(row, transition, rules_for(row), now, actor=user, request=request)


def pause(change: ChangeRequest, user: User, reason: str = "", request: HttpRequest | None = None) -> ChangeRequest:
    """EXECUTING → PAUSED: nothing more is submitted, what is in flight finishes. Also on a read-only cluster.

    No reason is needed: whoever has to stop it must not look for words first.
    """
    text = text_of(reason, "The reason")
    return _transition_run(change, user, START, ChangeTrigger.PAUSE, text, request, read_only_too=True)


def resume(change: ChangeRequest, user: User, reason: str, request: HttpRequest | None = None) -> ChangeRequest:
    """PAUSED → EXECUTING."""
    text = _require_text(reason, ChangeErrorCode.RESUME_REASON)
    return _transition_run(change, user, START, ChangeTrigger.RESUME, text, request)


def cancel(change: ChangeRequest, user: User, reason: str, request: HttpRequest | None = None) -> ChangeRequest:
    """EXECUTING or PAUSED → CANCELLING: what is in flight goes back, what is done stays. Also on a read-only cluster.

    Its end is the executor's.
    """
    text = _require_text(reason, ChangeErrorCode.CANCEL_REASON)
    return _transition_run(change, user, CANCEL, ChangeTrigger.CANCEL, text, request, read_only_too=True)


def _transition_run(
    change: ChangeRequest,
    user: User,
    action: str,
    trigger: ChangeTrigger,
    reason: str,
    request: HttpRequest | None,
    *,
    read_only_too: bool = False,
) -> ChangeRequest:
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, action, row.cluster, read_only_too=read_only_too)
        move(
            row,
            TransitionRequest(trigger, user.pk, frozenset({ActorKind.OPERATOR, ActorKind.APPROVER}), reason=reason),
            rules_for(row),
            datetime.now(UTC),
            actor=user,
            request=request,
        )
    return reload_change(change)


def _require_text(reason: str, missing: ChangeErrorCode) -> str:
    text = text_of(reason, "The reason")
    if not text:
        raise ChangeRefused(missing)
    return text


def _started_by(row: ChangeRequest, key: str) -> bool:
    """Return whether the start with this key was done; the row must be locked, so that a concurrent start is over."""
    if not key:
        return False
    starts = AuditEvent.objects.filter(object_type=OBJECT, object_id=str(row.pk), action=_STARTED)
    return starts.filter(after__key=key).exists()


_WITHOUT_PLAN: Mapping[str, Any] = {
    "artifact": None,
    "digest": "",
    "topology_at": None,
    "left_out": [],
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

    ``options`` may hold ``not_before`` and ``not_after``, instants as in ``changes.plan.RunOptions``: the window.
    """
    kind_of(kind)
    with transaction.atomic():
        current = Cluster.objects.filter(pk=cluster.pk).first()
        if current is None:
            raise ChangeRefused(ChangeErrorCode.CLUSTER_REMOVED, cluster=cluster.name)
        require_permission(user, PROPOSE, current)
        change = ChangeRequest(
            cluster=current,
            kind=kind,
            title=title_of(title),
            input=dict(input),
            options=dict(options),
            author=user,
            author_name=user.get_username(),
            contributor_ids=[user.pk],
            least_approvals=kind_of(kind).approvals_needed,
            origin=origin,
            origin_word=origin_word,
            **window_of(options),
        )
        change.save(force_insert=True)
        after = {"kind": kind, "title": change.title, "input": shorten_value(input), "options": shorten_value(options)}
        audit_change(change, user, "created", after=after, request=request)
        announce_changes(change.pk)
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
        row = lock_change(change)
        require_permission(user, PROPOSE, row.cluster)
        refuse_other_version(row, version, user)
        changed: dict[str, Any] = {}
        if title is not None:
            changed["title"] = title_of(title)
        if why is not None:
            changed["why"] = text_of(why, "The reason")
        if input is not None:
            changed["input"] = dict(input)
        if options is not None:
            changed |= {"options": dict(options), **window_of(options)}
        before = {name: getattr(row, name) for name in changed}
        differ = [name for name in changed if before[name] != changed[name]]
        if not differ and not drop_plan:
            return row
        drop = "input" in differ if drop_plan is None else drop_plan
        swap_state(
            row,
            {
                **{name: changed[name] for name in differ},
                **(_WITHOUT_PLAN if drop else {"digest": _digest_with(row, changed)}),
                "version": row.version + 1,
                "contributor_ids": sorted({*row.contributor_ids, user.pk}),
                "edited_by_name": user.get_username(),
                "edited_at": Now(),
            },
        )
        audit_change(
            row,
            user,
            "edited",
            before={name: shorten_value(before[name]) for name in differ},
            after={name: shorten_value(changed[name]) for name in differ},
            request=request,
        )
    return reload_change(change)


def copy(change: ChangeRequest, user: User, request: HttpRequest | None = None) -> ChangeRequest:
    """A new draft that asks for the same, without its plan. Who wrote the original has a hand in the copy too."""
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, PROPOSE, row.cluster)
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
            contributor_ids=sorted({*row.contributor_ids, user.pk}),
            least_approvals=kind_of(row.kind).approvals_needed,
            origin=row,
            origin_word="copy",
        )
        draft.save(force_insert=True)
        copied = kind_of(row.kind).copied
        if copied is not None:
            copied(row, draft)
        audit_change(
            draft, user, "created", after={"kind": row.kind, "title": row.title, "copy_of": row.pk}, request=request
        )
        audit_change(row, user, "copied", after={"copy": draft.pk}, request=request)
        announce_changes(row.pk, draft.pk)
    draft.refresh_from_db()
    return draft


def delete(change: ChangeRequest, user: User, reason: str = "", request: HttpRequest | None = None) -> None:
    """Forgets a draft that was never proposed; what was proposed once is kept. A step goes with all other steps."""
    with transaction.atomic():
        steps = ChangeRequest.objects.steps_of(change).select_related("cluster")
        held = list(steps.select_for_update(of=("self",), no_key=True))
        row = lock_change(change)
        require_permission(user, PROPOSE, row.cluster, read_only_too=True)
        if row.state != ChangeState.DRAFT:
            raise ChangedMeanwhile(ChangeErrorCode.ONLY_A_DRAFT_IS_DELETED, now=changed_message(row.pk))
        if row.round:
            raise ChangeRefused(ChangeErrorCode.KEPT_ONCE_PROPOSED, number=row.pk)
        if any(step.round for step in held):
            raise ChangeRefused(ChangeErrorCode.STEPS_WERE_PROPOSED, number=row.pk)
        for each in held or [row]:
            before = {"kind": each.kind, "title": each.title, "why": each.why, "input": shorten_value(each.input)}
            audit_change(each, user, "deleted", reason=reason, before=before, request=request)
            announce_changes(each.pk)
        ChangeRequest.objects.filter(pk__in=[each.pk for each in held or [row]]).delete()


def _digest_with(row: ChangeRequest, changed: Mapping[str, Any]) -> str:
    """Return the digest of the draft with these columns; '' without a plan."""
    if not row.artifact_id:
        return ""
    after = reload_change(row)
    for name, value in changed.items():
        setattr(after, name, value)
    return kind_of(row.kind).digest(after)
