"""Secrets for commands: from a file or from standard input, never from the command line, where everybody sees them."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path


class NoSecret(Exception):
    """``str()`` says why there is none and how to give it."""


def read_secret(source: str, what: str) -> str:
    """The content of a file, or of standard input for "-" (asked for without echo on a terminal).

    One newline at the end is not part of it. Raises NoSecret.
    """
    try:
        if source != "-":
            text = Path(source).read_text(encoding="utf-8")
        elif sys.stdin.isatty():
            text = getpass.getpass(f"{what}: ")
        else:
            text = sys.stdin.read()
    except (OSError, UnicodeDecodeError) as error:
        raise NoSecret(f"The {what} could not be read from {source}: {error}.") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        where = "standard input" if source == "-" else source
        raise NoSecret(f"There is no {what} in {where}.")
    return text
