"""Tells an error that says "the database is away" from one that is a fault of ours."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
from django.db import InterfaceError, OperationalError

AWAY = ("57P01", "57P02", "57P03", "57P05", "53300")
"""PostgreSQL's codes (Appendix A): it is stopped, it crashed, it is starting up, it ended an idle session, it has no
connection free. Class 08 are lost connections. A connection that broke without a word has no code at all.
"""


def is_away(error: BaseException | None) -> bool:
    """Return whether an absent database caused the error. Deadlocks, time limits and full disks do not count."""
    return any(_says_so(one) for one in _walk_causes(error))


def _walk_causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and what it came of: a transaction that lost its connection ends in other errors."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _says_so(error: BaseException) -> bool:
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, OperationalError):
        return False
    code = error.__cause__.sqlstate if isinstance(error.__cause__, psycopg.Error) else None
    return code is None or code in AWAY or code.startswith("08")
