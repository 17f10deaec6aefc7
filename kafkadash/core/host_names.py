"""Addresses of hosts, looked up until a deadline."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

SocketAddress = tuple[int, int, int, Any]
"""Family, type and protocol of a socket, and the address to connect it to."""


class HostUnresolved(Exception):
    """A host name has no address; ``detail`` is the resolver's own text."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def resolve_host(host: str, port: int, seconds: float) -> Sequence[SocketAddress]:
    """Return the addresses of a host, at least one. Raises HostUnresolved, and TimeoutError after ``seconds``.

    A look-up cannot be interrupted: the thread of one whose name server does not answer ends when the system gives up.
    """
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return _look_up(host, port)
    found: list[Sequence[SocketAddress] | HostUnresolved] = []

    def look_up() -> None:
        try:
            found.append(_look_up(host, port))
        except HostUnresolved as error:
            found.append(error)

    thread = threading.Thread(target=look_up, name=f"resolve-{host}", daemon=True)
    thread.start()
    thread.join(max(seconds, 0.0))
    if not found:
        raise TimeoutError
    if isinstance(found[0], HostUnresolved):
        raise found[0]
    return found[0]


def _look_up(host: str, port: int) -> Sequence[SocketAddress]:
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HostUnresolved(getattr(error, "strerror", None) or str(error)) from error
    return [(family, kind, protocol, address) for family, kind, protocol, _, address in rows]
