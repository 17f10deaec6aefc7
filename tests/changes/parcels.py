"""A small kind of change, and requests of it in any state, for tests of what is common to all kinds."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes import plan
from kafkadash.changes.checks import ChangeCheck, CheckOutcome, CheckResult, CheckSubject
from kafkadash.changes.kinds import ChangeKind
from kafkadash.changes.models import ChangeRequest, PlanArtifact, Review, ReviewVerdict
from kafkadash.changes.risk import RiskCode, RiskFacts
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import coded
from kafkadash.planning.problem_codes import CheckTitle
from tests.factories import NOW

RISK_REASONS = [
    [20, coded(RiskCode.BYTES, share=0.1).as_json()],
    [14, coded(RiskCode.PARTITIONS, share=0.2).as_json()],
]
ROWS = [plan.PartitionMove("orders", "id-orders", n, (3, 1), (2, 1)) for n in range(3)]
PASSED = ChangeCheck("as-planned", CheckSubject.CONTENT, CheckResult.PASSED, coded(CheckTitle.AS_PLANNED), "3 of 3")
HEALTHY = ChangeCheck(
    "targets-alive", CheckSubject.HEALTH, CheckResult.PASSED, coded(CheckTitle.TARGETS_ALIVE), "2 of 2"
)


def _facts(change: ChangeRequest) -> Sequence[tuple[str, str]]:
    return [(str(change.artifact.rows if change.artifact else 0), "parcels")]


def _checks(change: ChangeRequest, now: datetime) -> CheckOutcome:
    return CheckOutcome((PASSED, HEALTHY), now - timedelta(seconds=4))


def _context(change: ChangeRequest, request: HttpRequest, now: datetime) -> Mapping[str, Any]:
    return {"what": "Bring every parcel to the north.", "parcels": 3, "sections": [("parcels", "Parcels", "3")]}


def _replan(change: ChangeRequest, user: User) -> None:
    change.title = f"{change.title}, planned again"


PARCELS = ChangeKind(
    noun="# parcel|# parcels",
    name="parcels",
    label="Parcels",
    edit_url=lambda change: f"/changes/{change.pk}/draft/what/",
    checks=_checks,
    risk=lambda _: RiskFacts(bytes_share=0.1, partitions_share=0.2),
    digest=lambda change: plan.compute_digest(change.cluster.kafka_id, change.artifact_id or "", change.options),
    review_template="tests/parcel.html",
    review_context=_context,
    facts=_facts,
    replan=_replan,
    related=("artifact",),
)


def propose(cluster: Cluster, author: User, state: ChangeState = ChangeState.PROPOSED, **fields: Any) -> ChangeRequest:
    """A request as it is stored in this state, its plan of three rows checked four seconds ago."""
    artifact_bytes = plan.canonical_bytes(ROWS)
    sha = plan.hash_artifact(artifact_bytes)
    artifact, _ = PlanArtifact.objects.get_or_create(
        sha256=sha, defaults={"data": zlib.compress(artifact_bytes), "rows": len(ROWS)}
    )
    drafted = state == ChangeState.DRAFT
    stored: dict[str, Any] = {
        "title": "Bring 3 parcels north",
        "why": "The south is closed.",
        "artifact": artifact,
        "digest": plan.compute_digest(cluster.kafka_id, sha, fields.get("options", {})),
        "topology_at": NOW - timedelta(minutes=6),
        "round": 0 if drafted else 1,
        "author_name": author.get_username(),
        "edited_by_name": author.get_username(),
        "edited_at": NOW - timedelta(minutes=8),
        "contributor_ids": [author.pk],
        "risk": None if drafted else 34,
        "risk_reasons": [] if drafted else RISK_REASONS,
        "approvals_needed": None if drafted else 1,
        "checks": [] if drafted else [pack_dataclass(PASSED), pack_dataclass(HEALTHY)],
        "checked_at": None if drafted else NOW - timedelta(seconds=4),
        "submitted_at": None if drafted else NOW - timedelta(minutes=5),
        "expires_at": None if drafted else NOW + timedelta(hours=23, minutes=52),
        "state_since": NOW - timedelta(minutes=5),
        "created_at": NOW - timedelta(minutes=12),
        **fields,
    }
    return ChangeRequest.objects.create(cluster=cluster, kind=PARCELS.name, state=state, author=author, **stored)


def approved(change: ChangeRequest, user: User, **fields: Any) -> Review:
    return Review.objects.create(
        **{
            "request": change,
            "user": user,
            "user_name": user.get_username(),
            "verdict": ReviewVerdict.APPROVED,
            "round": change.round,
            "digest": change.digest,
            "at": NOW - timedelta(minutes=1),
            **fields,
        }
    )
