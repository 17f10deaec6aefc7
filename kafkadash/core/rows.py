"""Database reads in one snapshot, reads of many rows without cyclic garbage collection, and bulk updates of rows."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connection, models, transaction


@contextmanager
def one_moment() -> Iterator[None]:
    """Rows that are read inside stand as at the first read, so that they add up.

    Without it a move that ends between two reads is listed as running and as completed, or as neither. Inside a
    transaction of somebody else nothing is changed: how it reads was decided when it began.
    """
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield


@contextmanager
def without_search_for_cycles() -> Iterator[None]:
    """Hundreds of thousands of lists are made here and none refers back; looking for cycles would take as long again.

    Switched off for the whole process and back on by whoever switched it off; two at once do no harm.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def update_rows(model: type[models.Model], rows: Mapping[int, Mapping[str, Any]]) -> int:
    """``rows``: primary key → {field: value}, the same fields for each; returns how many rows there were to update.

    Not an upsert: a row that somebody deleted meanwhile must not come back. And not Django's ``bulk_update``, whose
    statement grows with rows × fields and takes seconds for a few thousand.
    """
    if not rows:
        return 0
    names = list(next(iter(rows.values())))
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    columns = [_column(field, [values[field.name] for values in rows.values()]) for field in fields]
    own = ", ".join(f'"{field.column}" = v."{field.column}"{_cast(field)}' for field in fields)
    given = ", ".join(f'"{field.column}"' for field in fields)
    key = model._meta.pk.column
    arrays = ", ".join(f"%s::{_array_type(field)}[]" for field in fields)
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{model._meta.db_table}" t SET {own}'
            f" FROM unnest(%s::bigint[], {arrays}) AS v(pk_, {given}) WHERE t.{key} = v.pk_",
            [list(rows), *columns],
        )
        return int(cursor.rowcount)


def _column(field: Any, values: Sequence[Any]) -> list[Any]:
    if isinstance(field, models.JSONField):
        return [None if value is None else json.dumps(value, separators=(",", ":")) for value in values]
    return list(values)


def _array_type(field: Any) -> str:
    return "text" if isinstance(field, models.JSONField) else str(field.rel_db_type(connection))


def _cast(field: Any) -> str:
    return "::jsonb" if isinstance(field, models.JSONField) else ""
