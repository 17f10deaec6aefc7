"""The hub: one subscription of this process to the channel layer, shared by all its sockets.

Sockets never talk to Redis themselves: a process has one channel on the layer, joins a group per watched key, and hands
each frame to the sockets that watch the key. So a thousand sockets cost one connection and one decoding, a socket can
be opened and served from the database while Redis is away, and only one task has to notice an outage.

The layer reconnects by itself but reports neither the outage nor the messages missed meanwhile. The hub therefore
listens to redis-py making connections, and sends itself a numbered pulse through the layer every second. A pulse that
comes back proves that everything before it is subscribed: only then do sockets send the current frames, so that nothing
after those can be missed.

``watched_by_nobody`` names keys without watchers, whose panels are not rendered for a push. A socket that subscribes
after that check misses nothing: it is served from the database as soon as it is subscribed, and what is published was
committed before. A hint has no current frame, so a hint sent between the rendering of a page and the subscription of
its socket would be lost. Redis keeps each hint for ``HINT_KEPT``, and the socket gets those of its keys once it is
subscribed. While Redis cannot answer, every key counts as watched and as hinted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import redis
import structlog
from channels import DEFAULT_CHANNEL_LAYER
from channels.layers import channel_layers
from channels_redis.pubsub import RedisPubSubChannelLayer
from cryptography.fernet import InvalidToken
from django.conf import settings
from redis.exceptions import RedisError

from kafkadash.live.frames import CurrentFrames, LiveFrame

log = structlog.get_logger(__name__)

# Everybody listens to this group: it says whose roles changed.
RIGHTS_GROUP = "live.rights"
PULSE_SECONDS = 1.0
LOST_AFTER_SECONDS = 5.0
CALL_DEADLINE_SECONDS = 3.0
RETRY_SECONDS = 0.5
RETRY_MAX_SECONDS = 3.0


class HubSubscriber(Protocol):
    """A socket, as the hub sees it. All three methods are called on its event loop and return at once."""

    user_id: int | None

    def offer(self, frame: LiveFrame) -> None:
        """A frame of one of its keys arrived."""

    def resync(self) -> None:
        """Frames may have been missed: send the current ones."""

    def rights_changed(self, user_id: int | None) -> None:
        """The roles or the account of this user changed; of anybody, if None."""


def group_of(key: str) -> str:
    """The layer's group of a key: group names take no colon."""
    return "live.key." + key.replace(":", ".")


def hub_of_this_loop() -> LiveHub:
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = LiveHub()
    return hub


class LiveHub:
    """Use it on one event loop only. It runs while it has subscribers."""

    def __init__(self) -> None:
        self.frames = CurrentFrames()
        self._layer = _listening_layer(self._connection_made)
        self._watchers: dict[str, set[HubSubscriber]] = {}
        # Those who may have missed something, with the number of the pulse after which they can miss nothing more.
        self._unserved: dict[HubSubscriber, int | None] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._up = False
        self._foreign = False
        self._pulse_sent = 0
        self._pulse_back_at = 0.0

    def join(self, subscriber: HubSubscriber, keys: Iterable[str]) -> None:
        """Begin to hand over frames of these keys, and ask for a resync as soon as none can be missed any more."""
        for key in keys:
            self._watchers.setdefault(key, set()).add(subscriber)
        self._unserved[subscriber] = None
        self._changed.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="live-hub")
        elif not self._up:
            # Redis is away. What the database has can be shown now; there is another resync when it is back.
            subscriber.resync()

    def leave(self, subscriber: HubSubscriber) -> None:
        for key in [key for key, watchers in self._watchers.items() if subscriber in watchers]:
            self._watchers[key].discard(subscriber)
            if not self._watchers[key]:
                del self._watchers[key]
        self._unserved.pop(subscriber, None)
        self._changed.set()

    def sockets_of(self, user_id: int | None) -> int:
        return sum(subscriber.user_id == user_id for subscriber in self._subscribers())

    async def _run(self) -> None:
        failures = 0
        while self._watchers:
            try:
                await self._serve()
            except Exception as error:  # noqa: BLE001  whatever it was, the sockets need a hub
                # A connection that worked for a while starts the back-off anew.
                failures = 1 if self._up else failures + 1
                self._went_away(error, first=failures == 1)
                delay = min(RETRY_SECONDS * 2**failures, RETRY_MAX_SECONDS)
                await self._nobody_watches(delay * random.uniform(0.7, 1.0))
        self._up = False

    async def _serve(self) -> None:
        """Subscribe and keep groups in step with the watchers. Ends when nobody watches, raises when Redis is lost."""
        layer = self._layer
        channel = await _in_time(layer.new_channel("live."))
        reader = asyncio.create_task(self._read(channel), name="live-hub-reader")
        joined: frozenset[str] = frozenset()
        self._pulse_back_at = _now()
        try:
            while self._watchers:
                self._changed.clear()
                joined = await self._align_groups(channel, joined)
                await self._send_pulse(channel)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), PULSE_SECONDS)
                if reader.done():
                    reader.result()
                if _now() - self._pulse_back_at > LOST_AFTER_SECONDS:
                    raise TimeoutError(f"nothing came through for {LOST_AFTER_SECONDS:g} s")
        finally:
            # Forgets the channel first: a reader that is cancelled before would ask a dead server to unsubscribe.
            with contextlib.suppress(RedisError, OSError):
                await _in_time(layer.flush())
            reader.cancel()
            await asyncio.wait([reader])

    async def _align_groups(self, channel: str, joined: frozenset[str]) -> frozenset[str]:
        wanted = frozenset({RIGHTS_GROUP, *map(group_of, self._watchers)})
        for group in wanted - joined:
            await _in_time(self._layer.group_add(group, channel))
        for group in joined - wanted:
            await _in_time(self._layer.group_discard(group, channel))
        return wanted

    async def _send_pulse(self, channel: str) -> None:
        """Send a pulse. If no groups wait to be aligned, this pulse proves the subscribers that wait for one."""
        self._pulse_sent += 1
        if not self._changed.is_set():
            for subscriber, pulse in self._unserved.items():
                if pulse is None:
                    self._unserved[subscriber] = self._pulse_sent
        await _in_time(self._layer.send(channel, {"type": "pulse", "number": self._pulse_sent}))

    async def _read(self, channel: str) -> None:
        while True:
            try:
                message = await self._layer.receive(channel)
            except InvalidToken:
                self._foreign_message()
                continue
            match message["type"]:
                case "pulse":
                    self._pulse_came_back(message["number"])
                case "frame":
                    frame = LiveFrame.unpacked(message)
                    for subscriber in list(self._watchers.get(frame.key, ())):
                        subscriber.offer(frame)
                case "rights":
                    for subscriber in self._subscribers():
                        subscriber.rights_changed(message["user_id"])

    def _foreign_message(self) -> None:
        """Something that was not encrypted with our key; told once, as whoever sends one may send many."""
        if not self._foreign:
            log.error("live.foreign_message", doing="ignoring it and all that follow")
        self._foreign = True

    def _pulse_came_back(self, number: int) -> None:
        self._pulse_back_at = _now()
        if not self._up:
            self._up = True
            log.info("live.connected", watched=len(self._watchers))
        for subscriber, proven_by in list(self._unserved.items()):
            if proven_by is not None and proven_by <= number:
                del self._unserved[subscriber]
                subscriber.resync()

    async def _connection_made(self, connection: Any) -> None:
        """Called by redis-py for every new connection, before it subscribes again."""
        await connection.on_connect()
        if self._up:
            log.info("live.connection_renewed", watched=len(self._watchers))
        self._everybody_may_have_missed_something()
        self._changed.set()

    def _went_away(self, error: Exception, *, first: bool) -> None:
        if not isinstance(error, RedisError | OSError):
            log.error("live.hub_failed", exc_info=error)
        elif first:
            log.warning("live.redis_away", error=str(error), doing="serving from the database, trying again")
        self._up = False
        if first:
            for subscriber in list(self._unserved):
                subscriber.resync()
        self._everybody_may_have_missed_something()

    def _everybody_may_have_missed_something(self) -> None:
        self._unserved = dict.fromkeys(self._subscribers())

    def _subscribers(self) -> set[HubSubscriber]:
        return {subscriber for watchers in self._watchers.values() for subscriber in watchers}

    async def _nobody_watches(self, at_most: float) -> None:
        """Return when the last subscriber left, or after this many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most):
                while self._watchers:
                    self._changed.clear()
                    await self._changed.wait()


def _listening_layer(connection_made: Callable[[Any], Awaitable[None]]) -> RedisPubSubChannelLayer:
    """The channel layer of the settings, with redis-py telling of every connection it makes."""
    config = channel_layers.configs[DEFAULT_CHANNEL_LAYER]["CONFIG"]
    hosts = [{"address": address, "redis_connect_func": connection_made} for address in config["hosts"]]
    return RedisPubSubChannelLayer(**{**config, "hosts": hosts})


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _in_time(call: Any) -> Any:
    async with asyncio.timeout(CALL_DEADLINE_SECONDS):
        return await call


def _not_an_outage(record: logging.LogRecord) -> bool:
    """False for the layer's stack traces of a lost connection: the hub and the publisher say it once, in words."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, RedisError | OSError)


logging.getLogger("channels_redis.pubsub").addFilter(_not_an_outage)
_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, LiveHub] = WeakKeyDictionary()


# A worker waits no longer than that for the answer, and does not ask again for a while if there was none.
WAIT_S = 0.2
ASK_AGAIN_S = 5.0
# Longer than a page takes from its rendering until its socket is subscribed.
HINT_KEPT = timedelta(seconds=15)


class KeyWatchers:
    """Asks the Redis of the channel layer; one for each of its addresses, used by all threads."""

    def __init__(self, address: str, prefix: str) -> None:
        self._client = redis.Redis.from_url(address, socket_connect_timeout=WAIT_S, socket_timeout=WAIT_S)
        self._prefix = prefix
        self._silent_until = 0.0

    def nobody(self, keys: Collection[str]) -> frozenset[str]:
        """Return the keys that certainly have no watcher: one question for all of them (``PUBSUB NUMSUB``)."""
        channels = {f"{self._prefix}__group__{group_of(key)}".encode(): key for key in keys}
        counts = self._ask(lambda client: client.pubsub_numsub(*channels)) if keys else None
        return frozenset(channels[channel] for channel, count in counts or () if count == 0)

    def remember_hint(self, key: str) -> None:
        self._ask(lambda client: client.set(self._hint_name(key), 1, px=HINT_KEPT))

    def hinted(self, keys: Sequence[str]) -> frozenset[str]:
        """Return the keys that were hinted in the last ``HINT_KEPT``; all of them where Redis cannot say."""
        found = self._ask(lambda client: client.mget([self._hint_name(key) for key in keys]))
        if found is None:
            return frozenset(keys)
        return frozenset(key for key, kept in zip(keys, found, strict=True) if kept)

    def _hint_name(self, key: str) -> str:
        return f"{self._prefix}__hinted__{key}"

    def _ask(self, question: Callable[[redis.Redis], Any]) -> Any:
        """Return the answer, or None where there is none; then nobody asks for ``ASK_AGAIN_S``."""
        if time.monotonic() < self._silent_until:
            return None
        try:
            return question(self._client)
        except (redis.RedisError, OSError) as error:
            self._silent_until = time.monotonic() + ASK_AGAIN_S
            log.debug("live.watchers_unknown", error=str(error))
            return None


def watched_by_nobody(keys: Collection[str]) -> frozenset[str]:
    """Return the keys that certainly have no watcher now. Never raises for Redis, waits at most ``WAIT_S`` for it."""
    return _of_the_layer().nobody(keys) if settings.REDIS_URL else frozenset(keys)


def remember_hint(key: str) -> None:
    """Keep for ``HINT_KEPT`` that this key was hinted. Call it before the hint is sent. Never raises for Redis."""
    if settings.REDIS_URL:
        _of_the_layer().remember_hint(key)


def hinted_lately(keys: Sequence[str]) -> frozenset[str]:
    """Return the keys of which a socket that was just subscribed may have missed a hint. Waits at most ``WAIT_S``."""
    return _of_the_layer().hinted(keys) if keys and settings.REDIS_URL else frozenset()


def _of_the_layer() -> KeyWatchers:
    config = settings.CHANNEL_LAYERS["default"]["CONFIG"]
    return _watchers(config["hosts"][0], config["prefix"])


_watchers = cache(KeyWatchers)
