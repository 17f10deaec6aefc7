"""How allauth behaves here: accounts are made by an administrator, never by a visitor."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.errors import AccountErrorCode, form_error, lazy_text
from kafkadash.accounts.models import User
from kafkadash.accounts.services import AccountRefused, check_password, record


class AccountAdapter(DefaultAccountAdapter):
    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "account_inactive": lazy_text(AccountErrorCode.ACCOUNT_IS_CLOSED),
        "enter_current_password": lazy_text(AccountErrorCode.PASSWORD_WRONG),
        "too_many_login_attempts": lazy_text(AccountErrorCode.SIGN_IN_TOO_OFTEN),
        "username_password_mismatch": lazy_text(AccountErrorCode.SIGN_IN_WRONG),
    }

    def clean_password(self, password: str, user: AbstractBaseUser | None = None) -> str:
        try:
            check_password(password, user)
        except AccountRefused as refused:
            raise form_error(refused.message) from None
        return password

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def login(self, request: HttpRequest, user: AbstractBaseUser) -> None:
        assert isinstance(user, User)
        with transaction.atomic():
            super().login(request, user)
            record(user, "user.signed_in", user, request=request)

    def logout(self, request: HttpRequest) -> None:
        user = request.user
        with transaction.atomic():
            super().logout(request)
            if isinstance(user, User):
                record(user, "user.signed_out", user, request=request)

    def set_password(self, user: AbstractBaseUser, password: str) -> None:
        assert isinstance(user, User)
        with transaction.atomic():
            super().set_password(user, password)
            record(user, "user.password_changed", user)

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """A name that nobody has is not kept: it may be a password, typed into the wrong field."""
        user = User.objects.filter(username=credentials.get("username", "")).first()
        name = user.get_username() if user else ""
        record("sign-in", "user.sign_in_failed", user or ("user", ""), after={"name": name}, request=request)

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Wrong tries are counted by name and address.

        By name alone anybody could lock anybody else out. The host is not part of it, as visitors choose what stands
        there: a made-up port would begin a new count.
        """
        login = credentials.get("email", credentials.get("username", "")).lower()
        return f"{login}:{request.META.get('REMOTE_ADDR', '')}"

    def add_message(self, request: HttpRequest, *args: object, **kwargs: object) -> None:
        """None: no page shows passing messages, and one that nobody reads would stay in a cookie of every request."""
