"""Reading a large cluster without looking for garbage in it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
