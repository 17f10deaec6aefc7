"""All entries, by subject, in the order in which they are written; and the page for people that is made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import ModuleType

from kafkadash.domain.refusals import (
    asked,
    checked,
    checks,
    commands,
    files,
    lookups,
    pages,
    placing,
    plan_requests,
    planning,
)
from kafkadash.domain.refusals.entry import Entry

SUBJECTS: tuple[ModuleType, ...] = (
    files,
    asked,
    plan_requests,
    planning,
    placing,
    checked,
    checks,
    lookups,
    pages,
    commands,
)

HEAD = """# Codes of refusals, failures and reasons

Made by `python -m tests.refusals.write_page`. A code stands beside its message on pages, behind it on the command line,
and in logs: search for it here. Names in ‹› are put in when the message is shown. Where: the module that uses the code.
"""


def entries(subject: ModuleType) -> Iterator[Entry]:
    return (value for value in vars(subject).values() if isinstance(value, Entry))


def catalogue() -> Mapping[str, Entry]:
    """By key. Raises ValueError where two entries have one key."""
    found: dict[str, Entry] = {}
    for subject in SUBJECTS:
        for entry in entries(subject):
            if entry.key in found:
                raise ValueError(f"two entries have the key {entry.key}")
            found[entry.key] = entry
    return found


def page() -> str:
    """Markdown, one section for each subject."""
    return "\n".join([*(_section(subject) for subject in SUBJECTS)])


def _section(subject: ModuleType) -> str:
    lines = [f"## {subject.__doc__}", "", "| | what is said | what to do next |", "|---|---|---|"]
    lines += [f"| `{e.key}` | {_shown(e.what) or '—'} | {_shown(e.then)} |" for e in entries(subject)]
    return "\n".join([*lines, ""])


def _shown(template: str) -> str:
    return re.sub(r"\{(\w+)[^}]*\}", r"<\1>", template).replace("|", r"\|").replace("<", "‹").replace(">", "›")
