"""What the services say about drafts, plans and old facts; pages show it as it is (``test_workflow_is_said``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes import drafting, plans, policy, running, services
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.recheck import recheck
from kafkadash.changes.refusals import Refused
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.clusters.services import give_role
from kafkadash.domain import plan
from kafkadash.domain.checks import Result
from kafkadash.domain.workflow_errors import WorkflowErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.observe.models import CollectorRun
from tests.changes.worlds import (
    ALIVE,
    AS_PLANNED,
    MOVED,
    NOT_KNOWN,
    ROWS,
    World,
    draft,
    kind_registered,
    now_of,
    planned,
    proposed,
    read_lately,
    refreshed,
)
from tests.factories import ClusterFactory
from tests.refusals.driving import Case, case, each, refused

pytestmark = pytest.mark.django_db
NEVER_WELL = replace(
    ALIVE,
    result=Result.FAILED,
    problems=("orders-0 would lie in one rack.",),
    problem_count=1,
    then="Plan it elsewhere.",
    lasting=True,
)


@dataclass
class Office:
    world: World
    cluster: Cluster
    people: dict[str, User]

    @property
    def alice(self) -> User:
        return self.people["alice"]

    def draft(self, **options: object) -> ChangeRequest:
        return draft(self.cluster, self.alice, **options)

    def ready(self) -> ChangeRequest:
        return planned(self.draft())

    def proposed(self) -> ChangeRequest:
        return proposed(self.cluster, self.alice)

    def stale(self) -> ChangeRequest:
        change = self.proposed()
        ChangeRequest.objects.filter(pk=change.pk).update(state=RequestState.STALE)
        return now_of(change)

    def create(self, title: str = "Drain", **options: object) -> str:
        return refused(
            Refused,
            lambda: drafting.create_draft(self.cluster, "test", self.alice, title=title, input={}, options=options),
        )

    def submit(self, change: ChangeRequest, why: str = "Its disk fails.", digest: str = "") -> str:
        return refused(
            Refused, lambda: services.submit(change, self.alice, why=why, version=change.version, digest=digest)
        )

    def approve(self, who: str = "bob") -> str:
        change = self.proposed()
        return refused(Refused, lambda: services.approve(change, self.people[who], change.digest))

    def approve_with_facts(self, succeeded_at: datetime | None) -> str:
        change = self.proposed()
        CollectorRun.objects.filter(kind="metadata").update(succeeded_at=succeeded_at)
        return refused(Refused, lambda: services.approve(change, self.people["bob"], change.digest))

    def approver_left(self) -> str:
        change = self.proposed()
        services.approve(change, self.people["bob"], change.digest)
        User.objects.filter(pk=self.people["bob"].pk).update(is_active=False)
        recheck(self.cluster.pk, datetime.now(UTC))
        return " ".join(now_of(change).stale_reasons)

    def altered(self) -> str:
        change = self.proposed()
        ChangeRequest.objects.filter(pk=change.pk).update(options={"bounds": [1, 2]})
        return refused(Refused, lambda: services.approve(now_of(change), self.people["bob"], change.digest))

    def approve_with_role_of(self, giver: str, *, counts: bool) -> str:
        newcomer = self.people["vera"]
        give_role(self.people[giver], newcomer, Role.APPROVER, cluster=self.cluster)
        if counts:
            ClusterRole.objects.filter(user=newcomer).update(counts_from=Now())
        return self.approve("vera")

    def loosen(self, *, twice: bool = False) -> str:
        admin = self.people["adam"]
        policy.change_policy(self.cluster, admin, {"approvals_high": 1}, reason="Nobody is left.")
        waiting = policy.waiting_loosening(self.cluster)
        assert waiting is not None
        if twice:
            return refused(Refused, lambda: policy.change_policy(self.cluster, admin, {"valid_hours": 48}))
        asked_at = waiting.asked_at.isoformat()
        return refused(Refused, lambda: policy.confirm_loosening(self.cluster, admin, asked_at))

    def edit(self, change: ChangeRequest, who: str = "alice", title: str = "Drain broker 5") -> ChangeRequest:
        return drafting.edit_draft(change, self.people[who], change.version, title=title)

    def edited_by(self, who: str) -> str:
        change = self.draft()
        self.edit(change, who)
        return refused(Refused, lambda: self.edit(change, title="Drain broker 6"))

    def checked(self, *checks: object) -> str:
        change = self.ready()
        self.world.checks = checks  # type: ignore[assignment]
        return self.submit(change)

    def planning(self, change: ChangeRequest) -> ChangeRequest:
        job = Job.objects.create(kind="plan", cluster=self.cluster, state=JobState.RUNNING)
        ChangeRequest.objects.filter(pk=change.pk).update(job=job)
        return now_of(change)

    def edited_while_planned(self) -> str:
        change = self.draft()
        self.edit(change, "ann")
        artifact = plan.canonical(ROWS)
        return refused(Refused, lambda: plans.store_plan(change.pk, change.version, artifact, 2, datetime.now(UTC)))

    def deleted(self) -> str:
        change = self.draft()
        drafting.delete(change, self.alice)
        return refused(Refused, lambda: services.comment(change, self.alice, "Still needed?"))

    def nothing_left(self) -> str:
        change = self.stale()
        return refused(Refused, lambda: refreshed(change, self.alice, ()))

    def planned_already(self) -> str:
        change = self.planning(self.stale())
        return refused(Refused, lambda: services.start_refresh(change, self.alice))

    def removed(self) -> str:
        Cluster.objects.filter(pk=self.cluster.pk).delete()
        return self.create()

    def its_cluster_removed(self) -> str:
        change = self.proposed()
        Cluster.objects.update(removed_at=datetime.now(UTC))
        return refused(Refused, lambda: services.comment(change, self.alice, "Hm."))

    def steered(self, do: Callable[[ChangeRequest], object]) -> str:
        change = self.proposed()
        return refused(Refused, lambda: do(change))


@pytest.fixture
def office(people: dict[str, User]) -> Iterator[Office]:
    cluster = ClusterFactory.create(name="orders-eu")
    read_lately(cluster)
    world = World()
    with kind_registered(world):
        yield Office(world, cluster, people)


@each(
    case(ChangeErrorCode.TITLE_TOO_LONG, lambda o: o.create("x" * 201), length=201, most=200),
    case(
        ChangeErrorCode.WINDOW_TURNED_ROUND,
        lambda o: o.create(not_before="2026-11-24T22:00:00Z", not_after="2026-11-24T21:00:00Z"),
    ),
    case(ChangeErrorCode.NO_TIME, lambda o: o.create(not_before="tomorrow"), written="'tomorrow'"),
    case(
        ChangeErrorCode.TEXT_TOO_LONG,
        lambda o: o.submit(o.ready(), "x" * 10_001),
        what="The reason",
        length=10_001,
        most=10_000,
    ),
    case(ChangeErrorCode.WHY_MISSING, lambda o: o.submit(o.ready(), " ")),
    case(ChangeErrorCode.PLAN_UNDER_WAY, lambda o: o.submit(o.planning(o.ready()))),
    case(WorkflowErrorCode.PLAN_MISSING, lambda o: o.submit(o.draft())),
    case(ChangeErrorCode.PLAN_EMPTY, lambda o: o.submit(planned(o.draft(), ()))),
    case(ChangeErrorCode.PLANNED_ANEW, lambda o: o.submit(o.ready(), digest="0" * 64)),
    case(
        ChangeErrorCode.PLAN_NO_LONGER_FITS,
        lambda o: o.checked(MOVED),
        first="orders-0 is on 1, 2, 4 now; planned was 1, 2, 3.",
        more="",
    ),
    case(ChangeErrorCode.APPROVER_LEFT, Office.approver_left, name="bob", cluster="orders-eu"),
    case(ChangeErrorCode.NOT_TRUE_ANY_MORE, lambda o: o.checked(replace(MOVED, problems=())), check=MOVED.title),
    case(ChangeErrorCode.CONTENT_ALTERED, Office.altered),
    case(
        ChangeErrorCode.PLAN_NEVER_STARTS,
        lambda o: o.checked(AS_PLANNED, NEVER_WELL),
        first="orders-0 would lie in one rack.",
        more="",
        then="Plan it elsewhere.",
    ),
    case(
        ChangeErrorCode.PLAN_NOT_CHECKED, lambda o: o.checked(NOT_KNOWN), checks="Every partition is as it was planned"
    ),
    case(ChangeErrorCode.NO_DRAFT_ANY_MORE, lambda o: o.steered(o.edit)),
    case(ChangeErrorCode.SAVED_IN_ANOTHER_WINDOW, lambda o: o.edited_by("alice")),
    case(ChangeErrorCode.EDITED_MEANWHILE, lambda o: o.edited_by("ann"), who="ann"),
    case(ChangeErrorCode.PLAN_DROPPED, lambda o: o.steered(planned)),
    case(ChangeErrorCode.EDITED_WHILE_PLANNED, Office.edited_while_planned, who="ann"),
    case(ChangeErrorCode.NEW_PLAN_DROPPED, lambda o: o.steered(lambda change: refreshed(change, o.alice))),
    case(ChangeErrorCode.NOTHING_LEFT, Office.nothing_left),
    case(
        ChangeErrorCode.NEW_PLAN_UNDER_WAY,
        Office.planned_already,
    ),
    case(ChangeErrorCode.DELETED_MEANWHILE, Office.deleted),
    case(ChangeErrorCode.CLUSTER_REMOVED, Office.removed, cluster="orders-eu"),
    case(ChangeErrorCode.ITS_CLUSTER_REMOVED, Office.its_cluster_removed),
    case(ChangeErrorCode.NEEDS_ROLE_NOW, lambda o: o.approve("alice"), doing="To approve changes", roles="approver"),
    case(
        ChangeErrorCode.POLICY_NEEDS_ROLE,
        lambda o: refused(Refused, lambda: policy.change_policy(o.cluster, o.alice, {"valid_hours": 3})),
        cluster="orders-eu",
        roles="admin",
    ),
    case(
        ChangeErrorCode.ROLE_COUNTS_LATER, lambda o: o.approve_with_role_of("adam", counts=False), cluster="orders-eu"
    ),
    case(ChangeErrorCode.ROLE_FROM_AUTHOR, lambda o: o.approve_with_role_of("alice", counts=True)),
    case(ChangeErrorCode.LOOSENING_WAITS, lambda o: o.loosen(twice=True), who="adam", cluster="orders-eu"),
    case(ChangeErrorCode.LOOSENING_NEEDS_ANOTHER, Office.loosen, cluster="orders-eu"),
    case(
        ChangeErrorCode.LOOSENING_CHANGED,
        lambda o: refused(Refused, lambda: policy.drop_loosening(o.cluster, o.people["adam"], "then")),
        cluster="orders-eu",
    ),
    case(
        ChangeErrorCode.FACTS_NOT_READ,
        lambda o: o.approve_with_facts(None),
        facts="topics and brokers",
        cluster="orders-eu",
    ),
    case(
        ChangeErrorCode.FACTS_TOO_OLD,
        lambda o: o.approve_with_facts(datetime.now(UTC) - timedelta(hours=1)),
        facts="topics and brokers",
        age="1 h",
    ),
    case(
        ChangeErrorCode.START_KEY_TOO_LONG,
        lambda o: o.steered(lambda c: running.start(c, o.alice, key="k" * 101)),
        most=100,
    ),
    case(ChangeErrorCode.RESUME_REASON, lambda o: o.steered(lambda c: running.resume(c, o.alice, ""))),
    case(ChangeErrorCode.CANCEL_REASON, lambda o: o.steered(lambda c: running.cancel(c, o.alice, ""))),
)
def test_by_the_service(one: Case, office: Office) -> None:
    one.check(office)
