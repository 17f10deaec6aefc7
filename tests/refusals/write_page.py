"""Writes docs/errors.md anew: ``python -m tests.refusals.write_page``."""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

import django

DOC = Path(__file__).parents[2] / "docs/errors.md"
ROOT = Path(__file__).parents[2] / "kafkadash"
# Title → module of the codes, and module of their messages: packages that know no Django leave texts to an app.
CATALOGUES = {
    "Signing in, accounts, and pages that cannot be shown": ("accounts.errors", "accounts.messages"),
    "Clusters: their registration, settings and rights": ("clusters.errors", "clusters.messages"),
    "Kafka: connections, and what it answers": ("kafka.errors", "clusters.kafka_messages"),
    "Work in the background": ("jobs.errors", "jobs.messages"),
    "Reading clusters, lists, and the files of the history": ("observe.errors", "observe.messages"),
    "Changes: drafts, checks and people": ("changes.errors", "changes.messages"),
    "Changes: what is possible in which state": ("domain.workflow_errors", "changes.workflow_messages"),
    "Reassignments: forms, plans and runs": ("reassign.errors", "reassign.messages"),
    "Findings": ("oncall.errors", "oncall.messages"),
    "The demo, commands and the audit": ("ops.errors", "ops.messages"),
    "The pipeline": ("pipeline.errors", "pipeline.messages"),
    "Servers that run beside kafkadash": ("embedded.errors", "ops.server_messages"),
    "The playground": ("playground.errors", "ops.playground_messages"),
}


def whole_page() -> str:
    """Return the page: codes by app, then reasons of runs and of rows, and answers to orders."""
    from kafkadash.domain.refusals import catalogue
    from kafkadash.reassign.run.order_answers import ORDER_MESSAGES
    from kafkadash.reassign.run.row_messages import ROW_MESSAGES
    from kafkadash.reassign.run.run_messages import RUN_MESSAGES
    from kafkadash.reassign.run.stuck_messages import STUCK_MESSAGES

    places = places_of_codes()
    sections = [error_section(title, catalogue_messages(title), places) for title in CATALOGUES]
    sections += [
        message_section("A run as a whole: why it does not begin, does not go on, or failed", RUN_MESSAGES),
        message_section("Rows of a run: why one is in its state", ROW_MESSAGES),
        message_section("Rows in flight: why one does not get on", STUCK_MESSAGES),
        message_section("Rows of a run: what came of what was asked", ORDER_MESSAGES),
    ]
    return "\n".join([catalogue.HEAD, *sections, catalogue.page()])


def catalogue_messages(title: str) -> Mapping[StrEnum, Any]:
    """Return the messages of a catalogue's own codes."""
    module = import_module(f"kafkadash.{CATALOGUES[title][1]}")
    found: Mapping[StrEnum, Any] = next(value for name, value in vars(module).items() if name.endswith("_MESSAGES"))
    return found


def catalogue_codes(title: str) -> type[StrEnum]:
    module = import_module(f"kafkadash.{CATALOGUES[title][0]}")
    found: type[StrEnum] = next(value for name, value in vars(module).items() if name.endswith("ErrorCode"))
    return found


def places_of_codes() -> Mapping[str, set[str]]:
    """Return ``AccountErrorCode.NAME`` → the modules that use it, and value → the templates that show it."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    catalogues = {module.replace(".", "/") for modules in CATALOGUES.values() for module in modules}
    for path in ROOT.rglob("*.py"):
        if (name := path.relative_to(ROOT).with_suffix("").as_posix()) not in catalogues:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    places[f"{node.value.id}.{node.attr}"].add(name)
    templates = ROOT.parent / "templates"
    for path in templates.rglob("*.html"):
        for code in re.findall(r'{% (?:said|cause|then) "([a-z-]+)"', path.read_text(encoding="utf-8")):
            places[code].add(path.relative_to(templates).as_posix())
    return places


def error_section(title: str, messages: Mapping[StrEnum, Any], places: Mapping[str, set[str]]) -> str:
    rows = []
    for code, message in messages.items():
        where = places.get(f"{type(code).__name__}.{code.name}", set()) | places.get(code.value, set())
        rows.append((code, message, ", ".join(f"`{one}`" for one in sorted(where))))
    lines = [f"{_row(code, message)} {where} |" for code, message, where in rows]
    return "\n".join([f"## {title}", "", "| code | message | what to do | where |", "|---|---|---|---|", *lines, ""])


def message_section(title: str, messages: Mapping[Any, Any]) -> str:
    lines = [_row(code, message) for code, message in messages.items()]
    return "\n".join([f"## {title}", "", "| code | message | what to do |", "|---|---|---|", *lines, ""])


def _row(code: StrEnum, message: Any) -> str:
    return f"| `{code}` | {_shown(message.many or message.text) or '—'} | {_shown(message.advice) or '—'} |"


def _shown(template: str) -> str:
    return re.sub(r"\{(\w+)[^}]*\}", r"‹\1›", template).replace("|", r"\|")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kafkadash.settings")
    django.setup()
    DOC.write_text(whole_page(), encoding="utf-8")
