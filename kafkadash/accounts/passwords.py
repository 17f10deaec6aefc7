"""Passwords: the page to change one's own, and the rule against those that are long and easy to guess all the same."""

from __future__ import annotations

from itertools import pairwise

from allauth.account import views as account
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from kafkadash.accounts.errors import AccountErrorCode, form_error
from kafkadash.accounts.models import User

FEWEST_CHARACTERS = 5


class VariedPasswordValidator:
    """Refuses few characters, a piece that repeats, and sequences such as abcdef or 654321."""

    def validate(self, password: str, user: AbstractBaseUser | None = None) -> None:
        steps = {ord(later) - ord(sooner) for sooner, later in pairwise(password)}
        repeats = password in (password * 2)[1:-1]
        if len(set(password)) < FEWEST_CHARACTERS or repeats or steps in ({1}, {-1}):
            raise form_error(AccountErrorCode.PASSWORD_TOO_PLAIN, fewest=FEWEST_CHARACTERS)

    def get_help_text(self) -> str:
        return f"At least {FEWEST_CHARACTERS} different characters in no simple order."


def change_password(request: HttpRequest) -> HttpResponseBase:
    """Let users change their password.

    Users without one get a page that says so: allauth would send them to a page that kafkadash does not have.
    """
    assert isinstance(request.user, User)  # nobody else is let in
    if not request.user.has_usable_password():
        return render(request, "account/password_change.html")
    response: HttpResponseBase = account.password_change(request)
    return response
