"""Plans of items: made from stored rows, checked against them, and made again. Kafka is not asked."""

from __future__ import annotations

from collections.abc import Mapping
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
from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.messages import coded, reason_message
from kafkadash.monitoring.freshness import FactFreshness, freshness_of_kind, read_statuses
from kafkadash.monitoring.models import ClusterState
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import PlannedItems, ShortKind, encode_items, items_of, short_kind
from kafkadash.short_runs.validation import check_validation, validate_later

log = structlog.get_logger(__name__)

MOST_ITEMS = 50_000
MOST_PROBLEMS = 20


def shorten_title(offered: str) -> str:
    """Return an offered title as long as a request may have one: names of topics are longer. Typed ones are refused."""
    return offered if len(offered) <= LONGEST_TITLE else f"{offered[: LONGEST_TITLE - 1]}…"


def read_freshness(kind: ShortKind, cluster: Cluster, now: datetime) -> FactFreshness:
    """Return the freshness of the oldest facts behind plans of a kind. One query."""
    statuses = read_statuses([cluster.pk])[cluster.pk]
    fresh = [freshness_of_kind(fact, statuses, now) for fact in kind.facts]
    return max(fresh, key=lambda each: (each.taken_at is None, each.stale, each.age_s or 0.0))


def plan_items(kind: ShortKind, cluster: Cluster, wanted: Mapping[str, Any]) -> tuple[PlannedItems, FactFreshness]:
    """Return the plan of an input, and the freshness of its facts, which is read first: never newer than they are."""
    freshness = read_freshness(kind, cluster, clock.now())
    return kind.plan(cluster, wanted), freshness


def plan_draft(draft: ChangeRequest) -> ChangeRequest:
    """Plan a draft from its input; without items it stays without a plan. Raises ChangeRefused."""
    kind = short_kind(draft.kind)
    planned, freshness = plan_items(kind, draft.cluster, draft.input)
    if not planned.items:
        return draft
    if len(planned.items) > MOST_ITEMS:
        raise ChangeRefused(ShortRunErrorCode.TOO_MANY_ITEMS, items=len(planned.items), most=MOST_ITEMS)
    artifact = encode_items(kind.name, planned.items)
    stored = store_plan(draft.pk, draft.version, artifact, len(planned.items), freshness.taken_at)
    validate_later(stored)
    return stored


@transaction.atomic
def create_planned_draft(
    cluster: Cluster,
    user: User,
    kind: str,
    wanted: Mapping[str, Any],
    title: str,
    why: str,
    request: HttpRequest | None = None,
) -> ChangeRequest:
    """Create and plan a draft, or nothing of it. Raises ChangeRefused, also where there is nothing to do."""
    draft = services.create_draft(cluster, kind, user, title=title, input=wanted, options={}, request=request)
    draft = plan_draft(draft)
    refuse_empty_plan(draft)
    return services.edit_draft(draft, user, draft.version, why=why, request=request)


def refuse_empty_plan(draft: ChangeRequest) -> None:
    """Raises ChangeRefused for a draft without items, with the first reason why something was left out of it."""
    if not draft.artifact_id:
        left_out = short_kind(draft.kind).plan(draft.cluster, draft.input).left_out
        raise ChangeRefused(left_out[0] if left_out else ShortRunErrorCode.NOTHING_TO_DO)


def plan_copy(_: ChangeRequest, copy: ChangeRequest) -> None:
    """Plan a copy for the cluster as it is now, after this transaction; what cannot be planned is still a draft."""
    transaction.on_commit(partial(plan_draft, copy), robust=True)


def replan_items(change: ChangeRequest, user: User) -> None:
    """Plan a stale request again: its input is applied to the cluster as stored now. Raises ChangeRefused.

    The new plan is stored after this transaction, which notes who asked for it.
    """
    kind = short_kind(change.kind)
    planned, freshness = plan_items(kind, change.cluster, change.input)
    if not planned.items:
        raise ChangeRefused(ChangeErrorCode.NOTHING_LEFT, number=change.pk)
    if len(planned.items) > MOST_ITEMS:
        raise ChangeRefused(ShortRunErrorCode.TOO_MANY_ITEMS, items=len(planned.items), most=MOST_ITEMS)
    artifact = encode_items(kind.name, planned.items)
    store = partial(_refresh, change, user, artifact, len(planned.items), freshness.taken_at)
    transaction.on_commit(store)


def _refresh(change: ChangeRequest, user: User, artifact: bytes, rows: int, facts_at: datetime | None) -> None:
    try:
        validate_later(
            refresh_plan(change, user, version=change.version, artifact=artifact, rows=rows, topology_at=facts_at)
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
    told = [(subject, reason_message(why)) for subject, why in faults.items()]
    problems = tuple(
        coded(ShortRunErrorCode.ITEM_DOES_NOT_FIT, item=subject, why=why) for subject, why in told[:MOST_PROBLEMS]
    )
    result = CheckResult.FAILED if faults else CheckResult.PASSED
    figure = f"{len(items) - len(faults):,} of {len(items):,}"
    check = ChangeCheck("items_fit", CheckSubject.CONTENT, result, title, figure, problems, len(faults))
    validated = (check_validation(change),) if kind.validate is not None else ()
    rights = check_rights(change.cluster, kind.rights(items), now)
    return CheckOutcome((check, rights, *validated), freshness.taken_at)


def share_of_partitions(cluster: Cluster, number: int) -> float | None:
    """Return which part of a cluster's partitions a number is, 0 to 1; None where the cluster was not read."""
    total = ClusterState.objects.filter(cluster=cluster).values_list("partitions", flat=True).first()
    return number / total if total else None
