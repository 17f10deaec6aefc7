"""Template tags that show a message by its code: ``{% said "form-too-old" %}``, or the two parts of the message apart.

A code without a message raises KeyError when the page is rendered.
"""

from __future__ import annotations

from dataclasses import dataclass

from django import template
from django.core.exceptions import ValidationError
from django.forms.utils import ErrorList

from kafkadash.core.messages import find_code, is_code, message_advice, message_cause, message_text

register = template.Library()


@dataclass(frozen=True, slots=True)
class FieldMessage:
    """A field is refused with this text; ``codes`` are ours, not those of Django."""

    text: str
    codes: tuple[str, ...]

    def __str__(self) -> str:
        return self.text


@register.filter
def field_messages(errors: ErrorList) -> list[FieldMessage]:
    """Return what a field, or a form as a whole, is refused with, for ``_told.html``."""
    return [FieldMessage(text, _own_codes(error)) for error in errors.as_data() for text in error.messages]


def _own_codes(error: ValidationError) -> tuple[str, ...]:
    return tuple(code for code in (error.code or "").split(", ") if is_code(code))


@register.simple_tag
def said(code: str, **values: object) -> str:
    return message_text(find_code(code), **values)


@register.simple_tag
def cause(code: str, **values: object) -> str:
    return message_cause(find_code(code), **values)


@register.simple_tag
def then(code: str, **values: object) -> str:
    return message_advice(find_code(code), **values)
