"""What was done by the clock, and of what: ``lake/done.json``, so that whoever is started next does not do it again."""

from __future__ import annotations

import json
from collections.abc import Iterable

from kafkadash.pipeline.lake import LAKE
from kafkadash.pipeline.store import Store

FILE = "done.json"
_NAME = f"{LAKE}/{FILE}"
_KEPT_HOURS = 24 * 12


class Done:
    """What was done of an hour since the epoch, by the name of the deed; a day is known by its first hour."""

    def __init__(self, store: Store) -> None:
        self._store = store
        content = store.read(_NAME)
        said = json.loads(content) if content else {}
        # Days were named otherwise once; such a one is done again, with the same name and nothing else to do.
        self._said: dict[str, list[str]] = {name: how for name, how in said.items() if _parts(name)[2].isdecimal()}

    def get(self, what: str, hour: int) -> list[str] | None:
        """None where it was not done."""
        return self._said.get(f"{what} {hour}")

    def newest(self, what: str) -> int | None:
        """The last hour of which it was done."""
        return max(self.hours(what), default=None)

    def hours(self, what: str) -> list[int]:
        return sorted(int(number) for each, _, number in map(_parts, self._said) if each == what)

    def versions(self, hours: Iterable[int]) -> list[str]:
        """Of what those hours were rolled up that were."""
        return ["/".join(self._said[f"hour {hour}"]) for hour in hours if f"hour {hour}" in self._said]

    def note(self, what: str, hour: int, how: Iterable[str]) -> None:
        """Raises OSError."""
        said = {**self._said, f"{what} {hour}": list(how)}
        newest = max(int(number) for _, _, number in map(_parts, said))
        self._said = {name: how for name, how in said.items() if newest - int(_parts(name)[2]) < _KEPT_HOURS}
        self._store.write(_NAME, json.dumps(self._said, indent=0).encode())


def _parts(name: str) -> tuple[str, str, str]:
    return name.partition(" ")
