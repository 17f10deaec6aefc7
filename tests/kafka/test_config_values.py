"""Values of configs: which are the same for Kafka, and which it can parse."""

from __future__ import annotations

import pytest

from kafkadash.kafka.api import ConfigType
from kafkadash.kafka.config_values import is_of_type, is_same_value


@pytest.mark.parametrize(
    ("told", "wanted", "same"),
    [
        ("compact,delete", "compact, delete", True),
        ("true", "TRUE", True),
        ("0.5", "0.50", True),
        ("1.0E-4", "0.0001", True),
        ("60000", "+60000", True),
        ("9223372036854775807", "9223372036854775806", False),
        ("", "", True),
        ("delete,compact", "compact,delete", False),
        ("0.5", "0.51", False),
        ("zstd", "ZSTD", False),
        (None, "", False),
        (None, None, True),
    ],
)
def test_value__as_kafka_prints_it__is_the_one_that_was_sent(told: str | None, wanted: str | None, same: bool) -> None:
    assert is_same_value(told, wanted) is same


@pytest.mark.parametrize(
    ("kind", "fine", "wrong"),
    [
        (ConfigType.BOOLEAN, ["true", "FALSE"], ["", "yes", "1", "ｔrue"]),
        (ConfigType.SHORT, ["-1", "32767"], ["32768", "1.0"]),
        (ConfigType.INT, ["-2147483648", "+7"], ["2147483648", "1_000", "１", "0x10", ""]),
        (ConfigType.LONG, ["-1", "9223372036854775807"], ["9223372036854775808", "9" * 5000, "1e3", "soon"]),
        (ConfigType.DOUBLE, ["0.5", ".5", "1.0E-4", "3"], ["half", "0,5", "1e", "nan", "9" * 5000]),
        (ConfigType.LIST, ["", "compact, delete"], []),
        (ConfigType.UNKNOWN, ["anything"], []),
    ],
)
def test_value__of_a_type__is_what_kafka_can_parse(kind: ConfigType, fine: list[str], wrong: list[str]) -> None:
    assert [value for value in (*fine, *wrong) if is_of_type(value, kind)] == fine
