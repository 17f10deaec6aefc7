"""One reassignment behind its opaque id (KIP-240's describe)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import Outcome
from tests.factories import NOW, ReassignmentFactory, ended, watched
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]


@pytest.fixture
def demo() -> Cluster:
    return watched("demo")


def url(public_id: str, cluster: str = "demo") -> str:
    return f"/clusters/{cluster}/reassignments/{public_id}/"


def test_a_running_one_is_described(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, partition=7, continuity_gap=True)
    described = get_page(url(row.public_id))
    assert described.title == "cart.events-7 is moving, 43.2 % copied."
    for expected in (
        "Leader 2 , epoch 12",
        "Target 6, 2, 1 the first becomes the preferred leader",
        "Adding 6",
        "Removing 3",
        "Replicas before 3, 2, 1",
        "between 01:58:54 and 01:59:04 , first seen. Continuity not observed",
        "6 43.2 % 432,190 567,810 no 02:03:03",
        "Rate ≈ 19.3 MB/s",
    ):
        assert expected in described.text
    assert "key=reassignments:demo" in described.html


@pytest.mark.parametrize(
    ("outcome", "words"),
    [(Outcome.COMPLETED, "completed"), (Outcome.CANCELLED, "cancelled"), (Outcome.UNKNOWN, "ended, outcome unknown")],
)
def test_one_that_is_over_is_not_running_and_says_how_it_ended(
    get_page: GetPage, demo: Cluster, outcome: Outcome, words: str
) -> None:
    row = ended(demo, outcome, NOW - timedelta(days=2), partition=7)
    ReassignmentFactory.create(cluster=demo, partition=7, adding=[9])
    described = get_page(url(row.public_id))
    assert described.title == f"cart.events-7 is not running: {words}."
    assert "Adding 6" in described.text  # its own data, not that of the later one on the same partition
    assert "19 Nov 02:03:04" in described.text
    assert "hx-ws:connect" not in described.html


def test_a_replica_that_did_not_answer_says_why(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, percent=None)
    described = get_page(url(row.public_id))
    assert described.title.endswith("is moving; how far cannot be told.")
    assert "unknown no answer within 8 s" in described.text


def test_an_id_of_another_cluster_or_of_nobody_is_not_found(
    viewer: User, client_of: Callable[[User], Client], demo: Cluster
) -> None:
    row = ReassignmentFactory.create(cluster=watched("other"))
    client = client_of(viewer)
    assert client.get(url(row.public_id)).status_code == 404
    assert client.get(url("r-nobody")).status_code == 404
    assert client.get(url(row.public_id, "other")).status_code == 200
