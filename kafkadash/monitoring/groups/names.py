"""Names of consumer groups in keys, URLs and history. Kafka takes any text; a URL and an index do not."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

_KEY = re.compile(r"~([0-9a-f]{32})")
_LONGEST = 500  # of the quoted name: an address has room for more, but nobody reads it


def key_of(name: str) -> str:
    """32 hex digits that stand for the name, whatever it is."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def slug_of(name: str) -> str:
    """The part of an address that names the group: the name itself where a browser keeps it as it is, else ``~key``.

    Slashes would be parts of the path, "." and ".." are resolved by browsers, control characters are dropped.
    """
    speaks = name not in ("", ".", "..") and "/" not in name and not name.startswith("~") and name.isprintable()
    return name if speaks and name == name.strip() and len(quote(name)) <= _LONGEST else f"~{key_of(name)}"


def key_of_slug(slug: str) -> str:
    """The key of the group that an address names. A typed name that has a better address is understood as well."""
    as_key = _KEY.fullmatch(slug)
    return as_key[1] if as_key else key_of(slug)


_LONGEST_STORED = 255


def stored_name(group: str) -> str:
    """The name itself, or ``~`` and its digest where it is too long for an index or PostgreSQL takes it in no text."""
    return group if len(group) <= _LONGEST_STORED and "\x00" not in group else f"~{key_of(group)}"


def label_group(name: str) -> str:
    """Return the name of a group where it can be read, stored and typed, else ``~`` and its digest."""
    return stored_name(slug_of(name))
