"""The live keys of change requests: hints that pages watch to be told to fetch themselves again."""

from __future__ import annotations

from functools import partial

from django.db import transaction

from kafkadash.changes.models import ChangeRequest
from kafkadash.events import changed

CHANGE = "change"
"""Name of the hint of one change request; its key is ``change:42``."""
CHANGES = "changes"
"""The hint that some change request changed; it carries nothing, so everybody who is signed in may have it."""


def change_key(number: int) -> str:
    return f"{CHANGE}:{number}"


def tell(*numbers: int, listed: bool = True) -> None:
    """Once the present transaction is committed, pages that show these change requests fetch themselves.

    So do lists, unless what is new is nothing that they show (``listed``).
    """
    keys = frozenset({*map(change_key, numbers), *([CHANGES] if listed else [])})
    transaction.on_commit(partial(changed.send, sender=ChangeRequest, keys=keys))
