"""Modules that other rooms import must be named in ``PUBLIC_MODULES`` of their room: ``python -m tests.doors``."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "kafkadash"
OPEN_TO_ALL = {"core"}


def list_imports(path: Path) -> Iterator[str]:
    """Names that a file imports from the product, without the product's own name: ``kafka.api.OffsetQuery``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kafkadash."):
            yield from (f"{node.module}.{name.name}".partition(".")[2] for name in node.names)


def public_modules(room: Path) -> set[str]:
    for node in ast.parse((room / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PUBLIC_MODULES":
            return set(ast.literal_eval(node.value))
    return set()


def find_faults(root: Path = ROOT) -> list[str]:
    """Imports past a door, and modules that a door names though no other room imports them."""
    rooms = {path.name for path in root.iterdir() if (path / "__init__.py").exists()} - OPEN_TO_ALL
    doors = {room: public_modules(root / room) for room in rooms}
    used: dict[str, set[str]] = defaultdict(set)
    faults = []
    for path in sorted(root.rglob("*.py")):
        own = path.relative_to(root).parts[0]
        for name in list_imports(path):
            room, _, rest = name.partition(".")
            if room == own or room not in rooms:
                continue
            module = next((door for door in doors[room] if rest == door or rest.startswith(f"{door}.")), None)
            if module is None:
                faults.append(f"{path.relative_to(root)}: {name} is not in PUBLIC_MODULES of {room}")
            else:
                used[room].add(module)
    idle = [f"{room}: no other room imports {module}" for room in rooms for module in sorted(doors[room] - used[room])]
    return faults + sorted(idle)


def main() -> int:
    faults = find_faults()
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
