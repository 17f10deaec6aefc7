"""All changes to accounts, and ``record``, which writes audit events.

Each change and its audit event share one transaction. Call ``record`` inside the transaction of the recorded change.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, cast

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.http import HttpRequest

from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.accounts.models import AuditEvent, User
from kafkadash.core.errors import UserError
from kafkadash.core.logs import hide_values, without_secrets
from kafkadash.core.messages import CodedMessage, message_columns

# One event must stay readable; what is longer belongs elsewhere, with a digest here.
LONGEST_REASON = 2_000
COMMAND_LINE = "command line"
"""Actor of changes that a command of ``manage.py`` made."""


def record(
    actor: User | str,
    action: str,
    obj: models.Model | tuple[str, str],
    *,
    cluster: str = "",
    reason: CodedMessage | str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    request: HttpRequest | None = None,
) -> AuditEvent:
    """Store an audit event.

    ``actor`` is a user, or the name of the part of kafkadash that acted ("jobs", "command line"). ``action`` is
    "entity.verb". ``obj`` is a saved row, or (type, id). ``cluster`` is a slug. ``before`` and ``after`` hold only what
    changed; values under keys that look secret are replaced by a mark, so that no caller can store a password here.
    ``reason`` is a text that a person typed, or a message of kafkadash.
    """
    object_type, object_id = obj if isinstance(obj, tuple) else (obj._meta.model_name or "", str(obj.pk))
    return AuditEvent.objects.create(
        actor=f"user:{actor.pk}" if isinstance(actor, User) else str(actor),
        actor_name=actor.get_username() if isinstance(actor, User) else str(actor),
        action=action,
        object_type=object_type,
        object_id=object_id,
        cluster=cluster,
        **_reason_columns(reason),
        before=hide_values(before) if before is not None else None,
        after=hide_values(after) if after is not None else None,
        address=_address(request) if request is not None else None,
    )


def _reason_columns(reason: CodedMessage | str) -> dict[str, Any]:
    if isinstance(reason, str):
        return {"reason": without_secrets(reason)[:LONGEST_REASON]}
    columns = message_columns(reason, "reason")
    return {**columns, "reason_params": hide_values(columns["reason_params"])}


def _address(request: HttpRequest) -> str | None:
    """Return the address that the server or a trusted proxy saw; None where that is no address."""
    try:
        return str(ip_address(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        return None


class AccountRefused(UserError):
    """``str()`` says what was wrong with the name or the password."""


def check_password(password: str, user: AbstractBaseUser | None) -> None:
    """Check that the password may be used for the user. Raises AccountRefused."""
    try:
        validate_password(password, cast("User | None", user))
    except ValidationError as error:
        raise AccountRefused(AccountErrorCode.PASSWORD_REFUSED, why=" ".join(error.messages)) from None


def create_user(
    actor: User | str, name: str, password: str, *, superuser: bool = False, request: HttpRequest | None = None
) -> User:
    """A new account without any role on a cluster. Raises AccountRefused for a name or password that cannot be used."""
    user = User(username=name, is_superuser=superuser, is_staff=superuser)
    try:
        User.username_validator(name)
    except ValidationError as error:
        raise AccountRefused(AccountErrorCode.ACCOUNT_NAME_REFUSED, why=" ".join(error.messages)) from None
    check_password(password, user)
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            record(actor, "user.created", user, after={"username": name, "superuser": superuser}, request=request)
    except IntegrityError:
        raise AccountRefused(AccountErrorCode.ACCOUNT_NAME_TAKEN, name=name) from None
    return user


def set_password(actor: User | str, user: User, password: str, *, request: HttpRequest | None = None) -> None:
    """Also ends all sessions of that user, as they carry a mark of the old password. Raises AccountRefused."""
    check_password(password, user)
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        record(actor, "user.password_set", user, request=request)


def set_active(actor: User | str, user: User, active: bool, *, request: HttpRequest | None = None) -> bool:
    """Close an account or open it again; roles and history stay. Returns whether anything changed.

    The row is saved, not updated in place, so that the signal of it ends what the account watches.
    """
    with transaction.atomic():
        row = User.objects.select_for_update(no_key=True).filter(pk=user.pk, is_active=not active).first()
        if row is None:
            return False
        row.is_active = active
        row.save(update_fields=["is_active"])
        record(actor, "user.opened" if active else "user.closed", user, request=request)
    return True
