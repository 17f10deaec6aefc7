"""Codes of the refusals and failures of this app, and the exceptions and form errors that carry them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management.base import CommandError
from django.http import Http404
from django.utils.functional import lazy

from kafkadash.core.errors import UserError
from kafkadash.core.messages import CodedMessage, message_text

_make_later = lazy(message_text, str)


class AccountErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Signing in, accounts and passwords
    SIGN_IN_WRONG = "sign-in-wrong"
    SIGN_IN_TOO_OFTEN = "sign-in-too-often"
    ACCOUNT_IS_CLOSED = "account-is-closed"
    SESSION_IDLE = "session-idle"
    PASSWORD_WRONG = "password-wrong"  # noqa: S105
    PASSWORD_REFUSED = "password-refused"  # noqa: S105
    PASSWORD_TOO_PLAIN = "password-too-plain"  # noqa: S105
    NO_PASSWORD = "no-password"  # noqa: S105
    ACCOUNT_NAME_REFUSED = "account-name-refused"
    ACCOUNT_NAME_TAKEN = "account-name-taken"

    # Pages that cannot be shown, requests that are not taken, and the database away
    REQUEST_MALFORMED = "request-malformed"
    NOT_INCLUDED = "not-included"
    FORM_TOO_OLD = "form-too-old"
    PAGE_MISSING = "page-missing"
    TOO_MANY_REQUESTS = "too-many-requests"
    PAGE_CRASHED = "page-crashed"
    DATABASE_AWAY = "database-away"
    DATABASE_AWAY_FORM = "database-away-form"
    DATABASE_AWAY_PART = "database-away-part"
    DATABASE_AWAY_ASKED = "database-away-asked"
    FORM_KEPT = "form-kept"
    FORM_NOT_KEPT = "form-not-kept"
    DATABASE_BACK = "database-back"
    WATCHES_TOO_MUCH = "watches-too-much"


class MissingObject(UserError, Http404):
    """Nothing is there under this name or number, or nothing that this person may know of."""


class ActionForbidden(UserError, PermissionDenied):
    """The user may see the object but may not do this with it."""


def lazy_text(code: StrEnum, /, **params: Any) -> str:
    """Return the message as a text that is made when it is shown, for what is set up before messages are registered."""
    made: str = _make_later(code, **params)
    return made


def form_error(said: StrEnum | CodedMessage, /, **params: Any) -> ValidationError:
    """Return what a field, or a form as a whole, is refused with."""
    message = UserError(said, **params).message
    return ValidationError(str(message), code=message.shown_code)


class CodedCommandError(CommandError):
    """A command ends with this message; its code stands behind the text, so that a person can search for it."""

    def __init__(self, message: CodedMessage, *, returncode: int) -> None:
        super().__init__(with_code(message), returncode=returncode)
        self.message = message


def command_error(said: StrEnum | CodedMessage, /, *, returncode: int = 1, **params: Any) -> CodedCommandError:
    """Return what a command ends with."""
    return CodedCommandError(UserError(said, **params).message, returncode=returncode)


def with_code(message: CodedMessage) -> str:
    """Return a message as commands print it."""
    return f"{message} ({message.shown_code})" if message.codes else str(message)
