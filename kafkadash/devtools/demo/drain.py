"""The drain that waits for the second person when the demo has started: proposed by alice through the wizard.

The drain is large and throttled enough to be watched. Nothing else moves in the demo: a reassignment by Kafka's own
tool on the same partitions would make the plan stale, and the tool's ``--verify`` removes all throttles.
"""

from __future__ import annotations

import time

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import RunOptions
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.devtools.demo.provision import cluster_of_the_demo, is_fresh, job_ended, wait_for
from kafkadash.devtools.demo.sample import DRAINED
from kafkadash.devtools.embedded.process import ServerError
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.monitoring.models import BrokerWeights, CollectorKind
from kafkadash.planning import proposal as drafts
from kafkadash.planning.proposal import DRAIN, PlanInput

AUTHOR = "alice"
WHY = f"Broker {DRAINED} gets larger disks on Tuesday. Its replicas move to the other brokers first."
# The disks of whoever tries this may be fuller than a broker's should be.
ASKED = PlanInput(DRAIN, brokers=(DRAINED,), disk_limit=1.0)
OPTIONS = RunOptions(throttle=5_000_000, throttle_min=1_000_000, throttle_max=50_000_000)
# With 5 MB/s from one broker: 80 s and more.
LEAST_BYTES = 400_000_000
OVER = (
    RequestState.DONE,
    RequestState.CANCELLED,
    RequestState.FAILED,
    RequestState.DECLINED,
    RequestState.EXPIRED,
)
# Sizes for the plan, and min.insync.replicas for what is said about it.
NEEDED_KINDS = (CollectorKind.LOG_DIRS, CollectorKind.CONFIGS)
FACTS_SECONDS = 40.0
PLAN_SECONDS = 60.0


def propose_drain() -> str:
    """Propose it unless a request for it is open already; what there is now, in a few words. It needs the workers.

    A plan that cannot be made here (other racks, say) is no reason not to start: then the words say why there is none.
    """
    began = time.monotonic()
    cluster = cluster_of_the_demo()
    there = open_drain(cluster)
    if there is not None and there.state != RequestState.DRAFT:
        return f"#{there.pk} from an earlier start: {there.get_state_display().lower()}"
    try:
        wait_for(lambda: is_fresh(cluster, NEEDED_KINDS), FACTS_SECONDS, "The workers read no replica sizes")
        held = BrokerWeights.objects.get(cluster=cluster, broker_id=DRAINED).replica_bytes
        if held < LEAST_BYTES:
            return f"no drain: broker {DRAINED} has only {held / 1e6:.0f} MB (--reset fills it again)"
        change = _propose_drain(cluster, there)
    except (ChangeRefused, ServerError) as error:
        return f"no drain: {error}"
    took = time.monotonic() - began
    return f"#{change.pk} {change.title}, {held / 1e6:.0f} MB, waiting for bob (planned in {took:.1f} s)"


def open_drain(cluster: Cluster) -> ChangeRequest | None:
    """The newest request for this drain that is not over, whoever wrote it."""
    requests = ChangeRequest.objects.filter(
        cluster=cluster, kind=drafts.KIND, input__mode=ASKED.mode, input__brokers=list(ASKED.brokers)
    )
    return requests.exclude(state__in=OVER).first()


def _propose_drain(cluster: Cluster, left: ChangeRequest | None) -> ChangeRequest:
    """``left`` is a draft of a start that was cut short. Raises Refused, ServerError."""
    alice = User.objects.get(username=AUTHOR)
    change = left or drafts.begin_draft(cluster, alice, ASKED.mode, ASKED.brokers)
    drafts.save_limits(drafts.PlanDraft(change), alice, change.version, ASKED, OPTIONS)
    change.refresh_from_db()
    if change.artifact_id is None:
        _wait_for_plan(drafts.start_planning(change, alice, change.version))
        change.refresh_from_db()
    return services.submit(change, alice, why=WHY, version=change.version, digest=change.digest)


def _wait_for_plan(job: Job) -> None:
    """Returns when it is stored. Raises ServerError with what is in its way."""
    wait_for(lambda: job_ended(job), PLAN_SECONDS, "No worker computed the plan")
    job.refresh_from_db()
    problems = (job.result or {}).get("problems")
    if job.state != JobState.DONE or problems:
        stored = CodedMessage.from_json(problems[0]) if problems else job.error
        raise ServerError(stored or coded(JobErrorCode.LOST_WORKER))
