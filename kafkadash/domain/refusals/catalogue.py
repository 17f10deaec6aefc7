"""All entries, by subject, in the order in which they are written; and the page for people that is made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import ModuleType

from kafkadash.domain.refusals import (
    accounts,
    asked,
    checked,
    checks,
    collecting,
    commands,
    connection,
    demo,
    drafts,
    files,
    filters,
    forms,
    history,
    jobs,
    kafka,
    lookups,
    pages,
    pipeline,
    placing,
    plan_requests,
    planning,
    playground,
    rights,
    runs,
    segments,
    servers,
    settings,
    underway,
    workflow,
)
from kafkadash.domain.refusals.entry import Entry

SUBJECTS: tuple[ModuleType, ...] = (
    forms,
    files,
    asked,
    plan_requests,
    planning,
    placing,
    checked,
    drafts,
    checks,
    lookups,
    workflow,
    rights,
    runs,
    underway,
    jobs,
    history,
    settings,
    connection,
    kafka,
    collecting,
    segments,
    accounts,
    pages,
    filters,
    commands,
    pipeline,
    demo,
    servers,
    playground,
)

_HEAD = """# What kafkadash refuses, what fails, and what to do next

Made from `kafkadash/domain/refusals`; `tests/refusals` drives each of these and sees the sentence where people see it.
What stands in angle brackets is put in when it is said.
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
    return "\n".join([_HEAD, *(_section(subject) for subject in SUBJECTS)])


def _section(subject: ModuleType) -> str:
    lines = [f"## {subject.__doc__}", "", "| | what is said | what to do next |", "|---|---|---|"]
    lines += [f"| `{e.key}` | {_shown(e.what) or '—'} | {_shown(e.then)} |" for e in entries(subject)]
    return "\n".join([*lines, ""])


def _shown(template: str) -> str:
    return re.sub(r"\{(\w+)[^}]*\}", r"<\1>", template).replace("|", r"\|").replace("<", "‹").replace(">", "›")
