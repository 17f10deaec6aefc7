"""Ports on loopback that a server can have, now and after a restart."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

from kafkadash.devtools.embedded.errors import ServerErrorCode
from kafkadash.devtools.embedded.process import ServerError

# Below the ranges that Linux (32768 up) and macOS (49152 up) use for outgoing connections: a port picked here is still
# free when the server that owns it is stopped and started again.
PORT_RANGE = range(20_000, 32_000)
LOOPBACK = "127.0.0.1"


def free_port(preferred: int | None = None, taken: Collection[int] = ()) -> int:
    """A loopback port nobody listens on: `preferred` if it is still free, else a random one not in `taken`."""
    if preferred is not None and preferred not in taken and port_is_free(preferred):
        return preferred
    for port in random.sample(PORT_RANGE, len(PORT_RANGE)):
        if port not in taken and port_is_free(port):
            return port
    raise ServerError(ServerErrorCode.NO_LOOPBACK_PORT, first=PORT_RANGE.start, last=PORT_RANGE.stop - 1)


def port_is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: connections in TIME_WAIT do not count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
