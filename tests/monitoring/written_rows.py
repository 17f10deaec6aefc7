"""Counting the rows that statements write, by table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

_WRITES = re.compile(r'\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?(\w+)"?', re.IGNORECASE)


@contextmanager
def written_rows() -> Iterator[Counter[str]]:
    """Table → rows inserted, updated or deleted over this thread's connection, a row counted as often as written."""
    rows: Counter[str] = Counter()

    def count(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        result = execute(sql, params, many, context)
        if found := _WRITES.match(sql):
            rows[found[1]] += context["cursor"].rowcount
        return result

    with connection.execute_wrapper(count):
        yield rows
