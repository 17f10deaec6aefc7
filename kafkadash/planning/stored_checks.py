"""The checks of a reassignment request, from stored rows. They run at each refresh of its cluster and are quick."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from kafkadash.changes import plan
from kafkadash.changes.checks import CheckOutcome
from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.changes.plan import PartitionMove, read_rows
from kafkadash.changes.rights import NeededRight, check_rights, name_subjects
from kafkadash.changes.step_checks import may_still_change
from kafkadash.core.messages import CodedMessage
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from kafkadash.planning.preconditions import PreconditionLimits, check_preconditions
from kafkadash.planning.proposal import ROLLBACK
from kafkadash.planning.stored_topology import load_topology
from kafkadash.planning.window import run_options
from kafkadash.topic_rules.checks import check_rules, describe_broken, judge_items
from kafkadash.topic_rules.rules import RuledItem

KEPT_PLANS = 8
"""Unpacked plans that a process keeps; 50,000 rows are about 25 MB."""


def run_stored_checks(change: ChangeRequest, now: datetime) -> CheckOutcome:
    """Return the checks of a request with an artifact. The plan's topics and all brokers are read, Kafka is not."""
    if change.artifact_id is None:
        raise ValueError(f"#{change.pk} has no plan to check")
    rows = plan_rows(change.artifact_id)
    loaded = load_topology(change.cluster, frozenset(row.topic for row in rows))
    limits = replace(limits_of(change.input), min_isr_may_change=_may_min_isr_change(change))
    checked = check_preconditions(rows, run_options(change), limits, loaded.seen, now)
    throttled = name_subjects(row.topic for row in rows)
    needed = [NeededRight("Alter"), NeededRight("AlterConfigs"), NeededRight("AlterConfigs", throttled)]
    ruled, restores = list_ruled(rows), bool(limits_of(change.input).taken_back)
    rules = check_rules(change.cluster, ruled, now, restores=restores) if ruled else ()
    return replace(checked, checks=(*checked.checks, *rules, check_rights(change.cluster, needed, now)))


def _may_min_isr_change(change: ChangeRequest) -> bool:
    """Return whether the stored min-ISR is from before the end of a step before this one. Two queries for a step."""
    if change.first_step_id is None:
        return False
    configs = CollectorRun.objects.filter(cluster=change.cluster_id, kind=CollectorKind.CONFIGS)
    return may_still_change(change, configs.values_list("succeeded_at", flat=True).first())


def find_broken_rules(change: ChangeRequest, rows: Sequence[PartitionMove], now: datetime) -> list[CodedMessage]:
    """Return what of a plan the topic rules do not allow; a rollback may restore earlier factors."""
    ruled = () if limits_of(change.input).taken_back else list_ruled(rows)
    broken = judge_items(change.cluster, ruled, now).first if ruled else {}
    return [describe_broken(topic, why) for topic, why in broken.items()]


def list_ruled(rows: Sequence[PartitionMove]) -> list[RuledItem]:
    """Return what the topic rules judge: replication factors that change, once for each topic."""
    changed = {(row.topic, len(row.target)) for row in rows if len(row.target) != len(row.current)}
    return [RuledItem(topic, factor=factor) for topic, factor in sorted(changed)]


@lru_cache(maxsize=KEPT_PLANS)
def plan_rows(sha256: str) -> tuple[PartitionMove, ...]:
    """Return the rows of the artifact with this name; an artifact never changes.

    Raises PlanArtifact.DoesNotExist, and ValueError where the stored bytes are not those of the name.
    """
    artifact = zlib.decompress(PlanArtifact.objects.values_list("data", flat=True).get(sha256=sha256))
    if plan.hash_artifact(artifact) != sha256:
        raise ValueError(f"plan {sha256}: stored bytes have another sha256")
    return read_rows(artifact)


def limits_of(stored: Mapping[str, Any]) -> PreconditionLimits:
    """From ``ChangeRequest.input``, which names them as the request of ``kafkadash.planning.plan_process`` does."""
    taken_back = stored.get("of", 0) if stored.get("mode") == ROLLBACK else 0
    return PreconditionLimits(stored.get("disk_limit"), taken_back=taken_back)
