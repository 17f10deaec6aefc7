"""The web process, ``python -m kafkadash.web --host 0.0.0.0``: uvicorn, with limits for people not signed in.

The application limits bodies (``core.middleware``); the limits here apply before a request reaches the application.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

from kafkadash.core.middleware import HEAD_BYTES

# A page names up to 200 keys in the address of its socket; the library's own limit is 8 kB. Read at its import.
os.environ.setdefault("WEBSOCKETS_MAX_LINE_LENGTH", str(HEAD_BYTES))

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from websockets.http11 import MAX_NUM_HEADERS

HEAD_SECONDS = 15.0
"""Time for a request to arrive up to the end of its headers, from the connection or from the request's first byte."""
# Below the 1,024 files that many systems let a process open.
CONNECTIONS = 900
# Browsers only listen on sockets.
SOCKET_MESSAGE_BYTES = 4096
# Open sockets are told to go and then cut: browsers come back by themselves.
GRACE_SECONDS = 10


class BoundedHttp(H11Protocol):
    """HTTP/1.1 with a time limit on the head of a request, and an answer to a socket's address that is too long."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is h11.IDLE:
            self._time_head()
        else:
            self._stop_timer()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        size = len(event.target) + sum(len(name) + len(value) for name, value in event.headers)
        if size > HEAD_BYTES or len(event.headers) > MAX_NUM_HEADERS:
            self.send_400_response("The address or the headers of this socket are too long.")
            return
        super().handle_websocket_upgrade(event)

    def _time_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_overdue)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_overdue(self) -> None:
        self.transport.close()


def web_config(application: Any = "kafkadash.asgi:application", **options: Any) -> uvicorn.Config:
    """Return how uvicorn serves the application; ``options`` are those of uvicorn, such as host and port."""
    return uvicorn.Config(
        application,
        http=BoundedHttp,
        h11_max_incomplete_event_size=HEAD_BYTES,
        limit_concurrency=CONNECTIONS,
        ws_max_size=SOCKET_MESSAGE_BYTES,
        # The application itself asks TRUSTED_PROXIES; uvicorn would believe any process of this machine.
        proxy_headers=False,
        server_header=False,
        log_config=None,  # the settings configure logging, with redaction
        access_log=False,  # requests are logged by the product, with the secrets taken out
        lifespan="off",
        **{"timeout_graceful_shutdown": GRACE_SECONDS, **options},
    )


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m kafkadash.web")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--grace", type=int, default=GRACE_SECONDS, help="seconds for requests at the end")
    options = parser.parse_args(arguments)
    uvicorn.Server(web_config(host=options.host, port=options.port, timeout_graceful_shutdown=options.grace)).run()


if __name__ == "__main__":
    main(sys.argv[1:])
