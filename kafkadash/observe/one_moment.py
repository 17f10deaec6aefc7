"""Reads of one page or panel that all see the same moment of the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def one_moment() -> Iterator[None]:
    """Whatever is read inside stands as it stood at the first read, so that it adds up.

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
