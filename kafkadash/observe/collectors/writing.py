"""Updates of many rows in one statement, each with values of its own; rows that are gone stay gone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, models


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


def portioned(rows: Mapping[int, Mapping[str, Any]], at_once: int = 2000) -> list[Mapping[int, Mapping[str, Any]]]:
    """The same updates, in parts that a short transaction can write each."""
    keys = list(rows)
    return [{key: rows[key] for key in keys[start : start + at_once]} for start in range(0, len(keys), at_once)]


def _column(field: Any, values: Sequence[Any]) -> list[Any]:
    if isinstance(field, models.JSONField):
        return [None if value is None else json.dumps(value, separators=(",", ":")) for value in values]
    return list(values)


def _array_type(field: Any) -> str:
    return "text" if isinstance(field, models.JSONField) else str(field.rel_db_type(connection))


def _cast(field: Any) -> str:
    return "::jsonb" if isinstance(field, models.JSONField) else ""
