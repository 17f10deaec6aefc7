"""The hints that facts of one kind were read from a cluster; pages with more rows than are pushed watch them."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.observe.models import Kind

# Name of the hint → kind, for all kinds.
READ_HINTS: Mapping[str, str] = {f"{kind.replace('_', '-')}-read": kind for kind in Kind.values}


def read_hint(kind: str, slug: str) -> str:
    """The key that a page of this cluster lists to be told to fetch itself again: ``metadata-read:demo``."""
    return f"{kind.replace('_', '-')}-read:{slug}"
