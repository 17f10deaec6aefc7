"""Names and attributes that templates use, checked against the views' types: ``python -m tests.template_names``.

A name must come from a view, a context processor, an ``include … with`` or the template itself. Where its type is known
(a ``TypedDict`` of a view names it), each attribute must exist on that type. The views of a template are those of the
room of its folder, and of rooms whose templates include it.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import django

from tests.doors import list_imports

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kafkadash.settings")
ROOT = Path(__file__).resolve().parents[1]
EVERYWHERE = {
    # Django's own, of allauth's pages, what blocks and loops give, and ``of_kind``, which the kind of a change gives.
    "redirect_field", "of_kind",
    "request", "user", "csrf_token", "forloop", "block", "form", "messages", "field", "perms", "error", "errors",
    "True", "False", "None",
}  # fmt: skip
SEQUENCES = (list, tuple, set, frozenset)

Types = frozenset[Any]
UNKNOWN: Types = frozenset()


@dataclass(frozen=True, slots=True)
class Fault:
    template: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"templates/{self.template}: {self.name} {self.text}"


@dataclass
class RoomNames:
    """Names that the views of a room give: typed by TypedDicts, others by keys of dictionaries."""

    typed: dict[str, set[Any]] = field(default_factory=lambda: defaultdict(set))
    untyped: set[str] = field(default_factory=set)


@cache
def names_of_room(room: str) -> RoomNames:
    found = RoomNames()
    for path in sorted((ROOT / "kafkadash" / room).rglob("*.py")):
        if "migrations" in path.parts or "__main__" in path.name:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and is_typed_dict(node)]
        typed = {id(node) for name in classes for node in returned_dictionaries(tree, name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict) and id(node) not in typed:
                keys = (key.value for key in node.keys if isinstance(key, ast.Constant))
                found.untyped |= {key for key in keys if isinstance(key, str)}
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.ctx, ast.Store)
                and isinstance(node.slice, ast.Constant)
            ):
                found.untyped.add(str(node.slice.value))
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)) if classes else None
        for name in classes:
            for key, hint in get_type_hints(getattr(module, name)).items():
                found.typed[key] |= set(split_union(hint))
    return found


def is_typed_dict(node: ast.ClassDef) -> bool:
    return any("TypedDict" in ast.unparse(base) for base in node.bases)


def returned_dictionaries(tree: ast.AST, name: str) -> Iterator[ast.Dict]:
    """Dictionaries that functions return as the TypedDict of this name."""
    for function in ast.walk(tree):
        if (
            isinstance(function, ast.FunctionDef)
            and function.returns is not None
            and ast.unparse(function.returns) == name
        ):
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
                    yield node.value


def rooms_of_folder(folder: str) -> set[str]:
    """Return the room of a folder of templates, and rooms whose contexts its views pass on."""
    room = {"": "accounts", "account": "accounts"}.get(folder, folder)
    found = {room}
    for path in (ROOT / "kafkadash" / room).rglob("*.py"):
        for name in list_imports(path):
            other, *_, last = name.split(".")
            if re.search(r"context|_bar$|_part$", last):
                found.add(other)
    return found


def split_union(hint: Any) -> Iterator[Any]:
    """Types of a union without None; Any stands for a type that is not known."""
    if get_origin(hint) in (Union, types.UnionType):
        for part in get_args(hint):
            yield from split_union(part)
    elif hint is not type(None):
        yield hint


def known(hints: Any) -> Types:
    """Unknown where one of them is."""
    found = frozenset(hints)
    return UNKNOWN if any(hint is Any or isinstance(hint, str) for hint in found) else found


def item_types(hints: Types) -> Types:
    found = set()
    for hint in hints:
        origin: Any = get_origin(hint)
        arguments = get_args(hint)
        if (
            origin is None
            or not arguments
            or not (origin in SEQUENCES or origin.__module__ in ("collections.abc", "django.db.models.query"))
        ):
            return UNKNOWN
        if issubclass(origin, Mapping) or (origin is tuple and arguments[-1] is not ...):
            return UNKNOWN
        found |= set(split_union(arguments[0]))
    return known(found)


def attribute_types(owner: Any, name: str) -> Types | None:
    """Types of an attribute, None where the type has no such attribute."""
    if not isinstance(owner, type) or get_origin(owner) is not None or owner in (dict, str, int, float, bool, object):
        return UNKNOWN
    if is_typeddict(owner) or issubclass(owner, Mapping):
        return UNKNOWN
    if hasattr(owner, "_meta"):
        fields = {one.name for one in owner._meta.get_fields()} | {f"{one.name}_id" for one in owner._meta.get_fields()}
        return UNKNOWN if name in fields or hasattr(owner, name) else None
    hints = type_hints(owner)
    if name in hints:
        return known(split_union(hints[name]))
    member = getattr(owner, name, None)
    if member is None and not hasattr(owner, name):
        return None if is_dataclass(owner) else UNKNOWN
    function = member.fget if isinstance(member, property) else getattr(member, "func", member)
    try:
        returned = get_type_hints(function).get("return")
    except (NameError, TypeError):
        return UNKNOWN
    return UNKNOWN if returned is None else known(split_union(returned))


def type_hints(owner: type) -> Mapping[str, Any]:
    try:
        return get_type_hints(owner)
    except (NameError, TypeError):
        return {name: Any for one in owner.__mro__ for name in getattr(one, "__annotations__", {})}


class TemplateNames:
    """All templates of the project, and what each of them may use."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.checked = 0
        self._given: dict[str, set[str]] = defaultdict(set)  # by include … with, to a template
        self._rooms = {name: rooms_of_folder(name.rpartition("/")[0]) for name in self._templates}

    @cached_property
    def _templates(self) -> dict[str, Any]:
        from django.template.loader import get_template

        found = sorted(path.relative_to(ROOT / "templates") for path in (ROOT / "templates").rglob("*.html"))
        return {str(path): get_template(str(path)).template for path in found}  # type: ignore[attr-defined]

    def check(self) -> list[Fault]:
        for name, template in self._templates.items():
            self._collect_includes(name, template.nodelist)
        for _ in range(6):  # templates that include others hand on what they may use
            for name, template in self._templates.items():
                for included in self._included(template.nodelist):
                    self._rooms[included] |= self._rooms[name]
                    self._given[included] |= self._given[name] | bound_names(template.nodelist)
        for name, template in self._templates.items():
            self._visit(name, template.nodelist, {})
        return self.faults

    def _included(self, nodes: Any) -> Iterator[str]:
        from django.template.loader_tags import ExtendsNode, IncludeNode

        for node in every_node(nodes):
            if isinstance(node, IncludeNode | ExtendsNode):
                target = getattr(node, "template", None) or getattr(node, "parent_name", None)
                if target is not None and isinstance(target.var, str) and target.var in self._templates:
                    yield target.var

    def _collect_includes(self, name: str, nodes: Any) -> None:
        from django.template.loader_tags import IncludeNode

        for node in every_node(nodes):
            if isinstance(node, IncludeNode) and isinstance(node.template.var, str):
                self._given[node.template.var] |= set(node.extra_context)

    def _names(self, template: str) -> tuple[dict[str, set[Any]], set[str]]:
        typed: dict[str, set[Any]] = defaultdict(set)
        others = set(EVERYWHERE) | self._given[template] | processor_names()
        for room in self._rooms[template]:
            names = names_of_room(room)
            others |= names.untyped
            for key, hints in names.typed.items():
                typed[key] |= hints
        return typed, others

    def _visit(self, template: str, nodes: Any, scope: Mapping[str, Types]) -> None:
        from django.template.defaulttags import ForNode, WithNode

        bound = dict.fromkeys(bound_names(nodes), UNKNOWN) | dict(scope)
        for node in nodes:
            for expression in expressions_of(node):
                self._resolve(template, expression, bound)
            inner = dict(bound)
            if isinstance(node, ForNode):
                of = item_types(self._resolve(template, node.sequence, bound))
                inner |= {name: of if len(node.loopvars) == 1 else UNKNOWN for name in node.loopvars}
            if isinstance(node, WithNode):
                inner |= {name: self._resolve(template, value, bound) for name, value in node.extra_context.items()}
            for attribute in getattr(node, "child_nodelists", ()):
                children = getattr(node, attribute, None)
                if children is not None:
                    self._visit(template, children, inner)
            for _, children in getattr(node, "conditions_nodelists", ()):
                self._visit(template, children, inner)

    def _resolve(self, template: str, expression: Any, scope: Mapping[str, Types]) -> Types:
        """Types of a filter expression; UNKNOWN for a literal, or where a filter changes the value."""
        variable = getattr(expression, "var", expression)
        lookups = getattr(variable, "lookups", None)
        if not lookups:
            return UNKNOWN
        first, *rest = lookups
        typed, others = self._names(template)
        if first in scope:
            hints = scope[first]
        elif first in others:
            hints = UNKNOWN
        elif first in typed:
            hints = known(typed[first])
        else:
            self.faults.append(Fault(template, ".".join(lookups), "is given by no view"))
            return UNKNOWN
        for name in rest:
            if not hints:
                return UNKNOWN
            self.checked += 1
            each = [attribute_types(hint, name) for hint in hints]
            if all(one is None for one in each):
                self.faults.append(Fault(template, ".".join(lookups), f"has no {name}"))
                return UNKNOWN
            there = [one for one in each if one is not None]
            hints = UNKNOWN if UNKNOWN in there else frozenset().union(*there)
        return UNKNOWN if getattr(expression, "filters", ()) else hints


@cache
def processor_names() -> frozenset[str]:
    """Names that the context processors of the settings give to every page."""
    from django.conf import settings

    found: set[str] = set()
    for path in settings.TEMPLATES[0]["OPTIONS"]["context_processors"]:
        module = importlib.import_module(path.rpartition(".")[0])
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        keys = (key for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys)
        found |= {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    return frozenset(found)


def every_node(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        yield node
        for attribute in getattr(node, "child_nodelists", ()):
            yield from every_node(getattr(node, attribute, None) or ())
        for _, children in getattr(node, "conditions_nodelists", ()):
            yield from every_node(children)


def bound_names(nodes: Any) -> set[str]:
    """Names that tags of these nodes put into the context: ``as``, ``with``, loops."""
    found: set[str] = set()
    for node in every_node(nodes):
        found |= {
            name
            for name in (
                getattr(node, "target_var", None),
                getattr(node, "asvar", None),
                getattr(node, "variable_name", None),
            )
            if name
        }
        found |= set(getattr(node, "loopvars", ())) | set(getattr(node, "extra_context", ()) or ())
    return found


def expressions_in(value: Any) -> Iterator[Any]:
    from django.template.base import FilterExpression, Variable
    from django.template.smartif import TokenBase

    parts: Iterable[Any] = ()
    if isinstance(value, FilterExpression | Variable):
        yield value
        parts = [arg for _, args in getattr(value, "filters", ()) for is_variable, arg in args if is_variable]
    elif isinstance(value, TokenBase):
        parts = (value.first, value.second, getattr(value, "value", None))
    elif isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, Sequence) and not isinstance(value, str):
        parts = value
    for part in parts:
        yield from expressions_in(part)


def expressions_of(node: Any) -> Iterator[Any]:
    children = {*getattr(node, "child_nodelists", ()), "conditions_nodelists", "nodelist", "blocks"}
    for name, value in vars(node).items():
        if name not in children:
            yield from expressions_in(value)
    for condition, _ in getattr(node, "conditions_nodelists", ()):
        yield from expressions_in(condition)


def main() -> int:
    django.setup()
    faults = sorted({str(fault) for fault in TemplateNames().check()})
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
