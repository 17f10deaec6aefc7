"""The exception with which everything refuses or fails that a person is told about."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Any

from kafkadash.core.messages import CodedMessage


class UserError(Exception):
    """A code with its parameters; ``str()`` is its message, which says what is wrong and what to do.

    Raised with a code of the package and the parameters of its message, or with the message of another error.
    """

    def __init__(self, said: StrEnum | CodedMessage, /, **params: Any) -> None:
        self.message = said if isinstance(said, CodedMessage) else CodedMessage(said, params)
        super().__init__(self.message)

    def __str__(self) -> str:
        return str(self.message)

    def with_news(self, news: str) -> CodedMessage:
        """Return the message with what happened meanwhile."""
        return replace(self.message, news=news)

    @property
    def code(self) -> str:
        """'' where only a text is known."""
        return self.message.shown_code

    @property
    def codes(self) -> tuple[str, ...]:
        return self.message.codes


class FieldRefused(UserError):
    """What was entered is refused; ``field`` names the input that is wrong, '' for the form as a whole."""

    def __init__(self, field: str, why: StrEnum | CodedMessage, /, **params: Any) -> None:
        super().__init__(why, **params)
        self.field = field


class RequestErrorCode(StrEnum):
    """Codes of requests that any page may refuse; the texts are in ``accounts.messages``."""

    CHOICE_UNKNOWN = "choice-unknown"
    TIME_ZONE_UNKNOWN = "time-zone-unknown"
    COLUMN_UNKNOWN = "column-unknown"
    BODY_TOO_LARGE = "body-too-large"
