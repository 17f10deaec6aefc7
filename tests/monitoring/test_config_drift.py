"""Comparison of the brokers' configs, where a broker has no value of its own or was not read."""

from __future__ import annotations

from kafkadash.monitoring.config_drift import compare_configs
from kafkadash.monitoring.models import ConfigSource
from tests.factories import NOW

KEY = "num.io.threads"
STATIC = {KEY: ("16", ConfigSource.STATIC)}
BEFORE = {KEY: [100.0, [["16", ConfigSource.STATIC, [1, 2]], ["8", ConfigSource.DEFAULT, [3]]]]}


def catalog(default: str | None, source: ConfigSource = ConfigSource.DEFAULT) -> dict[str, list[object]]:
    return {KEY: ["int", False, False, [default, source]]}


def test_key_that_kafka_leaves_unset__differs_where_only_some_brokers_set_it() -> None:
    [_, values] = compare_configs({1: STATIC, 2: {}, 3: {}}, catalog(None), {}, NOW)[KEY]
    assert values == [[None, ConfigSource.DEFAULT, [2, 3]], ["16", ConfigSource.STATIC, [1]]]


def test_broker_was_not_read_and_its_default_is_not_known__it_differs_as_before() -> None:
    configs, known = {1: STATIC, 2: STATIC, 3: {}}, catalog("16", ConfigSource.STATIC)
    assert compare_configs(configs, known, BEFORE, NOW, unread=[3]) == BEFORE
    assert compare_configs(configs, known, BEFORE, NOW, unread=[]) == {}


def test_value_that_says_the_default__does_not_differ() -> None:
    assert compare_configs({1: STATIC, 2: {}}, catalog("16"), {}, NOW) == {}
