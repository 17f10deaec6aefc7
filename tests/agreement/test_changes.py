"""The life of a change beside real Kafka: what Kafka's own tool changes under an approved request turns it stale."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import drafting, services
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.recheck import recheck
from kafkadash.clusters.models import Cluster, Role
from kafkadash.domain.plan import Options
from kafkadash.domain.workflow_states import State
from kafkadash.jobs.models import JobState
from kafkadash.jobs.run import attempt
from kafkadash.observe.models import Kind
from kafkadash.reassign import uploads
from kafkadash.reassign.asked import EXPLICIT, Asked, options_json
from kafkadash.reassign.checks import plan_rows
from kafkadash.reassign.drafts import start_planning
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.waiting import wait_until

READ = (Kind.METADATA, Kind.REASSIGNMENTS, Kind.QUORUM, Kind.LOG_DIRS, Kind.CONFIGS)
OPTIONS = Options(throttle=60_000_000, throttle_min=20_000_000, throttle_max=80_000_000)


def test_an_approved_request__moved_under_it_by_kafkas_tool__turns_stale_and_its_refresh_is_approved_anew(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    mover: Mover,
    tools: Tools,
    make_user: Callable[..., User],
) -> None:
    alice, bob = make_user("alice", Role.OPERATOR), make_user("bob", Role.APPROVER)
    topic = make_topic([[1, 2], [2, 1]], mib=1)
    for kind in READ:
        refresh(kind)
    change = planned(draft(cluster, alice, topic), alice)
    change = services.submit(change, alice, why="Broker 3 is new.", version=change.version)
    assert change.approvals_needed is not None
    seen = services.approve(change, bob, change.digest, "as discussed")
    assert seen.state == State.APPROVED, "one is enough for so little"
    recheck(cluster.pk, datetime.now(UTC))
    assert ChangeRequest.objects.get(pk=change.pk).state == State.APPROVED, "nothing changed yet"

    mover.start(topic, [2, 3], throttle=1_000_000_000)
    wait_until(lambda: tools.replicas(topic) == (2, 3), "the move is over", 30)
    for kind in READ:
        refresh(kind)
    recheck(cluster.pk, datetime.now(UTC))
    stale = ChangeRequest.objects.get(pk=change.pk)
    assert stale.state == State.STALE
    said = f"{topic}-0: replicas are 2, 3; the plan expects 1, 2."
    assert stale.stale_reasons == [said]
    assert AuditEvent.objects.get(action="change.turned_stale").reason == said

    stale = services.start_refresh(stale, alice)
    run(stale)
    again = ChangeRequest.objects.get(pk=change.pk)
    assert (again.state, again.round, again.stale_reasons) == (State.PROPOSED, 2, [])
    assert again.digest != seen.digest
    assert {row.partition: row.current for row in plan_rows(str(again.artifact_id))} == {0: (2, 3), 1: (2, 1)}
    assert again.reviews.get().void_why == "alice made a new plan"
    assert services.approve(again, bob, again.digest).state == State.APPROVED


def draft(cluster: Cluster, user: User, topic: str) -> ChangeRequest:
    """Both partitions of the topic to brokers 1 and 3, as somebody brought it in Kafka's JSON."""
    rows = ",".join(f'{{"topic":"{topic}","partition":{n},"replicas":[1,3]}}' for n in (0, 1))
    brought = uploads.from_text(f'{{"version":1,"partitions":[{rows}]}}')
    asked = Asked(EXPLICIT, upload=brought.sha256, disk_limit=0.99)
    change = drafting.create_draft(
        cluster,
        "reassignment",
        user,
        title="To 1 and 3",
        input=asked.as_json(),
        options=options_json(OPTIONS, asked),
    )
    uploads.store(change, brought)
    return change


def planned(change: ChangeRequest, user: User) -> ChangeRequest:
    start_planning(change, user, change.version)
    return run(ChangeRequest.objects.get(pk=change.pk))


def run(change: ChangeRequest) -> ChangeRequest:
    """Its job, as a worker does."""
    assert change.job is not None
    attempt(change.job.pk)
    change.job.refresh_from_db()
    assert (change.job.state, change.job.error) == (JobState.DONE, ""), change.job.result
    return ChangeRequest.objects.get(pk=change.pk)
