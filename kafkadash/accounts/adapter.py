"""How allauth behaves here: accounts are made by an administrator, never by a visitor."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from kafkadash.accounts.services import AccountRefused, check_password
from kafkadash.domain.refusals import accounts


class AccountAdapter(DefaultAccountAdapter):
    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "account_inactive": accounts.ACCOUNT_IS_CLOSED(),
        "enter_current_password": accounts.PASSWORD_WRONG(),
        "too_many_login_attempts": accounts.SIGN_IN_TOO_OFTEN(),
        "username_password_mismatch": accounts.SIGN_IN_WRONG(),
    }

    def clean_password(self, password: str, user: AbstractBaseUser | None = None) -> str:
        try:
            check_password(password, user)
        except AccountRefused as refused:
            raise ValidationError(str(refused)) from None
        return password

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def add_message(self, request: HttpRequest, *args: object, **kwargs: object) -> None:
        """None: no page shows passing messages, and one that nobody reads would stay in a cookie of every request."""
