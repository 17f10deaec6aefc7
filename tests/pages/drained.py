"""A drain of five rows in any state, for the pages of what is started, runs or has ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster
from kafkadash.planning.stored_topology import load_topology
from tests.changes.parcels import approved
from tests.factories import NOW
from tests.pages.conftest import Page
from tests.planning.plans import drained, planned
from tests.planning.stored import stored

See = Callable[..., Page]
TYPED = "Broker 2 <fails>, no second approver is awake."


@pytest.fixture
def demo(db: None) -> Cluster:
    return stored()


@pytest.fixture
def made(demo: Cluster, operator: User, approver: User) -> Callable[..., ChangeRequest]:
    """A drain of broker 3, five rows, in this state."""

    def make(state: ChangeState, **fields: object) -> ChangeRequest:
        topology = load_topology(demo).topology
        rows = drained(topology, 3, 6)
        change = planned(demo, topology, rows, approvals_needed=1, round=1, contributor_ids=[operator.pk])
        asked = {"checked_at": NOW - timedelta(seconds=4), "expires_at": NOW + timedelta(days=1), "risk": 34, **fields}
        ChangeRequest.objects.filter(pk=change.pk).update(state=state, **asked)
        change.refresh_from_db()
        if state != ChangeState.PROPOSED and "broke_glass_name" not in fields:
            approved(change, approver)
        return change

    return make


@pytest.fixture
def see(client_of: Callable[[User], Client]) -> See:
    def get(user: User, address: str, status: int = 200) -> Page:
        response = client_of(user).get(address)
        assert response.status_code == status
        return Page.read(response)

    return get


def review(change: ChangeRequest) -> str:
    return f"/changes/{change.pk}/"
