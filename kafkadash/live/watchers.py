"""Which keys nobody watches: their panels are not rendered for a push.

A socket that begins to watch after it was asked here misses nothing: it is served from the database as soon as it is
subscribed, and what is published was committed before. Where Redis cannot say, everything counts as watched.
"""

from __future__ import annotations

import time
from collections.abc import Collection
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


class Watchers:
    """Asks the Redis of the channel layer; one for each of its addresses, used by all threads."""

    def __init__(self, address: str, prefix: str) -> None:
        self._client = redis.Redis.from_url(address, socket_connect_timeout=WAIT_S, socket_timeout=WAIT_S)
        self._prefix = prefix
        self._silent_until = 0.0

    def nobody(self, keys: Collection[str]) -> frozenset[str]:
        """Those of the keys that certainly nobody watches: one question for all of them (``PUBSUB NUMSUB``)."""
        if not keys or time.monotonic() < self._silent_until:
            return frozenset()
        channels = {f"{self._prefix}__group__{group_of(key)}".encode(): key for key in keys}
        try:
            counts: Any = self._client.pubsub_numsub(*channels)
        except (redis.RedisError, OSError) as error:
            self._silent_until = time.monotonic() + ASK_AGAIN_S
            log.debug("live.watchers_unknown", error=str(error))
            return frozenset()
        return frozenset(channels[channel] for channel, count in counts if count == 0)


def watched_by_nobody(keys: Collection[str]) -> frozenset[str]:
    """Those of the keys that certainly nobody watches now. Never raises for Redis, waits at most ``WAIT_S`` for it."""
    if not settings.REDIS_URL:
        return frozenset(keys)
    config = settings.CHANNEL_LAYERS["default"]["CONFIG"]
    return _watchers(config["hosts"][0], config["prefix"]).nobody(keys)


_watchers = cache(Watchers)
