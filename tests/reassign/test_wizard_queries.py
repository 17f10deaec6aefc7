"""How many queries a step of the wizard needs: pinned, and the same with twice the brokers, topics and rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import User
from tests.reassign.stored import Wizard, stored

PINNED: dict[str, int] = json.loads((Path(__file__).parent.parent / "query_counts.json").read_text())
STEPS = ("new", "what", "limits", "plan", "why")


def counts(wizard: Wizard, name: str, size: int) -> dict[str, int]:
    """Of each step of a drain on a cluster of this size."""
    racks = {n: f"eu-1{'abc'[n % 3]}" for n in range(1, 6 * size + 1)}
    topics = {f"topic-{n}": [[1, 2, 3], [2, 3, 4], [3, 4, 5]] for n in range(4 * size)}
    cluster = stored(name, topics=topics, racks=racks)
    wizard.begins(cluster, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    found = {}
    for step in STEPS:
        where = f"/changes/new/?cluster={name}" if step == "new" else wizard.url(step)
        with CaptureQueriesContext(connection) as queries:
            assert wizard.client.get(where).status_code == 200
        found[f"wizard_{step}"] = len(queries)
    return found


@pytest.mark.django_db
def test_it_is_as_pinned_and_does_not_grow_with_rows(operator: User, client_of: Callable[[User], Client]) -> None:
    wizard = Wizard(client_of(operator))
    small, large = counts(wizard, "small", 1), counts(wizard, "large", 2)
    assert small == large, "the number of queries grows with the rows"
    assert small == {name: PINNED.get(name) for name in small}
