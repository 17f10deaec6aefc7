"""What nobody watches is not rendered; what somebody may have begun to watch is."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.embedded.valkey import Valkey
from kafkadash.live import watchers
from kafkadash.live.publisher import publish_keys, publish_panels
from kafkadash.live.watchers import watched_by_nobody
from tests.live.conftest import Socket, set_row
from tests.waiting import wait_until

Watch = Callable[..., Socket]
KEYS = ["status:demo", "quorum:demo"]
pytestmark = pytest.mark.usefixtures("plain_panels")


def test_nobody_watches__nothing_is_read(own_valkey: Valkey, cluster: Cluster, transactional_db: None) -> None:
    with CaptureQueriesContext(connection) as of_keys:
        publish_keys(KEYS)
    with CaptureQueriesContext(connection) as of_panels:
        publish_panels(cluster.pk, {"metadata", "quorum"}, seq=1)

    assert (len(of_keys), len(of_panels)) == (0, 1)  # the one says whose panels they are


def test_one_is_watched__the_others_are_not_rendered(
    own_valkey: Valkey, watch: Watch, cluster: Cluster, viewer: User
) -> None:
    browser = watch("quorum:demo", user=viewer)
    browser.shows("quorum-demo")
    wait_until(lambda: watched_by_nobody(KEYS) == {"status:demo"}, "the socket is subscribed")
    set_row(cluster, "news")

    with CaptureQueriesContext(connection) as captured:
        publish_keys(KEYS)

    # Of one panel, and all of it at one moment: its transaction is no question.
    assert len([query for query in captured if query["sql"].startswith("SELECT")]) == 1
    assert browser.shows("news")["key"] == "quorum:demo"
    browser.connection.close()
    wait_until(lambda: watched_by_nobody(KEYS) == set(KEYS), "the last one left")


def test_redis_is_away__all_of_them_may_be_watched_and_it_is_not_asked_each_time(
    own_valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=time.monotonic())
    monkeypatch.setattr(watchers, "time", SimpleNamespace(monotonic=lambda: clock.now))
    assert watched_by_nobody(KEYS) == set(KEYS)
    own_valkey.stop()
    assert watched_by_nobody(KEYS) == frozenset()
    own_valkey.start()
    clock.now += watchers.ASK_AGAIN_S - 0.1
    assert watched_by_nobody(KEYS) == frozenset()  # not asked again so soon
    clock.now += 0.2
    wait_until(lambda: watched_by_nobody(KEYS) == set(KEYS), "it is asked again")
