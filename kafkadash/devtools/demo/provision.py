"""The demo's sign-ins and its cluster: what `manage.py provision_demo` does. It needs the workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from kafkadash.accounts.models import User
from kafkadash.accounts.services import record
from kafkadash.clusters.models import Cluster, Role
from kafkadash.clusters.services import give_role, register_cluster, update_connection
from kafkadash.devtools.demo.people import PEOPLE
from kafkadash.devtools.embedded.process import ServerError
from kafkadash.devtools.errors import DemoErrorCode
from kafkadash.jobs.connection_test import KIND as CONNECTION_TEST
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import enqueue
from kafkadash.monitoring.models import CollectorKind, CollectorRun

ACTOR = "demo"
CLUSTER_NAME, CLUSTER_SLUG = "Demo", "demo"
JOB_SECONDS = 40.0
DATA_SECONDS = 40.0
POLL_SECONDS = 0.1
# With these three the pages show something.
FIRST_KINDS = (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.QUORUM)
WITHOUT_QUORUM = (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS)


def provision(bootstrap: str, kafka_id: str, passwords: Mapping[str, str], zookeeper: str = "") -> str:
    """Register the playground, make the users, return when fresh figures are stored, with a few words about it.

    ``zookeeper``: addresses of its ensemble. To do it again is harmless. Raises ServerError with a sentence.
    """
    began = time.monotonic()
    cluster = _register_cluster(bootstrap, kafka_id)
    if cluster.zookeeper != zookeeper:
        cluster = update_connection(ACTOR, cluster, zookeeper=zookeeper)
    job = enqueue(CONNECTION_TEST, cluster=cluster)
    # While a worker tries the connection: hashing passwords takes as long.
    _make_people(passwords)
    wait_for(lambda: job_ended(job), JOB_SECONDS, "No worker tested the connection")
    job.refresh_from_db()
    if job.state != JobState.DONE:
        raise ServerError(DemoErrorCode.DEMO_TEST_FAILED, ended=job.get_state_display(), why=job.error or "")
    kinds = WITHOUT_QUORUM if zookeeper else FIRST_KINDS
    wait_for(lambda: is_fresh(cluster, kinds), DATA_SECONDS, "The workers stored no data of the demo cluster")
    seconds = time.monotonic() - began
    return f"connection tested, fresh data after {seconds:.1f} s; users: {', '.join(PEOPLE)}"


def cluster_of_the_demo() -> Cluster:
    """Raises Cluster.DoesNotExist before `provision`."""
    return Cluster.objects.get(slug=CLUSTER_SLUG)


def _make_people(passwords: Mapping[str, str]) -> None:
    """Users with these passwords and the roles of ``PEOPLE``."""
    for name, person in PEOPLE.items():
        with transaction.atomic():
            user, created = User.objects.get_or_create(
                username=name, defaults={"is_superuser": person.role is None, "is_staff": person.role is None}
            )
            if created or not user.check_password(passwords[name]):
                user.set_password(passwords[name])
                user.save(update_fields=["password"])
                record(ACTOR, "user.created" if created else "user.password_set", user)
            if person.role is not None:
                give_role(ACTOR, user, Role(person.role))


def _register_cluster(bootstrap: str, kafka_id: str) -> Cluster:
    cluster = Cluster.objects.filter(slug=CLUSTER_SLUG).first()
    if cluster is not None and cluster.kafka_id not in ("", kafka_id):
        # A database of the user's that knows the playground of an earlier demo, which is gone for good.
        with transaction.atomic():
            record(
                ACTOR,
                "cluster.removed",
                cluster,
                cluster=cluster.slug,
                reason="The playground of this cluster was deleted.",
            )
            cluster.delete()
        cluster = None
    if cluster is None:
        return register_cluster(ACTOR, CLUSTER_NAME, bootstrap)
    return update_connection(ACTOR, cluster, bootstrap_servers=bootstrap)


def job_ended(job: Job) -> bool:
    job.refresh_from_db(fields=["state"])
    return job.state not in (JobState.QUEUED, JobState.RUNNING)


def is_fresh(cluster: Cluster, kinds: Collection[CollectorKind]) -> bool:
    """Return whether the data of all these kinds are at most two intervals old, so that no page calls them stale."""
    runs = CollectorRun.objects.filter(cluster=cluster, kind__in=kinds, succeeded_at__isnull=False)
    now = timezone.now()
    young = [run for run in runs if run.succeeded_at and now - run.succeeded_at < timedelta(seconds=2 * run.interval_s)]
    return len(young) == len(kinds)


def wait_for(condition: Callable[[], bool], deadline: float, otherwise: str) -> None:
    """Raises ServerError when it is not true within that many seconds."""
    end = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > end:
            raise ServerError(DemoErrorCode.DEMO_TOO_SLOW, otherwise=otherwise, seconds=deadline)
        time.sleep(POLL_SECONDS)
