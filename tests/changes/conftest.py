"""A cluster whose facts are fresh, and people: alice and ann propose, bob and bea approve."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, Role
from tests.changes.worlds import World, kind_registered, read_lately
from tests.factories import ClusterFactory


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    with kind_registered(world):
        yield world


@pytest.fixture
def cluster(db: None) -> Cluster:
    cluster = ClusterFactory.create(name="orders-eu")
    read_lately(cluster)
    return cluster


@pytest.fixture
def alice(make_user: Callable[..., User]) -> User:
    return make_user("alice", Role.OPERATOR)


@pytest.fixture
def ann(make_user: Callable[..., User]) -> User:
    """Operator and approver."""
    user = make_user("ann", Role.OPERATOR)
    user.cluster_roles.create(role=Role.APPROVER)
    return user


@pytest.fixture
def bob(make_user: Callable[..., User]) -> User:
    return make_user("bob", Role.APPROVER)


@pytest.fixture
def bea(make_user: Callable[..., User]) -> User:
    return make_user("bea", Role.APPROVER)
