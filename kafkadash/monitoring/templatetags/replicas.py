"""Replicas of a partition as chips, and its state as a mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from kafkadash.monitoring.partitions import PartitionTrouble
from kafkadash.monitoring.templatetags.marks import shape

register = template.Library()


class ReplicaChip(Protocol):
    """A replica: ``change`` is "in" or "out" where it arrives or leaves; ``words`` says all of it."""

    @property
    def broker(self) -> int: ...
    @property
    def rack(self) -> str: ...
    @property
    def leader(self) -> bool: ...
    @property
    def in_sync(self) -> bool: ...
    @property
    def offline(self) -> bool: ...
    @property
    def change(self) -> str: ...
    @property
    def words(self) -> str: ...


class HasChips(Protocol):
    @property
    def chips(self) -> Sequence[ReplicaChip]: ...


@register.simple_tag
def replica_chips(line: HasChips) -> SafeString:
    """Leader underlined, − leaves, + arrives, dashed is not in sync; the small text is the rack."""
    return format_html(
        '<span class="replicas">{}</span>', format_html_join("", "{}", ((_chip(chip),) for chip in line.chips))
    )


@register.simple_tag
def trouble_mark(trouble: PartitionTrouble, stale: bool) -> SafeString:
    """The class of a partition; nothing old is green."""
    state = "unknown" if stale and trouble.state == "ok" else trouble.state
    return format_html('<span class="status-mark" data-state="{}">{}{}</span>', state, shape(state), trouble.value)


def _chip(chip: ReplicaChip) -> SafeString:
    return _chip_html(chip.broker, chip.rack, chip.leader, chip.in_sync, chip.offline, chip.change, chip.words)


@lru_cache(maxsize=8192)
def _chip_html(
    broker: int, rack: str, leader: bool, in_sync: bool, offline: bool, change: str, words: str
) -> SafeString:
    """A page has hundreds of chips and few that differ."""
    flags: Mapping[str, bool] = {
        "data-leader": leader,
        "data-behind": not in_sync and not offline,
        "data-offline": offline,
    }
    return format_html(
        '<span class="replica"{}{} title="{}"><span aria-hidden="true">{}</span>{}'
        '<span class="visually-hidden">{}</span></span>',
        format_html_join("", " {}", ((name,) for name, held in flags.items() if held)),
        format_html(' data-change="{}"', change) if change else "",
        words,
        broker,
        format_html("<small>{}</small>", rack) if rack else "",
        words,
    )
