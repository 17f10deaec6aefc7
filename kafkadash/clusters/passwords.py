"""Secrets for commands: from a file, the environment or standard input, never from the command line.

There everybody sees them.
"""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.core.errors import UserError

_ENVIRONMENT = "env:"


class NoSecret(UserError):
    """``str()`` says why there is none and how to give it."""


def read_secret(source: str, what: str) -> str:
    """The content of a file, of a variable for ``env:NAME``, or of standard input for "-" (without echo on a terminal).

    One newline at the end is not part of it. Raises NoSecret.
    """
    try:
        if source.startswith(_ENVIRONMENT):
            content = os.environ.get(source.removeprefix(_ENVIRONMENT), "")
        elif source != "-":
            content = Path(source).read_text(encoding="utf-8")
        elif sys.stdin.isatty():
            content = getpass.getpass(f"{what}: ")
        else:
            content = sys.stdin.read()
    except OSError as error:
        raise NoSecret(
            ClusterErrorCode.SECRET_NOT_READ, what=what, source=source, fault=_describe_error(error)
        ) from None
    except UnicodeDecodeError:
        raise NoSecret(ClusterErrorCode.SECRET_NOT_READ, what=what, source=source, fault="not UTF-8 text") from None
    content = content.removesuffix("\n").removesuffix("\r")
    if not content:
        where = "standard input" if source == "-" else source
        raise NoSecret(ClusterErrorCode.NO_SECRET_GIVEN, what=what, source=where)
    return content


def _describe_error(error: OSError) -> str:
    return (error.strerror or "cannot be opened").lower()
