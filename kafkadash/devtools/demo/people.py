"""Users who can sign in to the demo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class DemoPerson:
    """`role` is the role on all clusters, None for the administrator of the whole installation."""

    role: str | None
    what: str


PEOPLE: Mapping[str, DemoPerson] = MappingProxyType(
    {
        "alice": DemoPerson("operator", "operator"),
        "bob": DemoPerson("approver", "approver"),
        "carol": DemoPerson("approver", "approver"),
        "admin": DemoPerson(None, "administrator"),
    }
)
