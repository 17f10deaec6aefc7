"""What is pushed when: the latest of each key, at most one per interval, to those who watch it.

What nobody watches is not rendered; what somebody may have begun to watch is.

Who may open a live socket, and how it ends when that changes.

What people who are not signed in may send and hold open, on the server that people use.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings
from redis import Redis
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from websockets.exceptions import InvalidStatus

from kafkadash import asgi, web
from kafkadash.accounts.models import AuditEvent, User
from kafkadash.accounts.services import set_active
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.core.events import changed
from kafkadash.devtools.embedded.valkey import EmbeddedValkey
from kafkadash.live import consumer, panels, publisher
from kafkadash.live import hub as watchers
from kafkadash.live.consumer import AccessVerdict, is_ours, judge
from kafkadash.live.frames import LiveFrame
from kafkadash.live.hub import group_of, watched_by_nobody
from kafkadash.live.panels import MAX_KEYS
from kafkadash.live.publisher import publish_keys, publish_panels
from kafkadash.monitoring.models import CollectorKind
from tests.factories import NOW, BrokerFactory, TopicFactory
from tests.live.conftest import Socket, publish_raw, set_row
from tests.pages.conftest import Page
from tests.pages.test_catch_up import follower, store
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
    own_valkey: EmbeddedValkey, watch: Watch, viewer: User
) -> None:
    publish_keys(["changes"])
    publisher.stop_publishing()  # it has left, and nobody was there

    browser = watch("pipeline", "changes", user=viewer)

    assert browser.until(lambda message: "hint" in message)["key"] == "changes"


def test_hint__of_longer_ago__does_not_come_again(
    cluster: Cluster, own_valkey: EmbeddedValkey, watch: Watch, viewer: User, monkeypatch: pytest.MonkeyPatch
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
def test_page_of_a_broker__after_a_new_reading_of_its_catch_up__is_hinted_and_shows_it(
    watch: Watch, cluster: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    BrokerFactory.create(cluster=cluster, broker_id=3)
    late = TopicFactory.create(
        cluster=cluster, name="late", under_replicated=1, partitions=[[0, 1, 5, [1, 3], [1], []]]
    )
    age = NOW - timezone.now()
    store(cluster, follower(late, 90_000, 1_100, 100), age=age)
    page = client_of(viewer).get("/clusters/demo/brokers/3/").content.decode()
    assert "90,000" in Page(page).part("broker-catch-up-demo")
    keys = re.findall("[?;]key=([a-z:-]+)", page)
    browser = watch(*keys, "status:demo", user=viewer)
    browser.shows("status-demo")

    store(cluster, follower(late, 30_000, 1_100, 100), age=age)
    publish_panels(cluster.pk, {CollectorKind.CATCH_UP}, 7)

    hint = browser.until(lambda m: m.get("hint", False))
    assert (hint["key"], hint["seq"]) == ("catch-up-read:demo", 7)
    page = client_of(viewer).get("/clusters/demo/brokers/3/").content.decode()
    assert "30,000" in Page(page).part("broker-catch-up-demo")


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
    publisher._hand_over(group_of(key), {"type": "frame", **LiveFrame(key, text, rendered_at).packed()})


KEYS = ["status:demo", "quorum:demo"]


def test_nobody_watches__nothing_is_read(own_valkey: EmbeddedValkey, cluster: Cluster, transactional_db: None) -> None:
    with CaptureQueriesContext(connection) as of_keys:
        publish_keys(KEYS)
    with CaptureQueriesContext(connection) as of_panels:
        publish_panels(cluster.pk, {"metadata", "quorum"}, seq=1)

    assert (len(of_keys), len(of_panels)) == (0, 1)  # the one says whose panels they are


def test_one_is_watched__the_others_are_not_rendered(
    own_valkey: EmbeddedValkey, watch: Watch, cluster: Cluster, viewer: User
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
    own_valkey: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch
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


def test_socket__without_session__is_closed_as_not_signed_in(watch: Watch, cluster: Cluster) -> None:
    assert watch("status:demo").closed_with() == 4401


def test_socket__with_forged_session__is_closed_as_not_signed_in(watch: Watch, cluster: Cluster) -> None:
    assert watch("status:demo", cookie="sessionid=" + "a" * 32).closed_with() == 4401


def test_viewer__watching_his_cluster__gets_its_current_frame(watch: Watch, cluster: Cluster, viewer: User) -> None:
    set_row(cluster, "what is now")

    frame = watch("status:demo", user=viewer).shows("what is now")

    assert (frame["key"], frame["target"], frame["swap"]) == ("status:demo", "#status-demo", "outerMorph")


def test_stranger__watching_a_cluster__is_refused_and_sees_nothing(
    watch: Watch, cluster: Cluster, stranger: User
) -> None:
    socket = watch("status:demo", user=stranger)

    assert socket.closed_with() == 4403
    assert socket.messages == []


def test_hint_of_a_cluster__is_for_those_who_may_view_it(
    watch: Watch, cluster: Cluster, stranger: User, make_user: Callable[..., User]
) -> None:
    other = Cluster.objects.create(name="Other", slug="other", bootstrap_servers="127.0.0.1:1")
    una = make_user("una", Role.VIEWER, other)

    assert watch("metadata-read:demo", user=stranger).closed_with() == 4403
    assert watch("metadata-read:other", "metadata-read:demo", user=una).closed_with() == 4403
    assert watch("metadata-read:other", user=una).until(lambda m: "heartbeat" in m)


def test_unknown_key__beside_a_good_one__refuses_the_socket(watch: Watch, cluster: Cluster, viewer: User) -> None:
    for key in (
        "nothing:demo",
        "status:elsewhere",
        "status:",
        "status",
        "board:demo",
        "status:demo:x",
        "status:DEMO",
        "read:demo",
        "metadata-read",
        "metadata-read:elsewhere",
    ):
        assert watch("status:demo", key, user=viewer).closed_with() == 4403, key


def test_role_on_one_cluster__watching_two__refuses_the_socket(
    watch: Watch, cluster: Cluster, make_user: Callable[..., User]
) -> None:
    Cluster.objects.create(name="Other", slug="other", bootstrap_servers="127.0.0.1:1")
    user = make_user("una", Role.VIEWER, cluster)

    assert watch("status:demo", "status:other", user=user).closed_with() == 4403
    assert watch("status:demo", user=user).until(lambda m: m.get("key") == "status:demo")


def test_too_many_keys_or_none__are_refused_as_a_bad_request(watch: Watch, cluster: Cluster, viewer: User) -> None:
    keys = [f"status:c{n}" for n in range(MAX_KEYS + 1)]

    assert watch(*keys, user=viewer).closed_with() == 4400
    assert watch(user=viewer).closed_with() == 4400


def test_role__taken_away_while_watching__closes_at_once(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_RECHECK_SECONDS = 3600
    socket = watch("status:demo", user=viewer)
    socket.shows("status-demo")

    ClusterRole.objects.get(user=viewer).delete()

    assert socket.closed_with(deadline=3) == 4403


def test_role__taken_away_before_the_socket_is_subscribed__closes_at_once(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LIVE_RECHECK_SECONDS = 3600

    def judge_and_take_away(session_key: str | None, keys: Iterable[str]) -> AccessVerdict:
        verdict = judge(session_key, keys)
        # As if its message were sent before anybody listens: an update sends none.
        ClusterRole.objects.filter(user=viewer).update(expires_at=timezone.now() - timedelta(seconds=1))
        return verdict

    monkeypatch.setattr(consumer, "judge", judge_and_take_away)

    assert watch("status:demo", user=viewer).closed_with(deadline=3) == 4403


def test_role__run_out_while_watching__closes_at_the_next_check(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_RECHECK_SECONDS = 0.1
    socket = watch("status:demo", user=viewer)
    socket.shows("status-demo")

    ClusterRole.objects.filter(user=viewer).update(expires_at=timezone.now() - timedelta(seconds=1))  # sends no signal

    assert socket.closed_with() == 4403


def test_account__closed_while_watching__closes_at_once(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_RECHECK_SECONDS = 3600
    socket = watch("status:demo", user=viewer)
    socket.shows("status-demo")

    set_active("cli", viewer, active=False)

    assert socket.closed_with(deadline=3) == 4401


def test_sign_out__in_this_browser__closes_its_socket_and_no_other(
    watch: Watch, cluster: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    here = client_of(viewer)
    mine = watch("status:demo", cookie=f"sessionid={here.cookies['sessionid'].value}")
    elsewhere = watch("status:demo", user=viewer)
    mine.shows("status-demo")
    elsewhere.shows("status-demo")

    here.logout()

    assert mine.closed_with(deadline=3) == 4401
    assert Session.objects.count() == 1
    set_row(cluster, "still here")
    publish_panels(cluster.pk, {"metadata"}, 1)
    assert elsewhere.shows("still here")


def test_role_of_somebody_else__taken_away__leaves_the_socket_open(
    watch: Watch, cluster: Cluster, viewer: User, operator: User
) -> None:
    mine, theirs = watch("status:demo", user=viewer), watch("status:demo", user=operator)
    mine.shows("status-demo")
    theirs.shows("status-demo")

    ClusterRole.objects.get(user=operator).delete()

    assert theirs.closed_with(deadline=3) == 4403
    assert mine.connection.close_code is None


def test_page_of_another_site__opening_a_socket__is_refused_before_anything_is_read(
    watch: Watch, cluster: Cluster, viewer: User
) -> None:
    for origin in ("http://evil.example", "null", None, "http://127.0.0.1:1", "https://127.0.0.1"):
        with pytest.raises(InvalidStatus) as refused:
            watch("status:demo", user=viewer, origin=origin)
        assert refused.value.response.status_code == 403, origin


@pytest.mark.parametrize(
    ("origin", "host", "ours"),
    [
        ("https://dash.example", "dash.example", True),
        ("https://dash.example", "dash.example:443", True),
        ("http://dash.example", "dash.example", True),
        ("http://dash.example:8000", "dash.example:8000", True),
        ("http://dash.example:8000", "dash.example:8001", False),
        ("https://dash.example", "other.example", False),
        ("https://other.example", "other.example", False),  # agrees with itself, but is no host of ours
        ("https://sub.dash.example", "dash.example", False),
        ("https://trusted.example", "dash.example", True),
        ("ftp://dash.example", "dash.example", False),
        ("https://dash.example:port", "dash.example", False),
        ("null", "dash.example", False),
        ("", "dash.example", False),
        ("https://dash.example", "", False),
        ("http://[::1]:8000", "[::1]:8000", True),
    ],
)
def test_origin__compared_with_host(origin: str, host: str, ours: bool, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["dash.example", "[::1]"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://trusted.example"]

    assert is_ours(origin, host) is ours


def answer_to(port: int, *parts: bytes) -> bytes:
    """What comes back until the server closes; empty where it only closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        answer = b""
        with suppress(ConnectionError):  # it does not wait for the rest
            for part in parts:
                connection.sendall(part)
            while read := connection.recv(65536):
                answer += read
        return answer


def head(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


def test_headers_of_megabytes__are_refused(port: int) -> None:
    request = head("GET", "/login/", "Connection: close", *[f"X-{n}: {'x' * 60_000}" for n in range(50)])

    assert b" 200 " not in answer_to(port, request)


def test_request__that_stays_half_open__is_closed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "HEAD_SECONDS", 0.2)

    assert answer_to(port) == b""
    assert answer_to(port, b"GET /login/ HTTP/1.1\r\nHost:") == b""


def test_second_request__that_stays_half_open__is_closed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "HEAD_SECONDS", 0.2)

    answer = answer_to(port, head("GET", "/livez") + b"GET /login/ HTTP/1.1\r\nHost:")

    assert answer.count(b"HTTP/1.1 ") == 1


def test_headers_by_the_thousands__are_refused(port: int) -> None:
    request = head("GET", "/login/", "Connection: close", *[f"X-{n}: 1" for n in range(5_000)])

    assert answer_to(port, request).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("how", ["Content-Length: 3000000", "Transfer-Encoding: chunked"])
def test_file__sent_without_a_session__is_not_taken(port: int, cluster: Cluster, how: str) -> None:
    chunk = b"x" * 1_000_000
    body = [chunk] * 3 if "Length" in how else [b"f4240\r\n" + chunk + b"\r\n"] * 3 + [b"0\r\n\r\n"]

    answer = answer_to(port, head("POST", "/clusters/demo/verify/", how, "Connection: close"), *body)

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_socket__with_an_address_of_45_kilobytes__is_answered(port: int) -> None:
    upgrade = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: " + "A" * 24,
    )

    assert answer_to(port, head("GET", "/live/?key=" + "x" * 45_000, *upgrade)).startswith(b"HTTP/1.1 400 ")


def test_socket__sending_more_than_a_page_would__is_closed(watch: Watch, cluster: Cluster, viewer: User) -> None:
    opened = watch("status:demo", user=viewer)

    opened.connection.send("x" * 5000)

    assert opened.closed_with() == 1009


def test_person__opening_more_sockets_than_pages__is_told_to_wait(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_SOCKETS_PER_USER = 2
    for _ in range(2):
        watch("status:demo", user=viewer).until(lambda _: True)

    assert watch("status:demo", user=viewer).closed_with() == 1013


def sign_in_wrongly(port: int) -> str | None:
    """Return the address that the audit names for a wrong password, sent with an address of the sender's own choice."""
    page = answer_to(port, head("GET", "/login/", "Connection: close"))
    token = page.partition(b'name="csrfmiddlewaretoken" value="')[2].partition(b'"')[0].decode()
    cookie = page.partition(b"csrftoken=")[2].partition(b";")[0].decode()
    form = f"csrfmiddlewaretoken={token}&login=vera&password=wrong".encode()
    headers = (
        f"Cookie: csrftoken={cookie}",
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(form)}",
        "X-Forwarded-For: 203.0.113.9",
        "Connection: close",
    )
    assert b"HTTP/1.1 200" in answer_to(port, head("POST", "/login/", *headers) + form)
    return AuditEvent.objects.get(action="user.sign_in_failed").address


def test_address__named_by_the_sender__is_not_believed(port: int) -> None:
    assert sign_in_wrongly(port) == "127.0.0.1"


def test_address__named_by_a_trusted_proxy__is_the_one_that_counts(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trusting = ProxyHeadersMiddleware(asgi.application.app, trusted_hosts=["127.0.0.0/8"])
    monkeypatch.setattr(asgi.application, "trusted_hosts", trusting.trusted_hosts)

    assert sign_in_wrongly(port) == "203.0.113.9"


def test_connections__are_limited_below_what_a_process_may_open() -> None:
    assert web.web_config().limit_concurrency == web.CONNECTIONS < 1024
