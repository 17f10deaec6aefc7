"""Valkey from the wheel, really started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis
from asgiref.sync import async_to_sync
from channels_redis.pubsub import RedisPubSubChannelLayer
from kombu.connection import Connection

from kafkadash.devtools.embedded import valkey as module
from kafkadash.devtools.embedded.process import ServerError, recorded
from kafkadash.devtools.embedded.valkey import EmbeddedValkey


@pytest.fixture
def server(state_dir: Path) -> Iterator[EmbeddedValkey]:
    server = EmbeddedValkey(state_dir)
    yield server
    server.stop()


def ping(server: EmbeddedValkey) -> bool:
    with redis.Redis.from_url(server.url()) as client:
        return bool(client.ping())


def test_it_answers_on_a_socket_only_and_writes_nothing(server: EmbeddedValkey) -> None:
    child = server.start()
    assert ping(server)
    assert psutil.Process(child.pid).net_connections("inet") == []
    with redis.Redis.from_url(server.url()) as client:
        client.set("key", "value")
    server.stop()
    assert [path for path in server.state_dir.rglob("*") if path.suffix in (".rdb", ".aof")] == []
    assert recorded(server.state_dir) == []
    assert not server.socket.exists()


def test_celery_carries_messages_over_its_url(server: EmbeddedValkey) -> None:
    server.start()
    connect = Connection(server.celery_url())  # type: ignore[no-untyped-call]
    with connect as connection, connection.SimpleQueue("letters") as queue:
        queue.put({"hello": "world"})
        assert queue.get(block=True, timeout=10).payload == {"hello": "world"}


def test_the_channel_layer_carries_messages_over_its_url(server: EmbeddedValkey) -> None:
    server.start()

    async def send_and_receive() -> object:
        layer = RedisPubSubChannelLayer(hosts=[server.url()])
        channel = await layer.new_channel()
        await layer.group_add("all", channel)
        await layer.group_send("all", {"type": "hello"})
        message = await layer.receive(channel)
        await layer.flush()
        return message

    assert async_to_sync(send_and_receive)() == {"type": "hello"}


def test_it_comes_back_at_the_same_address(server: EmbeddedValkey) -> None:
    child = server.start()
    url = server.url()
    child.kill()
    with pytest.raises(redis.ConnectionError):
        ping(server)
    server.start()
    assert server.url() == url
    assert ping(server)


def test_a_state_folder_with_a_long_path_gets_a_short_socket_and_keeps_it(tmp_path: Path) -> None:
    server = EmbeddedValkey(tmp_path / ("long-" * 25))
    try:
        server.start()
        url, folder = server.url(), server.socket.parent
        assert not folder.is_relative_to(tmp_path)
        assert ping(server)
        server.stop()
        assert not folder.exists()
        server.start()
        assert server.url() == url
        assert ping(server)
    finally:
        server.stop()
    assert not folder.exists()


def test_a_platform_without_a_wheel_is_one_sentence_naming_the_way_out(
    server: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WHEEL", "no_such_wheel")
    with pytest.raises(ServerError, match="Set REDIS_URL"):
        server.start()
