"""Throttles of others that stand where ours should: what is there, and whether somebody decided that it stays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from kafkadash.domain.ledger import Place


def entity_of(row: Mapping[str, Any]) -> str:
    """The place of a row of ``Execution.foreign`` as an order names it."""
    return f"{row['resource']} {row['name']} {row['key']}"


class ForeignThrottles:
    """Those of one run, as in ``Execution.foreign``; an entity is a place as an order names it."""

    def __init__(self, rows: Collection[Mapping[str, Any]]) -> None:
        self._rows: dict[str, dict[str, Any]] = {entity_of(row): dict(row) for row in rows}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """As they are stored."""
        return list(self._rows.values())

    def value(self, entity: str) -> str | None:
        """What stands there, None where it is ours or nothing."""
        row = self._rows.get(entity)
        return None if row is None else row["value"]

    def stands(self, place: Place, theirs: str, ours: str, now: datetime) -> bool:
        """It was read that ``theirs`` stands there; returns whether that is news."""
        if self.value(str(place)) == theirs:
            return False
        self._rows[str(place)] = {
            "resource": place.resource,
            "name": place.name,
            "key": place.key,
            "value": theirs,
            "ours": ours,
            "at": now.isoformat(),
        }
        return True

    def leave(self, entity: str, user: str) -> None:
        """``user`` decided that it stays."""
        self._rows[entity] = {**self._rows[entity], "left": user}

    def drop(self, entity: str) -> None:
        """It is gone, or is not respected any more."""
        self._rows.pop(entity, None)
