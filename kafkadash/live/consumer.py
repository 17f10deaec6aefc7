"""The one WebSocket consumer: pushes the panels and hints that a page asked for in its address.

At most one frame per key and flush interval leaves, always the latest. Rights are asked before the first frame, again
every ``LIVE_RECHECK_SECONDS``, and at once when roles or accounts change.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import structlog
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from kafkadash.domain.refusals.pages import WATCHES_TOO_MUCH
from kafkadash.live.frames import Frame, heartbeat_text, hint_frame, in_thread
from kafkadash.live.hub import hub_of_this_loop
from kafkadash.live.panels import BOARD, MAX_KEYS, watched
from kafkadash.live.rights import Verdict, judge
from kafkadash.live.watchers import hinted_lately

log = structlog.get_logger(__name__)

# Close codes of RFC 6455; browsers come back after both.
INTERNAL_ERROR = 1011
TRY_LATER = 1013
BAD_REQUEST = 4400


class LiveConsumer(AsyncWebsocketConsumer):
    # No such layer: this consumer gets no channel of its own, the hub shares one among all of a process.
    channel_layer_alias = "one subscription per process, see live.hub"

    async def connect(self) -> None:
        """Accept, then judge: a refusal before accepting would reach the browser without its code."""
        self.user_id: int | None = None
        self.session_key: str | None = self.scope["cookies"].get(settings.SESSION_COOKIE_NAME)
        self.keys: tuple[str, ...] = tuple(dict.fromkeys(_keys_of(self.scope["query_string"])))
        self._latest: dict[str, Frame] = {}
        self._newest: dict[str, str] = {}
        self._states: dict[str, str] = {}
        self._pushed: set[str] = set()
        self._caught_up = False
        self._something_to_send = asyncio.Event()
        self._rights_in_doubt = asyncio.Event()
        self._missed_something = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False
        self._hub = hub_of_this_loop()
        await self.accept()
        if not 0 < len(self.keys) <= MAX_KEYS:
            await self._close(BAD_REQUEST, WATCHES_TOO_MUCH(most=MAX_KEYS))
        else:
            await self._guarded(self._begin())

    async def disconnect(self, code: int) -> None:
        self._closing = True
        self._hub.leave(self)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _begin(self) -> None:
        if await self._refused():
            return
        if self._hub.sockets_of(self.user_id) >= settings.LIVE_SOCKETS_PER_USER:
            log.warning("live.too_many_sockets", user_id=self.user_id)
            await self._close(TRY_LATER)
            return
        for work in (self._send_frames(), self._send_heartbeats(), self._watch_rights(), self._catch_up()):
            self._tasks.append(asyncio.create_task(self._guarded(work)))
        self._hub.join(self, self.keys)

    # What the hub calls.

    def offer(self, frame: Frame) -> None:
        """Keep the latest frame of a key; one that was rendered before the last one came late and is dropped."""
        if frame.rendered_at and frame.rendered_at < self._newest.get(frame.key, ""):
            return
        self._newest[frame.key] = frame.rendered_at
        self._pushed.add(frame.key)
        self._latest[frame.key] = frame
        self._hint_if_state_changed(frame)
        self._something_to_send.set()

    def resync(self) -> None:
        """Ask for rights again as well: a change between the first question and the subscription was not heard of."""
        self._rights_in_doubt.set()
        self._missed_something.set()

    def rights_changed(self, user_id: int | None) -> None:
        if user_id is None or user_id == self.user_id:
            self._rights_in_doubt.set()

    # The four tasks of a socket.

    async def _send_frames(self) -> None:
        """Each key at once after an interval in which it was quiet, else its latest when that is over.

        One key does not wait for another: the panels of a page that change together are seen together.
        """
        clock = asyncio.get_running_loop().time
        free: dict[str, float] = {}  # from when on the key may be sent again
        while True:
            for key in [key for key in self._latest if free.get(key, 0.0) <= clock()]:
                if frame := self._latest.pop(key, None):
                    free[key] = clock() + settings.LIVE_FLUSH_SECONDS
                    await self._send(frame.text)
            free = {key: at for key, at in free.items() if at > clock()}
            waits = [max(0.0, free.get(key, 0.0) - clock()) for key in self._latest]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(waits, default=None)):
                    await self._something_to_send.wait()
            self._something_to_send.clear()

    async def _send_heartbeats(self) -> None:
        while True:
            await self._send(heartbeat_text(datetime.now(UTC)))
            await asyncio.sleep(settings.LIVE_HEARTBEAT_SECONDS)

    async def _watch_rights(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._rights_in_doubt.wait(), settings.LIVE_RECHECK_SECONDS)
            self._rights_in_doubt.clear()
            if await self._refused():
                return

    async def _catch_up(self) -> None:
        """After joining and after an outage: the current frame of each key, unless a newer one was pushed meanwhile.

        A hint that may have been missed is made up for by another: after joining, of a key that was hinted since the
        page can have been rendered; after an outage, of each.
        """
        hints = [key for key in self.keys if (what := watched(key)) is not None and not what.pushed]
        while True:
            await self._missed_something.wait()
            self._missed_something.clear()
            self._pushed.clear()
            for frame in await asyncio.gather(*map(self._hub.frames.get, self.keys)):
                if frame is not None and frame.key not in self._pushed:
                    self.offer(frame)
            missed = hints if self._caught_up or not hints else await in_thread(hinted_lately)(hints)
            for key in missed:
                self.offer(hint_frame(key, 0))
            self._caught_up = True

    # Small steps.

    def _hint_if_state_changed(self, frame: Frame) -> None:
        """The board is ordered by state: when a cluster's state is not what this browser was told, it fetches anew."""
        before = self._states.get(frame.key)
        self._states[frame.key] = frame.state
        if before not in (None, frame.state) and frame.key.startswith("status:") and BOARD in self.keys:
            self._latest[BOARD] = hint_frame(BOARD, 0)

    async def _refused(self) -> bool:
        """Ask whether this session may still watch its keys; if not, close."""
        verdict: Verdict = await in_thread(judge)(self.session_key, self.keys)
        self.user_id = verdict.user_id
        if verdict.close_code is None:
            return False
        await self._close(verdict.close_code)
        return True

    async def _send(self, text: str) -> None:
        """Send within the time limit, or give this browser up: it comes back and gets the current frames."""
        if self._closing:
            return
        try:
            async with asyncio.timeout(settings.LIVE_SEND_TIMEOUT):
                await self.send(text_data=text)
        except TimeoutError:
            log.info("live.too_slow", user_id=self.user_id, keys=len(self.keys))
            await self._close(TRY_LATER)
        except OSError:
            self._closing = True  # the browser is gone, its disconnect is on the way

    async def _close(self, code: int, reason: str = "") -> None:
        """Close once. A browser that does not read learns the code when it reads again; until then nothing is kept."""
        if self._closing:
            return
        self._closing = True
        self._hub.leave(self)
        self._latest.clear()
        with contextlib.suppress(OSError):  # gone already
            await self.close(code, reason)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """A socket whose work fails (database away, say) is closed, so that the browser comes back later."""
        try:
            await work
        except Exception as error:
            log.warning("live.socket_failed", user_id=self.user_id, keys=self.keys, exc_info=error)
            await self._close(INTERNAL_ERROR)


def _keys_of(query_string: bytes) -> list[str]:
    """The keys in the address, at most one more than is allowed."""
    return parse_qs(query_string.decode("latin-1")).get("key", [])[: MAX_KEYS + 1]
