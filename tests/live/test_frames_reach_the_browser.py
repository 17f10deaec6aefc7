"""What is pushed when: the latest of each key, at most one per interval, to those who watch it."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import Settings
from redis import Redis

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.embedded.valkey import Valkey
from kafkadash.events import changed
from kafkadash.live import panels, publisher, watchers
from kafkadash.live.frames import Frame
from kafkadash.live.hub import group_of
from kafkadash.live.publisher import publish_keys, publish_panels
from tests.live.conftest import Socket, publish_raw, set_row
from tests.waiting import wait_until

Watch = Callable[..., Socket]
pytestmark = pytest.mark.usefixtures("plain_panels")


def test_refresh__of_a_watched_panel__is_pushed(watch: Watch, cluster: Cluster, viewer: User) -> None:
    browser = watch("reassignments:demo", user=viewer)
    browser.shows("reassignments-demo")
    set_row(cluster, "43.2 %")

    publish_panels(cluster.pk, frozenset({"reassignments"}), seq=12)

    frame = browser.shows("43.2 %")
    assert (frame["key"], frame["seq"], frame["target"]) == ("reassignments:demo", 12, "#reassignments-demo")
    assert datetime.now(UTC) - datetime.fromisoformat(frame["sampled_at"]) < timedelta(seconds=10)


def test_frame__put_into_redis_by_somebody_else__is_not_shown(watch: Watch, cluster: Cluster, viewer: User) -> None:
    browser = watch("status:demo", user=viewer)
    browser.shows("status-demo")
    publish_raw("status:demo", "forged")
    set_row(cluster, "what is true")

    publish_panels(cluster.pk, frozenset({"metadata"}), seq=2)

    browser.shows("what is true")
    assert not [message for message in browser.messages if "forged" in str(message)]


def test_frame__on_its_way__cannot_be_read_in_redis(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    browser = watch("status:demo", user=viewer)
    browser.shows("status-demo")
    with Redis.from_url(settings.REDIS_URL) as redis, redis.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe(f"kafkadash__group__{group_of('status:demo')}")
        listener.get_message(timeout=5)  # that it subscribed
        set_row(cluster, "what is true")
        publish_panels(cluster.pk, frozenset({"metadata"}), seq=2)
        browser.shows("what is true")
        heard = listener.get_message(timeout=5)
    assert heard is not None
    assert b"what is true" not in heard["data"]


def test_refresh__of_kinds_that_a_panel_does_not_show__pushes_nothing_to_it(
    watch: Watch, cluster: Cluster, viewer: User
) -> None:
    browser = watch("quorum:demo", "status:demo", user=viewer)
    browser.shows("quorum-demo")
    set_row(cluster, "later")

    publish_panels(cluster.pk, {"log_dirs"}, seq=1)

    browser.shows("later")
    assert [m["key"] for m in browser.messages if "later" in m.get("content", "")] == ["status:demo"]


def test_refresh__of_another_cluster__is_not_seen(watch: Watch, cluster: Cluster, viewer: User) -> None:
    other = Cluster.objects.create(name="Other", slug="demo-2", bootstrap_servers="127.0.0.1:1", kafka_id="not mine")
    browser = watch("status:demo", user=viewer)
    browser.shows("status-demo")

    publish_panels(other.pk, {"metadata"}, seq=1)
    set_row(cluster, "mine")
    publish_panels(cluster.pk, {"metadata"}, seq=1)

    browser.shows("mine")
    assert not any("not mine" in message.get("content", "") for message in browser.messages)


def test_burst__within_an_interval__sends_the_first_at_once_and_then_the_last(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_FLUSH_SECONDS = 1.0
    browser = watch("status:demo", user=viewer)
    browser.shows("status-demo")

    began = time.monotonic()
    for n in range(1, 31):
        set_row(cluster, f"number {n}.")
        publish_panels(cluster.pk, {"metadata"}, seq=n)
    browser.shows("number 30.")

    frames = [message["seq"] for message in browser.messages if "content" in message]
    assert len(frames) <= 3 + (time.monotonic() - began), "more than one frame a second"
    assert frames[-1] == 30


@pytest.mark.usefixtures("no_earlier_hint")
def test_frame__of_one_key__does_not_wait_for_another(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_FLUSH_SECONDS = 30.0
    browser = watch("status:demo", "board", user=viewer)
    browser.shows("status-demo")

    set_row(cluster, "worse", state="zookeeper")
    publish_panels(cluster.pk, {"metadata"}, seq=1)

    assert browser.until(lambda message: message.get("hint", False))["key"] == "board"


def test_frame__after_a_quiet_interval__goes_at_once(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_FLUSH_SECONDS = 0.2
    settings.LIVE_HEARTBEAT_SECONDS = 0.5
    browser = watch("status:demo", user=viewer)
    browser.shows("status-demo")
    browser.until(lambda m: "heartbeat" in m)
    settings.LIVE_FLUSH_SECONDS = 30.0
    set_row(cluster, "quick")

    publish_panels(cluster.pk, {"metadata"}, seq=1)

    browser.shows("quick", deadline=2)


def test_frame__rendered_before_the_one_shown__is_dropped(watch: Watch, cluster: Cluster, viewer: User) -> None:
    browser = watch("status:demo", user=viewer)
    browser.shows("status-demo")
    _publish("status:demo", "newest", "2126-11-21T02:00:02.000Z")
    browser.shows("newest")

    _publish("status:demo", "came late", "2126-11-21T02:00:01.000Z")
    _publish("status:demo", "same moment", "2126-11-21T02:00:02.000Z")

    browser.shows("same moment")
    assert not any("came late" in message.get("content", "") for message in browser.messages)


def test_heartbeat__says_the_servers_time_at_once_and_every_interval(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_HEARTBEAT_SECONDS = 0.2
    browser = watch("status:demo", user=viewer)

    times = [datetime.fromisoformat(browser.until(lambda m: "heartbeat" in m)["heartbeat"]) for _ in range(3)]

    assert times == sorted(times)
    assert abs(datetime.now(UTC) - times[-1]) < timedelta(seconds=5)


def test_hint__sent_before_the_socket_is_subscribed__comes_after_it(
    own_valkey: Valkey, watch: Watch, viewer: User
) -> None:
    publish_keys(["changes"])
    publisher.stop_publishing()  # it has left, and nobody was there

    browser = watch("pipeline", "changes", user=viewer)

    assert browser.until(lambda message: "hint" in message)["key"] == "changes"


def test_hint__of_longer_ago__does_not_come_again(
    cluster: Cluster, own_valkey: Valkey, watch: Watch, viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "HINT_KEPT", timedelta(milliseconds=1))
    publish_keys(["board"])
    wait_until(lambda: not watchers.hinted_lately(["board"]), "it is forgotten")

    set_row(cluster, "before")
    browser = watch("board", "status:demo", user=viewer)

    browser.shows("before")
    set_row(cluster, "later")
    publish_panels(cluster.pk, {"metadata"}, seq=1)
    browser.shows("later")
    assert not any("hint" in message for message in browser.messages)


@pytest.mark.usefixtures("no_earlier_hint")
def test_board__when_a_clusters_state_changes__is_hinted_once(watch: Watch, cluster: Cluster, viewer: User) -> None:
    set_row(cluster, "before")
    browser = watch("status:demo", "board", user=viewer)
    browser.shows("before")

    set_row(cluster, "same state")
    publish_panels(cluster.pk, {"metadata"}, seq=1)
    browser.shows("same state")
    assert not any(message.get("hint") for message in browser.messages)
    set_row(cluster, "worse", state="zookeeper")
    publish_panels(cluster.pk, {"metadata"}, seq=2)

    hint = browser.until(lambda message: message.get("hint", False))
    assert hint["key"] == "board"


@pytest.mark.usefixtures("no_earlier_hint")
def test_board__when_a_cluster_is_added_or_removed__is_hinted(watch: Watch, cluster: Cluster, viewer: User) -> None:
    browser = watch("board", "status:demo", user=viewer)
    browser.shows("status-demo")

    added = Cluster.objects.create(name="New", slug="new", bootstrap_servers="127.0.0.1:1")
    browser.until(lambda message: message.get("key") == "board")
    added.delete()
    browser.until(lambda message: message.get("key") == "board")


def test_board__may_be_watched_by_everybody_who_is_signed_in(watch: Watch, stranger: User) -> None:
    watch("board", user=stranger).until(lambda message: "heartbeat" in message)


@pytest.mark.usefixtures("no_earlier_hint")
def test_page_of_a_cluster__is_hinted_when_that_kind_was_read_from_that_cluster(
    watch: Watch, cluster: Cluster, viewer: User
) -> None:
    Cluster.objects.create(name="Other", slug="other", bootstrap_servers="127.0.0.1:1")
    browser = watch("log-dirs-read:demo", "status:other", user=viewer)
    browser.until(lambda m: m.get("key") == "status:other")

    publish_panels(cluster.pk, {"metadata"}, 1)
    publish_panels(Cluster.objects.get(slug="other").pk, {"log_dirs"}, 1)
    publish_panels(cluster.pk, {"log_dirs"}, 7)

    hint = browser.until(lambda m: m.get("hint", False))
    assert (hint["key"], hint["seq"]) == ("log-dirs-read:demo", 7)


@pytest.mark.usefixtures("no_earlier_hint")
def test_changed_keys__push_panels_and_hint_the_rest(watch: Watch, cluster: Cluster, viewer: User) -> None:
    browser = watch("quorum:demo", "board", user=viewer)
    browser.shows("quorum-demo")
    set_row(cluster, "leader 3")

    changed.send(sender=None, keys=frozenset({"quorum:demo", "board"}))

    browser.shows("leader 3")
    assert any(m.get("hint") for m in browser.messages) or browser.until(lambda m: m.get("hint", False))


def test_panel__that_cannot_be_rendered__leaves_the_others_alone(
    watch: Watch, cluster: Cluster, viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = watch("overview:demo", user=viewer)
    browser.shows("overview-demo")
    broken = replace(panels.PANELS["status"], context=lambda *_: {})
    monkeypatch.setattr(panels, "PANELS", {**panels.PANELS, "status": broken})
    set_row(cluster, "still shown")
    publish_panels(cluster.pk, {"metadata"}, seq=1)

    browser.shows("still shown")


def test_browser__that_does_not_read__is_closed_as_too_slow_and_others_are_served(
    watch: Watch, cluster: Cluster, viewer: User, port: int, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings.LIVE_FLUSH_SECONDS = 0.01
    settings.LIVE_SEND_TIMEOUT = 0.3
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    narrow.connect(("127.0.0.1", port))
    slow = watch("status:demo", user=viewer, sock=narrow, max_queue=1, max_size=None, compression=None)
    quick = watch("status:demo", user=viewer, max_size=None, compression=None)
    quick.shows("status-demo")

    for n in range(12):  # far beyond what the buffers of two sockets hold
        _publish("status:demo", f"number {n}. " + "x" * 2_000_000, f"2126-11-21T02:00:{n:02}.000Z")
        quick.shows(f"number {n}.")

    wait_until(lambda: "live.too_slow" in caplog.text, "the server gave up the slow browser")
    assert slow.closed_with() == 1013
    assert len(slow.messages) < 12
    set_row(cluster, "small again")
    _publish("status:demo", "small again", "2126-11-21T02:01:00.000Z")
    assert quick.shows("small again")


def _publish(key: str, content: str, rendered_at: str) -> None:
    text = json.dumps({"key": key, "seq": 1, "content": content})
    publisher._hand_over(group_of(key), {"type": "frame", **Frame(key, text, rendered_at).packed()})
