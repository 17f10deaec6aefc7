"""What people ask of a run on real Kafka, rightly and wrongly."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.changes.running import start_key
from kafkadash.reassign.models import Execution
from tests.agreement.conftest import TopicMaker
from tests.agreement.runs import Requests


@pytest.mark.django_db(transaction=True)
def test_start__pressed_twice_at_once__starts_it_once(
    requests: Requests, make_topic: TopicMaker, client_of: Callable[[User], Client]
) -> None:
    topic = make_topic([[1, 2]], mib=1)
    run = requests.approved({(topic, 0): [2, 1]})
    clients, together = [client_of(requests.alice) for _ in range(2)], Barrier(2)
    form = {"key": start_key(run.change, requests.alice), "reason": "Now."}

    def press(client: Client) -> int:
        together.wait(10)
        try:
            return int(client.post(f"/changes/{run.change.pk}/start/", form).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(press, clients)) == [302, 302]
    assert Execution.objects.count() == 1
    assert len(run.said("started")) == 1
    run.until_it_is(RequestState.DONE)
