"""How allauth behaves here: accounts are made by an administrator, never by a visitor."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def add_message(self, request: HttpRequest, *args: object, **kwargs: object) -> None:
        """None: no page shows passing messages, and one that nobody reads would stay in a cookie of every request."""
