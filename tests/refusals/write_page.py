"""Writes docs/refusals.md anew: ``python -m tests.refusals.write_page``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafkadash.domain.refusals import catalogue
from kafkadash.messages import Message
from kafkadash.reassign.run.row_messages import ROW_MESSAGES

DOC = Path(__file__).parents[2] / "docs/refusals.md"


def whole_page() -> str:
    """Return the page: the entries by subject, and the reasons of rows."""
    return f"{catalogue.page()}\n{message_section('Rows of a run: why one is in its state', ROW_MESSAGES)}"


def message_section(title: str, messages: Mapping[Any, Message]) -> str:
    rows = [
        f"| `{code}` | {_shown(each.many or each.text)} | {_shown(each.advice)} |" for code, each in messages.items()
    ]
    return "\n".join([f"## {title}", "", "| | what is said | what to do next |", "|---|---|---|", *rows, ""])


def _shown(template: str) -> str:
    return re.sub(r"\{(\w+)[^}]*\}", r"‹\1›", template).replace("|", r"\|")


if __name__ == "__main__":
    DOC.write_text(whole_page())
