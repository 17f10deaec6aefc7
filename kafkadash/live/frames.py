"""The messages a browser gets, as JSON texts, and how the current one of a key is made from the database."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Self

from channels.db import database_sync_to_async
from django.template.loader import render_to_string

from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.rows import one_moment
from kafkadash.live.panels import LivePanel, RunPanel, WatchedKeys, parse_watch_key

# Two threads render and ask for rights, so that a crowd of browsers cannot take all database connections of a process.
DATABASE_THREADS = 2

_INDENTATION = re.compile(r"\n\s+")
_ROOT_STATE = re.compile(r"<[a-z][^>]*?\sdata-state=\"([a-z]+)\"")


@dataclass(frozen=True, slots=True)
class LiveFrame:
    """Message about one key. ``text`` is the JSON text as the browser gets it.

    ``rendered_at`` (ISO, UTC, milliseconds) tells an older frame from a newer one, ``state`` is the ``data-state`` of
    the panel's root element; both are empty when there is none.
    """

    key: str
    text: str
    rendered_at: str = ""
    state: str = ""

    def packed(self) -> dict[str, str]:
        return asdict(self)

    @classmethod
    def unpacked(cls, message: dict[str, Any]) -> Self:
        return cls(message["key"], message["text"], message["rendered_at"], message["state"])


def panel_frame(panel: LivePanel, cluster: Cluster, now: datetime, seq: int) -> LiveFrame:
    """Render the panel as of ``now``. There is no request, so neither a user nor a CSRF token can get into it."""
    with one_moment():
        context = dict(panel.context(cluster, now))
        content = render_to_string(panel.template, context).strip()
    return _html_frame(panel.key(cluster.slug), panel.target(cluster.slug), content, context["sampled_at"], now, seq)


def run_frame(panel: RunPanel, number: int, now: datetime, seq: int) -> LiveFrame | None:
    """The parts of the page of this run as of ``now``, one after the other; None where there is no such run."""
    with one_moment():
        context = panel.context(number, now)
        if context is None:
            return None
        content = "".join(_strip_indentation(render_to_string(template, dict(context))) for template in panel.templates)
    return _html_frame(
        panel.key(number), panel.target(number), content, context["sampled_at"], now, seq, parts=len(panel.templates)
    )


def _html_frame(
    key: str, target: str, content: str, taken: datetime | None, now: datetime, seq: int, parts: int = 1
) -> LiveFrame:
    root = _ROOT_STATE.match(content)
    message = {
        "key": key,
        "seq": seq,
        "sampled_at": format_instant(taken) if taken is not None else None,
        "target": target,
        "swap": "outerMorph",
        **({"parts": parts} if parts > 1 else {}),
        "content": content,
    }
    return LiveFrame(key, json.dumps(message, ensure_ascii=False), format_instant(now), root.group(1) if root else "")


def _strip_indentation(html: str) -> str:
    """Without the indentation of the template: these parts are pushed every other second."""
    return _INDENTATION.sub("\n", html).strip()


def hint_frame(key: str, seq: int) -> LiveFrame:
    """Tells the browser to fetch again what it shows."""
    return LiveFrame(key, json.dumps({"key": key, "seq": seq, "hint": True}))


def heartbeat_text(now: datetime) -> str:
    return json.dumps({"heartbeat": format_instant(now)})


def format_instant(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds; texts of this form sort as the times do."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def current_frame(key: str) -> LiveFrame | None:
    """The frame of a key from the database as it is now; None for a hint and for what is not there."""
    what = parse_watch_key(key)
    return None if what is None else frame_of(what, seq=0)


def frame_of(what: WatchedKeys, seq: int) -> LiveFrame | None:
    """Return the key's frame as it is now; None for a hint, and for a cluster or a run that does not exist."""
    now = clock.now()
    if what.run is not None and what.change is not None:
        return run_frame(what.run, what.change, now, seq)
    cluster = Cluster.objects.filter(slug=what.slug).first() if what.panel is not None else None
    return None if what.panel is None or cluster is None else panel_frame(what.panel, cluster, now, seq)


class CurrentFrames:
    """Renders current frames in a thread; everybody who waits for the same key shares the next rendering.

    A rendering that has begun is never shared, so what is returned was read from the database after the call.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Task[LiveFrame | None]] = {}
        self._turn = asyncio.Semaphore(DATABASE_THREADS)

    async def get(self, key: str) -> LiveFrame | None:
        task = self._waiting.get(key)
        if task is None:
            task = self._waiting[key] = asyncio.create_task(self._render(key))
        return await asyncio.shield(task)

    async def _render(self, key: str) -> LiveFrame | None:
        async with self._turn:
            del self._waiting[key]
            frame: LiveFrame | None = await in_thread(current_frame)(key)
            return frame


def in_thread(function: Any) -> Any:
    """The function as a coroutine that runs in one of the process's few database threads."""
    return database_sync_to_async(function, thread_sensitive=False, executor=_executor)


_executor = ThreadPoolExecutor(DATABASE_THREADS, thread_name_prefix="live-database")
