"""The database backend of the settings: Django's own for PostgreSQL, with the pool of ``pool``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql.base import DatabaseWrapper as PostgresWrapper

from kafkadash.database.pool import Pool


class DatabaseWrapper(PostgresWrapper):
    _connection_pools: dict[str, Any]
    _configure_connection: Callable[[Any], bool]

    @property
    def pool(self) -> Any:
        """Of this process and alias; Django's own property finds it made already."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias != NO_DB_ALIAS and options and self.alias not in self._connection_pools:
            parameters = {**self.get_connection_params(), "autocommit": True}
            made = Pool(kwargs=parameters, open=False, configure=self._configure_connection, **options)
            self._connection_pools.setdefault(self.alias, made)
        return super().pool
