"""What the wizard's third step says of a finished plan: the verdict, durations to choose from, the checker's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import QueryDict

from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.impact import Impact
from kafkadash.domain.problem import Problem
from kafkadash.domain.wording import capital, count, duration
from kafkadash.domain.wording import size as size_text
from kafkadash.reassign.asked import DRAIN, EXPLICIT, FINISH, ROLLBACK, Asked, broker_names
from kafkadash.reassign.models import PlanReport
from kafkadash.reassign.proof_words import proof_words
from kafkadash.reassign.rates import megabytes
from kafkadash.reassign.review_sections import PlanPage, TimeAt, plan_page

_RULE_WORDS = {True: ("ok", "passed"), False: ("critical", "failed"), None: ("unknown", "cannot be told")}


@dataclass(frozen=True, slots=True)
class Verdict:
    """``badge``: what is proven, or ''. ``figures``: (what, bytes in words)."""

    state: str
    word: str
    sentence: str
    reasons: Sequence[str]
    badge: str = ""
    figures: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """Of the independent checker."""

    state: str
    word: str
    name: str
    figure: str
    problems: Sequence[str]


@dataclass(frozen=True, slots=True)
class Choice:
    """A throttle to start with."""

    rate: int
    megabytes: str
    seconds: float | None
    proposed: bool
    words: str


def plan_words(change: ChangeRequest, asked: Asked, query: QueryDict, now: datetime) -> dict[str, Any]:
    """Context of ``reassign/_planned.html``; empty where there is no report."""
    page = plan_page(change, query, now)
    report = PlanReport.objects.filter(request=change).only("rules", "took_s", "proof", "generate_bytes").first()
    if page is None or report is None:
        return {}
    found = (change.job.result or {}) if change.job else {}
    return {
        "plan": page,
        "verdict": verdict(page.impact, asked, report),
        "times": [_choice(time, page) for time in page.times],
        "rules": [_rule(stored) for stored in report.rules],
        "notices": [Problem.from_json(one) for one in found.get("notices", [])] if _is_of(found, change) else [],
    }


def verdict(impact: Impact, asked: Asked, report: PlanReport) -> Verdict:
    """Moves, bytes, and why not less: as far as it is proven; a brought plan is taken as it is."""
    proof = proof_words(report, asked.aim)
    took_s = report.took_s
    reasons = [
        "verified without the solver" if proof and proof.verified else "verified by a checker of its own",
        "made in less than 0.1 s" if took_s < 0.1 else f"made in {took_s:.1f} s",
    ]
    if impact.partitions_moved == 0:
        return Verdict("warning", "Empty plan", "There is nothing to do: the cluster is as asked for already.", reasons)
    moved = _moved(impact)
    if proof is not None and impact.copied_bytes != 0:
        return Verdict("ok", "Plan ready", f"{moved} {proof.sentence}", reasons, proof.badge, proof.figures)
    return Verdict("ok", "Plan ready", f"{moved} {_forced(asked)}".strip(), reasons)


def _moved(impact: Impact) -> str:
    if impact.copied_bytes is None:
        known = f"at least {size_text(impact.known_bytes)}, {count(impact.unsized, 'partition')} of unknown size"
        return f"{count(impact.partitions_moved, 'move')}, {known}."
    if impact.copied_bytes == 0:
        changes = count(impact.partitions_moved, "change")
        if impact.only_reordered == impact.partitions_moved:
            return f"{changes} of order only, no data moves."
        drop = "drops" if impact.rf_down == 1 else "drop"
        return f"{changes}, of which {impact.rf_down:,} {drop} replicas; nothing is copied."
    return f"{count(impact.partitions_moved, 'move')}, {size_text(impact.copied_bytes)}."


def _forced(asked: Asked) -> str:
    """Why not less, where nothing is proven."""
    if asked.mode == DRAIN and not asked.rebalance and not asked.some_topics:
        one = len(asked.brokers) == 1
        holds, it = ("holds", "it") if one else ("hold", "them")
        return f"{capital(broker_names(asked.brokers))} {holds} this much: no plan that drains {it} moves less."
    return "Exactly as given." if asked.mode in (EXPLICIT, FINISH, ROLLBACK) else ""


def _choice(time: TimeAt, page: PlanPage) -> Choice:
    return Choice(time.rate, megabytes(time.rate), time.seconds, time.proposed, _choice_words(time, page))


def _choice_words(time: TimeAt, page: PlanPage) -> str:
    """Whether it fits the window, and whether the approved bounds hold it."""
    words = []
    bar = page.window.bar
    if bar is not None and time.seconds is not None:
        spare = (bar.closes - bar.run_start).total_seconds() - time.seconds
        words.append("fits the window" if spare >= 0 else f"{duration(-spare)} too long for the window")
    if time.beyond:
        words.append("widens the bounds")
    return ", ".join(words) or ("as proposed" if time.proposed else "")


def _rule(stored: Sequence[Any]) -> Rule:
    name, passed, figure, problems = stored
    state, word = _RULE_WORDS[passed]
    return Rule(state, word, capital(name), figure, problems)


def _is_of(found: Mapping[str, Any], change: ChangeRequest) -> bool:
    """Whether the last planning made the plan that the request has."""
    return bool(found.get("sha256")) and found["sha256"] == change.artifact_id
