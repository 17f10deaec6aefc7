"""The review page of a change request: the proposal, its checks and risk, approvals, and the possible actions.

``read_replanning`` shows the progress of a new plan for a stale request, or the reasons why there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.checks import ChangeCheck, CheckResult, CheckSubject
from kafkadash.changes.decision import (
    ChangeDecision,
    approvals_needed,
    approve_off,
    decision_of,
    too_few_approvers,
)
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.kinds import ChangeKind, RunSummary
from kafkadash.changes.lists import PhaseStep, build_steps, known_kind, run_of
from kafkadash.changes.models import ChangeRequest, Review, ReviewVerdict
from kafkadash.changes.risk import level_of
from kafkadash.changes.services import start_key
from kafkadash.changes.state_machine import OVER, RAN, RUNNING, ChangeState
from kafkadash.changes.steps import StepContent, describe_step, list_approvable, list_steps
from kafkadash.changes.trail import TrailEntry, build_entries
from kafkadash.clusters.access import APPROVE, PROPOSE, actions_allowed
from kafkadash.core import clock
from kafkadash.core.formatting import format_duration, join_items
from kafkadash.core.json_columns import unpack_dataclass
from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.core.problems import InputProblem
from kafkadash.jobs.models import JobState
from kafkadash.monitoring.freshness import FactFreshness
from kafkadash.monitoring.models import CollectorKind

MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class NewPlan:
    """``doing``: what a worker says while ``under_way``; ``reasons``: why there is no plan, ``more`` besides."""

    under_way: bool
    doing: str
    reasons: Sequence[CodedMessage | str]
    more: int


def read_replanning(change: ChangeRequest) -> NewPlan | None:
    """Return the last try since the request turned stale; None without a try, or if the request is not stale."""
    if change.state != ChangeState.STALE or change.job is None or change.job.created_at < change.state_since:
        return None
    return read_planning(change)


def read_planning(change: ChangeRequest) -> NewPlan | None:
    """Return how the last planning of a request goes or ended, None without one."""
    job = change.job
    if job is None:
        return None
    if job.state in (JobState.QUEUED, JobState.RUNNING):
        return NewPlan(under_way=True, doing=job.progress_note, reasons=(), more=0)
    if job.state == JobState.CANCELLED:
        return NewPlan(under_way=False, doing="", reasons=(coded(ChangeErrorCode.PLANNING_STOPPED),), more=0)
    if job.error is not None:
        return NewPlan(under_way=False, doing="", reasons=(job.error,), more=0)
    found = job.result or {}
    shown = [str(InputProblem.from_json(one)) for one in found.get("problems", [])[:MOST_SHOWN]]
    more = max(0, found.get("problem_count", 0) - len(shown))
    return NewPlan(under_way=False, doing="", reasons=shown, more=more)


@dataclass(frozen=True, slots=True)
class ChangeSteps:
    """The steps of a change on the page of one of them. ``approvable``: those that this person may approve now.

    ``approve_off``: why not even these, '' where they may be. ``drafted``: all are drafts, which this person submits.
    """

    steps: Sequence[ChangeRequest]
    open_before: Sequence[ChangeRequest]
    approvable: Sequence[StepContent]
    approve_off: str
    drafted: bool


def read_steps(user: User | AnonymousUser, change: ChangeRequest, may: frozenset[str]) -> ChangeSteps | None:
    """Return the steps that a request is one of; None, without a query, where it stands alone. Two queries."""
    steps = list_steps(change)
    if not steps:
        return None
    approvable = list_approvable(user, steps) if isinstance(user, User) and APPROVE in may else []
    proposes = PROPOSE in may and not change.cluster.read_only
    return ChangeSteps(
        steps=steps,
        open_before=[step for step in steps if step.step < change.step and step.state not in OVER],
        approvable=[describe_step(step, clock.now()) for step in approvable] if len(approvable) > 1 else [],
        approve_off=first_refusal(approvable),
        drafted=proposes and all(step.state == ChangeState.DRAFT for step in steps),
    )


def first_refusal(steps: Sequence[ChangeRequest]) -> str:
    """Return why one of these steps cannot be approved now, by the age of its checks; '' where all can."""
    now = clock.now()
    return next((why for step in steps if (why := approve_off(step, facts_of(step, now)))), "")


MOST_EVENTS = 200
_CHECKED = (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.QUORUM, CollectorKind.LOG_DIRS)
WAITING = (ChangeState.PROPOSED, ChangeState.APPROVED, ChangeState.QUEUED, ChangeState.STALE)
"""States in which a request may expire and checks are repeated; in the others they are a record of the last time."""
_ENDS = ("change.failed", "change.cancelled")
"""Events whose reason is why a run did not end as planned."""
_RISK_STATES = {"low": "ok", "medium": "warning", "high": "critical"}


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check as the list shows it; the state's word is said to those who cannot see the shape.

    ``old``: it is not what is so now, and so it is not green. ``record``: it is how it was when it was checked for the
    last time, and what it passed stays passed.
    """

    check: ChangeCheck
    old: bool
    record: bool = False

    @property
    def state(self) -> str:
        """Status token of the check; '' for a record of what passed, which is no state of anything now."""
        if self.check.result is CheckResult.FAILED:
            return "critical" if self.check.about is CheckSubject.CONTENT else "warning"
        if self.check.result is CheckResult.PASSED and self.record:
            return ""
        return "unknown" if self.old or self.check.result is CheckResult.UNKNOWN else "ok"

    @property
    def word(self) -> str:
        return self.check.result.value

    @property
    def more(self) -> int:
        """Problems that are not listed."""
        return max(0, self.check.problem_count - len(self.check.problems))


@dataclass(frozen=True, slots=True)
class ReviewChecks:
    """All checks of a request and how they ended together. ``repeated``: whether they are still judged again."""

    rows: Sequence[CheckRow]
    freshness: FactFreshness
    repeated: bool

    def of(self, about: CheckSubject) -> list[CheckRow]:
        return [row for row in self.rows if row.check.about is about]

    @property
    def content(self) -> list[CheckRow]:
        return self.of(CheckSubject.CONTENT)

    @property
    def health(self) -> list[CheckRow]:
        return self.of(CheckSubject.HEALTH)

    @property
    def passed(self) -> int:
        return sum(row.check.result is CheckResult.PASSED for row in self.rows)

    @property
    def failed(self) -> int:
        return sum(row.check.result is CheckResult.FAILED for row in self.rows)

    @property
    def unknown(self) -> int:
        return len(self.rows) - self.passed - self.failed

    @property
    def old(self) -> bool:
        return not self.repeated or self.freshness.stale

    @property
    def state(self) -> str:
        if self.failed:
            return "warning"
        return "unknown" if self.unknown or not self.rows or self.old else "ok"

    @property
    def sentence(self) -> str:
        """Ends without a full stop: "12 of 12 checks passed"."""
        if not self.rows:
            return "not checked yet"
        unknown = f", {self.unknown} unknown" if self.unknown else ""
        return f"{self.passed} of {choose_plural('# check|# checks', len(self.rows))} passed{unknown}"


@dataclass(frozen=True, slots=True)
class RiskAssessment:
    """The line below the reason: the risk on a pill, one sentence, what the risk is made of. ``state`` is the worse of
    the risk and the checks.
    """

    state: str
    pill_state: str
    pill: str
    sentence: str
    reasons: Sequence[tuple[int, CodedMessage]]


class ReviewContext(TypedDict):
    change: ChangeRequest
    kind: ChangeKind | None
    facts: Sequence[tuple[str, ...]]
    of_kind: Mapping[str, Any]
    sections: Any
    edit_url: str
    expires: str
    steps: Sequence[PhaseStep]
    checks: ReviewChecks
    verdict: RiskAssessment | None
    reviews: list[Review]
    approvals: list[Review]
    needed: int
    missing: int
    too_few: str
    declined: list[Any]
    replanning: NewPlan | None
    stale_sentence: str
    stale_reasons: list[Any]
    comments: list[Any]
    trail: Sequence[TrailEntry]
    decision: ChangeDecision
    run: RunSummary | None
    runs_now: bool
    ended_by: TrailEntry | None
    start_words: Sequence[str]
    start_key: str
    change_steps: ChangeSteps | None


def review_context(request: HttpRequest, change: ChangeRequest, now: datetime) -> ReviewContext:
    """Everything the page and its refetch show."""
    kind = known_kind(change)
    checks = checks_of(change, now)
    reviews = list(change.reviews.all())
    approvals = valid_approvals(change, reviews)
    may = actions_allowed(request.user, change.cluster)
    starts = bool(kind and kind.starts)
    trail = _read_trail(change)
    decision = decision_of(request.user, change, may, approvals, checks.freshness, starts=starts)
    of_kind = _of_kind(kind, change, request, now)
    return {
        "change": change,
        "kind": kind,
        "facts": kind.facts(change) if kind and change.artifact_id else (),
        "of_kind": of_kind,
        "sections": of_kind.get("sections", ()),
        "edit_url": kind.edit_url(change) if kind and change.state == ChangeState.DRAFT else "",
        "expires": _describe_expiry(change, now),
        "steps": build_steps(change.state, submitted=change.submitted_at is not None, starts=starts),
        "checks": checks,
        "verdict": verdict_of(change, checks, approvals),
        "reviews": reviews,
        "approvals": approvals,
        "needed": approvals_needed(change),
        "missing": max(1, approvals_needed(change) - len(approvals)),
        "too_few": too_few_approvers(change),
        "declined": [r for r in reviews if r.verdict == ReviewVerdict.DECLINED and r.round == change.round],
        "replanning": read_replanning(change),
        "stale_sentence": stale_sentence(change, reviews, checks),
        "stale_reasons": [CodedMessage.from_json(reason) for reason in change.stale_reasons],
        "comments": list(change.comments.all()),
        "trail": trail,
        "decision": decision,
        "run": run_of(change),
        "runs_now": change.state in RUNNING,
        "ended_by": next((entry for entry in reversed(trail) if entry.action in _ENDS), None),
        "start_words": _start_words(kind, change, now) if decision.may_start or decision.may_break_glass else (),
        "start_key": start_key(change, request.user) if decision.may_start else "",
        "change_steps": read_steps(request.user, change, may),
    }


class ReviewBarContext(TypedDict):
    change: ChangeRequest
    kind: ChangeKind | None
    facts: Sequence[tuple[str, ...]]
    decision: ChangeDecision
    run: RunSummary | None
    runs_now: bool


def bar_context(
    request: HttpRequest, change: ChangeRequest, may: frozenset[str], now: datetime, run: RunSummary | None = None
) -> ReviewBarContext:
    """For the bar above the pages of a run, which is the one above the review; ``may`` are the ``actions_allowed``.

    Two queries, one where ``run`` was read already.
    """
    kind = known_kind(change)
    return {
        "change": change,
        "kind": kind,
        "facts": kind.facts(change) if kind and change.artifact_id else (),
        "decision": decision_of(
            request.user, change, may, (), facts_of(change, now), starts=bool(kind and kind.starts)
        ),
        "run": run or run_of(change),
        "runs_now": change.state in RUNNING,
    }


def _start_words(kind: ChangeKind | None, change: ChangeRequest, now: datetime) -> Sequence[str]:
    return kind.start_words(change, now) if kind and kind.start_words else ()


def _describe_expiry(change: ChangeRequest, now: datetime) -> str:
    """In how long, '' where nothing expires: what is queued may wait for its turn as long as its window is open."""
    if change.state not in WAITING or change.state == ChangeState.QUEUED or change.expires_at is None:
        return ""
    return format_duration((change.expires_at - now).total_seconds())


def _of_kind(kind: ChangeKind | None, change: ChangeRequest, request: HttpRequest, now: datetime) -> Mapping[str, Any]:
    return kind.review_context(change, request, now) if kind and change.artifact_id else {}


def facts_of(change: ChangeRequest, now: datetime) -> FactFreshness:
    """How old the oldest of the facts are that the last checks rest on."""
    return freshness_of_checks(change.checked_at, now)


def freshness_of_checks(facts_at: datetime | None, now: datetime) -> FactFreshness:
    """Return the freshness of the oldest facts: old when even the facts read least often should have been read again.

    A check whose own facts are old says by itself that it cannot tell.
    """
    return FactFreshness(facts_at, max(settings.COLLECT_INTERVALS[kind] for kind in _CHECKED), now)


def checks_of(change: ChangeRequest, now: datetime) -> ReviewChecks:
    repeated = change.state in WAITING
    freshness = facts_of(change, now)
    rows = [
        CheckRow(unpack_dataclass(ChangeCheck, stored), not repeated or freshness.stale, record=not repeated)
        for stored in change.checks
    ]
    return ReviewChecks(rows, freshness, repeated)


def valid_approvals(change: ChangeRequest, reviews: Sequence[Review]) -> list[Review]:
    """Return the approvals that hold for exactly what is proposed now."""
    return [
        review
        for review in reviews
        if review.verdict == ReviewVerdict.APPROVED
        and review.void_at is None
        and review.round == change.round
        and review.digest == change.digest
    ]


def verdict_of(change: ChangeRequest, checks: ReviewChecks, approvals: Sequence[Review]) -> RiskAssessment | None:
    """None where nothing was proposed yet. Of what has begun it is a record: how it goes or ended is said above it."""
    if change.risk is None:
        return None
    level = level_of(change.risk)
    begun = change.state in (*RUNNING, *RAN)
    what = "Before the start" if begun else _can_be_run(checks)
    sentence = f"{what}: {checks.sentence}. Risk {change.risk} of 100. {_describe_approvals(change, len(approvals))}."
    state = "unknown" if change.state in RAN else _RISK_STATES[level]
    return RiskAssessment(
        state=checks.state if state == "ok" else state,
        pill_state=state,
        pill=f"{level.capitalize()} risk",
        sentence=sentence,
        reasons=[(points, CodedMessage.from_json(why)) for points, why in change.risk_reasons],
    )


def stale_sentence(change: ChangeRequest, reviews: Sequence[Review], checks: ReviewChecks) -> str:
    """Return the sentence on what became of the plan and of the approvals it had."""
    failed = sum(max(1, row.check.problem_count) for row in checks.content if row.check.result is CheckResult.FAILED)
    rows = change.artifact.rows if change.artifact else 0
    changed_ = "The plan no longer fits the cluster."
    kind = known_kind(change)
    if kind is not None and 0 < failed <= rows:
        changed_ = f"{failed:,} of {choose_plural(kind.noun, rows)} changed since planning."
    void = [r.user_name for r in reviews if r.verdict == ReviewVerdict.APPROVED and r.round == change.round]
    if not void:
        return f"{changed_} Nothing was sent to Kafka."
    names = join_items([f"{name}’s" for name in void])
    return (
        f"{changed_} Nothing was sent to Kafka; {names} {choose_plural('approval is|approvals are', len(void))} void."
    )


def _describe_approvals(change: ChangeRequest, given: int) -> str:
    needed = approvals_needed(change)
    return f"{given} of {choose_plural('# approval|# approvals', needed)} given"


def _can_be_run(checks: ReviewChecks) -> str:
    if checks.old and checks.rows and (checks.failed or not checks.repeated):
        if checks.unknown and not checks.failed:
            return "Unknown at the last check whether the plan could run"
        return f"At the last check, the plan {'could not' if checks.failed else 'could'} run"
    if checks.failed:
        return "The plan cannot run now"
    return "Unknown whether the plan can run" if checks.state == "unknown" else "The plan can run"


def _read_trail(change: ChangeRequest) -> Sequence[TrailEntry]:
    events = AuditEvent.objects.filter(object_type="changerequest", object_id=str(change.pk))
    return build_entries(reversed(events.order_by("-at", "-id")[:MOST_EVENTS]))
