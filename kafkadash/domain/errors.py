"""The exception with which everything refuses or fails that a person is told about."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Any

from kafkadash.domain.messages import CodedMessage


class UserError(Exception):
    """A code with its parameters; ``str()`` is its message, which says what is wrong and what to do.

    Raised with a code of the package and the parameters of its message, or with the message of another error.
    """

    def __init__(self, said: StrEnum | CodedMessage | str, /, **params: Any) -> None:
        self.message: CodedMessage | str = CodedMessage(said, params) if isinstance(said, StrEnum) else said
        super().__init__(self.message)

    def __str__(self) -> str:
        return str(self.message)

    def with_news(self, news: str) -> CodedMessage | str:
        """Return the message with what happened meanwhile."""
        return replace(self.message, news=news) if isinstance(self.message, CodedMessage) else self.message

    @property
    def code(self) -> str:
        """'' where only a text is known."""
        return self.message.code.value if isinstance(self.message, CodedMessage) else ""
