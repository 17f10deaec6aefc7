"""Heads and links of lists that are sorted and filtered by their address (``core.listing``)."""

from __future__ import annotations

from collections.abc import Mapping

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from kafkadash.core.listing import ListQuery
from kafkadash.monitoring.configs import source_words
from kafkadash.monitoring.models import TopicState
from kafkadash.monitoring.templatetags.figures import figure

register = template.Library()


@register.simple_tag
def sort_head(listing: ListQuery, column: str, words: str, *, num: bool = False) -> SafeString:
    """The head of a column that can be sorted."""
    sorted_now = ""
    if column == listing.sort:
        sorted_now = mark_safe(f' aria-sort="{"descending" if listing.descending else "ascending"}"')  # noqa: S308
    return format_html(
        '<th scope="col"{}{}><a href="{}">{}</a></th>',
        mark_safe(' class="num"') if num else "",
        sorted_now,
        listing.sort_address(column),
        words,
    )


@register.simple_tag
def filter_address(listing: ListQuery, **changes: str) -> str:
    """The query string with these filters in place of the present ones."""
    return listing.address(**{name: str(value) for name, value in changes.items()})


@register.simple_tag
def page_address(listing: ListQuery, number: int) -> str:
    return listing.address(page=str(number))


@register.simple_tag
def segment_count(counts: Mapping[str, int], value: str, topic: TopicState, racks_sentence: str) -> str | SafeString:
    """How many partitions of a topic a filter leaves; unknown where that cannot be told."""
    unknown = (value.endswith("min-isr") and topic.min_isr is None) or (value == "racks" and bool(racks_sentence))
    return figure(None if unknown else counts[value])


@register.simple_tag
def config_source(source: str) -> str:
    """Return the source of a config's value: "source: topic", "source: cluster default"."""
    return f"source: {source_words(source)}"
