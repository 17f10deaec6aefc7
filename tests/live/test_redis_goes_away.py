"""Redis or Valkey stops, hangs and comes back: workers go on, sockets stay open and catch up by themselves."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, ClusterRole
from kafkadash.devtools.embedded.process import find_child
from kafkadash.devtools.embedded.valkey import NAME, EmbeddedValkey
from kafkadash.live import hub, publisher
from kafkadash.live.panels import panels_of
from kafkadash.live.publisher import publish_panels
from tests.live.conftest import DEADLINE_SECONDS, Socket, set_row
from tests.waiting import wait_until

Watch = Callable[..., Socket]
pytestmark = pytest.mark.usefixtures("plain_panels")

# Seconds that one call may take in a worker: two queries and a template on a busy machine, and a question to Redis
# that is given up after 0.2 s. A call that waited until a frame is sent would take 2 s.
CALL_SECONDS = 1.5


@pytest.fixture
def frozen(own_valkey: EmbeddedValkey) -> Iterator[Callable[[], psutil.Process]]:
    """``frozen()`` stops the server's process without closing its connections; it runs on at the end."""
    child = find_child(own_valkey.state_dir, NAME)
    assert child is not None
    process = psutil.Process(child.pid)

    def freeze() -> psutil.Process:
        process.suspend()
        wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "the server is frozen")
        return process

    yield freeze
    process.send_signal(signal.SIGCONT)


def test_open_socket__redis_gone_and_back__catches_up_without_reconnecting(
    own_valkey: EmbeddedValkey, watch: Watch, cluster: Cluster, viewer: User
) -> None:
    browser = watch("status:demo", user=viewer)
    set_row(cluster, "before")
    publish_panels(cluster.pk, {"metadata"}, seq=1)
    browser.shows("before")

    own_valkey.stop()
    set_row(cluster, "missed")
    publish_panels(cluster.pk, {"metadata"}, seq=2)
    wait_until(publisher.count_dropped, "a message was dropped")
    own_valkey.start()

    assert browser.shows("missed")["seq"] == 0  # read from the database when the subscription stood again
    _pushed_again(browser, cluster, "pushed")


def test_open_socket__redis_hangs_and_goes_on__catches_up_without_reconnecting(
    own_valkey: EmbeddedValkey,
    frozen: Callable[[], psutil.Process],
    watch: Watch,
    cluster: Cluster,
    viewer: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub, "LOST_AFTER_SECONDS", 1.0)
    monkeypatch.setattr(hub, "CALL_DEADLINE_SECONDS", 0.5)
    browser = watch("status:demo", user=viewer)
    browser.shows("status-demo")

    process = frozen()
    set_row(cluster, "missed")
    publish_panels(cluster.pk, {"metadata"}, seq=2)
    wait_until(publisher.count_dropped, "a message was dropped")
    process.resume()

    browser.shows("missed")
    _pushed_again(browser, cluster, "pushed")


def test_new_socket__while_redis_is_away__is_served_from_the_database_and_live_later(
    own_valkey: EmbeddedValkey, watch: Watch, cluster: Cluster, viewer: User
) -> None:
    own_valkey.stop()
    set_row(cluster, "from the database")

    browser = watch("status:demo", user=viewer)
    browser.shows("from the database")
    second = watch("quorum:demo", user=viewer)
    second.shows("from the database")
    own_valkey.start()

    _pushed_again(browser, cluster, "pushed")
    second.shows("pushed")


def test_role__taken_away_while_redis_is_away__closes_when_it_is_back(
    own_valkey: EmbeddedValkey, watch: Watch, cluster: Cluster, viewer: User
) -> None:
    browser = watch("status:demo", user=viewer)
    browser.shows("status-demo")

    own_valkey.stop()
    ClusterRole.objects.get(user=viewer).delete()
    wait_until(publisher.count_dropped, "a message was dropped")
    own_valkey.start()

    assert browser.closed_with() == 4403


def test_publishing__while_redis_is_gone__neither_waits_nor_raises_and_says_so_once(
    own_valkey: EmbeddedValkey, cluster: Cluster, caplog: pytest.LogCaptureFixture, transactional_db: None
) -> None:
    own_valkey.stop()

    with caplog.at_level(logging.INFO):
        for n in range(20):
            assert _seconds_of(lambda n=n: publish_panels(cluster.pk, {"metadata"}, seq=n)) < CALL_SECONDS  # type: ignore[misc]
            wait_until(lambda n=n: publisher.count_dropped() > n, "it was dropped")  # type: ignore[misc]
        own_valkey.start()
        publish_panels(cluster.pk, {"metadata"}, seq=99)
        wait_until(lambda: "live.publish_resumed" in caplog.text, "publishing resumed")

    assert caplog.text.count("live.publish_failed") == 1
    assert "Traceback" not in caplog.text


def test_publishing__while_redis_hangs__does_not_wait_and_keeps_only_the_latest(
    own_valkey: EmbeddedValkey, frozen: Callable[[], psutil.Process], cluster: Cluster, transactional_db: None
) -> None:
    publish_panels(cluster.pk, {"metadata"}, seq=0)
    frozen()

    took = [_seconds_of(lambda n=n: publish_panels(cluster.pk, {"metadata"}, seq=n)) for n in range(1, 200)]  # type: ignore[misc]

    assert max(took) < CALL_SECONDS
    assert publisher._process.sender is not None
    # One message for each panel, and the hint that metadata was read.
    assert len(publisher._process.sender._waiting) <= len(panels_of({"metadata"})) + 1
    wait_until(publisher.count_dropped, "a message was dropped")


def test_publishing__from_many_threads__uses_one_thread_to_send(
    own_valkey: EmbeddedValkey, watch: Watch, cluster: Cluster, viewer: User
) -> None:
    browser = watch("status:demo", user=viewer)
    browser.shows("status-demo")
    set_row(cluster, "from all sides")

    def publish() -> None:
        from django.db import connection

        publish_panels(cluster.pk, {"metadata"}, seq=1)
        connection.close()

    threads = [threading.Thread(target=publish) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)

    browser.shows("from all sides")
    assert [t.name for t in threading.enumerate()].count("live-publisher") == 1


def _pushed_again(browser: Socket, cluster: Cluster, text: str) -> None:
    """Publishing works again, end to end; the worker's side may need one failed try to notice."""
    set_row(cluster, text)

    def arrived() -> bool:
        publish_panels(cluster.pk, {"metadata", "quorum"}, seq=77)
        try:
            return bool(browser.shows(text, deadline=1.5)["seq"] == 77)
        except AssertionError:
            return False

    wait_until(arrived, "a push arrived")


def _seconds_of(call: Callable[[], None]) -> float:
    before = time.monotonic()
    call()
    return time.monotonic() - before
