"""Two workers that route at the same time: a closing that is recorded meanwhile waits for the other's opening."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any
from unittest import mock

import pytest
from django.db import connection

from kafkadash.notifications import routing
from kafkadash.notifications.models import EventStep, NotificationItem
from kafkadash.notifications.routing import route_events
from tests.factories import NOW
from tests.notifications.conftest import MakeTarget, Tell

pytestmark = pytest.mark.django_db(transaction=True)


def test_closing__while_another_worker_routes_the_opening__is_sent_after_it(
    make_target: MakeTarget, tell: Tell
) -> None:
    make_target()
    tell()
    chosen, recorded = Event(), Event()
    store = routing._store_messages

    def store_later(*args: Any) -> None:
        store(*args)
        if not chosen.is_set():
            chosen.set()
            assert recorded.wait(10)

    def route_elsewhere() -> int:
        try:
            return route_events(NOW)
        finally:
            connection.close()

    with mock.patch.object(routing, "_store_messages", side_effect=store_later), ThreadPoolExecutor(1) as pool:
        other = pool.submit(route_elsewhere)
        assert chosen.wait(10)
        tell(step=EventStep.CLOSED)
        meanwhile = route_events(NOW)
        recorded.set()
        assert (meanwhile, other.result(10)) == (0, 1)
    assert route_events(NOW) == 1
    steps = NotificationItem.objects.order_by("pk").values_list("event__step", flat=True)
    assert list(steps) == [EventStep.OPENED, EventStep.CLOSED]
