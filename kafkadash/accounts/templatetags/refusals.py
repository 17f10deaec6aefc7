"""Messages for templates, by their code: ``{% said "form-too-old" %}``, or its two parts apart.

A code without a message fails when the page is rendered (KeyError), which a test of the page finds.
"""

from __future__ import annotations

from django import template

from kafkadash.domain.messages import find_code, message_advice, message_cause, message_text

register = template.Library()


@register.simple_tag
def said(code: str, **values: object) -> str:
    return message_text(find_code(code), **values)


@register.simple_tag
def cause(code: str, **values: object) -> str:
    return message_cause(find_code(code), **values)


@register.simple_tag
def then(code: str, **values: object) -> str:
    return message_advice(find_code(code), **values)
