"""A browser that has the page already gets 304, until the page says something else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
import time_machine
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.observe.models import ClusterState
from tests.factories import NOW, ReassignmentFactory, TopicFactory, watched

PAGES = [
    "/",
    "/clusters/demo/",
    "/clusters/demo/brokers/",
    "/clusters/demo/brokers/1/",
    "/clusters/demo/topics/",
    "/clusters/demo/topics/payments.ledger/",
    "/clusters/demo/racks/",
    "/clusters/demo/throttles/",
    "/clusters/demo/reassignments/",
    "/clusters/demo/reassignments/r-1/",
]


@pytest.fixture
def client(viewer: User, client_of: Callable[[User], Client]) -> Client:
    demo = watched("demo")
    TopicFactory.create(cluster=demo)
    ReassignmentFactory.create(cluster=demo, public_id="r-1")
    return client_of(viewer)


@pytest.mark.parametrize("address", PAGES)
def test_the_same_page_a_second_later_is_not_sent_again(client: Client, address: str) -> None:
    first = client.get(address)
    assert first.headers["Cache-Control"] == "no-store"
    with time_machine.travel(NOW + timedelta(seconds=1), tick=False):
        again = client.get(address, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("address", PAGES)
def test_data_that_became_stale_is_sent(client: Client, address: str) -> None:
    first = client.get(address)
    with time_machine.travel(NOW + timedelta(minutes=5), tick=False):
        again = client.get(address, headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 200


def test_a_changed_figure_is_sent(client: Client) -> None:
    first = client.get("/clusters/demo/")
    ClusterState.objects.update(partitions=1121)
    assert client.get("/clusters/demo/", headers={"If-None-Match": first.headers["ETag"]}).status_code == 200


def test_two_people_do_not_share_an_answer(client: Client, operator: User, client_of: Callable[[User], Client]) -> None:
    etag = client.get("/").headers["ETag"]
    assert client_of(operator).get("/", headers={"If-None-Match": etag}).status_code == 200
