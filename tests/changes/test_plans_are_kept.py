"""A stored plan is never changed; one that nobody refers to is forgotten after a day; a cluster takes its own along."""

from __future__ import annotations

import zlib
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import drafting, services
from kafkadash.changes.models import ChangeRequest, Comment, PlanArtifact, Policy, Review
from kafkadash.changes.plans import keep_artifact, prune_artifacts
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.removal import belongings, purge_removed, remove_cluster
from kafkadash.domain import plan
from kafkadash.reassign.models import PlanReport
from tests.changes.worlds import OTHER_ROWS, ROWS, World, draft, planned, proposed


@pytest.fixture
def artifact(db: None) -> PlanArtifact:
    return keep_artifact(plan.canonical(ROWS), len(ROWS))


def aged(artifact: PlanArtifact) -> PlanArtifact:
    """As if made two days ago; the row is written anew, as none can be changed."""
    again = PlanArtifact(sha256=artifact.sha256, data=artifact.data, rows=artifact.rows)
    artifact.delete()
    again.created_at = Now() - timedelta(days=2)
    again.save(force_insert=True)
    return again


def test_it_is_what_was_hashed(artifact: PlanArtifact) -> None:
    assert plan.sha256(zlib.decompress(artifact.data)) == artifact.sha256
    assert plan.read(zlib.decompress(artifact.data)) == ROWS


def test_made_again_it_is_the_same_row(artifact: PlanArtifact) -> None:
    assert keep_artifact(plan.canonical(reversed(ROWS)), len(ROWS)) == artifact
    assert PlanArtifact.objects.count() == 1


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE changes_planartifact SET rows = 1",
        "UPDATE changes_planartifact SET data = ''",
        "SET LOCAL session_replication_role = replica; UPDATE changes_planartifact SET rows = 1",
    ],
)
def test_the_database_refuses_to_change_it(artifact: PlanArtifact, sql: str) -> None:
    with (
        pytest.raises(DatabaseError, match="plans are never changed: UPDATE"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)
    assert PlanArtifact.objects.get().rows == 2


def test_it_is_forgotten_a_day_after_nobody_refers_to_it(artifact: PlanArtifact) -> None:
    assert prune_artifacts() == 0, "a request may be about to refer to it"
    aged(artifact)
    assert prune_artifacts() == 1
    assert not PlanArtifact.objects.exists()


def test_it_is_kept_while_a_request_or_a_report_refers_to_it(
    world: World, cluster: Cluster, alice: User, artifact: PlanArtifact
) -> None:
    artifact = aged(artifact)
    change = planned(draft(cluster, alice))
    assert change.artifact_id == artifact.sha256
    assert prune_artifacts() == 0
    PlanReport.objects.create(request=change, artifact_id=artifact.sha256, impact={}, took_s=0.1)
    planned(change, OTHER_ROWS)
    assert prune_artifacts() == 0, "what the page shows is of the old plan until the new report is there"
    PlanReport.objects.all().delete()
    assert prune_artifacts() == 1


def test_a_removed_cluster_takes_its_requests_along(world: World, cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    PlanReport.objects.create(request=change, artifact=PlanArtifact.objects.get(), impact={}, took_s=0.1)
    services.comment(change, bob, "fine")
    services.approve(change, bob, change.digest)
    drafting.copy(change, alice)
    Policy.objects.create(cluster=cluster)
    words = {each.words: each.rows for each in belongings(cluster)}
    assert words["change requests"] == 2
    remove_cluster(alice, cluster, typed_name="orders-eu")
    while purge_removed(batch=1):
        pass
    assert not Cluster.with_removed.exists()
    for model in (ChangeRequest, Comment, Review, Policy, PlanReport):
        assert not model._base_manager.exists()
    assert PlanArtifact.objects.exists()
    assert AuditEvent.objects.filter(action="change.approved").exists(), "the audit keeps what was done"
