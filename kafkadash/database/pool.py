"""A pool of connections that outlives its server: what is handed out was alive a moment ago, and nobody waits in vain.

psycopg_pool checks a connection before it hands it out, but pauses for one, two, four seconds after each dead one. A
server that was started anew leaves as many dead ones as the pool is large, so the first requests afterwards would fail
although it answers. Here dead ones are thrown away without a pause. And while the server is known to be away, who asks
waits only shortly, and who asks right after somebody waited in vain does not wait at all: a request that fails asks
several times, and a crowd of browsers would each keep a thread.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

RECONNECT_S = 5.0
"""The pool tries so long to replace a lost connection, in seconds; after that it tries again when somebody asks.

Its pauses double: with its own five minutes, a server that comes back after two would be noticed after four.
"""
KNOWN_AWAY_WAIT_S = 1.0
REFUSED_FOR_S = 1.0
"""Who asks within so many seconds of a vain wait is refused at once."""


class Pool(ConnectionPool[psycopg.Connection[Any]]):
    def __init__(self, **options: Any) -> None:
        self._away = False
        self._refused_until = 0.0
        # Not shorter than anybody waits: nobody would try any more while he does.
        lasting = max(RECONNECT_S, options.get("timeout", RECONNECT_S))
        super().__init__(**{"reconnect_timeout": lasting, **options})

    def getconn(self, timeout: float | None = None) -> psycopg.Connection[Any]:
        """A connection that has just answered. Raises PoolTimeout after ``timeout`` seconds, sooner where the server
        was away when somebody asked last.
        """
        usual = self.timeout if timeout is None else timeout
        began = time.monotonic()
        if self._away and began < self._refused_until:
            raise PoolTimeout("the database was away a moment ago")
        until = began + (min(usual, KNOWN_AWAY_WAIT_S) if self._away else usual)
        failed_before = self._failed()
        while True:
            try:
                connection = super().getconn(max(0.0, until - time.monotonic()))
            except PoolTimeout:
                # A pool that is only exhausted has no failed attempts to connect.
                self._away = self._away or self._failed() > failed_before
                self._refused_until = time.monotonic() + REFUSED_FOR_S
                raise
            try:
                self.check_connection(connection)
            except psycopg.Error:
                self.putconn(connection)  # closed as it is, it is replaced
            else:
                self._away = False
                return connection

    def _failed(self) -> int:
        """Attempts to connect that failed so far."""
        return self.get_stats().get("connections_errors", 0)
