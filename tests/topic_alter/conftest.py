"""A stored cluster with topics of two and three replicas, and people who alter them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import steps
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Role
from kafkadash.configs.stored import OwnerKind, load_keys
from kafkadash.jobs.models import Job
from kafkadash.jobs.runner import attempt_job
from kafkadash.monitoring.models import ConfigCatalog
from kafkadash.topic_alter.alteration import create_steps
from kafkadash.topic_alter.forms import AlterForm
from kafkadash.topics.creation import load_brokers
from tests.configs.conftest import TOPIC_KEYS
from tests.execution.worlds import model_of
from tests.planning.stored import stored
from tests.short_runs.worlds import ShortWorld, stepped


@dataclass
class AlterWorld(ShortWorld):
    def form(self, **typed: str) -> AlterForm:
        keys = load_keys(self.cluster, OwnerKind.TOPIC)
        brokers = load_brokers(self.cluster)
        return AlterForm({"throttle": "50", **typed}, cluster=self.cluster, brokers=brokers, keys=keys)

    def alter(self, **typed: str) -> list[ChangeRequest]:
        """Drafts of all steps, planned."""
        form = self.form(**typed)
        assert form.is_valid(), form.errors
        drafts = create_steps(self.cluster, self.operator, form.alteration)
        for job in Job.objects.filter(kind="reassign.plan", state="queued"):
            attempt_job(job.pk)
        return [ChangeRequest.objects.select_related("cluster").get(pk=draft.pk) for draft in drafts]

    def propose(self, **typed: str) -> list[ChangeRequest]:
        drafts = self.alter(**typed)
        steps.submit_steps(drafts, self.operator, "More consumers.", {draft.pk: draft.digest for draft in drafts})
        return self.reread(drafts)

    def reread(self, changes: list[ChangeRequest]) -> list[ChangeRequest]:
        return list(
            ChangeRequest.objects.select_related("cluster").filter(pk__in=[one.pk for one in changes]).order_by("step")
        )


@pytest.fixture
def world(db: None, operator: User) -> Iterator[AlterWorld]:
    cluster = stored()
    ConfigCatalog.objects.create(cluster=cluster, topics=TOPIC_KEYS, brokers={}, default={})
    made = AlterWorld(cluster, model_of(cluster), operator, "")
    with stepped(made):
        yield made


@pytest.fixture
def approver(make_user: Callable[..., User]) -> User:
    return make_user("bob", Role.APPROVER)
