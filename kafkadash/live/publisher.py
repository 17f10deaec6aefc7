"""Publisher of frames to watching sockets: one thread with one event loop and one connection per process sends them.

``async_to_sync`` would open a new event loop and a new connection for every call, and would wait for Redis. Here the
caller renders and hands over; the latest frame of a key replaces an unsent one. While Redis is away, frames are dropped
and counted: sockets send the current ones from the database when Redis is back.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Collection, Iterable
from typing import Any

import structlog
from channels.layers import get_channel_layer
from django.conf import settings
from redis.exceptions import RedisError

from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.live.frames import frame_of, hint_frame, panel_frame
from kafkadash.live.hub import RIGHTS_GROUP, group_of, remember_hint, watched_by_nobody
from kafkadash.live.panels import LivePanel, WatchedKeys, panels_of, parse_watch_key
from kafkadash.monitoring.cluster_bar import read_hint

log = structlog.get_logger(__name__)

SEND_DEADLINE_SECONDS = 2.0


def publish_panels(cluster_id: int, kinds: Collection[str], seq: int) -> None:
    """Render the panels that a refresh of these kinds touches and somebody watches, hand them over, then the hints.

    Call it after commit. Rendering reads the database in the calling thread; sending does not hold it up, and Redis
    being away raises nothing. A panel that cannot be rendered is logged and leaves the others alone.
    """
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is not None:
        panels = {panel.key(cluster.slug): panel for panel in panels_of(kinds)}
        idle = watched_by_nobody(panels)
        for key, panel in panels.items():
            if key not in idle:
                _push_panel(panel, cluster, seq)
        for kind in kinds:
            _push_hint(read_hint(kind, cluster.slug), seq)


def publish_keys(keys: Iterable[str], seq: int = 0) -> None:
    """The rows behind these keys changed: push the panels among them, hint the others. Unknown keys are skipped.

    Call it after commit. Panels that nobody watches are not rendered.
    """
    known = {key: parse_watch_key(key) for key in keys}
    idle = watched_by_nobody([key for key, what in known.items() if what is not None and what.pushed])
    for key, what in known.items():
        if what is None:
            log.warning("live.unknown_key", key=key)
        elif not what.pushed:
            _push_hint(key, seq)
        elif key not in idle:
            _push_now(what, seq)


def publish_rights(user_id: int) -> None:
    """The roles, the account or the sessions of this user changed: all his sockets ask again at once."""
    _hand_over(RIGHTS_GROUP, {"type": "rights", "user_id": user_id}, about=str(user_id))


def count_dropped() -> int:
    """Messages that this process could not send since its sender started."""
    return _process.sender.dropped if _process.sender is not None else 0


def stop_publishing() -> None:
    """Send what waits and end the sender of this process, if there is one; the next publish starts another."""
    with _process.lock:
        sender, _process.sender = _process.sender, None
    if sender is not None and sender.pid == os.getpid():
        sender.stop()


class FrameSender:
    """The thread, its loop, and what waits to be sent."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.dropped = 0
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], dict[str, Any]] = {}
        self._something = asyncio.Event()
        self._stop = False
        self._away = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="live-publisher", daemon=True)
        self._thread.start()

    def hand_over(self, group: str, message: dict[str, Any], about: str = "") -> None:
        """Replace what waits for this group and, within it, is about the same thing; returns at once."""
        with self._lock:
            self._waiting[group, about] = message
        self._loop.call_soon_threadsafe(self._something.set)

    def stop(self) -> None:
        """Send what waits, within the deadline, and end the thread."""
        self._stop = True
        self._loop.call_soon_threadsafe(self._something.set)
        self._thread.join(2 * SEND_DEADLINE_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._send_all())
        finally:
            self._loop.close()

    async def _send_all(self) -> None:
        while not self._stop or self._waiting:
            await self._something.wait()
            self._something.clear()
            with self._lock:
                batch, self._waiting = self._waiting, {}
            messages = [(group, message) for (group, _), message in batch.items()]
            try:
                # A connection that lay idle may be dead without anybody knowing: that alone loses nothing.
                left = await self._send(messages, tries=1 if self._away else 2)
            except Exception as error:  # noqa: BLE001  whatever it was, the next batch is tried
                self._went_away(error)
                left = messages
            self.dropped += len(left)
        await self._forget_connection()

    async def _send(self, messages: list[tuple[str, dict[str, Any]]], tries: int) -> list[tuple[str, dict[str, Any]]]:
        """Send in order; return those that could not be sent."""
        left = list(messages)
        layer: Any = get_channel_layer()
        while left:
            try:
                async with asyncio.timeout(SEND_DEADLINE_SECONDS):
                    await layer.group_send(*left[0])
            except (RedisError, OSError) as error:
                await self._forget_connection()
                tries -= 1
                if tries == 0:
                    self._went_away(error)
                    return left
            else:
                left.pop(0)
                self._came_back()
        return left

    def _went_away(self, error: Exception) -> None:
        if not self._away:
            known = isinstance(error, RedisError | OSError)
            log.warning("live.publish_failed", error=str(error) or type(error).__name__, exc_info=not known)
        self._away = True

    def _came_back(self) -> None:
        if self._away:
            log.info("live.publish_resumed", dropped_so_far=self.dropped)
        self._away = False

    async def _forget_connection(self) -> None:
        """The next message makes a new connection, so a half-dead one cannot hold it up."""
        layer: Any = get_channel_layer()
        try:
            async with asyncio.timeout(SEND_DEADLINE_SECONDS):
                await layer.flush()
        except (RedisError, OSError) as error:
            log.debug("live.flush_failed", error=str(error))


def _push_panel(panel: LivePanel, cluster: Cluster, seq: int) -> None:
    try:
        frame = panel_frame(panel, cluster, clock.now(), seq)
    except Exception:
        log.exception("live.render_failed", panel=panel.name, cluster=cluster.slug)
        return
    _hand_over(group_of(frame.key), {"type": "frame", **frame.packed()})


def _push_now(what: WatchedKeys, seq: int) -> None:
    try:
        frame = frame_of(what, seq)
    except Exception:
        log.exception("live.render_failed", key=what.key)
        return
    if frame is not None:
        _hand_over(group_of(frame.key), {"type": "frame", **frame.packed()})


def _push_hint(key: str, seq: int) -> None:
    remember_hint(key)
    _hand_over(group_of(key), {"type": "frame", **hint_frame(key, seq).packed()})


def _hand_over(group: str, message: dict[str, Any], about: str = "") -> None:
    """To this process's sender; a forked child makes its own. Without Redis in the settings nobody can listen."""
    if not settings.REDIS_URL:
        return
    with _process.lock:
        if _process.sender is None or _process.sender.pid != os.getpid():
            _process.sender = FrameSender()
        sender = _process.sender
    sender.hand_over(group, message, about)


class _ProcessSender:
    """Sender of this process: at most one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sender: FrameSender | None = None


_process = _ProcessSender()
# A short command that gave somebody a role ends right after; its message should still leave.
atexit.register(stop_publishing)
