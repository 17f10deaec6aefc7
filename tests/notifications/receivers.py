"""Receiver of notifications on this machine, which answers as a test wants it to."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl


class Answering(Enum):
    """Receivers answer requests for which no answer is prepared in this way."""

    ACCEPT = auto()
    ERROR = auto()
    HANG = auto()
    RESET = auto()
    HOLD = auto()


@dataclass(frozen=True, slots=True)
class ReceivedTry:
    """``at``: monotonic seconds when it was answered or given up; ``accepted``: whether with status 200."""

    at: float
    document: Any
    accepted: bool


@dataclass
class LocalReceiver:
    """``requests``: headers and what arrived, JSON or a form. ``answers``: status and body of the next ones.

    Requests after these are answered as ``answering`` says.

    A request that hangs is read and not answered until ``released`` is set, for 30 s at most; one that is held is then
    accepted.
    """

    port: int
    scheme: str = "http"
    requests: list[tuple[dict[str, str], Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    answers: list[tuple[int, bytes, dict[str, str]]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    tries: list[ReceivedTry] = field(default_factory=list)
    answering: Answering = Answering.ACCEPT

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/hook"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for _, document in self.requests for event in document["events"]]


@contextmanager
def local_receiver(tls: ssl.SSLContext | None = None) -> Iterator[LocalReceiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            is_form = "form" in self.headers.get("content-type", "")
            document = dict(parse_qsl(body.decode())) if is_form else json.loads(body)
            receiver.bodies.append(body)
            receiver.requests.append(({name.lower(): value for name, value in self.headers.items()}, document))
            accepted = self._answer()
            receiver.tries.append(ReceivedTry(time.monotonic(), document, accepted))

        def _answer(self) -> bool:
            if receiver.answers:
                status, text, headers = receiver.answers.pop(0)
                if status == 0:
                    self.connection.close()
                    return False
            elif receiver.answering is Answering.HANG:
                receiver.released.wait(30)
                return False
            elif receiver.answering is Answering.RESET:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                return False
            else:
                if receiver.answering is Answering.HOLD:
                    receiver.released.wait(30)
                status, text, headers = 500 if receiver.answering is Answering.ERROR else 200, b"ok", {}
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return status == 200

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver = LocalReceiver(server.server_port, "https" if tls else "http")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
