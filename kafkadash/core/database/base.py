"""Database backend: Django's PostgreSQL backend with a connection pool that survives a restart of the server.

psycopg_pool checks a connection before it is handed out, but pauses 1, 2, 4 … seconds after each dead one. After a
restart there are as many dead connections as the pool is large, so the first requests would fail although the server
answers. ``CheckedPool`` discards dead connections without a pause. While the server is known to be away, a request
waits only ``KNOWN_AWAY_WAIT_S``, and right after a failed wait the next one fails at once: a failing request asks
several times, and many browsers would each occupy a thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

import psycopg
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql.base import DatabaseWrapper as PostgresWrapper
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap
from psycopg.types.datetime import TimestamptzLoader
from psycopg_pool import ConnectionPool, PoolTimeout

RECONNECT_S = 5.0
"""The pool tries so long to replace a lost connection, in seconds; after that it tries again when somebody asks.

Its pauses double: with its own five minutes, a server that comes back after two would be noticed after four.
"""
KNOWN_AWAY_WAIT_S = 1.0
REFUSED_FOR_S = 1.0
"""Seconds after a wait in vain in which further requests are refused at once."""


class CheckedPool(ConnectionPool[psycopg.Connection[Any]]):
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
            raise PoolTimeout("the database was unavailable a moment ago")
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


class UtcLoader(TimestamptzLoader):
    """Reads ``timestamptz`` of a connection in UTC, in a tenth of the time of Django's loader (``BaseTzLoader``)."""

    timezone = UTC
    """Django compares it with the timezone of the connection before each cursor."""

    def load(self, data: Buffer) -> datetime:
        try:
            return datetime.fromisoformat(str(data, "ascii"))
        except ValueError:
            return super().load(data)  # raises psycopg.DataError for what no datetime can hold


@cache
def read_moments_fast(adapters: AdaptersMap) -> AdaptersMap:
    """Return a copy of Django's adapters that loads ``timestamptz`` with ``UtcLoader``."""
    own = AdaptersMap(adapters)
    own.register_loader("timestamptz", UtcLoader)
    return own


class DatabaseWrapper(PostgresWrapper):
    _connection_pools: dict[str, Any]
    _configure_connection: Callable[[Any], bool]

    def get_connection_params(self) -> dict[str, Any]:
        parameters: dict[str, Any] = super().get_connection_params()
        if self.timezone == UTC:
            parameters["context"] = read_moments_fast(parameters["context"])
        return parameters

    @property
    def pool(self) -> Any:
        """Connection pool of this process and alias; Django's own property finds the pool made already."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias != NO_DB_ALIAS and options and self.alias not in self._connection_pools:
            parameters = {**self.get_connection_params(), "autocommit": True}
            made = CheckedPool(kwargs=parameters, open=False, configure=self._configure_connection, **options)
            self._connection_pools.setdefault(self.alias, made)
        return super().pool
