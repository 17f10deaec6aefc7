"""The checks of a reassignment request, from stored rows. They run at each refresh of its cluster and are quick."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.domain import plan
from kafkadash.domain.checks import Checked
from kafkadash.domain.plan import Row, read
from kafkadash.domain.reassignment_checks import Limits, judge
from kafkadash.reassign.asked import ROLLBACK
from kafkadash.reassign.topology import load_topology
from kafkadash.reassign.window_facts import run_options

KEPT_PLANS = 8
"""Unpacked plans that a process keeps; 50,000 rows are about 25 MB."""


def checks(change: ChangeRequest, now: datetime) -> Checked:
    """Of a request with an artifact. Topics of the plan and all brokers are read, nothing is asked of Kafka."""
    if change.artifact_id is None:
        raise ValueError(f"#{change.pk} has no plan to check")
    rows = plan_rows(change.artifact_id)
    loaded = load_topology(change.cluster, frozenset(row.topic for row in rows))
    return judge(rows, run_options(change), limits_of(change.input), loaded.seen, now)


@lru_cache(maxsize=KEPT_PLANS)
def plan_rows(sha256: str) -> tuple[Row, ...]:
    """Of the artifact with this name; it never changes.

    Raises PlanArtifact.DoesNotExist, and ValueError where the stored bytes are not those of the name.
    """
    artifact = zlib.decompress(PlanArtifact.objects.values_list("data", flat=True).get(sha256=sha256))
    if plan.sha256(artifact) != sha256:
        raise ValueError(f"plan {sha256}: stored bytes have another sha256")
    return read(artifact)


def limits_of(stored: Mapping[str, Any]) -> Limits:
    """From ``ChangeRequest.input``, which names them as the request of ``kafkadash.plan_job`` does."""
    taken_back = stored.get("of", 0) if stored.get("mode") == ROLLBACK else 0
    return Limits(stored.get("disk_limit"), taken_back=taken_back)
