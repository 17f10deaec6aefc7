"""Plans of items: made from stored rows, checked against them, and made again. Kafka is not asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.checks import ChangeCheck, CheckOutcome, CheckResult, CheckSubject
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plans import refresh_plan, store_plan
from kafkadash.changes.request_validation import LONGEST_TITLE
from kafkadash.changes.rights import check_rights
from kafkadash.changes.step_checks import may_still_change
from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.messages import CodedMessage, coded, reason_message
from kafkadash.monitoring.freshness import FactFreshness, freshness_of_kind, read_statuses
from kafkadash.monitoring.models import ClusterState
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import ROLLBACK, Items, PlannedItems, ShortKind, encode_items, items_of, short_kind
from kafkadash.short_runs.validation import check_validation, validate_later
from kafkadash.topic_rules.checks import check_rules, judge_items, note_left_out

log = structlog.get_logger(__name__)

MOST_ITEMS = 50_000
MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class MadePlan:
    """Items planned from an input, with the freshness of the facts behind them."""

    kind: ShortKind
    planned: PlannedItems
    freshness: FactFreshness

    @property
    def items(self) -> Items:
        return self.planned.items

    @property
    def left_out(self) -> Sequence[CodedMessage]:
        return self.planned.left_out

    def encode(self) -> tuple[bytes, int]:
        """Return the artifact and its number of items. Raises ChangeRefused for too many."""
        if len(self.items) > MOST_ITEMS:
            raise ChangeRefused(ShortRunErrorCode.TOO_MANY_ITEMS, items=len(self.items), most=MOST_ITEMS)
        return encode_items(self.kind.name, self.items), len(self.items)


def shorten_title(offered: str) -> str:
    """Return an offered title as long as a request may have one: names of topics are longer. Typed ones are refused."""
    return offered if len(offered) <= LONGEST_TITLE else f"{offered[: LONGEST_TITLE - 1]}…"


def read_freshness(kind: ShortKind, cluster: Cluster, now: datetime) -> FactFreshness:
    """Return the freshness of the oldest facts behind plans of a kind. One query."""
    statuses = read_statuses([cluster.pk])[cluster.pk]
    fresh = [freshness_of_kind(fact, statuses, now) for fact in kind.facts]
    return max(fresh, key=lambda each: (each.taken_at is None, each.stale, each.age_s or 0.0))


def plan_items(kind: ShortKind, cluster: Cluster, wanted: Mapping[str, Any], *, restores: bool = False) -> MadePlan:
    """Plan an input. The freshness of its facts is read first: the plan is never older than that says.

    Items that the topic rules do not allow are left out, unless the plan is that of a rollback (``restores``).
    """
    now = clock.now()
    freshness = read_freshness(kind, cluster, now)
    planned = kind.plan(cluster, wanted)
    if kind.ruled is not None and planned.items and not restores:
        broken = judge_items(cluster, kind.ruled(planned.items), now).first
        kept = [item for item in planned.items if item.subject not in broken]
        planned = PlannedItems(kept, [*planned.left_out, *note_left_out(broken)]) if broken else planned
    return MadePlan(kind, planned, freshness)


def is_rollback(change: ChangeRequest) -> bool:
    return change.origin_word == ROLLBACK


def plan_draft(draft: ChangeRequest) -> ChangeRequest:
    """Plan a draft from its input; without items it stays without a plan. Raises ChangeRefused."""
    made = plan_items(short_kind(draft.kind), draft.cluster, draft.input, restores=is_rollback(draft))
    return _store(draft, made) if made.items else draft


def create_planned_draft(
    cluster: Cluster,
    user: User,
    made: MadePlan,
    wanted: Mapping[str, Any],
    title: str,
    why: str = "",
    request: HttpRequest | None = None,
    origin: ChangeRequest | None = None,
    origin_word: str = "",
) -> ChangeRequest:
    """Create a draft with the plan of its input, or nothing of it.

    Raises ChangeRefused, also for a plan without items, with the first reason why something was left out of it.
    """
    if not made.items:
        raise ChangeRefused(made.left_out[0] if made.left_out else ShortRunErrorCode.NOTHING_TO_DO)
    with transaction.atomic():
        draft = services.create_draft(
            cluster,
            made.kind.name,
            user,
            title=title,
            input=wanted,
            options={},
            origin=origin,
            origin_word=origin_word,
            request=request,
        )
        draft = _store(draft, made)
        return services.edit_draft(draft, user, draft.version, why=why, request=request) if why else draft


def _store(draft: ChangeRequest, made: MadePlan) -> ChangeRequest:
    """Raises ChangeRefused."""
    artifact, rows = made.encode()
    stored = store_plan(draft.pk, draft.version, artifact, rows, made.freshness.taken_at, made.left_out)
    validate_later(stored)
    return stored


def plan_copy(_: ChangeRequest, copy: ChangeRequest) -> None:
    """Plan a copy for the cluster as it is now, after this transaction; what cannot be planned is still a draft."""
    transaction.on_commit(partial(plan_draft, copy), robust=True)


def replan_items(change: ChangeRequest, user: User) -> None:
    """Plan a stale request again: its input is applied to the cluster as stored now. Raises ChangeRefused.

    The new plan is stored after this transaction, which notes who asked for it.
    """
    made = plan_items(short_kind(change.kind), change.cluster, change.input, restores=is_rollback(change))
    if not made.items:
        raise ChangeRefused(ChangeErrorCode.NOTHING_LEFT, number=change.pk)
    transaction.on_commit(partial(_refresh, change, user, made, *made.encode()))


def _refresh(change: ChangeRequest, user: User, made: MadePlan, artifact: bytes, rows: int) -> None:
    try:
        validate_later(
            refresh_plan(
                change,
                user,
                version=change.version,
                artifact=artifact,
                rows=rows,
                topology_at=made.freshness.taken_at,
                left_out=made.left_out,
            )
        )
    except ChangeRefused as refused:  # somebody withdrew it at this instant
        log.info("short_run.not_refreshed", change=change.pk, why=str(refused))


def check_items(change: ChangeRequest, now: datetime) -> CheckOutcome:
    """Check the items of a request against stored rows. Nothing is told from facts that are not fresh."""
    kind, items = short_kind(change.kind), items_of(change)
    freshness = read_freshness(kind, change.cluster, now)
    title = coded(kind.title)
    old = coded(ShortRunErrorCode.FACTS_OLD) if freshness.stale else kind.stale(change.cluster, items)
    if old is not None:
        check = ChangeCheck("items_fit", CheckSubject.CONTENT, CheckResult.UNKNOWN, title, problems=(old,))
        return CheckOutcome((check,), freshness.taken_at)
    faults = kind.find_faults(change.cluster, items)
    if faults and may_still_change(change, freshness.taken_at):
        faults = {subject: why for subject, why in faults.items() if why.stored_code not in kind.passing}
    told = [(subject, reason_message(why)) for subject, why in faults.items()]
    problems = tuple(
        coded(ShortRunErrorCode.ITEM_DOES_NOT_FIT, item=subject, why=why) for subject, why in told[:MOST_PROBLEMS]
    )
    result = CheckResult.FAILED if faults else CheckResult.PASSED
    figure = f"{len(items) - len(faults):,} of {len(items):,}"
    check = ChangeCheck("items_fit", CheckSubject.CONTENT, result, title, figure, problems, len(faults))
    validated = (check_validation(change),) if kind.validate is not None else ()
    rights = check_rights(change.cluster, kind.rights(items), now)
    ruled = kind.ruled(items) if kind.ruled is not None else ()
    rules = check_rules(change.cluster, ruled, now, restores=is_rollback(change)) if ruled else ()
    return CheckOutcome((check, *rules, rights, *validated), freshness.taken_at)


def share_of_partitions(cluster: Cluster, number: int) -> float | None:
    """Return which part of a cluster's partitions a number is, 0 to 1; None where the cluster was not read."""
    total = ClusterState.objects.filter(cluster=cluster).values_list("partitions", flat=True).first()
    return number / total if total else None
