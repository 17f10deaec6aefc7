"""Which keys nobody watches, and which were hinted a moment ago, as the Redis of the channel layer knows it.

Panels that nobody watches are not rendered for a push. A socket that begins to watch after it was asked here misses
nothing: it is served from the database as soon as it is subscribed, and what is published was committed before. Where
Redis cannot say, everything counts as watched.

A hint has no current frame, so one that is sent between the rendering of a page and the subscription of its socket
would be lost. Redis keeps each for ``HINT_KEPT``, and the socket gets those of its keys once it is subscribed. Where
Redis cannot say, every key counts as hinted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

import redis
import structlog
from django.conf import settings

from kafkadash.live.hub import group_of

log = structlog.get_logger(__name__)

# A worker waits no longer than that for the answer, and does not ask again for a while if there was none.
WAIT_S = 0.2
ASK_AGAIN_S = 5.0
# Longer than a page takes from its rendering until its socket is subscribed.
HINT_KEPT = timedelta(seconds=15)


class Watchers:
    """Asks the Redis of the channel layer; one for each of its addresses, used by all threads."""

    def __init__(self, address: str, prefix: str) -> None:
        self._client = redis.Redis.from_url(address, socket_connect_timeout=WAIT_S, socket_timeout=WAIT_S)
        self._prefix = prefix
        self._silent_until = 0.0

    def nobody(self, keys: Collection[str]) -> frozenset[str]:
        """Those of the keys that certainly nobody watches: one question for all of them (``PUBSUB NUMSUB``)."""
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
    """Those of the keys that certainly nobody watches now. Never raises for Redis, waits at most ``WAIT_S`` for it."""
    return _of_the_layer().nobody(keys) if settings.REDIS_URL else frozenset(keys)


def remember_hint(key: str) -> None:
    """Keep for ``HINT_KEPT`` that this key was hinted. Call it before the hint is sent. Never raises for Redis."""
    if settings.REDIS_URL:
        _of_the_layer().remember_hint(key)


def hinted_lately(keys: Sequence[str]) -> frozenset[str]:
    """Return the keys of which a socket that was just subscribed may have missed a hint. Waits at most ``WAIT_S``."""
    return _of_the_layer().hinted(keys) if keys and settings.REDIS_URL else frozenset()


def _of_the_layer() -> Watchers:
    config = settings.CHANNEL_LAYERS["default"]["CONFIG"]
    return _watchers(config["hosts"][0], config["prefix"])


_watchers = cache(Watchers)
