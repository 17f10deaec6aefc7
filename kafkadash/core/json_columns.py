"""Dataclasses as JSON holds them, for columns and for files between processes; cattrs does it by the types of fields.

Times are ISO 8601, sets are sorted lists, reasons and messages their code with parameters, mappings whose keys are
tuples are lists of pairs. JSON has no infinity: that is the text "inf".

Dataclasses of which thousands are stored at once may be ``stored_as_list``, a class variable: their fields in order,
without names, which takes a third of the time and of the space. Their floats are as Python's ``json`` writes them.
New fields go to the end, with a default, so that rows from before are still read; values of fields that are not known
here are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import cattrs
from cattrs import transform_error
from cattrs.errors import BaseValidationError

from kafkadash.core.messages import CodedMessage, CodedReason, pack_value, stored_reason

T = TypeVar("T")


class ContentMismatch(ValueError):
    """Stored content is not of the dataclass that was expected."""


def pack_dataclass(value: Any, *, format_number: int | None = None) -> dict[str, Any]:
    """Return all fields; ``format_number`` goes with them where content of another format must not be read."""
    packed: dict[str, Any] = _CONVERTER.unstructure(value)
    return packed if format_number is None else {"format": format_number, **packed}


def unpack_dataclass(kind: type[T], stored: Mapping[str, Any]) -> T:
    """Raises ContentMismatch where the content is not of that dataclass."""
    try:
        return _CONVERTER.structure(stored, kind)
    except BaseValidationError as error:
        raise ContentMismatch("; ".join(transform_error(error))) from error


def unpack_format(kind: type[T], stored: Mapping[str, Any], format_number: int) -> T | None:
    """Return None for content of another format, or that does not fit: then nothing is known of it."""
    if stored.get("format") != format_number:
        return None
    try:
        return unpack_dataclass(kind, stored)
    except ContentMismatch:
        return None


def _is_reason(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, CodedReason)


def _has_tuple_keys(kind: Any) -> bool:
    return get_origin(kind) in (dict, Mapping) and get_origin(get_args(kind)[0]) is tuple


def _has_set(kind: Any) -> bool:
    return get_origin(kind) in (set, frozenset)


def _is_positional(kind: Any) -> bool:
    return bool(getattr(kind, "stored_as_list", False))


def _nested_fields(kind: type) -> list[tuple[int, Any]]:
    """Places and types of the fields that JSON does not hold as they are."""
    hints = get_type_hints(kind)
    types = [hints[one.name] for one in fields(kind)]
    return [(place, hint) for place, hint in enumerate(types) if hint not in _PLAIN]


_PLAIN = (int, float, str, bool, int | None, float | None, list[int], list[int | None])


def _pack_list(converter: cattrs.Converter, kind: type) -> Callable[[Any], list[Any]]:
    values_of = attrgetter(*(one.name for one in fields(kind)))
    nested = [(place, converter.get_unstructure_hook(hint)) for place, hint in _nested_fields(kind)]

    def pack(value: Any) -> list[Any]:
        packed = list(values_of(value))
        for place, hook in nested:
            if packed[place] is not None:
                packed[place] = hook(packed[place])
        return packed

    return pack


def _unpack_list(converter: cattrs.Converter, kind: type) -> Callable[[Any, Any], Any]:
    nested = [(place, hint, converter.get_structure_hook(hint)) for place, hint in _nested_fields(kind)]
    count = len(fields(kind))
    needed = sum(one.default is MISSING and one.default_factory is MISSING for one in fields(kind))

    def unpack(stored: Any, _: Any) -> Any:
        values = list(stored)[:count]
        if len(values) < needed:
            raise ValueError(f"{len(values)} values for {count} fields of {kind.__name__}")
        for place, hint, hook in nested:
            if place < len(values) and values[place] is not None:
                values[place] = hook(values[place], hint)
        return kind(*values)

    return unpack


def _pack_float(value: float) -> float | str:
    return "inf" if value == math.inf else value


def _make_converter() -> cattrs.Converter:
    made = cattrs.Converter()
    made.register_unstructure_hook(float, _pack_float)
    made.register_unstructure_hook(datetime, datetime.isoformat)
    made.register_structure_hook(datetime, lambda stored, _: datetime.fromisoformat(stored))
    made.register_unstructure_hook(CodedMessage, CodedMessage.as_json)
    made.register_structure_hook(CodedMessage, lambda stored, _: CodedMessage.from_json(stored))
    made.register_unstructure_hook_func(_is_reason, pack_value)
    made.register_structure_hook_func(_is_reason, lambda stored, _: stored_reason(stored["code"], stored["params"]))
    made.register_unstructure_hook_func(_has_set, sorted)
    made.register_unstructure_hook_func(
        _has_tuple_keys, lambda found: [[made.unstructure(key), made.unstructure(each)] for key, each in found.items()]
    )

    def unpack_pairs(stored: Any, kind: Any) -> dict[Any, Any]:
        of_key, of_value = get_args(kind)
        return {made.structure(key, of_key): made.structure(each, of_value) for key, each in stored}

    made.register_structure_hook_func(_has_tuple_keys, unpack_pairs)
    made.register_unstructure_hook_factory(_is_positional, lambda kind: _pack_list(made, kind))
    made.register_structure_hook_factory(_is_positional, lambda kind: _unpack_list(made, kind))
    return made


_CONVERTER = _make_converter()
