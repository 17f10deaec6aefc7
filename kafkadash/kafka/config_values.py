"""Values of configs as Kafka parses and prints them (class org.apache.kafka.common.config.ConfigDef)."""

from __future__ import annotations

import re

from kafkadash.kafka.api import ConfigType

_WHOLE = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?", re.ASCII)
_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}

MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"
REMOTE_STORAGE = "remote.storage.enable"
"""Topic config that sends older segments to tiered storage (KIP-405)."""
COPY_UNTIERED_ONLY = "follower.fetch.last.tiered.offset.enable"
"""Broker config by which new replicas copy only what is not in tiered storage yet (KIP-1023, Kafka 4.3)."""


def may_elect_uncleanly(key: str, value: str | None) -> bool:
    """Return whether Kafka may elect leaders uncleanly by itself with this value of a config.

    None is no value of its own: what is inherited then may change later without anybody who looks at this one.
    """
    return key == UNCLEAN_ELECTION and (value or "").strip().lower() != "false"


def is_same_value(told: str | None, wanted: str | None) -> bool:
    """Return whether Kafka tells the value that was sent: it parses values, and prints them in its own way.

    Lists have no spaces then, "TRUE" is "true", "0.50" is "0.5" and "0.0001" is "1.0E-4". None is a value that is not
    set.
    """
    if told is None or wanted is None:
        return told is wanted
    return _parse_value(told) == _parse_value(wanted)


def _parse_value(value: str) -> list[str | int | float]:
    return [_parse_part(part.strip()) for part in value.split(",")]


def _parse_part(part: str) -> str | int | float:
    if _WHOLE.fullmatch(part):
        return int(part)
    if _DECIMAL.fullmatch(part):
        return float(part)
    return part.lower() if part.lower() in ("true", "false") else part


def is_of_type(value: str, kind: ConfigType) -> bool:
    """Return whether Kafka can parse a value without spaces around it; types without rules take any text."""
    if kind is ConfigType.BOOLEAN:
        return value.lower() in ("true", "false")
    if kind is ConfigType.DOUBLE:
        return _DECIMAL.fullmatch(value) is not None
    bits = _BITS.get(kind)
    if bits is None:
        return True
    return _WHOLE.fullmatch(value) is not None and -(2 ** (bits - 1)) <= int(value) < 2 ** (bits - 1)


def read_number(value: str) -> int | float | None:
    """Return the number that a value is; None where it is none, or one of several."""
    number = _parse_part(value.strip())
    return None if isinstance(number, str) else number


def largest_number(kind: ConfigType) -> float | None:
    """Return the largest number of a type, None where values of it are no numbers."""
    bits = _BITS.get(kind)
    return float("inf") if kind is ConfigType.DOUBLE else 2 ** (bits - 1) - 1 if bits else None
