"""The review page of a change request: what is proposed, whether it can be run, who decided, what one may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from kafkadash.accounts.models import AuditEvent
from kafkadash.changes.decision import RAN, RUNS, approvals_needed, decision_of, too_few_approvers
from kafkadash.changes.kinds import ChangeKind, Run
from kafkadash.changes.list_rows import known_kind, run_of
from kafkadash.changes.models import ChangeRequest, Review, Verdict
from kafkadash.changes.phases import steps
from kafkadash.changes.replanning import replanning
from kafkadash.changes.running import start_key
from kafkadash.changes.trail import Entry, entries
from kafkadash.clusters.access import actions_allowed
from kafkadash.domain.checks import About, Check, Result
from kafkadash.domain.risk import level_of
from kafkadash.domain.wording import count, duration, listed
from kafkadash.domain.workflow_states import State
from kafkadash.observe.models import Kind
from kafkadash.observe.standing import Freshness

MOST_EVENTS = 200
_CHECKED = (Kind.METADATA, Kind.REASSIGNMENTS, Kind.QUORUM, Kind.LOG_DIRS)
WAITING = (State.PROPOSED, State.APPROVED, State.QUEUED, State.STALE)
"""States in which a request may expire and checks are repeated; in the others they are a record of the last time."""
_ENDS = ("change.failed", "change.cancelled")
"""Events whose reason is why a run did not end as planned."""
_RISK_STATES = {"low": "ok", "medium": "warning", "high": "critical"}
_NUMBERS = ("no", "one", "two", "three", "four", "five")


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check as the list shows it; the state's word is said to those who cannot see the shape.

    ``old``: it is not what is so now, and so it is not green. ``record``: it is how it was when it was checked for the
    last time, and what it passed stays passed.
    """

    check: Check
    old: bool
    record: bool = False

    @property
    def state(self) -> str:
        """Of the status tokens; '' for a record of what passed, which is no state of anything now."""
        if self.check.result is Result.FAILED:
            return "critical" if self.check.about is About.CONTENT else "warning"
        if self.check.result is Result.PASSED and self.record:
            return ""
        return "unknown" if self.old or self.check.result is Result.UNKNOWN else "ok"

    @property
    def word(self) -> str:
        return {"failed": "fails", "unknown": "not known"}.get(
            self.check.result.value, "passed" if self.old else "passes"
        )

    @property
    def more(self) -> int:
        """Problems that are not listed."""
        return max(0, self.check.problem_count - len(self.check.problems))


@dataclass(frozen=True, slots=True)
class Checks:
    """All checks of a request and how they ended together. ``repeated``: whether they are still judged again."""

    rows: Sequence[CheckRow]
    freshness: Freshness
    repeated: bool

    def of(self, about: About) -> list[CheckRow]:
        return [row for row in self.rows if row.check.about is about]

    @property
    def content(self) -> list[CheckRow]:
        return self.of(About.CONTENT)

    @property
    def health(self) -> list[CheckRow]:
        return self.of(About.HEALTH)

    @property
    def passed(self) -> int:
        return sum(row.check.result is Result.PASSED for row in self.rows)

    @property
    def failed(self) -> int:
        return sum(row.check.result is Result.FAILED for row in self.rows)

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
        """Ends without a full stop: "12 of 12 checks pass"."""
        if not self.rows:
            return "not checked against the cluster yet"
        verb = "passed" if self.old else "pass"
        unknown = f", {self.unknown} cannot be told" if self.unknown else ""
        return f"{self.passed} of {count(len(self.rows), 'check')} {verb}{unknown}"


@dataclass(frozen=True, slots=True)
class Assessment:
    """The line below the reason: the risk on a pill, one sentence, what the risk is made of. ``state`` is the worse of
    the risk and the checks.
    """

    state: str
    pill_state: str
    pill: str
    sentence: str
    reasons: Sequence[tuple[int, str]]


def review_context(request: HttpRequest, change: ChangeRequest, now: datetime) -> dict[str, Any]:
    """Everything the page and its refetch show."""
    kind = known_kind(change)
    checks = checks_of(change, now)
    reviews = list(change.reviews.all())
    approvals = valid_approvals(change, reviews)
    may = actions_allowed(request.user, change.cluster)
    starts = bool(kind and kind.starts)
    trail = _trail(change)
    decision = decision_of(request.user, change, may, approvals, checks.freshness, starts=starts)
    of_kind = _of_kind(kind, change, request, now)
    return {
        "change": change,
        "kind": kind,
        "facts": kind.facts(change) if kind and change.artifact_id else (),
        "of_kind": of_kind,
        "sections": of_kind.get("sections", ()),
        "edit_url": kind.edit_url(change) if kind and change.state == State.DRAFT else "",
        "expires": _expires(change, now),
        "steps": steps(change.state, submitted=change.submitted_at is not None, starts=starts),
        "checks": checks,
        "verdict": verdict_of(change, checks, approvals),
        "reviews": reviews,
        "approvals": approvals,
        "needed": approvals_needed(change),
        "missing": max(1, approvals_needed(change) - len(approvals)),
        "too_few": too_few_approvers(change),
        "declined": [r for r in reviews if r.verdict == Verdict.DECLINED and r.round == change.round],
        "replanning": replanning(change),
        "stale_sentence": stale_sentence(change, reviews, checks),
        "comments": list(change.comments.all()),
        "trail": trail,
        "decision": decision,
        "run": run_of(change),
        "runs_now": change.state in RUNS,
        "ended_by": next((entry for entry in reversed(trail) if entry.action in _ENDS), None),
        "start_words": _start_words(kind, change, now) if decision.may_start or decision.may_break_glass else (),
        "start_key": start_key(change, request.user) if decision.may_start else "",
    }


def bar_context(
    request: HttpRequest, change: ChangeRequest, may: frozenset[str], now: datetime, run: Run | None = None
) -> dict[str, Any]:
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
        "runs_now": change.state in RUNS,
    }


def _start_words(kind: ChangeKind | None, change: ChangeRequest, now: datetime) -> Sequence[str]:
    return kind.start_words(change, now) if kind and kind.start_words else ()


def _expires(change: ChangeRequest, now: datetime) -> str:
    """In how long, '' where nothing expires: what is queued may wait for its turn as long as its window is open."""
    if change.state not in WAITING or change.state == State.QUEUED or change.expires_at is None:
        return ""
    return duration((change.expires_at - now).total_seconds())


def _of_kind(kind: ChangeKind | None, change: ChangeRequest, request: HttpRequest, now: datetime) -> Mapping[str, Any]:
    return kind.review_context(change, request, now) if kind and change.artifact_id else {}


def facts_of(change: ChangeRequest, now: datetime) -> Freshness:
    """How old the oldest of the facts are that the last checks rest on."""
    return freshness_of_checks(change.checked_at, now)


def freshness_of_checks(facts_at: datetime | None, now: datetime) -> Freshness:
    """Of the oldest facts: old when even what is read least often should have been read again.

    A check whose own facts are old says by itself that it cannot tell.
    """
    return Freshness(facts_at, max(settings.COLLECT_INTERVALS[kind] for kind in _CHECKED), now)


def checks_of(change: ChangeRequest, now: datetime) -> Checks:
    repeated = change.state in WAITING
    freshness = facts_of(change, now)
    rows = [
        CheckRow(Check.from_json(stored), not repeated or freshness.stale, record=not repeated)
        for stored in change.checks
    ]
    return Checks(rows, freshness, repeated)


def valid_approvals(change: ChangeRequest, reviews: Sequence[Review]) -> list[Review]:
    """Those that hold for exactly what is proposed now."""
    return [
        review
        for review in reviews
        if review.verdict == Verdict.APPROVED
        and review.void_at is None
        and review.round == change.round
        and review.digest == change.digest
    ]


def verdict_of(change: ChangeRequest, checks: Checks, approvals: Sequence[Review]) -> Assessment | None:
    """None where nothing was proposed yet. Of what has begun it is a record: how it goes or ended is said above it."""
    if change.risk is None:
        return None
    level = level_of(change.risk)
    begun = change.state in (*RUNS, *RAN)
    what = "Before it began" if begun else _can_be_run(checks)
    sentence = f"{what}: {checks.sentence}. Risk {change.risk} of 100, {_approvals(change, len(approvals))}."
    state = "unknown" if change.state in RAN else _RISK_STATES[level]
    return Assessment(
        state=checks.state if state == "ok" else state,
        pill_state=state,
        pill=f"{level.capitalize()} risk",
        sentence=sentence,
        reasons=[(points, why) for points, why in change.risk_reasons],
    )


def stale_sentence(change: ChangeRequest, reviews: Sequence[Review], checks: Checks) -> str:
    """What became of the plan and of the approvals it had."""
    failed = sum(max(1, row.check.problem_count) for row in checks.content if row.check.result is Result.FAILED)
    rows = change.artifact.rows if change.artifact else 0
    changed_ = "The plan no longer fits the cluster."
    if 0 < failed <= rows:
        changed_ = f"{failed:,} of {count(rows, 'row')} changed since the plan."
    void = [r.user_name for r in reviews if r.verdict == Verdict.APPROVED and r.round == change.round]
    if not void:
        return f"{changed_} Nothing was sent."
    names = listed([f"{name}’s" for name in void])
    return f"{changed_} Nothing was sent; {names} approval{' is' if len(void) == 1 else 's are'} void."


def _approvals(change: ChangeRequest, given: int) -> str:
    needed = approvals_needed(change)
    asked = f"{_number(needed)} approval{'' if needed == 1 else 's'}"
    if given >= needed:
        return f"{asked} given"
    return f"{asked} needed, {_number(given)} given" if given else f"{asked} needed"


def _can_be_run(checks: Checks) -> str:
    if checks.old and checks.rows and (checks.failed or not checks.repeated):
        could = "could not" if checks.failed else "could" if not checks.unknown else "perhaps could"
        return f"When it was last checked it {could} be run"
    if checks.failed:
        return "Cannot be run as it is now"
    return "Whether it can be run is not known" if checks.state == "unknown" else "Can be run as planned"


def _number(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)


def _trail(change: ChangeRequest) -> Sequence[Entry]:
    events = AuditEvent.objects.filter(object_type="changerequest", object_id=str(change.pk))
    return entries(reversed(events.order_by("-at", "-id")[:MOST_EVENTS]))
