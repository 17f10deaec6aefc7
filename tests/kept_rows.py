"""Rows that are made once for the tests of a module, each of which finds them as they were made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from django.db import transaction
from pytest_django import DjangoDbBlocker

Made = TypeVar("Made")


@contextmanager
def kept(blocker: DjangoDbBlocker, make: Callable[[], Made]) -> Iterator[Made]:
    """For fixtures of a wider scope: what ``make()`` returns, and what it wrote until the block ends.

    A test's own transaction lies within this one: what it writes is taken back at its end. Tests with real
    transactions cannot use it.
    """
    with ExitStack() as at_end:
        with blocker.unblock():
            at_end.enter_context(transaction.atomic())
            made = make()
        yield made
        with blocker.unblock():
            transaction.set_rollback(True)
            at_end.close()
