"""What the form of a reassignment says at its fields, and why a plan was not made, as the page of the plan says it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes import drafting
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.refusals import Refused
from kafkadash.clusters.models import Cluster, Role
from kafkadash.jobs import kinds
from kafkadash.jobs.connection_test import KIND as CONNECTION_TEST
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job
from kafkadash.jobs.run import attempt
from kafkadash.jobs.services import enqueue
from kafkadash.observe.models import BrokerState
from kafkadash.reassign import plan_process, plan_work, topic_counts, uploads, verify_job
from kafkadash.reassign.asked import ROLLBACK, Asked
from kafkadash.reassign.drafts import start_planning
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.forms import LimitsForm
from kafkadash.reassign.models import Upload, Verification
from kafkadash.reassign.verify_job import KIND as VERIFICATION
from tests.factories import NOW, ClusterFactory, TopicFactory
from tests.pages.conftest import text_of
from tests.reassign.stored import Wizard, kafka_json, stored
from tests.reassign.test_limits_form import GOOD, SLOW
from tests.refusals.driving import Case, case, each, refused

pytestmark = pytest.mark.django_db


class Proposing:
    """Somebody in the wizard, before a cluster whose facts are fresh."""

    def __init__(self, user: User, client: Client) -> None:
        self.user, self.client = user, client
        self.wizard, self.cluster = Wizard(client), stored()

    def says(self, answer: Any) -> str:
        assert answer.status_code == 200, answer.status_code
        return text_of(answer.content.decode())

    def new(self, **form: str) -> str:
        return self.says(self.client.post("/changes/new/", form))

    def new_read_only(self) -> str:
        Cluster.objects.update(read_only=True)
        return self.new(cluster="demo", mode="drain")

    def drains(self, *brokers: int) -> str:
        return self.says(self.wizard.begins(self.cluster, "drain").drains(*brokers))

    def rackless(self) -> str:
        BrokerState.objects.filter(broker_id=2).update(rack=None)
        return self.drains(3)

    def asks(self, mode: str, **fields: Any) -> str:
        """In the first step of a mode in which the planner chooses."""
        return self.says(self.wizard.begins(self.cluster, mode).sends("what", fields))

    def asks_for_long_names(self) -> str:
        TopicFactory.create(cluster=self.cluster, name="a" * 60)
        return self.asks("leaders", pattern="((a+)+)+b")

    def types_while_others_do(self) -> str:
        self.wizard.begins(self.cluster, "leaders")
        with mock.patch.object(topic_counts, "_places", mock.Mock(acquire=mock.Mock(return_value=False))):
            return text_of(self.wizard.sends("what/topics", {"pattern": "o.*"}).content.decode())

    def repairs_without_a_rack(self) -> str:
        BrokerState.objects.filter(broker_id=2).update(rack=None)
        return self.asks("repair-racks")

    def targets(self, *brokers: int) -> str:
        self.wizard.begins(self.cluster, "drain", brokers="3")
        return self.says(self.wizard.limits(targets=[str(broker) for broker in brokers]))

    def brings(self, **fields: Any) -> str:
        return self.says(self.wizard.begins(self.cluster, "explicit").sends("what", fields))

    def too_large(self) -> str:
        with mock.patch.object(uploads, "LARGEST_BYTES", 1_000_000):
            return self.brings(file=SimpleUploadedFile("plan.json", b"x" * 2_000_001))

    def sees_before_it_sends(self) -> str:
        """What a script says at once; it puts the sizes in."""
        return unescape(self.wizard.begins(self.cluster, "explicit").sends("what", {}).content.decode())

    def why(self, **fields: str) -> str:
        self.ready()
        self.wizard.plans()
        return self.says(self.wizard.sends("why", {"title": "Drain broker 3", "why": "Its disk fails.", **fields}))

    def ready(self, brokers: str = "3") -> ChangeRequest:
        self.wizard.begins(self.cluster, "drain", brokers=brokers)
        self.wizard.limits()
        return self.wizard.change

    def start(self, meanwhile: Callable[[ChangeRequest], object], offset: int = 0) -> str:
        change = self.ready()
        meanwhile(change)
        return refused(Refused, lambda: start_planning(change, self.user, self.wizard.change.version + offset))

    def planned(self, meanwhile: Callable[[ChangeRequest], object] = lambda _: None) -> str:
        """What the page of the plan says, or the job where the page is gone; this happens before a worker takes it."""
        if not self.wizard.number:
            self.ready()
        self.wizard.sends("plan")
        change = self.wizard.change
        assert change.job is not None
        meanwhile(change)
        attempt(change.job.pk)
        error = Job.objects.get(pk=change.job.pk).error
        answer = self.client.get(self.wizard.url("plan"))
        return f"{error} {text_of(answer.content.decode())}"

    def edited(self, change: ChangeRequest) -> None:
        drafting.edit_draft(change, self.user, change.version, title="Another title")

    def without_json(self) -> str:
        self.wizard.begins(self.cluster, "explicit").sends("what", {"text": kafka_json(("orders", 0, [1, 2, 6]))})
        self.wizard.limits()
        return self.planned(lambda _: Upload.objects.all().delete())

    def back(self) -> str:
        def turned(change: ChangeRequest) -> None:
            asked = Asked(ROLLBACK, of=change.pk)
            ChangeRequest.objects.filter(pk=change.pk).update(input=asked.as_json())

        return self.planned(turned)

    def without_account(self) -> str:
        def forgotten(change: ChangeRequest) -> None:
            assert change.job is not None
            job = Job.objects.get(pk=change.job.pk)
            Job.objects.filter(pk=job.pk).update(input={**job.input, "purpose": "refresh"}, requested_by=None)

        return self.planned(forgotten)

    def child_ends(self, code: int) -> str:
        def ends(folder: Path, _: object) -> int:
            (folder / "errors").touch()
            return code

        with mock.patch.object(plan_process, "_run", ends):
            return self.planned()

    def verifies(self, content: bytes = b"{}") -> str:
        brought = {"file": SimpleUploadedFile("plan.json", content)} if len(content) > 2 else {"json": "{}"}
        return text_of(self.client.post(f"/clusters/{self.cluster.slug}/verify/", brought).content.decode())

    def verifies_twice(self) -> str:
        self.verifies()
        return self.verifies()

    def verifies_as_viewer(self) -> str:
        self.user.cluster_roles.update(role=Role.VIEWER)
        return self.verifies(b" " * 1_000_001)

    def verifier_ends(self, code: int) -> str:
        def ends(_module: str, folder: Path, *_: object) -> int:
            (folder / "errors").touch()
            return code

        job = verify_job.start_verification(self.cluster, self.user, name="", size=2, data=zlib.compress(b"{}"))
        with mock.patch.object(verify_job, "run_child", ends):
            attempt(job.pk)
        return Job.objects.get(pk=job.pk).error

    def crashes(self) -> str:
        with mock.patch.object(plan_work, "load_topology", side_effect=KeyError("secret")):
            return self.planned()

    def too_slow(self) -> str:
        kind = kinds._kinds["reassign.plan"]
        with mock.patch.dict(kinds._kinds, {kind.name: replace(kind, deadline_s=0.0)}):
            return self.planned()

    def test_too_slow(self) -> str:
        job = Job.objects.create(kind=CONNECTION_TEST, cluster=self.cluster)
        kind = kinds._kinds[CONNECTION_TEST]
        with mock.patch.dict(kinds._kinds, {kind.name: replace(kind, deadline_s=0.0)}):
            attempt(job.pk)
        return Job.objects.get(pk=job.pk).error

    def test_without_cluster(self) -> str:
        job = Job.objects.create(kind=CONNECTION_TEST, cluster=self.cluster)
        Cluster.objects.update(removed_at=datetime.now(UTC))
        attempt(job.pk)
        return Job.objects.get(pk=job.pk).error

    def test_page(self, kept: bool) -> str:
        """As an administrator of another cluster sees it."""
        self.user.cluster_roles.create(role=Role.ADMIN, cluster=ClusterFactory.create(name="other"))
        job = Job.objects.create(kind=CONNECTION_TEST, cluster=self.cluster)
        address = f"/settings/tests/{job.pk if kept else uuid4()}/"
        return text_of(self.client.get(address).content.decode())

    def stops_anothers(self) -> str:
        other = User.objects.create(username="bea")
        job = enqueue(VERIFICATION, cluster=self.cluster, requested_by=other)
        Verification.objects.create(job=job, name="a.json", size=1, data=b"")
        return text_of(self.client.post(f"/clusters/demo/verify/{job.pk}/stop/").content.decode())

    def checker_disagrees(self) -> str:
        made = plan_process.make_plan

        def faulty(*args: Any) -> plan_process.Outcome:
            outcome = made(*args)
            rule = ["racks", False, "1 of 2", ["orders-0 is on one rack."]]
            return replace(outcome, result={**outcome.result, "rules": [rule]})

        with mock.patch.object(plan_work, "make_plan", faulty):
            return self.planned()


@pytest.fixture
def proposing(people: dict[str, User], client_of: Callable[[User], Client]) -> Proposing:
    return Proposing(people["alice"], client_of(people["alice"]))


@each(
    case(ReassignmentErrorCode.CLUSTER_NOT_ALLOWED, lambda p: p.new(cluster="nowhere", mode="drain")),
    case(ReassignmentErrorCode.CLUSTER_MISSING, lambda p: p.new(mode="drain")),
    case(ReassignmentErrorCode.CLUSTER_READ_ONLY, Proposing.new_read_only, cluster="demo"),
    case(ReassignmentErrorCode.MODE_UNKNOWN, lambda p: p.new(cluster="demo", mode="rebalance")),
    case(ReassignmentErrorCode.MODE_MISSING, lambda p: p.new(cluster="demo")),
    case(ReassignmentErrorCode.NO_BROKER_ID, lambda p: p.new(cluster="demo", mode="drain", brokers="x"), typed="x"),
    case(ReassignmentErrorCode.NO_BROKER_CHOSEN, lambda p: p.drains()),
    case(ReassignmentErrorCode.BROKER_NOT_THERE, lambda p: p.drains(9), cluster="demo", brokers="broker 9"),
    case(ReassignmentErrorCode.NO_BROKER_LEFT, lambda p: p.drains(1, 2, 3, 4, 5, 6), cluster="demo"),
    case(ReassignmentErrorCode.RACK_MISSING, Proposing.rackless, brokers="Broker 2 names"),
    case(ReassignmentErrorCode.RACKS_NOT_KNOWN, Proposing.repairs_without_a_rack, brokers="Broker 2 names"),
    case(ReassignmentErrorCode.PATTERN_TOO_LONG, lambda p: p.asks("leaders", pattern="x" * 501), length=501, most=500),
    case(ReassignmentErrorCode.PATTERN_TOO_SLOW, Proposing.asks_for_long_names, seconds=2),
    case(ReassignmentErrorCode.PATTERNS_BUSY, Proposing.types_while_others_do),
    case(ReassignmentErrorCode.EVENNESS_UNREADABLE, lambda p: p.asks("balance", disks="on", eps="0.5")),
    case(ReassignmentErrorCode.TARGET_NOT_THERE, lambda p: p.targets(99)),
    case(
        ReassignmentErrorCode.FILE_AND_TEXT,
        lambda p: p.brings(file=SimpleUploadedFile("plan.json", b"{}"), text='{"version":1}'),
    ),
    case(ReassignmentErrorCode.FILE_EMPTY, lambda p: p.brings(file=SimpleUploadedFile("plan.json", b""))),
    case(ReassignmentErrorCode.NO_FILE, lambda p: p.brings()),
    case(ReassignmentErrorCode.FILE_NOT_SENT, Proposing.sees_before_it_sends, size="SIZE", most="MOST"),
    case(ReassignmentErrorCode.FILE_TOO_LARGE, Proposing.too_large, size="2.0", most=1),
    case(ReassignmentErrorCode.TITLE_MISSING, lambda p: p.why(title=" ")),
    case(ReassignmentErrorCode.TITLE_DOES_NOT_FIT, lambda p: p.why(title="x" * 300), length=300),
    case(ReassignmentErrorCode.REASON_DOES_NOT_FIT, lambda p: p.why(why="x" * 20_000), length=20_000),
    case(ReassignmentErrorCode.WHY_NEEDED, lambda p: p.why(why=" ")),
    case(ReassignmentErrorCode.EDITED_BEFORE_PLANNED, lambda p: p.start(lambda _: None, offset=1)),
    case(
        ReassignmentErrorCode.ONLY_A_DRAFT_IS_PLANNED,
        lambda p: p.start(lambda c: ChangeRequest.objects.filter(pk=c.pk).update(state=RequestState.PROPOSED)),
    ),
    case(
        ReassignmentErrorCode.DELETED_BEFORE,
        lambda p: p.planned(lambda c: ChangeRequest.objects.filter(pk=c.pk).delete()),
    ),
    case(ReassignmentErrorCode.EDITED_BEFORE, lambda p: p.planned(p.edited), who="alice"),
    case(
        ReassignmentErrorCode.CLUSTER_NOT_REGISTERED,
        lambda p: p.planned(lambda _: Cluster.objects.update(removed_at=datetime.now(UTC))),
    ),
    case(ReassignmentErrorCode.JSON_NOT_STORED, Proposing.without_json),
    case(ReassignmentErrorCode.NOTHING_TAKEN_BACK, Proposing.back, why=""),
    case(ReassignmentErrorCode.NO_ACCOUNT, Proposing.without_account),
    case(ReassignmentErrorCode.VERIFIES_ALREADY, Proposing.verifies_twice, file="pasted"),
    case(
        ReassignmentErrorCode.VERIFY_NEEDS_ROLE, Proposing.verifies_as_viewer, most=1, cluster="demo", roles="operator"
    ),
    case(ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH, lambda p: p.verifier_ends(-9)),
    case(ReassignmentErrorCode.VERIFIER_FAILED, lambda p: p.verifier_ends(1), code=1),
    case(ReassignmentErrorCode.PLANNER_KILLED, lambda p: p.child_ends(-9), signal="SIGKILL"),
    case(ReassignmentErrorCode.PLANNER_FAILED, lambda p: p.child_ends(1), code=1),
    case(JobErrorCode.CRASHED, Proposing.crashes),
    case(ReassignmentErrorCode.PLANNER_OUT_OF_TIME, Proposing.too_slow, seconds="0"),
    case(JobErrorCode.TOOK_TOO_LONG, Proposing.test_too_slow, seconds="0"),
    case(JobErrorCode.WITHOUT_CLUSTER, Proposing.test_without_cluster),
    case(JobErrorCode.TEST_FOR_ADMINISTRATORS, lambda p: p.test_page(kept=True)),
    case(JobErrorCode.ASKED_BY_ANOTHER, Proposing.stops_anothers, who="bea"),
    case(JobErrorCode.NO_SUCH_TEST, lambda p: p.test_page(kept=False)),
    case(
        ReassignmentErrorCode.CHECKER_DISAGREES,
        Proposing.checker_disagrees,
        rule="racks",
        problem="orders-0 is on one rack.",
    ),
)
def test_in_the_wizard(one: Case, proposing: Proposing) -> None:
    one.check(proposing)


def limits(inbound: float | None = None, **changed: str) -> str:
    """What the form says; the page shows it at its fields (tests/reassign/test_wizard.py)."""
    with time_machine.travel(NOW, tick=False):
        form = LimitsForm({**GOOD, **changed}, now=NOW, inbound=inbound)
        assert not form.is_valid()
    return " ".join(str(error) for errors in form.errors.values() for error in errors)


@each(
    case(ReassignmentErrorCode.TIME_UNREADABLE, lambda: limits(not_before="tonight")),
    case(
        ReassignmentErrorCode.TIME_PASSED,
        lambda: limits(not_before="", not_after="2026-11-20T00:00"),
        now="21 Nov 02:03",
    ),
    case(ChangeErrorCode.WINDOW_TURNED_ROUND, lambda: limits(not_after="2026-11-21T22:00")),
    case(ReassignmentErrorCode.PERCENT_UNREADABLE, lambda: limits(disk_limit="most")),
    case(ReassignmentErrorCode.PERCENT_OUTSIDE, lambda: limits(disk_limit="101")),
    case(ReassignmentErrorCode.LOWEST_ABOVE_HIGHEST, lambda: limits(throttle_min="90"), low="90", high="80"),
    case(ReassignmentErrorCode.STARTS_BELOW, lambda: limits(throttle="10"), low="20"),
    case(ReassignmentErrorCode.STARTS_ABOVE, lambda: limits(throttle="90"), high="80"),
    case(ReassignmentErrorCode.MORE_THAN_THE_CLUSTER, lambda: limits(per_broker="6", per_cluster="5"), most=5),
    case(ReassignmentErrorCode.NO_WHOLE_NUMBER, lambda: limits(per_cluster="many"), example="50"),
    case(ReassignmentErrorCode.TOO_MANY_AT_ONCE, lambda: limits(per_cluster="1001"), typed=1001, most=1000),
    case(
        ReassignmentErrorCode.VERY_SLOW, lambda: limits(None, **SLOW), rate="0.01 MB/s (10,000 bytes/s)", hours="27.8 h"
    ),
    case(
        ReassignmentErrorCode.NEVER_FINISHES, lambda: limits(25e6), rate="20 MB/s (20,000,000 bytes/s)", inbound="25.0"
    ),
)
def test_in_the_form_of_the_limits(one: Case) -> None:
    one.check()
