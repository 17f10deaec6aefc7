"""What people ask of a run on real Kafka, rightly and wrongly."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
from django.db import connection
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.changes.running import start_key
from kafkadash.playground.cluster import Playground
from kafkadash.playground.load import steady
from kafkadash.reassign.models import Execution
from kafkadash.reassign.run.measure import inbound_of
from tests.agreement.conftest import TopicMaker
from tests.agreement.runs import SLOW, Requests, braked
from tests.agreement.tools import Tools
from tests.pages.conftest import Page

MB = 1_000_000
RATE = "leader.replication.throttled.rate"
# What is typed for MB/s → what is said to it.
NONSENSE = {
    "0": "With a throttle of 0 nothing would ever arrive.",
    "-5": "A throttle is above 0",
    "fast": "“fast” is not a number.",
    "": "Give a number of MB/s",
    "0.01": "0.01 MB/s (10,000 bytes/s) is less than 1 MB/s. Is that what you mean?",
    "2000": "2000 MB/s (2,000,000,000 bytes/s) needs a new approval",
}


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


def test_throttles_that_cannot_be_meant__get_a_sentence_and_change_nothing(
    requests: Requests, make_topic: TopicMaker, tools: Tools, alices_client: Client
) -> None:
    topic = make_topic([[1]], mib=8)
    run = requests.approved({(topic, 0): [2]}).start()
    run.until_moving(topic)
    braked(tools, 1, RATE, SLOW)
    for typed, said in NONSENSE.items():
        address = f"/changes/{run.change.pk}/run/throttle/"
        page = alices_client.post(address, {"rate": typed, "reason": "It is night."}, follow=True)
        assert said in Page(page.content.decode()).text, typed
        run.step()
        assert tools.throttles(1)[1, RATE] == str(SLOW), typed
    run.cancel("Enough.")


def test_a_throttle_below_what_producers_write__is_asked_about_and_not_set(
    requests: Requests, make_topic: TopicMaker, tools: Tools, playground: Playground, alices_client: Client
) -> None:
    topic = make_topic([[1]], mib=64)
    run = requests.approved({(topic, 0): [2]}, throttle=3 * MB).start()
    enough = Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(steady, playground.bootstrap, [topic], 1.5 * MB, enough)
        try:
            run.until_moving(topic)
            braked(tools, 1, RATE, 3 * MB)
            run.until(lambda: (inbound_of(run.execution)[0] or 0) > MB, "what producers write is known")
            address = f"/changes/{run.change.pk}/run/throttle/"
            page = alices_client.post(address, {"rate": "1", "reason": "Consumers complain."}, follow=True)
            assert "At that rate the run could never finish." in Page(page.content.decode()).text
            run.step()
            assert tools.throttles(1)[1, RATE] == str(3 * MB)
        finally:
            enough.set()
    run.cancel("Enough.")
