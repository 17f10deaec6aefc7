"""What a refusal or failure has to be: its code and parameters, never its wording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, TypeVar

import pytest

from kafkadash.core.errors import UserError

_E = TypeVar("_E", bound=UserError)


@contextmanager
def raises_code(
    code: StrEnum, kind: type[_E], *, match: str | None = None, **params: Any
) -> Iterator[pytest.ExceptionInfo[_E]]:
    """Fail unless the block raises this kind of error with this code, and with these among its parameters.

    ``match``: a name or figure that its text has to hold where no parameter does.
    """
    with pytest.raises(kind, match=match) as caught:
        yield caught
    message = caught.value.message
    assert (message.code, {name: message.params.get(name) for name in params}) == (code, params)
