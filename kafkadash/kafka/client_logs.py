"""Keeps kafka-python's log quiet, and free of secrets at every level.

The library logs raw request bytes and decoded SASL messages at DEBUG, which puts passwords into the log, and an ERROR
for every connection that fails, although each such failure is returned to the caller as an error or as data.
"""

from __future__ import annotations

import logging
import traceback

_ROOT = "kafka"
# What these report is returned by the wire to its caller; in the log it would only repeat itself at every refresh.
_REPEATERS = ("kafka.net.connection", "kafka.net.manager", "kafka.net.transport", "kafka.cluster")
_HIDDEN = "[hidden]"


class RedactingFilter(logging.Filter):
    """Rewrites a record so that neither SASL messages, nor wire bytes, nor a known secret remain in its text."""

    def __init__(self) -> None:
        super().__init__()
        self._spellings: tuple[str, ...] = ()

    def learn(self, secrets: tuple[str, ...]) -> None:
        """Remembers secrets for as long as the process lives: a discarded client may still log."""
        spellings = set(self._spellings)
        for secret in filter(None, secrets):
            spellings.update((secret, repr(secret)[1:-1], repr(secret.encode())[2:-1]))
        self._spellings = tuple(sorted(spellings, key=len, reverse=True))

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_shown(value) for value in record.args)
        record.msg, record.args = self._without_secrets(record.getMessage()), None
        if record.exc_info and record.exc_info[0]:
            text = "".join(traceback.format_exception(*record.exc_info)).rstrip()
            record.exc_text, record.exc_info = self._without_secrets(text), None
        return True

    def _without_secrets(self, text: str) -> str:
        for spelling in self._spellings:
            text = text.replace(spelling, _HIDDEN)
        return text


_FILTER = RedactingFilter()


def quiet_client_logs(*secrets: str) -> None:
    """Puts the library's loggers at WARNING or above and behind the redacting filter. Safe to call repeatedly.

    A filter of a parent logger does not see the records of its children, so every logger of the library gets it.
    Who needs the library's DEBUG output may lower the levels afterwards; the filter stays.
    """
    _FILTER.learn(secrets)
    for name in [_ROOT, *logging.root.manager.loggerDict]:
        if name == _ROOT or name.startswith(_ROOT + "."):
            logger = logging.getLogger(name)
            if _FILTER not in logger.filters:
                logger.addFilter(_FILTER)
                if name == _ROOT:
                    logger.setLevel(logging.WARNING)
                elif name in _REPEATERS:
                    logger.setLevel(logging.CRITICAL)


def _shown(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if "Sasl" in type(value).__name__:
        return f"<{type(value).__name__}>"
    return value
