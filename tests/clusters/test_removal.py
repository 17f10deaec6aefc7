"""A removed cluster is gone for everybody at once, its rows soon after, and the audit keeps what was done."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.access import visible_clusters
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.clusters.removal import belongings, purge_removed, remove_cluster
from kafkadash.clusters.services import Refused, give_role, register_cluster
from kafkadash.jobs.connection_test import KIND
from kafkadash.jobs.services import enqueue
from kafkadash.observe import lease
from kafkadash.observe.collection import ensure_runs
from kafkadash.observe.models import Collection, CollectorRun, TopicState
from tests.factories import ReassignmentFactory, TopicFactory, watched

SASL: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "dash",
    "sasl_password": "s3cret-x",
}


def full(admin: User, name: str = "demo") -> Cluster:
    cluster = watched(name)
    TopicFactory.create_batch(5, cluster=cluster)
    ReassignmentFactory.create(cluster=cluster)
    give_role("cli", admin, Role.VIEWER, cluster=cluster)
    enqueue(KIND, cluster=cluster)
    return cluster


def rows_of(pk: int) -> int:
    """Rows of any model, of any app, that belong to this cluster."""
    found = 0
    for model in apps.get_models():
        for field in model._meta.fields:
            if field.related_model is Cluster:
                found += model._base_manager.filter(**{f"{field.name}_id": pk}).count()
    return found


def test_what_would_be_forgotten_is_counted_and_named(admin: User) -> None:
    words = {each.words: each.rows for each in belongings(full(admin))}
    assert words["topics"] == 5
    assert words["brokers"] == 3
    assert words["role on this cluster alone"] == 1
    assert sum(words.values()) == rows_of(Cluster.objects.get().pk)


def test_it_is_gone_at_once_and_its_name_is_free(admin: User) -> None:
    cluster = full(admin)
    remove_cluster(admin, cluster, typed_name="demo", reason="moved away")
    assert not Cluster.objects.exists()
    assert not visible_clusters(admin).exists()
    assert not CollectorRun.objects.exists(), "a collector at work finds its lease gone"
    ensure_runs()
    assert lease.claim_due() == []
    event = AuditEvent.objects.get(action="cluster.removed")
    assert (event.cluster, event.reason, event.actor_name) == ("demo", "moved away", "adam")
    assert register_cluster(admin, "demo", "a:9092").slug == "demo"


def test_rows_go_in_batches_until_nothing_is_left(admin: User) -> None:
    cluster = full(admin)
    kept = full(admin, "kept")
    before = rows_of(kept.pk)
    remove_cluster(admin, cluster, typed_name="demo")
    rounds = 0
    while deleted := purge_removed(batch=2):
        rounds += 1
        assert deleted <= 4, "a batch is small, whatever hangs on its rows"
    assert rounds > 5
    assert rows_of(cluster.pk) == 0
    assert not Cluster.with_removed.filter(pk=cluster.pk).exists()
    assert rows_of(kept.pk) == before
    assert TopicState.objects.filter(cluster=kept).count() == 5
    assert Collection.objects.filter(cluster=kept).exists()


def test_the_secrets_do_not_wait_for_the_rows(admin: User) -> None:
    cluster = register_cluster(admin, "secure", "a:9093", **SASL)
    remove_cluster(admin, cluster, typed_name="secure")
    gone = Cluster.with_removed.get(pk=cluster.pk)
    assert (gone.__dict__["sasl_password"], gone.__dict__["key_pem"], gone.sasl_username) == ("", "", "")


@pytest.mark.parametrize("typed", ["", "Demo", "demo2", "kept"])
def test_another_name_removes_nothing(admin: User, typed: str) -> None:
    cluster = full(admin)
    with pytest.raises(Refused, match="Type the name as it is written here, demo"):
        remove_cluster(admin, cluster, typed_name=typed)
    assert Cluster.objects.filter(pk=cluster.pk, enabled=True).exists()


def test_removing_twice_is_one_event(admin: User) -> None:
    cluster = full(admin)
    remove_cluster(admin, cluster, typed_name="demo")
    remove_cluster(admin, cluster, typed_name="demo")
    assert AuditEvent.objects.filter(action="cluster.removed").count() == 1


def test_a_role_on_a_removed_cluster_lets_nobody_in(stranger: User) -> None:
    cluster = watched("demo")
    ClusterRole.objects.create(user=stranger, role=Role.ADMIN, cluster=cluster)
    client = Client()
    client.force_login(stranger)
    assert client.get("/settings/").status_code == 200
    remove_cluster(stranger, cluster, typed_name="demo")
    for address in ("/clusters/demo/", "/settings/clusters/demo/", f"/settings/clusters/removed--{cluster.pk}/"):
        assert client.get(address).status_code == 404
    assert not visible_clusters(stranger).exists()
