"""Refuses to migrate a database of a version before 0.1.0, whose migrations were made anew."""

from __future__ import annotations

from typing import Any

from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from kafkadash.accounts.errors import command_error
from kafkadash.ops.errors import OperationErrorCode

OLD_APPS = frozenset({"observe", "oncall", "reassign"})
"""Apps that had these names before 0.1.0 only."""


def refuse_old_database(*, using: str, **_: Any) -> None:
    """Receive ``pre_migrate``. Raises CodedCommandError before anything of such a database is changed."""
    applied = MigrationRecorder(connections[using]).applied_migrations()
    if any(app in OLD_APPS for app, _ in applied):
        raise command_error(OperationErrorCode.DATABASE_TOO_OLD)
