"""``make check-wording``: no decision of the product depends on how a text is worded (docs/adr/0018).

Refused are comparisons, ``in``, ``startswith``, ``endswith`` and filters of the ORM, and conditions of templates, that
have a literal of two or more words, or a variable or field whose name says that it holds a text for people. What a
person searches for (``icontains``) may be looked up in such a field.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT_NAMES = frozenset({"reason", "error", "answer", "message", "text"})
QUERIES = frozenset({"filter", "exclude", "get", "Q", "When"})
BEGINNINGS = frozenset({"startswith", "endswith", "removeprefix", "removesuffix"})
_TEMPLATE_CONDITION = re.compile(r"{%\s*(?:el)?if\s(.*?)%}")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def main() -> int:
    found = [*_product_places(), *_template_places()]
    for place in found:
        print(f"{place}: this depends on wording; compare a code instead")  # noqa: T201
    return 1 if found else 0


def _product_places() -> Iterator[str]:
    for path in sorted((ROOT / "kafkadash").rglob("*.py")):
        for line in wording_lines(ast.parse(path.read_text(encoding="utf-8"))):
            yield f"{path.relative_to(ROOT)}:{line}"


def _template_places() -> Iterator[str]:
    for path in sorted((ROOT / "templates").rglob("*.html")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            conditions = " ".join(_TEMPLATE_CONDITION.findall(line))
            if any(" " in literal for literal in _QUOTED.findall(conditions)):
                yield f"{path.relative_to(ROOT)}:{number}"


def wording_lines(tree: ast.AST) -> list[int]:
    """Return the lines of a module where something depends on wording."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Compare | ast.Call) and _depends(node))
    return sorted({node.lineno for node in nodes})


def _depends(node: ast.Compare | ast.Call) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if all(isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops):
            return False
        return any(_is_prose(part) for side in sides for part in _parts(side)) or any(map(_holds_text, sides))
    if isinstance(node.func, ast.Attribute) and node.func.attr in BEGINNINGS:
        return _holds_text(node.func.value) or any(_is_prose(part) for arg in node.args for part in _parts(arg))
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in QUERIES and any(_filters_text(keyword) for keyword in node.keywords)


def _filters_text(keyword: ast.keyword) -> bool:
    field, _, lookup = (keyword.arg or "").partition("__")
    return _is_prose(keyword.value) or (field in TEXT_NAMES and lookup != "icontains")


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]


def _is_prose(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) > 1


def _holds_text(node: ast.expr) -> bool:
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) in TEXT_NAMES


if __name__ == "__main__":
    sys.exit(main())
