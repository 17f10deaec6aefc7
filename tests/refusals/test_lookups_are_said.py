"""What pages, files and commands answer where there is no such thing."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.domain import plan
from kafkadash.domain.impact_of import impact_of
from kafkadash.domain.refusals import lookups
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.services import enqueue
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import CollectorRun, Kind
from kafkadash.reassign.errors import ReassignmentErrorCode
from tests.pages.conftest import text_of
from tests.reassign.plans import drained, planned, world
from tests.reassign.stored import Wizard, stored
from tests.refusals.driving import Case, case, each, refused

pytestmark = pytest.mark.django_db
WORLD = world({"orders": [[3, 1, 2], [1, 2, 3]]})


class Looking:
    def __init__(self, client: Client) -> None:
        self.client, self.cluster = client, stored()

    def get(self, address: str) -> str:
        return text_of(self.client.get(address).content.decode())

    def planned(self) -> ChangeRequest:
        rows = drained(WORLD, 3, instead=6)
        return planned(self.cluster, WORLD, rows, impact=impact_of(rows, WORLD))

    def draft(self, kind: str = "reassignment", **fields: Any) -> ChangeRequest:
        return ChangeRequest.objects.create(cluster=self.cluster, kind=kind, author_name="alice", **fields)

    def incomplete(self) -> str:
        wizard = Wizard(self.client)
        wizard.begins(self.cluster, "drain")
        return text_of(self.client.post(wizard.url("what"), {"brokers": "3"}).content.decode())

    def stopped(self) -> str:
        change = self.planned()
        job = enqueue("reassign.plan", cluster=self.cluster)
        Job.objects.update(state=JobState.CANCELLED)
        since = timezone.now() - timedelta(hours=1)
        ChangeRequest.objects.update(state=RequestState.STALE, state_since=since, job=job)
        return self.get(f"/changes/{change.pk}/")

    def describes(self, which: str) -> str:
        def describe() -> None:
            call_command("reassignments", "describe", which, cluster=self.cluster.slug, stdout=io.StringIO())

        return refused(CommandError, describe)

    def before_topics_were_read(self) -> str:
        CollectorRun.objects.filter(kind=Kind.METADATA).update(succeeded_at=None)
        return self.describes("nowhere-0")


@pytest.fixture
def looking(people: dict[str, User], client_of: Callable[[User], Client]) -> Looking:
    return Looking(client_of(people["alice"]))


@each(
    case(
        ReassignmentErrorCode.NO_SUCH_VERIFICATION,
        lambda one: one.get(f"/clusters/demo/verify/{uuid4()}/"),
        cluster="demo",
    ),
    case(ReassignmentErrorCode.NO_PLAN_YET, lambda one: one.get(f"/changes/{one.draft().pk}/kafka.json")),
    case(
        ReassignmentErrorCode.NO_ROWS_OF_TOPIC, lambda one: one.get(f"/changes/{one.planned().pk}/topics/x/"), topic="x"
    ),
    case(ReassignmentErrorCode.NO_REASSIGNMENT, lambda one: one.get(f"/changes/{one.draft('parcels').pk}/draft/what/")),
    case(
        ReassignmentErrorCode.FILTER_NO_BROKER,
        lambda one: one.get(f"/changes/{one.planned().pk}/?on=three"),
        typed="three",
    ),
    case(CollectionErrorCode.NO_SUCH_REASSIGNMENT, lambda one: one.describes("r-cafe"), cluster="demo", asked="r-cafe"),
    case(ReassignmentErrorCode.EXISTENCE_NOT_KNOWN, Looking.before_topics_were_read, row="nowhere-0"),
    case(ReassignmentErrorCode.PARTITION_NOT_THERE, lambda one: one.describes("orders-77"), row="orders-77"),
    case(ChangeErrorCode.PLANNING_STOPPED, Looking.stopped),
    case(ReassignmentErrorCode.PAGE_INCOMPLETE, Looking.incomplete),
)
def test_where_it_is_looked_for(one: Case, looking: Looking) -> None:
    one.check(looking)


@each(
    case(
        lookups.PLAN_OF_ANOTHER_FORMAT,
        lambda: refused(plan.BadPlan, lambda: plan.read(b'{"format":2,"rows":[]}')),
        found=2,
        own=1,
    ),
    case(lookups.PLAN_NOT_READABLE, lambda: refused(plan.BadPlan, lambda: plan.read(b"{"))),
)
def test_where_a_stored_plan_is_read(one: Case) -> None:
    one.check()
