"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``.

Also the forms that a refusal takes in Django: of a page, of a field, of a command.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management.base import CommandError
from django.http import Http404
from django.utils.functional import lazy

from kafkadash.domain.errors import UserError
from kafkadash.domain.messages import message_text

_make_later = lazy(message_text, str)


class AccountErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Signing in, accounts and passwords
    SIGN_IN_WRONG = "sign-in-wrong"
    SIGN_IN_TOO_OFTEN = "sign-in-too-often"
    ACCOUNT_IS_CLOSED = "account-is-closed"
    PASSWORD_WRONG = "password-wrong"  # noqa: S105
    PASSWORD_REFUSED = "password-refused"  # noqa: S105
    PASSWORD_TOO_PLAIN = "password-too-plain"  # noqa: S105
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


class MissingObject(UserError, Http404):
    """Nothing is there under this name or number, or nothing that this person may know of."""


class ActionForbidden(UserError, PermissionDenied):
    """This person may see the object and may not do this with it."""


def lazy_text(code: StrEnum, /, **params: Any) -> str:
    """Return the message as a text that is made when it is shown, for what is set up before messages are registered."""
    made: str = _make_later(code, **params)
    return made


def form_error(code: StrEnum, /, **params: Any) -> ValidationError:
    """Return what a field, or a form as a whole, is refused with."""
    return ValidationError(message_text(code, **params), code=code.value)


def command_error(code: StrEnum, /, *, returncode: int = 1, **params: Any) -> CommandError:
    """Return what a command ends with; its code stands behind the text, so that a person can search for it."""
    return CommandError(f"{message_text(code, **params)} ({code.value})", returncode=returncode)
