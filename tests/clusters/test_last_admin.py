"""Nobody can lock everybody out: the last administrator's role can neither be taken away nor be given an end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.clusters.services import Refused, give_role, remove_role

MakeUser = Callable[..., User]
LATER = datetime(2999, 1, 1, tzinfo=UTC)


def test_the_last_one_of_all_clusters_stays(admin: User) -> None:
    with pytest.raises(Refused, match="adam is the last administrator of all clusters whose role does not run out"):
        remove_role(admin, admin, Role.ADMIN)
    with pytest.raises(Refused, match="last administrator"):
        give_role("cli", admin, Role.ADMIN, expires_at=LATER)
    assert ClusterRole.objects.get().expires_at is None
    assert not AuditEvent.objects.exists()


def test_it_may_go_when_another_stays(admin: User, make_user: MakeUser) -> None:
    make_user("bob", Role.ADMIN)
    assert remove_role(admin, admin, Role.ADMIN)


def test_one_that_runs_out_or_is_closed_does_not_count_as_another(admin: User, make_user: MakeUser) -> None:
    bob = make_user("bob")
    ClusterRole.objects.create(user=bob, role=Role.ADMIN, expires_at=LATER)
    make_user("cora", Role.ADMIN, is_active=False)
    with pytest.raises(Refused, match="last administrator"):
        remove_role(admin, admin, Role.ADMIN)
    assert remove_role(admin, bob, Role.ADMIN)


def test_a_superuser_is_enough(admin: User, make_user: MakeUser) -> None:
    make_user("root", is_superuser=True)
    assert remove_role(admin, admin, Role.ADMIN)


def test_of_one_cluster_an_administrator_of_all_is_enough(admin: User, cluster: Cluster, make_user: MakeUser) -> None:
    bob = make_user("bob", Role.ADMIN, cluster)
    assert remove_role(admin, bob, Role.ADMIN, cluster=cluster)


def test_the_last_one_of_one_cluster_stays(cluster: Cluster, make_user: MakeUser) -> None:
    bob = make_user("bob", Role.ADMIN, cluster)
    with pytest.raises(Refused, match="last administrator of Demo"):
        remove_role("command line", bob, Role.ADMIN, cluster=cluster)


def test_other_roles_are_free(viewer: User, admin: User) -> None:
    assert remove_role(admin, viewer, Role.VIEWER)
    give_role(admin, viewer, Role.OPERATOR, expires_at=LATER)
