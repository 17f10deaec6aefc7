"""Names of groups as history stores them: Kafka takes any text, an index does not."""

from __future__ import annotations

from kafkadash.observe.group_names import key_of

_LONGEST = 255


def stored_name(group: str) -> str:
    """The name itself, or ``~`` and its digest where it is too long for an index or PostgreSQL takes it in no text."""
    return group if len(group) <= _LONGEST and "\x00" not in group else f"~{key_of(group)}"
