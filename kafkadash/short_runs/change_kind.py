"""Short kinds as kinds of changes: digest, checks, review, start, and the run beside the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

from django.core.paginator import Page, Paginator
from django.http import HttpRequest
from django.urls import reverse

from kafkadash.changes import kinds
from kafkadash.changes.kinds import RunSummary
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import RAN, RUNNING, ChangeState
from kafkadash.core import clock
from kafkadash.core.leases import from_now
from kafkadash.core.messages import CodedMessage, choose_plural, reason_message, reason_text
from kafkadash.monitoring.freshness import FactFreshness
from kafkadash.short_runs.kinds import (
    Items,
    ItemWords,
    ShortKind,
    digest_items,
    items_of,
    keep_short_kind,
    short_kind,
)
from kafkadash.short_runs.models import ShortItem, ShortOutcome, ShortRun, StoredItemState
from kafkadash.short_runs.plans import check_items, plan_copy, replan_items
from kafkadash.short_runs.state import ENDED, REACHED, ItemState, PlannedItem

OLD_AFTER = timedelta(minutes=1)
PAGE_SIZE = 100
RUN_WORDS = kinds.RunWords(
    paused="Paused. Nothing further is sent to Kafka.",
    cancelling="Cancelling. Requests in flight are settled; the others are not sent.",
    verifying="Verifying. All items are read once more.",
    pause="Nothing further is sent. Requests in flight are settled.",
    resume="The remaining items are sent.",
)


def make_short_kind_known(kind: ShortKind) -> None:
    """Register a kind, in ``AppConfig.ready`` of its room."""
    keep_short_kind(kind)
    of_items = kind.approvals_of_items
    kinds.register_kind(
        kinds.ChangeKind(
            name=kind.name,
            label=kind.label,
            noun=kind.noun,
            edit_url=draft_url,
            checks=check_items,
            risk=lambda change: kind.risk(change.cluster, items_of(change)),
            digest=digest_items,
            review_template="short_runs/_review.html",
            review_context=review_items,
            facts=short_facts,
            replan=replan_items,
            starts=True,
            approvals_needed=kind.approvals_needed,
            approvals_by_plan=(lambda change: of_items(items_of(change))) if of_items else None,
            moved=follow_change_state,
            copied=plan_copy,
            start_words=lambda change, _: kind.start_words(items_of(change)),
            run_words=RUN_WORDS,
            runs=summarize_short_runs,
        ),
    )


def draft_url(change: ChangeRequest) -> str:
    return reverse("short_runs:draft", args=[change.pk])


def short_facts(change: ChangeRequest) -> Sequence[tuple[str, str]]:
    """Return the number of items, such as ("12", "partitions")."""
    number = change.artifact.rows if change.artifact else 0
    figure, _, noun = choose_plural(short_kind(change.kind).noun, number).partition(" ")
    return [(figure, noun)]


def follow_change_state(change: ChangeRequest, before: ChangeState, after: ChangeState) -> None:
    """The run comes into being when its request is queued, and goes when that leaves the queue without its turn."""
    own = ShortRun.objects.filter(request=change)
    if after is ChangeState.QUEUED:
        own.delete()
        ShortRun.objects.create(request=change, cluster=change.cluster)
    elif before is ChangeState.QUEUED and after is not ChangeState.EXECUTING:
        own.delete()
    else:
        own.update(next_at=from_now(0))


def summarize_short_runs(changes: Sequence[ChangeRequest]) -> Mapping[int, RunSummary]:
    """Return the summaries of these requests' runs, by request number. One query."""
    runs = ShortRun.objects.filter(request__in=[change.pk for change in changes])
    by_number = {change.pk: change for change in changes}
    return {run.request_id: _summarize_run(run, by_number[run.request_id]) for run in runs}


def _summarize_run(run: ShortRun, change: ChangeRequest) -> RunSummary:
    counts = {ItemState(state): number for state, number in run.counts.items()}
    ended = sum(number for state, number in counts.items() if state in ENDED)
    reached = sum(number for state, number in counts.items() if state in REACHED)
    over = change.state in RAN
    may_go_back = over and counts.get(ItemState.DONE) and short_kind(change.kind).rollback_input is not None
    return RunSummary(
        url=f"{reverse('changes:request', args=[change.pk])}#items",
        pause_url=reverse("short_runs:pause", args=[change.pk]),
        resume_url=reverse("short_runs:resume", args=[change.pk]),
        cancel_url=reverse("short_runs:cancel", args=[change.pk]),
        back_url=reverse("short_runs:rollback", args=[change.pk]) if may_go_back else "",
        begun=run.started_at is not None,
        percent=100 * ended / run.items if run.items else None,
        blocked=reason_text(run.blocked),
        blocked_at=run.blocked_at,
        outcome=run.get_outcome_display() if run.outcome else "",
        end_state=("ok" if run.outcome == ShortOutcome.CLEAN else "warning") if over else "",
        end_words=_describe_end(change, reached, run.items) if over else "",
        figures_at=run.looked_at,
        old=change.state in RUNNING and run.started_at is not None and _is_old(run),
        own_page=False,
    )


def _is_old(run: ShortRun) -> bool:
    """Return whether no step read the cluster for a minute."""
    seen_at = run.looked_at or run.started_at
    return seen_at is None or clock.now() - seen_at > OLD_AFTER


def _describe_end(change: ChangeRequest, reached: int, total: int) -> str:
    noun = choose_plural(short_kind(change.kind).noun, total)
    return f"{reached:,} of {noun} as planned."


class ShownItem(TypedDict):
    """``row`` is None before the run has begun."""

    subject: str
    words: ItemWords
    row: ShortItem | None


class ItemsContext(TypedDict):
    """``more``: items that a preview leaves out. ``stale``: whether the plan rests on data that is too old."""

    rows: list[ShownItem]
    page: Page[Any] | None
    total: int
    more: int
    stale: bool
    short_kind: ShortKind
    now: datetime
    problem: CodedMessage | None
    chosen: str
    tally: list[tuple[str, str, int]]
    sections: list[tuple[str, str, str]]


def review_items(change: ChangeRequest, request: HttpRequest, now: datetime) -> ItemsContext:
    """Return one page of the items, with states once there is a run; ``?items=refused`` shows those of a state."""
    kind, chosen = short_kind(change.kind), request.GET.get("items", "")
    run = ShortRun.objects.filter(request=change, started_at__isnull=False).first()
    shown: list[ShownItem]
    part: Page[Any]
    if run is not None:
        stored = ShortItem.objects.filter(run=run).order_by("place")
        page = Paginator(stored.filter(state=chosen) if chosen in StoredItemState.values else stored, PAGE_SIZE)
        part = page.get_page(request.GET.get("page"))
        shown = [_show_stored(kind, row) for row in part.object_list]
    else:
        part = Paginator(items_of(change), PAGE_SIZE).get_page(request.GET.get("page"))
        shown = _show_planned(kind, list(part.object_list))
    total = change.artifact.rows if change.artifact else 0
    return {
        "rows": shown,
        "page": part,
        "total": total,
        "more": 0,
        "stale": False,
        "short_kind": kind,
        "now": now,
        "problem": reason_message(run.error) if run and change.state in RUNNING else None,
        "chosen": chosen,
        "tally": _tally_states(run) if run else [],
        "sections": [("items", "Items", f"{total:,}")],
    }


def preview_items(kind: ShortKind, items: Items, freshness: FactFreshness) -> ItemsContext:
    """Return the first items of a plan that is not stored."""
    shown = _show_planned(kind, items[:PAGE_SIZE])
    return {
        "rows": shown,
        "page": None,
        "total": len(items),
        "more": len(items) - len(shown),
        "stale": freshness.stale,
        "short_kind": kind,
        "now": freshness.now,
        "problem": None,
        "chosen": "",
        "tally": [],
        "sections": [],
    }


def _show_planned(kind: ShortKind, items: Items) -> list[ShownItem]:
    return [{"subject": item.subject, "words": kind.words(item, None), "row": None} for item in items]


def _tally_states(run: ShortRun) -> list[tuple[str, str, int]]:
    """Return value, words and number of each state that items are in."""
    return [
        (state.value, str(state.label), run.counts[state.value])
        for state in StoredItemState
        if state.value in run.counts
    ]


def _show_stored(kind: ShortKind, row: ShortItem) -> ShownItem:
    item = PlannedItem(row.subject, row.content)
    return {"subject": row.subject, "words": kind.words(item, row.before), "row": row}
