"""Logging of every process: structlog and the standard library in one format, on standard error, without secrets.

A value is hidden if its key names a secret, if it stands in a text next to such a key (or in a URL, or is a private
key), or if this process has read the value as a secret (``remember_secrets``). The last rule catches a password inside
the exception message of a library.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Mapping
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

from kafkadash.core.messages import message_text
from kafkadash.core.setting_errors import SettingErrorCode

HIDDEN = "[hidden]"

# Shorter values would turn ordinary words of the log into holes.
SHORTEST_REMEMBERED = 6

# What libraries say at their own INFO or DEBUG is about them, not about kafkadash.
LIBRARY_LEVELS = {
    "asyncio": logging.WARNING,
    "celery": logging.INFO,
    "celery.app.trace": logging.WARNING,
    "celery.beat": logging.WARNING,
    "celery.worker.strategy": logging.WARNING,
    "channels_redis": logging.WARNING,
    "django": logging.INFO,
    "django.db.backends": logging.INFO,
    "django_structlog": logging.INFO,
    "httpcore": logging.WARNING,
    "httpx": logging.WARNING,
    "kafka": logging.WARNING,
    "kazoo": logging.WARNING,
    "kombu": logging.INFO,
    "psycopg.pool": logging.WARNING,
    "redis": logging.INFO,
    "uvicorn": logging.INFO,
    "uvicorn.access": logging.WARNING,
    "websockets": logging.INFO,
}

_SECRET_WORDS = r"password|passwd|passphrase|secret|token|sasl|key_pem|authorization|cookie|fernet|sessionid"  # noqa: S105
# Says which mechanism and who, not with what: a failed sign-in to Kafka cannot be understood without, and a changed
# one not be seen in the audit.
_NOT_SECRET = r"sasl[_.-]?(?:mechanisms?|username)"  # noqa: S105
_SECRET_KEY = re.compile(rf"(?!(?:{_NOT_SECRET})$).*(?:{_SECRET_WORDS})", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"([a-z][a-z0-9+.-]*://[^\s:/@]*):([^\s/@]*(?:@(?=[^\s/]*@)[^\s/@]*)*)@", re.IGNORECASE)
_ASSIGNMENT = re.compile(
    rf"""
    (?P<key> (?P<quote>["']?) \b (?!{_NOT_SECRET}\b) [\w.-]*(?:{_SECRET_WORDS})[\w.-]* (?P=quote) \s* (?:=>|[=:]) \s* )
    (?! \[hidden\] )  # once is enough
    (?: b? "(?:[^"\\]|\\.)*" | b? '(?:[^'\\]|\\.)*' | (?:(?:Bearer|Basic|Digest)\s+)? [^\s,;}})\]]+ )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)


def configure_logging(level: str, as_json: bool) -> None:
    """Send all logs of this process to standard error, as JSON lines or as readable ones; ``level`` is for our own.

    Raises ValueError for a level that logging does not know.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(message_text(SettingErrorCode.LEVEL_UNKNOWN, level=level))
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *before,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            hide_secrets,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.set_name("kafkadash")
    handler.setFormatter(log_formatter(as_json=as_json, before=before))
    root = logging.getLogger()
    for old in [h for h in root.handlers if h.get_name() == "kafkadash"]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(number)
    logging.captureWarnings(capture=True)
    for name, at_least in LIBRARY_LEVELS.items():
        logging.getLogger(name).setLevel(max(number, at_least))


def log_formatter(*, as_json: bool, before: list[Processor]) -> logging.Formatter:
    """Formats our records and those of libraries alike; ``before`` runs on the latter, as ours already went through."""
    render: Processor
    if as_json:
        render = structlog.processors.JSONRenderer(default=str)
    else:
        render = structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback, pad_event_to=0
        )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[_keep_exception_text, *before],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            hide_secrets,
            render,
        ],
        keep_exc_info=False,
        keep_stack_info=False,
    )


def _keep_exception_text(_logger: object, _method: str, event: EventDict) -> EventDict:
    """The traceback of a record whose filter has turned it into text already."""
    record = event["_record"]
    if record.exc_text and not record.exc_info:
        event["exception"] = record.exc_text
    return event


def hide_secrets(_logger: object, _method: str, event: EventDict) -> EventDict:
    """The structlog processor: hides secrets in keys, values and texts, however deep. Run it after exceptions are text.

    structlog's own keys begin with an underscore and carry records, not texts; they are left alone.
    """
    return {key: value if key.startswith("_") else _hide(key, value) for key, value in event.items()}


def remember_secrets(*values: str) -> None:
    """From now on these values are hidden in every text that this process logs; short ones are not remembered."""
    _remembered.add(values)


def without_secrets(text: str) -> str:
    """The text with passwords in URLs, values of secret-looking keys, private keys and remembered secrets hidden."""
    text = _remembered.hide(text)
    text = _PRIVATE_KEY.sub(HIDDEN, text)
    text = _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)
    return _ASSIGNMENT.sub(rf"\g<key>{HIDDEN}", text)


def hide_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy, however deep, in which secrets are hidden as in a log, and that JSON can carry."""
    return {key: _hide(key, value) for key, value in values.items()}


def _hide(key: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if _SECRET_KEY.match(key):
        return HIDDEN if value not in ("", b"") else value
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {without_secrets(str(k)): _hide(str(k), v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_hide("", item) for item in value]
    return without_secrets(repr(value))


class _KnownSecrets:
    """Secrets this process knows, as one pattern that is rebuilt when a new one comes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def add(self, values: tuple[str, ...]) -> None:
        new = {form for value in values for form in _forms(value)} - self._values
        if not new:
            return
        with self._lock:
            self._values |= new
            longest_first = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile("|".join(re.escape(value) for value in longest_first))

    def hide(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)


def _forms(value: str) -> set[str]:
    """How the value may stand in a log: as it is, as ``repr`` prints it, and line by line if it has several."""
    forms = {value, repr(value)[1:-1], repr(value.encode())[2:-1]}
    if "\n" in value:
        # A PEM file's first and last line are no secret, and hiding them everywhere would hide certificates' too.
        forms |= {line for line in value.splitlines() if not line.startswith("-----")}
    return {form for form in forms if len(form) >= SHORTEST_REMEMBERED}


_remembered = _KnownSecrets()
