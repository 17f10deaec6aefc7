"""Kinds of findings that a route may be limited to, registered by the room that judges."""

from __future__ import annotations

from collections.abc import Mapping

_KINDS: dict[str, str] = {}


def register_kinds(names: Mapping[str, str]) -> None:
    """Add kinds with their names, most urgent first."""
    _KINDS.update(names)


def known_kinds() -> Mapping[str, str]:
    return _KINDS
