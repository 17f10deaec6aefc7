"""One policy: who may do what, on which cluster, until when.

Nobody can lock everybody out: the last administrator's role can neither be taken away nor be given an end.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils import timezone

from kafkadash.accounts.errors import ActionForbidden
from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.access import (
    ACTIONS,
    ALLOWS,
    MANAGE,
    VIEW,
    VIEW_AUDIT,
    cluster_for,
    is_allowed,
    needs,
    visible_clusters,
)
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.clusters.services import ClusterRefused, give_role, remove_role
from tests.raised_codes import raises_code

MakeUser = Callable[..., User]


@pytest.fixture
def other(db: None) -> Cluster:
    return Cluster.objects.create(name="Other", slug="other", bootstrap_servers="127.0.0.1:1")


def request_of(user: User | AnonymousUser) -> HttpRequest:
    request = RequestFactory().get("/")
    request.user = user
    return request


def test_every_role_has_a_line_in_the_policy() -> None:
    assert set(ALLOWS) == set(Role)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_a_role_allows_what_its_line_says(role: Role, action: str, make_user: MakeUser, cluster: Cluster) -> None:
    assert is_allowed(make_user("ann", role, cluster), action, cluster) is (action in ALLOWS[role])


def test_the_roles_of_the_design() -> None:
    assert {role for role in Role if VIEW in ALLOWS[role]} == set(Role)
    assert {role for role in Role if MANAGE in ALLOWS[role]} == {Role.ADMIN}
    assert {role for role in Role if VIEW_AUDIT in ALLOWS[role]} == {Role.ADMIN, Role.AUDITOR}


def test_a_role_on_one_cluster_holds_there_only(make_user: MakeUser, cluster: Cluster, other: Cluster) -> None:
    ann = make_user("ann", Role.ADMIN, cluster)
    assert is_allowed(ann, MANAGE, cluster)
    assert not is_allowed(ann, VIEW, other)
    assert not is_allowed(ann, MANAGE, None)
    assert list(visible_clusters(ann)) == [cluster]


def test_a_role_on_all_clusters_holds_on_each(admin: User, cluster: Cluster, other: Cluster) -> None:
    assert is_allowed(admin, MANAGE, cluster)
    assert is_allowed(admin, MANAGE, other)
    assert is_allowed(admin, MANAGE, None)
    assert list(visible_clusters(admin)) == [cluster, other]


def test_a_superuser_may_do_everything(make_user: MakeUser, cluster: Cluster) -> None:
    root = make_user("root", is_superuser=True)
    assert all(is_allowed(root, action, where) for action in ACTIONS for where in (cluster, None))
    assert list(visible_clusters(root)) == [cluster]


def test_without_a_role_nothing_is_allowed(stranger: User, cluster: Cluster) -> None:
    assert not any(is_allowed(stranger, action, where) for action in ACTIONS for where in (cluster, None))
    assert not visible_clusters(stranger).exists()


def test_anonymous_is_allowed_nothing(cluster: Cluster) -> None:
    assert not any(is_allowed(AnonymousUser(), action, cluster) for action in ACTIONS)
    assert not visible_clusters(AnonymousUser()).exists()


@pytest.mark.parametrize("superuser", [True, False])
def test_a_closed_account_is_allowed_nothing(superuser: bool, make_user: MakeUser, cluster: Cluster) -> None:
    ann = make_user("ann", Role.ADMIN, is_superuser=superuser)
    User.objects.filter(pk=ann.pk).update(is_active=False)  # behind the back of the object that a socket still holds
    assert not is_allowed(ann, VIEW, cluster)
    assert not visible_clusters(ann).exists()


def test_a_role_ends_when_it_runs_out(make_user: MakeUser, cluster: Cluster) -> None:
    ann = make_user("ann", Role.VIEWER)
    now = timezone.now()
    ClusterRole.objects.update(expires_at=now + timedelta(minutes=5))
    assert is_allowed(ann, VIEW, cluster)
    ClusterRole.objects.update(expires_at=now - timedelta(seconds=1))
    assert not is_allowed(ann, VIEW, cluster)
    assert not visible_clusters(ann).exists()


def test_an_unknown_action_is_a_mistake_and_no_refusal(viewer: User, cluster: Cluster) -> None:
    with pytest.raises(ValueError, match=r"cluster\.veiw"):
        is_allowed(viewer, "cluster.veiw", cluster)


def test_the_same_role_is_not_given_twice_on_all_clusters(make_user: MakeUser) -> None:
    from django.db import IntegrityError, transaction

    ann = make_user("ann", Role.VIEWER)
    with pytest.raises(IntegrityError, match="one_role_once"), transaction.atomic():
        ClusterRole.objects.create(user=ann, role=Role.VIEWER)


def test_cluster_for_hides_what_may_not_be_seen(stranger: User, cluster: Cluster) -> None:
    with pytest.raises(Http404):
        cluster_for(request_of(stranger), "demo")
    with pytest.raises(Http404):
        cluster_for(request_of(stranger), "demo", MANAGE)


def test_cluster_for_refuses_with_the_roles_that_may(viewer: User, cluster: Cluster) -> None:
    with raises_code(ClusterErrorCode.NEEDS_ROLE, ActionForbidden, cluster="Demo", roles="admin"):
        cluster_for(request_of(viewer), "demo", MANAGE)
    with raises_code(ClusterErrorCode.NEEDS_ROLE, ActionForbidden, roles="auditor or admin"):
        cluster_for(request_of(viewer), "demo", VIEW_AUDIT)


def test_needs_enforces_even_if_the_view_asks_nothing(viewer: User, stranger: User, cluster: Cluster) -> None:
    @needs(MANAGE)
    def careless(request: HttpRequest, slug: str) -> HttpResponse:
        return HttpResponse("done")

    @needs(VIEW)
    def shown(request: HttpRequest, slug: str) -> HttpResponse:
        return HttpResponse(cluster_for(request, slug, VIEW).name)

    with pytest.raises(PermissionDenied):
        careless(request_of(viewer), slug="demo")
    with pytest.raises(Http404):
        shown(request_of(stranger), slug="demo")
    response = shown(request_of(viewer), slug="demo")
    assert isinstance(response, HttpResponse)
    assert response.content == b"Demo"


def test_needs_without_a_cluster_asks_for_the_installation(make_user: MakeUser, admin: User, cluster: Cluster) -> None:
    @needs(MANAGE)
    def new(request: HttpRequest) -> HttpResponse:
        return HttpResponse("form")

    with raises_code(ClusterErrorCode.NEEDS_ROLE_EVERYWHERE, ActionForbidden, roles="admin"):
        new(request_of(make_user("ann", Role.ADMIN, cluster)))
    assert new(request_of(admin)).status_code == 200


def test_the_view_does_not_pay_twice_for_asking(
    viewer: User, cluster: Cluster, django_assert_num_queries: Callable[[int], object]
) -> None:
    request = request_of(viewer)
    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        cluster_for(request, "demo")
        cluster_for(request, "demo")


LATER = datetime(2999, 1, 1, tzinfo=UTC)


def test_the_last_one_of_all_clusters_stays(admin: User) -> None:
    with pytest.raises(ClusterRefused, match="adam is the last permanent administrator of all clusters"):
        remove_role(admin, admin, Role.ADMIN)
    with pytest.raises(ClusterRefused, match="last permanent administrator"):
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
    with pytest.raises(ClusterRefused, match="last permanent administrator"):
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
    with pytest.raises(ClusterRefused, match="last permanent administrator of Demo"):
        remove_role("command line", bob, Role.ADMIN, cluster=cluster)


def test_other_roles_are_free(viewer: User, admin: User) -> None:
    assert remove_role(admin, viewer, Role.VIEWER)
    give_role(admin, viewer, Role.OPERATOR, expires_at=LATER)
