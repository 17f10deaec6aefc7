"""Whole numbers in text that others wrote: values of Kafka's configs, and what people type."""

from __future__ import annotations

LARGEST_INT, LARGEST_LONG = 2**31 - 1, 2**63 - 1  # org.apache.kafka.common.config.ConfigDef.Type INT and LONG


def read_whole_number(text: str, largest: int = LARGEST_LONG) -> int | None:
    """None for what is no number without a sign, and for one above ``largest``. Never raises.

    Kafka checks lists of throttled replicas by a pattern only, so a number in them may have thousands of digits,
    and Python converts no more than 4,300.
    """
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > len(str(largest)):
        return None
    number = int(digits)
    return number if number <= largest else None
