"""Everything that changes accounts. Each change and its audit event are one transaction."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest

from kafkadash.accounts.audit import record
from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.accounts.models import User
from kafkadash.domain.errors import UserError


class AccountRefused(UserError):
    """``str()`` says what was wrong with the name or the password."""


def check_password(password: str, user: AbstractBaseUser | None) -> None:
    """Whether it can be used as one. Raises AccountRefused."""
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
