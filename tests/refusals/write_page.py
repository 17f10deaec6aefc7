"""Writes docs/refusals.md anew: ``python -m tests.refusals.write_page``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafkadash.domain.refusals import catalogue
from kafkadash.messages import MessageTemplate
from kafkadash.reassign.run.order_answers import ORDER_MESSAGES
from kafkadash.reassign.run.row_messages import ROW_MESSAGES
from kafkadash.reassign.run.run_messages import RUN_MESSAGES
from kafkadash.reassign.run.stuck_messages import STUCK_MESSAGES

DOC = Path(__file__).parents[2] / "docs/refusals.md"


def whole_page() -> str:
    """Return the page: the entries by subject, then reasons of runs and of rows, and answers to orders."""
    rows = message_section("Rows of a run: why one is in its state", ROW_MESSAGES)
    orders = message_section("Rows of a run: what came of what was asked", ORDER_MESSAGES)
    runs = message_section("A run as a whole: why it does not begin, does not go on, or failed", RUN_MESSAGES)
    stuck = message_section("Rows in flight: why one does not get on", STUCK_MESSAGES)
    return f"{catalogue.page()}\n{runs}\n{rows}\n{stuck}\n{orders}"


def message_section(title: str, messages: Mapping[Any, MessageTemplate]) -> str:
    rows = [
        f"| `{code}` | {_shown(message.many or message.text)} | {_shown(message.advice) or '—'} |"
        for code, message in messages.items()
    ]
    return "\n".join([f"## {title}", "", "| | what is said | what to do next |", "|---|---|---|", *rows, ""])


def _shown(template: str) -> str:
    return re.sub(r"\{(\w+)[^}]*\}", r"‹\1›", template).replace("|", r"\|")


if __name__ == "__main__":
    DOC.write_text(whole_page())
