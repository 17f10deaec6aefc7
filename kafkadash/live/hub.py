"""One subscription of this process to the channel layer, shared by all its sockets.

Sockets never talk to Redis themselves: a process has one channel on the layer, joins a group per watched key, and
hands each frame to the sockets that watch it. So a thousand sockets cost one connection and one decoding, a socket can
be opened and served from the database while Redis is away, and only one task has to notice an outage.

The layer's connection comes back by itself but does not say that it was gone, nor what was missed meanwhile. The hub
therefore listens to redis-py making connections, and sends itself a numbered pulse through the layer every second. A
pulse that comes back proves that everything before it is subscribed: only then are sockets told to send the current
frames, so that nothing can be missed after them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import structlog
from channels import DEFAULT_CHANNEL_LAYER
from channels.layers import channel_layers
from channels_redis.pubsub import RedisPubSubChannelLayer
from cryptography.fernet import InvalidToken
from redis.exceptions import RedisError

from kafkadash.live.frames import CurrentFrames, Frame

log = structlog.get_logger(__name__)

# Everybody listens to this group: it says whose roles changed.
RIGHTS_GROUP = "live.rights"
PULSE_SECONDS = 1.0
LOST_AFTER_SECONDS = 5.0
CALL_DEADLINE_SECONDS = 3.0
RETRY_SECONDS = 0.5
RETRY_MAX_SECONDS = 3.0


class Subscriber(Protocol):
    """A socket, as the hub sees it. All three methods are called on its event loop and return at once."""

    user_id: int | None

    def offer(self, frame: Frame) -> None:
        """A frame of one of its keys arrived."""

    def resync(self) -> None:
        """Frames may have been missed: send the current ones."""

    def rights_changed(self, user_id: int | None) -> None:
        """The roles or the account of this user changed; of anybody, if None."""


def group_of(key: str) -> str:
    """The layer's group of a key: group names take no colon."""
    return "live.key." + key.replace(":", ".")


def hub_of_this_loop() -> Hub:
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = Hub()
    return hub


class Hub:
    """Use it on one event loop only. It runs while it has subscribers."""

    def __init__(self) -> None:
        self.frames = CurrentFrames()
        self._layer = _listening_layer(self._connection_made)
        self._watchers: dict[str, set[Subscriber]] = {}
        # Those who may have missed something, with the number of the pulse after which they can miss nothing more.
        self._unserved: dict[Subscriber, int | None] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._up = False
        self._foreign = False
        self._pulse_sent = 0
        self._pulse_back_at = 0.0

    def join(self, subscriber: Subscriber, keys: Iterable[str]) -> None:
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

    def leave(self, subscriber: Subscriber) -> None:
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
        """Those who wait and did not join while groups were being aligned are proven by this pulse."""
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
                    frame = Frame.unpacked(message)
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

    def _subscribers(self) -> set[Subscriber]:
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
_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()
