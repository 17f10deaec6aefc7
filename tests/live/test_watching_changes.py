"""Who may watch a change request: whoever may view its cluster. The key of all lists carries nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster, Role
from kafkadash.live.panels import watched
from kafkadash.live.rights import NOT_ALLOWED, judge


@pytest.fixture
def change(cluster: Cluster) -> ChangeRequest:
    return ChangeRequest.objects.create(cluster=cluster, kind="none", author_name="alice")


def test_viewers_of_its_cluster_may(
    change: ChangeRequest, viewer: User, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    other = Cluster.objects.create(name="Other", slug="other", bootstrap_servers="127.0.0.1:1")
    una = make_user("una", Role.VIEWER, other)
    ann = make_user("ann", Role.APPROVER, change.cluster)

    def refusal(user: User, *keys: str) -> int | None:
        return judge(client_of(user).session.session_key, keys).close_code

    key = f"change:{change.pk}"
    assert refusal(viewer, key, "changes", "metadata-read:demo") is None
    assert refusal(ann, key) is None
    assert refusal(una, key) == NOT_ALLOWED
    assert refusal(una, "metadata-read:other", key) == NOT_ALLOWED
    assert refusal(una, "changes") is None
    assert refusal(viewer, key, f"change:{change.pk + 1}") == NOT_ALLOWED, "one that does not exist"


@pytest.mark.parametrize(
    "key",
    [
        "change:",
        "change:x",
        "change:0",
        "change:-1",
        "change:1.5",
        "change:1 ",
        "changes:1",
        "run:x",
        "moves:",
        "run:0",
    ],
)
def test_what_is_no_number_is_no_key(key: str) -> None:
    assert watched(key) is None


def test_a_key_names_the_change() -> None:
    what = watched("change:42")
    assert what is not None
    assert (what.change, what.panel, what.slug) == (42, None, "")
