"""Response entities of kio's codec, in whichever version was agreed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from types import ModuleType
from typing import Any

from kio.index import load_payload_module
from kio.static.constants import EntityType


class Entities:
    """The entities of one response version: makes them from the values that this version has."""

    def __init__(self, api_key: int, version: int) -> None:
        self.version = version
        self._module: ModuleType = load_payload_module(api_key, version, EntityType.response)

    def new(self, entity: str, /, **values: object) -> Any:
        kind, known = _entity(self._module, entity)
        return kind(**{key: value for key, value in values.items() if key in known})


@cache
def _entity(module: ModuleType, name: str) -> tuple[Callable[..., Any], frozenset[str]]:
    kind = getattr(module, name)
    return kind, frozenset(field.name for field in fields(kind))
