"""Change requests as the services make them, of a kind whose checks and risk a test decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from unittest import mock

from django.db import transaction

from kafkadash.accounts.models import User
from kafkadash.changes import kinds, plan, plans, services
from kafkadash.changes import services as drafting
from kafkadash.changes.checks import ChangeCheck, CheckOutcome, CheckResult, CheckSubject
from kafkadash.changes.kinds import ChangeKind
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import PartitionMove
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded
from kafkadash.monitoring.models import CollectorKind
from kafkadash.planning.problem_codes import CheckErrorCode, CheckTitle
from tests.factories import CollectorRunFactory

HARMLESS = RiskFacts(bytes_share=0.01, partitions_share=0.02)
DANGEROUS = RiskFacts(bytes_share=0.5, partitions_share=0.5, rf_decreases=30)
AS_PLANNED = ChangeCheck("as-planned", CheckSubject.CONTENT, CheckResult.PASSED, coded(CheckTitle.AS_PLANNED), "2 of 2")
ALIVE = ChangeCheck("alive", CheckSubject.HEALTH, CheckResult.PASSED, coded(CheckTitle.TARGETS_ALIVE), "3 of 3")
MOVED = replace(
    AS_PLANNED,
    result=CheckResult.FAILED,
    figure="1 of 2",
    problems=(coded(CheckErrorCode.OTHER_THAN_PLANNED, row="orders-0", replicas=(1, 2, 4), expected=(1, 2, 3)),),
    problem_count=1,
)
NOT_KNOWN = replace(AS_PLANNED, result=CheckResult.UNKNOWN, figure="")
ROWS = (
    PartitionMove("orders", "id-1", 0, (1, 2, 3), (1, 2, 4)),
    PartitionMove("orders", "id-1", 1, (2, 3, 1), (2, 4, 1)),
)
OTHER_ROWS = (PartitionMove("orders", "id-1", 0, (1, 2, 4), (1, 2, 5)),)


@dataclass
class World:
    """What the kind "test" answers; ``replanned`` are the numbers it was asked to plan again.

    ``meanwhile``: what happens while the checks are made.
    """

    checks: tuple[ChangeCheck, ...] = (AS_PLANNED, ALIVE)
    facts_at: datetime | None = None
    risk: RiskFacts = HARMLESS
    replanned: list[int] = field(default_factory=list)
    asked: int = 0
    meanwhile: Callable[[ChangeRequest], None] | None = None

    def checked(self, change: ChangeRequest, now: datetime) -> CheckOutcome:
        self.asked += 1
        if self.meanwhile is not None:
            self.meanwhile(change)
        return CheckOutcome(self.checks, self.facts_at or now)


def digest(change: ChangeRequest) -> str:
    bounds = change.options.get("bounds", [])
    return plan.compute_digest(change.cluster.kafka_id, change.artifact_id or "", {"bounds": bounds})


@contextmanager
def kind_registered(world: World, *, starts: bool = False) -> Iterator[None]:
    kind = ChangeKind(
        noun="# partition|# partitions",
        name="test",
        label="Test",
        edit_url=lambda change: f"/changes/{change.pk}/",
        checks=world.checked,
        risk=lambda _change: world.risk,
        digest=digest,
        review_template="",
        review_context=lambda _change, _request, _now: {},
        facts=lambda _change: (),
        replan=lambda change, _user: world.replanned.append(change.pk),
        starts=starts,
    )
    with mock.patch.dict(kinds._kinds, {"test": kind}):
        yield


def read_lately(cluster: Cluster, **fields: Any) -> None:
    """Its content was read just now, or as ``fields`` say."""
    for kind in (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS):
        CollectorRunFactory.create(cluster=cluster, kind=kind, **{"succeeded_at": datetime.now(UTC), **fields})


def draft(cluster: Cluster, user: User, **options: Any) -> ChangeRequest:
    return drafting.create_draft(cluster, "test", user, title="Drain broker 3", input={"brokers": [3]}, options=options)


def planned(change: ChangeRequest, rows: tuple[PartitionMove, ...] = ROWS) -> ChangeRequest:
    artifact = plan.canonical_bytes(rows)
    with transaction.atomic():
        return plans.store_plan(change.pk, change.version, artifact, len(rows), datetime.now(UTC))


def proposed(cluster: Cluster, user: User, **options: Any) -> ChangeRequest:
    change = planned(draft(cluster, user, **options))
    return services.submit(change, user, why="Its disk fails.", version=change.version)


def refreshed(change: ChangeRequest, user: User, rows: tuple[PartitionMove, ...] = OTHER_ROWS) -> ChangeRequest:
    return plans.refresh_plan(
        change,
        user,
        version=change.version,
        artifact=plan.canonical_bytes(rows),
        rows=len(rows),
        topology_at=datetime.now(UTC),
    )


def now_of(change: ChangeRequest) -> ChangeRequest:
    return ChangeRequest.objects.get(pk=change.pk)
