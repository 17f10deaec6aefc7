"""Topics that one request alters in several ways on real Kafka, and what Kafka's own tools say of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes import services, steps
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster, Role
from kafkadash.configs.stored import OwnerKind, load_keys
from kafkadash.execution.models import Execution
from kafkadash.execution.worker import lease
from kafkadash.execution.worker import step as long_step
from kafkadash.jobs.runner import attempt_job
from kafkadash.short_runs import worker
from kafkadash.short_runs.models import ShortRun
from kafkadash.topic_alter.alteration import create_steps
from kafkadash.topic_alter.forms import AlterForm
from kafkadash.topics.creation import load_brokers
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.runs import READ
from tests.agreement.test_configs import told
from tests.agreement.tools import Tools
from tests.waiting import wait_until

READ_AGAIN_S = 5.0
MOST_S = 120.0


def test_topics__get_replicas_partitions_and_configs_in_order(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    tools: Tools,
    operator: User,
    make_user: Callable[..., User],
) -> None:
    topics = [make_topic([[1, 2]], mib=1), make_topic([[2, 1], [1, 2]], mib=1)]
    for kind in READ:
        refresh(kind)
    typed = {
        "topics": "\n".join(topics),
        "partitions": "4",
        "factor": "3",
        "throttle": "50",
        "added": "min.insync.replicas=2\nretention.ms=3600000",
    }
    made = _planned(cluster, typed, operator)
    assert [change.kind for change in made] == ["reassignment", "topic-grow", "config-edit"]
    steps.submit_steps(made, operator, "More consumers.", {change.pk: change.digest for change in made})
    waiting = steps.list_steps(made[0])
    seen = {change.pk: steps.SeenContent(change.digest, change.round) for change in waiting}
    needed = max(change.approvals_needed or 1 for change in waiting)
    for number in range(needed):
        steps.approve_steps(made[0], make_user(f"approver-{number}", Role.APPROVER), seen)
    services.start(made[0], operator, "Now.")
    _work(made, refresh)

    described = tools.topics()
    for topic in topics:
        replicas = [partition.replicas for _, partition in sorted(described[topic].partitions.items())]
        assert [len(row) for row in replicas] == [3, 3, 3, 3]
        configs = told(tools, "--entity-type", "topics", "--entity-name", topic)
        assert {"min.insync.replicas": "2", "retention.ms": "3600000"}.items() <= configs.items()
    moved = Execution.objects.get(request=made[0])
    grown, configured = (ShortRun.objects.get(request=change) for change in made[1:])
    ends = [moved.ended_at, grown.started_at, grown.ended_at, configured.started_at, configured.ended_at]
    assert ends == sorted(at for at in ends if at is not None)
    assert tools.moves() == []


def _planned(cluster: Cluster, typed: dict[str, str], operator: User) -> list[ChangeRequest]:
    """Drafts with their plans; the disks of the machine may be fuller than a broker's should be."""
    keys = load_keys(cluster, OwnerKind.TOPIC)
    form = AlterForm(typed, cluster=cluster, brokers=load_brokers(cluster), keys=keys)
    assert form.is_valid(), form.errors
    drafts = create_steps(cluster, operator, form.alteration)
    first = ChangeRequest.objects.get(pk=drafts[0].pk)
    ChangeRequest.objects.filter(pk=first.pk).update(input={**first.input, "disk_limit": 1.0})
    assert first.job is not None
    attempt_job(first.job.pk)
    return steps.list_steps(first)


def _work(made: Sequence[ChangeRequest], refresh: Refresher) -> None:
    """Do steps of what the workers would claim, with facts that are read as collectors do, until all is done."""
    read_at = time.monotonic()

    def is_done() -> bool:
        nonlocal read_at
        if time.monotonic() > read_at + READ_AGAIN_S:
            read_at = time.monotonic()
            for kind in READ:
                refresh(kind)
        Execution.objects.update(next_at=Now())
        ShortRun.objects.update(next_at=Now())
        for execution in lease.claim_due():
            long_step.step_once(execution)
        for run in worker.claim_due():
            worker.step_once(run)
        states = ChangeRequest.objects.filter(pk__in=[change.pk for change in made]).values_list("state", flat=True)
        return set(states) == {"done"}

    wait_until(is_done, "all steps are done", MOST_S)
