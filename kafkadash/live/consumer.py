"""The WebSocket consumer: pushes the panels and hints that a page requests in its URL.

At most one frame per key and flush interval is sent, always the latest. Permissions are read from the database before
the first frame, again every ``LIVE_RECHECK_SECONDS``, and at once when roles or accounts change. ``SameOrigin`` refuses
WebSockets opened by other sites: browsers send cookies with them, and no CSRF token protects a socket.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

import structlog
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host

from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.accounts.models import User
from kafkadash.accounts.sessions import is_in_use
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.access import VIEW, is_allowed
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import message_text
from kafkadash.live.frames import LiveFrame, heartbeat_text, hint_frame, in_thread
from kafkadash.live.hub import hinted_lately, hub_of_this_loop
from kafkadash.live.panels import BOARD, MAX_KEYS, WatchedKeys, parse_watch_key

# Close codes of the application's own range; browsers do not come back after them by themselves.
NOT_SIGNED_IN = 4401
NOT_ALLOWED = 4403


@dataclass(frozen=True, slots=True)
class AccessVerdict:
    """``close_code`` is None when everything asked for may be watched; ``user_id`` is None when nobody is signed in."""

    close_code: int | None
    user_id: int | None = None


def judge(session_key: str | None, keys: Iterable[str]) -> AccessVerdict:
    """Ask for all keys together: one refused key refuses the socket, as the page that listed it would be refused."""
    user = user_of_session(session_key)
    if user is None:
        return AccessVerdict(NOT_SIGNED_IN)
    watched = [parse_watch_key(key) for key in keys]
    known = [what for what in watched if what is not None]
    if not known or len(known) < len(watched) or not _may_watch(user, known):
        # Rights were read after the session: an account that was closed in between has none, and is not signed in.
        closed = user_of_session(session_key) is None
        return AccessVerdict(NOT_SIGNED_IN if closed else NOT_ALLOWED, user.pk)
    return AccessVerdict(None, user.pk)


def user_of_session(session_key: str | None) -> User | None:
    """The session's user as a request would see it: session alive, password unchanged since, account active."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    return user if isinstance(user, User) and is_in_use(session_key) else None


def _may_watch(user: User, known: list[WatchedKeys]) -> bool:
    of_clusters = [what for what in known if what.slug]
    numbers = {what.change for what in known if what.change is not None}
    slugs_of_changes = dict(ChangeRequest.objects.filter(pk__in=numbers).values_list("pk", "cluster__slug"))
    if len(slugs_of_changes) < len(numbers):
        return False
    permissions = {(what.action, what.slug) for what in of_clusters} | {
        (VIEW, slug) for slug in slugs_of_changes.values()
    }
    clusters = {c.slug: c for c in Cluster.objects.filter(slug__in={slug for _, slug in permissions})}
    if any(slug not in clusters for _, slug in permissions):
        return False
    # A role on all clusters holds on each, so most people are settled with one question.
    everywhere = {action for action in {action for action, _ in permissions} if is_allowed(user, action, None)}
    return all(action in everywhere or is_allowed(user, action, clusters[slug]) for action, slug in permissions)


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
        self._latest: dict[str, LiveFrame] = {}
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
            await self._close(BAD_REQUEST, message_text(AccountErrorCode.WATCHES_TOO_MUCH, most=MAX_KEYS))
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

    def offer(self, frame: LiveFrame) -> None:
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
        hints = [key for key in self.keys if (what := parse_watch_key(key)) is not None and not what.pushed]
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

    def _hint_if_state_changed(self, frame: LiveFrame) -> None:
        """The board is ordered by state: when a cluster's state is not what this browser was told, it fetches anew."""
        before = self._states.get(frame.key)
        self._states[frame.key] = frame.state
        if before not in (None, frame.state) and frame.key.startswith("status:") and BOARD in self.keys:
            self._latest[BOARD] = hint_frame(BOARD, 0)

    async def _refused(self) -> bool:
        """Ask whether this session may still watch its keys; if not, close."""
        verdict: AccessVerdict = await in_thread(judge)(self.session_key, self.keys)
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


class SameOrigin:
    """Lets a socket through if its Origin names the host it was opened on, and that host is one of ours.

    Compares host and port, not the scheme: behind a proxy that ends TLS this process does not know it. Origins in
    ``CSRF_TRUSTED_ORIGINS`` are let through as for forms. Everybody else gets HTTP 403 before anything is read.
    """

    def __init__(self, application: Any) -> None:
        self._application = application
        self._refuse = WebsocketDenier.as_asgi()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"").decode("latin-1")
        host = headers.get(b"host", b"").decode("latin-1")
        application = self._application if is_ours(origin, host) else self._refuse
        await application(scope, receive, send)


def is_ours(origin: str, host: str) -> bool:
    """Return whether a page of this origin may open a socket on this host; both as in the request's headers."""
    name, _ = split_domain_port(host)
    if not name or not validate_host(name, settings.ALLOWED_HOSTS):
        return False
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    from_site = _split(origin)
    if from_site is None or from_site.scheme not in ("http", "https"):
        return False
    here = _split(f"{from_site.scheme}://{host}")
    return here is not None and _place(from_site) == _place(here)


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises for a port that is none
    except ValueError:
        return None
    return parts if parts.hostname else None


def _place(parts: SplitResult) -> tuple[str | None, int]:
    return parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
