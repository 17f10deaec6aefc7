"""Refusals for templates, by the key of their entry: ``{% said "form-too-old" %}``, or its two parts apart.

An unknown key or a missing value fails when the page is rendered (KeyError), which a test of the entry does.
"""

from __future__ import annotations

from functools import cache

from django import template

from kafkadash.domain.refusals.catalogue import catalogue
from kafkadash.domain.refusals.entry import Entry

register = template.Library()


@register.simple_tag
def said(key: str, **values: object) -> str:
    return _entry(key)(**values)


@register.simple_tag
def cause(key: str, **values: object) -> str:
    return _entry(key).cause(**values)


@register.simple_tag
def then(key: str, **values: object) -> str:
    return _entry(key).then.format(**values)


@cache
def _entry(key: str) -> Entry:
    return catalogue()[key]
