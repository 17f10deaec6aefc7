"""The process that sends with Apprise, with a server of this machine in the place of every service.

The arguments are the port of that server and the name for which there is an address.
"""

from __future__ import annotations

import socket
import sys
from typing import Any
from unittest import mock

import httpcore

from kafkadash.notifications.apprise_process import answer_request

_resolve, _connect = socket.getaddrinfo, httpcore.SyncBackend.connect_tcp


def _resolve_service(host: str, *args: Any, **options: Any) -> Any:
    if host not in (sys.argv[2], "127.0.0.1"):
        raise socket.gaierror(socket.EAI_NONAME, "no such name")
    return _resolve("127.0.0.1", *args, **options)


def _connect_here(backend: httpcore.SyncBackend, host: str, _port: int, *args: Any, **options: Any) -> Any:
    return _connect(backend, host, int(sys.argv[1]), *args, **options)


if __name__ == "__main__":
    with (
        mock.patch.object(socket, "getaddrinfo", _resolve_service),
        mock.patch.object(httpcore.SyncBackend, "connect_tcp", _connect_here),
    ):
        answer_request()
