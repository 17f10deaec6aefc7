"""Receiver of notifications on this machine, which answers as a test wants it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class LocalReceiver:
    """``requests``: headers and JSON of what arrived. ``answers``: status and body of the next ones, then 200.

    ``hangs``: requests are read and not answered until it is set.
    """

    port: int
    requests: list[tuple[dict[str, str], Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    answers: list[tuple[int, bytes, dict[str, str]]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    hangs: bool = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for _, document in self.requests for event in document["events"]]


@contextmanager
def local_receiver() -> Iterator[LocalReceiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.bodies.append(body)
            receiver.requests.append(({name.lower(): value for name, value in self.headers.items()}, json.loads(body)))
            if receiver.hangs:
                receiver.released.wait(30)
                return
            status, text, headers = receiver.answers.pop(0) if receiver.answers else (200, b"ok", {})
            if status == 0:
                self.connection.close()
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = LocalReceiver(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
