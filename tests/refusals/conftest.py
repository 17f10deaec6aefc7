"""People at their pages, at a frozen time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import time_machine
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Role
from tests.changes.kind_fixtures import parcels
from tests.factories import NOW, watched
from tests.refusals.desk import Desk

__all__ = ["parcels"]


@pytest.fixture
def people(make_user: Callable[..., User]) -> dict[str, User]:
    roles = {
        "alice": Role.OPERATOR,
        "ann": Role.OPERATOR,
        "bob": Role.APPROVER,
        "adam": Role.ADMIN,
        "vera": Role.VIEWER,
    }
    made = {name: make_user(name, role) for name, role in roles.items()}
    made["ann"].cluster_roles.create(role=Role.APPROVER)
    return made


@pytest.fixture
def desk(people: dict[str, User], parcels: object, client_of: Callable[[User], Client]) -> Iterator[Desk]:
    with time_machine.travel(NOW, tick=False):
        yield Desk(watched("demo"), people, client_of)
