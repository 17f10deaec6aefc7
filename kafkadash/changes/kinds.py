"""Registry of the kinds of changes: how each kind proposes, checks and shows a change.

``changes`` keeps requests, approvals and comments, and contains no kind itself. An app registers its kinds in
``AppConfig.ready``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest

from kafkadash.changes.checks import CheckOutcome
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.risk import RiskFacts
from kafkadash.changes.state_machine import ChangeState
from kafkadash.core.errors import UserError

if TYPE_CHECKING:
    from kafkadash.accounts.models import User
    from kafkadash.changes.models import ChangeRequest


class UnknownChangeKind(UserError):
    """No app made this kind known; ``str()`` names it."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The run of one request, as lists and bars show it; no more than what its last step stored.

    ``url`` of its page, ``pause_url`` and ``resume_url`` that forms are sent to, ``cancel_url`` of what a cancel would
    do, ``report_url`` once it has ended, ``back_url`` that proposes the way back. ``percent`` of the bytes, or
    ``known_percent`` of those whose size is known, while others are not; ``ends_at`` as estimated, None where that is
    not known, and ``no_progress`` where it would never end. ``behind``: numbers of the requests whose turn comes
    before. ``blocked``: why it does not begin though it is its turn. ``outcome``: how it ended, of one that is done.
    ``end_state`` (of the status tokens) and ``end_words``, a sentence: of each that has ended. ``old``: nobody has
    looked at it for longer than is right, so ``percent`` is of ``figures_at`` and nothing tells how it goes now.
    ``own_page``: whether the run has a page beside the review.
    """

    url: str
    pause_url: str
    resume_url: str
    cancel_url: str
    report_url: str = ""
    back_url: str = ""
    begun: bool = False
    percent: float | None = None
    known_percent: float | None = None
    ends_at: datetime | None = None
    no_progress: bool = False
    stuck: int = 0
    slow: int = 0
    behind: tuple[int, ...] = ()
    blocked: str = ""
    blocked_at: datetime | None = None
    outcome: str = ""
    end_state: str = ""
    end_words: str = ""
    figures_at: datetime | None = None
    old: bool = False
    own_page: bool = True


@dataclass(frozen=True, slots=True)
class RunWords:
    """Sentences about a run of a kind: by state, and what a pause and a resume do."""

    paused: str
    cancelling: str
    verifying: str
    pause: str
    resume: str


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """Kind of change requests. No function here asks Kafka: they read stored rows.

    ``noun``: singular and plural of a plan's row, as for ``choose_plural``.

    ``edit_url``: where a draft is edited (permalink of its step). ``checks``: content and health, judged at the time
    given. ``risk``: what the risk floor is reckoned from. ``digest``: of what is in the request now, '' where its plan
    or options are missing or unreadable; raises nothing. ``review_template`` is included by the review page between
    the verdict and the checks, with what ``review_context`` returns. ``facts``: short figures for the list and the
    summary bar, as (figure, unit or words) pairs. ``replan``: queue a new plan for a stale request;
    ``changes.plans.refresh_plan`` ends it.
    ``starts``: whether an approved request of this kind can be run by this version. ``approvals_needed``: the fewest
    approvals, whatever the policy says; with more than one, authors never approve and there is no break-glass.
    ``approvals_by_plan``: the fewest of a request with its plan, where some need more than others of the kind.
    ``moved``: told of each new state with the one before, in the transaction that stores it and with the request as it
    was; what it needs of the request beside its state is there. ``copied``: takes over what the kind keeps beside a
    request, from the original to its copy. ``related``: names for ``select_related`` of what ``facts`` reads, so that a
    list asks for all rows together.

    ``start_words``: what a start does, in sentences; ``run_words``: those about its run. ``runs``: the runs of those of
    these requests that have one, by number; the number of queries is the same for any.

    ``review_context`` may hold ``sections``: (anchor, label, figure) for each panel of the template, for the index of
    the page.
    """

    name: str
    label: str
    noun: str
    edit_url: Callable[[ChangeRequest], str]
    checks: Callable[[ChangeRequest, datetime], CheckOutcome]
    risk: Callable[[ChangeRequest], RiskFacts]
    digest: Callable[[ChangeRequest], str]
    review_template: str
    review_context: Callable[[ChangeRequest, HttpRequest, datetime], Mapping[str, Any]]
    facts: Callable[[ChangeRequest], Sequence[tuple[str, str]]]
    replan: Callable[[ChangeRequest, User], None]
    starts: bool = False
    approvals_needed: int = 1
    approvals_by_plan: Callable[[ChangeRequest], int] | None = None
    moved: Callable[[ChangeRequest, ChangeState, ChangeState], None] | None = None
    copied: Callable[[ChangeRequest, ChangeRequest], None] | None = None
    related: tuple[str, ...] = ()
    start_words: Callable[[ChangeRequest, datetime], Sequence[str]] | None = None
    run_words: RunWords | None = None
    runs: Callable[[Sequence[ChangeRequest]], Mapping[int, RunSummary]] | None = None


_kinds: dict[str, ChangeKind] = {}


def register_kind(kind: ChangeKind) -> None:
    """Raises ValueError when another kind already has the name."""
    known = _kinds.setdefault(kind.name, kind)
    if known != kind:
        raise ValueError(f"Two kinds of changes are called {kind.name!r}.")


def registered_kinds() -> tuple[ChangeKind, ...]:
    """All that are registered, by name."""
    return tuple(_kinds[name] for name in sorted(_kinds))


def kind_of(name: str) -> ChangeKind:
    """Raises UnknownKind."""
    try:
        return _kinds[name]
    except KeyError:
        raise UnknownChangeKind(ChangeErrorCode.CHANGE_KIND_UNKNOWN, name=name) from None


def least_approvals(name: str) -> int:
    """Return the fewest approvals of a kind; 1 for a kind that this version does not know, which cannot start."""
    return _kinds[name].approvals_needed if name in _kinds else 1


def find_least_approvals(change: ChangeRequest) -> int:
    """Return the fewest approvals of a request with its plan. Raises UnknownKind."""
    kind = kind_of(change.kind)
    by_plan = kind.approvals_by_plan(change) if kind.approvals_by_plan is not None else 1
    return max(kind.approvals_needed, by_plan)
