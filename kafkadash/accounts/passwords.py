"""Passwords that are long enough and easy to guess all the same."""

from __future__ import annotations

from itertools import pairwise

from django.contrib.auth.base_user import AbstractBaseUser

from kafkadash.accounts.errors import AccountErrorCode, form_error

FEWEST_CHARACTERS = 5


class VariedPasswordValidator:
    """Refuses few characters, a piece that repeats, and sequences such as abcdef or 654321."""

    def validate(self, password: str, user: AbstractBaseUser | None = None) -> None:
        steps = {ord(later) - ord(sooner) for sooner, later in pairwise(password)}
        repeats = password in (password * 2)[1:-1]
        if len(set(password)) < FEWEST_CHARACTERS or repeats or steps in ({1}, {-1}):
            raise form_error(AccountErrorCode.PASSWORD_TOO_PLAIN, fewest=FEWEST_CHARACTERS)

    def get_help_text(self) -> str:
        return f"At least {FEWEST_CHARACTERS} different characters, in no simple order."
