"""Names of topics that a regular expression does not match, as PostgreSQL matches.

Python's regular expressions cannot be interrupted, and nested repetitions can take practically for ever. PostgreSQL
matches most of them without going back, and ends a statement at its time limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
from django.db import DatabaseError, connection, transaction
from django.db.backends.utils import CursorWrapper

TIME_S = 2.0
_SET_TIME = "SELECT set_config('statement_timeout', %s, true)"
_UNMATCHED = (
    "SELECT name FROM unnest(%s::text[]) AS listed(name) WHERE name COLLATE \"C\" !~ ('^(?:' || %s::text || ')$')"
)


class PatternFault(Exception):
    """A pattern is no regular expression; ``str()`` says why."""


class PatternTimeout(Exception):
    """Matching took longer than ``TIME_S``."""


def find_unmatched(pattern: str, names: Sequence[str]) -> set[str]:
    """Return those of the names that a pattern does not match as a whole. Five statements with the savepoint's.

    Raises PatternFault and PatternTimeout.
    """
    with _limit_time() as cursor:
        cursor.execute(_UNMATCHED, [list(names), pattern])
        return {name for (name,) in cursor.fetchall()}


def check_pattern(pattern: str, names: Sequence[str]) -> None:
    """Match names in vain. Raises PatternFault, also for "a)|(b", and PatternTimeout."""
    with _limit_time() as cursor:
        cursor.execute("SELECT '' ~ %s", [pattern])
        cursor.execute(_UNMATCHED, [list(names), pattern])


@contextmanager
def _limit_time() -> Iterator[CursorWrapper]:
    """Open a transaction, or a savepoint, in which statements have a time limit."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout')")
            [before] = cursor.fetchone() or ("0",)
            cursor.execute(_SET_TIME, [f"{TIME_S:g}s"])
            yield cursor
            cursor.execute(_SET_TIME, [before])
    except DatabaseError as error:
        cause = error.__cause__
        if isinstance(cause, psycopg.errors.QueryCanceled):
            raise PatternTimeout from error
        if isinstance(cause, psycopg.errors.InvalidRegularExpression):
            raise PatternFault(cause.diag.message_primary or "") from error
        raise
