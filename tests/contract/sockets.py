"""Loopback listeners that misbehave at the level of TCP."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

LOOPBACK = "127.0.0.1"


@contextmanager
def closed_port() -> Iterator[str]:
    """An address that refuses: bound, so that nobody else takes it, and not listening."""
    with socket.socket() as holder:
        holder.bind((LOOPBACK, 0))
        yield _address(holder)


@contextmanager
def silent_port() -> Iterator[str]:
    """The kernel accepts connections, nobody reads them."""
    with socket.create_server((LOOPBACK, 0), backlog=512) as listener:
        yield _address(listener)


@contextmanager
def black_hole() -> Iterator[str]:
    """Connection attempts are neither accepted nor refused: the queue of the listener is full."""
    with ExitStack() as held, socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen(0)
        for _ in range(64):
            client = held.enter_context(socket.socket())
            client.settimeout(0.3)
            try:
                client.connect(listener.getsockname())
            except TimeoutError:
                break
        else:
            raise RuntimeError("this kernel accepts any number of connections to a full queue")
        yield _address(listener)


@contextmanager
def answering_port(reply: Callable[[bytes], bytes]) -> Iterator[str]:
    """After the first bytes of a client, ``reply(those bytes)`` is sent, and nothing after it."""
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server((LOOPBACK, 0)))
        listener.settimeout(0.1)
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                with suppress(TimeoutError):
                    client = held.enter_context(listener.accept()[0])
                    client.settimeout(5)
                    client.sendall(reply(client.recv(65536)))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield _address(listener)
        finally:
            ended.set()
            thread.join()


def _address(listener: socket.socket) -> str:
    return "{}:{}".format(*listener.getsockname())
