"""A stored cluster, and an operator at the wizard."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from tests.planning.stored import Wizard, stored


@pytest.fixture
def demo(db: None) -> Cluster:
    return stored()


@pytest.fixture
def wizard(operator: User, client_of: Callable[[User], Client]) -> Wizard:
    return Wizard(client_of(operator))
