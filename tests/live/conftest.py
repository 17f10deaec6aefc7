"""A real server, real WebSocket clients and plain panels, for tests of what is pushed to whom and when."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import uvicorn
from channels.layers import channel_layers
from channels_redis.serializers import registry
from django.conf import settings as django_settings
from django.db import connection, connections
from django.test import Client
from playwright.sync_api import BrowserContext
from pytest_django import DjangoDbBlocker, Settings
from redis import Redis
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.devtools.embedded.valkey import EmbeddedValkey
from kafkadash.live import consumer, panels
from kafkadash.live.frames import LiveFrame
from kafkadash.live.hub import group_of
from kafkadash.live.panels import LivePanel
from kafkadash.live.publisher import stop_publishing
from kafkadash.web import web_config
from tests.live.chromium import chromium
from tests.waiting import wait_until

DEADLINE_SECONDS = 10.0
# What chromium and htmx say of a connection that is lost, and of a page that is no longer there.
EXPECTED_FAULTS = ("WebSocket", "htmx:ws:error", "Failed to load resource")


class Socket:
    """A WebSocket client that keeps what it got."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.messages: list[dict[str, Any]] = []

    def until(self, wanted: Callable[[dict[str, Any]], bool], deadline: float = DEADLINE_SECONDS) -> dict[str, Any]:
        """The next message for which ``wanted`` is true; fails when there is none in time."""
        end = time.monotonic() + deadline
        while (left := end - time.monotonic()) > 0:
            try:
                message: dict[str, Any] = json.loads(self.connection.recv(timeout=left))
            except TimeoutError:
                break
            self.messages.append(message)
            if wanted(message):
                return message
        raise AssertionError(f"nothing of the kind within {deadline:g} s; {self}")

    def shows(self, text: str, deadline: float = DEADLINE_SECONDS) -> dict[str, Any]:
        return self.until(lambda message: text in message.get("content", ""), deadline)

    def closed_with(self, deadline: float = DEADLINE_SECONDS) -> int | None:
        """Read to the end and return the close code; fails when it stays open."""
        end = time.monotonic() + deadline
        while True:
            try:
                self.messages.append(json.loads(self.connection.recv(timeout=max(0.0, end - time.monotonic()))))
            except ConnectionClosed as closed:
                return closed.rcvd.code if closed.rcvd else None
            except TimeoutError:
                raise AssertionError(f"still open after {deadline:g} s; {self}") from None

    def __str__(self) -> str:
        return "got " + ", ".join(f"{message!s:.120}" for message in self.messages)


class Server:
    """The product's ASGI application behind uvicorn, on a free port that stays the same over restarts."""

    def __init__(self) -> None:
        self.port = 0

    def start(self) -> None:
        from kafkadash.asgi import application

        self._listening = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listening.getsockname()[1]
        self._uvicorn = uvicorn.Server(web_config(application, timeout_graceful_shutdown=5))
        self._thread = threading.Thread(target=self._uvicorn.run, kwargs={"sockets": [self._listening]}, name="uvicorn")
        self._thread.start()
        wait_until(lambda: self._uvicorn.started, "the server started")

    def stop(self) -> None:
        self._uvicorn.should_exit = True
        self._thread.join(DEADLINE_SECONDS)
        self._listening.close()
        assert not self._thread.is_alive(), "the server did not end"


@pytest.fixture
def server(transactional_db: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Server]:
    """Ends before the database is emptied."""
    server = Server()
    with django_db_blocker.unblock():
        server.start()
        yield server
        server.stop()
        stop_publishing()
        wait_until(database_is_left_alone, "threads of the server gave their database connections back")


@pytest.fixture
def port(server: Server) -> int:
    return server.port


@pytest.fixture
def watch(port: int, client_of: Callable[[User], Client]) -> Iterator[Callable[..., Socket]]:
    """``watch("status:demo", user=vera)`` opens a socket as a browser does."""

    def open_socket(*keys: str, user: User | None = None, origin: str | None = "", **options: Any) -> Socket:
        cookie = f"sessionid={client_of(user).cookies['sessionid'].value}" if user is not None else ""
        opening = connect(
            f"ws://127.0.0.1:{port}/live/?{urlencode([('key', key) for key in keys])}",
            origin=f"http://127.0.0.1:{port}" if origin == "" else origin,  # type: ignore[arg-type]
            additional_headers={"Cookie": options.pop("cookie", cookie)},
            proxy=None,
            **options,
        )
        return Socket(opened.enter_context(opening))

    with ExitStack() as opened:
        yield open_socket


@pytest.fixture
def plain_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels that show a cluster's own row: ``kafka_id`` as their text, ``mode`` as their state."""
    replaced = {
        name: LivePanel(name, panel.kinds, "tests/plain.html", _row_of(name), panel.action)
        for name, panel in panels.PANELS.items()
    }
    monkeypatch.setattr(panels, "PANELS", replaced)


@pytest.fixture
def no_earlier_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets are told of no hint that was sent before they were subscribed, by this test's set-up or another test."""
    monkeypatch.setattr(consumer, "hinted_lately", lambda _: frozenset())


@pytest.fixture
def own_valkey(tmp_path: Path, settings: Settings) -> Iterator[EmbeddedValkey]:
    """A server of this test alone, to be stopped and started."""
    valkey = EmbeddedValkey(tmp_path)
    valkey.start()
    stop_publishing()
    layers = settings.CHANNEL_LAYERS["default"]
    config = {**layers["CONFIG"], "hosts": [valkey.url()], "prefix": "own"}
    settings.CHANNEL_LAYERS = {"default": {**layers, "CONFIG": config}}
    assert not channel_layers.backends
    yield valkey
    stop_publishing()
    valkey.stop()


@pytest.fixture
def chrome(
    server: Server, viewer: User, client_of: Callable[[User], Client], monkeypatch: pytest.MonkeyPatch
) -> Iterator[BrowserContext]:
    """Signed in as a viewer of all clusters. Fails the test for an error or a refusal by the CSP on the console."""
    session = client_of(viewer).cookies["sessionid"].value
    # Playwright's loop belongs to this thread but does not run while the test asks the database.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    faults: list[str] = []
    with chromium() as context:
        context.add_cookies([{"name": "sessionid", "value": session, "url": f"http://127.0.0.1:{server.port}"}])
        context.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        context.on("weberror", lambda e: faults.append(str(e.error)))
        yield context
        connections.close_all()  # of the test: beside a running loop Django keeps others than without one
    assert not [fault for fault in faults if not any(word in fault for word in EXPECTED_FAULTS)]


def publish_raw(key: str, content: str, *, secret_keys: Sequence[str] = ()) -> None:
    """Puts a frame into Redis without the product, as somebody would who reaches it."""
    target = f"#{key.replace(':', '-')}"
    text = json.dumps({"key": key, "target": target, "content": content})
    serializer = registry.get_serializer("msgpack", symmetric_encryption_keys=list(secret_keys))
    with Redis.from_url(django_settings.REDIS_URL) as redis:
        message = serializer.serialize({"type": "frame", **LiveFrame(key, text).packed()})
        assert redis.publish(f"kafkadash__group__{group_of(key)}", message) == 1, "nobody listens"


def set_row(cluster: Cluster, text: str, state: str = "kraft") -> None:
    """Change what the plain panels show, without any signal."""
    Cluster.objects.filter(pk=cluster.pk).update(kafka_id=text, mode=state)


def database_is_left_alone() -> bool:
    connection.close()
    pool = connection.pool  # type: ignore[attr-defined]  # of psycopg_pool
    return pool is None or pool.get_stats()["pool_available"] == pool.get_stats()["pool_size"]


def _row_of(name: str) -> Callable[[Cluster, datetime], Mapping[str, Any]]:
    def context(cluster: Cluster, now: datetime) -> Mapping[str, Any]:
        return {"name": name, "slug": cluster.slug, "state": cluster.mode, "text": cluster.kafka_id, "sampled_at": now}

    return context
