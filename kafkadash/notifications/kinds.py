"""Kinds of findings that a route may be limited to, registered by the room that judges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownKind:
    """Kind of findings: its name in lists, the state of its findings, and whether they are about kafkadash itself."""

    value: str
    name: str
    state: str
    own: bool = False


_KINDS: dict[str, KnownKind] = {}


def register_kinds(kinds: Iterable[KnownKind]) -> None:
    """Add kinds, most urgent first."""
    _KINDS.update({kind.value: kind for kind in kinds})


def known_kinds() -> Mapping[str, KnownKind]:
    return _KINDS
